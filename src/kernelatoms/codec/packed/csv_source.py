"""Text files to blocks: numbers of approximate columns as a matrix, everything else verbatim.

A file is read twice: the survey finds the columns of numbers, the second pass makes blocks of whole
lines. Fields are bytes as in the file: quotes, leading zeros, words for missing values and lines
with another number of fields come back unchanged.

Approximate numbers are written with at most as many decimals as their column had in the block, with
fewer where the bound allows it, and with more only where rounding would break the bound.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernelatoms.codec.blocks import Block, Compressed
from kernelatoms.codec.loops.text_fields import LONG, Numbers, read_numbers, take_texts
from kernelatoms.codec.packed.csv_columns import MOST_DECIMALS, column_bytes, finisher, text_bytes
from kernelatoms.codec.packed.csv_lines import Layout, check_same, read_layout
from kernelatoms.codec.packed.csv_survey import (
    WORDS,
    Survey,
    column_kind,
    find_dialect,
    survey,
    whole_lines,
)
from kernelatoms.codec.packed.sources import (
    OnStep,
    Source,
    as_ranges,
    choose_columns,
    other_columns,
    quiet,
    table_plan,
)
from kernelatoms.codec.packing import number
from kernelatoms.engine import Array

# Columns whose numbers all have the same decimals, up to this many, keep trailing zeros.
_MOST_FIXED = 6


class CsvSource(Source):
    """A text file.

    Columns named in ``approximate`` and ``exact`` are exceptions from the default, or all are as in
    ``like``, a compressed table.
    """

    kind = "csv"

    def __init__(
        self, path: Path, approximate: Sequence[str], exact: Sequence[str],
        like: Compressed | None = None, all_exact: bool = False, on_step: OnStep = quiet,
    ) -> None:  # fmt: skip
        self.path = path
        self.notes: list[str] = []
        self._dialect = find_dialect(path)
        found = survey(path, self._dialect, on_step)
        self._n_rows, self._rest, self._open = found.n_rows, found.rest, found.open
        if like is None:
            self._layout = self._choose(found, approximate, exact, all_exact)
        else:
            self._layout = read_layout(like)
            check_same(path, self._dialect, found.returns, self._layout)
        names = self._dialect.names
        self.columns = {
            "approximate": [names[i] for i in self._layout.chosen],
            "exact": [names[i] for i in self._layout.kept],
        }
        if found.n_odd:
            self.notes.append(
                f"{path}: lines that do not have {len(names)} fields are kept as they are; there "
                f"are {found.n_odd:,}."
            )
        n_bytes = path.stat().st_size
        self.parts = [table_plan(self._n_rows, len(self._layout.chosen), n_bytes, "f8")]

    def _choose(
        self, found: Survey, approximate: Sequence[str], exact: Sequence[str], all_exact: bool
    ) -> Layout:
        kinds, names = [column_kind(counts) for counts in found.counts], self._dialect.names
        defaults = [kind for kind, _ in kinds]
        chosen = choose_columns(self.path, names, defaults, approximate, exact, all_exact)
        styles = [kinds[i][1] for i in chosen]
        whole = [defaults[i] == "exact" for i in chosen]
        kept = other_columns(chosen, len(names))
        return Layout(self._dialect, found.returns, chosen, kept, whole, styles)

    def sample(self, part: int, n_rows: int) -> Array:
        """Return the first rows of the matrix."""
        text = next(whole_lines(self.path, self._dialect, n_rows))
        return _Parsed(text, self._layout).matrix

    def blocks(self, part: int, block_rows: int) -> Iterator[Block]:
        """Yield the table, block after block."""
        if not self._n_rows:
            return
        for text in whole_lines(self.path, self._dialect, block_rows):
            parsed, matrix, finish = _Parsed(text, self._layout), None, None
            if self._layout.chosen:
                matrix = parsed.matrix
                finish = finisher(matrix, parsed.low, parsed.high, np.array(self._layout.whole))
            yield Block(0, len(parsed.matrix), matrix, parsed.exact(), finish)

    def table(self) -> Mapping[str, Any]:
        """Return the layout for the header."""
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


class _Parsed:
    """A block of lines: the matrix of approximate columns, and all other texts."""

    def __init__(self, text: bytes, layout: Layout) -> None:
        data = np.frombuffer(text, np.uint8)
        found = layout.dialect.split(data, last=True, returns=layout.returns)
        self._data, self._layout, self._odd = data, layout, found.odd
        self._starts, self._stops = found.starts, found.stops
        self.matrix = np.empty((len(found.starts), len(layout.chosen)))
        self.low = np.zeros(len(layout.chosen), np.uint8)
        self.high = np.zeros(len(layout.chosen), np.uint8)
        for i, place in enumerate(layout.chosen):
            self._read_column(i, place)

    def _numbers(self, place: int) -> Numbers:
        starts, stops = self._starts[:, place], self._stops[:, place]
        return read_numbers(self._data, starts, stops, self._layout.dialect.mark, WORDS)

    def _read_column(self, i: int, place: int) -> None:
        read = self._numbers(place)
        values = read.values
        long = np.flatnonzero(read.kinds == LONG)
        if len(long):
            values[long] = self._long_numbers(long, place)
        values[read.styles != self._layout.styles[i]] = np.nan
        present = ~np.isnan(values)
        decimals = np.minimum(read.decimals[present], MOST_DECIMALS)
        if len(decimals):
            low, high = int(decimals.min()), int(decimals.max())
            # 20.50 where all have two decimals; many equal digits are chance.
            self.low[i], self.high[i] = low if low == high <= _MOST_FIXED else min(low, 1), high
        self.matrix[:, i] = values

    def _long_numbers(self, rows: Array, place: int) -> Array:
        """Return long numbers and those with an exponent; NaN beyond float64."""
        texts = take_texts(self._data, self._starts[rows, place], self._stops[rows, place])
        lengths = np.diff(texts.offsets)
        width = int(lengths.max())
        grid = np.zeros((len(rows), width), np.uint8)
        grid[np.arange(width) < lengths[:, None]] = texts.data
        grid[grid == 34] = 32
        if self._layout.dialect.mark == 44:
            grid[grid == 44] = 46
        values = grid.view(f"S{width}").reshape(-1).astype(np.float64)
        return np.where(np.isfinite(values), values, np.nan)

    def exact(self) -> bytes:
        """Return everything but the matrix: texts in approximate columns, other columns, lines."""
        parts = [self.low.tobytes(), self.high.tobytes()]
        for i, place in enumerate(self._layout.chosen):
            holes = np.isnan(self.matrix[:, i])
            texts = take_texts(self._data, self._starts[holes, place], self._stops[holes, place])
            # Most fields without a number are empty.
            parts.append(b"\0" if not len(texts.data) else b"\1" + text_bytes(texts))
        for place in self._layout.kept:
            texts = take_texts(self._data, self._starts[:, place], self._stops[:, place])
            parts.append(column_bytes(texts, self._numbers(place)))
        parts.append(number(len(self._odd)))
        if len(self._odd):
            parts += [number(int(row)) for row in self._odd[:, 0]]
            parts.append(text_bytes(take_texts(self._data, self._odd[:, 1], self._odd[:, 2])))
        return b"".join(parts)
