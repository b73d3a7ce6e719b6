"""Distances of sets of histograms: the mean cost of the best one-to-one assignment.

The assignment is by shortest augmenting paths with potentials (Hungarian method; Jonker and
Volgenant, 1987), O(n^3) for n histograms.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.pairs import in_one_list, tiles
from kernelatoms.engine.cpu.threads import each

Array = NDArray[Any]

# A pair takes some 0.1 ms, and a piece of work can be stopped after it only.
_TILE = 16


def assignment_distances(A: Array, B: Array, n_sets: int) -> Array:
    """Return the distances of all pairs of sets in stacks: (..., n, m) in float64.

    Parameters
    ----------
    A : array of shape (..., n, n_sets * n_bins)
        Rows of ``n_sets`` histograms, from 0.
    B : array of shape (..., m, n_sets * n_bins)
        Others.
    n_sets : int
        How many histograms a row has.

    Returns
    -------
    array of shape (..., n, m)
        The least mean of half of sum_i (a_i - b_i)^2 / (a_i + b_i) over one-to-one assignments.
    """
    A, B = in_one_list(A, B)
    heads, n, m = A.shape[:-2], A.shape[-2], B.shape[-2]
    n_heads, n_bins = math.prod(heads), A.shape[-1] // n_sets
    if n_bins * n_sets != A.shape[-1]:
        raise ValueError(f"rows must have {n_sets} histograms, got {A.shape[-1]} numbers.")
    D = np.empty((n_heads, n, m))
    A, B = A.reshape(n_heads, n, n_sets, n_bins), B.reshape(n_heads, m, n_sets, n_bins)
    each(lambda tile: _match(A, B, D, *tile), tiles(n_heads, n, m, _TILE))
    return D.reshape(*heads, n, m)


@jit()
def _match(A, B, out, head, head_stop, row, row_stop, column, column_stop):  # type: ignore[no-untyped-def]
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
def _costs(a, b, cost):  # type: ignore[no-untyped-def]
    for s in range(a.shape[0]):
        for t in range(b.shape[0]):
            total = 0.0
            for f in range(a.shape[1]):
                difference, both = a[s, f] - b[t, f], a[s, f] + b[t, f]
                share = difference / both if both > 0 else both
                total += np.float64(difference * share)
            cost[s, t] = 0.5 * total


@jit()
def _assign(cost, ours, others, slack, partner, before, reached):  # type: ignore[no-untyped-def]
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
