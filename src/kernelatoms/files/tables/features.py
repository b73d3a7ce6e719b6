"""The columns that a model learns from.

Numbers are features; words of few values become features of 0 and 1; dates, words of many values,
constant columns and columns that number or name the rows are left out (see ``column_kinds``). In
later files, columns are found by name (see ``matching``). Rows without a label are not learned
from.

Marks recognise the rows that a model learned from in other files. A mark is a 32-bit hash of the
values of a row. A record keeps up to ``MOST_MARKS`` of the smallest. Rows of other files with marks
up to the largest kept can be looked up: all rows if all marks were kept, else a fair sample. A new
row is mistaken for a known one with a probability of about (rows learned from) / 2^32.
"""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array
from kernelatoms.files.tables.column_kinds import MIXED, Use, uses_of
from kernelatoms.files.tables.matching import features_of, refuse_infinite
from kernelatoms.files.tables.roles import REASONS, doubts_about, read_labels
from kernelatoms.files.tables.table import Table, TableError, first_few, shortened
from kernelatoms.similarity.base import check_flag

if TYPE_CHECKING:  # models import scikit-learn, which takes a second
    from kernelatoms.files.models.record import ModelRecord


#: Under which name a record keeps row marks, with its training data.
ROW_MARKS = "row_marks"
MOST_MARKS = 4096
# Of fewer rows that can be looked up, nothing is said about all.
_FEWEST_FOUND = 20
_BLOCK_ROWS = 1 << 14


@dataclass(frozen=True)
class TrainingSet:
    """Rows to learn from, and the columns that were left out."""

    X: Array  # (n_rows, n_features), NaN where missing
    y: Array | None  # labels as in the file
    columns: list[str] | None  # None in files without names, whose columns have a place
    left_out: dict[str, str]  # reason by column
    image_shape: tuple[int, int] | None  # if rows are images
    notes: list[str]  # for the user
    encoded: dict[str, dict[str, Any]] = field(default_factory=dict)  # how columns became numbers
    label: str | None = None  # the column of labels
    # which rows of the file, from 0
    rows: Array = field(default_factory=lambda: np.empty(0, np.intp))

    def describe(self) -> dict[str, Any]:
        """Return sizes, fingerprint and row marks for the record."""
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
        from kernelatoms.files.models.record import ModelRecord

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
    unlabelled: tuple[int, int] | None = None,
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
    unlabelled : (int, int), optional
        Of a sample: how many rows of how many of the whole table have no label.
    """
    check_flag("dates", dates)
    check_wishes(table, label, drop, keep)
    uses = uses_of(table, label, frozenset(keep), dates=dates)
    left_out = dict.fromkeys(drop, "named in drop")
    for name, use in uses.items():
        if use.why == MIXED and name not in left_out:
            raise TableError(table.mixed[name])
        if not use.learned:
            left_out.setdefault(name, use.why)
    _check_kept(keep, uses)
    notes = [*table.notes, *(use.note for use in uses.values() if use.note)]
    y, kept = None, np.ones(len(table), bool)
    if label is not None:
        y, kept = read_labels(table, label)
        notes += _about_unlabelled(*(unlabelled or (int(np.count_nonzero(~kept)), len(table))))
        notes += doubts_about(y, label)
    chosen = {name: use for name, use in uses.items() if name not in left_out}
    if not chosen:
        raise TableError(_nothing_left(table, label, left_out))
    special = {n: use.to_plain() for n, use in chosen.items() if use.kind != "number"}
    columns, X = features_of(table, list(chosen), special)
    X = X if kept.all() else X[kept]
    rows = np.flatnonzero(kept)
    refuse_infinite(X, columns, table, rows)
    whole = len(chosen) == len(table.columns) and not special
    named = table.named or bool(special)
    return TrainingSet(
        X, y, columns if named else None, left_out, table.image_shape if whole else None, notes,
        special, label, rows,
    )  # fmt: skip


def _about_unlabelled(n_without: int, n_rows: int) -> list[str]:
    if not n_without:
        return []
    what = "has no label and is" if n_without == 1 else "have no label and are"
    return [f"{n_without:,} of {n_rows:,} rows {what} not learned from."]


def why_left_out(table: Table, label: str | None) -> dict[str, str]:
    """Return the columns that ``fit`` leaves out by default, each with the reason."""
    return {name: use.why for name, use in uses_of(table, label).items() if not use.learned}


def fingerprint(X: Array, y: Array | None) -> str:
    """Return the SHA-256 of rows and labels, whatever their memory layout."""
    digest = hashlib.sha256(f"{X.dtype.str} {X.shape}".encode())
    for start in range(0, len(X), 4096):
        digest.update(np.ascontiguousarray(X[start : start + 4096]).tobytes())
    if y is not None:
        digest.update("\n".join(map(str, y.tolist())).encode())
    return digest.hexdigest()


def check_wishes(table: Table, label: str | None, drop: Sequence[str], keep: Sequence[str]) -> None:
    """Refuse columns in ``drop`` or ``keep`` that are absent or cannot be there."""
    there = set(table.names)
    for option, names in (("drop", drop), ("keep", keep)):
        if unknown := [name for name in names if name not in there]:
            raise TableError(
                f"{option}: {table.path} has no column {shortened(unknown)}; it has "
                f"{shortened(table.names)}."
            )
    if label is not None and label in drop:
        raise TableError(f"drop: {label!r} is the label; it cannot be left out.")
    if label is not None and label in keep:
        raise TableError(f"keep: {label!r} is the label; it cannot be learned from.")
    if both := [name for name in keep if name in drop]:
        raise TableError(f"keep: {shortened(both)} is in drop, too; choose one.")


def _check_kept(keep: Sequence[str], uses: dict[str, Use]) -> None:
    for name in keep:
        use = uses.get(name)
        if use is None or not use.learned:
            why = "it is no column of the rows" if use is None else use.why
            raise TableError(f"keep: {name!r} cannot be learned from, since {why}.")


def _nothing_left(table: Table, label: str | None, left_out: dict[str, str]) -> str:
    reasons = [f"{name!r} ({reason})" for name, reason in left_out.items()]
    numbered = [name for name, why in left_out.items() if why in REASONS]
    hint = f" keep=[{numbered[0]!r}] learns from it nevertheless." if numbered else ""
    return (
        f"{table.path} has no column to learn from"
        + (f" beside the label {label!r}" if label else "")
        + (f"; left out: {first_few(reasons, 8)}." if left_out else ".")
        + hint
    )


def row_marks(X: Array) -> NDArray[np.uint32]:
    """Return a number per row, made of all its values; missing ones count as values."""
    marks = np.empty(len(X), np.uint32)
    for start in range(0, len(X), _BLOCK_ROWS):
        # The sum turns -0.0 into 0.0.
        block = np.array(X[start : start + _BLOCK_ROWS], np.float64, order="C") + 0.0
        block[np.isnan(block)] = np.nan
        words = block.view(np.uint64)
        total = np.zeros(len(words), np.uint64)
        for column in range(words.shape[1]):
            total = _mixed(total ^ words[:, column])
        marks[start : start + len(block)] = (total >> np.uint64(32)).astype(np.uint32)
    return marks


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers whose bits each depend on all bits (splitmix64, Steele et al. 2014)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def kept_marks(X: Array) -> str:
    """Return what a record keeps of the training rows, as a text."""
    return marks_in_text(np.unique(row_marks(X)))


def marks_in_text(marks: NDArray[np.uint32]) -> str:
    """Return what a record keeps of different marks, ascending, as a text."""
    whole = "all" if len(marks) <= MOST_MARKS else "some"
    data = marks[:MOST_MARKS].astype("<u4").tobytes()
    return f"{whole}:{base64.b64encode(data).decode('ascii')}"


def learned_share(X: Array, kept: Any) -> float | None:
    """Return the share of rows with marks in ``kept``; None if unknown, or too few to look up."""
    known = KnownRows(kept)
    known.look_up(X)
    return known.share


class KnownRows:
    """Counts, over parts of a table, the rows that a model learned from; ``kept`` are its marks."""

    def __init__(self, kept: Any) -> None:
        self._whole, _, text = kept.partition(":") if isinstance(kept, str) else ("", "", "")
        try:
            self._known = np.frombuffer(base64.b64decode(text, validate=True), "<u4")
        except (binascii.Error, ValueError):
            self._known = np.empty(0, np.uint32)
        if self._whole not in ("all", "some"):
            self._known = np.empty(0, np.uint32)
        self._n_found = self._n_looked_up = 0

    def look_up(self, X: Array) -> None:
        """Count rows."""
        if not len(self._known) or not len(X):
            return
        marks = row_marks(X)
        if self._whole == "some":
            marks = marks[marks <= self._known.max()]
        self._n_looked_up += len(marks)
        self._n_found += int(np.isin(marks, self._known).sum())

    @property
    def share(self) -> float | None:
        """The share of known rows; None if unknown, or too few could be looked up."""
        if self._n_looked_up < (_FEWEST_FOUND if self._whole == "some" else 1):
            return None
        return self._n_found / self._n_looked_up
