"""Decoded blocks to the lines of a text file, and the layout that all blocks share."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from kernelatoms.codec.blocks import Compressed, DecodedBlock
from kernelatoms.codec.limits import MOST_COLUMNS, CodecError, DecodingBudget
from kernelatoms.codec.loops.text_fields import (
    BARE,
    QUOTED,
    SPACED,
    Texts,
    can_be_texts,
    join_fields,
    number_texts,
)
from kernelatoms.codec.packed.csv_columns import (
    CLIPPED,
    EXTENDED,
    MOST_DECIMALS,
    SIGNIFICANT,
    TextColumn,
    column_decimals,
    finish_numbers,
    no_texts,
    read_texts,
)
from kernelatoms.codec.packed.csv_survey import Dialect, names_of, numbered
from kernelatoms.codec.packed.sources import check_columns, from_ranges, other_columns
from kernelatoms.codec.packing import Cursor
from kernelatoms.engine import Array

# Fields written at a time.
_PIECE_FIELDS = 1 << 20
# Bytes of memory per line with another number of fields; the time per column of a piece, in values
# of the fastest model.
_ODD_LINE, _COLUMN_WORK = 64, 10


class Layout(NamedTuple):
    """What the blocks of a text file share."""

    dialect: Dialect  # delimiter, line ends, decimal mark and names
    returns: bool  # whether lines end with a carriage return and a newline
    chosen: list[int]  # the approximate columns
    kept: list[int]  # all others
    whole: list[bool]  # per approximate column: whether it holds integers
    styles: list[int]  # per approximate column: bare, behind a space, or in quotes


def read_layout(opened: Compressed) -> Layout:
    """Return the layout in a header; ``CodecError`` if it is invalid."""
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
    names = names_of(before, n_columns, ord(delimiter), newline) if named else numbered(n_columns)
    dialect = Dialect(before, ord(delimiter), newline, ord(mark), names, named)
    check_columns(opened, len(chosen))
    whole = [i in places for i in range(len(chosen))]
    kept = other_columns(chosen, n_columns)
    return Layout(dialect, end == "\r\n", chosen, kept, whole, [int(s) for s in styles])


def check_same(path: Path, new: Dialect, returns: bool, layout: Layout) -> None:
    """Refuse to add rows of another layout."""
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


class BlockTexts:
    """The numbers and texts of a decoded block; ``CodecError`` if it is invalid."""

    def __init__(self, block: DecodedBlock, layout: Layout, budget: DecodingBudget) -> None:
        cursor = Cursor(block.exact, "a block")
        n_chosen = len(layout.chosen)
        self._layout, self.n_rows = layout, block.n_rows
        self.digits, self.form = (cursor.take(2) if n_chosen else b"\0\0")[:2]
        self.low = np.frombuffer(cursor.take(n_chosen), np.uint8)
        self.high = np.frombuffer(cursor.take(n_chosen), np.uint8)
        if bool(n_chosen) != (block.matrix is not None):
            raise CodecError("a block has no numbers where some should be.")
        ends = [*self.low, *self.high, self.digits]
        known = self.form in (CLIPPED, EXTENDED) or (self.form == SIGNIFICANT and self.digits > 0)
        if not known or max(ends) > MOST_DECIMALS:
            raise CodecError("a block does not say how its numbers are written.")
        self.numbers = np.empty((block.n_rows, 0))
        if block.matrix is not None:
            way = (self.digits, self.form, self.low, self.high, np.array(layout.whole))
            self.numbers = finish_numbers(block.matrix.astype(np.float64), *way)
        self._read(cursor, budget, block.size)

    def _read(self, cursor: Cursor, budget: DecodingBudget, block_size: int) -> None:
        self._others: list[TextColumn] = []
        for n_holes in np.isnan(self.numbers).sum(axis=0).tolist():
            here = cursor.take(1) != b"\0"
            self._others.append(read_texts(cursor, n_holes) if here else no_texts)
        self._kept = [read_texts(cursor, self.n_rows) for _ in self._layout.kept]
        n_odd = cursor.number()
        if n_odd > cursor.left:
            raise CodecError("a block has fewer lines than it should.")
        budget.take(_ODD_LINE * n_odd, block_size)
        self.odd_rows = np.array([cursor.number() for _ in range(n_odd)], np.int64)
        if (np.diff(self.odd_rows) < 0).any() or self.odd_rows.max(initial=0) > self.n_rows:
            raise CodecError("a block has lines at impossible places.")
        self.odd = read_texts(cursor, n_odd) if n_odd else no_texts
        cursor.end()

    def pieces(self, low: int, high: int, end: bytes) -> Iterator[tuple[int, Array, Array]]:
        """Yield rows as lines, piece by piece: first row, lines, their starts and the last end."""
        layout = self._layout
        whole = np.array(layout.whole, bool)
        decimals = column_decimals(self.digits, self.form, self.low, self.high, whole)
        numbers = [_NumberColumn(self, i, int(n), low) for i, n in enumerate(decimals)]
        in_order = np.argsort([*layout.kept, *layout.chosen])
        newline = np.frombuffer(end, np.uint8)
        sources: list[TextColumn] = [*self._kept, *numbers]
        n_rows = piece_rows(layout.dialect.n_columns)
        for start in range(low, high, n_rows):
            stop = min(high, start + n_rows)
            columns = [sources[i](start, stop) for i in in_order]
            yield start, *join_fields(columns, layout.dialect.delimiter, newline)


def piece_rows(n_columns: int) -> int:
    """Return the rows per piece."""
    return max(1, _PIECE_FIELDS // n_columns)


class _NumberColumn:
    """A column of numbers as texts, in the order of rows; other texts where numbers are missing."""

    def __init__(self, said: BlockTexts, i: int, decimals: int, row: int) -> None:
        layout = said._layout
        self._values = np.ascontiguousarray(said.numbers[:, i])
        self._others = said._others[i]
        self._other = int(np.isnan(self._values[:row]).sum())
        self._mark, self._style = layout.dialect.mark, layout.styles[i]
        self._low = 0 if layout.whole[i] else min(int(said.low[i]), decimals)
        # All numbers of a block's column are written in one way.
        short = said.form != SIGNIFICANT or layout.whole[i]
        self._decimals = decimals if short and can_be_texts(self._values, decimals) else None

    def __call__(self, start: int, stop: int) -> Texts:
        """Return the texts of the next rows."""
        values = self._values[start:stop]
        first = self._other
        self._other += int(np.isnan(values).sum())
        others = self._others(first, self._other)
        if self._decimals is not None:
            found = number_texts(values, self._low, self._decimals, self._mark, self._style, others)
            assert found is not None, "numbers that can be written are not"
            return found
        return _long_texts(values, self._mark, self._style, others)


def _long_texts(values: Array, mark: int, style: int, others: Texts) -> Texts:
    """Return numbers with all their digits as texts."""
    before, behind = {BARE: (b"", b""), QUOTED: (b'"', b'"')}.get(style, (b" ", b""))
    found, ends = [], pairwise(others.offsets.tolist())
    for value in values.tolist():
        if value != value:
            low, high = next(ends)
            found.append(others.data[low:high].tobytes())
            continue
        text = repr(value).encode()
        found.append(before + (text.replace(b".", b",") if mark == 44 else text) + behind)
    offsets = np.cumsum([0, *map(len, found)])
    return Texts(np.frombuffer(b"".join(found), np.uint8), offsets)


def restore_csv(
    opened: Compressed, file: IO[bytes], rows: tuple[int, int] | None,
    on_block: Callable[[int], None],
) -> None:  # fmt: skip
    """Write the text file that was compressed, or some of its rows."""
    table, layout = opened.header.table, read_layout(opened)
    end = b"\r" if layout.dialect.newline == 13 else b"\r\n" if layout.returns else b"\n"
    total = opened.n_rows()
    start, stop = (0, total) if rows is None else rows
    file.write(layout.dialect.before)
    if total == 0:
        rest = table.get("rest", "")
        try:
            file.write(rest.encode("latin-1"))
        except (AttributeError, ValueError) as error:
            raise CodecError("its last lines cannot be read.") from error
        return
    # Every field takes at least a byte: the delimiter.
    n_columns = layout.dialect.n_columns
    opened.budget.check((stop - start) * n_columns)
    n_pieces = len(opened.entries()) + (stop - start) // piece_rows(n_columns)
    opened.budget.take_work(_COLUMN_WORK * n_columns * n_pieces)
    for block in opened.blocks(0, start, stop):
        low, high = max(start, block.start), min(stop, block.start + block.n_rows)
        said = BlockTexts(block, layout, opened.budget)
        waiting = b""
        for text in _lines(said, end, low - block.start, high - block.start):
            opened.budget.check(file.tell() + len(waiting) + len(text))
            file.write(waiting)
            waiting = text
        if high == total and table.get("open"):
            waiting = waiting.removesuffix(end)
        file.write(waiting)
        on_block(high - low)


def _lines(said: BlockTexts, end: bytes, low: int, high: int) -> Iterator[bytes]:
    """Yield the lines of rows of a block; lines without a row come before the next row."""
    for start, lines, places in said.pieces(low, high, end):
        stop = start + len(places) - 1
        # Lines after the last row of the block belong to it.
        side = "right" if stop == high == said.n_rows else "left"
        first = int(np.searchsorted(said.odd_rows, start))
        last = int(np.searchsorted(said.odd_rows, stop, side))  # type: ignore[call-overload]
        if first == last:
            yield lines.tobytes()
            continue
        odd, found, row = said.odd(first, last), [], start
        for i, before in enumerate(said.odd_rows[first:last].tolist()):
            found.append(lines[places[row - start] : places[before - start]].tobytes())
            found.append(odd.data[odd.offsets[i] : odd.offsets[i + 1]].tobytes() + end)
            row = before
        found.append(lines[places[row - start] :].tobytes())
        yield b"".join(found)
