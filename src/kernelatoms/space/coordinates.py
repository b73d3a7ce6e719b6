"""Exact coordinates of a kernel: rows F with F F' = K, by pivoted Cholesky.

Whatever a method does to phi(x) through inner products it does to these rows: kernel K-SVD on K is
K-SVD on F. With L the factor of the permuted K and P its pivots,

    F[P] = L_P (lower triangular),   <phi(x), e_j> = (k(x, P) L_P^-T)_j

where e_j are the orthonormal vectors that Gram and Schmidt would make of phi(pivots). Pivots come
largest remainder first, so cutting the factor after j columns leaves the best-known part of K, and
the pivots alone stand for all rows.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.engine import machine
from kernelatoms.similarity import Kernel
from kernelatoms.space.expansion import Expansion
from kernelatoms.space.gram_check import check_gram

Array = NDArray[Any]

_THREADED_FROM = 3000


@dataclass(frozen=True)
class Frame:
    """Coordinates of signals on orthonormal vectors of feature space.

    ``rows`` are the signals' coordinates. ``duals(vectors)`` writes vectors, given as rows of
    coordinates, in phi(anchors): a column of coefficients each.
    """

    rows: Array
    anchors: Array
    duals: Callable[[Array], Array]


def exact_frame(
    kernel: Kernel, rows: Array, anchors: Array, accuracy: float, X: Array | None = None
) -> Frame:
    """Return coordinates on phi(rows), exact or to the given accuracy.

    ``anchors`` stand for the rows as the kernel's second argument. Signals X other than the rows
    are projected on the basis that the rows give.
    """
    K = Expansion(kernel, anchors).project(rows)  # in blocks, on all threads
    check_gram(K, "the kernel on these rows")
    F, pivots = pivoted_cholesky(K, accuracy)
    del K  # overwritten, and as large as all that follows
    chosen = anchors[pivots]

    def duals(vectors: Array) -> Array:
        # The pivots' own rows are taken from F when they are asked for, not kept beside it.
        return scipy.linalg.solve_triangular(
            F[pivots], vectors.T, trans="T", lower=True, check_finite=False
        )

    if X is None:
        return Frame(F, chosen, duals)
    inner = Expansion(kernel, chosen).project(X)
    mine = scipy.linalg.solve_triangular(F[pivots], inner.T, lower=True, check_finite=False)
    return Frame(np.ascontiguousarray(mine.T), chosen, duals)


def pivoted_cholesky(K: Array, accuracy: float = 0.0) -> tuple[Array, NDArray[np.intp]]:
    """Return F with F F' = K, and the pivots; K is overwritten.

    With ``accuracy`` above 0, as few columns as leave at most this share of the trace of K.
    """
    n, eps = len(K), np.finfo(K.dtype).eps
    trace = float(np.trace(K, dtype=np.float64))
    largest = float(np.diagonal(K).max(initial=0.0))
    if largest <= 0:
        raise ValueError("The kernel is zero on all rows: there is nothing to learn from.")
    # What the factor must give back: a matrix that is not positive semi-definite has no factor.
    probes = np.random.default_rng(0).choice([-1.0, 1.0], (n, 4)).astype(K.dtype)
    images = K @ probes
    (pstrf,) = scipy.linalg.get_lapack_funcs(("pstrf",), (K,))
    # Its many small products wake BLAS' helper threads for less than that costs, up to here.
    with machine(K).one_blas_thread() if n < _THREADED_FROM else nullcontext():
        factor, order, rank, _ = pstrf(K.T, tol=n * eps * largest, lower=1, overwrite_a=True)
    order = order.astype(np.intp) - 1
    F = np.empty((n, rank), K.dtype)
    for start in range(0, n, 512):  # block by block: no third n x n matrix
        F[order[start : start + 512]] = np.tril(factor[start : start + 512, :rank], start)
    missed = np.abs(images - F @ (F.T @ probes)).max()
    if missed > np.sqrt(eps) * n * largest:
        raise ValueError(
            "kernel is not positive semi-definite on these rows, so it has no exact coordinates. "
            "Choose a kernel that is (linear, poly with coef0 >= 0, rbf, laplacian, cosine, chi2), "
            "or repair the matrix."
        )
    if accuracy > 0:
        kept = np.cumsum(np.einsum("ij,ij->j", F, F, dtype=np.float64))
        enough = np.flatnonzero(kept >= (1 - accuracy) * trace)
        rank = int(enough[0]) + 1 if len(enough) else rank
        F = np.ascontiguousarray(F[:, :rank])
    return F, order[:rank]
