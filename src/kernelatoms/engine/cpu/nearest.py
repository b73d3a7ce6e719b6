"""The K smallest values of every row, found while a matrix passes by in blocks of columns.

Each row keeps a heap of its K best, the worst on top. Almost no value beats that one, and a count
of those that do, 64 columns at a time, is all that is done with the others: it vectorises.
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
def _sink(values, indices, start, stop):  # type: ignore[no-untyped-def]
    """Let an entry of the heap values[:stop] sink to where nothing under it is worse."""
    i = start
    value, index = values[i], indices[i]
    while True:
        child = 2 * i + 1
        if child >= stop:
            break
        if child + 1 < stop and _is_worse(
            values[child + 1], indices[child + 1], values[child], indices[child]
        ):
            child += 1
        if not _is_worse(values[child], indices[child], value, index):
            break
        values[i], indices[i] = values[child], indices[child]
        i = child
    values[i], indices[i] = value, index


@jit(fastmath=True)
def _keep(block, offsets, factor, first, indices, values):  # type: ignore[no-untyped-def]
    """Let offsets + factor * block, columns first and following, compete with the heaps."""
    n_columns = block.shape[1]
    for s in range(block.shape[0]):
        row, best, found = block[s], values[s], indices[s]
        n_kept = len(best)
        for start in range(0, n_columns, _CHUNK):
            stop = min(start + _CHUNK, n_columns)
            worst = best[0]
            count = 0
            for j in range(start, stop):
                count += offsets[j] + factor * row[j] < worst
            if count == 0:
                continue
            for j in range(start, stop):
                value = offsets[j] + factor * row[j]
                # Columns come in order: of equal values those that are there have lower numbers.
                if value < best[0]:
                    best[0], found[0] = value, first + j
                    _sink(best, found, 0, n_kept)


@jit()
def _sort(indices, values):  # type: ignore[no-untyped-def]
    """Turn heaps into ascending rows."""
    for s in range(len(values)):
        best, found = values[s], indices[s]
        for stop in range(len(best) - 1, 0, -1):
            best[0], best[stop] = best[stop], best[0]
            found[0], found[stop] = found[stop], found[0]
            _sink(best, found, 0, stop)


def none_yet(n_rows: int, n_kept: int, dtype: Any) -> tuple[NDArray[np.int32], Array]:
    """Return the K smallest of nothing: indices -1 and values infinite, (n_rows, n_kept) each."""
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
