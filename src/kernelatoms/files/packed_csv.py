"""Text files to blocks and back: numbers of approximate columns as a matrix, all else verbatim.

A file is read twice. The first time tells which columns are numbers, over all rows; the second
makes blocks of whole lines. Fields are bytes as they stand in the file: quotes, leading zeros,
words for missing values and lines of another number of fields come back as they were.

Approximate numbers are written with at most as many decimals as their column had in the block, and
fewer where the bound leaves room for it; with more only where rounding would break the bound.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.blocks import Block
from kernelatoms.codec.errors import CodecError
from kernelatoms.codec.opened import Compressed
from kernelatoms.codec.packing import number
from kernelatoms.engine.cpu.text_fields import (
    BARE,
    DECIMAL,
    LONG,
    N_KINDS,
    N_STYLES,
    QUOTED,
    SPACED,
    TEXT,
    WHOLE,
    Numbers,
    read_numbers,
    split_fields,
)
from kernelatoms.files.csv_dialect import MOST_COLUMNS, Dialect, find_dialect, names_of
from kernelatoms.files.csv_numbers import MOST_DECIMALS, finisher
from kernelatoms.files.ranges import as_ranges, check_columns, from_ranges
from kernelatoms.files.selecting import choose_columns
from kernelatoms.files.sources import OnStep, PartPlan, quiet
from kernelatoms.files.tables.first_lines import MISSING_WORDS
from kernelatoms.files.tables.table import TableError
from kernelatoms.files.text_columns import column_bytes, picked, text_bytes

Array = NDArray[Any]

_CHUNK = 1 << 24
# A quote that is never closed makes one line of the rest of a file.
_MOST_LINE = 1 << 26
# Words among numbers, in a column that still counts as one of numbers.
_MOST_WORDS = 0.05
# Columns whose numbers all have the same decimals, up to so many, keep zeros at the end.
_MOST_FIXED = 6

_WORDS = np.zeros((len(MISSING_WORDS), 8), np.uint8)
for _i, _word in enumerate(MISSING_WORDS):
    _WORDS[_i, : len(_word)] = np.frombuffer(_word.encode(), np.uint8)
_WORDS = _WORDS[1:]  # an empty field is known without


class Layout(NamedTuple):
    """What blocks of a text file have in common.

    Parameters
    ----------
    dialect : Dialect
        How the file writes a table.
    returns : bool
        Whether lines end with a carriage return, too.
    chosen, kept : list of int
        Places of approximate columns, and of all others.
    whole : list of bool
        Of each approximate column: whether it is one of whole numbers.
    styles : list of int
        Of each: bare, behind a space, or in quotes.
    """

    dialect: Dialect
    returns: bool
    chosen: list[int]
    kept: list[int]
    whole: list[bool]
    styles: list[int]


class CsvSource:
    """A text file; see ``sources.Source``.

    Parameters
    ----------
    path : Path
        The file.
    approximate, exact : sequence of str
        Columns of whole numbers to approximate, columns of decimal numbers to keep.
    like : Compressed or None
        A compressed table whose columns are kept in the same way.
    all_exact : bool
        Keep all columns as they are.
    on_step : callable
        Told how far the first reading is.
    """

    kind = "csv"

    def __init__(
        self, path: Path, approximate: Sequence[str], exact: Sequence[str],
        like: Compressed | None = None, all_exact: bool = False, on_step: OnStep = quiet,
    ) -> None:  # fmt: skip
        self.path = path
        self.notes: list[str] = []
        self._dialect = find_dialect(path)
        survey = _survey(path, self._dialect, on_step)
        self._n_rows, self._rest, self._open = survey.n_rows, survey.rest, survey.open
        if like is None:
            self._layout = self._choose(survey, approximate, exact, all_exact)
        else:
            self._layout = read_layout(like)
            _check_same(path, self._dialect, survey.returns, self._layout)
        names = self._dialect.names
        self.columns = {
            "approximate": [names[i] for i in self._layout.chosen],
            "exact": [names[i] for i in self._layout.kept],
        }
        if survey.n_odd:
            self.notes.append(
                f"{path}: lines that do not have {len(names)} fields are kept as they are; there "
                f"are {survey.n_odd:,}."
            )
        n_columns = len(self._layout.chosen) if self._n_rows else 0
        row_bytes = path.stat().st_size // max(1, self._n_rows)
        row_values = max(n_columns, row_bytes // 16, 1)
        dtype = "f8" if n_columns else ""
        self.parts = [PartPlan("", "", self._n_rows, row_values, n_columns, 0, dtype)]

    def _choose(
        self, survey: "_Survey", approximate: Sequence[str], exact: Sequence[str], all_exact: bool
    ) -> Layout:
        found = [_column_kind(counts) for counts in survey.counts]
        chosen, kept = choose_columns(
            self.path,
            self._dialect.names,
            [kind for kind, _ in found],
            approximate,
            exact,
            all_exact,
        )
        styles = [found[i][1] for i in chosen]
        whole = [found[i][0] == "exact" for i in chosen]
        return Layout(self._dialect, survey.returns, chosen, kept, whole, styles)

    def sample(self, part: int, n_rows: int) -> Array:
        """Return the first rows of the matrix of approximate columns."""
        for text in _lines(self.path, self._dialect, n_rows):
            return _Parsed(text, self._layout).matrix
        raise AssertionError("a table without rows has no numbers")

    def blocks(self, part: int, block_rows: int) -> Iterator[Block]:
        """Yield the table, block after block."""
        if not self._n_rows:
            return
        for text in _lines(self.path, self._dialect, block_rows):
            parsed = _Parsed(text, self._layout)
            matrix = parsed.matrix if self._layout.chosen else None
            whole = np.array(self._layout.whole)
            finish = (
                finisher(matrix, parsed.low, parsed.high, whole) if matrix is not None else None
            )
            yield Block(0, len(parsed.matrix), matrix, parsed.exact(), finish)

    def table(self) -> Mapping[str, Any]:
        """Return how the file writes its table."""
        layout, dialect = self._layout, self._layout.dialect
        fields = {
            "line": dialect.before.decode("latin-1"),
            "columns": dialect.n_columns,
            "delimiter": chr(dialect.delimiter),
            "approximate": as_ranges(layout.chosen),
            "end": {13: "\r"}.get(dialect.newline, "\r\n" if layout.returns else ""),
            "mark": "," if dialect.mark == 44 else "",
            "whole": as_ranges([i for i, is_whole in enumerate(layout.whole) if is_whole]),
            "styles": layout.styles if any(layout.styles) else [],
            "names": int(dialect.named),
            "open": int(self._open),
            "rest": self._rest.decode("latin-1"),
        }
        return {key: value for key, value in fields.items() if value}

    def schema(self) -> bytes:
        """Return nothing: the header says all."""
        return b""


class _Survey(NamedTuple):
    """What the first reading found."""

    n_rows: int
    n_odd: int
    counts: Array
    returns: bool
    open: bool
    rest: bytes


def _survey(path: Path, dialect: Dialect, on_step: OnStep) -> _Survey:
    n_rows = n_odd = n_returns = n_lines = done = 0
    counts = np.zeros((dialect.n_columns, N_KINDS, N_STYLES), np.int64)
    size, open_end = path.stat().st_size, False
    for text, last in _chunks(path, dialect):
        data = np.frombuffer(text, np.uint8)
        found = split_fields(
            data, dialect.n_columns, dialect.delimiter, dialect.newline, last=last, returns=True
        )
        for i in range(dialect.n_columns):
            starts, stops = found.starts[:, i].copy(), found.stops[:, i].copy()
            read = read_numbers(data, starts, stops, dialect.mark, _WORDS)
            both = read.kinds.astype(np.intp) * N_STYLES + read.styles
            counts[i] += np.bincount(both, minlength=N_KINDS * N_STYLES).reshape(counts[i].shape)
        n_rows, n_lines = n_rows + len(found.starts), n_lines + len(found.odd)
        n_odd += int((found.odd[:, 2] > found.odd[:, 1]).sum())  # empty lines are nothing to note
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
    return _Survey(n_rows, n_odd, counts, returns, open_end, rest)


def _chunks(path: Path, dialect: Dialect) -> Iterator[tuple[bytes, bool]]:
    """Yield whole lines, some megabytes at a time, and whether they are the last."""
    with path.open("rb") as file:
        file.seek(len(dialect.before))
        rest = b""
        while True:
            new = file.read(_CHUNK)
            data, last = rest + new, len(new) < _CHUNK
            used = len(data)
            if not last:
                view = np.frombuffer(data, np.uint8)
                used = split_fields(
                    view, dialect.n_columns, dialect.delimiter, dialect.newline, last=False,
                    returns=True,
                ).used  # fmt: skip
            if len(data) - used > _MOST_LINE:
                raise TableError(
                    f"{path} has a line of more than {_MOST_LINE >> 20} MiB; is a quote never "
                    "closed?"
                )
            yield data[:used], last
            rest = data[used:]
            if last:
                return


def _lines(path: Path, dialect: Dialect, n_rows: int) -> Iterator[bytes]:
    """Yield lines with exactly so many rows, the last perhaps fewer; other lines go with them."""
    waiting, n_waiting = [], 0
    ready: bytes | None = None
    for text, last in _chunks(path, dialect):
        data = np.frombuffer(text, np.uint8)
        found = split_fields(
            data, dialect.n_columns, dialect.delimiter, dialect.newline, last=last, returns=False
        )
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
    # Lines behind the last row belong to it.
    rest = b"".join(waiting)
    if n_waiting:
        if ready is not None:
            yield ready
        yield rest
    elif ready is not None:
        yield ready + rest


def _column_kind(counts: Array) -> tuple[str, int]:
    """Return what becomes of a column by default, and how most of its numbers stand."""
    style = int(counts[[WHOLE, DECIMAL, LONG]].sum(axis=0).argmax())
    decimals = int(counts[[DECIMAL, LONG], style].sum())
    numbers = decimals + int(counts[WHOLE, style])
    words = int(counts[[WHOLE, DECIMAL, LONG]].sum()) - numbers + int(counts[TEXT].sum())
    if words > _MOST_WORDS * (numbers + words) or not numbers:
        return "no numbers", style
    return ("approximate" if decimals else "exact"), style


class _Parsed:
    """A block of lines: the matrix of its approximate columns, and the texts of all else."""

    def __init__(self, text: bytes, layout: Layout) -> None:
        dialect = layout.dialect
        data = np.frombuffer(text, np.uint8)
        found = split_fields(
            data, dialect.n_columns, dialect.delimiter, dialect.newline, last=True,
            returns=layout.returns,
        )  # fmt: skip
        self._data, self._layout, self._odd = data, layout, found.odd
        self._starts, self._stops = found.starts, found.stops
        self.matrix = np.empty((len(found.starts), len(layout.chosen)))
        self.low = np.zeros(len(layout.chosen), np.uint8)
        self.high = np.zeros(len(layout.chosen), np.uint8)
        for i, place in enumerate(layout.chosen):
            self._read_column(i, place)

    def _numbers(self, place: int) -> Numbers:
        starts, stops = self._starts[:, place].copy(), self._stops[:, place].copy()
        return read_numbers(self._data, starts, stops, self._layout.dialect.mark, _WORDS)

    def _read_column(self, i: int, place: int) -> None:
        read = self._numbers(place)
        values = read.values.copy()
        long = np.flatnonzero(read.kinds == LONG)
        if len(long):
            values[long] = self._long_numbers(long, place)
        values[read.styles != self._layout.styles[i]] = np.nan
        present = ~np.isnan(values)
        decimals = np.minimum(read.decimals[present], MOST_DECIMALS)
        if len(decimals):
            low, high = int(decimals.min()), int(decimals.max())
            # 20.50 where all have two decimals; digits of long ones are no custom to keep.
            self.low[i], self.high[i] = low if low == high <= _MOST_FIXED else min(low, 1), high
        self.matrix[:, i] = values

    def _long_numbers(self, rows: Array, place: int) -> Array:
        """Return numbers of many digits, and those with an exponent; NaN beyond all floats."""
        texts = picked(self._data, self._starts[rows, place], self._stops[rows, place])
        width = int(np.diff(texts.offsets).max())
        grid = np.zeros((len(rows), width), np.uint8)
        columns = np.arange(len(texts.data)) - np.repeat(texts.offsets[:-1], np.diff(texts.offsets))
        grid[np.repeat(np.arange(len(rows)), np.diff(texts.offsets)), columns] = texts.data
        grid[grid == 34] = 32
        if self._layout.dialect.mark == 44:
            grid[grid == 44] = 46
        values = grid.view(f"S{width}").reshape(-1).astype(np.float64)
        return np.where(np.isfinite(values), values, np.nan)

    def exact(self) -> bytes:
        """Return all but the matrix: other texts in approximate columns, other columns, lines."""
        parts = [self.low.tobytes(), self.high.tobytes()]
        for i, place in enumerate(self._layout.chosen):
            holes = np.isnan(self.matrix[:, i])
            texts = picked(self._data, self._starts[holes, place], self._stops[holes, place])
            # Nearly always nothing stands where no number does.
            parts.append(b"\0" if not len(texts.data) else b"\1" + text_bytes(texts))
        for place in self._layout.kept:
            texts = picked(self._data, self._starts[:, place], self._stops[:, place])
            parts.append(column_bytes(texts, self._numbers(place)))
        parts.append(number(len(self._odd)))
        if len(self._odd):
            parts += [number(int(row)) for row in self._odd[:, 0]]
            parts.append(text_bytes(picked(self._data, self._odd[:, 1], self._odd[:, 2])))
        return b"".join(parts)


def read_layout(opened: Compressed) -> Layout:
    """Return the layout that a header tells; ``CodecError`` if it tells none."""
    table = opened.header.table
    try:
        n_columns, line = table["columns"], table.get("line", "")
        delimiter, end = table.get("delimiter", ","), table.get("end", "\n")
        mark, styles = table.get("mark", "."), table.get("styles", [])
        before = line.encode("latin-1")
        right = type(n_columns) is int and 0 < n_columns <= MOST_COLUMNS
        right &= delimiter in (",", ";", "\t", "|", " ") and end in ("\n", "\r\n", "\r")
        right &= mark in (".", ",") and isinstance(styles, list)
    except (KeyError, AttributeError, ValueError, TypeError) as error:
        raise CodecError("it does not say how its table was written.") from error
    if not right:
        raise CodecError("it does not say how its table was written.")
    chosen = from_ranges(table.get("approximate", []), n_columns)
    places = set(from_ranges(table.get("whole", []), len(chosen)))
    styles = styles or [BARE] * len(chosen)
    if len(styles) != len(chosen) or any(s not in (BARE, SPACED, QUOTED) for s in styles):
        raise CodecError("it does not say how its numbers were written.")
    newline = 13 if end == "\r" else 10
    named = bool(table.get("names"))
    names = [str(i) for i in range(n_columns)]
    if named:
        names = names_of(before, n_columns, ord(delimiter), newline)
    dialect = Dialect(before, ord(delimiter), newline, ord(mark), names, named)
    check_columns(opened, len(chosen))
    kept = sorted(set(range(n_columns)) - set(chosen))
    whole = [i in places for i in range(len(chosen))]
    return Layout(dialect, end == "\r\n", chosen, kept, whole, [int(s) for s in styles])


def _check_same(path: Path, new: Dialect, returns: bool, layout: Layout) -> None:
    """Refuse to add rows of other columns."""
    old = layout.dialect
    if new.names != old.names:
        raise ValueError(
            f"append: {path} has other columns than the file that was compressed: "
            f"{', '.join(map(repr, new.names[:8]))}, and not {', '.join(map(repr, old.names[:8]))}."
        )
    same = (new.delimiter, new.newline) == (old.delimiter, old.newline)
    if not same or returns != layout.returns:
        raise ValueError(
            f"append: {path} is written with another delimiter or other ends of lines than "
            "the file that was compressed."
        )
