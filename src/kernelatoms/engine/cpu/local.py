"""One small coding problem per signal, over the atoms near it, given their Gram matrix.

- ``ridge_local``: their ridge codes, Alg. 3 of the KCRC-LCD paper;
- ``class_parts_local``: what the atoms of one class leave of a signal.

Systems (A + mu I) x = r are solved one after another. A is factored as U' D^-1 U, four rows at a
time: all rows above are taken off these four, again four by four, so that sixteen products follow
every eight reads, and the four stay in the nearest cache. Against LAPACK from compiled code that is
1.4 times as fast at 50 atoms and 1.5 at 200.

See docs/decisions/027-local-problems.md.
"""

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.local_grams import for_local_blocks
from kernelatoms.engine.cpu.products import check_shape
from kernelatoms.engine.cpu.scale import Array

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
def _solve_each(grams, matrices, corrs, mu, columns, rounding, weights, doubtful):
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


def ridge_local(grams: Array, corrs: Array, mu: float, gram_columns: bool) -> NDArray[np.float64]:
    """Return the ridge codes of signals (n, K), each over its own atoms; computed in float64.

    - ``grams`` (n, K, K): G, the inner products of every signal's atoms; symmetric.
    - ``corrs`` (n, K): b, their inner products with the signal.
    - ``mu``: weight of |w|^2, at least 0.
    - ``gram_columns``: False: atoms of feature space, (G + mu I) w = b. True: the columns of G are
      the atoms and b the signal, in R^K: (G G + mu I) w = G b, eq. (13) of the KCRC-LCD paper.

    Where mu is 0, or lost in rounding, and G is singular: the shortest of the solutions. Negative
    eigenvalues of G (no inner products of vectors have any) count as 0 where ``gram_columns`` is
    False and mu does not outweigh them.
    """
    n, n_local = corrs.shape
    check_shape(grams, "local Gram matrices", (n, n_local, n_local))
    grams, corrs = np.ascontiguousarray(grams), np.ascontiguousarray(corrs)
    weights, doubtful = np.empty((n, n_local)), np.empty(n, bool)
    rounding = float(np.finfo(grams.dtype).eps)

    def work(start: int, stop: int) -> None:
        G, b, w = grams[start:stop], corrs[start:stop], weights[start:stop]
        matrices = G
        if gram_columns:
            wide = G.astype(np.float64, copy=False)
            matrices = wide @ wide.mT
        _solve_each(G, matrices, b, mu, gram_columns, rounding, w, doubtful[start:stop])
        some = np.flatnonzero(doubtful[start:stop])
        if len(some):
            w[some] = _by_eigenvectors(G[some], b[some], mu, gram_columns)

    for_local_blocks(n, n_local, work)
    return weights


def _by_eigenvectors(
    grams: Array, corrs: Array, mu: float, gram_columns: bool
) -> NDArray[np.float64]:
    """Solve with eigenvectors: slow, and defined where nothing else is."""
    if not np.isfinite(grams).all():
        raise ValueError("Gram matrices of candidates hold NaN or infinity.")
    n_local = corrs.shape[1]
    rounding = float(np.finfo(grams.dtype).eps)
    values, vectors = np.linalg.eigh(grams.astype(np.float64))
    if not gram_columns:
        np.maximum(values, 0.0, out=values)
    largest = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
    # Without a ridge to speak of, eigenvalues that are nothing but rounding take no part.
    needless = np.abs(values) <= n_local * rounding * largest
    if gram_columns:
        needless &= mu <= (rounding * largest) ** 2
        bottom, top = values**2 + mu, values
    else:
        needless &= mu <= rounding * largest
        bottom, top = values + mu, np.ones_like(values)
    needless |= bottom == 0
    factors = np.where(needless, 0.0, top / np.where(needless, 1.0, bottom))
    inside = np.einsum("ski,sk->si", vectors, corrs.astype(np.float64))
    return np.einsum("ski,si->sk", vectors, factors * inside)


@jit(fastmath=True)
def _class_parts(grams, corrs, energies, weights, owners, columns, residuals2, norms2):
    n, n_local = corrs.shape
    n_classes = residuals2.shape[1]
    starts, order = np.empty(n_classes + 2, np.int64), np.empty(n_local, np.int64)
    left = np.empty(n_local)
    for s in range(n):
        gram, b, w, owner = grams[s], corrs[s], weights[s], owners[s]
        starts[:] = 0
        for i in range(n_local):
            if owner[i] >= 0:
                starts[owner[i] + 2] += 1
        for c in range(2, n_classes + 2):
            starts[c] += starts[c - 1]
        # Now starts[c + 1] is where class c begins, and moves to where it ends as the class fills.
        for i in range(n_local):
            if owner[i] >= 0:
                order[starts[owner[i] + 1]] = i
                starts[owner[i] + 1] += 1
        energy = 0.0
        if columns:
            for i in range(n_local):
                energy += np.float64(b[i]) ** 2
        else:
            energy = np.float64(energies[s])
        for c in range(n_classes):
            squares, change = 0.0, 0.0
            for a in range(starts[c], starts[c + 1]):
                squares += w[order[a]] ** 2
            norms2[s, c] = squares
            if squares == 0.0:
                residuals2[s, c] = energy
                continue
            if columns:
                for i in range(n_local):
                    left[i] = b[i]
                for a in range(starts[c], starts[c + 1]):
                    row, weight = gram[order[a]], w[order[a]]
                    for i in range(n_local):
                        left[i] -= weight * np.float64(row[i])
                for i in range(n_local):
                    change += left[i] ** 2
                residuals2[s, c] = change
                continue
            for a in range(starts[c], starts[c + 1]):
                i = order[a]
                row = gram[i]
                explained = 0.5 * w[i] * np.float64(row[i]) - np.float64(b[i])
                for d in range(starts[c], a):
                    explained += w[order[d]] * np.float64(row[order[d]])
                change += 2.0 * w[i] * explained
            residuals2[s, c] = max(energy + change, 0.0)


def class_parts_local(
    grams: Array,
    corrs: Array,
    energies: Array | None,
    weights: Array,
    owners: NDArray[np.int64],
    n_classes: int,
    gram_columns: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what the atoms of every class leave of a signal, and the size of their weights.

    - ``grams``, ``corrs``, ``gram_columns``: as of ``ridge_local``.
    - ``energies`` (n,): squared norms of the signals; None will do if ``gram_columns`` is True.
    - ``weights`` (n, K): codes w.
    - ``owners`` (n, K): the class of every atom, -1 where a list is padded.
    - result: |y - D_c w_c|^2 (n, n_classes), never negative, of atoms in feature space or of the
      columns of G; and |w_c|^2 (n, n_classes).
    """
    n, n_local = corrs.shape
    check_shape(grams, "local Gram matrices", (n, n_local, n_local))
    check_shape(weights, "weights", (n, n_local))
    check_shape(owners, "owners", (n, n_local))
    if owners.size and not (owners.min() >= -1 and owners.max() < n_classes):
        raise ValueError(f"owners must lie within -1 and {n_classes - 1}.")
    if energies is None:
        if not gram_columns:
            raise ValueError("energies must be given where gram_columns is False.")
        energies = np.zeros(n)
    check_shape(energies, "energies", (n,))
    grams, corrs = np.ascontiguousarray(grams), np.ascontiguousarray(corrs)
    weights = np.ascontiguousarray(weights, np.float64)
    energies = np.ascontiguousarray(energies, np.float64)
    owners = np.ascontiguousarray(owners, np.int64)
    residuals2, norms2 = np.empty((n, n_classes)), np.empty((n, n_classes))

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        _class_parts(
            grams[part], corrs[part], energies[part], weights[part], owners[part], gram_columns,
            residuals2[part], norms2[part],
        )  # fmt: skip

    for_local_blocks(n, n_local, work)
    return residuals2, norms2
