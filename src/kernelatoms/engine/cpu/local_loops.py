"""Many small symmetric systems (A + mu I) x = r, one after another.

A is factored as U' D^-1 U, four rows at a time: all rows above are taken off these four, again
four by four, so that sixteen products follow every eight reads, and the four stay in the nearest
cache. Against LAPACK from compiled code that is 1.4 times as fast at 50 atoms and 1.5 at 200.

See docs/decisions/027-local-problems.md.
"""

import numpy as np

from kernelatoms.engine.cpu.jit import jit

# Rows begin at multiples of this many columns where they are worked on: vectors have no remainder.
_LANES = 8
# Pivots above this share of the largest are more than rounding, which smaller ones before them
# have magnified. Where a ridge bounds them from below, far smaller ones can be told.
_HALF_OF_DIGITS = np.sqrt(np.finfo(np.float64).eps)
_CERTAIN = 1e-11


@jit(fastmath=True)
def _take_off(A, scales, k, i):
    """Take multiples of rows k to k + 3 off rows i to i + 3, which makes columns k to k + 3 zero.

    What stands left of the diagonal is never read again, and left as it comes.
    """
    first = i - i % _LANES
    a, b, c, d = A[k, first:], A[k + 1, first:], A[k + 2, first:], A[k + 3, first:]
    w, x, y, z = A[i, first:], A[i + 1, first:], A[i + 2, first:], A[i + 3, first:]
    here = i - first
    sa, sb, sc, sd = -scales[k], -scales[k + 1], -scales[k + 2], -scales[k + 3]
    aw, ax, ay, az = sa * a[here], sa * a[here + 1], sa * a[here + 2], sa * a[here + 3]
    bw, bx, by, bz = sb * b[here], sb * b[here + 1], sb * b[here + 2], sb * b[here + 3]
    cw, cx, cy, cz = sc * c[here], sc * c[here + 1], sc * c[here + 2], sc * c[here + 3]
    dw, dx, dy, dz = sd * d[here], sd * d[here + 1], sd * d[here + 2], sd * d[here + 3]
    for j in range(len(w)):
        p, q, r, s = a[j], b[j], c[j], d[j]
        w[j] = w[j] + aw * p + bw * q + cw * r + dw * s
        x[j] = x[j] + ax * p + bx * q + cx * r + dx * s
        y[j] = y[j] + ay * p + by * q + cy * r + dy * s
        z[j] = z[j] + az * p + bz * q + cz * r + dz * s


@jit(fastmath=True)
def _factor(A, scales):
    """Turn the upper triangle of A into U, and scales into 1 / D; return the ends of D's range.

    Both ends are 0 where a number of D is not above 0, or undefined.
    """
    smallest, largest, sound = np.inf, 0.0, True
    for i in range(0, len(A), 4):
        for k in range(0, i, 4):
            _take_off(A, scales, k, i)
        for k in range(i, i + 4):
            pivot = A[k, k]
            smallest, largest = min(smallest, pivot), max(largest, pivot)
            sound = sound and pivot > 0.0
            scales[k] = 1.0 / pivot
            for below in range(k + 1, i + 4):
                factor = scales[k] * A[k, below]
                for j in range(below, A.shape[1]):
                    A[below, j] -= factor * A[k, j]
    return (smallest, largest) if sound else (0.0, 0.0)


@jit(fastmath=True)
def _substitute(A, scales, n, x):
    """Solve U' D^-1 U x = r for n unknowns; x holds r."""
    for k in range(n):
        factor = scales[k] * x[k]
        row = A[k]
        for j in range(k + 1, n):
            x[j] -= factor * row[j]
    for k in range(n - 1, -1, -1):
        total = x[k]
        row = A[k]
        for j in range(k + 1, n):
            total -= row[j] * x[j]
        x[k] = scales[k] * total


@jit(fastmath=True)
def _times(G, x, out):
    """Write G x, in float64."""
    for i in range(len(x)):
        total = 0.0
        for j in range(len(x)):
            total += np.float64(G[i, j]) * x[j]
        out[i] = total


@jit()
def _load(G, matrix, mu, A):
    """Write the upper triangle of matrix + mu I, for atoms that are not zero; return G's trace."""
    n = len(G)
    trace = 0.0
    for i in range(n):
        trace += np.float64(G[i, i])
        for j in range(i - i % _LANES, n):
            A[i, j] = matrix[i, j]
        A[i, i] += mu
        # An atom of zeros (a list is padded) takes no part, also where mu is 0.
        if matrix[i, i] == 0 and not G[i].any():
            A[i, i] = 1.0
    for i in range(n, len(A)):
        A[i, i] = 1.0
    return trace


@jit()
def solve_each(grams, matrices, corrs, mu, columns, rounding, weights, doubtful):
    """Solve (G + mu I) w = b, or (G G + mu I) w = G b, for every signal.

    ``matrices`` holds G, or G G in float64; ``rounding`` is that of G's type. ``doubtful`` becomes
    True where a pivot is no more than rounding, or would be negative without mu.
    """
    n, n_local = corrs.shape
    n_rows = -(-n_local // 4) * 4
    A = np.zeros((n_rows, -(-n_rows // _LANES) * _LANES))
    scales = np.empty(n_rows)
    b, left, more = np.empty(n_local), np.empty(n_local), np.empty(n_local)
    for s in range(n):
        G, w = grams[s], weights[s]
        trace = _load(G, matrices[s], mu, A)
        smallest, largest = _factor(A, scales)
        faint = rounding * trace  # at least: an eigenvalue of G that is nothing but rounding
        if mu > (faint * faint if columns else faint):
            share = _CERTAIN
        else:  # no ridge to speak of
            share = max(_HALF_OF_DIGITS, n_local * rounding)
        doubtful[s] = not smallest > max(0.5 * mu, share * largest)
        if doubtful[s]:  # whoever calls has another way; what is undefined must not stay in A
            A[:] = 0.0
            continue
        for i in range(n_local):
            b[i] = corrs[s, i]
        if not columns:
            w[:] = b
            _substitute(A, scales, n_local, w)
            continue
        _times(G, b, w)
        _substitute(A, scales, n_local, w)
        # G G has lost half of the digits; a step of correction through G itself brings them back.
        _times(G, w, left)
        left[:] = b - left
        _times(G, left, more)
        more -= mu * w
        _substitute(A, scales, n_local, more)
        w += more
