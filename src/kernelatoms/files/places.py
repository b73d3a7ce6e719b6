"""Columns that are known by their places, in files without names."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.files.identifiers import REASONS
from kernelatoms.files.tables import Table, TableError, shortened

if TYPE_CHECKING:  # models import scikit-learn, which takes a second
    from kernelatoms.files.records import ModelRecord

Array = NDArray[Any]


def rows_by_place(table: Table, record: "ModelRecord", n_features: int, notes: list[str]) -> Array:
    """Return the features of a file without names, which may lack label and left-out columns."""
    X = table.numbers
    if X.shape[1] == n_features:
        return X
    label = [record.label] if record.label and record.label.isdigit() else []
    spare = [name for name in record.left_out if name.isdigit()]
    like_the_first = _places(table, [*label, *spare], absent=[])
    without_label = _places(table, spare, absent=label)
    without_spare = _places(table, label, absent=spare)
    if without_label is not None and not all(
        _could_number(X[:, place]) for place, name in without_label.items()
        if record.left_out[name] in REASONS
    ):  # fmt: skip
        without_label = None
    for places in (like_the_first, without_label, without_spare):
        if places and X.shape[1] - len(places) == n_features:
            if places is not like_the_first:
                shown = shortened([table.columns[place] for place in sorted(places)])
                notes.append(f"Not used, since the model leaves them out: {shown}.")
            return X[:, [i for i in range(X.shape[1]) if i not in places]]
    raise TableError(
        f"{table.path} has {X.shape[1]:,} columns of numbers, but the model was fitted on "
        f"{n_features:,}."
    )


def _places(table: Table, names: list[str], *, absent: list[str]) -> dict[int, str] | None:
    """Return where columns, named by their place, are in a file that lacks some others.

    None if one of them is not there; columns of words have no place among the numbers.
    """
    places = {}
    for name in names:
        here = str(int(name) - sum(int(other) < int(name) for other in absent))
        if here in table.place_of:
            places[table.place_of[here]] = name
        elif here not in table.words:
            return None
    return places


def _could_number(values: Array) -> bool:
    whole = np.array_equal(values, np.round(values))
    return whole and len(np.unique(values)) == len(values)


def same_places(
    table: Table, record: "ModelRecord", sources: Sequence[str]
) -> dict[str, str] | None:
    """Return where the columns of a model, known by their places, are in a file without names.

    As in the training file; or in a file that lacks the label, or that and what numbers rows.
    None if that cannot be told.
    """
    every = [*sources, *record.left_out, *([record.label] if record.label else [])]
    if not all(name.isdigit() for name in every):
        return None
    numbered = [name for name, why in record.left_out.items() if why in REASONS]
    label = [record.label] if record.label else []
    n_here = sum(name.isdigit() for name in table.names)
    for absent in ([], label, numbered, [*label, *numbered]):
        if n_here == len(every) - len(absent):
            gone = sorted(map(int, absent))
            return {
                str(int(name) - sum(other < int(name) for other in gone)): name
                for name in every if name not in absent
            }  # fmt: skip
    return None


def renamed(table: Table, names: dict[str, str]) -> Table:
    """Return a table whose columns are called as the training file's."""
    return replace(
        table,
        columns=[names.get(name, name) for name in table.columns],
        words={names.get(name, name): words for name, words in table.words.items()},
        exact={names.get(name, name): values for name, values in table.exact.items()},
        mixed={names.get(name, name): trouble for name, trouble in table.mixed.items()},
    )
