"""The K smallest values of every row, found while a matrix passes by in blocks of columns.

Each row knows the worst of its K best. Values that beat it are collected, and when there are 2 K
the better half is selected: a few steps for each. Most columns beat nothing, and a count of those
that do, 64 columns at a time, is all that is done with the others: it vectorises.

See docs/decisions/027-local-problems.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.layout import check_shape

Array = NDArray[Any]

# Columns that are looked at together.
_CHUNK = 64


@jit()
def _is_worse(value, index, other, other_index):  # type: ignore[no-untyped-def]
    """Whether one entry comes after another: by value, ties by index."""
    return value > other or (value == other and index > other_index)


@jit()
def _select(values, indices, n_kept, n):  # type: ignore[no-untyped-def]
    """Bring the best of n entries to the front, the worst of them to place n_kept - 1."""
    low, high, wanted = 0, n - 1, n_kept - 1
    while low < high:
        middle = (low + high) // 2
        value, index = values[middle], indices[middle]
        i, j = low, high
        while i <= j:
            while _is_worse(value, index, values[i], indices[i]):
                i += 1
            while _is_worse(values[j], indices[j], value, index):
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                indices[i], indices[j] = indices[j], indices[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break


@jit(fastmath=True)
def _keep(block, offsets, factor, first, indices, values):  # type: ignore[no-untyped-def]
    """Let offsets + factor * block, columns first and following, compete with what was kept."""
    n_columns, n_kept = block.shape[1], values.shape[1]
    best, found = np.empty(2 * n_kept, values.dtype), np.empty(2 * n_kept, np.int32)
    for s in range(block.shape[0]):
        row = block[s]
        best[:n_kept], found[:n_kept] = values[s], indices[s]
        worst, n = values[s, n_kept - 1], n_kept
        for start in range(0, n_columns, _CHUNK):
            stop = min(start + _CHUNK, n_columns)
            count = 0
            for j in range(start, stop):
                count += offsets[j] + factor * row[j] < worst
            if count == 0:
                continue
            for j in range(start, stop):
                value = offsets[j] + factor * row[j]
                # Columns come in order: of equal values those that are there have lower numbers.
                if value < worst:
                    best[n], found[n] = value, first + j
                    n += 1
                    if n == 2 * n_kept:
                        _select(best, found, n_kept, n)
                        worst, n = best[n_kept - 1], n_kept
        _select(best, found, n_kept, n)
        values[s], indices[s] = best[:n_kept], found[:n_kept]


@jit()
def _sort(indices, values):  # type: ignore[no-untyped-def]
    """Sort every row by value, ties by index: insertion at shrinking distances."""
    n = values.shape[1]
    for s in range(len(values)):
        best, found = values[s], indices[s]
        for gap in (701, 301, 132, 57, 23, 10, 4, 1):
            for i in range(gap, n):
                value, index, j = best[i], found[i], i
                while j >= gap and _is_worse(best[j - gap], found[j - gap], value, index):
                    best[j], found[j] = best[j - gap], found[j - gap]
                    j -= gap
                best[j], found[j] = value, index


def none_yet(
    n_rows: int, n_kept: int, dtype: Any, *, like: Array | None = None
) -> tuple[NDArray[np.int32], Array]:
    """Return the K smallest of nothing: indices -1 and values infinite, (n_rows, n_kept) each.

    ``like`` tells other machines where; here there is one place.
    """
    return np.full((n_rows, n_kept), -1, np.int32), np.full((n_rows, n_kept), np.inf, dtype)


def keep_smallest(
    block: Array,
    first: int,
    indices: NDArray[np.int32],
    values: Array,
    *,
    offsets: Array | None = None,
    factor: float = 1.0,
) -> None:
    """Take the next columns of a matrix into account; ``in_order`` ends it.

    Parameters
    ----------
    block : (n, m) float32 or float64
        Columns first, first + 1, ... of the matrix; blocks come in their order. NaN is never kept.
    first : int
        The number of the first of them.
    indices : (n, K) int32
        Columns of the K smallest so far, from ``none_yet``; changed.
    values : (n, K)
        Their values, in the type of ``block``; changed.
    offsets : (m,), optional
        Compare offsets + factor * block instead: distances, from inner products.
    factor : float
        See there.
    """
    n_rows, n_columns = block.shape
    if offsets is None:
        offsets = np.zeros(n_columns, block.dtype)
    check_shape(offsets, "offsets", (n_columns,))
    check_shape(values, "values", (n_rows, values.shape[1]))
    check_shape(indices, "indices", values.shape)
    if not values.shape[1]:
        return
    offsets = np.ascontiguousarray(offsets, block.dtype)
    _keep(np.ascontiguousarray(block), offsets, block.dtype.type(factor), first, indices, values)


def in_order(indices: NDArray[np.int32], values: Array) -> None:
    """Sort what was kept, ascending by value, ties by index; what is missing (-1) comes last."""
    check_shape(indices, "indices", values.shape)
    _sort(indices, values)


def smallest(values: Array, n_kept: int) -> tuple[NDArray[np.int32], Array]:
    """Return the columns of the smallest values of every row, and these.

    Parameters
    ----------
    values : (n, m) float32 or float64
        A matrix.
    n_kept : int
        K, from 1 to m.

    Returns
    -------
    indices : (n, K) int32
        Ascending by value, ties by index.
    values : (n, K)
        The values.
    """
    if not 1 <= n_kept <= values.shape[1]:
        raise ValueError(f"n_kept must be from 1 to {values.shape[1]}, got {n_kept}.")
    indices, kept = none_yet(len(values), n_kept, values.dtype)
    keep_smallest(values, 0, indices, kept)
    in_order(indices, kept)
    return indices, kept
