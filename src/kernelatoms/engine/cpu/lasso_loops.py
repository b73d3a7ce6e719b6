"""l1 coding on Gram and correlations, for many signals over one dictionary.

For every signal, minimise 1/2 |y - D w|^2 + alpha |w|_1 (eq. (6) of the FKSC paper) through the
Gram matrix G = D'D, the correlations b = D'y and the energy |y|^2 alone, so that signals may be
vectors of any feature space. Two solvers, each going on where the other stopped:

- **The active set**, for small supports. Only a working set of atoms is looked at, with its own
  small Gram matrix H. On the active atoms A of it, with signs s and a Cholesky factor of H_AA, the
  minimum is w_A = H_AA^-1 (b_A - alpha s); the way there ends early where a coefficient reaches 0,
  which leaves A. At the minimum, the atom of the working set that violates |c| <= alpha most
  joins A, c = b - G w being the gradient. When none does, c is computed over all atoms, and the
  worst of those join the working set; when none does, that is the solution. (Osborne et al. 2000;
  feature-sign search, Lee et al. 2006.) It starts anywhere, so warm starts and paths are free.
- **Coordinate descent** with c kept up to date, over a shrinking set of atoms: those that the
  duality gap proves to be 0 are dropped (gap-safe screening). For large supports.

Both end with the duality gap of what they return. With r = y - D w and theta = t r, t in [0, 1]
the best with |D'theta| <= alpha, the dual value is t <y, r> - t^2 |r|^2 / 2; <y, r> = |y|^2 - b'w
and |r|^2 = |y|^2 - 2 b'w + w'G w need no vector but w.

See docs/decisions/025-l1-active-sets.md.
"""

import numpy as np

from kernelatoms.engine.cpu.jit import jit

# What an atom of the working set is: at 0, active, or at 0 until the working set has changed.
_FREE, _ACTIVE, _BARRED = 0, 1, 2
# A correlation above alpha by this share of it counts as rounding.
_NO_VIOLATION = 1e-9
# Passes of coordinate descent between two looks at the gap.
_PASSES_A_LOOK = 10
# Passes of it after which it counts as crawling.
_PASSES_BEFORE_LARGE = 300
# Fewest and most atoms that join the working set at a time.
_FEWEST_NEW, _MOST_NEW = 8, 64
# Atoms of the working set that become active together at first; later also a quarter of the active.
_FIRST_AT_ONCE = 4


@jit(fastmath=True)
def _dot(x, y, k):
    v = 0.0
    for i in range(k):
        v += x[i] * y[i]
    return v


@jit(fastmath=True)
def _forward(L, k, x):
    """Solve L z = x in place."""
    for i in range(k):
        v = 0.0
        for j in range(i):
            v += L[i, j] * x[j]
        x[i] = (x[i] - v) * L[i, i]


@jit(fastmath=True)
def _backward(L, k, x):
    """Solve L' z = x in place, row by row of L."""
    for i in range(k - 1, -1, -1):
        v = x[i] * L[i, i]
        x[i] = v
        for j in range(i):
            x[j] -= L[i, j] * v


@jit(fastmath=True)
def _append(L, k, H, active, atom, rounding):
    """Add a row to the factor; False if the active atoms span the new one already.

    The diagonal of L holds reciprocals.
    """
    for i in range(k):
        L[k, i] = H[atom, active[i]]
    _forward(L, k, L[k])
    left = H[atom, atom] - _dot(L[k], L[k], k)
    if not left > rounding * H[atom, atom]:
        return False
    L[k, k] = 1.0 / np.sqrt(left)
    return True


@jit()
def _drop(L, k, at, active, signs, z):
    """Take active atom ``at`` out, and its row out of the factor by rotations, which turn z too."""
    for i in range(at, k - 1):
        active[i], signs[i] = active[i + 1], signs[i + 1]
        for j in range(i + 1):
            L[i, j] = L[i + 1, j]
        L[i, i + 1] = 1.0 / L[i + 1, i + 1]
    for i in range(at, k - 1):
        a, b = L[i, i], L[i, i + 1]
        r = np.hypot(a, b)
        c, s = a / r, b / r
        z[i], z[i + 1] = c * z[i] + s * z[i + 1], c * z[i + 1] - s * z[i]
        L[i, i] = 1.0 / r
        for j in range(i + 1, k - 1):
            x, y = L[j, i], L[j, i + 1]
            L[j, i] = c * x + s * y
            L[j, i + 1] = c * y - s * x


@jit()
def _gap(b, w, c, energy, alpha, support, k, positive):
    """Return the duality gap of w, |r|^2 and t.

    |r|^2 as it comes out: below 0 by rounding, or where G, b and the energy are of no vectors.
    c is the gradient, ``support[:k]`` holds all nonzeros of w.
    """
    bw = 0.0
    wgw = 0.0
    l1 = 0.0
    for i in range(k):
        atom = support[i]
        bw += b[atom] * w[atom]
        wgw += w[atom] * (b[atom] - c[atom])
        l1 += abs(w[atom])
    largest = 0.0
    for j in range(c.shape[0]):
        v = c[j] if positive else abs(c[j])
        largest = max(largest, v)
    as_it_comes = energy - 2 * bw + wgw
    r2 = max(as_it_comes, 0.0)
    yr = energy - bw
    t = 1.0 if largest <= alpha else alpha / largest
    if r2 > 0:
        t = min(t, max(yr / r2, 0.0))
    elif yr < 0.0:
        t = 0.0
    primal = 0.5 * r2 + alpha * l1
    dual = t * yr - 0.5 * t * t * r2
    return primal - dual, as_it_comes, t


@jit(fastmath=True)
def _gradient(gram, b, w, support, k, n, c):
    """Compute c[:n] = b - G w afresh, from the rows of the support: four at a time."""
    c[:n] = b[:n]
    for i in range(0, k - 3, 4):
        row0, row1 = gram[support[i]], gram[support[i + 1]]
        row2, row3 = gram[support[i + 2]], gram[support[i + 3]]
        x0, x1 = w[support[i]], w[support[i + 1]]
        x2, x3 = w[support[i + 2]], w[support[i + 3]]
        for j in range(n):
            c[j] -= x0 * row0[j] + x1 * row1[j] + x2 * row2[j] + x3 * row3[j]
    for i in range(k - k % 4, k):
        row, x = gram[support[i]], w[support[i]]
        for j in range(n):
            c[j] -= x * row[j]


@jit()
def _exchange(H, w, L, k, active, signs, z, d, atom, sign):
    """Move weight onto an atom that the active ones span, until one of those is at 0 and leaves.

    The atom is D_A d with d = H_AA^-1 H_Aj: raising w_j by x and lowering w_A by x d moves no
    residual, and lowers |w|_1, since |c_j| > alpha = |c_A|. Return which left, -1 if none does.
    """
    for i in range(k):
        d[i] = H[atom, active[i]]
    _forward(L, k, d)
    _backward(L, k, d)
    first, at = np.inf, -1
    for i in range(k):
        if sign * d[i] * signs[i] > 0.0:
            x = w[active[i]] / (sign * d[i])
            if x < first:
                first, at = x, i
    if at < 0:
        return -1
    for i in range(k):
        w[active[i]] -= sign * first * d[i]
    w[atom] += sign * first
    left = active[at]
    w[left] = 0.0
    _drop(L, k, at, active, signs, z)
    return left


@jit()
def _enter(L, k, H, b, alpha, active, signs, z, role, atom, sign, rounding):
    """Make an atom active; return the number of active ones, the same if they span it."""
    if not _append(L, k, H, active, atom, rounding):
        return k
    z[k] = (b[atom] - alpha * sign - _dot(L[k], z, k)) * L[k, k]
    active[k], signs[k], role[atom] = atom, sign, _ACTIVE
    return k + 1


@jit()
def _move(w, active, signs, k, z, d, L):
    """Go to the minimum for these signs, or until a coefficient is 0.

    Return the share of the way that was gone, and which coefficient stopped it (-1: none).
    """
    d[:k] = z[:k]
    _backward(L, k, d)
    share, at = 1.0, -1
    for i in range(k):
        if d[i] * signs[i] <= 0.0:
            x = w[active[i]]
            to_zero = x / (x - d[i]) if x != d[i] else 0.0
            if to_zero < share:
                share, at = to_zero, i
    for i in range(k):
        w[active[i]] += share * (d[i] - w[active[i]])
    return share, at


@jit()
def _let_in(
    H, m, b, c, alpha, positive, most, rounding, w, active, signs, k, z, d, L, role, at_once
):
    """Make the atom of the largest violation active, and others that violate nearly as much.

    Return the number of active atoms (-1: too many, or stuck), and how many came, 0 at the minimum.
    """
    worst, atom = _NO_VIOLATION * alpha, -1
    for j in range(m):
        v = (c[j] if positive else abs(c[j])) - alpha
        if v > worst and role[j] == _FREE:
            worst, atom = v, j
    if atom < 0:
        return k, 0
    if k == most:
        return -1, 0
    sign = 1.0 if c[atom] > 0 else -1.0
    before = k
    k = _enter(L, k, H, b, alpha, active, signs, z, role, atom, sign, rounding)
    while role[atom] != _ACTIVE:
        at = _exchange(H, w, L, before, active, signs, z, d, atom, sign)
        if at < 0:
            return -1, 0
        role[at] = _FREE
        before -= 1
        k = _enter(L, before, H, b, alpha, active, signs, z, role, atom, sign, rounding)
    came = 1
    for j in range(m):
        if came >= at_once or k == most:
            break
        v = (c[j] if positive else abs(c[j])) - alpha
        if v > 0.5 * worst and role[j] == _FREE:
            before = k
            sign = 1.0 if c[j] > 0 else -1.0
            k = _enter(L, k, H, b, alpha, active, signs, z, role, j, sign, rounding)
            came += k - before
    return k, came


@jit()
def _enter_all(H, m, b, alpha, most, rounding, w, active, signs, z, L, role):
    """Make all atoms with a coefficient active, but those that others span; -1 if too many."""
    k = 0
    for j in range(m):
        role[j] = _FREE
        if w[j] != 0.0:
            if k == most:
                return -1
            sign = 1.0 if w[j] > 0 else -1.0
            k = _enter(L, k, H, b, alpha, active, signs, z, role, j, sign, rounding)
            if role[j] == _FREE:
                w[j] = 0.0
    return k


@jit()
def _solve_active(H, m, b, alpha, positive, most, rounding, w, c, active, signs, k, z, d, L, role):
    """Minimise over the working set's m atoms from w, whose k nonzeros are active.

    Return the size of the support; -1 if more than ``most`` atoms would be active, or if rounding
    keeps it from the minimum.
    """
    at_once, came = _FIRST_AT_ONCE, 0
    for _ in range(20 * m + 50):
        share, at = _move(w, active, signs, k, z, d, L)
        if at >= 0:
            w[active[at]] = 0.0
            role[active[at]] = _FREE
            if share == 0.0:
                # It was let in and leaves at once: too many came together. One that came alone
                # does so by rounding, and stays out until the working set has changed.
                role[active[at]] = _BARRED if came == 1 else _FREE
                at_once = 1
            _drop(L, k, at, active, signs, z)
            k -= 1
            continue
        _gradient(H, b, w, active, k, m, c)
        k, came = _let_in(
            H, m, b, c, alpha, positive, most, rounding, w, active, signs, k, z, d, L, role,
            at_once,
        )  # fmt: skip
        if came == 0:
            return k
        at_once = min(2 * at_once, _FIRST_AT_ONCE + k // 4)
    return -1


@jit()
def _widen(gram, c, alpha, positive, H, working, m, member, n_new):
    """Let the atoms that violate most join the working set; return H and the new size."""
    chosen = np.empty(n_new, np.int64)
    size = np.empty(n_new)
    n = 0
    for j in range(c.shape[0]):
        v = (c[j] if positive else abs(c[j])) - alpha
        if v > _NO_VIOLATION * alpha and not member[j] and (n < n_new or v > size[n - 1]):
            at = n if n < n_new else n - 1
            n = min(n + 1, n_new)
            while at > 0 and size[at - 1] < v:
                size[at], chosen[at] = size[at - 1], chosen[at - 1]
                at -= 1
            size[at], chosen[at] = v, j
    if m + n > H.shape[0]:
        wider = np.empty((2 * (m + n), 2 * (m + n)))
        wider[:m, :m] = H[:m, :m]
        H = wider
    for i in range(n):
        new = chosen[i]
        member[new] = True
        working[m] = new
        row = gram[new]
        for j in range(m + 1):
            H[m, j] = row[working[j]]
            H[j, m] = H[m, j]
        m += 1
    return H, m


@jit()
def _descend(gram, alpha, positive, w, c, atoms, n):
    """Do one pass over ``atoms[:n]``; return the longest step, as a norm in signal space."""
    largest = 0.0
    for i in range(n):
        j = atoms[i]
        norm2 = gram[j, j]
        z = c[j] + norm2 * w[j]
        if z > alpha:
            new = (z - alpha) / norm2
        elif z < -alpha and not positive:
            new = (z + alpha) / norm2
        else:
            new = 0.0
        step = new - w[j]
        if step != 0.0:
            w[j] = new
            row = gram[j]
            for i2 in range(c.shape[0]):
                c[i2] -= step * row[i2]
            largest = max(largest, abs(step) * np.sqrt(norm2))
    return largest


@jit()
def _screen(gram, c, w, gap, alpha, dual_scale, positive, atoms, n):
    """Keep the atoms that the gap does not prove to be 0; return how many.

    The dual optimum lies within sqrt(2 gap) of the point theta = dual_scale r: an atom whose
    correlation with all of that ball stays under alpha has no part in the solution.
    """
    radius = np.sqrt(2.0 * max(gap, 0.0))
    kept = 0
    for i in range(n):
        j = atoms[i]
        v = c[j] if positive else abs(c[j])
        if v * dual_scale + radius * np.sqrt(gram[j, j]) >= alpha or w[j] != 0.0:
            atoms[kept] = j
            kept += 1
    return kept


@jit()
def _coordinate_descent(gram, b, energy, alpha, positive, gap_tol, max_passes, w, c, atoms):
    """Descend from w until the gap is small, or no step is left; return the gap."""
    n = 0
    for j in range(gram.shape[0]):
        if gram[j, j] > 0.0:
            atoms[n] = j
            n += 1
    every = atoms[:n].copy()
    _gradient(gram, b, w, every, len(every), len(c), c)
    gap, _, t = _gap(b, w, c, energy, alpha, every, len(every), positive)
    passes = 0
    longest = np.inf
    while gap > gap_tol * energy and passes < max_passes and longest > 0.0:
        n = _screen(gram, c, w, gap, alpha, t, positive, atoms, n)
        for _ in range(_PASSES_A_LOOK):
            passes += 1
            longest = _descend(gram, alpha, positive, w, c, atoms, n)
            if longest == 0.0:
                break
        new_gap, _, t = _gap(b, w, c, energy, alpha, every, len(every), positive)
        if passes % 200 == 0 or new_gap >= gap:
            # The gradient drifts with rounding: from w again.
            _gradient(gram, b, w, every, len(every), len(c), c)
            new_gap, _, t = _gap(b, w, c, energy, alpha, every, len(every), positive)
        gap = new_gap
    return gap


@jit()
def _active_set(
    gram, b, energy, alpha, positive, gap_tol, most, rounding, w, c, H, member, working,
    small_w, small_b, small_c, active, signs, z, d, L, role, support,
):  # fmt: skip
    """Solve from w over growing working sets; return the gap, and H, which may have grown.

    The gap is above ``gap_tol`` where coordinate descent should go on from w: too many active
    atoms, or trouble with rounding.
    """
    m = 0
    for j in range(gram.shape[0]):
        member[j] = w[j] != 0.0
        if member[j]:
            if m == most:
                return np.inf, H
            working[m] = j
            m += 1
    _gradient(gram, b, w, working, m, len(c), c)
    gap, _, _ = _gap(b, w, c, energy, alpha, working, m, positive)
    if gap <= gap_tol * energy:
        return gap, H
    if m > H.shape[0]:
        H = np.empty((2 * m, 2 * m))
    for i in range(m):
        for j in range(m):
            H[i, j] = gram[working[i], working[j]]
        small_b[i], small_w[i] = b[working[i]], w[working[i]]
    k = _enter_all(H, m, small_b, alpha, most, rounding, small_w, active, signs, z, L, role)
    while k >= 0:
        if m > 0:
            k = _solve_active(
                H, m, small_b, alpha, positive, most, rounding, small_w, small_c, active, signs, k,
                z, d, L, role,
            )  # fmt: skip
            for i in range(m):
                w[working[i]] = small_w[i]
            if k < 0:
                break
            for i in range(k):
                support[i] = working[active[i]]
            _gradient(gram, b, w, support, k, len(c), c)
            gap, _, _ = _gap(b, w, c, energy, alpha, support, k, positive)
            if gap <= gap_tol * energy:
                return gap, H
        before = m
        n_new = min(max(_FEWEST_NEW, k), _MOST_NEW)
        H, m = _widen(gram, c, alpha, positive, H, working, m, member, n_new)
        if m == before:
            return gap, H  # nothing violates, and still a gap: rounding
        for i in range(m):
            if i >= before:
                small_b[i], small_w[i] = b[working[i]], 0.0
            if i >= before or role[i] == _BARRED:
                role[i] = _FREE
    return np.inf, H


@jit()
def solve_lasso(gram, corr, energy, alpha, positive, gap_tol, most, rounding, max_passes, codes):
    """Code the signals of a block from what ``codes`` holds; dense, in place.

    Active sets of at most ``most[0]`` atoms; then coordinate descent; where that crawls, active
    sets of at most ``most[1]``, which cost more, but end.
    """
    n_atoms = gram.shape[0]
    c, small_w = np.empty(n_atoms), np.empty(n_atoms)
    small_b, small_c = np.empty(n_atoms), np.empty(n_atoms)
    working, atoms = np.empty(n_atoms, np.int64), np.empty(n_atoms, np.int64)
    member, role = np.empty(n_atoms, np.bool_), np.empty(n_atoms, np.int64)
    small, large = min(most[0], n_atoms), min(most[1], n_atoms)
    active, signs = np.empty(large + 1, np.int64), np.empty(large + 1)
    support, z, d = np.empty(large + 1, np.int64), np.empty(large + 1), np.empty(large + 1)
    L = np.empty((small + 1, small + 1))
    H = np.empty((64, 64))
    for s in range(corr.shape[0]):
        b, w, enough = corr[s], codes[s], gap_tol * energy[s]
        for turn in range(2):
            limit = small if turn == 0 else large
            if limit >= L.shape[0]:
                L = np.empty((limit + 1, limit + 1))
            gap, H = _active_set(
                gram, b, energy[s], alpha, positive, gap_tol, limit, rounding, w, c, H, member,
                working, small_w, small_b, small_c, active, signs, z, d, L, role, support,
            )  # fmt: skip
            if gap <= enough:
                break
            passes = min(_PASSES_BEFORE_LARGE, max_passes) if turn == 0 else max_passes
            gap = _coordinate_descent(
                gram, b, energy[s], alpha, positive, gap_tol, passes, w, c, atoms
            )
            if gap <= enough:
                break


@jit()
def solve_lasso_local(
    grams, corrs, energy, alpha, positive, gap_tol, most, rounding, max_passes, codes
):
    """Code each signal over its own atoms: ``grams`` (n, K, K), ``corrs`` and ``codes`` (n, K)."""
    for s in range(corrs.shape[0]):
        one = slice(s, s + 1)
        solve_lasso(
            grams[s], corrs[one], energy[one], alpha, positive, gap_tol, most, rounding,
            max_passes, codes[one],
        )  # fmt: skip


@jit()
def _support_of(w, support):
    """Write which atoms have a nonzero; return how many."""
    k = 0
    for j in range(w.shape[0]):
        if w[j] != 0.0:
            support[k] = j
            k += 1
    return k


@jit()
def certify(gram, corr, energy, alpha, positive, codes, gaps, errors):
    """Compute duality gap and squared residual of every code, whoever found it."""
    n_atoms = gram.shape[0]
    c = np.empty(n_atoms)
    support = np.empty(n_atoms, np.int64)
    for s in range(corr.shape[0]):
        k = _support_of(codes[s], support)
        _gradient(gram, corr[s], codes[s], support, k, n_atoms, c)
        gaps[s], errors[s], _ = _gap(corr[s], codes[s], c, energy[s], alpha, support, k, positive)


@jit()
def certify_local(grams, corrs, energy, alpha, positive, codes, gaps, errors):
    """Do the same where each signal has atoms of its own, among those."""
    for s in range(corrs.shape[0]):
        one = slice(s, s + 1)
        certify(
            grams[s], corrs[one], energy[one], alpha, positive, codes[one], gaps[one], errors[one]
        )


@jit()
def certify_gradient(corr, c, energy, alpha, positive, codes, gaps, errors):
    """Do the same where the gradients c = b - G w are known, (n, n_atoms)."""
    support = np.empty(corr.shape[1], np.int64)
    for s in range(corr.shape[0]):
        k = _support_of(codes[s], support)
        gaps[s], errors[s], _ = _gap(
            corr[s], codes[s], c[s], energy[s], alpha, support, k, positive
        )
