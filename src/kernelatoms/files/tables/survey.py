"""What one pass over a large table finds before anything is learned: a sample, labels, numbering.

Columns are judged by a random sample of rows (``features.training_set``). The sample also has a row
of every class and of every value of a column of words, so that none is unknown later. What a sample
cannot show is looked for in all rows: columns that number them.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array
from kernelatoms.files.tables.large import LargeTable, Sample, draw_sample
from kernelatoms.files.tables.roles import FEWEST_ROWS, labels_of, read_labels
from kernelatoms.files.tables.table import Table, TableError, is_missing

# More different labels are a quantity; of so many words, each has a row in the sample.
_MOST_LABELS, _MOST_WORDS = 10_000, 200


@dataclass(frozen=True)
class Survey:
    """What is known of a large table.

    Parameters
    ----------
    sample : Sample
        Random rows, and one of every class and word.
    classes : array of shape (n_classes,) or None
        The labels, ascending; None without a column of labels.
    numbers : int array of shape (n_rows,)
        The number of the class of every row, -1 where it has none; 0 without labels.
    numbered : list of str
        Columns that number the rows.
    """

    sample: Sample
    classes: Array | None
    numbers: NDArray[np.int32]
    numbered: list[str]


def survey(large: LargeTable, label: str | None, n_sample: int, seed: int) -> Survey:
    """Look at all rows of a table once."""
    look = _Look(label)
    sample = draw_sample(large, n_sample, seed, look)
    # Messages about a sample would count its rows instead of the file's.
    table = replace(sample.table, mixed={name: look.mixed.get(name, said)
                                         for name, said in sample.table.mixed.items()})  # fmt: skip
    classes, numbers = look.labels(sample.n_rows)
    numbered = look.numbered(sample.n_rows, table)
    return Survey(replace(sample, table=table), classes, numbers, numbered)


class _Look:
    """Looks at every part of a table."""

    def __init__(self, label: str | None) -> None:
        self._label = label
        self._number_of: dict[Any, int] = {}
        self._found: list[NDArray[np.int32]] = []
        self._words: dict[str, set[str]] = {}
        self._start: dict[str, float] | None = None  # of columns that count 1, 2, ... so far
        self._first: tuple[str, float, float] | None = None  # first column: name, lowest, highest
        self.mixed: dict[str, str] = {}

    def __call__(self, table: Table, start: int) -> NDArray[np.intp]:
        """Return rows that the sample must have."""
        self.mixed = {**table.mixed, **self.mixed}
        self._look_at_numbers(table, start)
        wanted = [self._new_words(table, name) for name in table.words if name != self._label]
        if self._label is not None:
            wanted.append(self._new_labels(table, self._label))
        return np.unique(np.concatenate([np.empty(0, np.intp), *wanted])).astype(np.intp)

    def labels(self, n_rows: int) -> tuple[Array | None, NDArray[np.int32]]:
        """Return the classes, and the number of the class of every row."""
        if self._label is None:
            return None, np.zeros(n_rows, np.int32)
        if not self._number_of:
            raise TableError(f"label: the column {self._label!r} is empty.")
        names = labels_of(self._label, list(self._number_of))
        classes, rank = np.unique(names, return_inverse=True)
        rank = np.append(rank, -1).astype(np.int32)  # the last one is that of no label
        return classes, rank[np.concatenate(self._found)].astype(np.int32, copy=False)

    def numbered(self, n_rows: int, sample: Table) -> list[str]:
        """Return the columns of whole numbers that number all rows."""
        if n_rows < FEWEST_ROWS:
            return []
        found = list(self._start or {})
        if self._first is not None and self._first[0] not in found:
            name, low, high = self._first
            values = sample.column(name)
            if high - low == n_rows - 1 and len(np.unique(values)) == len(values):
                found.append(name)
        return found

    def _new_labels(self, table: Table, label: str) -> NDArray[np.intp]:
        before = len(self._number_of)
        read_labels(table, label, may_be_empty=True)  # refuses what is no label
        column = table.column(label)
        if column.dtype.kind == "O":
            kept = np.array([not is_missing(value) for value in column], bool)
            known = [self._number_of.setdefault(v, len(self._number_of)) for v in column[kept]]
            numbers = np.array(known, np.int32)
        else:
            kept = ~np.isnan(column)
            values, inverse = np.unique(column[kept], return_inverse=True)
            known = [self._number_of.setdefault(v, len(self._number_of)) for v in values.tolist()]
            numbers = np.array(known, np.int32)[inverse]
        if len(self._number_of) > _MOST_LABELS:
            raise TableError(
                f"label: {label!r} holds more than {_MOST_LABELS:,} different values: a quantity, "
                "or a name of each row, and a label names classes."
            )
        codes = np.full(len(table), -1, np.int32)
        codes[kept] = numbers
        self._found.append(codes)
        new, first = np.unique(codes, return_index=True)
        return first[new >= before]

    def _new_words(self, table: Table, name: str) -> NDArray[np.intp]:
        known = self._words.setdefault(name, set())
        rows = []
        if len(known) <= _MOST_WORDS:
            for row, value in enumerate(table.words[name]):
                if isinstance(value, str) and value not in known:
                    known.add(value)
                    rows.append(row)
                    if len(known) > _MOST_WORDS:
                        break
        return np.array(rows, np.intp)

    def _look_at_numbers(self, table: Table, start: int) -> None:
        if not table.columns or table.image_shape is not None:
            self._start = {}
            return
        top = table.numbers[0] - start
        if self._start is None:
            self._start = dict(zip(table.columns, top.tolist(), strict=True))
            self._start.pop(self._label or "", None)
            name = next((name for name in table.columns if name != self._label), None)
            self._first = None if name is None else (name, np.inf, -np.inf)
        counted = np.arange(start, start + len(table))
        self._start = {
            name: first for name, first in self._start.items()
            if first == np.rint(first) and name in table.place_of
            and np.array_equal(table.numbers[:, table.place_of[name]], first + counted)
        }  # fmt: skip
        if self._first is not None:
            name, low, high = self._first
            place = [table.place_of[name]] if name in table.place_of else []
            values = table.numbers[:, place]
            whole = bool(place) and np.array_equal(values, np.rint(values))
            self._first = (name, min(low, values.min()), max(high, values.max())) if whole else None
