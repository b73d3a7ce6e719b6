"""The dialect of a text file: delimiter, line ends, decimal mark and names."""

import csv
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.limits import MOST_COLUMNS
from kernelatoms.codec.loops.text_fields import DECIMAL, read_numbers, split_fields
from kernelatoms.files.tables.first_lines import DELIMITERS, is_row_of_numbers
from kernelatoms.files.tables.table import TableError

Array = NDArray[Any]

_LOOK_AT, _MOST_LOOKED_AT = 1 << 20, 1 << 26
_ENDS = (b"\n", b"\r")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Dialect:
    """The dialect of a text file."""

    before: bytes  # everything before the first row: perhaps a title, and the names
    delimiter: int  # the byte between fields
    newline: int  # the byte at line ends
    mark: int  # the decimal mark
    names: list[str]  # names of the columns; "0", "1", ... if the file has none
    named: bool  # whether the file has names

    @property
    def n_columns(self) -> int:
        """Fields per row."""
        return len(self.names)


def find_dialect(path: Path) -> Dialect:
    """Return the dialect, from the beginning of a file."""
    start, last = _beginning(path)
    if b"\0" in start:
        raise TableError(
            f"{path} is a binary file, or text in the encoding UTF-16: tables of text need UTF-8."
        )
    newline = 13 if b"\n" not in start and b"\r" in start else 10
    data = np.frombuffer(start, np.uint8)
    lines = _lines(data, newline, last)
    if not lines:
        raise TableError(f"{path} has no line that ends in its first {len(start):,} bytes.")
    delimiter, n_columns = _delimiter(lines)
    if n_columns > MOST_COLUMNS:
        raise TableError(f"{path} has {n_columns:,} columns, more than {MOST_COLUMNS:,}.")
    first = _first_row(data, delimiter, newline, n_columns, last)
    fields = _fields(start, first, delimiter)
    named = not is_row_of_numbers(fields)
    stop = first[1] + 1 if named else first[0]
    names = [str(i) for i in range(n_columns)]
    if named:
        names = [name.strip() or f"column {i}" for i, name in enumerate(fields, start=1)]
    mark = _decimal_mark(data[stop:], n_columns, delimiter, newline)
    return Dialect(start[:stop], delimiter, newline, mark, names, named)


def _beginning(path: Path) -> tuple[bytes, bool]:
    """Return the first megabyte, more if lines are longer, and whether it is the whole file."""
    size, wanted = path.stat().st_size, _LOOK_AT
    with path.open("rb") as file:
        start = file.read(wanted)
        while len(start) < min(size, _MOST_LOOKED_AT) and max(map(start.count, _ENDS)) < 3:
            start += file.read(wanted)
            wanted *= 2
    return start, len(start) >= size


def names_of(before: bytes, n_columns: int, delimiter: int, newline: int) -> list[str]:
    """Return the names in the last line before the rows."""
    data = np.frombuffer(before, np.uint8)
    found = split_fields(data, n_columns, delimiter, newline, last=True, returns=False)
    if not len(found.starts):
        return [str(i) for i in range(n_columns)]
    fields = _fields(before, (int(found.starts[-1, 0]), int(found.stops[-1, -1])), delimiter)
    names = [name.strip() or f"column {i}" for i, name in enumerate(fields, start=1)]
    return names if len(names) == n_columns else [str(i) for i in range(n_columns)]


def _lines(data: Array, newline: int, last: bool) -> list[bytes]:
    """Return the first whole lines."""
    found = split_fields(data, 1, 0, newline, last=last, returns=False)
    rows = np.concatenate([np.column_stack([found.starts, found.stops]), found.odd[:, 1:]])
    return [data[a:b].tobytes() for a, b in sorted(map(tuple, rows.tolist()))[:200]]


def _delimiter(lines: list[bytes]) -> tuple[int, int]:
    """Return the delimiter, and the number of fields of most lines."""
    counts = {d: _counts(lines, d) for d in DELIMITERS}
    held = [line for line in lines if line.strip()]
    first = {d: _counts(held[:1], d)[0] if held else 1 for d in DELIMITERS}
    best = max(DELIMITERS, key=lambda d: first[d])
    usual = Counter(counts[best]).most_common(1)[0][0]
    if first[best] < 2 or first[best] != usual:
        # There is a title above the names: most lines decide.
        best = max(
            DELIMITERS, key=lambda d: max(n * times for n, times in Counter(counts[d]).items())
        )
        usual = Counter(counts[best]).most_common(1)[0][0]
    if usual < 2:
        # No other delimiter: perhaps spaces, as numpy writes.
        spaces, times = Counter(_counts(lines, " ")).most_common(1)[0]
        if spaces > 1 and 2 * times > len(lines):
            return ord(" "), spaces
    return ord(best), usual


def _counts(lines: list[bytes], delimiter: str) -> list[int]:
    """Return the number of fields of each line."""
    found = []
    for line in lines:
        if line.strip():
            text = np.frombuffer(line, np.uint8)
            quotes = (text == 34).cumsum() % 2 == 1
            found.append(1 + int(((text == ord(delimiter)) & ~quotes).sum()))
    return found or [1]


def _first_row(
    data: Array, delimiter: int, newline: int, n_columns: int, last: bool
) -> tuple[int, int]:
    """Return where the first line with ``n_columns`` fields starts and stops."""
    found = split_fields(data, n_columns, delimiter, newline, last=last, returns=False)
    if not len(found.starts):
        return 0, len(data)
    return int(found.starts[0, 0]), int(found.stops[0, -1])


def _fields(text: bytes, line: tuple[int, int], delimiter: int) -> list[str]:
    """Return the fields of a line as texts."""
    raw = text[line[0] : line[1]].removeprefix(_BOM if line[0] == 0 else b"").rstrip(b"\r")
    try:
        words = io.StringIO(raw.decode("utf-8", "replace"), newline="")
        return next(csv.reader(words, delimiter=chr(delimiter)), [""])
    except csv.Error as error:
        raise TableError(f"the names of the columns cannot be read ({error}).") from error


def _decimal_mark(data: Array, n_columns: int, delimiter: int, newline: int) -> int:
    """Return the mark under which more fields are decimal numbers."""
    if delimiter == 44:
        return 46
    found = split_fields(data[: 1 << 16], n_columns, delimiter, newline, last=False, returns=True)
    starts, stops = found.starts.reshape(-1), found.stops.reshape(-1)
    nothing = np.zeros((0, 1), np.uint8)
    point, comma = (
        int((read_numbers(data, starts, stops, mark, nothing).kinds == DECIMAL).sum())
        for mark in (46, 44)
    )
    return 44 if comma > point else 46
