"""Decoding: from sparse codes over explicit atoms back to rows.

For every signal the row y whose phi(y) is nearest to what its code w says,

    min_y |phi(y) - sum_j w_j phi(d_j)|^2                        (eq. (19) of the FKSC paper).

It is the pre-image problem of ``preimage`` with two gifts: a code has few atoms, and the best row
of a Gaussian or polynomial kernel lies in their affine hull or span. So each signal is decoded in
coordinates of its own few atoms, and meets its features once before and once after.
"""

from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.engine.cpu.threads import each_block, n_threads
from kernelatoms.similarity import Kernel, PrecomputedKernel
from kernelatoms.similarity.inversion import (
    GaussianInversion,
    PolynomialInversion,
    mix,
    weighted_mean,
)
from kernelatoms.space.preimage import (
    fixed_point_rows,
    fixed_point_starts,
    inner_with_own,
    ridge_rows,
)

Array = NDArray[Any]

# Atoms that the fixed-point iteration starts from, beside their weighted mean.
_N_STARTS = 3
_MOST_STEPS = 500
# Near its top the objective is flat: an error of 1e-6 in |phi(y) - v|^2 would still be one of 1e-3
# bandwidths in y. Only rounding is smaller than this.
_TOLERANCE = 1e-14
# No row points to v if the best one has a cosine below this: infinitely far away it would be 0.
_NO_WAY = 1e-6
# Rows of atoms gathered at once, in bytes.
_BLOCK = 8 << 20


def decode_rows(kernel: Kernel, atoms: Array, codes: Any) -> Array:
    """Return the rows that codes stand for: eq. (19), one minimisation a signal.

    - Linear: ``codes @ atoms``. Cosine: the same over atoms of unit norm, exact but for the length
      of y, on which the kernel does not depend.
    - RBF and polynomial (of a whole degree from 1, coef0 from 0): fixed-point steps, shortened
      where they would lead uphill, from the signal's best atoms and their weighted mean. A local
      minimum, never worse than these. Where the weights are such that under an RBF kernel the
      farther row is always the better (all negative, say), there is no minimum, and the best start
      is returned.
    - Other kernels: the best of ridge regression (where the kernel is positive semi-definite), the
      nearest atom and the weighted mean of the atoms.

    Parameters
    ----------
    kernel : Kernel
        The kernel; not precomputed.
    atoms : array of shape (n_atoms, n_features)
        The atoms as rows.
    codes : sparse or dense array of shape (n_signals, n_atoms)
        The weights.

    Returns
    -------
    array of shape (n_signals, n_features)
        Zeros for codes that are zero or cancel: no row is nearer to 0 than others (RBF), or that
        one is (polynomials without constant).
    """
    if isinstance(kernel, PrecomputedKernel):
        raise ValueError(
            "Decoding needs the atoms as rows, which kernel='precomputed' does not give; name the "
            "kernel or give its function."
        )
    W = _check_codes(codes, len(atoms))
    dtype = np.result_type(atoms, W, np.float32)
    A, W = atoms.astype(np.float64), W.astype(np.float64)
    form = kernel.inversion(A.shape[1])
    exact = kernel.exact_preimage(W, A)
    if exact is not None:
        rows = exact
    elif form is None:
        rows = _best_guess(kernel, A, W.toarray())
    else:
        rows = _by_fixed_points(form, A, W)
    return rows.astype(dtype)


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


def _by_fixed_points(
    form: GaussianInversion | PolynomialInversion, A: Array, W: scipy.sparse.csr_array
) -> Array:
    """Decode short codes in coordinates of their own atoms, long ones over all atoms."""
    n_atoms, n_features = A.shape
    rows = np.zeros((W.shape[0], n_features))
    used = np.diff(W.indptr)
    # Own atoms cost a step of k x k for each signal, out of memory; all atoms one of n_atoms x
    # n_features, as a matrix product of many signals, which is several times faster a number.
    is_long = 8 * used * np.minimum(used, n_features) > n_atoms * n_features
    long = np.flatnonzero(is_long)
    short = np.flatnonzero(~is_long & (used > 0))
    if len(long):
        rows[long] = _over_all_atoms(form, A, W[long].toarray())
    short = short[np.argsort(used[short], kind="stable")]  # alike in length: less padding
    widest = int(used[short].max(initial=1)) * n_features * 8
    block = max(1, min(_BLOCK // widest, -(-len(short) // n_threads())))

    def worker(start: int, stop: int) -> None:
        chosen = short[start:stop]
        rows[chosen] = _over_own_atoms(form, A, *_padded(W, chosen))

    each_block(len(short), block, lambda: worker)
    return rows


def _padded(W: scipy.sparse.csr_array, chosen: Array) -> tuple[NDArray[np.intp], Array]:
    """Return atoms and weights of some codes; short ones repeat their first atom at weight 0."""
    starts = W.indptr[chosen]
    used = W.indptr[chosen + 1] - starts
    places = np.arange(used.max())
    there = places < used[:, None]
    where = starts[:, None] + np.where(there, places, 0)
    return W.indices[where], np.where(there, W.data[where], 0.0)


def _over_all_atoms(
    form: GaussianInversion | PolynomialInversion, A: Array, weights: Array
) -> Array:
    # Distances do not depend on the origin; their rounding does.
    origin = A.mean(axis=0) if isinstance(form, GaussianInversion) else np.zeros(A.shape[1])
    rows, there = _nearest(form, A - origin, weights)
    return np.where(there[:, None], rows + origin, 0.0)


def _over_own_atoms(
    form: GaussianInversion | PolynomialInversion,
    A: Array,
    indices: NDArray[np.intp],
    weights: Array,
) -> Array:
    """Decode in coordinates of each signal's own atoms: isometric, so kernels are the same."""
    own = A[indices]
    origin = own[:, 0] if isinstance(form, GaussianInversion) else np.zeros((1, A.shape[1]))
    own = own - origin[:, None]
    if own.shape[1] >= own.shape[2]:
        rows, there = _nearest(form, own, weights)
    else:
        basis, coordinates = np.linalg.qr(own.mT)
        rows, there = _nearest(form, np.ascontiguousarray(coordinates.mT), weights)
        rows = (basis @ rows[:, :, None])[:, :, 0]
    return np.where(there[:, None], rows + origin, 0.0)


def _nearest(
    form: GaussianInversion | PolynomialInversion, anchors: Array, weights: Array
) -> tuple[Array, Array]:
    """Return the rows nearest to sum_j w_j phi(a_j), and where that sum is not 0.

    Anchors are shared (n, n_features) or own (m, n, n_features); weights are (m, n).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        K = form.gram(anchors)
        inner = mix(weights, K)
        energy = np.vecdot(weights, inner)
        lengths = np.sqrt(np.diagonal(K, axis1=-2, axis2=-1))
        reach = np.vecdot(np.abs(weights), np.broadcast_to(lengths, weights.shape)) ** 2
    if not (np.isfinite(energy).all() and np.isfinite(reach).all()):
        raise ValueError("The kernel overflows on these atoms and codes; scale them down.")
    # Weights that cancel leave rounding, which is not worth a row.
    there = energy > np.finfo(np.float64).eps * reach
    # Every phi(y) of a Gaussian kernel has norm 1: only the direction of v matters.
    norms = (
        np.sqrt(np.where(there, energy, 1.0)) if isinstance(form, GaussianInversion) else np.ones(1)
    )
    coef, inner = (np.where(there, part.T / norms, 0.0) for part in (weights, inner))
    used = coef != 0 if anchors.ndim == 3 else None  # own anchors are padded, see _padded
    starts = fixed_point_starts(form, anchors, coef, inner, lengths, _N_STARTS, used)
    rows = fixed_point_rows(form, anchors, coef, energy / norms**2, starts, _MOST_STEPS, _TOLERANCE)
    if isinstance(form, GaussianInversion):
        error = form.step(rows, anchors, coef.T)[0]
        lost = np.flatnonzero(there & (coef.sum(axis=0) - error / 2 < _NO_WAY))
        rows[lost] = _best_start(form, anchors, coef.T, starts, lost)
    return rows, there


def _best_start(
    form: GaussianInversion, anchors: Array, coef: Array, starts: Array, which: NDArray[np.intp]
) -> Array:
    own = anchors if anchors.ndim == 2 else anchors[which]
    tried = starts[which]
    errors = [form.step(tried[:, s], own, coef[which])[0] for s in range(tried.shape[1])]
    return tried[np.arange(len(which)), np.argmin(errors, axis=0)]


def _best_guess(kernel: Kernel, A: Array, W: Array) -> Array:
    """Return the best of three rows for each signal, under a kernel known by its values only."""
    inner = kernel(A, A) @ W.T
    guesses = [A[(kernel.diag(A)[:, None] - 2 * inner).argmin(axis=0)], weighted_mean(A, W)]
    with suppress(ValueError):  # not positive semi-definite (sigmoid): nothing to regress from
        guesses.append(ridge_rows(kernel, A, inner))
    if kernel.non_negative:
        guesses = [np.maximum(rows, 0) for rows in guesses]  # no negative values there
    with np.errstate(over="ignore", invalid="ignore"):  # a kernel may not be defined everywhere
        errors = [kernel.diag(rows) - 2 * inner_with_own(kernel, rows, A, W.T) for rows in guesses]
    best = np.argmin(np.where(np.isnan(errors), np.inf, errors), axis=0)
    rows = np.stack(guesses)[best, np.arange(len(W))]
    rows[~W.any(axis=1)] = 0
    return rows
