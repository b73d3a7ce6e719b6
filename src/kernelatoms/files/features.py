"""Which columns a model learns from, and the same columns of other files.

The rules, short enough to be remembered:

- numbers are features; words of few values become features of 0 and 1 (see ``column_kinds``);
- dates, words of many values, columns of one value and columns that number or name the rows are
  left out, and said so;
- columns are found by name in later files: their order does not matter, further ones are passed
  over, a missing one is an error;
- rows without a label are not learned from.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.files.column_kinds import MIXED, Use, encoded, feature_names, uses_of
from kernelatoms.files.identifiers import REASONS, sounds_like_identifier
from kernelatoms.files.labels import doubts_about, read_labels
from kernelatoms.files.places import renamed, rows_by_place, same_places
from kernelatoms.files.row_marks import ROW_MARKS, kept_marks
from kernelatoms.files.tables import Table, TableError, shortened
from kernelatoms.similarity.base import check_flag

if TYPE_CHECKING:  # models import scikit-learn, which takes a second
    from kernelatoms.files.records import ModelRecord

Array = NDArray[Any]

_DROPPED = "asked for by --drop"


@dataclass(frozen=True)
class TrainingSet:
    """Rows to learn from, with what was left out and why.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Numbers, NaN where missing.
    y : array of shape (n_rows,), or None
        Labels, as they stand in the file.
    columns : list of str or None
        The features' names; None in files without names, whose columns have a place.
    left_out : dict of str to str
        Columns that are no features, each with the reason.
    image_shape : (height, width) or None
        The shape of a row, where rows are images.
    notes : list of str
        What the reader should know.
    encoded : dict of str to dict
        Columns that became numbers, and how: kind, values.
    label : str or None
        The column of labels.
    rows : array of shape (n_rows,)
        Which rows of the file these are, counted from 0.
    """

    X: Array
    y: Array | None
    columns: list[str] | None
    left_out: dict[str, str]
    image_shape: tuple[int, int] | None
    notes: list[str]
    encoded: dict[str, dict[str, Any]] = field(default_factory=dict)
    label: str | None = None
    rows: Array = field(default_factory=lambda: np.empty(0, np.intp))

    def describe(self) -> dict[str, Any]:
        """Return sizes, fingerprint and marks of rows for the model's record."""
        return {
            "rows": len(self.X),
            "features": self.X.shape[1],
            "missing": int(np.isnan(self.X).sum()),
            "fingerprint": fingerprint(self.X, self.y),
            ROW_MARKS: kept_marks(self.X),
        }

    def record(self, **more: Any) -> "ModelRecord":
        """Return the record that finds these columns again in other files.

        Parameters
        ----------
        **more : dict
            Further fields of ``ModelRecord``, such as ``name`` and ``fit``.
        """
        from kernelatoms.files.records import ModelRecord

        return ModelRecord(
            columns=self.columns, encoded=self.encoded, label=self.label, left_out=self.left_out,
            image_shape=self.image_shape, **{"data": self.describe(), **more},
        )  # fmt: skip


def training_set(
    table: Table,
    label: str | None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    *,
    dates: bool = False,
) -> TrainingSet:
    """Choose features and labels by the rules above.

    Parameters
    ----------
    table : Table
        What the file holds.
    label : str or None
        The column of classes.
    drop : sequence of str
        Further columns to leave out.
    keep : sequence of str
        Columns to learn from although the rules leave them out.
    dates : bool
        Whether dates are learned from, as days since the earliest one.
    """
    check_flag("dates", dates)
    _check_wishes(table, label, drop, keep)
    uses = uses_of(table, label, frozenset(keep), dates=dates)
    dropped = set(drop)
    left_out = dict.fromkeys(drop, _DROPPED)
    for name, use in uses.items():
        if name in dropped:
            continue
        if use.why == MIXED:
            raise TableError(table.mixed[name])
        if not use.learned:
            left_out[name] = use.why
    _check_kept(keep, uses)
    notes = [*table.notes, *(use.note for use in uses.values() if use.note)]
    y, kept = None, np.ones(len(table), bool)
    if label is not None:
        y, kept = read_labels(table, label)
        n_without = int(np.count_nonzero(~kept))
        if n_without:
            what = "has no label and is" if n_without == 1 else "have no label and are"
            notes.append(f"{n_without:,} of {len(table):,} rows {what} not learned from.")
        notes += doubts_about(y, label)
    chosen = {name: use for name, use in uses.items() if name not in left_out}
    if not chosen:
        raise TableError(_nothing_left(table, label, left_out))
    special = {n: use.to_plain() for n, use in chosen.items() if use.kind != "number"}
    columns, X = _features(table, list(chosen), special)
    X = X if kept.all() else X[kept]
    rows = np.flatnonzero(kept)
    refuse_infinite(X, columns, table, rows)
    whole = len(chosen) == len(table.columns) and not special
    named = table.named or bool(special)
    return TrainingSet(
        X, y, columns if named else None, left_out, table.image_shape if whole else None, notes,
        special, label, rows,
    )  # fmt: skip


def why_left_out(table: Table, label: str | None) -> dict[str, str]:
    """Return the columns that ``fit`` leaves out of its own accord, each with the reason."""
    return {name: use.why for name, use in uses_of(table, label).items() if not use.learned}


def rows_for(table: Table, record: "ModelRecord", n_features: int) -> tuple[Array, list[str]]:
    """Return the rows of a file in the columns of a model, and what the reader should know.

    Parameters
    ----------
    table : Table
        What the file holds.
    record : ModelRecord
        The model's record, or that of a training set (``TrainingSet.record``).
    n_features : int
        How many features the model takes.

    Returns
    -------
    X : array of shape (n_rows, n_features)
        Numbers, NaN where missing.
    notes : list of str
        What the reader should know.
    """
    notes = list(table.notes)
    if record.columns is None:
        X = rows_by_place(table, record, n_features, notes)
        refuse_infinite(X, None, table)
        return X, notes
    sources = record.sources
    places = None
    if not table.named:
        places = same_places(table, record, sources)
        if places is None:
            raise TableError(
                f"{table.path} has no column names, but the model knows its columns by name: "
                f"{shortened(sources)}."
            )
    table = table if places is None else renamed(table, places)
    empty = {n for n in sources if n in table.words and _is_empty(table.words[n])}
    _check_columns(table, record, sources, empty)
    known = {*sources, *record.left_out, record.label}
    further = [name for name in table.names if name not in known]
    if further and places is None:
        notes.append(f"Not used, since the model does not know them: {shortened(further)}.")
    new: dict[str, list[str]] = {}
    columns, X = _features(table, sources, record.encoded, empty, new)
    if new:
        notes.append(_about_new(new))
    refuse_infinite(X, columns, table)
    return X, notes


def _features(
    table: Table,
    sources: Sequence[str],
    special: dict[str, dict[str, Any]],
    empty: set[str] | frozenset[str] = frozenset(),
    new: dict[str, list[str]] | None = None,
) -> tuple[list[str], Array]:
    """Return the names of features, and their values for every row.

    What columns hold that their encoding does not know is added to ``new``.
    """
    if not special and not empty:
        places = [table.place_of[name] for name in sources]
        whole = places == list(range(len(table.columns)))
        return list(sources), table.numbers if whole else table.numbers[:, places]
    names = {name: feature_names(name, special[name]) for name in special}
    columns = [feature for name in sources for feature in names.get(name, [name])]
    if len(set(columns)) < len(columns):
        seen: set[str] = set()
        twin = next(name for name in columns if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise TableError(f"{table.path}: two features would be called {twin!r}; rename a column.")
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


def _about_new(new: dict[str, list[str]]) -> str:
    parts = []
    for name, values in list(new.items())[:8]:
        different = sorted(set(values))
        parts.append(f"{len(values):,} of {name!r} ({shortened(different, 3)})")
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
    """Return the columns that name rows rather than describe them, to stand beside results."""
    if not table.named:
        return {}
    used = {*record.sources, record.label} if record.columns is not None else {record.label}
    return {
        name: table.column(name)
        for name in table.names
        if name not in used
        and (
            record.left_out.get(name) in REASONS
            or name in table.unnamed
            or name in table.index
            or sounds_like_identifier(name)
        )
    }


def fingerprint(X: Array, y: Array | None) -> str:
    """Return SHA-256 of rows and labels, however they are laid out in memory."""
    digest = hashlib.sha256(f"{X.dtype.str} {X.shape}".encode())
    for start in range(0, len(X), 4096):
        digest.update(np.ascontiguousarray(X[start : start + 4096]).tobytes())
    if y is not None:
        digest.update("\n".join(map(str, y.tolist())).encode())
    return digest.hexdigest()


def refuse_infinite(
    X: Array, columns: Sequence[str] | None, table: Table, rows: Array | None = None
) -> None:
    """Say where infinite values stand: no method here can use them."""
    with np.errstate(invalid="ignore", over="ignore"):
        if np.isfinite(X.sum()):  # far faster than a look at each, and no infinity hides in it
            return
    infinite = np.isinf(X)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        name = column if columns is None else repr(columns[column])
        raise TableError(
            f"{table.path}: column {name} is infinite in row {row if rows is None else rows[row]} "
            "(counted from 0); give a number, or leave it empty if it is missing."
        )


def _check_wishes(
    table: Table, label: str | None, drop: Sequence[str], keep: Sequence[str]
) -> None:
    """Refuse columns to leave out or to keep that are not there or cannot be."""
    there = set(table.names)
    for option, names in (("--drop", drop), ("--keep", keep)):
        unknown = [name for name in names if name not in there]
        if unknown:
            raise TableError(
                f"{option}: {table.path} has no column {shortened(unknown)}; it has "
                f"{shortened(table.names)}."
            )
    if label is not None and label in drop:
        raise TableError(f"--drop: {label!r} is the label; it cannot be left out.")
    if label is not None and label in keep:
        raise TableError(f"--keep: {label!r} is the label; it cannot be learned from.")
    both = [name for name in keep if name in drop]
    if both:
        raise TableError(f"--keep and --drop both name {shortened(both)}; choose one.")


def _check_kept(keep: Sequence[str], uses: dict[str, Use]) -> None:
    for name in keep:
        use = uses.get(name)
        if use is None or not use.learned:
            why = "it is no column of the rows" if use is None else use.why
            raise TableError(f"--keep: {name!r} cannot be learned from, since {why}.")


def _nothing_left(table: Table, label: str | None, left_out: dict[str, str]) -> str:
    numbered = [name for name, why in left_out.items() if why in REASONS]
    hint = f" --keep {numbered[0]!r} learns from it all the same." if numbered else ""
    return (
        f"{table.path} has no column to learn from"
        + (f" beside the label {label!r}" if label else "")
        + (f"; left out: {_reasons(left_out)}." if left_out else ".")
        + hint
    )


def _is_empty(column: Array) -> bool:
    return column.dtype.kind == "O" and all(value is None for value in column)


def _reasons(left_out: dict[str, str]) -> str:
    shown = [f"{name!r} ({reason})" for name, reason in list(left_out.items())[:8]]
    more = f" and {len(left_out) - 8:,} more" if len(left_out) > 8 else ""
    return ", ".join(shown) + more
