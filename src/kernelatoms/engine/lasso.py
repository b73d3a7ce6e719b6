"""l1 coding on Gram and correlations, for many signals over one dictionary.

For every signal, minimise 1/2 |y - D w|^2 + alpha |w|_1 (eq. (6) of the FKSC paper) through the
Gram matrix G = D'D, the correlations b = D'y and the energy |y|^2 alone, so that signals may live
in any feature space. Two solvers:

- **The path** (homotopy, LARS with the lasso's steps). Start at w = 0, where alpha would have to
  be max |b|, and lower it: between events the solution is linear in alpha. On the active set A
  with signs s and a Cholesky factor of G_AA,

      d = G_AA^-1 s,   a = G[:, A] d,   w_A += gamma d,   c -= gamma a

  until an atom's correlation c_j reaches the falling threshold (it joins), a coefficient reaches 0
  (it leaves), or alpha is there. As in OMP, rows of G are all that is read, and few where supports
  are small.
- **Coordinate descent** with the gradient c = b - G w kept up to date, over a shrinking set of
  atoms: those that the duality gap proves to be 0 are dropped (gap-safe screening).

Both end with the duality gap of what they return. With r = y - D w and theta = t r, t in [0, 1]
the best with |D'theta| <= alpha, the dual value is t <y, r> - t^2 |r|^2 / 2; <y, r> = |y|^2 - b'w
and |r|^2 = |y|^2 - 2 b'w + w'G w need no vector but w.
"""

import numpy as np

from kernelatoms.engine.jit import jit

# What ends a step of the path.
_JOIN, _LEAVE, _DONE = 1, 2, 3
# Why an atom is no candidate to join: active, spanned by active ones, or just gone.
_ACTIVE, _SPANNED, _GONE = 1, 2, 3
# Passes of coordinate descent between two looks at the gap.
_PASSES_A_LOOK = 10


@jit()
def _solve(L, k, x):  # type: ignore[no-untyped-def]
    """Solve L L' x = x in place."""
    for i in range(k):
        v = x[i]
        for j in range(i):
            v -= L[i, j] * x[j]
        x[i] = v / L[i, i]
    for i in range(k - 1, -1, -1):
        v = x[i]
        for j in range(i + 1, k):
            v -= L[j, i] * x[j]
        x[i] = v / L[i, i]


@jit()
def _append(L, k, gram, active, atom, rounding):  # type: ignore[no-untyped-def]
    """Add a row to the factor; False if the active atoms span the new one already."""
    left = gram[atom, atom]
    for i in range(k):
        v = gram[atom, active[i]]
        for j in range(i):
            v -= L[i, j] * L[k, j]
        L[k, i] = v / L[i, i]
        left -= L[k, i] * L[k, i]
    if not left > rounding * gram[atom, atom]:
        return False
    L[k, k] = np.sqrt(left)
    return True


@jit()
def _drop(L, k, at):  # type: ignore[no-untyped-def]
    """Take row ``at`` out of a factor of k rows by rotations."""
    for i in range(at, k - 1):
        for j in range(i + 2):
            L[i, j] = L[i + 1, j]
    for i in range(at, k - 1):
        a, b = L[i, i], L[i, i + 1]
        r = np.hypot(a, b)
        c, s = a / r, b / r
        L[i, i], L[i, i + 1] = r, 0.0
        for j in range(i + 1, k - 1):
            x, y = L[j, i], L[j, i + 1]
            L[j, i] = c * x + s * y
            L[j, i + 1] = c * y - s * x


@jit()
def _gap(gram, b, w, c, energy, alpha, active, k, positive):  # type: ignore[no-untyped-def]
    """Return the duality gap of w, and t; c is its gradient, ``active[:k]`` holds its support."""
    bw = 0.0
    wgw = 0.0
    l1 = 0.0
    for i in range(k):
        atom = active[i]
        bw += b[atom] * w[atom]
        wgw += w[atom] * (b[atom] - c[atom])
        l1 += abs(w[atom])
    largest = 0.0
    for j in range(gram.shape[0]):
        v = c[j] if positive else abs(c[j])
        if v > largest:
            largest = v
    r2 = max(energy - 2 * bw + wgw, 0.0)
    yr = energy - bw
    t = 1.0 if largest <= alpha else alpha / largest
    if r2 > 0:
        t = min(t, max(yr / r2, 0.0))
    primal = 0.5 * r2 + alpha * l1
    dual = t * yr - 0.5 * t * t * r2
    return primal - dual, t


@jit()
def _path(  # type: ignore[no-untyped-def]
    gram, alpha, positive, most, rounding, w, c, active, signs, d, a, L, barred
):
    """Follow the path down to alpha; return the size of the support and the threshold reached.

    ``c`` holds the correlations on entry and the gradient on return. Ends above alpha when
    ``most`` atoms are active, so that another solver can go on from there.
    """
    n_atoms = gram.shape[0]
    k = 0
    for j in range(n_atoms):
        w[j] = 0.0
        barred[j] = 0
    threshold = 0.0
    newest = -1
    for j in range(n_atoms):
        v = c[j] if positive else abs(c[j])
        if v > threshold:
            threshold, newest = v, j
    if threshold <= alpha or newest < 0:
        return 0, max(threshold, alpha)
    event = _JOIN
    at = -1
    steps = 0
    while steps < 8 * n_atoms + 50:
        steps += 1
        if event == _JOIN:
            if _append(L, k, gram, active, newest, rounding):
                active[k] = newest
                signs[k] = 1.0 if c[newest] > 0 else -1.0
                barred[newest] = _ACTIVE
                k += 1
            else:
                # Spanned by the active atoms: its correlation moves with theirs.
                barred[newest] = _SPANNED
        elif event == _LEAVE:
            w[active[at]] = 0.0
            barred[active[at]] = _GONE
            _drop(L, k, at)
            for i in range(at, k - 1):
                active[i], signs[i] = active[i + 1], signs[i + 1]
            k -= 1
            for j in range(n_atoms):
                if barred[j] == _SPANNED:
                    barred[j] = 0
        for i in range(k):
            d[i] = signs[i]
        _solve(L, k, d)
        for j in range(n_atoms):
            a[j] = 0.0
        for i in range(k):
            row, x = active[i], d[i]
            for j in range(n_atoms):
                a[j] += x * gram[row, j]
        gamma = threshold - alpha
        event, at, newest = _DONE, -1, -1
        for j in range(n_atoms):
            if barred[j] == 0 or barred[j] == _GONE:
                up = (threshold - c[j]) / (1.0 - a[j]) if a[j] < 1.0 else np.inf
                if barred[j] == _GONE and up <= 1e-12 * threshold:
                    up = np.inf  # it has just left at this very threshold
                if 0.0 <= up < gamma:
                    gamma, event, newest = up, _JOIN, j
                if not positive:
                    down = (threshold + c[j]) / (1.0 + a[j]) if a[j] > -1.0 else np.inf
                    if barred[j] == _GONE and down <= 1e-12 * threshold:
                        down = np.inf
                    if 0.0 <= down < gamma:
                        gamma, event, newest = down, _JOIN, j
        for i in range(k):
            x = w[active[i]]
            if x * d[i] < 0.0:
                to_zero = -x / d[i]
                if to_zero < gamma:
                    gamma, event, at = to_zero, _LEAVE, i
        for j in range(n_atoms):
            c[j] -= gamma * a[j]
            if barred[j] == _GONE:
                barred[j] = 0
        for i in range(k):
            w[active[i]] += gamma * d[i]
        threshold -= gamma
        if event == _DONE:
            return k, alpha
        if event == _JOIN and k == most:
            return k, threshold
    return k, threshold


@jit()
def _polish(gram, b, alpha, w, c, active, signs, d, L, k):  # type: ignore[no-untyped-def]
    """Solve for the support's coefficients afresh, and the gradient from them: no drift is left."""
    for i in range(k):
        d[i] = b[active[i]] - alpha * signs[i]
    _solve(L, k, d)
    same = True
    for i in range(k):
        same = same and d[i] * signs[i] > 0
    if same:
        for i in range(k):
            w[active[i]] = d[i]
    for j in range(gram.shape[0]):
        c[j] = b[j]
    for i in range(k):
        row, x = active[i], w[active[i]]
        for j in range(gram.shape[0]):
            c[j] -= x * gram[row, j]


@jit()
def _descend(gram, alpha, positive, w, c, atoms, n):  # type: ignore[no-untyped-def]
    """Do one pass over ``atoms[:n]``; return the longest step, as a norm in signal space."""
    largest = 0.0
    for i in range(n):
        j = atoms[i]
        norm2 = gram[j, j]
        if norm2 <= 0.0:
            continue
        z = c[j] + norm2 * w[j]
        if positive:
            new = (z - alpha) / norm2 if z > alpha else 0.0
        elif z > alpha:
            new = (z - alpha) / norm2
        elif z < -alpha:
            new = (z + alpha) / norm2
        else:
            new = 0.0
        step = new - w[j]
        if step != 0.0:
            w[j] = new
            for i2 in range(gram.shape[0]):
                c[i2] -= step * gram[j, i2]
            change = abs(step) * np.sqrt(norm2)
            if change > largest:
                largest = change
    return largest


@jit()
def _screen(gram, c, w, gap, alpha, dual_scale, positive, atoms, n):  # type: ignore[no-untyped-def]
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
def _coordinate_descent(  # type: ignore[no-untyped-def]
    gram, b, energy, alpha, positive, gap_tol, max_passes, w, c, atoms
):
    """Descend from w (with gradient c) until the gap is small; return gap and passes."""
    n_atoms = gram.shape[0]
    n = 0
    for j in range(n_atoms):
        if gram[j, j] > 0.0:
            atoms[n] = j
            n += 1
    every = atoms[:n].copy()
    n_every = n
    gap, t = _gap(gram, b, w, c, energy, alpha, every, n_every, positive)
    passes = 0
    while gap > gap_tol * energy and passes < max_passes:
        n = _screen(gram, c, w, gap, alpha, t, positive, atoms, n)
        for _ in range(_PASSES_A_LOOK):
            passes += 1
            if _descend(gram, alpha, positive, w, c, atoms, n) == 0.0:
                break
        new_gap, t = _gap(gram, b, w, c, energy, alpha, every, n_every, positive)
        if passes % 200 == 0 or new_gap >= gap:
            # The gradient drifts with rounding: from w again.
            for j in range(n_atoms):
                c[j] = b[j]
            for i in range(n_every):
                row, x = every[i], w[every[i]]
                if x != 0.0:
                    for j in range(n_atoms):
                        c[j] -= x * gram[row, j]
            new_gap, t = _gap(gram, b, w, c, energy, alpha, every, n_every, positive)
        gap = new_gap
    return gap, passes


@jit()
def solve_lasso(  # type: ignore[no-untyped-def]
    gram, corr, energy, alpha, positive, gap_tol, most, rounding, max_passes, codes, gaps
):
    """Code the signals of a block; dense codes, one row each, and their duality gaps."""
    n_atoms = gram.shape[0]
    c = np.empty(n_atoms)
    a = np.empty(n_atoms)
    d = np.empty(most + 1)
    signs = np.empty(most + 1)
    active = np.empty(most + 1, np.int64)
    barred = np.empty(n_atoms, np.int64)
    atoms = np.empty(n_atoms, np.int64)
    L = np.zeros((most + 1, most + 1))
    for s in range(corr.shape[0]):
        b = corr[s]
        w = codes[s]
        for j in range(n_atoms):
            c[j] = b[j]
        k, reached = _path(
            gram, alpha, positive, most, rounding, w, c, active, signs, d, a, L, barred
        )
        if reached <= alpha:
            _polish(gram, b, alpha, w, c, active, signs, d, L, k)
        gap, _ = _gap(gram, b, w, c, energy[s], alpha, active, k, positive)
        if gap > gap_tol * energy[s]:
            gap, _ = _coordinate_descent(
                gram, b, energy[s], alpha, positive, gap_tol, max_passes, w, c, atoms
            )
        gaps[s] = gap
