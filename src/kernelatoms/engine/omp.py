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

from kernelatoms.engine.jit import jit

# Rows of Gram and correlations are padded with zeros to a multiple of this many columns, so that
# vector loops have no scalar remainder (worth 2x at 300 atoms).
LANES = 64

# Columns worked on at once: the piece of ``a`` stays in the first-level cache over its updates.
_TILE = 2048

# Stands for the remaining norm of an atom that the picked ones span: it never has the best ratio.
_SPANNED = 1e30

# A correlation, or what is left of an atom, below this many machine epsilons of its scale is
# rounding, not signal. Ill-conditioned supports amplify one epsilon to some tens.
_ROUNDING = 100.0


def padded(n_columns: int) -> int:
    """Return ``n_columns`` rounded up to whole vector lanes."""
    return -(-n_columns // LANES) * LANES


@jit(fastmath=True)
def _subtract_rows(out, start, rows, ids, coefs, n):  # type: ignore[no-untyped-def]
    """Subtract sum_j coefs[j] * rows[ids[j], start:start + len(out)], eight rows at a time."""
    stop = start + out.shape[0]
    j = 0
    while j + 8 <= n:
        r0, c0 = rows[ids[j], start:stop], coefs[j]
        r1, c1 = rows[ids[j + 1], start:stop], coefs[j + 1]
        r2, c2 = rows[ids[j + 2], start:stop], coefs[j + 2]
        r3, c3 = rows[ids[j + 3], start:stop], coefs[j + 3]
        r4, c4 = rows[ids[j + 4], start:stop], coefs[j + 4]
        r5, c5 = rows[ids[j + 5], start:stop], coefs[j + 5]
        r6, c6 = rows[ids[j + 6], start:stop], coefs[j + 6]
        r7, c7 = rows[ids[j + 7], start:stop], coefs[j + 7]
        for i in range(out.shape[0]):
            first = c0 * r0[i] + c1 * r1[i] + c2 * r2[i] + c3 * r3[i]
            out[i] -= first + (c4 * r4[i] + c5 * r5[i] + c6 * r6[i] + c7 * r7[i])
        j += 8
    if j + 4 <= n:
        r0, c0 = rows[ids[j], start:stop], coefs[j]
        r1, c1 = rows[ids[j + 1], start:stop], coefs[j + 1]
        r2, c2 = rows[ids[j + 2], start:stop], coefs[j + 2]
        r3, c3 = rows[ids[j + 3], start:stop], coefs[j + 3]
        for i in range(out.shape[0]):
            out[i] -= c0 * r0[i] + c1 * r1[i] + c2 * r2[i] + c3 * r3[i]
        j += 4
    if j + 2 <= n:
        r0, c0 = rows[ids[j], start:stop], coefs[j]
        r1, c1 = rows[ids[j + 1], start:stop], coefs[j + 1]
        for i in range(out.shape[0]):
            out[i] -= c0 * r0[i] + c1 * r1[i]
        j += 2
    if j < n:
        r0, c0 = rows[ids[j], start:stop], coefs[j]
        for i in range(out.shape[0]):
            out[i] -= c0 * r0[i]


@jit(fastmath=True)
def _largest_bits(bits, mask):  # type: ignore[no-untyped-def]
    """Return the largest magnitude, as an integer.

    Floats without their sign bit order like their bit patterns, and an integer maximum
    vectorises where a float maximum would need the promise that no NaN occurs.
    """
    largest = bits.dtype.type(0)
    for i in range(bits.shape[0]):
        largest = bits.dtype.type(max(largest, bits.dtype.type(bits[i] & mask)))
    return largest


@jit(fastmath=True)
def _first_with_bits(bits, mask, wanted):  # type: ignore[no-untyped-def]
    """Return the lowest position that holds this magnitude (ties go to the lowest index)."""
    nowhere = np.int32(bits.shape[0])
    position = nowhere
    for i in range(bits.shape[0]):
        here = np.int32(i) if bits.dtype.type(bits[i] & mask) == wanted else nowhere
        position = np.int32(min(position, here))
    return position


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
def _step_ols(a, h, norms2, rounding, start, rows, ids, direction, k, z, gain, best):  # type: ignore[no-untyped-def]
    """One tile of an OLS step: a -= z v, h -= v^2 with v = G[:, I] m; then the tile's gains."""
    spanned = h.dtype.type(_SPANNED)
    v = gain
    if k > 0:
        r, c = rows[ids[k - 1], start : start + v.shape[0]], direction[k - 1]
        for i in range(v.shape[0]):
            v[i] = -c * r[i]
        _subtract_rows(v, start, rows, ids, direction, k - 1)  # v is now -G[:, I] m
        # Each value is loaded once: reading a stored element back costs 3x here.
        for i in range(v.shape[0]):
            new_a = a[i] + z * v[i]
            left = h[i] - v[i] * v[i]
            new_h = left if left > rounding * norms2[i] else spanned
            a[i] = new_a
            h[i] = new_h
            gain[i] = new_a * new_a - best * new_h
    else:
        for i in range(v.shape[0]):
            h[i] = norms2[i]
            gain[i] = a[i] * a[i] - best * norms2[i]


@jit(fastmath=True)
def _best_ratio(a, h, gain, bits, mask, best):  # type: ignore[no-untyped-def]
    """Return the tile's largest a_i^2 / h_i above ``best`` and its position, or -1.

    Dinkelbach's method: i beats the ratio r if its gain a_i^2 - r h_i is positive, and the
    largest gain gives the next r. A few passes of multiply-adds replace a division per atom.
    """
    position = -1
    while True:
        largest = _largest_bits(bits, mask)
        if largest <= 0:
            return best, position
        candidate = _first_with_bits(bits, mask, largest)
        ratio = a[candidate] * a[candidate] / h[candidate]
        if not ratio > best:
            return best, position
        best = ratio
        position = candidate
        for i in range(gain.shape[0]):
            gain[i] = a[i] * a[i] - best * h[i]


@jit(fastmath=True)
def _pursue(  # type: ignore[no-untyped-def]
    gram, corr, corr_bits, candidates, explain_until, use_ols, sign_off, rounding64,
    indices, values, explained,
):  # fmt: skip
    n_nonzero = indices.shape[1]
    n_local = candidates.shape[1]
    dtype = corr.dtype
    width = -(-n_local // LANES) * LANES if n_local > 0 else corr.shape[1]
    local_corr = np.zeros(width if n_local > 0 else 0, dtype)
    local_rows = np.zeros((n_nonzero if n_local > 0 else 0, width), dtype)
    norms2 = np.zeros(width, dtype)
    remaining = np.zeros(width if use_ols else 0, dtype)
    tile = np.zeros(_TILE, dtype)
    tile_bits = tile.view(corr_bits.dtype)
    all_bits = corr_bits.dtype.type(-1)
    directions = np.zeros((n_nonzero, n_nonzero), dtype)
    cross = np.zeros(n_nonzero, dtype)
    step = np.zeros(n_nonzero, dtype)
    code = np.zeros(n_nonzero, dtype)
    picked = np.zeros(n_nonzero, np.int64)
    positions = np.arange(n_nonzero)
    rounding = dtype.type(rounding64)
    if n_local == 0:
        for i in range(gram.shape[0]):
            norms2[i] = gram[i, i]

    for s in range(corr.shape[0]):
        if n_local > 0:
            for i in range(n_local):
                atom = candidates[s, i]
                local_corr[i] = corr[s, atom] if atom >= 0 else 0.0
                norms2[i] = gram[atom, atom] if atom >= 0 else 0.0
            a, rows, ids = local_corr, local_rows, positions
        else:
            a, rows, ids = corr[s], gram, picked
        bits = a.view(corr_bits.dtype)

        k = 0
        energy = 0.0
        vanishing = 0.0
        z = dtype.type(0)
        while k < n_nonzero and energy < explain_until[s]:
            b = -1
            best_ratio = dtype.type(0)
            best_bits = bits.dtype.type(0)
            best_start = -1
            for start in range(0, width, _TILE):
                stop = min(start + _TILE, width)
                if use_ols:
                    h, gain = remaining[start:stop], tile[: stop - start]
                    _step_ols(
                        a[start:stop], h, norms2[start:stop], rounding, start, rows, ids,
                        directions[k - 1], k, z, gain, best_ratio,
                    )  # fmt: skip
                    best_ratio, position = _best_ratio(
                        a[start:stop], h, gain, tile_bits[: stop - start], all_bits, best_ratio
                    )
                    if position >= 0:
                        b = start + position
                else:
                    if k > 0:
                        _subtract_rows(a[start:stop], start, rows, ids, step, k)
                    largest = _largest_bits(bits[start:stop], sign_off)
                    if largest > best_bits:
                        best_bits, best_start = largest, start
            if best_start >= 0:
                stop = min(best_start + _TILE, width)
                b = best_start + _first_with_bits(bits[best_start:stop], sign_off, best_bits)
            if b < 0:
                break

            # A correlation at rounding level means that the residual is zero, or orthogonal to
            # every atom; a picked atom has no other kind, so it ends the pursuit here too.
            if a[b] * a[b] <= vanishing * norms2[b]:
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
                vanishing = rounding64 * rounding64 * z * z
            code[k] = 0.0
            for j in range(k + 1):
                step[j] = z * directions[k, j]
                code[j] += step[j]
            k += 1

        explained[s] = energy
        for j in range(n_nonzero):
            indices[s, j] = -1
            values[s, j] = 0.0
        for j in range(k):
            indices[s, j] = candidates[s, picked[j]] if n_local > 0 else picked[j]
            values[s, j] = code[j]


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
        Results: atoms in the order picked (-1 where none), their coefficients, and |x|^2 less
        the squared residual.
    """
    bits = np.int32 if corr.dtype == np.float32 else np.int64
    _pursue(
        gram, corr, corr.view(bits), candidates, explain_until, use_ols,
        bits(np.iinfo(bits).max), _ROUNDING * float(np.finfo(corr.dtype).eps),
        indices, values, explained,
    )  # fmt: skip
