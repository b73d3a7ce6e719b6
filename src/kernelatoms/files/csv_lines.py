"""Decoded blocks of a text file as lines again."""

from collections.abc import Callable
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.errors import CodecError
from kernelatoms.codec.opened import Compressed, DecodedBlock
from kernelatoms.codec.packing import Cursor
from kernelatoms.engine.cpu.text_fields import BARE, QUOTED, join_fields, number_texts
from kernelatoms.files.csv_numbers import (
    CLIPPED,
    EXTENDED,
    MOST_DECIMALS,
    SIGNIFICANT,
    column_decimals,
    finish_numbers,
)
from kernelatoms.files.packed_csv import Layout, read_layout
from kernelatoms.files.text_columns import Texts, read_texts

Array = NDArray[Any]


class BlockTexts:
    """What a decoded block says beside its numbers.

    Parameters
    ----------
    block : DecodedBlock
        The block.
    layout : Layout
        What blocks have in common.

    Raises
    ------
    CodecError
        If it says something else.
    """

    def __init__(self, block: DecodedBlock, layout: Layout) -> None:
        cursor = Cursor(block.exact, "a block")
        n_chosen = len(layout.chosen)
        self._layout, self.n_rows = layout, block.n_rows
        self.digits, self.form = (cursor.take(2) if n_chosen else b"\0\0")[:2]
        self.low = np.frombuffer(cursor.take(n_chosen), np.uint8)
        self.high = np.frombuffer(cursor.take(n_chosen), np.uint8)
        if bool(n_chosen) != (block.matrix is not None):
            raise CodecError("a block has no numbers where some should be.")
        ends = [*self.low, *self.high, self.digits]
        if self.form not in (CLIPPED, EXTENDED, SIGNIFICANT) or max(ends) > MOST_DECIMALS:
            raise CodecError("a block does not say how its numbers are written.")
        if self.form == SIGNIFICANT and self.digits == 0:
            raise CodecError("a block does not say how its numbers are written.")
        self.numbers = np.empty((block.n_rows, 0))
        if block.matrix is not None:
            self.numbers = finish_numbers(
                block.matrix.astype(np.float64), self.digits, self.form, self.low, self.high,
                np.array(layout.whole),
            )  # fmt: skip
        self._read(cursor)

    def _read(self, cursor: Cursor) -> None:
        self.others = []
        for i in range(len(self._layout.chosen)):
            n_holes = int(np.isnan(self.numbers[:, i]).sum())
            if cursor.take(1) == b"\0":
                self.others.append(Texts(np.empty(0, np.uint8), np.zeros(n_holes + 1, np.int64)))
            else:
                self.others.append(read_texts(cursor, n_holes))
        self.kept = [read_texts(cursor, self.n_rows) for _ in self._layout.kept]
        n_odd = cursor.number()
        if n_odd > cursor.left:
            raise CodecError("a block tells of more lines than it has.")
        self.odd_rows = [cursor.number() for _ in range(n_odd)]
        if self.odd_rows != sorted(self.odd_rows) or max(self.odd_rows, default=0) > self.n_rows:
            raise CodecError("a block tells of lines that are not in it.")
        self.odd = read_texts(cursor, n_odd) if n_odd else None
        cursor.end()

    def lines(self, end: bytes) -> tuple[Array, Array]:
        """Return all rows as lines, and where each begins, with the end of the last."""
        layout = self._layout
        columns: list[Any] = [None] * layout.dialect.n_columns
        for place, texts in zip(layout.kept, self.kept, strict=True):
            columns[place] = texts
        decimals = column_decimals(
            self.digits, self.form, self.low, self.high, np.array(layout.whole, bool)
        )
        for i, place in enumerate(layout.chosen):
            columns[place] = self._number_column(i, int(decimals[i]))
        starts = np.cumsum([0, *(len(texts.data) for texts in columns)])
        offsets = np.stack(
            [texts.offsets + starts[i] for i, texts in enumerate(columns)]
        )  # fmt: skip
        data = np.concatenate([texts.data for texts in columns])
        return join_fields(data, offsets, layout.dialect.delimiter, np.frombuffer(end, np.uint8))

    def _number_column(self, i: int, decimals: int) -> Texts:
        layout, others = self._layout, self.others[i]
        values = np.ascontiguousarray(self.numbers[:, i])
        if self.form != SIGNIFICANT or layout.whole[i]:
            low = 0 if layout.whole[i] else min(int(self.low[i]), decimals)
            found = number_texts(
                values, low, decimals, layout.dialect.mark, layout.styles[i], *others
            )
            if found is not None:
                return Texts(*found)
        return _long_texts(values, layout.dialect.mark, layout.styles[i], others)


def _long_texts(values: Array, mark: int, style: int, others: Texts) -> Texts:
    """Return numbers of many digits as texts."""
    before, behind = {BARE: (b"", b""), QUOTED: (b'"', b'"')}.get(style, (b" ", b""))
    found, other = [], 0
    for value in values.tolist():
        if value != value:
            low, high = others.offsets[other], others.offsets[other + 1]
            found.append(others.data[low:high].tobytes())
            other += 1
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
    for block in opened.blocks(0, start, stop):
        low, high = max(start, block.start), min(stop, block.start + block.n_rows)
        text = _block_lines(block, layout, end, low - block.start, high - block.start)
        if high == total and table.get("open"):
            text = text.removesuffix(end)
        file.write(text)
        on_block(high - low)


def _block_lines(block: DecodedBlock, layout: Layout, end: bytes, low: int, high: int) -> bytes:
    """Return the lines of some rows of a block; lines of no row go with the row behind them."""
    said = BlockTexts(block, layout)
    lines, places = said.lines(end)
    if said.odd is None:
        return lines[places[low] : places[high]].tobytes()
    found, row = [], low
    for i, before in enumerate(said.odd_rows):
        inside = low <= before < high or (before == high == said.n_rows)
        if not inside:
            continue
        found.append(lines[places[row] : places[before]].tobytes())
        text = said.odd.data[said.odd.offsets[i] : said.odd.offsets[i + 1]].tobytes()
        found.append(text + end)
        row = before
    found.append(lines[places[row] : places[high]].tobytes())
    return b"".join(found)
