"""Rows of one class of a source, and a pass over the rows of all classes at once."""

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kernelatoms.rows.mapped import MappedRows
from kernelatoms.rows.source import RowSource

#: Called with a block of rows and the number of its first row.
Work = Callable[..., Any]

#: Bytes of the blocks of a pass over the rows of all classes.
_BLOCK_BYTES = 1 << 23


class Classes(NamedTuple):
    """Of every row the number of its class, below 0 for none, and its place among that class."""

    labels: NDArray[np.intp]
    places: NDArray[np.intp]

    @classmethod
    def of(cls, labels: NDArray[np.intp]) -> Self:
        """Return the classes of rows with these numbers."""
        order = np.argsort(labels, kind="stable")
        ordered = labels[order]
        first = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
        sizes = np.diff(first, append=len(labels))
        places = np.empty(len(labels), np.intp)
        places[order] = np.arange(len(labels)) - np.repeat(first, sizes)
        return cls(labels, places)


class ClassRows(RowSource):
    """The rows of a source that have one label.

    Parameters
    ----------
    parent : RowSource
        The source.
    classes : Classes, or int array of shape (n_rows,)
        The number of the class of every row.
    label : int
        The number of the class.
    """

    def __init__(self, parent: RowSource, classes: Classes | NDArray[np.intp], label: int) -> None:
        self.classes = classes if isinstance(classes, Classes) else Classes.of(classes)
        self.parent, self.label = parent, label
        self.n_classes = int(self.classes.labels.max()) + 1
        self.members: NDArray[np.intp] = np.flatnonzero(self.classes.labels == label)
        super().__init__(len(self.members), parent.n_features, parent.dtype, parent.feature_names)
        self.is_distributed = parent.is_distributed

    def identity(self) -> dict[str, Any]:
        """Return the identity of the source, and which class it is."""
        return {"kind": "class", "of": self.parent.identity(), "label": self.label}

    @property
    def bytes_moved(self) -> int:  # type: ignore[override]
        """How much passes over the rows of all classes have sent."""
        return self.parent.bytes_moved

    def plan(self, n_atoms: int, n_features: int, n_dictionaries: int = 1) -> None:
        """Log what passes over all classes will do; the first class does.

        Parameters
        ----------
        n_atoms, n_features, n_dictionaries : int
            As in ``RowSource.plan``.
        """
        if self.label == 0:
            self.parent.plan(n_atoms, n_features, self.n_classes)

    def reduce(self, work: Work, **options: Any) -> Any:
        """Return the sum of work on blocks of the class; of Dask, where the rows are.

        Parameters
        ----------
        work : callable
            As in ``RowSource.reduce``.
        **options
            Its further arguments.

        Returns
        -------
        object
            The sum.
        """
        if not self.is_distributed:
            return super().reduce(work, **options)
        routed = self, with_values(work, options.get("beside", ()))
        return reduce_routed(self.parent, [routed], add=options.get("add", operator.add))[0]

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
    function = rows.function
    return of_class, lambda block: function(inner(block))


def with_values(work: Work, beside: Sequence[Any]) -> Work:
    """Return work that knows the values beside its rows, which are all rows of a class."""
    if not beside:
        return work

    def of_block(block: Any, start: int) -> Any:
        stop = start + len(block)
        return work(block, start, *(values[start:stop] for values in beside))

    return of_block


def reduce_routed(
    source: RowSource,
    works: Sequence[tuple[ClassRows, Work]],
    add: Callable[[Any, Any], Any] | None = operator.iadd,
) -> list[Any]:
    """Return the sum over the rows of each of some classes of a source, read in one pass.

    Parameters
    ----------
    source : RowSource
        The rows.
    works : sequence of (ClassRows, callable)
        The rows of a class and ``work(block, start)``, whose results add up; ``start`` counts rows
        of the class. All are of the same ``Classes``.
    add : callable or None
        Adds two results; it may change the first one and return it. With None nothing is added.

    Returns
    -------
    list
        The sums, added along the tree over the blocks of the source.
    """
    classes = works[0][0].classes
    assert all(rows.classes.labels is classes.labels for rows, _ in works)
    by_label = {rows.label: of_class for rows, of_class in works}

    def work(
        block: Any, _: int, labels: NDArray[np.intp], places: NDArray[np.intp]
    ) -> dict[int, Any]:
        found = {}
        for label, of_class in by_label.items():
            rows = np.flatnonzero(labels == label)
            if len(rows):
                found[label] = of_class(block[rows], int(places[rows[0]]))
        return found

    n_bytes = (source.n_features or 1) * source.dtype.itemsize
    total = source.reduce(
        work, block_rows=max(1, _BLOCK_BYTES // n_bytes), beside=classes,
        add=None if add is None else partial(_added, add),
    )  # fmt: skip
    return [None if add is None else total[rows.label] for rows, _ in works]


def _added(
    add: Callable[[Any, Any], Any], left: dict[int, Any], right: dict[int, Any]
) -> dict[int, Any]:
    """Return sums by class, of classes that may be in one of two places alone."""
    for number, one in right.items():
        left[number] = add(left[number], one) if number in left else one
    return left
