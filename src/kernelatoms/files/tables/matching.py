"""The columns of a model in other files: by name, or by place in files without names."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.files.tables.column_kinds import encoded, feature_names
from kernelatoms.files.tables.roles import REASONS, sounds_like_identifier
from kernelatoms.files.tables.table import Table, TableError, repeated, shortened

if TYPE_CHECKING:  # models import scikit-learn, which takes a second
    from kernelatoms.files.models.record import ModelRecord


def rows_for(
    table: Table,
    record: "ModelRecord",
    n_features: int,
    new: dict[str, Counter[str]] | None = None,
) -> tuple[Array, list[str]]:
    """Return the rows of a file in the columns of a model, and what the reader should know.

    Parameters
    ----------
    table : Table
        What the file holds.
    record : ModelRecord
        The model's record, or that of a training set (``TrainingSet.record``).
    n_features : int
        How many features the model takes.
    new : dict of str to Counter, optional
        Where values that the model never saw are counted by column, over several parts of a table;
        ``about_new`` says which. By default a note does.

    Returns
    -------
    X : array of shape (n_rows, n_features)
        Numbers, NaN where missing.
    notes : list of str
        What the reader should know.
    """
    notes = list(table.notes)
    if record.columns is None:
        X = _rows_by_place(table, record, n_features, notes)
        refuse_infinite(X, None, table)
        return X, notes
    sources = record.sources
    if not table.named:
        table = _renamed(table, _same_places(table, record, sources))
    empty = {n for n in sources if n in table.words and _is_empty(table.words[n])}
    _check_columns(table, record, sources, empty)
    known = {*sources, *record.left_out, record.label}
    further = [name for name in table.names if name not in known]
    if further and table.named:
        notes.append(f"Not used, since the model does not know them: {shortened(further)}.")
    here: dict[str, list[str]] = {}
    columns, X = features_of(table, sources, record.encoded, empty, here)
    found = {} if new is None else new
    for name, values in here.items():
        found.setdefault(name, Counter()).update(values)
    if new is None and found:
        notes.append(about_new(found))
    refuse_infinite(X, columns, table)
    return X, notes


def features_of(
    table: Table,
    sources: Sequence[str],
    special: dict[str, dict[str, Any]],
    empty: set[str] | frozenset[str] = frozenset(),
    new: dict[str, list[str]] | None = None,
) -> tuple[list[str], Array]:
    """Return names and values of features; values that an encoding does not know go to ``new``."""
    if not special and not empty:
        places = [table.place_of[name] for name in sources]
        whole = places == list(range(len(table.columns)))
        return list(sources), table.numbers if whole else table.numbers[:, places]
    names = {name: feature_names(name, special[name]) for name in special}
    columns = [feature for name in sources for feature in names.get(name, [name])]
    if twins := repeated(columns):
        raise TableError(
            f"{table.path}: two features would be called {twins[0]!r}; rename a column."
        )
    X = np.full((len(table), len(columns)), np.nan)
    here, there = [], []
    place = 0
    for name in sources:
        if name in special:
            width = len(names[name])
            X[:, place : place + width], odd = encoded(table.column(name), special[name])
            if odd and new is not None:
                new[name] = odd
            place += width
            continue
        if name not in empty:
            here.append(place)
            there.append(table.place_of[name])
        place += 1
    X[:, here] = table.numbers[:, there]
    return columns, X


def about_new(new: dict[str, Counter[str]]) -> str:
    """Return a note about values that the model never saw, by column."""
    parts = [
        f"{values.total():,} of {name!r} ({shortened(sorted(values), 3)})"
        for name, values in list(new.items())[:8]
    ]
    more = f" and those of {len(new) - 8:,} more columns" if len(new) > 8 else ""
    return (
        f"Values that the model never saw: {', '.join(parts)}{more}. They count as none of those "
        "that it knows."
    )


def _check_columns(
    table: Table, record: "ModelRecord", sources: Sequence[str], empty: set[str]
) -> None:
    """Refuse a file that lacks columns of the model, or has words in place of numbers."""
    words = [n for n in sources if n in table.words and n not in empty and n not in record.encoded]
    for name in words:
        if name in table.mixed:
            raise TableError(table.mixed[name])
    if words:
        raise TableError(
            f"{table.path}: the model takes {shortened(words)} as numbers, but the file has words."
        )
    missing = [n for n in sources if n not in table.place_of and n not in table.words]
    if missing:
        raise TableError(
            f"{table.path} lacks {shortened(missing)}, which the model was fitted on; it has "
            f"{shortened(table.names)}."
        )


def row_identifiers(table: Table, record: "ModelRecord") -> dict[str, Array]:
    """Return the columns that name rows instead of describing them."""
    if not table.named:
        return {}
    used = {*record.sources, record.label} if record.columns is not None else {record.label}
    noted = {name for name, why in record.left_out.items() if why in REASONS}
    noted |= table.unnamed | table.index
    names = [name for name in table.names if name not in used]
    names = [name for name in names if name in noted or sounds_like_identifier(name)]
    return {name: table.column(name) for name in names}


def as_written(identifier: Any) -> Any:
    """Return an identifier as a file writes it: numbers may be read as floats, 17 as 17.0."""
    whole = isinstance(identifier, float | np.floating) and float(identifier).is_integer()
    return int(identifier) if whole else identifier


def refuse_infinite(
    X: Array, columns: Sequence[str] | None, table: Table, rows: Array | None = None
) -> None:
    """Refuse infinite values and say where they are: no method here can use them."""
    with np.errstate(invalid="ignore", over="ignore"):
        if np.isfinite(X.sum()):  # far faster than a look at each, and no infinity hides in it
            return
    infinite = np.isinf(X)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        name = column if columns is None else repr(columns[column])
        row = table.first_row + (row if rows is None else rows[row])
        raise TableError(
            f"{table.path}: column {name} is infinite in row {row} (counted from 0); give "
            "a number, or leave it empty if it is missing."
        )


def _is_empty(column: Array) -> bool:
    return column.dtype.kind == "O" and all(value is None for value in column)


def _rows_by_place(table: Table, record: "ModelRecord", n_features: int, notes: list[str]) -> Array:
    """Return the features of a file without names, with or without label and left-out columns."""
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
    """Return the places of columns in a file without ``absent`` ones; None if one is not there."""
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


def _same_places(table: Table, record: "ModelRecord", sources: Sequence[str]) -> dict[str, str]:
    """Return the model's names of columns in a file without names; label or index may be absent."""
    label = [record.label] if record.label else []
    numbered = [name for name, why in record.left_out.items() if why in REASONS]
    every = [*sources, *record.left_out, *label]
    n_here = sum(name.isdigit() for name in table.names)
    for absent in ([], label, numbered, [*label, *numbered]):
        if n_here == len(every) - len(absent) and all(name.isdigit() for name in every):
            gone = list(map(int, absent))
            return {
                str(int(name) - sum(other < int(name) for other in gone)): name
                for name in every if name not in absent
            }  # fmt: skip
    raise TableError(
        f"{table.path} has no column names, but the model knows its columns by name: "
        f"{shortened(sources)}."
    )


def _renamed(table: Table, names: dict[str, str]) -> Table:
    """Return a table with other column names."""

    def renamed(held: dict[str, Any]) -> dict[str, Any]:
        return {names.get(name, name): value for name, value in held.items()}

    columns = [names.get(name, name) for name in table.columns]
    words, exact, mixed = renamed(table.words), renamed(table.exact), renamed(table.mixed)
    return replace(table, columns=columns, words=words, exact=exact, mixed=mixed)
