"""Distances of all pairs of rows that no matrix product gives: sums and maxima over features.

Rows come in stacks, A (..., n, n_features) and B (..., m, n_features); each pair of matrices is one
of a list, and threads take some of these, or tiles of a large one. Sums are of float64.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.threads import each

Array = NDArray[Any]

# Pairs a piece of work: some tens of milliseconds at a thousand features.
_TILE = 128


def l1_distances(A: Array, B: Array) -> Array:
    """Return sum_i |a_i - b_i| for all pairs of rows in stacks: (..., n, m) in float64."""
    return _all_pairs(_l1, A, B)


def linf_distances(A: Array, B: Array) -> Array:
    """Return max_i |a_i - b_i| for all pairs of rows in stacks: (..., n, m) in float64."""
    # Wide already: a conversion in the loop made it three times slower.
    return _all_pairs(_linf, A.astype(np.float64, copy=False), B)


def chi2_distances(A: Array, B: Array) -> Array:
    """Return sum_i (a_i - b_i)^2 / (a_i + b_i), 0/0 = 0, for all pairs of rows from 0 in stacks."""
    return _all_pairs(_chi2, A, B)


def _all_pairs(loop: Callable[..., None], A: Array, B: Array) -> Array:
    A, B = in_one_list(A, B)
    heads = A.shape[:-2]
    out = np.empty((*heads, A.shape[-2], B.shape[-2]))
    n_heads = math.prod(heads)
    A, B, D = (part.reshape(n_heads, *part.shape[-2:]) for part in (A, B, out))
    each(lambda tile: loop(A, B, D, *tile), tiles(n_heads, A.shape[1], B.shape[1], _TILE))
    return out


def in_one_list(A: Array, B: Array) -> tuple[Array, Array]:
    """Return stacks of matrices with the same heads, dtype and features, their rows contiguous."""
    if A.ndim < 2 or B.ndim < 2 or A.shape[-1] != B.shape[-1]:
        raise ValueError(
            f"rows of A and B must have as many features, got shapes {A.shape} and {B.shape}."
        )
    heads = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    dtype = np.float32 if A.dtype == B.dtype == np.float32 else np.float64
    A, B = (
        np.ascontiguousarray(np.broadcast_to(part, heads + part.shape[-2:]), dtype)
        for part in (A, B)
    )
    return A, B


def tiles(n_heads: int, n: int, m: int, side: int) -> list[tuple[int, ...]]:
    """Return pieces of a stack of n x m pairs: head and stop, row and stop, column and stop."""
    at_once = max(1, side * side // max(n * m, 1))
    return [
        (h, min(h + at_once, n_heads), i, min(i + side, n), j, min(j + side, m))
        for h in range(0, n_heads, at_once)
        for i in range(0, n, side)
        for j in range(0, m, side)
    ]


@jit(fastmath=True)
def _l1(A, B, out, head, head_stop, row, row_stop, column, column_stop):  # type: ignore[no-untyped-def]
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
def _larger(largest, a, b):  # type: ignore[no-untyped-def]
    difference = abs(a - b)
    return difference if difference > largest else largest


@jit()
def _linf(A, B, out, head, head_stop, row, row_stop, column, column_stop):  # type: ignore[no-untyped-def]
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
def _chi2(A, B, out, head, head_stop, row, row_stop, column, column_stop):  # type: ignore[no-untyped-def]
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
