"""Rows of one class of a source, and a pass over the rows of all classes at once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.rows.mapped import MappedRows
from kernelatoms.rows.source import RowSource

#: Called with a block of rows and the number of its first row.
Work = Callable[[Any, int], Any]

#: Bytes of the blocks of a pass over the rows of all classes.
_BLOCK_BYTES = 1 << 23


class ClassRows(RowSource):
    """The rows of a source that have one label.

    Parameters
    ----------
    parent : RowSource
        The source.
    labels : int array of shape (n_rows,)
        The number of the class of every row.
    label : int
        The number of the class.
    """

    def __init__(self, parent: RowSource, labels: NDArray[np.intp], label: int) -> None:
        self.parent, self.label, self.n_classes = parent, label, int(labels.max()) + 1
        self.members: NDArray[np.intp] = np.flatnonzero(labels == label)
        super().__init__(len(self.members), parent.n_features, parent.dtype, parent.feature_names)

    def identity(self) -> dict[str, Any]:
        """Return the identity of the source, and which class it is."""
        return {"kind": "class", "of": self.parent.identity(), "label": self.label}

    def _read(self, block_rows: int) -> Iterator[Any]:
        """Yield the rows of the class, block by block; of several classes see ``reduce_routed``."""
        waiting: list[Any] = []
        start = n_waiting = 0
        for block in self.parent.blocks(self.parent.default_block_rows):
            stop = start + len(block)
            low, high = np.searchsorted(self.members, [start, stop])
            waiting.append(block[self.members[low:high] - start])
            n_waiting += high - low
            start = stop
            while n_waiting >= block_rows:
                rows = np.concatenate(waiting)
                yield rows[:block_rows]
                waiting, n_waiting = [rows[block_rows:]], n_waiting - block_rows
        if n_waiting:
            yield np.concatenate(waiting)

    def _take(self, indices: NDArray[np.intp]) -> Any:
        return self.parent.take(self.members[indices])


def class_behind(rows: RowSource) -> tuple[ClassRows, Callable[[Any], Any]] | None:
    """Return the rows of a class behind mapped rows, and what is made of them; None without any."""
    if isinstance(rows, ClassRows):
        return rows, lambda block: block
    if not isinstance(rows, MappedRows):
        return None
    found = class_behind(rows.parent)
    if found is None:
        return None
    of_class, inner = found
    return of_class, lambda block: rows.function(inner(block))


def reduce_routed(source: RowSource, works: Sequence[tuple[ClassRows, Work]]) -> list[Any]:
    """Return the sum over the rows of each of some classes of a source, read in one pass.

    Parameters
    ----------
    source : RowSource
        The rows.
    works : sequence of (ClassRows, callable)
        The rows of a class and ``work(block, start)``, whose results add up; ``start`` counts rows
        of the class.

    Returns
    -------
    list
        The sums, added along the tree over the blocks of the source.
    """

    def work(block: Any, start: int) -> dict[int, Any]:
        found = {}
        for number, (rows, of_class) in enumerate(works):
            first, last = np.searchsorted(rows.members, [start, start + len(block)])
            if last > first:
                found[number] = of_class(block[rows.members[first:last] - start], int(first))
        return found

    n_bytes = (source.n_features or 1) * source.dtype.itemsize
    total = source.reduce(work, block_rows=max(1, _BLOCK_BYTES // n_bytes), add=_added)
    return [total[number] for number in range(len(works))]


def _added(left: dict[int, Any], right: dict[int, Any]) -> dict[int, Any]:
    """Return sums by class, of classes that may be in one of two places alone."""
    for number, one in right.items():
        if number in left:
            left[number] += one
        else:
            left[number] = one
    return left
