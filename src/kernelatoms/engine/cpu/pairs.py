"""Distances of all pairs of rows that no matrix product gives.

- Sums and maxima over features: l1, Chebyshev, chi-square.
- Sets of histograms: the mean cost of the best one-to-one assignment, found by shortest augmenting
  paths with potentials (Hungarian method; Jonker and Volgenant, 1987), O(n^3) for n histograms.

Rows come in stacks, A (..., n, n_features) and B (..., m, n_features); each pair of matrices is one
of a list, and threads take some of these, or tiles of a large one. Sums are of float64.
"""

import math
from collections.abc import Callable

import numpy as np

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.scale import Array
from kernelatoms.engine.cpu.threads import each

# Rows of either side in a piece of work: some tens of milliseconds at a thousand features; pairs of
# sets take some 0.1 ms each.
_TILE, _TILE_OF_SETS = 128, 16


def l1_distances(A: Array, B: Array) -> Array:
    """Return sum_i |a_i - b_i| for all pairs of rows in stacks: (..., n, m) in float64."""
    return all_pairs(_l1, A, B)


def linf_distances(A: Array, B: Array) -> Array:
    """Return max_i |a_i - b_i| for all pairs of rows in stacks: (..., n, m) in float64."""
    # Wide already: a conversion in the loop made it three times slower.
    return all_pairs(_linf, A.astype(np.float64, copy=False), B)


def chi2_distances(A: Array, B: Array) -> Array:
    """Return sum_i (a_i - b_i)^2 / (a_i + b_i), 0/0 = 0, for all pairs of rows from 0 in stacks."""
    return all_pairs(_chi2, A, B)


def assignment_distances(A: Array, B: Array, n_sets: int) -> Array:
    """Return the distances of all pairs of sets in stacks: (..., n, m) in float64.

    The least mean of half of sum_i (a_i - b_i)^2 / (a_i + b_i) over one-to-one assignments. ``A``
    (..., n, n_sets * n_bins) and ``B`` (..., m, n_sets * n_bins) are rows of ``n_sets`` histograms,
    from 0.
    """
    n_bins, rest = divmod(A.shape[-1], n_sets)
    if rest:
        raise ValueError(f"rows must have {n_sets} histograms, got {A.shape[-1]} numbers.")

    def match(A: Array, B: Array, D: Array, *tile: int) -> None:
        A, B = (part.reshape(*part.shape[:2], n_sets, n_bins) for part in (A, B))
        _match(A, B, D, *tile)

    return all_pairs(match, A, B, _TILE_OF_SETS)


def all_pairs(loop: Callable[..., None], A: Array, B: Array, side: int = _TILE) -> Array:
    """Return what ``loop(A, B, out, *tile)`` writes, in tiles of at most side x side rows.

    It sees A (n_heads, n, n_features) and B (n_heads, m, n_features), contiguous and of one type.
    """
    if A.ndim < 2 or B.ndim < 2 or A.shape[-1] != B.shape[-1]:
        raise ValueError(
            f"rows of A and B must have as many features, got shapes {A.shape} and {B.shape}."
        )
    heads = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    n_heads = math.prod(heads)
    dtype = np.float32 if A.dtype == B.dtype == np.float32 else np.float64
    A, B = (
        np.ascontiguousarray(np.broadcast_to(part, heads + part.shape[-2:]), dtype).reshape(
            n_heads, *part.shape[-2:]
        )
        for part in (A, B)
    )
    D = np.empty((n_heads, A.shape[1], B.shape[1]))
    each(lambda tile: loop(A, B, D, *tile), _tiles(*D.shape, side))
    return D.reshape(*heads, *D.shape[1:])


def _tiles(n_heads: int, n: int, m: int, side: int) -> list[tuple[int, ...]]:
    """Return pieces of a stack of n x m pairs: head and stop, row and stop, column and stop."""
    at_once = max(1, side * side // max(n * m, 1))
    return [
        (h, min(h + at_once, n_heads), i, min(i + side, n), j, min(j + side, m))
        for h in range(0, n_heads, at_once)
        for i in range(0, n, side)
        for j in range(0, m, side)
    ]


@jit(fastmath=True)
def _l1(A, B, out, head, head_stop, row, row_stop, column, column_stop):
    for h in range(head, head_stop):
        for i in range(row, row_stop):
            a = A[h, i]
            for j in range(column, column_stop):
                b = B[h, j]
                total = 0.0
                for f in range(a.shape[0]):
                    total += abs(np.float64(a[f]) - np.float64(b[f]))
                out[h, i, j] = total


@jit()
def _larger(largest, a, b):
    difference = abs(a - b)
    return difference if difference > largest else largest


@jit()
def _linf(A, B, out, head, head_stop, row, row_stop, column, column_stop):
    for h in range(head, head_stop):
        for i in range(row, row_stop):
            a = A[h, i]
            for j in range(column, column_stop):
                b = B[h, j]
                # Four maxima that do not wait for each other.
                one = two = three = four = 0.0
                whole = a.shape[0] // 4 * 4
                for f in range(0, whole, 4):
                    one = _larger(one, a[f], b[f])
                    two = _larger(two, a[f + 1], b[f + 1])
                    three = _larger(three, a[f + 2], b[f + 2])
                    four = _larger(four, a[f + 3], b[f + 3])
                for f in range(whole, a.shape[0]):
                    one = _larger(one, a[f], b[f])
                out[h, i, j] = max(max(one, two), max(three, four))


@jit(fastmath=True)
def _chi2(A, B, out, head, head_stop, row, row_stop, column, column_stop):
    for h in range(head, head_stop):
        for i in range(row, row_stop):
            a = A[h, i]
            for j in range(column, column_stop):
                b = B[h, j]
                total = 0.0
                for f in range(a.shape[0]):
                    difference, both = a[f] - b[f], a[f] + b[f]
                    # Divided first: squares of large numbers overflow.
                    share = difference / both if both > 0 else both
                    total += np.float64(difference * share)
                out[h, i, j] = total


@jit()
def _match(A, B, out, head, head_stop, row, row_stop, column, column_stop):
    n = A.shape[2]
    cost = np.empty((n, n))
    ours, others, slack = np.empty(n), np.empty(n + 1), np.empty(n)
    partner, before = np.empty(n + 1, np.int64), np.empty(n, np.int64)
    reached = np.empty(n + 1, np.bool_)
    for h in range(head, head_stop):
        for i in range(row, row_stop):
            for j in range(column, column_stop):
                _costs(A[h, i], B[h, j], cost)
                total = _assign(cost, ours, others, slack, partner, before, reached)
                out[h, i, j] = total / n


@jit(fastmath=True)
def _costs(a, b, cost):
    for s in range(a.shape[0]):
        for t in range(b.shape[0]):
            total = 0.0
            for f in range(a.shape[1]):
                difference, both = a[s, f] - b[t, f], a[s, f] + b[t, f]
                share = difference / both if both > 0 else both
                total += np.float64(difference * share)
            cost[s, t] = 0.5 * total


@jit()
def _assign(cost, ours, others, slack, partner, before, reached):
    """Return the least sum of costs; the arrays are room to work in.

    ``partner[t]`` is the row of column t, -1 if it is free. Column n belongs to no row: the search
    for a row's column starts there.
    """
    n = cost.shape[0]
    ours[:], others[:], partner[:] = 0.0, 0.0, -1
    for new in range(n):
        partner[n], t = new, n
        slack[:], reached[:] = np.inf, False
        while partner[t] != -1:
            reached[t] = True
            s, nearest, least = partner[t], -1, np.inf
            for q in range(n):
                if not reached[q]:
                    left = cost[s, q] - ours[s] - others[q]
                    if left < slack[q]:
                        slack[q], before[q] = left, t
                    if slack[q] < least:
                        least, nearest = slack[q], q
            for q in range(n + 1):
                if reached[q]:
                    ours[partner[q]] += least
                    others[q] -= least
                elif q < n:
                    slack[q] -= least
            t = nearest
        while t != n:
            partner[t] = partner[before[t]]
            t = before[t]
    total = 0.0
    for t in range(n):
        total += cost[partner[t], t]
    return total
