"""The kind of each column of a table, and how it becomes numbers.

- Numbers stay as they are; words of two values become one column of 0 and 1.
- Words of few values (a category) become one column per value, 1 where a row has it.
- Dates are left out, or become days since the earliest one if asked for.
- Left out are columns that number or name rows (see ``roles``), hold one value, are nearly
  empty, or hold too many different words.

Columns of a numbered series (``pixel0``, ``pixel1``, ...) are parts of a signal and always stay, so
that the signal stays complete.
"""

import re
from collections import Counter
from dataclasses import dataclass
from datetime import time
from typing import Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.files.tables import roles
from kernelatoms.files.tables.dates import date_order, day_text, to_days
from kernelatoms.files.tables.table import Table, is_missing

#: A category has at most so many values, and at least so many rows per value.
MOST_VALUES, ROWS_PER_VALUE = 20, 5
#: The most values of a category that ``keep`` asks for.
MOST_VALUES_KEPT = 1000
#: With fewer values present than this share of the rows a column is nearly empty.
LEAST_PRESENT = 0.05
#: Words in a larger share of the rows than this make a column of numbers one of words.
MOST_SLIPS = 0.1
#: So many columns of one name but for a number are a signal.
LEAST_SERIES = 16

EMPTY = "it is empty"
CONSTANT = "it holds one value only"
MIXED = "it holds numbers and words"
DATES = "it holds dates; dates=True learns from them"

# Two words of which the second is a yes.
_PAIRS = frozenset(
    {
        ("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("nein", "ja"), ("non", "oui"),
        ("no", "si"), ("no", "sí"), ("off", "on"), ("female", "male"), ("f", "m"), ("w", "m"),
        ("absent", "present"), ("negative", "positive"), ("neg", "pos"),
    }
)  # fmt: skip
# Numbers are looked at some columns at a time, so that what is computed of them fits the cache.
_BLOCK_VALUES = 2**20


@dataclass(frozen=True)
class Use:
    """How one column is used."""

    kind: str  # "number", "yes/no", "category", "date", or "left out"
    why: str = ""  # the reason to leave it out
    values: tuple[str, ...] = ()  # of a category; of two values: first 0, then 1
    order: str = ""  # of dates, see ``dates.ORDERS``
    first: float = 0.0  # the earliest date, in days since 1970
    note: str = ""  # for the user

    @property
    def learned(self) -> bool:
        """Whether the column becomes features."""
        return self.kind != "left out"

    def to_plain(self) -> dict[str, Any]:
        """Return what a record keeps of a column that is not numeric."""
        if self.kind == "date":
            return {"kind": "date", "order": self.order, "first": self.first}
        return {"kind": self.kind, "values": list(self.values)}


def uses_of(
    table: Table, label: str | None, keep: frozenset[str] = frozenset(), *, dates: bool = False
) -> dict[str, Use]:
    """Return the use of every column but the label; ``keep`` overrules leaving out."""
    uses = _uses_of_numbers(table, label, keep)
    for name, words in table.words.items():
        # Without names, other arrays of an .npz file are no columns.
        if name != label and (table.named or name.isdigit()):
            uses[name] = _use_of_words(table, name, words, keep=name in keep, dates=dates)
    return uses


def _uses_of_numbers(table: Table, label: str | None, keep: frozenset[str]) -> dict[str, Use]:
    seen = _look_at(table.numbers)
    stems = Counter(map(_stem, table.columns)) if table.named else Counter()
    first = next((i for i, name in enumerate(table.columns) if name != label), -1)
    uses = {}
    for i, name in enumerate(table.columns):
        if name == label:
            continue
        why = EMPTY if seen.present[i] == 0 else ""
        if not why and name not in keep:
            series = table.named and stems[_stem(name)] >= LEAST_SERIES
            why = _why_not_a_number(table, i, seen, first=i == first, series=series)
        uses[name] = Use("left out", why) if why else _flag(table, name) or Use("number")
    return uses


def _why_not_a_number(table: Table, i: int, seen: "_Seen", *, first: bool, series: bool) -> str:
    name = table.columns[i]
    if name in table.index:
        return roles.INDEX
    if table.image_shape is not None:
        return ""
    called = "" if name in table.unnamed else name
    follows = seen.high[i] - seen.low[i] == len(table) - 1  # it may: far fewer are looked through
    if seen.whole[i] and (follows or (table.named and roles.sounds_like_identifier(called))):
        why = roles.why_identifier(called, table.numbers[:, i], first=first, named=table.named)
        if why:
            return why
    if name == "column 1" and not called:
        return roles.UNNAMED
    # A signal's parts, and columns without names, which have a place, stay.
    if series or not table.named:
        return ""
    if seen.present[i] < LEAST_PRESENT * len(table):
        return _nearly_empty(int(seen.present[i]), len(table))
    return CONSTANT if seen.low[i] == seen.high[i] and len(table) > 1 else ""


def _flag(table: Table, name: str) -> Use | None:
    """Return the use of a column of true and false, which are numbers already."""
    values = {str(value).strip() for value in table.exact.get(name, ()) if value is not None}
    if {value.casefold() for value in values} != {"true", "false"} or len(values) > 2:
        return None
    return Use("yes/no", values=tuple(sorted(values, key=str.casefold)))


@dataclass(frozen=True)
class _Seen:
    """Of every column of numbers: number of values, range, and whether all are integers."""

    present: Array
    low: Array
    high: Array
    whole: Array


def _look_at(numbers: Array) -> _Seen:
    n_rows, n_columns = numbers.shape
    present = np.zeros(n_columns, np.intp)
    low, high = np.full(n_columns, np.inf), np.full(n_columns, -np.inf)
    whole = np.zeros(n_columns, bool)
    step = max(1, _BLOCK_VALUES // max(n_rows, 1))
    for start in range(0, n_columns, step):
        here = slice(start, start + step)
        block = numbers[:, here]
        missing = np.isnan(block)
        present[here] = n_rows - np.count_nonzero(missing, axis=0)
        low[here] = np.fmin.reduce(block, axis=0)
        high[here] = np.fmax.reduce(block, axis=0)
        whole[here] = ((block == np.rint(block)) | missing).all(axis=0)
    return _Seen(present, low, high, whole)


def _stem(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def _use_of_words(table: Table, name: str, words: Array, *, keep: bool, dates: bool) -> Use:
    present = [value for value in words if value is not None]
    if not present:
        return Use("left out", EMPTY)
    order, guessed = date_order(present)
    if not keep:
        called = "" if name in table.unnamed else name
        if name in table.index:
            return Use("left out", roles.INDEX)
        if not order and roles.names_rows(called, words):
            return Use("left out", roles.NAMED)
        if name == "column 1" and not called:
            return Use("left out", roles.UNNAMED)
    if order:
        return _use_of_dates(name, words, order, guessed, learned=keep or dates)
    if not all(isinstance(value, str) for value in present):
        what = "times of day" if isinstance(present[0], time) else "no numbers, words or dates"
        return Use("left out", f"it holds {what}")
    counts = Counter(value.strip() for value in present)
    if name in table.mixed and _is_slip(counts):
        return Use("left out", MIXED)
    if not keep or len(counts) > MOST_VALUES_KEPT:
        if len(counts) == 1:
            return Use("left out", CONSTANT)
        if len(present) < LEAST_PRESENT * len(words):
            return Use("left out", _nearly_empty(len(present), len(words)))
        if not _is_category(counts):
            few = f" in only {len(present):,} rows" if len(counts) <= MOST_VALUES else ""
            return Use("left out", f"it holds words, {len(counts):,} different ones{few}")
    if len(counts) == 2:
        one, other = sorted(counts)
        return Use("yes/no", values=_known_pair(one, other) or (one, other))
    return Use("category", values=tuple(sorted(counts)))


def _use_of_dates(name: str, words: Array, order: str, guessed: bool, *, learned: bool) -> Use:
    if not learned:
        return Use("left out", DATES)
    shown = next(value for value in words if value is not None)
    note = (
        f"The dates of {name!r} do not tell day from month ({shown!r}): the month is taken to "
        "stand first."
    )
    first = float(np.nanmin(to_days(words, order)))
    return Use("date", order=order, first=first, note=note if guessed else "")


def _is_category(counts: Counter[str]) -> bool:
    """Return whether words are values that recur."""
    if len(counts) == 2 and _known_pair(*counts):
        return True
    return len(counts) <= MOST_VALUES and ROWS_PER_VALUE * len(counts) <= counts.total()


def _is_slip(counts: Counter[str]) -> bool:
    """Return whether words among numbers are few mistakes or missing marks, and no values."""
    words = {text: count for text, count in counts.items() if not _is_number(text)}
    if all(_is_number(text.replace(",", ".", 1)) for text in words):  # decimal commas
        return True
    if _is_category(counts) and min(counts.values()) >= ROWS_PER_VALUE:
        return False
    return len(words) <= 2 or sum(words.values()) <= MOST_SLIPS * counts.total()


def _known_pair(one: str, other: str) -> tuple[str, str] | None:
    """Return two words as (no, yes); None if they are not such a pair."""
    for no, yes in ((one, other), (other, one)):
        if (no.casefold(), yes.casefold()) in _PAIRS:
            return no, yes
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _nearly_empty(n_present: int, n_rows: int) -> str:
    values = f"{n_present:,} value{'s' * (n_present != 1)}"
    return f"it is nearly empty: {values} in {n_rows:,} rows"


def feature_names(name: str, plain: dict[str, Any]) -> list[str]:
    """Return the features of a column, from its encoding (``Use.to_plain``)."""
    if plain["kind"] == "date":
        return [name]
    values = plain["values"]
    return [f"{name}={value}" for value in (values[1:] if plain["kind"] == "yes/no" else values)]


def encoded(column: Array, plain: dict[str, Any]) -> tuple[Array, list[str]]:
    """Return the features of a column as numbers, and the unknown values, once per row.

    Missing values are NaN in all features. An unknown value of a category is 0 in all of them; of a
    date, or of two values, it is missing.
    """
    if plain["kind"] == "date":
        days = to_days(column, plain["order"]) - plain["first"]
        odd = [str(v) for v, d in zip(column, days, strict=True) if v is not None and np.isnan(d)]
        return days[:, None], odd
    texts = [_text(value) for value in column.tolist()]
    values = plain["values"]
    place: dict[str | None, int] = {value: i for i, value in enumerate(values)}
    one = plain["kind"] == "yes/no"
    folded = {value.casefold(): i for i, value in enumerate(values)}
    if one and len(folded) == len(values):  # 'Yes' and 'yes' are one word
        if set(folded) == {"false", "true"}:
            folded |= {"0": folded["false"], "1": folded["true"]}
        place |= {t: folded[t.casefold()] for t in set(texts) if t and t.casefold() in folded}
    codes = np.array([-2 if text is None else place.get(text, -1) for text in texts], np.intp)
    new = [text for text, code in zip(texts, codes.tolist(), strict=True) if code == -1 and text]
    if one:
        return np.where(codes < 0, np.nan, codes)[:, None], new
    matrix = np.zeros((len(texts), len(values)))
    known = np.flatnonzero(codes >= 0)
    matrix[known, codes[known]] = 1
    matrix[codes == -2] = np.nan
    return matrix, new


def _text(value: Any) -> str | None:
    if is_missing(value):
        return None
    return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()


def in_words(plain: dict[str, Any]) -> str:
    """Return an encoding in words."""
    if plain["kind"] == "date":
        return f"days since {day_text(plain['first'])}"
    if plain["kind"] == "yes/no":
        no, yes = plain["values"]
        return f"yes/no: 1 for {yes}, 0 for {no}"
    return f"category: {', '.join(plain['values'])}"
