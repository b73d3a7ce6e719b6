"""Columns that do not describe the rows: labels, and those that number or name the rows.

Labels are kept exactly as written. Texts stay texts (``007`` is not ``7``), integers stay integers
of any length, truth values stay truth values. Few different real numbers name classes by their
text; many are a quantity.

A row number predicts the class in every table that is sorted by class, and nothing else. The name
and the values of a column decide together, so that a measurement with all values different stays:

- a name such as ``id``, ``CustomerID``, ``invoice_no`` or ``order key``, or no name: left out if
  the values are integers or words of which more than half differ;
- any name: left out if the values are different codes of letters and digits (UUIDs, say);
- any name: left out if the values are consecutive integers (0, 1, 2, ...; 1001, 1002, ...) in the
  order of the file; in the first column of numbers, in any order;
- the first column, if it has no name in a file that names others: left out, as an index.

Codes and consecutive integers need ``FEWEST_ROWS`` rows: 1, 2, 3 may be three measurements.
"""

import re
from typing import Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.files.tables.table import Table, TableError, is_missing, shortened

# More real-valued classes than this are a quantity, not a label.
_MOST_REAL_CLASSES = 20
# Whole numbers that are more, with fewer rows each than this, look like one.
_FEWEST_ROWS_OF_A_CLASS = 10
# Classes of fewer rows than this are tiny.
_TINY = 3
#: Fewer rows than this may hold 1, 2, 3, ... as what was measured.
FEWEST_ROWS = 20

NUMBERED = "it numbers the rows"
NAMED = "it names the rows"
INDEX = "it is the index of the file"
UNNAMED = "it stands first and has no name, as an index"
#: The reasons for which a column is an identifier, worth copying beside predictions.
REASONS = (NUMBERED, NAMED, INDEX, UNNAMED)

# float64 rounds longer integers; measurements have fewer digits.
_LONGEST_EXACT = 2.0**53


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_UNNAMED = re.compile(r"unnamed: ?[\d.]+(_level_\d+)?|__index_level_\d+__|level_\d+", re.I)
_WHOLE_NAMES = _words(
    "idx index indexes obs row rowid rowname rownames row_name row_names seq serial sno slno srno "
    "s_no sl_no sr_no pk"
)
_LAST_WORDS = _words(
    "# № barcode ean guid iban id imei isbn key no nr num number nummer oid sku ssn uuid"
)
# "row_num" numbers rows; a column called just "num" counts something.
_NEVER_ALONE = frozenset({"num"})
# What is numbered: only after these does "code" mean an identifier, and only with these are words
# run together ("customerid") distinguished from words such as "acid" and "casino".
_THINGS = _words(
    "account article auftrags batch booking case client comment company contract customer device "
    "doc document employee entry event file host house household image invoice item job kunden "
    "line listing loan member message movie object observation obs order paper participant "
    "passenger patient patienten person player policy post product property query record "
    "rechnungs request respondent row run sample sensor serial session song station store student "
    "subject supplier task test ticket track transaction tweet user vendor visit"
)
# "Reynolds number", "total number": quantities.
_QUANTITIES = _words(
    "atomic average cetane charge coordination copy count f iodine mach mass max mean min neutron "
    "nusselt octane prandtl proton quantum reynolds total wave"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[^\W\d_]+?(?=[A-Z]|[\W\d_]|$)|\d+|[#№]")

# A code: letters and digits without a gap, such as a UUID.
_CODE = re.compile(r"(?=.*\d)[A-Za-z0-9][A-Za-z0-9_-]{5,}")


def sounds_like_identifier(name: str) -> bool:
    """Tell whether a column is called as identifiers are, whatever it holds.

    Examples
    --------
    >>> [sounds_like_identifier(name) for name in ("CustomerID", "userid", "order no.", "")]
    [True, True, True, True]
    >>> [sounds_like_identifier(name) for name in ("citric acid", "income", "atomic number")]
    [False, False, False]
    """
    name = name.strip()
    if name == "NO":  # nitric oxide, beside NO2 and O3
        return False
    words = [word.lower() for word in _WORD.findall(name)]
    if not name or _UNNAMED.fullmatch(name) or "_".join(words) in _WHOLE_NAMES:
        return True
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in _LAST_WORDS:
        return before not in _QUANTITIES and (bool(before) or last not in _NEVER_ALONE)
    if last == "code" or words[0] == "id":
        return (before if last == "code" else words[1]) in _THINGS
    return any(
        last.endswith(end) and last.removesuffix(end) in _THINGS for end in (*_LAST_WORDS, "code")
    )


def why_identifier(name: str, values: Array, *, first: bool, named: bool) -> str:
    """Return why a column of numbers says nothing about its rows; "" if it may.

    ``first``: it is the first column of numbers but labels; ``named``: the file names columns.
    """
    present = values[~np.isnan(values)]
    if not np.array_equal(present, np.round(present)):
        return ""
    if named and sounds_like_identifier(name):
        too_long = np.abs(present).max(initial=0.0) >= _LONGEST_EXACT
        if too_long or 2 * len(np.unique(present)) > len(present):
            return NUMBERED
    if len(present) < len(values) or len(values) < FEWEST_ROWS:
        return ""
    counted = np.arange(len(values)) + values.min()
    if counted[-1] != values.max():
        return ""
    return NUMBERED if np.array_equal(np.sort(values) if first else values, counted) else ""


def names_rows(name: str, values: Array) -> bool:
    """Return whether a column of words holds identifiers, by its name and its values."""
    present = [str(value) for value in values if value is not None]
    different = len(set(present))
    if sounds_like_identifier(name):
        return 2 * different > len(present)
    every = different >= max(len(present), FEWEST_ROWS)
    return every and all(_CODE.fullmatch(text) for text in present)


def read_labels(table: Table, label: str, *, may_be_empty: bool = False) -> tuple[Array, Array]:
    """Return the labels of the rows that have one, and a mask of these rows.

    ``may_be_empty``: no row needs to have one, as in a part of a table.
    """
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
    if not (may_be_empty or kept.any()):
        raise TableError(f"label: the column {label!r} of {table.path} is empty.")
    return y, kept


def labels_for(
    table: Table, label: str, classes: Array, *, may_be_empty: bool = False
) -> tuple[Array, Array]:
    """Return labels as a model writes classes (texts if one is new), and a mask of their rows."""
    y, kept = read_labels(table, label, may_be_empty=may_be_empty)
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
            f"label: {label!r} of {table.path} is infinite in row "
            f"{table.first_row + infinite[0]} (counted from 0), which names no class; leave it "
            "empty if it is missing."
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


def labels_of(label: str, values: list[Any]) -> Array:
    """Return different values of a column, none of them missing, as labels."""
    if all(isinstance(value, float) for value in values):
        return _from_reals(label, np.array(values, dtype=np.float64))
    return _as_they_stand([_whole(value) for value in values])


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _as_they_stand(values: list[Any]) -> Array:
    """Return objects of one kind as an array of that kind, others as texts."""
    kinds = {type(value) for value in values}
    if not values:
        return np.empty(0, dtype=np.str_)
    if kinds == {bool}:
        return np.array(values, dtype=bool)
    if kinds == {int} and -(2**63) <= min(values) <= max(values) < 2**63:
        return np.array(values, dtype=np.int64)
    return np.array([str(value) for value in values])
