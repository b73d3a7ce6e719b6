"""The K smallest values of every row of a matrix that is given in blocks of columns.

Values below the worst of a row's K best are collected; when there are 2 K, the better half is
selected. Most columns are not below it, and all that they cost is a count, 64 columns at a time,
which vectorises.

See docs/decisions/027-local-problems.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.products import check_shape
from kernelatoms.engine.cpu.scale import Array

# Columns that are looked at together.
_CHUNK = 64


@jit()
def _is_worse(value, index, other, other_index):
    """Whether one entry comes after another: by value, ties by index."""
    return value > other or (value == other and index > other_index)


@jit()
def _select(values, indices, n_kept, n):
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
def _keep(block, offsets, factor, first, indices, values):
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


class TopK:
    """The K smallest values of every row, and their columns.

    ``indices`` (n, K), int32, are columns, -1 where fewer than K have been seen; ``values`` (n, K)
    their values, infinite where there is no column.
    """

    def __init__(self, indices: NDArray[np.int32], values: Array) -> None:
        self.indices, self.values = indices, values

    @classmethod
    def empty(cls, n_rows: int, n_kept: int, dtype: Any, *, like: Array | None = None) -> "TopK":
        """Return the K smallest of no columns; ``like`` is for the machines of devices."""
        shape = (n_rows, n_kept)
        return cls(np.full(shape, -1, np.int32), np.full(shape, np.inf, dtype))

    def push(
        self, block: Array, first: int, *, offsets: Array | None = None, factor: float = 1.0
    ) -> None:
        """Take the next columns of the matrix, ``first`` and on, into account.

        Blocks (n, m) come in ascending order, in the type of ``values``. NaN is never kept. With
        ``offsets`` (m,), offsets + factor * block are compared: distances, from inner products.
        """
        n_rows, n_columns = block.shape
        if offsets is None:
            offsets = np.zeros(n_columns, block.dtype)
        check_shape(offsets, "offsets", (n_columns,))
        check_shape(self.values, "values", (n_rows, self.values.shape[1]))
        check_shape(self.indices, "indices", self.values.shape)
        if self.values.shape[1]:
            block, offsets = np.ascontiguousarray(block), np.ascontiguousarray(offsets, block.dtype)
            _keep(block, offsets, block.dtype.type(factor), first, self.indices, self.values)

    def sorted(self) -> tuple[NDArray[np.int32], Array]:
        """Return indices and values, ascending by value, ties by index; -1 comes last."""
        order = np.lexsort((self.indices, self.values))
        self.indices = np.take_along_axis(self.indices, order, axis=1)
        self.values = np.take_along_axis(self.values, order, axis=1)
        return self.indices, self.values


def smallest(values: Array, n_kept: int) -> tuple[NDArray[np.int32], Array]:
    """Return the columns (n, K) of the smallest values of every row (n, m), and these values.

    Both are ascending by value, ties by index; K is ``n_kept``, from 1 to m.
    """
    if not 1 <= n_kept <= values.shape[1]:
        raise ValueError(f"n_kept must be from 1 to {values.shape[1]}, got {n_kept}.")
    kept = TopK.empty(len(values), n_kept, values.dtype)
    kept.push(values, 0)
    return kept.sorted()
