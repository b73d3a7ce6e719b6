"""Factors and eigenvectors on the machine of an array, and checks of Gram matrices.

NumPy arrays go to LAPACK through scipy; other arrays to the NumPy functions that they implement, or
to functions of their machine.

``leading_eigenpairs`` finds those of a large symmetric matrix W by a randomised block Krylov method
(Halko, Martinsson, Shkolnisky and Tygert, 2011). From a Gaussian block Omega of b columns,

    Q = orthonormal basis of [Omega, W Omega, ..., W^(q-1) Omega],      T = Q' W Q = Z S Z'

and the leading k columns of Q Z, with their S, are the best eigenpairs in the space of b q
dimensions. A new block is what the blocks so far leave of W Q_j, and T is made of inner products
computed on the way, so q products with W are all there is. Vectors are rows here: a thin block
times W is faster than W times a thin block.

See docs/decisions/024-indefinite-kernels.md and docs/decisions/017-block-krylov.md.
"""

from collections.abc import Iterable

import numpy as np
import scipy.linalg

from kernelatoms.engine import Array, is_device_array, machine

# Right-hand sides that a thread solves for at once.
_COLUMNS = 64


def eigh(
    matrix: Array, driver: str | None = None, *, check_finite: bool = False
) -> tuple[Array, Array]:
    """Return the ascending eigenvalues and the eigenvectors; ``driver`` is LAPACK's, if used."""
    if not is_device_array(matrix):
        return scipy.linalg.eigh(matrix, driver=driver, check_finite=check_finite)
    return np.linalg.eigh(matrix)


def cholesky(matrix: Array, *, overwrite: bool = False) -> Array | None:
    """Return the lower factor of a symmetric matrix (n, n); None if it has none."""
    if is_device_array(matrix):
        return machine(matrix).cholesky(matrix)
    try:
        return scipy.linalg.cholesky(matrix, lower=True, overwrite_a=overwrite, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None


def solve_triangular(factor: Array, right: Array, *, transposed: bool = False) -> Array:
    """Return L^-1 right, or L'^-1 right, for a lower triangular L (n, n) and right (n, m)."""
    if is_device_array(factor):
        return machine(factor).solve_triangular(factor, right, transposed=transposed)
    return scipy.linalg.solve_triangular(
        factor, right, trans="T" if transposed else "N", lower=True, check_finite=False
    )


def orthonormal_columns(matrix: Array) -> Array:
    """Return orthonormal columns (n, m) that span those of a matrix, by Householder reflections."""
    if not is_device_array(matrix):
        return scipy.linalg.qr(matrix, mode="economic", check_finite=False)[0]
    return np.linalg.qr(matrix)[0]


def solve_positive(matrix: Array, right: Array) -> Array:
    """Return x with matrix x = right, for a symmetric matrix of unit diagonal and any rank.

    By Cholesky; by a slower, rank-revealing method if columns are nearly dependent.
    """
    factor = cholesky(matrix)
    if factor is None or not _keeps_digits(factor):
        if is_device_array(matrix):
            return machine(matrix).least_squares(matrix, right)
        return scipy.linalg.lstsq(matrix, right, lapack_driver="gelsy")[0]
    if is_device_array(matrix):
        inner = solve_triangular(factor, right)
        return solve_triangular(factor, inner, transposed=True)
    if right.ndim == 1:
        return scipy.linalg.cho_solve((factor, True), right, check_finite=False)
    out = np.empty(right.shape)

    def work(start: int, stop: int) -> None:
        own = right[:, start:stop]
        out[:, start:stop] = scipy.linalg.cho_solve((factor, True), own, check_finite=False)

    machine(matrix).for_rows(right.shape[1], _COLUMNS, work)
    return out


def solve_positive_all(matrices: list[Array], rights: list[Array]) -> list[Array]:
    """Return what ``solve_positive`` does for many systems, small ones of a device together."""
    if len(matrices) < 2 or not is_device_array(matrices[0]):
        return [solve_positive(*system) for system in zip(matrices, rights, strict=True)]
    engine = machine(matrices[0])
    factors = engine.cholesky_all(matrices)
    sound = [i for i, L in enumerate(factors) if L is not None and _keeps_digits(L)]
    some = [factors[i] for i in sound]
    inner = engine.solve_triangular_all(some, [rights[i] for i in sound])
    solved = engine.solve_triangular_all(some, inner, transposed=True)
    found = dict(zip(sound, solved, strict=True))
    return [
        found[i] if i in found else engine.least_squares(matrix, right)
        for i, (matrix, right) in enumerate(zip(matrices, rights, strict=True))
    ]


def _keeps_digits(factor: Array) -> bool:
    """Whether solutions by the factor of a matrix of unit diagonal keep their digits."""
    # Diagonals squared are what is left of unit columns.
    return not np.diagonal(factor).min() ** 2 < 1e-8


def root_of_inverse(matrix: Array, least_condition: float) -> Array | None:
    """Return R with R R' the inverse of a symmetric matrix; None if that is ill-conditioned."""
    if is_device_array(matrix):
        return machine(matrix).root_of_inverse(matrix, least_condition)
    norm = float(np.abs(matrix).sum(axis=0).max())
    factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=1)
    if failed:
        return None
    reciprocal_condition, _ = scipy.linalg.lapack.dpocon(factor, norm, uplo="L")
    if not reciprocal_condition > least_condition:
        return None
    return scipy.linalg.lapack.dtrtri(factor, lower=1)[0].T


def block_diagonal(blocks: list[Array]) -> Array:
    """Return matrices along the diagonal of one, zeros elsewhere."""
    shape = [sum(block.shape[axis] for block in blocks) for axis in (0, 1)]
    out = np.zeros(shape, blocks[0].dtype, like=blocks[0])
    row = column = 0
    for block in blocks:
        out[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return out


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


NOT_SEMIDEFINITE = (
    "kernel is not positive semi-definite on these rows, so it has no exact coordinates. Choose a "
    "kernel that is (linear, poly with coef0 >= 0, rbf, laplacian, cosine, chi2), or repair the "
    "matrix."
)

OVERFLOW = (
    "kernel overflows on these rows; scale X (rows of unit norm, say) or choose a smaller degree "
    "or gamma."
)

# The least sum of squares of which a share of 1e-6 still has all digits of float64.
_LEAST_SQUARES = 2.0**-1000


def check_squares(energy: float, blocks: Iterable[Array]) -> None:
    """Refuse rows that are not zero if ``energy``, the sum of their squares, nearly underflows."""
    if energy < _LEAST_SQUARES and any(np.any(rows) for rows in blocks):
        raise ValueError(
            "The squared norms of X underflow float64: all together they are "
            f"{float(energy):.2g}; scale X up."
        )


def check_gram(K: Array, what: str) -> None:
    """Refuse a square matrix of inner products that no positive semi-definite kernel gives.

    It must be finite and symmetric, with k(x, x) >= 0 and k(x, y)^2 <= k(x, x) k(y, y). Eigenvalues
    are checked where a matrix is factored anyway.
    """
    n = len(K)
    diagonal = np.diagonal(K)
    if not np.isfinite(K).all():
        raise ValueError(f"{what} overflows: it has infinite or undefined values.")
    if (diagonal < 0).any():
        i = int(diagonal.argmin())
        raise ValueError(
            f"{what} is not positive semi-definite: K[{i}, {i}] = {diagonal[i]:.3g} is negative."
        )
    tolerance = np.sqrt(np.finfo(K.dtype).eps)
    roots = np.sqrt(diagonal)
    scale = float(roots.max(initial=0.0)) ** 2

    def worker(start: int, stop: int) -> None:
        rows = K[start:stop]
        if (np.abs(rows - K[:, start:stop].T) > tolerance * scale).any():
            raise ValueError(f"{what} is not symmetric.")
        bounds = roots[start:stop, None] * roots * (1 + tolerance) + tolerance * scale
        if (np.abs(rows) > bounds).any():
            raise ValueError(
                f"{what} is not positive semi-definite: some |K[i, j]| is larger than "
                "sqrt(K[i, i] K[j, j])."
            )

    machine(K).for_blocks(n, n, K.itemsize, worker)
