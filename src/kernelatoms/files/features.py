"""Which columns a model learns from, and the same columns of other files.

The rules, short enough to be remembered:

- columns of numbers are features; columns of words are left out, and said so;
- columns that number or name the rows (see ``identifiers``) are left out, and said so;
- columns are found by name in later files: their order does not matter, further ones are passed
  over, a missing one is an error;
- rows without a label are not learned from.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.files.identifiers import (
    INDEX,
    NAMED,
    REASONS,
    names_rows,
    sounds_like_identifier,
    why_identifier,
)
from kernelatoms.files.tables import Table, TableError, shortened

if TYPE_CHECKING:  # models import scikit-learn, which takes a second
    from kernelatoms.files.records import ModelRecord

Array = NDArray[Any]

_WORDS = "it holds words"
# More real-valued classes than this are a quantity, not a label.
_MOST_REAL_CLASSES = 20


@dataclass(frozen=True)
class TrainingSet:
    """Rows to learn from, with what was left out and why."""

    X: Array
    y: Array | None
    columns: list[str] | None
    left_out: dict[str, str]
    image_shape: tuple[int, int] | None
    notes: list[str]

    def describe(self) -> dict[str, Any]:
        """Return sizes and fingerprint for the model's record."""
        return {
            "rows": len(self.X),
            "features": self.X.shape[1],
            "missing": int(np.isnan(self.X).sum()),
            "fingerprint": fingerprint(self.X, self.y),
        }


def training_set(
    table: Table, label: str | None, ignore: Sequence[str] = (), keep: Sequence[str] = ()
) -> TrainingSet:
    """Choose features and labels by the rules above.

    Parameters
    ----------
    table : Table
        What the file holds.
    label : str or None
        The column of classes.
    ignore : sequence of str
        Further columns to leave out.
    keep : sequence of str
        Columns of numbers to learn from although they look like identifiers.
    """
    _check_wishes(table, label, ignore, keep)
    left_out = dict.fromkeys(ignore, "asked for by --ignore")
    left_out |= {
        name: reason
        for name, reason in why_left_out(table, label).items()
        if name not in (*ignore, *keep)
    }
    for name, trouble in table.mixed.items():
        if name != label and left_out.get(name, _WORDS) == _WORDS:
            raise TableError(trouble)
    notes = list(table.notes)
    y, kept = (None, np.ones(len(table), bool)) if label is None else _labels(table, label, notes)
    chosen = [i for i, name in enumerate(table.columns) if name != label and name not in left_out]
    numbered = [name for name in left_out if left_out[name] in REASONS and name in table.place_of]
    hint = f" --keep {numbered[0]!r} learns from it all the same." if numbered else ""
    if not chosen:
        raise TableError(
            f"{table.path} has no column of numbers to learn from"
            + (f" beside the label {label!r}" if label else "")
            + (f"; left out: {_reasons(left_out)}." if left_out else ".")
            + hint
        )
    if left_out:
        notes.append(f"Left out: {_reasons(left_out)}.{hint}")
    X = table.numbers if len(chosen) == len(table.columns) else table.numbers[:, chosen]
    X = X if kept.all() else X[kept]
    columns = [table.columns[i] for i in chosen]
    refuse_infinite(X, columns, table)
    whole = len(chosen) == len(table.columns)
    return TrainingSet(
        X, y, columns if table.named else None, left_out, table.image_shape if whole else None,
        notes,
    )  # fmt: skip


def why_left_out(table: Table, label: str | None) -> dict[str, str]:
    """Return the columns that ``fit`` leaves out of its own accord, each with the reason."""
    reasons = {}
    for name, words in table.words.items() if table.named else ():
        if name != label:
            reasons[name] = _why_words(table, name, words)
    others = [i for i, name in enumerate(table.columns) if name != label]
    for i in others:
        reason = _why_useless(table, i, first=i == others[0])
        if reason:
            reasons[table.columns[i]] = reason
    return reasons


def rows_for(table: Table, record: "ModelRecord", n_features: int) -> tuple[Array, list[str]]:
    """Return the rows of a file in the columns of a model, and what the reader should know."""
    notes = list(table.notes)
    if record.columns is None:
        X = _rows_by_place(table, record, n_features, notes)
        refuse_infinite(X, None, table)
        return X, notes
    if not table.named:
        raise TableError(
            f"{table.path} has no column names, but the model knows its columns by name: "
            f"{shortened(record.columns)}."
        )
    empty = [n for n in record.columns if n in table.words and _is_empty(table.words[n])]
    words = [n for n in record.columns if n in table.words and n not in empty]
    for name in words:
        if name in table.mixed:
            raise TableError(table.mixed[name])
    if words:
        raise TableError(
            f"{table.path}: the model takes {shortened(words)} as numbers, but the file has words."
        )
    missing = [name for name in record.columns if name not in table.place_of and name not in empty]
    if missing:
        raise TableError(
            f"{table.path} lacks {shortened(missing)}, which the model was fitted on; it has "
            f"{shortened(table.names)}."
        )
    known = {*record.columns, *record.left_out, record.label}
    further = [name for name in table.names if name not in known]
    if further:
        notes.append(f"Not used, since the model does not know them: {shortened(further)}.")
    X = np.full((len(table), len(record.columns)), np.nan)
    for i, name in enumerate(record.columns):
        if name not in empty:
            X[:, i] = table.numbers[:, table.place_of[name]]
    refuse_infinite(X, record.columns, table)
    return X, notes


def labels_for(table: Table, label: str, classes: Array) -> tuple[Array, Array]:
    """Return the labels of a file as the model writes them, and which rows have one."""
    y, kept = _labels(table, label, [])
    # '3' and 3 are the same label when one file is text and the other a matrix.
    written = {str(c): c for c in classes.tolist()}
    same = np.array([written.get(str(value), value) for value in y.tolist()], dtype=object)
    known = all(str(value) in written for value in y.tolist())
    return (same.astype(classes.dtype) if known else same.astype(str)), kept


def row_identifiers(table: Table, record: "ModelRecord") -> dict[str, Array]:
    """Return the columns that name rows rather than describe them, to stand beside results."""
    if not table.named:
        return {}
    learned = {*(record.columns or ()), record.label}
    others = [name for name in table.names if name not in learned]
    return {
        name: table.column(name)
        for name in others
        if record.left_out.get(name) in REASONS
        or name in table.unnamed | table.index
        or sounds_like_identifier(name)
    }


def fingerprint(X: Array, y: Array | None) -> str:
    """Return SHA-256 of rows and labels, however they are laid out in memory."""
    digest = hashlib.sha256(f"{X.dtype.str} {X.shape}".encode())
    for start in range(0, len(X), 4096):
        digest.update(np.ascontiguousarray(X[start : start + 4096]).tobytes())
    if y is not None:
        digest.update("\n".join(map(str, y.tolist())).encode())
    return digest.hexdigest()


def refuse_infinite(X: Array, columns: Sequence[str] | None, table: Table) -> None:
    """Say where infinite values stand: no method here can use them."""
    infinite = np.isinf(X)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        name = column if columns is None else repr(columns[column])
        raise TableError(
            f"{table.path}: column {name} is infinite in row {row + 1}; give a number, or leave "
            "it empty if it is missing."
        )


def _labels(table: Table, label: str, notes: list[str]) -> tuple[Array, Array]:
    """Return the labels of the rows that have one, and which rows these are."""
    if label not in table.names:
        raise TableError(
            f"--label: {table.path} has no column {label!r}; it has {shortened(table.names)}."
        )
    column = table.column(label)
    if column.dtype.kind == "O":
        kept = np.array([value is not None for value in column])
        y = np.array([str(value) for value in column[kept]])
    elif column.dtype.kind == "f":
        kept = ~np.isnan(column)
        y = column[kept]
        whole = y == np.round(y)
        if whole.all():
            y = y.astype(np.int64)
        elif len(np.unique(y)) > _MOST_REAL_CLASSES:
            raise TableError(
                f"--label: {label!r} holds {len(np.unique(y)):,} different real numbers; a label "
                "names classes."
            )
        else:
            y = y.astype(str)
    else:
        kept, y = np.ones(len(column), bool), column
    if not kept.any():
        raise TableError(f"--label: the column {label!r} of {table.path} is empty.")
    if not kept.all():
        notes.append(f"{np.count_nonzero(~kept):,} rows without a label are left out.")
    return y, kept


def _check_wishes(
    table: Table, label: str | None, ignore: Sequence[str], keep: Sequence[str]
) -> None:
    """Refuse columns to leave out or to keep that are not there or cannot be."""
    for option, names in (("--ignore", ignore), ("--keep", keep)):
        unknown = [name for name in names if name not in table.names]
        if unknown:
            raise TableError(
                f"{option}: {table.path} has no column {shortened(unknown)}; it has "
                f"{shortened(table.names)}."
            )
    if label is not None and label in ignore:
        raise TableError(f"--ignore: {label!r} is the label; it cannot be left out.")
    if label is not None and label in keep:
        raise TableError(f"--keep: {label!r} is the label; it cannot be learned from.")
    both = [name for name in keep if name in ignore]
    if both:
        raise TableError(f"--keep and --ignore both name {shortened(both)}; choose one.")
    for name in keep:
        if name in table.mixed:
            raise TableError(table.mixed[name])
        if name in table.words:
            raise TableError(
                f"--keep: {name!r} cannot be learned from, since "
                f"{_why_words(table, name, table.words[name])}."
            )


def _rows_by_place(table: Table, record: "ModelRecord", n_features: int, notes: list[str]) -> Array:
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


def _why_words(table: Table, name: str, column: Array) -> str:
    if _is_empty(column):
        return "it is empty"
    if name in table.index:
        return INDEX
    return NAMED if names_rows("" if name in table.unnamed else name, column) else _WORDS


def _is_empty(column: Array) -> bool:
    return column.dtype.kind == "O" and all(value is None for value in column)


def _why_useless(table: Table, place: int, *, first: bool) -> str:
    """Return why a column of numbers is not learned from; "" if it is."""
    name, values = table.columns[place], table.numbers[:, place]
    if np.isnan(values).all():
        return "it is empty"
    if name in table.index:
        return INDEX
    if table.image_shape is not None:
        return ""
    called = "" if name in table.unnamed else name
    return why_identifier(called, values, first=first, named=table.named)


def _reasons(left_out: dict[str, str]) -> str:
    shown = [f"{name!r} ({reason})" for name, reason in list(left_out.items())[:8]]
    more = f" and {len(left_out) - 8:,} more" if len(left_out) > 8 else ""
    return ", ".join(shown) + more
