"""Leading eigenpairs of a large symmetric matrix: randomised block Krylov, or block Lanczos.

Halko, Martinsson, Shkolnisky and Tygert, *An algorithm for the principal component analysis of
large data sets*, SIAM J. Sci. Comput. 33(5), 2011. From a Gaussian block Omega of b columns,

    Q = orthonormal basis of [Omega, W Omega, ..., W^(q-1) Omega],      T = Q' W Q = Z S Z'

and the leading k columns of Q Z, with their S, are the best eigenpairs in the space of b q
dimensions (Rayleigh-Ritz). A new block is what the blocks so far leave of W Q_j, and T is made of
inner products computed on the way, so q products with W are all there is.

The paper takes b a little above k and q of 2 or 3. Blocks of a fifth of k and more passes are as
accurate in a smaller space, but see at most b copies of an eigenvalue (benchmarks/RESULTS.md).
Vectors are rows here: a thin block times W is faster than W times a thin block.

See docs/decisions/017-block-krylov.md.
"""

import numpy as np

from kernelatoms.engine import Array, machine
from kernelatoms.features.linear_algebra import (
    cholesky,
    eigh,
    orthonormal_columns,
    solve_triangular,
)

#: How many blocks have as many vectors as are wanted.
_BLOCKS_A_RANK = 5
# Below this share of its size before projection, the Gram matrix of a new block, in which shares
# are squared, has lost the block's own directions.
_HOPELESS = 1e-6
# Squares and sums of numbers between 2^-64 and 2^64 fit in float32 and float64.
_ORDINARY = 64
# Rows of W that one product takes: with few, products are slow.
_MOST_ROWS = 2048
# From this many rows on, BLAS threads pay for the eigenvectors of T: with fewer, other work is
# more, and on a busy machine BLAS threads are many times slower than one.
_THREADED_FROM = 2000


def basis_shape(k: int, n_oversamples: int, n_passes: int) -> tuple[int, int]:
    """Return how many vectors a block has, and the whole basis, for k eigenpairs."""
    block = -(-(k + n_oversamples) // min(_BLOCKS_A_RANK, n_passes))
    return block, block * n_passes


def leading_eigenpairs(
    W: Array, k: int, rng: np.random.RandomState, *, n_oversamples: int, n_passes: int
) -> tuple[Array, Array, float]:
    """Return the k largest eigenvalues, falling, their vectors, and the lowest eigenvalue seen.

    - ``W`` (n, n): symmetric up to rounding, finite, with n above the basis of ``basis_shape``.
    - ``rng``: draws the first block, and vectors where W leads nowhere new.
    - ``n_oversamples``, ``n_passes``: blocks have a fifth of ``k + n_oversamples`` vectors, more if
      there are fewer than five passes.
    - result: (k,), (n, k), and a number that is far below 0 if W has an eigenvalue that is.
    """
    exponent = int(np.frexp(max(float(W.max()), -float(W.min())))[1])
    if abs(exponent) > _ORDINARY:
        W = np.ldexp(W, -exponent)
    else:
        exponent = 0
    width, size = basis_shape(k, n_oversamples, n_passes)
    with machine(W).one_blas_thread():  # products use our threads
        Q, T = _krylov_basis(W, width, size, rng)
    with machine(W).one_blas_thread(size < _THREADED_FROM):
        # Of T its lower triangle is known, and read.
        ritz, Z = eigh(T, driver="evd")
    vectors = _combine(np.ascontiguousarray(Z[:, ::-1][:, :k].T, like=Z), Q)
    ritz = np.ldexp(ritz, exponent)
    return ritz[::-1][:k].astype(W.dtype), vectors.T.astype(W.dtype), float(ritz[0])


def _krylov_basis(
    W: Array, width: int, size: int, rng: np.random.RandomState
) -> tuple[Array, Array]:
    """Return the basis, orthonormal rows, and the lower triangle of Q W Q'; both in float64."""
    n = len(W)
    Q, T = np.empty((size, n), like=W), np.zeros((size, size), like=W)
    block = _orthonormal(np.asarray(rng.standard_normal((width, n)), like=W))
    for start in range(0, size, width):
        stop = start + width
        Q[start:stop] = block
        product = _inner(block.astype(W.dtype, copy=False), W)  # W is symmetric
        T[start:stop, :stop] = _inner(product, Q[:stop])
        if stop < size:
            block = _next_block(product, T[start:stop, :stop], Q[:stop], rng)
    return Q, T


def _next_block(product: Array, inner: Array, Q: Array, rng: np.random.RandomState) -> Array:
    """Return as many orthonormal rows, orthogonal to Q, that with Q span the rows of ``product``.

    Rows in the span of Q leave rounding, because the rank is reached or only copies of an
    eigenvalue are left. A random vector of rounding's size is added, so that their direction is
    random.
    """
    longest = float(np.sqrt(np.vecdot(product, product).max()))
    block = product - _combine(inner, Q)
    # Cholesky factors take a tenth of the time of reflections. What they lose, and what one
    # subtraction leaves of Q (a small remainder of a long row), a second one repairs.
    easy, own = _cholesky_orthonormal(block)
    if own > _HOPELESS * longest:
        easy -= _combine(_inner(easy, Q), Q)
        return _cholesky_orthonormal(easy)[0]
    noise = np.asarray(rng.standard_normal(block.shape), like=block) / np.sqrt(block.shape[1])
    block = block / (longest or 1.0) + 10 * np.finfo(np.float64).eps * noise
    for _ in range(2):
        block = _orthonormal(block)
        block -= _combine(_inner(block, Q), Q)
    return _orthonormal(block)


def _cholesky_orthonormal(block: Array) -> tuple[Array, float]:
    """Return the rows made orthonormal, and the least that one has beside those before it, or 0."""
    factor = cholesky(_inner(block, block))
    if factor is None:
        return block, 0.0
    inverse = solve_triangular(factor, np.eye(len(factor), like=factor))
    return _combine(inverse, block), float(np.diagonal(factor).min())


def _orthonormal(block: Array) -> Array:
    """Return the rows made orthonormal by Householder reflections, whatever they are."""
    return np.ascontiguousarray(orthonormal_columns(block.T).T, like=block)


# Products, in pieces that are the same for any number of threads ----------------------------------


def _inner(rows: Array, Q: Array) -> Array:
    """Return rows @ Q.T in float64, multiplied in their own type."""
    out = np.empty((len(rows), len(Q)), like=Q)

    def work(start: int, stop: int) -> None:
        out[:, start:stop] = rows @ Q[start:stop].T

    machine(Q).for_rows(len(Q), _MOST_ROWS, work)
    return out


def _combine(weights: Array, Q: Array) -> Array:
    """Return weights @ Q."""
    out = np.empty((len(weights), Q.shape[1]), like=Q)

    def work(start: int, stop: int) -> None:
        out[:, start:stop] = weights @ Q[:, start:stop]

    machine(Q).for_rows(Q.shape[1], _MOST_ROWS, work)
    return out
