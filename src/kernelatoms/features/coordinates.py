"""Coordinates of mapped rows: F with F F' = K, so that kernel methods are linear ones on F.

Kernel K-SVD on K, for example, is K-SVD on F. With P the pivots of a Cholesky decomposition and L_P
= F[P], lower triangular, new rows need kernel values with the pivots only:

    <phi(x), e_j> = (k(x, P) L_P^-T)_j

where e_j are the Gram-Schmidt vectors of phi(pivots). Exact coordinates come from LAPACK's
decomposition of K, approximate ones from ``randomly_pivoted_cholesky``, which needs no K.

``linearize`` is Algorithm 1 of the LKDL paper. With landmarks R, W = k(R, R) = V S V' and
C = k(X, R),

    F = C V_k S_k^(-1/2)                                   (eqs. (22)-(24), rows are samples)

has F F' = C W^+ C', the Nystroem approximation of k(X, X), which is exact if all rows are
landmarks. The rows of F are the "virtual samples", on which any linear method works.

See docs/decisions/015-kernel-methods-in-coordinates.md and docs/decisions/016-nystroem-maps.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.engine import Array, is_device_array, machine
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.linear_algebra import (
    NOT_SEMIDEFINITE,
    basis_shape,
    check_gram,
    eigh,
    leading_eigenpairs,
    solve_positive,
    solve_triangular,
)
from kernelatoms.features.memory import check_fits
from kernelatoms.features.preimage_methods import best_ridge
from kernelatoms.features.samplers import randomly_pivoted_cholesky
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.factory import as_anchors

_THREADED_FROM = 3000
ZERO_KERNEL = "The kernel is zero on all rows: there is nothing to learn from."

# From this many landmarks on, and with a basis of at most this share of them, the randomised solver
# takes at most half the time (benchmarks/RESULTS.md).
_RANDOMIZED_FROM = 1000
_LARGEST_SHARE = 0.5
_THREADED_EIGH_FROM = 1000
# Kernel values of float32 rows have errors of some eps. In a coordinate of n landmarks that is
# noise of eps / sqrt(s) in a signal of sqrt(s / n): a thousandth at most, for an error of one eps.
_NOISE = 1000
# The ridge of a change of coordinates, in mean squares of the old ones. On a stream of MNIST,
# accuracies are the same to a few tenths of a point with a tenth and a hundredth of it.
_RIDGE = 1e-2
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Coordinates:
    """Coordinates of signals on orthonormal vectors of feature space.

    ``rows`` (n, r) are the coordinates, an array or a source of rows, ``anchors`` (m, n_features)
    rows whose phi span the vectors. ``duals(vectors)`` turns rows of coordinates (p, r) into
    coefficients over phi(anchors), (m, p).
    """

    rows: Any
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


@dataclass(frozen=True)
class Linearization:
    """The map x -> k(x, landmarks) @ coef, and the eigenpairs S_k, V_k behind it."""

    landmarks: Array
    coef: Array
    eigenvalues: Array
    eigenvectors: Array


@dataclass(frozen=True)
class Eigensolver:
    """How eigenpairs are found: "auto", "full" or "randomized", and what the last one takes."""

    name: str
    n_oversamples: int
    n_passes: int


def linearize(
    landmarks: Array,
    landmark_gram: Array,
    n_components: int,
    solver: Eigensolver,
    rng: np.random.RandomState,
) -> Linearization:
    """Return the map of rank at most ``n_components``, in the type of the landmarks.

    Eigenvalues that are negligible in the type of the Gram matrix, or below the noise of kernel
    values in the landmarks' type, are dropped. Of float32 landmarks it is best in float64: its
    rounding is a share of the *largest* eigenvalue.
    """
    eigenvalues, vectors = _leading_eigenpairs(landmark_gram, n_components, solver, rng)
    # Dividing by eigenvalues at rounding level would turn noise into coordinates.
    keep = eigenvalues > len(landmarks) * np.finfo(eigenvalues.dtype).eps * eigenvalues[0]
    if landmarks.dtype == np.float32 and landmark_gram.dtype == np.float64:
        keep &= eigenvalues > _noise_in_float32(landmark_gram)
    if not keep.any():
        raise ValueError("The kernel is zero on all landmarks: there is nothing to linearize.")
    eigenvalues, vectors = eigenvalues[keep], vectors[:, keep]
    # Fix the signs, which an eigensolver leaves open, so that equal inputs give equal maps.
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    vectors = vectors * signs
    coef = np.ascontiguousarray(vectors / np.sqrt(eigenvalues), like=vectors)
    dtype = landmarks.dtype if landmarks.dtype.kind == "f" else landmark_gram.dtype
    return Linearization(
        landmarks, coef.astype(dtype), eigenvalues.astype(dtype), vectors.astype(dtype)
    )


def change_of_coordinates(old: Array, new: Array, landmarks_old: Array, coef_new: Array) -> Array:
    """Return T, with which coordinates F under an old map predict those under a new one: F T.

    Coordinates are inner products with orthonormal vectors u_i of the landmarks' span. For vectors
    of the old span, T is P with P_ij = <u_i, u'_j>. Rows are not in that span, and their remainders
    are often similar: so T is learned from rows, by least squares with a ridge penalty on T - P.

    - ``old``, ``new``: rows under both maps.
    - ``landmarks_old``, ``coef_new``: the new landmarks under the old map; the new coefficients.
    """
    F, G, R, C = (part.astype(np.float64) for part in (old, new, landmarks_old, coef_new))
    projection = R.T @ C
    gram = F.T @ F
    ridge = max(_RIDGE * float(np.trace(gram)) / len(gram), _TINY)
    gram = gram + ridge * np.eye(len(gram), like=gram)
    return projection + solve_positive(gram, F.T @ (G - F @ projection))


def in_float32(made: Linearization, landmark_gram: Array) -> Linearization | None:
    """Return the same map in float32; None if some coordinates would be noise."""
    if not (made.eigenvalues > _noise_in_float32(landmark_gram)).all():
        return None
    return Linearization(*(part.astype(np.float32) for part in vars(made).values()))


def _noise_in_float32(landmark_gram: Array) -> float:
    """Return the eigenvalue up to which coordinates of float32 kernel values are noise."""
    largest = float(np.diagonal(landmark_gram).max())
    return _NOISE * float(np.finfo(np.float32).eps) * largest * len(landmark_gram) ** 0.5


def _leading_eigenpairs(
    W: Array, k: int, solver: Eigensolver, rng: np.random.RandomState
) -> tuple[Array, Array]:
    n, basis = len(W), basis_shape(k, solver.n_oversamples, solver.n_passes)[1]
    randomized = solver.name == "randomized"
    if solver.name == "auto":
        randomized = n >= _RANDOMIZED_FROM and basis <= _LARGEST_SHARE * n
    if randomized and basis < n:
        eigenvalues, vectors, lowest = leading_eigenpairs(
            W, k, rng, n_oversamples=solver.n_oversamples, n_passes=solver.n_passes
        )
    else:
        # Helper threads of BLAS cost more than they give on small matrices, and on a busy machine
        # a hundred times more.
        with machine(W).one_blas_thread(n < _THREADED_EIGH_FROM):
            eigenvalues, vectors = eigh(W)
        lowest = eigenvalues[0]
        eigenvalues, vectors = eigenvalues[::-1][:k], vectors[:, ::-1][:, :k]
    scale = float(np.abs(eigenvalues).max(initial=0.0))
    if lowest < -np.sqrt(np.finfo(W.dtype).eps) * scale:
        raise ValueError(
            "kernel is not positive semi-definite: on the landmarks its smallest eigenvalue is "
            f"{lowest:.3g} and its largest {scale:.3g}. Choose a kernel that is (linear, poly "
            "with coef0 >= 0, rbf, laplacian, cosine, chi2), or repair the matrix."
        )
    return eigenvalues, vectors


def nystroem_error(K_of: Kernel, X: Array, F: Array) -> float:
    """Return |K - F F'|_F / |K|_F on rows X (eq. (30)), block by block."""
    anchors = as_anchors(X, K_of)
    sums = np.empty((len(X), 2), like=X)

    def worker(start: int, stop: int) -> None:
        K = K_of(X[start:stop], anchors)
        sums[start:stop, 1] = np.einsum("ij,ij->i", K, K, dtype=np.float64)
        K = K - F[start:stop] @ F.T
        sums[start:stop, 0] = np.einsum("ij,ij->i", K, K, dtype=np.float64)

    machine(X).for_blocks(len(X), len(X), X.itemsize, worker)
    missed, total = sums.sum(axis=0)
    return float(np.sqrt(missed / total)) if total > 0 else 0.0


def ridge_preimage(linearization: Linearization) -> Array:
    """Return the matrix A for which F @ A estimates the rows that F came from.

    Ridge regression of the landmarks R on their own virtual samples V S^(1/2), whose columns are
    orthogonal: A = diag(s^(1/2) / (s + alpha)) V'R, with the alpha of ``best_ridge``.
    """
    s, V, R = linearization.eigenvalues, linearization.eigenvectors, linearization.landmarks
    s = s.astype(np.float64)
    projected = V.astype(np.float64).T @ R
    energies = np.vecdot(projected, projected)
    outside = max(float(np.vdot(R, R)) - float(energies.sum()), 0.0)
    alpha = best_ridge(s, energies, outside, len(R))
    return ((np.sqrt(s) / (s + alpha))[:, None] * projected).astype(R.dtype)


def check_training_kernel(K: Array) -> None:
    """Refuse a precomputed training matrix that is not k(train, train)."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            "With kernel='precomputed', fit takes the square matrix k(train, train), got shape "
            f"{K.shape}; transform takes k(new, train), shape (n_new, n_train)."
        )
    check_gram(K, "the precomputed kernel")
