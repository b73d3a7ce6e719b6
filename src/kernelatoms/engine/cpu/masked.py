"""Greedy pursuits on the observed entries of signals: masked OMP and OLS.

Every signal sees its own part of the dictionary, D_O, so there is no Gram matrix that all could
share. A block of signals takes its steps together instead, with the residuals r (0 where nothing
is observed) and orthonormal directions q of every signal at hand:

    a = D r,   b = argmax |a_j| / |d_j,O|,   q = d_b,O less its part in earlier q,   r -= <q, r> q

The first, the only work over all atoms, is one matrix product for the block. OLS divides by what
the earlier directions leave of the atoms instead, h -= (D q)^2: one more product.

An atom may be as good as zero on what is observed of a signal. At unit norm there its rounding
would look like any other atom, so |d_j,O| must stand out against the rounding of the whole |d_j|.

See docs/decisions/031-missing-values-in-signals.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.products import check_shape
from kernelatoms.engine.cpu.scale import in_safe_range, rescale_rows, scale_back, squared_norms
from kernelatoms.engine.cpu.threads import each_block, fair_share

Array = NDArray[Any]

# As in ``omp``: below this many machine epsilons of its scale a number is rounding; the share of a
# signal's energy that rounding may change.
_ROUNDING = 100.0
_MOST_DOUBT = 1e-6
# With estimated correlations, those of every so many steps are computed.
_EXACT_EVERY = 8


@jit()
def _only_candidates(energy, candidates):
    """Set the energies of atoms that are no candidates to 0, which is never picked."""
    allowed = np.zeros(energy.shape[1], np.bool_)
    for s in range(energy.shape[0]):
        allowed[:] = False
        for i in range(candidates.shape[1]):
            if candidates[s, i] >= 0:
                allowed[candidates[s, i]] = True
        for j in range(energy.shape[1]):
            if not allowed[j]:
                energy[s, j] = 0.0


@jit()
def _forget_unseen(energy, norms2, floor):
    """Set the energies of atoms that are rounding on the observed entries to 0."""
    for s in range(energy.shape[0]):
        for j in range(energy.shape[1]):
            if energy[s, j] <= floor * norms2[j]:
                energy[s, j] = 0.0


@jit(fastmath=True)
def _invert_norms(energy, weights):
    """Write 1 / sqrt(energy), 0 where there is none."""
    one = weights.dtype.type(1)
    for s in range(energy.shape[0]):
        for j in range(energy.shape[1]):
            here = energy[s, j]
            weights[s, j] = one / np.sqrt(here) if here > 0.0 else 0.0


@jit(fastmath=True)
def _shrink(energy, start, along, rounding64):
    """Take what a new direction spans off the atoms' energies: h -= v^2; all but rounding: 0."""
    rounding = energy.dtype.type(rounding64)
    for s in range(energy.shape[0]):
        for j in range(energy.shape[1]):
            left = energy[s, j] - along[s, j] * along[s, j]
            energy[s, j] = left if left > rounding * start[s, j] else 0.0


@jit()
def _split_known(signals, filled, known):
    """Write signals with 0 for NaN, and 1 where a value is known, 0 elsewhere."""
    for s in range(signals.shape[0]):
        for i in range(signals.shape[1]):
            x = signals[s, i]
            missing = np.isnan(x)
            filled[s, i] = 0 if missing else x
            known[s, i] = 0 if missing else 1


@jit(fastmath=True)
def _estimate_step(last, factors, lengths, picked, weights, seen, cosines, share, along, corr):
    """Take the last step off correlations: angles on the observed entries are those on all.

    The direction of the step is sum_i share_i d_i,O over the atoms picked so far; ``seen`` are the
    |d_j,O|^2 and ``weights`` the 1 / |d_j,O|, both 0 for atoms that are not to be picked.
    """
    for j in range(last, -1, -1):
        total = corr.dtype.type(1 if j == last else 0)
        for i in range(j + 1, last + 1):
            total -= share[i] * factors[i, j]
        share[j] = total / factors[j, j]
    along[:] = 0
    for i in range(last + 1):
        cosine = cosines[picked[i]]
        part = lengths[last] * share[i] / weights[picked[i]]
        for j in range(corr.shape[0]):
            along[j] += part * cosine[j]
    for j in range(corr.shape[0]):
        corr[j] -= along[j] * seen[j] * weights[j]  # |d_j,O| = seen_j / |d_j,O|


@jit(fastmath=True)
def _take_best(
    step, atoms, known, corr, weights, cosines, whole, until, limits, spanned, least_share,
    residual, directions, factors, lengths, picked, counts, least, left, unsettled,
):  # fmt: skip
    """Give every signal that is not done one more atom; return how many may take another.

    A signal is done if it has fewer than ``step`` atoms, or all that it may use. It is unsettled if
    it could have taken one, but for atoms that the picked ones span but for rounding. With
    ``cosines``, ``corr`` is of the residual before the last step, and is brought up to date here.
    """
    n_going = 0
    n_atoms, n_features = atoms.shape
    share = np.empty(factors.shape[1], residual.dtype)
    along = np.empty(n_atoms, residual.dtype)
    for s in range(residual.shape[0]):
        if counts[s] < step or counts[s] >= limits[s] or left[s] <= until[s]:
            continue
        if len(cosines) > 0:
            _estimate_step(
                step - 1, factors[s], lengths[s], picked[s], weights[s], whole[s], cosines, share,
                along, corr[s],
            )  # fmt: skip
        best, b = residual.dtype.type(0), -1
        for j in range(n_atoms):
            here = abs(corr[s, j]) * weights[s, j]
            if here > best:
                best, b = here, j
        # A correlation at rounding level means that the residual is zero, or orthogonal to all.
        if b < 0 or best <= least[s]:
            for j in range(n_atoms):
                floor = least[s] * least[s] * whole[s, j]
                if whole[s, j] > 0.0 and corr[s, j] * corr[s, j] > floor:
                    unsettled[s] = True
            continue
        q, r = directions[step, s], residual[s]
        norm2 = residual.dtype.type(0)
        for i in range(n_features):
            q[i] = atoms[b, i] * known[s, i]
        for i in range(n_features):
            norm2 += q[i] * q[i]
        for j in range(step):
            earlier = directions[j, s]
            c = residual.dtype.type(0)
            for i in range(n_features):
                c += earlier[i] * q[i]
            for i in range(n_features):
                q[i] -= c * earlier[i]
            factors[s, step, j] = c
        remaining = residual.dtype.type(0)
        for i in range(n_features):
            remaining += q[i] * q[i]
        if not remaining > spanned * norm2:
            unsettled[s] = True
            continue
        length = np.sqrt(remaining)
        z = residual.dtype.type(0)
        for i in range(n_features):
            q[i] /= length
        for i in range(n_features):
            z += q[i] * r[i]
        energy = 0.0
        for i in range(n_features):
            r[i] -= z * q[i]
        for i in range(n_features):
            energy += r[i] * r[i]
        factors[s, step, step] = length
        lengths[s, step] = z
        picked[s, step] = b
        counts[s] += 1
        left[s] = energy
        if step == 0:
            least[s] = least_share * abs(z)
        n_going += 1
    return n_going


@jit()
def _write_codes(factors, lengths, picked, counts, indices, values):
    """Solve L'w = z by back substitution and write the code by ascending atom."""
    for s in range(indices.shape[0]):
        for j in range(indices.shape[1]):
            indices[s, j] = -1
            values[s, j] = 0.0
        k = counts[s]
        for j in range(k - 1, -1, -1):
            z = lengths[s, j]
            for i in range(j + 1, k):
                z -= factors[s, i, j] * lengths[s, i]
            lengths[s, j] = z / factors[s, j, j]
        for j in range(k):
            at = j
            while at > 0 and indices[s, at - 1] > picked[s, j]:
                indices[s, at] = indices[s, at - 1]
                values[s, at] = values[s, at - 1]
                at -= 1
            indices[s, at] = picked[s, j]
            values[s, at] = lengths[s, j]


def _pursue_observed(
    atoms: NDArray[Any],
    columns: NDArray[Any],
    squares: NDArray[Any],
    norms2: NDArray[np.float64],
    signals: NDArray[Any],
    known: NDArray[Any],
    candidates: NDArray[np.int32],
    leave: NDArray[np.float64],
    limits: NDArray[np.int64],
    cosines: NDArray[Any],
    use_ols: bool,
    exact: bool,
    indices: NDArray[np.int32],
    values: NDArray[Any],
    left: NDArray[np.float64],
    unsettled: NDArray[np.bool_],
) -> None:
    """Code a block as ``omp_observed`` does; ``signals``, 0 where unknown, become residuals.

    - ``squares`` (n_features, n_atoms), ``norms2`` (n_atoms,): those of ``columns``, and their
      sums.
    - ``known`` (n_signals, n_features): 1 where a value is observed, 0 elsewhere, as floats.
    - ``leave`` (n_signals,): stop when the squared residual is no more; below 0: on sparsity alone.
    - ``limits`` (n_signals,): the most atoms each signal may use.
    - ``cosines`` (n_atoms, n_atoms): those of all angles between atoms, to estimate correlations
      from; no rows: all are computed.
    - ``indices``, ``values``, ``left``, ``unsettled``: results.
    """
    n_signals, n_nonzero = indices.shape
    dtype = signals.dtype
    rounding = _ROUNDING * float(np.finfo(np.float32 if exact else dtype).eps)
    spanned = rounding**2 if exact else rounding
    energy = known @ squares
    _forget_unseen(energy, norms2, rounding**2)
    if candidates.shape[1] > 0:
        _only_candidates(energy, candidates)
    whole = energy.copy() if use_ols else energy
    weights = np.empty_like(energy)
    _invert_norms(energy, weights)
    corr = np.empty_like(energy)
    directions = np.zeros((n_nonzero, *signals.shape), dtype)
    factors = np.zeros((n_signals, n_nonzero, n_nonzero), dtype)
    lengths = np.zeros((n_signals, n_nonzero), dtype)
    picked = np.zeros((n_signals, n_nonzero), np.int32)
    counts = np.zeros(n_signals, np.int64)
    least = np.zeros(n_signals)
    no_cosines = cosines[:0]
    unsettled[...] = False
    left[...] = np.einsum("ij,ij->i", signals, signals, dtype=np.float64)
    whole_energy = left.copy()
    for step in range(n_nonzero):
        if use_ols and step > 0:
            np.matmul(directions[step - 1], columns, out=corr)
            _shrink(energy, whole, corr, spanned)
            _invert_norms(energy, weights)
        estimated = len(cosines) > 0 and step % _EXACT_EVERY != 0
        if not estimated:
            np.matmul(signals, columns, out=corr)
        n_going = _take_best(
            step, atoms, known, corr, weights, cosines if estimated else no_cosines, whole, leave,
            limits, spanned, rounding,
            signals, directions, factors, lengths, picked, counts, least, left, unsettled,
        )  # fmt: skip
        if n_going == 0:
            break
    _write_codes(factors, lengths, picked, counts, indices, values)
    # Long codes, of directions that are nearly spanned, show the rounding of these.
    sizes2 = (values.astype(np.float64) ** 2 * norms2[indices]).sum(axis=1)
    unsettled |= float(np.finfo(dtype).eps) * sizes2 > _MOST_DOUBT * whole_energy


def _cosines(gram: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the cosines of the angles between atoms, 0 for atoms that are 0."""
    norms = np.sqrt(np.diagonal(gram))
    inverse = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
    return ((gram * inverse) * inverse[:, None]).astype(dtype)


def omp_observed(
    signals: NDArray[Any],
    atoms: NDArray[Any],
    columns: NDArray[Any],
    n_nonzero: int,
    *,
    candidates: NDArray[np.int32],
    stop_at: NDArray[np.float64] | None = None,
    relative: bool = True,
    limits: NDArray[np.int64] | None = None,
    use_ols: bool = False,
    gram: NDArray[Any] | None = None,
    exact: bool = False,
) -> tuple[Array, Array, Array, Array, Array]:
    """Code all signals by their observed entries, block by block on all threads.

    - ``signals`` (n_signals, n_features): NaN where nothing is observed.
    - ``atoms``, ``columns``: the dictionary (n_atoms, n_features) and its transpose.
    - ``n_nonzero``: the most atoms a signal may use.
    - ``candidates`` (n_signals, n_candidates): the atoms each signal may use, -1 where a list is
      shorter; no columns: all atoms.
    - ``stop_at`` (n_signals,): stop at this residual norm, of the signal's own if ``relative``.
    - ``limits`` (n_signals,): the most atoms that each signal may use, if fewer.
    - ``use_ols``: select by residual decrease (OLS) instead of correlation (OMP).
    - ``gram`` (n_atoms, n_atoms): inner products of atoms; if given, OMP computes the correlations
      of every eighth step alone and estimates the others from it, which is faster.
    - ``exact``: signals and atoms, in float64, are numbers of float32: codes are to be good in
      float32.
    - result: ``indices``, ``values`` (n_signals, n_nonzero), atoms ascending, then -1, and their
      coefficients; ``left``, ``energy`` (n_signals,), squared residuals and squared norms of the
      observed entries; ``unsettled`` (n_signals,), whether rounding ended the pursuit.
    """
    n_signals, dtype = len(signals), signals.dtype
    if n_nonzero < 1:
        raise ValueError(f"n_nonzero must be at least 1, got {n_nonzero}.")
    check_shape(atoms, "atoms", (len(atoms), signals.shape[1]))
    check_shape(columns, "transposed atoms", atoms.shape[::-1])
    check_shape(candidates, "candidates", (n_signals, candidates.shape[1]))
    if candidates.size and not -1 <= candidates.min() <= candidates.max() < len(atoms):
        raise ValueError(f"The candidates must be atoms 0..{len(atoms) - 1}, or -1.")
    if stop_at is not None:
        check_shape(stop_at, "stop_at", (n_signals,))
    atoms, columns = np.ascontiguousarray(atoms, dtype), np.ascontiguousarray(columns, dtype)
    with np.errstate(over="ignore"):
        squares = np.square(columns)
    norms2 = squares.sum(axis=0, dtype=np.float64)
    longest = float(norms2.max(initial=0))
    far = not in_safe_range(np.asarray(longest), dtype)
    if limits is None:
        limits = np.full(n_signals, n_nonzero)
    if gram is None or use_ols:
        cosines = np.empty((0, len(atoms)), dtype)
    else:
        check_shape(gram, "Gram matrix", (len(atoms), len(atoms)))
        cosines = _cosines(gram, dtype)
    indices = np.empty((n_signals, n_nonzero), np.int32)
    values = np.empty((n_signals, n_nonzero), dtype)
    left, energy = np.empty(n_signals), np.empty(n_signals)
    unsettled = np.empty(n_signals, np.bool_)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        residual, known = np.empty_like(signals[part]), np.empty_like(signals[part])
        _split_known(signals[part], residual, known)
        energy[part] = squared_norms(residual)
        if not np.isfinite(energy[part]).all():
            raise ValueError("X holds signals whose squared norm overflows float64; scale X down.")
        leave = np.full(stop - start, -1.0)
        if stop_at is not None:
            with np.errstate(over="ignore"):
                leave = np.square(stop_at[part]) * (energy[part] if relative else 1.0)
        outside = ~in_safe_range(energy[part], dtype) | far
        residual, exponents = rescale_rows(residual, outside, dtype)
        if exponents is not None:
            with np.errstate(over="ignore", under="ignore"):
                leave = np.ldexp(leave, -2 * exponents)
        _pursue_observed(
            atoms, columns, squares, norms2, residual, known, candidates[part],
            leave, limits[part], cosines, use_ols, exact, indices[part], values[part], left[part],
            unsettled[part],
        )  # fmt: skip
        scale_back(exponents, longest, energy[part], values[part], left[part])

    # A few MiB at once, and enough rows for the products.
    n_features = signals.shape[1]
    numbers = n_nonzero * (n_nonzero + n_features) + 4 * len(atoms) + 3 * n_features
    block = max(16, min((8 << 20) // (numbers * dtype.itemsize), 512))
    each_block(n_signals, min(block, fair_share(n_signals)), lambda: work)
    return indices, values, left, energy, unsettled
