"""Greedy pursuits on inner products, signal by signal: OMP, OLS and their non-negative forms.

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
Non-negative pursuits pick among a_i > 0. Where the step leaves all coefficients positive it is
the non-negative least-squares code too; only where it does not, a small active-set problem is
solved, atoms leave, and directions and correlations are computed afresh.

**Rounding.** Where code and step have the size T, the norm of their entries times the atoms' norms,
energies cannot be trusted beyond eps T^2: every error above is bounded by about that. Steps for
which it is visible are checked by the quadratic form of the code, and a step for which it is not
small ends the pursuit. So does an atom that the picked ones span, but for rounding. Signals whose
pursuit ended so are ``unsettled``: with more digits it might go on.

Signals are kernel-blind here: G and a may come from any inner product. ``rows[ids[j]]`` is the
row of G of the j-th atom of a code: all of G, or the rows in memory.

See docs/decisions/020-greedy-steps.md.
"""

import numpy as np

from kernelatoms.engine.cpu.jit import jit

# Columns worked on at once: the piece of ``a`` stays in the first-level cache over its updates.
_TILE = 2048

# From this share of a signal's energy on that rounding may change, a step is checked.
CHECKED_DOUBT = 1e-6

# No limit: every step explains more than the one before.
_ALL_STEPS = np.iinfo(np.int64).max

# What a pursuit remembers between two steps beside the code, and how many numbers that are.
_EXPLAINED, _VANISHING, _NOISE, _Z = 0, 1, 2, 3
MEMORY = 4


@jit(fastmath=True)
def _subtract_rows(out, start, stop, rows, ids, coefs, n):
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
def _largest_bits(bits, start, stop, mask):
    """Return the largest magnitude between two columns, as an integer: that vectorises."""
    largest = bits.dtype.type(0)
    for i in range(start, stop):
        largest = bits.dtype.type(max(largest, bits.dtype.type(bits[i] & mask)))
    return largest


@jit(fastmath=True)
def _first_with_bits(bits, start, stop, mask, wanted):
    """Return the lowest column that holds this magnitude (ties go to the lowest index)."""
    nowhere = np.int32(stop)
    position = nowhere
    for i in range(start, stop):
        here = np.int32(i) if bits.dtype.type(bits[i] & mask) == wanted else nowhere
        position = np.int32(min(position, here))
    return np.uintp(position)


@jit()
def _add_direction(directions, k, rows, ids, column, norm2, rounding, cross):
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
def _step_ols(
    a, h, norms2, rounding, start, stop, rows, ids, directions, k, z, gain, best, positive
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
    if positive:
        _only_positive(a, gain, start, stop)


@jit(fastmath=True)
def _only_positive(a, gain, start, stop):
    """Take the gains of atoms away that could only be used with a negative coefficient."""
    nothing = gain.dtype.type(0)
    for i in range(start, stop):
        gain[i] = gain[i] if a[i] > nothing else nothing


@jit(fastmath=True)
def _best_ratio(a, h, gain, bits, mask, start, stop, best, b, positive):
    """Return the largest a_i^2 / h_i and its column: ``best`` and ``b``, or better in this tile.

    Dinkelbach's method: i beats the ratio r if its gain a_i^2 - r h_i is positive, and the
    largest gain gives the next r. A few passes of multiply-adds replace a division per atom. A
    ratio must be beaten by more than rounding: rounding in the gain of a long atom, 0 but for
    that, is more than the whole gain of a short one. ``best`` is what to beat.
    """
    beaten = a.dtype.type(1.0 + 4.0 * np.finfo(a.dtype).eps)
    while True:
        largest = _largest_bits(bits, start, stop, mask)
        if largest <= 0:
            return best, b
        candidate = _first_with_bits(bits, start, stop, mask, largest)
        ratio = a[candidate] * a[candidate] / h[candidate]
        if not ratio > best:  # the picked atoms span it, or it is as good but for rounding
            gain[candidate] = 0
            continue
        best = ratio * beaten
        b = np.int64(candidate)
        for i in range(start, stop):
            gain[i] = a[i] * a[i] - best * h[i]
        if positive:
            _only_positive(a, gain, start, stop)


@jit(fastmath=True)
def _pick_omp(a, bits, mask, rows, ids, step, k):
    """Bring the correlations up to date, a -= G[:, I] step, and return the largest one's column.

    ``mask`` takes the sign off, or leaves it: negative numbers are then below zero as integers
    too. -1 if there is none.
    """
    width = a.shape[0]
    best, best_start = bits.dtype.type(0), -1
    for first in range(0, width, _TILE):
        start, stop = np.uintp(first), np.uintp(min(first + _TILE, width))
        if k > 0:
            _subtract_rows(a, start, stop, rows, ids, step, k)
        largest = _largest_bits(bits, start, stop, mask)
        if largest > best:
            best, best_start = largest, first
    if best_start < 0:
        return -1
    stop = np.uintp(min(best_start + _TILE, width))
    return np.int64(_first_with_bits(bits, np.uintp(best_start), stop, mask, best))


@jit(fastmath=True)
def _pick_ols(a, h, norms2, rounding, rows, ids, directions, k, z, gain, gain_bits, positive):
    """Bring correlations and remaining norms up to date; return the column of largest a^2 / h."""
    width = a.shape[0]
    all_bits = gain_bits.dtype.type(-1)
    ratio, b = a.dtype.type(0), -1
    for first in range(0, width, _TILE):
        start, stop = np.uintp(first), np.uintp(min(first + _TILE, width))
        _step_ols(
            a, h, norms2, rounding, start, stop, rows, ids, directions, k, z, gain, ratio, positive
        )  # fmt: skip
        ratio, b = _best_ratio(
            a, h, gain, gain_bits, all_bits, start, stop, ratio, b, positive
        )  # fmt: skip
    return b


@jit()
def _checked(
    corr, norms2, rows, ids, picked, code, step, k, gained, size2, eps, largest_doubt, memory,
    new_code,
):  # fmt: skip
    """Return what code + step truly explains, 2 b'w - w'G w added up in float64; -1 if no help.

    Entries above the diagonal only, so that the new atom's row is not needed.
    """
    if eps * size2 > largest_doubt * (memory[_EXPLAINED] + gained):
        return -1.0
    total = 0.0
    for j in range(k + 1):
        column = picked[j]
        new_code[j] = code[j] + step[j]
        inner = 2.0 * corr[column] - new_code[j] * norms2[column]
        for i in range(j):
            inner -= 2.0 * new_code[i] * rows[ids[i], column]
        total += new_code[j] * inner
    return total if total - memory[_EXPLAINED] > 0.5 * gained else -1.0


@jit()
def _solve_on(small, target, passive, n, factor, out):
    """Solve small[P, P] out[P] = target[P] by Cholesky for the passive set P; False if singular."""
    for j in range(n):
        out[j] = 0.0
        if not passive[j]:
            continue
        rest = target[j]
        for i in range(j):
            if passive[i]:
                c = small[j, i]
                for h in range(i):
                    if passive[h]:
                        c -= factor[j, h] * factor[i, h]
                factor[j, i] = c / factor[i, i]
                rest -= factor[j, i] * out[i]
        pivot = small[j, j]
        for i in range(j):
            if passive[i]:
                pivot -= factor[j, i] * factor[j, i]
        if not pivot > 1e-15 * small[j, j]:
            return False
        factor[j, j] = np.sqrt(pivot)
        out[j] = rest / factor[j, j]
    for j in range(n - 1, -1, -1):
        if passive[j]:
            rest = out[j]
            for i in range(j + 1, n):
                if passive[i]:
                    rest -= factor[i, j] * out[i]
            out[j] = rest / factor[j, j]
    return True


@jit()
def _shrink_to_feasible(small, target, passive, n, factor, wanted, w):
    """Go from w towards the least-squares code on P; atoms that reach zero leave P.

    The inner loop of Lawson and Hanson. True with w the least-squares code on what is left of P.
    """
    while _solve_on(small, target, passive, n, factor, wanted):
        share, leaves = 1.0, -1
        for j in range(n):
            if passive[j] and wanted[j] <= 0.0:
                here = w[j] / (w[j] - wanted[j]) if w[j] > 0.0 else 0.0
                if leaves < 0 or here < share:
                    share, leaves = here, j
        if leaves < 0:
            for j in range(n):
                w[j] = wanted[j]
            return True
        for j in range(n):
            if passive[j]:
                w[j] += share * (wanted[j] - w[j])
                if j == leaves or w[j] <= 0.0:
                    w[j] = 0.0
                    passive[j] = False
    return False


@jit()
def _nonnegative_least_squares(small, target, vanishing, n, w, passive):
    """Minimise w'S w - 2 t'w over w >= 0 from a feasible w; False where S is singular.

    Lawson and Hanson 1974, ch. 23. At first all n atoms are in the passive set.
    """
    factor = np.zeros((n, n))
    wanted = np.zeros(n)
    for j in range(n):
        passive[j] = True
    # Each round lowers the objective, so that no set comes back but for rounding.
    for _ in range(3 * n):
        if not _shrink_to_feasible(small, target, passive, n, factor, wanted, w):
            return False
        steepest, back = vanishing, -1
        for j in range(n):
            if not passive[j]:
                slope = target[j]
                for i in range(n):
                    slope -= small[j, i] * w[i]
                if slope > 0.0 and slope * slope > steepest * small[j, j]:
                    steepest, back = slope * slope / small[j, j], j
        if back < 0:
            return True
        passive[back] = True
    return True


@jit(fastmath=True)
def _start_afresh(
    corr,
    norms2,
    rounding,
    rows,
    ids,
    picked,
    a,
    h,
    gain,
    directions,
    step,
    code,
    k,
    memory,
    use_ols,
):
    """Set what a step needs to the state after a code over k atoms, its last update pending."""
    for i in range(corr.shape[0]):
        a[i] = corr[i]
    if not use_ols:
        for j in range(k):
            step[j] = code[j]
        return
    for i in range(h.shape[0]):
        h[i] = norms2[i]
    for j in range(k):
        memory[_Z] = 0.0
        for i in range(j + 1):
            memory[_Z] += directions[j, i] * corr[picked[i]]
        if j + 1 < k:
            _step_ols(
                a, h, norms2, rounding, np.uintp(0), np.uintp(a.shape[0]), rows, ids, directions,
                j + 1, a.dtype.type(memory[_Z]), gain, a.dtype.type(0), False,
            )  # fmt: skip


@jit()
def _take_nonnegative_step(
    corr, norms2, rounding, eps, largest_doubt, rows, ids, picked, a, h, gain, directions, cross,
    step, code, k, memory, use_ols,
):  # fmt: skip
    """Settle a step that would make coefficients negative; return the atoms left, -1 if none helps.

    ``picked[k]`` is the new atom; codes and supports change only where the residual shrinks.
    """
    n = k + 1
    small, target, w = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    for j in range(n):
        column = picked[j]
        target[j] = corr[column]
        small[j, j] = norms2[column]
        for i in range(j):
            small[i, j] = small[j, i] = rows[ids[i], column]
        w[j] = code[j] if j < k else 0.0
    passive = np.zeros(n, np.bool_)
    if not _nonnegative_least_squares(small, target, memory[_VANISHING], n, w, passive):
        return -1
    explained, size2 = 0.0, 0.0
    for j in range(n):
        inner = 2.0 * target[j]
        for i in range(n):
            inner -= small[j, i] * w[i]
        explained += w[j] * inner
        size2 += w[j] * w[j] * small[j, j]
    if not explained > memory[_EXPLAINED] * (1.0 + eps) or eps * size2 > largest_doubt * explained:
        return -1
    left = 0
    left_ids = np.empty(n, ids.dtype)
    for j in range(n):
        if passive[j]:
            left_ids[left] = ids[j]
            if not _add_direction(
                directions, left, rows, left_ids, picked[j], norms2[picked[j]], rounding, cross
            ):
                return -1
            left += 1
    left = 0
    for j in range(n):
        if passive[j]:
            picked[left], ids[left], code[left] = picked[j], ids[j], w[j]
            left += 1
    memory[_EXPLAINED] = explained
    _start_afresh(
        corr, norms2, rounding, rows, ids, picked, a, h, gain, directions, step, code, left, memory,
        use_ols,
    )  # fmt: skip
    return left


@jit()
def _write_sorted(names, picked, code, k, indices, values):
    """Write a code by ascending atom (what sparse matrices want), padded with -1 and 0."""
    for j in range(indices.shape[0]):
        indices[j] = -1
        values[j] = 0.0
    for j in range(k):
        atom = names[picked[j]]
        at = j
        while at > 0 and indices[at - 1] > atom:
            indices[at] = indices[at - 1]
            values[at] = values[at - 1]
            at -= 1
        indices[at] = atom
        values[at] = code[j]


@jit()
def _any_above(a, norms2, vanishing, positive):
    """Tell whether some atom by itself would explain more than is rounding."""
    for i in range(a.shape[0]):
        if a[i] * a[i] > vanishing * norms2[i] and (a[i] > 0.0 or not positive):
            return True
    return False


@jit(fastmath=True)
def _pursue(
    first, last, max_steps, names, rows, norms2, corr, until, mask, rounding64, vanishing, eps,
    largest_doubt, use_ols, positive, ids, picked, a, bits, h, gain, gain_bits, directions, cross,
    step, code, memory, counts, indices, values, explained, unsettled,
):  # fmt: skip
    """Code signals first..last, at most ``max_steps`` steps further; True if the last may go on.

    ``a`` are the correlations with the residual, up to the update that ``step`` (OMP) or the last
    direction and z (OLS) describe; with all from ``ids`` to ``memory`` it is scratch of the signal
    at work, from which a signal that has atoms goes on. All steps are in this one function, since
    one call per step would count references to every array: a third of the time at 300 atoms.
    """
    n_nonzero = code.shape[0]
    rounding = a.dtype.type(rounding64)
    going = False
    for s in range(first, last):
        k = counts[s]
        if k == 0:
            for i in range(np.uintp(corr.shape[1])):
                a[i] = corr[s, i]
            memory[:] = 0.0
            unsettled[s] = False
        n_steps = 0
        going = k < n_nonzero and memory[_EXPLAINED] < until[s]
        while going and n_steps < max_steps:
            n_steps += 1
            going = False
            if use_ols:
                b = _pick_ols(
                    a, h, norms2, rounding, rows, ids, directions, k, a.dtype.type(memory[_Z]),
                    gain, gain_bits, positive,
                )  # fmt: skip
            else:
                b = _pick_omp(a, bits, mask, rows, ids, step, k)
            # What the best atom explains is rounding: the residual is zero, or orthogonal to every
            # atom; a picked atom has no other kind, so it ends the pursuit here too.
            # OLS does not look at atoms that the picked ones span, but for rounding; OMP not at
            # short ones, if rounding in the correlations of long ones is more than theirs.
            if b < 0 or a[b] * a[b] <= memory[_VANISHING] * (h[b] if use_ols else norms2[b]):
                unsettled[s] = _any_above(a, norms2, memory[_VANISHING], positive)
                break
            # Of atoms that they nearly span, OLS may pick one by rounding alone.
            if use_ols and a[b] * a[b] <= memory[_NOISE] * norms2[b]:
                unsettled[s] = True
                break
            already = False
            for j in range(k):
                already = already or picked[j] == b
            if already or not _add_direction(
                directions, k, rows, ids, b, norms2[b], rounding, cross
            ):
                unsettled[s] = True
                break
            picked[k] = b
            ids[k] = b
            z = a[b] * directions[k, k]
            gained = z * z
            if k == 0:
                memory[_VANISHING] = vanishing * gained
                memory[_NOISE] = rounding64 * rounding64 * gained
            code[k] = 0.0
            size2, lowest = 0.0, z
            for j in range(k + 1):
                step[j] = z * directions[k, j]
            for j in range(k + 1):
                size = abs(code[j]) + abs(step[j])
                size2 += size * size * norms2[picked[j]]
                lowest = min(lowest, code[j] + step[j])
            if positive and lowest <= 0.0:
                now = _take_nonnegative_step(
                    corr[s], norms2, rounding, eps, largest_doubt, rows, ids, picked, a, h, gain,
                    directions, cross, step, code, k, memory, use_ols,
                )  # fmt: skip
                if now < 0:
                    unsettled[s] = True
                    break
                k = now
            else:
                total = memory[_EXPLAINED] + gained
                if eps * size2 > CHECKED_DOUBT * total:
                    total = _checked(
                        corr[s], norms2, rows, ids, picked, code, step, k, gained, size2, eps,
                        largest_doubt, memory, cross,
                    )  # fmt: skip
                    if total < 0.0:
                        unsettled[s] = True
                        break
                for j in range(k + 1):
                    code[j] += step[j]
                memory[_EXPLAINED] = total
                memory[_Z] = z
                k += 1
            going = k < n_nonzero and memory[_EXPLAINED] < until[s]
        counts[s] = k
        explained[s] = memory[_EXPLAINED]
        _write_sorted(names, picked, code, k, indices[s], values[s])
    return going


@jit(fastmath=True)
def code_block(
    names, gram, norms2, corr, until, masks, rounding64, vanishing, eps, largest_doubt, use_ols,
    positive, indices, values, explained, unsettled,
):  # fmt: skip
    """Code a block of signals over one Gram matrix.

    - ``names`` (n_atoms,): what to call each atom in the results.
    - ``gram`` (n_atoms, width), ``norms2`` (width,): inner products of the atoms, rows padded with
      zeros, and their diagonal, padded likewise.
    - ``corr`` (n_signals, n_atoms): inner products of signals and atoms.
    - ``until`` (n_signals,): stop when this much energy is explained; ``inf``: on sparsity alone.
    - ``masks`` (1,), integers as wide as the numbers: the bits by which correlations are compared:
      all for non-negative codes, else no sign.
    - ``rounding64``, ``vanishing``: what is rounding: of what is left of an atom, as a share of its
      squared norm; of what an atom would explain, as a share of what the first one does.
    - ``eps``: T^2 times this is what rounding may change of a signal's energy.
    - ``largest_doubt``: the share of its energy from which on a step is not taken.
    - ``use_ols``, ``positive``: select by residual decrease; non-negative codes.

    Results are written: ``indices``, ``values`` (n_signals, n_nonzero), atoms ascending, then -1,
    and coefficients; ``explained`` (n_signals,), |x|^2 less the squared residual; ``unsettled``
    (n_signals,), whether rounding ended the pursuit.
    """
    n_nonzero, width = min(indices.shape[1], gram.shape[0]), gram.shape[1]
    dtype = gram.dtype
    a = np.zeros(width, dtype)
    h = np.zeros(width if use_ols else 0, dtype)
    gain = np.zeros(width if use_ols else 0, dtype)
    # Not set to zero: memory that is not touched costs nothing where many nonzeros are allowed.
    directions = np.empty((n_nonzero, n_nonzero), dtype)
    cross, step = np.empty(n_nonzero, dtype), np.empty(n_nonzero, dtype)
    code = np.empty(n_nonzero, dtype)
    picked, ids = np.empty(n_nonzero, np.uintp), np.empty(n_nonzero, np.uintp)
    _pursue(
        0, corr.shape[0], _ALL_STEPS, names, gram, norms2, corr, until, masks[0],
        rounding64, vanishing, eps, largest_doubt, use_ols, positive, ids, picked, a,
        a.view(masks.dtype), h, gain, gain.view(masks.dtype), directions, cross, step, code,
        np.zeros(MEMORY), np.zeros(corr.shape[0], np.intp), indices, values, explained, unsettled,
    )  # fmt: skip


@jit(fastmath=True)
def code_block_local(
    grams, width, candidates, corr, until, masks, rounding64, vanishing, eps, largest_doubt,
    use_ols, positive, indices, values, explained, unsettled,
):  # fmt: skip
    """Code a block of signals, each over its own candidates alone.

    As ``code_block``, but for grams (n_signals, n_candidates, n_candidates), their padded
    ``width``, candidates and corr (n_signals, n_candidates). A candidate of -1 is none, and never
    picked, since its inner products are zeros.
    """
    n_local = candidates.shape[1]
    n_nonzero = min(indices.shape[1], n_local)
    dtype = grams.dtype
    gram = np.zeros((n_local, width), dtype)
    norms2, own = np.zeros(width, dtype), np.zeros((1, n_local), dtype)
    a = np.zeros(width, dtype)
    bits = a.view(masks.dtype)
    h = np.zeros(width if use_ols else 0, dtype)
    gain = np.zeros(width if use_ols else 0, dtype)
    gain_bits = gain.view(masks.dtype)
    directions = np.empty((n_nonzero, n_nonzero), dtype)
    cross, step = np.empty(n_nonzero, dtype), np.empty(n_nonzero, dtype)
    code = np.empty(n_nonzero, dtype)
    picked, ids = np.empty(n_nonzero, np.uintp), np.empty(n_nonzero, np.uintp)
    memory, counts = np.zeros(MEMORY), np.zeros(1, np.intp)
    for s in range(corr.shape[0]):
        for i in range(n_local):
            gram[i, :n_local] = grams[s, i]
            norms2[i] = gram[i, i]
            own[0, i] = corr[s, i]
        counts[0] = 0
        here = slice(s, s + 1)
        _pursue(
            0, 1, _ALL_STEPS, candidates[s], gram, norms2, own, until[here], masks[0],
            rounding64, vanishing, eps, largest_doubt, use_ols, positive, ids, picked, a, bits, h,
            gain, gain_bits, directions, cross, step, code, memory, counts, indices[here],
            values[here], explained[here], unsettled[here],
        )  # fmt: skip


@jit(fastmath=True)
def step_block(
    names, rows, norms2, corr, until, masks, rounding64, vanishing, eps, largest_doubt, use_ols,
    positive, going, counts, picked, ids, code, directions, a, h, step, memory, indices, values,
    explained, unsettled,
):  # fmt: skip
    """Take one step of every signal that is still ``going``, with the Gram rows in memory.

    As ``code_block``, but for ``rows``, of which ``ids[s, j]`` is the one of atom ``picked[s, j]``
    (the caller fetches the rows of new atoms between two steps), and for what the pursuit of each
    signal keeps from step to step: ``going`` (True at first) to ``memory`` (0 counts at first),
    one row per signal.
    """
    n_nonzero = code.shape[1]
    gain = np.zeros(h.shape[1], rows.dtype)
    gain_bits = gain.view(masks.dtype)
    cross = np.empty(n_nonzero, rows.dtype)
    for s in range(corr.shape[0]):
        if going[s]:
            going[s] = _pursue(
                s, s + 1, 1, names, rows, norms2, corr, until, masks[0], rounding64, vanishing, eps,
                largest_doubt, use_ols, positive, ids[s], picked[s], a[s], a[s].view(masks.dtype),
                h[s], gain, gain_bits, directions[s], cross, step[s], code[s], memory[s], counts,
                indices, values, explained, unsettled,
            )  # fmt: skip
