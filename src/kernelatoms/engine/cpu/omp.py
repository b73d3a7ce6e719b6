"""Greedy pursuits on Gram and correlations: OMP and OLS for many signals over one dictionary.

For every signal, pick atoms one at a time and keep the code the least-squares one on the atoms
picked so far. With ``a`` the correlations of all atoms with the residual and G the Gram matrix,
a step that adds atom b to the support I computes

    c = M G[I, b],   t = G[b, b] - c'c,   m = [-M'c, 1] / sqrt(t),   z = a[b] / sqrt(t)

where the rows of M = L^-1 are the new orthonormal directions written in picked atoms
(G[I, I] = L L'). Then the code grows by z m, the explained energy by z^2, and

    a -= G[:, I] (z m)

is the only work over all atoms: rows of G that stay in cache for the whole signal. The last pick
needs none, so k nonzeros cost k (k - 1) / 2 row operations, less than the GEMM that made ``a``.

OMP picks the largest |a_i|; OLS (orthogonal least squares, what SPAMS calls omp) the largest
a_i^2 / h_i, the true decrease of the residual, with h_i = |d_i|^2 less what is already spanned.
Signals are kernel-blind here: G and a may come from any inner product.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit

# Rows of Gram and correlations are padded with zeros to a multiple of this many columns, so that
# vector loops have no scalar remainder (worth 2x at 300 atoms).
LANES = 64

# Columns worked on at once: the piece of ``a`` stays in the first-level cache over its updates.
_TILE = 2048

# A correlation, or what is left of an atom, below this many machine epsilons of its scale is
# rounding, not signal. Ill-conditioned supports amplify one epsilon to some tens.
_ROUNDING = 100.0


def padded(n_columns: int) -> int:
    """Return ``n_columns`` rounded up to whole vector lanes."""
    return -(-n_columns // LANES) * LANES


@jit(fastmath=True)
def _subtract_rows(out, start, stop, rows, ids, coefs, n):  # type: ignore[no-untyped-def]
    """Subtract sum_j coefs[j] * rows[ids[j]] from out, columns start..stop, eight rows at a time.

    Columns and ids are unsigned: numba then knows that no index counts from the end, and LLVM
    vectorises the loops.
    """
    j = 0
    while j + 8 <= n:
        i0, c0 = ids[j], coefs[j]
        i1, c1 = ids[j + 1], coefs[j + 1]
        i2, c2 = ids[j + 2], coefs[j + 2]
        i3, c3 = ids[j + 3], coefs[j + 3]
        i4, c4 = ids[j + 4], coefs[j + 4]
        i5, c5 = ids[j + 5], coefs[j + 5]
        i6, c6 = ids[j + 6], coefs[j + 6]
        i7, c7 = ids[j + 7], coefs[j + 7]
        for i in range(start, stop):
            first = c0 * rows[i0, i] + c1 * rows[i1, i] + c2 * rows[i2, i] + c3 * rows[i3, i]
            out[i] -= first + (
                c4 * rows[i4, i] + c5 * rows[i5, i] + c6 * rows[i6, i] + c7 * rows[i7, i]
            )
        j += 8
    if j + 4 <= n:
        i0, c0 = ids[j], coefs[j]
        i1, c1 = ids[j + 1], coefs[j + 1]
        i2, c2 = ids[j + 2], coefs[j + 2]
        i3, c3 = ids[j + 3], coefs[j + 3]
        for i in range(start, stop):
            out[i] -= c0 * rows[i0, i] + c1 * rows[i1, i] + c2 * rows[i2, i] + c3 * rows[i3, i]
        j += 4
    if j + 2 <= n:
        i0, c0 = ids[j], coefs[j]
        i1, c1 = ids[j + 1], coefs[j + 1]
        for i in range(start, stop):
            out[i] -= c0 * rows[i0, i] + c1 * rows[i1, i]
        j += 2
    if j < n:
        i0, c0 = ids[j], coefs[j]
        for i in range(start, stop):
            out[i] -= c0 * rows[i0, i]


@jit(fastmath=True)
def _largest_bits(bits, start, stop, mask):  # type: ignore[no-untyped-def]
    """Return the largest magnitude between two columns, as an integer.

    Floats without their sign bit order like their bit patterns, and an integer maximum
    vectorises where a float maximum would need the promise that no NaN occurs.
    """
    largest = bits.dtype.type(0)
    for i in range(start, stop):
        largest = bits.dtype.type(max(largest, bits.dtype.type(bits[i] & mask)))
    return largest


@jit(fastmath=True)
def _first_with_bits(bits, start, stop, mask, wanted):  # type: ignore[no-untyped-def]
    """Return the lowest column that holds this magnitude (ties go to the lowest index)."""
    nowhere = np.int32(stop)
    position = nowhere
    for i in range(start, stop):
        here = np.int32(i) if bits.dtype.type(bits[i] & mask) == wanted else nowhere
        position = np.int32(min(position, here))
    return np.uintp(position)


@jit()
def _add_direction(directions, k, rows, ids, column, norm2, rounding, cross):  # type: ignore[no-untyped-def]
    """Write row k of M for the atom in ``column``; False if the picked atoms span it already."""
    remaining = norm2
    for j in range(k):
        c = directions[j, 0] * rows[ids[0], column]
        for i in range(1, j + 1):
            c += directions[j, i] * rows[ids[i], column]
        cross[j] = c
        remaining -= c * c
    if not remaining > rounding * norm2:
        return False
    scale = 1.0 / np.sqrt(remaining)
    for i in range(k):
        c = directions[i, i] * cross[i]
        for j in range(i + 1, k):
            c += directions[j, i] * cross[j]
        directions[k, i] = -c * scale
    directions[k, k] = scale
    return True


@jit(fastmath=True)
def _step_ols(  # type: ignore[no-untyped-def]
    a, h, norms2, rounding, start, stop, rows, ids, directions, k, z, gain, best
):
    """One tile of an OLS step: a -= z v, h -= v^2 with v = G[:, I] m; then the tile's gains."""
    # An atom that the picked ones span must never have the best ratio.
    spanned = h.dtype.type(np.finfo(h.dtype).max)
    v = gain
    if k > 0:
        last = np.uintp(k - 1)
        r, c = ids[last], directions[last, last]
        for i in range(start, stop):
            v[i] = -c * rows[r, i]
        _subtract_rows(v, start, stop, rows, ids, directions[last], k - 1)
        # Each value is loaded once: reading a stored element back costs 3x here.
        for i in range(start, stop):
            new_a = a[i] + z * v[i]
            left = h[i] - v[i] * v[i]
            new_h = left if left > rounding * norms2[i] else spanned
            a[i] = new_a
            h[i] = new_h
            gain[i] = new_a * new_a - best * new_h
    else:
        for i in range(start, stop):
            h[i] = norms2[i]
            gain[i] = a[i] * a[i] - best * norms2[i]


@jit(fastmath=True)
def _best_ratio(a, h, gain, bits, mask, start, stop, best, b):  # type: ignore[no-untyped-def]
    """Return the largest a_i^2 / h_i and its column: ``best`` and ``b``, or better in this tile.

    Dinkelbach's method: i beats the ratio r if its gain a_i^2 - r h_i is positive, and the
    largest gain gives the next r. A few passes of multiply-adds replace a division per atom.
    """
    while True:
        largest = _largest_bits(bits, start, stop, mask)
        if largest <= 0:
            return best, b
        candidate = _first_with_bits(bits, start, stop, mask, largest)
        ratio = a[candidate] * a[candidate] / h[candidate]
        if not ratio > best:
            return best, b
        best = ratio
        b = np.int64(candidate)
        for i in range(start, stop):
            gain[i] = a[i] * a[i] - best * h[i]


@jit(fastmath=True)
def _pick_omp(a, bits, sign_off, rows, ids, step, k):  # type: ignore[no-untyped-def]
    """Bring the correlations up to date, a -= G[:, I] step, and return the largest one's column.

    -1 if all are zero.
    """
    width = a.shape[0]
    best, best_start = bits.dtype.type(0), -1
    for first in range(0, width, _TILE):
        start, stop = np.uintp(first), np.uintp(min(first + _TILE, width))
        if k > 0:
            _subtract_rows(a, start, stop, rows, ids, step, k)
        largest = _largest_bits(bits, start, stop, sign_off)
        if largest > best:
            best, best_start = largest, first
    if best_start < 0:
        return -1
    stop = np.uintp(min(best_start + _TILE, width))
    return np.int64(_first_with_bits(bits, np.uintp(best_start), stop, sign_off, best))


@jit(fastmath=True)
def _pick_ols(a, h, norms2, rounding, rows, ids, directions, k, z, gain, gain_bits):  # type: ignore[no-untyped-def]
    """Bring correlations and remaining norms up to date; return the column of largest a^2 / h."""
    width = a.shape[0]
    all_bits = gain_bits.dtype.type(-1)
    ratio, b = a.dtype.type(0), -1
    for first in range(0, width, _TILE):
        start, stop = np.uintp(first), np.uintp(min(first + _TILE, width))
        _step_ols(
            a, h, norms2, rounding, start, stop, rows, ids, directions, k, z, gain, ratio
        )  # fmt: skip
        ratio, b = _best_ratio(a, h, gain, gain_bits, all_bits, start, stop, ratio, b)
    return b


@jit()
def _write_sorted(picked, code, k, candidates, indices, values):  # type: ignore[no-untyped-def]
    """Write a code by ascending atom (what sparse matrices want), padded with -1 and 0."""
    for j in range(indices.shape[0]):
        indices[j] = -1
        values[j] = 0.0
    for j in range(k):
        atom = candidates[picked[j]] if candidates.shape[0] > 0 else np.int32(picked[j])
        at = j
        while at > 0 and indices[at - 1] > atom:
            indices[at] = indices[at - 1]
            values[at] = values[at - 1]
            at -= 1
        indices[at] = atom
        values[at] = code[j]


@jit(fastmath=True)
def _pursue(  # type: ignore[no-untyped-def]
    gram, corr, corr_bits, candidates, explain_until, use_ols, sign_off, rounding64,
    indices, values, explained,
):  # fmt: skip
    n_nonzero = indices.shape[1]
    n_local = candidates.shape[1]
    dtype = corr.dtype
    rounding = dtype.type(rounding64)
    width = -(-n_local // LANES) * LANES if n_local > 0 else corr.shape[1]
    # Atoms of one signal: all, or its candidates, whose rows of G are gathered as they are picked.
    local_corr = np.zeros(width if n_local > 0 else 0, dtype)
    local_rows = np.zeros((n_nonzero if n_local > 0 else 0, width), dtype)
    local_ids = np.arange(n_nonzero).astype(np.uintp)
    norms2 = np.zeros(width, dtype)
    if n_local == 0:
        for i in range(gram.shape[0]):
            norms2[i] = gram[i, i]
    remaining = np.zeros(width if use_ols else 0, dtype)
    gain = np.zeros(width if use_ols else 0, dtype)
    gain_bits = gain.view(corr_bits.dtype)
    directions = np.zeros((n_nonzero, n_nonzero), dtype)
    cross = np.zeros(n_nonzero, dtype)
    step = np.zeros(n_nonzero, dtype)
    code = np.zeros(n_nonzero, dtype)
    picked = np.zeros(n_nonzero, np.uintp)

    for s in range(corr.shape[0]):
        if n_local > 0:
            for i in range(n_local):
                atom = candidates[s, i]
                local_corr[i] = corr[s, atom] if atom >= 0 else 0.0
                norms2[i] = gram[atom, atom] if atom >= 0 else 0.0
            a, rows, ids = local_corr, local_rows, local_ids
        else:
            a, rows, ids = corr[s], gram, picked
        bits = a.view(corr_bits.dtype)

        k = 0
        energy = 0.0
        vanishing = 0.0
        z = dtype.type(0)
        while k < n_nonzero and energy < explain_until[s]:
            if use_ols:
                b = _pick_ols(
                    a, remaining, norms2, rounding, rows, ids, directions, k, z, gain, gain_bits
                )
            else:
                b = _pick_omp(a, bits, sign_off, rows, ids, step, k)
            # A correlation at rounding level means that the residual is zero, or orthogonal to
            # every atom; a picked atom has no other kind, so it ends the pursuit here too.
            if b < 0 or float(a[b]) * float(a[b]) <= vanishing * norms2[b]:
                break
            already = False
            for j in range(k):
                already = already or picked[j] == b
            if already or not _add_direction(
                directions, k, rows, ids, b, norms2[b], rounding, cross
            ):
                break
            picked[k] = b
            if n_local > 0:
                for i in range(n_local):
                    atom = candidates[s, i]
                    local_rows[k, i] = gram[candidates[s, b], atom] if atom >= 0 else 0.0
            z = a[b] * directions[k, k]
            energy += float(z) * float(z)
            if k == 0:
                vanishing = rounding64 * rounding64 * float(z) * float(z)
            code[k] = 0.0
            for j in range(k + 1):
                step[j] = z * directions[k, j]
                code[j] += step[j]
            k += 1

        explained[s] = energy
        _write_sorted(picked, code, k, candidates[s], indices[s], values[s])


def pursue(
    gram: NDArray[Any],
    corr: NDArray[Any],
    candidates: NDArray[np.int32],
    explain_until: NDArray[np.float64],
    use_ols: bool,
    indices: NDArray[np.int32],
    values: NDArray[Any],
    explained: NDArray[np.float64],
) -> None:
    """Code a block of signals; ``corr`` is used up.

    Parameters
    ----------
    gram : (n_atoms, width)
        Inner products of the atoms, columns padded with zeros to ``padded(n_atoms)``.
    corr : (n_signals, width)
        Inner products of signals and atoms, padded likewise; overwritten.
    candidates : (n_signals, n_candidates)
        The atoms each signal may use, -1 where a list is shorter; no columns: all atoms.
    explain_until : (n_signals,)
        Stop when this much energy is explained; ``inf`` to stop on sparsity alone.
    use_ols : bool
        Select by residual decrease (OLS) instead of correlation (OMP).
    indices, values, explained
        Results: atoms in ascending order (then -1), their coefficients, and |x|^2 less the
        squared residual.
    """
    bits = np.int32 if corr.dtype == np.float32 else np.int64
    _pursue(
        gram, corr, corr.view(bits), candidates, explain_until, use_ols,
        bits(np.iinfo(bits).max), _ROUNDING * float(np.finfo(corr.dtype).eps),
        indices, values, explained,
    )  # fmt: skip
