"""Fields of delimited text: their places, which of them are numbers, and numbers to text.

Everything works on the bytes of the file, so that fields that are not numbers can be written back
unchanged, quotes included. Texts are uint8 arrays.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.engine.cpu.jit import jit

#: Kinds of fields: empty, an integer, a decimal number, a long number or one with an exponent (read
#: by slower means), a word for a missing value, any other text.
EMPTY, WHOLE, DECIMAL, LONG, MISSING, TEXT = range(6)
N_KINDS = 6
#: Styles of numbers: bare, behind a space, in quotes.
BARE, SPACED, QUOTED = range(3)
N_STYLES = 3

_QUOTE, _SPACE, _MINUS, _RETURN = 34, 32, 45, 13
# Digits that float64 always holds; powers of ten that it holds exactly.
_MOST_DIGITS, _MOST_POWER = 15, 22
_POWERS = 10.0 ** np.arange(_MOST_POWER + 1)
_WHOLE_POWERS = 10 ** np.arange(19, dtype=np.int64)
_LARGEST = 2.0**53


class Fields(NamedTuple):
    """The places of fields."""

    starts: Array  # of shape (n_rows, n_columns), over lines with n_columns fields
    stops: Array
    odd: Array  # other lines: rows before, start, stop; of shape (n_odd, 3)
    used: int  # bytes of whole lines; the rest belongs to the text that follows
    n_returns: int  # lines that end with a carriage return


def split_fields(
    data: Array, n_columns: int, delimiter: int, newline: int, *, last: bool, returns: bool
) -> Fields:
    """Find the fields of a text.

    ``data`` (uint8) begins with a line. Delimiters and line ends within quotes are text. ``last``
    says that the text ends here, so that the last line needs no end; ``returns`` that lines end
    with a carriage return too, which belongs to no field.
    """
    n_lines = int(np.count_nonzero(data == newline)) + 1
    n_rows = min(n_lines, (len(data) + 1) // max(1, n_columns) + 1)
    starts, stops = np.empty((2, n_rows, n_columns), np.int64)
    odd = np.empty((n_lines, 3), np.int64)
    n_rows, n_odd, used, n_returns = _split(
        data, delimiter, newline, last, returns, starts, stops, odd
    )
    return Fields(starts[:n_rows], stops[:n_rows], odd[:n_odd], used, n_returns)


@jit()
def _split(data, delimiter, newline, last, returns, starts, stops, odd):  # type: ignore[no-untyped-def]
    n, n_columns = len(data), starts.shape[1]
    n_rows = n_odd = n_returns = 0
    place = 0
    while place < n:
        line, field = place, 0
        ended = False
        while not ended:
            start = place
            if place < n and data[place] == _QUOTE:
                place += 1
                while place < n:
                    if data[place] != _QUOTE:
                        place += 1
                    elif place + 1 < n and data[place + 1] == _QUOTE:
                        place += 2
                    else:
                        place += 1
                        break
            while place < n and data[place] != delimiter and data[place] != newline:
                place += 1
            ended = place >= n or data[place] == newline
            stop = place
            if ended and stop > start and data[stop - 1] == _RETURN and place < n:
                n_returns += 1
                if returns:
                    stop -= 1
            if field < n_columns and n_rows < len(starts):
                starts[n_rows, field], stops[n_rows, field] = start, stop
            field += 1
            if not ended:
                place += 1
        if place >= n and not last:
            return n_rows, n_odd, line, n_returns
        # An empty line is not a row, even if there is only one column.
        if field == n_columns and not (n_columns == 1 and stop == line):
            n_rows += 1
        else:
            odd[n_odd, 0], odd[n_odd, 1], odd[n_odd, 2] = n_rows, line, stop
            n_odd += 1
        place += 1
    return n_rows, n_odd, n, n_returns


class Numbers(NamedTuple):
    """The fields of a column; arrays of shape (n_rows,)."""

    kinds: Array
    styles: Array  # ``BARE``, ``SPACED`` or ``QUOTED``, of numbers
    decimals: Array  # decimals of numbers, at most 255
    values: Array  # integers and decimal numbers; NaN elsewhere


def read_numbers(data: Array, starts: Array, stops: Array, mark: int, missing: Array) -> Numbers:
    """Classify the fields of a column, and read numbers.

    Numbers are plain: no plus, no leading zeros, nothing but digits, a decimal mark and perhaps an
    exponent. ``missing`` has words for missing values, uint8 of shape (n_words, width), padded with
    zeros.
    """
    starts, stops = np.ascontiguousarray(starts), np.ascontiguousarray(stops)
    kinds, styles, decimals = np.empty((3, len(starts)), np.uint8)
    found = Numbers(kinds, styles, decimals, np.empty(len(starts)))
    _read_all(data, starts, stops, mark, missing, *found)
    return found


@jit()
def _read_all(data, starts, stops, mark, missing, kinds, styles, decimals, values):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        kind, style, digits, value = _read(data, starts[i], stops[i], mark, missing)
        kinds[i], styles[i], decimals[i], values[i] = kind, style, digits, value


@jit()
def _read(data, start, stop, mark, missing):  # type: ignore[no-untyped-def]
    if start == stop:
        return EMPTY, BARE, 0, np.nan
    low, high, style = start, stop, BARE
    if data[low] == _QUOTE and high - low > 2 and data[high - 1] == _QUOTE:
        low, high, style = low + 1, high - 1, QUOTED
    elif data[low] == _SPACE and high - low > 1:
        low, style = low + 1, SPACED
    place = low
    negative = data[place] == _MINUS
    if negative:
        place += 1
    first = place
    whole = np.uint64(0)
    n_digits = 0
    while place < high and 48 <= data[place] <= 57:
        whole = whole * np.uint64(10) + np.uint64(data[place] - 48)
        if n_digits > 0 or data[place] != 48:
            n_digits += 1
        place += 1
    n_before = place - first
    n_behind = 0
    marked = place < high and data[place] == mark
    if marked:
        place += 1
        while place < high and 48 <= data[place] <= 57:
            whole = whole * np.uint64(10) + np.uint64(data[place] - 48)
            if n_digits > 0 or data[place] != 48:
                n_digits += 1
            n_behind += 1
            place += 1
    right = n_before + n_behind > 0 and not (n_before > 1 and data[first] == 48)
    power, has_power = 0, False
    if right and place < high and (data[place] == 101 or data[place] == 69):
        place += 1
        minus = place < high and data[place] == _MINUS
        if place < high and (minus or data[place] == 43):
            place += 1
        n_power = 0
        while place < high and 48 <= data[place] <= 57 and n_power < 4:
            power = power * 10 + int(data[place]) - 48
            n_power += 1
            place += 1
        has_power = n_power > 0
        right = has_power
        power = -power if minus else power
    if not right or place != high:
        return _word(data, start, stop, missing), BARE, 0, np.nan
    digits = min(max(n_behind - power, 0), 255)
    if has_power or n_digits > _MOST_DIGITS or n_behind > _MOST_POWER:
        # Integers of many digits are identifiers, not measurements.
        kind = LONG if has_power or marked else TEXT
        return kind, style, digits, np.nan
    value = np.float64(whole) / _POWERS[n_behind]
    if negative:
        value = -value
        if not marked and whole == 0:
            return TEXT, style, 0, np.nan
    return (DECIMAL if marked else WHOLE), style, digits, value


@jit()
def _word(data, start, stop, missing):  # type: ignore[no-untyped-def]
    width = missing.shape[1]
    if stop - start > width:
        return TEXT
    for w in range(len(missing)):
        same = stop - start == width or missing[w, stop - start] == 0
        for i in range(stop - start):
            if not same:
                break
            same = data[start + i] == missing[w, i]
        if same:
            return MISSING
    return TEXT


class Texts(NamedTuple):
    """Concatenated texts with their starts and the end of the last."""

    data: Array
    offsets: Array


def take_texts(data: Array, starts: Array, stops: Array) -> Texts:
    """Return parts of a text as texts."""
    offsets = np.concatenate([[0], np.cumsum(stops - starts)])
    texts = np.empty(offsets[-1], np.uint8)
    _take(data, np.ascontiguousarray(starts), offsets, texts)
    return Texts(texts, offsets)


@jit()
def _take(data, starts, offsets, texts):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        shift = starts[i] - offsets[i]
        for k in range(offsets[i], offsets[i + 1]):
            texts[k] = data[k + shift]


def rounded(values: Array, decimals: Array) -> Array:
    """Return what ``number_texts`` writes, as numbers.

    ``decimals`` has a number per column; numbers with more digits than float64 holds are unchanged.
    """
    powers = _POWERS[np.minimum(decimals, _MOST_POWER)]
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.rint(values * powers)
        whole[(whole == 0) & (values != 0)] = 0.0  # and not -0.0
        return np.where(np.abs(whole) < _LARGEST, whole / powers, values)


def can_be_texts(values: Array, high: int) -> bool:
    """Whether ``number_texts`` can write all numbers with ``high`` decimals."""
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.abs(np.rint(values * _POWERS[min(high, _MOST_POWER)]))
    return high < len(_WHOLE_POWERS) and bool((whole[~np.isnan(values)] < _LARGEST).all())


def number_texts(
    values: Array, low: int, high: int, mark: int, style: int, others: Texts
) -> Texts | None:
    """Return numbers as texts, and ``others`` where values are NaN; None if one is too long.

    Numbers have ``low`` to ``high`` decimals; zeros beyond ``low`` are left out.
    """
    if not can_be_texts(values, high):
        return None
    whole = np.rint(values * _POWERS[high])
    present = ~np.isnan(values)
    texts = np.empty(len(others.data) + 40 * int(present.sum()), np.uint8)
    places = np.zeros(len(values) + 1, np.int64)
    scaled = np.abs(np.where(present, whole, 0.0)).astype(np.int64)
    negative = np.signbit(values)
    _write(scaled, present, negative, low, high, mark, style, *others, texts, places)
    return Texts(texts[: places[-1]], places)


@jit()
def _write(  # type: ignore[no-untyped-def]
    scaled, present, negative, low, high, mark, style, others, offsets, texts, places
):
    place, other = 0, 0
    digits = np.empty(40, np.uint8)
    for i in range(len(scaled)):
        if not present[i]:
            for k in range(offsets[other], offsets[other + 1]):
                texts[place] = others[k]
                place += 1
            other += 1
            places[i + 1] = place
            continue
        if style == SPACED:
            texts[place] = _SPACE
            place += 1
        elif style == QUOTED:
            texts[place] = _QUOTE
            place += 1
        value, behind = scaled[i], high
        if negative[i]:
            texts[place] = _MINUS
            place += 1
        while behind > low and value % 10 == 0:
            value //= 10
            behind -= 1
        n_digits = 0
        while value > 0 or n_digits <= behind:
            digits[n_digits] = 48 + value % 10
            value //= 10
            n_digits += 1
        while n_digits > 0:
            if n_digits == behind:
                texts[place] = mark
                place += 1
            n_digits -= 1
            texts[place] = digits[n_digits]
            place += 1
        if style == QUOTED:
            texts[place] = _QUOTE
            place += 1
        places[i + 1] = place


def join_fields(columns: Sequence[Texts], delimiter: int, end: Array) -> Texts:
    """Return the lines of columns of text; ``end`` follows each line."""
    starts = np.cumsum([0, *(len(texts.data) for texts in columns)])
    offsets = np.stack([texts.offsets + starts[i] for i, texts in enumerate(columns)])
    lengths = np.diff(offsets).sum(axis=0) + len(columns) - 1 + len(end)
    places = np.concatenate([[0], np.cumsum(lengths)])
    lines = np.empty(places[-1], np.uint8)
    _join(np.concatenate([texts.data for texts in columns]), offsets, delimiter, end, lines)
    return Texts(lines, places)


@jit()
def _join(texts, offsets, delimiter, end, lines):  # type: ignore[no-untyped-def]
    place = 0
    for i in range(offsets.shape[1] - 1):
        for c in range(offsets.shape[0]):
            if c > 0:
                lines[place] = delimiter
                place += 1
            for k in range(offsets[c, i], offsets[c, i + 1]):
                lines[place] = texts[k]
                place += 1
        for k in range(len(end)):
            lines[place] = end[k]
            place += 1
