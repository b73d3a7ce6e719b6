"""Pre-images and decoding: rows x whose phi(x) is nearest to given vectors of feature space.

    min_x |phi(x) - v|^2,   v = sum_i c_i phi(a_i)

The vectors are atoms of a kernel dictionary (``preimage_rows``), or combinations of explicit atoms
by sparse codes (``decode_rows``, eq. (19) of the FKSC paper). Both use

- the closed form, for kernels that have one (linear, cosine);
- fixed-point steps from several starts, for kernels with an ``inversion``, never worse than these;
- otherwise the best of three guesses: ridge regression, the nearest anchor, the weighted mean.

Codes use few atoms, and the best row of a Gaussian or polynomial kernel lies in their affine hull
or span. So short codes are decoded in coordinates of their own atoms.

See docs/decisions/018-pre-images.md.
"""

from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.engine import Array, machine
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.memory import check_dense_fits, check_gram_fits
from kernelatoms.features.preimage_methods import (
    Vectors,
    distance_rows,
    fixed_point_rows,
    fixed_point_starts,
    ridge_rows,
)
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.gradients import GaussianInversion, Inversion, mix, weighted_mean
from kernelatoms.similarity.user_kernels import PrecomputedKernel

# Anchors that the fixed-point iteration starts from, beside their weighted mean.
_N_STARTS = 3
# No row is near v if the best one has a cosine below this; infinitely far away it is 0.
_NO_WAY = 1e-6
# Decoding iterates to the end. Near its optimum the objective is flat: an error of 1e-6 in
# |phi(x) - v|^2 would still be one of 1e-3 bandwidths in x. Only rounding is smaller than this.
_MOST_STEPS, _TOLERANCE = 500, 1e-14


def preimage_rows(
    kernel: Kernel,
    anchors: Array,
    coef: Array,
    *,
    method: str,
    n_neighbors: int,
    max_iter: int,
    tol: float,
    dtype: Any,
) -> tuple[Array, Array]:
    """Return rows for vectors over shared anchors, and the error that they reach.

    - ``kernel``: positive semi-definite.
    - ``anchors`` (n, n_features), ``coef`` (n, m): the vectors, float64.
    - ``n_neighbors``: how many anchors "distance" compares with.
    - ``max_iter``, ``tol``: the most steps from every start, and the decrease that ends them.
    - result: (m, n_features), and |phi(x) - v|^2 / |v|^2 (m,), which for v = 0 is 0 or infinite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        own = kernel.diag(anchors)
        inner = Expansion(kernel, anchors, coef).project(anchors)
    lengths = np.sqrt(np.maximum(own, 0))
    vectors = Vectors.measured(anchors, coef, inner, lengths)
    least = -np.sqrt(np.finfo(np.float64).eps) * (np.abs(coef) * lengths[:, None]).sum(axis=0) ** 2
    if (vectors.energy < least).any() or (own < 0).any():
        raise ValueError(
            "kernel is not positive semi-definite: some vectors of its feature space have a "
            "negative squared norm."
        )
    rows = np.zeros((coef.shape[1], anchors.shape[1]))
    there = vectors.nonzero
    if there.any():
        some = Vectors(
            anchors, coef[:, there], inner[:, there], lengths, vectors.energy[there], there[there]
        )
        rows[there] = _rows_by(method, kernel, some, n_neighbors, max_iter, tol)
    rows = rows.astype(dtype)
    energy = np.where(there, vectors.energy, 0.0)
    own, missed = _distances(kernel, rows.astype(np.float64), anchors, coef, energy)
    nowhere = np.where(own > 0, np.inf, 0)
    error = np.where(there, np.maximum(missed, 0) / np.where(there, energy, 1), nowhere)
    return rows, error.astype(dtype)


def decode_rows(kernel: Kernel, atoms: Array, codes: Any) -> Array:
    """Return the rows that codes represent: eq. (19), one minimisation per signal.

    - Linear: ``codes @ atoms``. Cosine: the same over atoms of unit norm, exact but for the length.
    - RBF and polynomial (of a whole degree from 1, coef0 from 0): a local minimum, never worse than
      the signal's best atoms and their weighted mean. Under RBF there may be no minimum (if all
      weights are negative, say); the best start is then returned.
    - Other kernels: the best of ridge regression, the nearest atom and the weighted mean.

    Codes (n_signals, n_atoms), which may be sparse, are weights of phi(atoms). Those that are zero
    or cancel give zeros.
    """
    if isinstance(kernel, PrecomputedKernel):
        raise ValueError(
            "Decoding needs the atoms as rows, which kernel='precomputed' does not give; name the "
            "kernel or give its function."
        )
    W = _check_codes(codes, len(atoms))
    dtype = np.result_type(atoms, W, np.float32)
    A, W = atoms.astype(np.float64), W.astype(np.float64)
    rows = kernel.exact_preimage(W, A)
    inversion = kernel.inversion(A.shape[1])
    if rows is None and inversion is not None:
        rows = _decode_by_steps(inversion, A, W)
    if rows is None:
        check_gram_fits(len(A), 8)
        check_dense_fits(W.shape[0], W.shape[1], 8)
        coef = W.toarray().T
        lengths = np.sqrt(np.maximum(kernel.diag(A), 0))
        rows = _best_guess(kernel, Vectors.measured(A, coef, kernel(A, A) @ coef, lengths))
        rows[~coef.any(axis=0)] = 0
    return rows.astype(dtype)


def _rows_by(
    method: str, kernel: Kernel, vectors: Vectors, n_neighbors: int, max_iter: int, tol: float
) -> Array:
    """Return rows for vectors over shared anchors, none of them 0."""
    inversion = kernel.inversion(vectors.anchors.shape[1])
    if method == "ridge":
        return _ridge(kernel, vectors)
    if method == "auto":
        exact = kernel.exact_preimage(vectors.coef.T, vectors.anchors)
        if exact is not None:
            return exact
    if inversion is None:
        return _best_guess(kernel, vectors)
    scaled = vectors.for_inversion(inversion)
    if method == "fixed-point":
        return _nearest(inversion, scaled, max_iter, tol)
    near = distance_rows(inversion, scaled, n_neighbors)
    if method == "distance":
        return near
    return _nearest(inversion, scaled, max_iter, tol, near, _ridge(kernel, vectors))


def _nearest(
    inversion: Inversion, vectors: Vectors, max_iter: int, tol: float, *starts: Array
) -> Array:
    """Return the rows where descent ends, from anchors, their weighted mean and further starts."""
    anchors, coef = vectors.anchors, vectors.coef
    first = fixed_point_starts(inversion, vectors, _N_STARTS)
    tried = np.concatenate([first, *(rows[:, None] for rows in starts)], axis=1)
    rows = fixed_point_rows(inversion, vectors, tried, max_iter, tol)
    if isinstance(inversion, GaussianInversion):
        # If the objective falls with the distance, there is no minimum: return the best start.
        error = inversion.step(rows, anchors, coef.T)[0]
        lost = np.flatnonzero(vectors.nonzero & (coef.sum(axis=0) - error / 2 < _NO_WAY))
        own = anchors if anchors.ndim == 2 else anchors[lost]
        places = range(tried.shape[1])
        errors = [inversion.step(tried[lost, s], own, coef.T[lost])[0] for s in places]
        rows[lost] = tried[lost, np.argmin(errors, axis=0)]
    return rows


def _ridge(kernel: Kernel, vectors: Vectors) -> Array:
    return kernel.into_domain(ridge_rows(kernel, vectors.anchors, vectors.inner))


def _best_guess(kernel: Kernel, vectors: Vectors) -> Array:
    """Return the best of three rows for each vector, under a kernel known by its values only."""
    anchors, coef = vectors.anchors, vectors.coef
    nearest = (kernel.diag(anchors)[:, None] - 2 * vectors.inner).argmin(axis=0)
    mean = weighted_mean(anchors, coef.T)
    guesses = [anchors[nearest], kernel.into_domain(mean)]
    with suppress(ValueError):  # not positive semi-definite (sigmoid): nothing to regress from
        guesses.append(_ridge(kernel, vectors))
    errors = [_distances(kernel, rows, anchors, coef, vectors.energy)[1] for rows in guesses]
    return np.stack(guesses)[np.argmin(errors, axis=0), np.arange(len(mean))]


def _distances(
    kernel: Kernel, rows: Array, anchors: Array, coef: Array, energy: Array
) -> tuple[Array, Array]:
    """Return k(x, x) and |phi(x) - v|^2 for every row and its own vector, in blocks."""
    inner = np.empty(len(rows))
    weights = np.ascontiguousarray(coef.T)

    def worker(start: int, stop: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            inner[start:stop] = np.vecdot(kernel(rows[start:stop], anchors), weights[start:stop])

    machine(rows).for_blocks(len(rows), len(anchors), rows.itemsize, worker)
    with np.errstate(over="ignore", invalid="ignore"):  # a kernel may not be defined everywhere
        own = kernel.diag(rows)
        missed = own + energy - 2 * inner
    return own, np.where(np.isnan(missed), np.inf, missed)


def _check_codes(codes: Any, n_atoms: int) -> scipy.sparse.csr_array:
    """Return codes as CSR without stored zeros, a copy."""
    W = scipy.sparse.csr_array(codes, copy=True)
    if W.ndim != 2 or W.shape[1] != n_atoms:
        raise ValueError(
            f"codes must have one column for each of the {n_atoms} atoms, got shape {W.shape}."
        )
    if not np.isfinite(W.data).all():
        raise ValueError("codes contain NaN or infinity.")
    W.sum_duplicates()
    W.eliminate_zeros()
    return W


def _decode_by_steps(inversion: Inversion, A: Array, W: scipy.sparse.csr_array) -> Array:
    """Decode short codes in coordinates of their own atoms, long ones over all atoms."""
    n_atoms, n_features = A.shape
    rows = np.zeros((W.shape[0], n_features))
    used = np.diff(W.indptr)
    # Own atoms cost a step of k x k per signal, read from memory; all atoms cost n_atoms x
    # n_features, in a matrix product of many signals, which is several times as fast per number.
    is_long = 8 * used * np.minimum(used, n_features) > n_atoms * n_features
    long = np.flatnonzero(is_long)
    short = np.flatnonzero(~is_long & (used > 0))
    if len(long):
        rows[long] = _over_all_atoms(inversion, A, W[long].toarray())
    short = short[np.argsort(used[short], kind="stable")]  # alike in length: less padding

    def worker(start: int, stop: int) -> None:
        chosen = short[start:stop]
        rows[chosen] = _over_own_atoms(inversion, A, *_padded(W, chosen))

    widest = int(used[short].max(initial=1)) * n_features
    machine(A).for_blocks(len(short), widest, A.itemsize, worker)
    return rows


def _padded(W: scipy.sparse.csr_array, chosen: Array) -> tuple[NDArray[np.intp], Array]:
    """Return atoms and weights of some codes; short ones repeat their first atom at weight 0."""
    starts = W.indptr[chosen]
    used = W.indptr[chosen + 1] - starts
    places = np.arange(used.max())
    there = places < used[:, None]
    where = starts[:, None] + np.where(there, places, 0)
    return W.indices[where], np.where(there, W.data[where], 0.0)


def _over_all_atoms(inversion: Inversion, A: Array, weights: Array) -> Array:
    # Distances do not depend on the origin; their rounding does.
    moves = isinstance(inversion, GaussianInversion)
    origin = A.mean(axis=0) if moves else np.zeros(A.shape[1])
    rows, there = _decoded(inversion, A - origin, weights)
    return np.where(there[:, None], rows + origin, 0.0)


def _over_own_atoms(
    inversion: Inversion, A: Array, indices: NDArray[np.intp], weights: Array
) -> Array:
    """Decode in coordinates of each signal's own atoms: isometric, so kernels are the same."""
    own = A[indices]
    moves = isinstance(inversion, GaussianInversion)
    origin = own[:, 0] if moves else np.zeros((1, A.shape[1]))
    own = own - origin[:, None]
    if own.shape[1] >= own.shape[2]:
        rows, there = _decoded(inversion, own, weights)
    else:
        basis, coordinates = np.linalg.qr(own.mT)
        rows, there = _decoded(inversion, np.ascontiguousarray(coordinates.mT), weights)
        rows = (basis @ rows[:, :, None])[:, :, 0]
    return np.where(there[:, None], rows + origin, 0.0)


def _decoded(inversion: Inversion, anchors: Array, weights: Array) -> tuple[Array, Array]:
    """Return the rows nearest to sum_j w_j phi(a_j), and where that sum is not 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        K = inversion.gram(anchors)
        lengths = np.sqrt(np.diagonal(K, axis1=-2, axis2=-1))
        inner = mix(weights, K).T
    vectors = Vectors.measured(anchors, weights.T, inner, lengths)
    found = _nearest(inversion, vectors.for_inversion(inversion), _MOST_STEPS, _TOLERANCE)
    return found, vectors.nonzero
