"""Rows of one class of a source, and a pass over the rows of all classes at once."""

from collections.abc import Callable, Iterator, Mapping
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


def reduce_routed(
    source: RowSource, labels: NDArray[np.intp], works: Mapping[int, Work]
) -> dict[int, Any]:
    """Return the sum over the rows of each class, read in one pass.

    Parameters
    ----------
    source : RowSource
        The rows.
    labels : int array of shape (n_rows,)
        The number of the class of every row.
    works : mapping
        For some classes ``work(block, start)``, whose results add up; ``start`` counts rows of the
        class.

    Returns
    -------
    dict
        The sums by class, added along the tree over the blocks of the source.
    """
    members = {label: np.flatnonzero(labels == label) for label in works}

    def work(block: Any, start: int) -> dict[int, Any]:
        own = labels[start : start + len(block)]
        found = {}
        for label, of_class in works.items():
            rows = np.flatnonzero(own == label)
            if len(rows):
                first = int(np.searchsorted(members[label], start))
                found[label] = of_class(block[rows], first)
        return found

    n_bytes = (source.n_features or 1) * source.dtype.itemsize
    total: dict[int, Any] = source.reduce(
        work, block_rows=max(1, _BLOCK_BYTES // n_bytes), add=_added
    )
    return total


def _added(left: dict[int, Any], right: dict[int, Any]) -> dict[int, Any]:
    """Return sums by class, of classes that may be in one of two places alone."""
    return {
        label: left[label] + right[label] if label in left and label in right else one
        for label, one in (left | right).items()
    }
