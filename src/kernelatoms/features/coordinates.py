"""Coordinates of mapped rows: F with F F' = K, so that kernel methods are linear ones on F.

Kernel K-SVD on K, for example, is K-SVD on F. With P the pivots of a Cholesky decomposition and L_P
= F[P], lower triangular, new rows need kernel values with the pivots only:

    <phi(x), e_j> = (k(x, P) L_P^-T)_j

where e_j are the Gram-Schmidt vectors of phi(pivots). Exact coordinates come from LAPACK's
decomposition of K, approximate ones from ``randomly_pivoted_cholesky``, which needs no K.

See docs/decisions/015-kernel-methods-in-coordinates.md.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.engine import Array, is_device_array, machine
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.linear_algebra import NOT_SEMIDEFINITE, check_gram, solve_triangular
from kernelatoms.features.memory import check_fits
from kernelatoms.features.samplers import randomly_pivoted_cholesky
from kernelatoms.similarity import Kernel

_THREADED_FROM = 3000
ZERO_KERNEL = "The kernel is zero on all rows: there is nothing to learn from."


@dataclass(frozen=True)
class Coordinates:
    """Coordinates of signals on orthonormal vectors of feature space.

    ``rows`` (n, r) are the coordinates, ``anchors`` (m, n_features) rows whose phi span the
    vectors. ``duals(vectors)`` turns rows of coordinates (p, r) into coefficients over
    phi(anchors), (m, p).
    """

    rows: Array
    anchors: Array
    duals: Callable[[Array], Array]


def exact_coordinates(
    kernel: Kernel, rows: Array, anchors: Array, X: Array | None = None
) -> Coordinates:
    """Return coordinates on phi(rows), by the whole kernel matrix of the rows.

    - ``rows``, ``anchors``: what vectors are made of, and ``as_anchors(rows, kernel)``.
    - ``X`` (n_signals, n_features): signals other than the rows, projected on their basis.
    """
    n = len(rows)
    check_fits(
        2 * n**2 * rows.itemsize,
        f"exact coordinates of {n} rows",
        "Use coordinates=0.01, which leaves 1% of the kernel's trace and needs no kernel matrix, "
        "or coordinates=KernelLinearizer(n_landmarks=1000).",
        like=rows,
    )
    K = Expansion(kernel, anchors).project(rows)  # in blocks, on all threads
    check_gram(K, "the kernel on these rows")
    F, pivots = pivoted_cholesky(K)
    del K  # overwritten, and as large as all that follows
    return _on_pivots(kernel, F, pivots, anchors, X)


def pruned_coordinates(
    kernel: Kernel,
    rows: Array,
    anchors: Array,
    accuracy: float,
    rng: np.random.RandomState,
    X: Array | None = None,
) -> Coordinates:
    """Return coordinates on few of phi(rows), drawn at random, without the rows' kernel matrix."""
    F, pivots = randomly_pivoted_cholesky(
        kernel, rows, anchors, len(rows), rng, accuracy, relative=True
    )
    if not len(pivots):
        raise ValueError(ZERO_KERNEL)
    return _on_pivots(kernel, F, pivots, anchors, X)


def _on_pivots(
    kernel: Kernel, F: Array, pivots: NDArray[np.intp], anchors: Array, X: Array | None
) -> Coordinates:
    chosen = anchors[pivots]

    def duals(vectors: Array) -> Array:
        # Rows of the pivots are taken from F at each call and not stored twice.
        with machine(F).one_blas_thread(len(pivots) < _THREADED_FROM):
            return solve_triangular(F[pivots], vectors.T, transposed=True)

    if X is None:
        return Coordinates(F, chosen, duals)
    inner = Expansion(kernel, chosen).project(X)
    with machine(F).one_blas_thread(len(pivots) < _THREADED_FROM):
        mine = solve_triangular(F[pivots], inner.T)
    return Coordinates(np.ascontiguousarray(mine.T, like=mine), chosen, duals)


def pivoted_cholesky(K: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return F of shape (n, rank) with F F' = K, and the pivots; K (n, n) is overwritten."""
    n, eps = len(K), np.finfo(K.dtype).eps
    largest = float(np.diagonal(K).max(initial=0.0))
    if largest <= 0:
        raise ValueError(ZERO_KERNEL)
    # The factor must reproduce these products; it cannot if K is not positive semi-definite.
    probes = np.random.default_rng(0).choice([-1.0, 1.0], (n, 4))
    probes = np.asarray(probes, K.dtype, like=K)
    with machine(K).one_blas_thread():
        images = K @ probes
    F, pivots = _pivoted_factor(K, n * eps * largest)
    missed = np.abs(images - F @ (F.T @ probes)).max()
    if missed > np.sqrt(eps) * n * largest:
        raise ValueError(NOT_SEMIDEFINITE)
    return F, pivots


def _pivoted_factor(K: Array, tolerance: float) -> tuple[Array, NDArray[np.intp]]:
    """Return the factor and the pivots until what is left is within a tolerance."""
    if is_device_array(K):
        return machine(K).pivoted_cholesky(K, float(tolerance))
    n = len(K)
    (pstrf,) = scipy.linalg.get_lapack_funcs(("pstrf",), (K,))
    # Up to this size, BLAS threads cost more than they save on its many small products.
    with machine(K).one_blas_thread(n < _THREADED_FROM):
        factor, order, rank, _ = pstrf(K.T, tol=tolerance, lower=1, overwrite_a=True)
    order = order.astype(np.intp) - 1
    F = np.empty((n, rank), K.dtype)
    for start in range(0, n, 512):  # block by block: no third n x n matrix
        F[order[start : start + 512]] = np.tril(factor[start : start + 512, :rank], start)
    return F, order[:rank]
