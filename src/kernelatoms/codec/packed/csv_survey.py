"""What a text file is like: its dialect, which columns are numbers over all rows, whole lines."""

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kernelatoms.codec.limits import MOST_COLUMNS
from kernelatoms.codec.loops.text_fields import (
    DECIMAL,
    LONG,
    N_KINDS,
    N_STYLES,
    TEXT,
    WHOLE,
    Fields,
    read_numbers,
    split_fields,
)
from kernelatoms.codec.packed.sources import OnStep
from kernelatoms.engine import Array
from kernelatoms.files.tables.first_lines import DELIMITERS, MISSING_WORDS, is_row_of_numbers
from kernelatoms.files.tables.table import TableError

# The beginning of a file that its dialect is found in: this much, more if lines are longer.
_LOOK_AT, _MOST_LOOKED_AT = 1 << 20, 1 << 26
_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 24
# A quote that is never closed makes the rest of a file one line.
_MOST_LINE = 1 << 26
# The share of other words in a column that still counts as one of numbers.
_MOST_WORDS = 0.05

#: Words for missing values, padded with zeros; without the empty one.
WORDS = np.array([word.encode().ljust(8, b"\0") for word in MISSING_WORDS[1:]], "S8")
WORDS = WORDS.view(np.uint8).reshape(-1, 8)


@dataclass(frozen=True)
class Dialect:
    """Delimiter, line ends, decimal mark and names of a text file."""

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

    def split(self, data: Array, *, last: bool, returns: bool) -> Fields:
        """Find the fields of some lines; see ``split_fields``."""
        return split_fields(
            data, self.n_columns, self.delimiter, self.newline, last=last, returns=returns
        )


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
    rows = split_fields(data, n_columns, delimiter, newline, last=last, returns=False)
    first = (int(rows.starts[0, 0]), int(rows.stops[0, -1])) if len(rows.starts) else (0, len(data))
    fields = _fields(start, first, delimiter)
    named = not is_row_of_numbers(fields)
    stop = first[1] + 1 if named else first[0]
    names = _filled_names(fields) if named else numbered(n_columns)
    mark = _decimal_mark(data[stop:], n_columns, delimiter, newline)
    return Dialect(start[:stop], delimiter, newline, mark, names, named)


def _beginning(path: Path) -> tuple[bytes, bool]:
    """Return the beginning of a file, and whether it is the whole file."""
    size, wanted = path.stat().st_size, _LOOK_AT
    with path.open("rb") as file:
        start = file.read(wanted)
        while len(start) < min(size, _MOST_LOOKED_AT) and max(map(start.count, (b"\n", b"\r"))) < 3:
            start += file.read(wanted)
            wanted *= 2
    return start, len(start) >= size


def names_of(before: bytes, n_columns: int, delimiter: int, newline: int) -> list[str]:
    """Return the names in the last line before the rows."""
    data = np.frombuffer(before, np.uint8)
    found = split_fields(data, n_columns, delimiter, newline, last=True, returns=False)
    if not len(found.starts):
        return numbered(n_columns)
    fields = _fields(before, (int(found.starts[-1, 0]), int(found.stops[-1, -1])), delimiter)
    return _filled_names(fields) if len(fields) == n_columns else numbered(n_columns)


def numbered(n_columns: int) -> list[str]:
    """Return names for columns without names."""
    return [str(i) for i in range(n_columns)]


def _filled_names(fields: list[str]) -> list[str]:
    return [name.strip() or f"column {i}" for i, name in enumerate(fields, start=1)]


def _lines(data: Array, newline: int, last: bool) -> list[bytes]:
    """Return the first whole lines."""
    found = split_fields(data, 1, 0, newline, last=last, returns=False)
    rows = np.concatenate([np.column_stack([found.starts, found.stops]), found.odd[:, 1:]])
    return [data[a:b].tobytes() for a, b in sorted(map(tuple, rows.tolist()))[:200]]


def _delimiter(lines: list[bytes]) -> tuple[int, int]:
    """Return the delimiter, and the number of fields of most lines."""
    held = [line for line in lines if line.strip()]
    counts = {d: _counts(held, d) for d in DELIMITERS}
    best = max(DELIMITERS, key=lambda d: counts[d][0])
    usual = Counter(counts[best]).most_common(1)[0][0]
    if counts[best][0] < 2 or counts[best][0] != usual:
        # There is a title above the names: most lines decide.
        fields = {d: max(n * times for n, times in Counter(counts[d]).items()) for d in DELIMITERS}
        best = max(DELIMITERS, key=fields.__getitem__)
        usual = Counter(counts[best]).most_common(1)[0][0]
    if usual < 2:
        # No other delimiter: perhaps spaces, as numpy writes.
        spaces, times = Counter(_counts(held, " ")).most_common(1)[0]
        if spaces > 1 and 2 * times > len(lines):
            return ord(" "), spaces
    return ord(best), usual


def _counts(lines: list[bytes], delimiter: str) -> list[int]:
    """Return the number of fields of each line; 1 without lines."""
    found = []
    for line in lines:
        text = np.frombuffer(line, np.uint8)
        quoted = (text == 34).cumsum() % 2 == 1
        found.append(1 + int(((text == ord(delimiter)) & ~quoted).sum()))
    return found or [1]


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
    read = [read_numbers(data, starts, stops, mark, nothing) for mark in (46, 44)]
    point, comma = (int((numbers.kinds == DECIMAL).sum()) for numbers in read)
    return 44 if comma > point else 46


class Survey(NamedTuple):
    """The result of the first pass."""

    n_rows: int
    n_odd: int  # lines with another number of fields, without empty ones
    counts: Array  # fields per column, kind and style
    returns: bool  # whether lines end with a carriage return and a newline
    open: bool  # whether the last line has no end
    rest: bytes  # all lines of a file without rows


def survey(path: Path, dialect: Dialect, on_step: OnStep) -> Survey:
    """Read a file once."""
    n_rows = n_odd = n_returns = n_lines = done = 0
    counts = np.zeros((dialect.n_columns, N_KINDS, N_STYLES), np.int64)
    size, open_end = path.stat().st_size, False
    for text, last in _chunks(path, dialect):
        data = np.frombuffer(text, np.uint8)
        found = dialect.split(data, last=last, returns=True)
        for i in range(dialect.n_columns):
            read = read_numbers(data, found.starts[:, i], found.stops[:, i], dialect.mark, WORDS)
            both = read.kinds.astype(np.intp) * N_STYLES + read.styles
            counts[i] += np.bincount(both, minlength=N_KINDS * N_STYLES).reshape(counts[i].shape)
        n_rows, n_lines = n_rows + len(found.starts), n_lines + len(found.odd)
        n_odd += int((found.odd[:, 2] > found.odd[:, 1]).sum())
        n_returns += found.n_returns
        if last and len(text):
            open_end = text[-1] != dialect.newline
        done += len(text)
        on_step(done, size, "reading")
    n_ends = n_rows + n_lines - open_end
    before = dialect.before
    returns = n_returns == n_ends and before.count(b"\r\n") == before.count(b"\n")
    returns &= n_ends > 0 or b"\r\n" in before
    rest = b""
    if not n_rows:
        rest = path.read_bytes()[len(before) :] if size < _CHUNK else b""
        if len(rest) != size - len(before):
            raise TableError(f"{path} has no line of {dialect.n_columns} fields.")
    return Survey(n_rows, n_odd, counts, returns, open_end, rest)


def _chunks(path: Path, dialect: Dialect) -> Iterator[tuple[bytes, bool]]:
    """Yield whole lines, some megabytes at a time, and whether they are the last ones."""
    with path.open("rb") as file:
        file.seek(len(dialect.before))
        rest, last = b"", False
        while not last:
            new = file.read(_CHUNK)
            data, last = rest + new, len(new) < _CHUNK
            used = len(data)
            if not last:
                used = dialect.split(np.frombuffer(data, np.uint8), last=False, returns=True).used
            if len(data) - used > _MOST_LINE:
                raise TableError(
                    f"{path} has a line of more than {_MOST_LINE >> 20} MiB; is a quote never "
                    "closed?"
                )
            yield data[:used], last
            rest = data[used:]


def whole_lines(path: Path, dialect: Dialect, n_rows: int) -> Iterator[bytes]:
    """Yield lines with exactly ``n_rows`` rows, finally perhaps fewer, and the lines between."""
    waiting, n_waiting = [], 0
    ready: bytes | None = None
    for text, last in _chunks(path, dialect):
        found = dialect.split(np.frombuffer(text, np.uint8), last=last, returns=False)
        done = row = 0
        while len(found.starts) - row >= n_rows - n_waiting:
            row += n_rows - n_waiting
            end = int(found.stops[row - 1, -1]) + 1
            waiting.append(text[done:end])
            if ready is not None:
                yield ready
            ready, waiting, n_waiting, done = b"".join(waiting), [], 0, end
        waiting.append(text[done:])
        n_waiting += len(found.starts) - row
    # Lines after the last row belong to it.
    rest = b"".join(waiting)
    if n_waiting:
        if ready is not None:
            yield ready
        yield rest
    elif ready is not None:
        yield ready + rest


def column_kind(counts: Array) -> tuple[str, int]:
    """Return the default treatment of a column, and the style of most of its numbers."""
    style = int(counts[[WHOLE, DECIMAL, LONG]].sum(axis=0).argmax())
    decimals = int(counts[[DECIMAL, LONG], style].sum())
    numbers = decimals + int(counts[WHOLE, style])
    words = int(counts[[WHOLE, DECIMAL, LONG]].sum()) - numbers + int(counts[TEXT].sum())
    if words > _MOST_WORDS * (numbers + words) or not numbers:
        return "no numbers", style
    return ("approximate" if decimals else "exact"), style
