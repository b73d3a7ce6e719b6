"""Labels of a table, exactly as written.

Texts stay texts (``007`` is not ``7``), integers stay integers of any length, truth values stay
truth values. Few different real numbers name classes by their text; many are a quantity.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelatoms.files.tables.table import Array, Table, TableError, is_missing, shortened

# More real-valued classes than this are a quantity, not a label.
_MOST_REAL_CLASSES = 20
# Whole numbers that are more, with fewer rows each than this, look like one.
_FEWEST_ROWS_OF_A_CLASS = 10
# Classes of fewer rows than this are tiny.
_TINY = 3


def read_labels(table: Table, label: str) -> tuple[Array, Array]:
    """Return the labels of the rows that have one, and a mask of these rows."""
    if label in table.place_of:
        _refuse_infinite(table, label)
    elif label not in table.words:
        raise TableError(
            f"label: {table.path} has no column {label!r}; it has {shortened(table.names)}."
        )
    column = table.column(label)
    if column.dtype.kind == "O":
        kept = np.array([not is_missing(value) for value in column])
        y = _as_they_stand(column[kept].tolist())
    elif column.dtype.kind == "f":
        kept = ~np.isnan(column)
        y = _from_reals(label, column[kept])
    else:
        kept, y = np.ones(len(column), bool), column
    if not kept.any():
        raise TableError(f"label: the column {label!r} of {table.path} is empty.")
    return y, kept


def labels_for(table: Table, label: str, classes: Array) -> tuple[Array, Array]:
    """Return the labels of a file as a model writes its classes, and a mask of the rows with one.

    The labels have the type of ``classes`` if all are known; else all are texts.
    """
    y, kept = read_labels(table, label)
    # '3' and 3 are the same label when one file is text and the other a matrix.
    written = {str(c): c for c in classes.tolist()}
    if {text.casefold() for text in written} == {"true", "false"}:  # and 'TRUE' is true
        folded = {text.casefold(): c for text, c in written.items()}
        written |= {
            text: folded[text.casefold()]
            for text in set(map(str, y.tolist())) if text.casefold() in folded
        }  # fmt: skip
    same = [written.get(str(value), value) for value in y.tolist()]
    if all(str(value) in written for value in y.tolist()):
        return np.array(same, dtype=classes.dtype), kept
    return np.array([str(value) for value in same]), kept


def doubts_about(y: Array, label: str) -> list[str]:
    """Return the reasons to doubt that labels name classes."""
    classes, counts = np.unique(y, return_counts=True)
    n_tiny = int(np.count_nonzero(counts < _TINY))
    numbers = y.dtype.kind in "iuf"
    many = numbers and len(classes) > _MOST_REAL_CLASSES
    if many and len(y) < _FEWEST_ROWS_OF_A_CLASS * len(classes):
        return [
            f"{label!r} holds {len(classes):,} different numbers in {len(y):,} rows: is it a "
            "quantity rather than a class? These models predict classes, no "
            "quantities; cut it into a few classes first (low, middle, high), or use a regression."
        ]
    if len(classes) > 2 and 2 * n_tiny > len(classes):
        return [
            f"{n_tiny:,} of {len(classes):,} classes in {label!r} have fewer than {_TINY} rows: "
            "nothing can be learned about these. Is another column the label? Else put rare "
            "classes together, or leave them out."
        ]
    return []


def _refuse_infinite(table: Table, label: str) -> None:
    infinite = np.flatnonzero(np.isinf(table.numbers[:, table.place_of[label]]))
    if len(infinite):
        raise TableError(
            f"label: {label!r} of {table.path} is infinite in row {infinite[0]} (counted from "
            "0), which names no class; leave it empty if it is missing."
        )


def _from_reals(label: str, y: Array) -> Array:
    if np.array_equal(y, np.round(y)):
        if len(y) and np.abs(y).max() >= 2.0**63:
            return np.array([str(int(value)) for value in y])
        return y.astype(np.int64)
    n_different = len(np.unique(y))
    if n_different > _MOST_REAL_CLASSES:
        raise TableError(
            f"label: {label!r} holds {n_different:,} different real numbers: a quantity, and a "
            "label names classes. Cut it into a few classes first (low, middle, high), or use a "
            "regression."
        )
    return y.astype(str)


def _as_they_stand(values: Sequence[Any]) -> Array:
    """Return objects of one kind as an array of that kind, others as texts."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return np.array(values, dtype=bool)
    if kinds == {int} and -(2**63) <= min(values) <= max(values) < 2**63:
        return np.array(values, dtype=np.int64)
    return np.array([str(value) for value in values])
