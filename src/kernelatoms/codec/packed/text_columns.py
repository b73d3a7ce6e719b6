"""Columns of text as bytes and back: integers, texts of one length, or any texts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.container.exact import arrange, rearrange
from kernelatoms.codec.container.packing import Cursor, number
from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.loops.text_fields import (
    BARE,
    EMPTY,
    WHOLE,
    Numbers,
    number_texts,
    take_texts,
)

Array = NDArray[Any]

_WHOLE, _SOME_WHOLE, _ONE_LENGTH, _ANY, _SAME = range(5)
_MOST_LENGTH = 64
_POINT = 46


class Texts(NamedTuple):
    """Concatenated texts with their starts and the end of the last."""

    data: Array
    offsets: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1


def column_bytes(texts: Texts, numbers: Numbers) -> bytes:
    """Return the texts of a column as bytes; ``numbers`` are those that are numbers."""
    whole = (numbers.kinds == WHOLE) & (numbers.styles == BARE)
    empty = numbers.kinds == EMPTY
    if len(texts) and whole.any() and (whole | empty).all():
        values = arrange(_narrow(numbers.values[whole]))
        if whole.all():
            return bytes([_WHOLE, _width(numbers.values[whole])]) + values
        bits = np.packbits(empty).tobytes()
        return bytes([_SOME_WHOLE, _width(numbers.values[whole])]) + bits + values
    return text_bytes(texts)


def text_bytes(texts: Texts) -> bytes:
    """Return any texts as bytes."""
    lengths = np.diff(texts.offsets)
    if len(texts) > 1 and (lengths == lengths[0]).all() and lengths[0] <= _MOST_LENGTH:
        # Bytes at the same place come together: dates and codes compress far better.
        grid = texts.data.reshape(len(texts), -1)
        if (grid == grid[:1]).all():
            return bytes([_SAME]) + number(int(lengths[0])) + texts.data[: lengths[0]].tobytes()
        return bytes([_ONE_LENGTH]) + number(int(lengths[0])) + grid.T.tobytes()
    return bytes([_ANY]) + arrange(lengths.astype(np.uint32)) + texts.data.tobytes()


#: ``column(low, high)`` returns the texts of these rows; all texts may take far more memory than
#: their bytes.
TextColumn = Callable[[int, int], Texts]


def read_texts(cursor: Cursor, n_rows: int) -> TextColumn:
    """Invert ``column_bytes``; ``CodecError`` if the bytes are not its result.

    Reading rows in order is fastest.
    """
    form = cursor.take(1)[0]
    if form in (_WHOLE, _SOME_WHOLE):
        return _WholeNumbers(cursor, n_rows, form == _SOME_WHOLE)
    if form == _SAME:
        return _same(cursor)
    if form == _ONE_LENGTH:
        return _one_length(cursor, n_rows)
    if form != _ANY:
        raise CodecError("a column of text is stored in an unknown way.")
    lengths = rearrange(cursor.take(1 + 4 * n_rows), np.dtype(np.uint32), n_rows)
    offsets = np.zeros(n_rows + 1, np.int64)
    np.cumsum(lengths, dtype=np.int64, out=offsets[1:])
    data = np.frombuffer(cursor.take(int(offsets[-1])), np.uint8)

    def some(low: int, high: int) -> Texts:
        places = offsets[low : high + 1]
        return Texts(data[places[0] : places[-1]], places - places[0])

    return some


def no_texts(low: int, high: int) -> Texts:
    """Return empty texts."""
    return Texts(np.empty(0, np.uint8), np.zeros(high - low + 1, np.int64))


def _same(cursor: Cursor) -> TextColumn:
    same = np.frombuffer(cursor.counted(), np.uint8)
    _check_length(len(same))

    def some(low: int, high: int) -> Texts:
        return Texts(np.tile(same, high - low), np.arange(high - low + 1) * len(same))

    return some


def _one_length(cursor: Cursor, n_rows: int) -> TextColumn:
    length = cursor.number()
    _check_length(length)
    grid = np.frombuffer(cursor.take(n_rows * length), np.uint8).reshape(length, n_rows)

    def some(low: int, high: int) -> Texts:
        data = np.ascontiguousarray(grid[:, low:high].T).reshape(-1)
        return Texts(data, np.arange(high - low + 1) * length)

    return some


def _check_length(length: int) -> None:
    if length > _MOST_LENGTH:
        raise CodecError("a text of a block is too long.")


class _WholeNumbers:
    """Integers as texts; a bit per row marks empty fields."""

    def __init__(self, cursor: Cursor, n_rows: int, some: bool) -> None:
        width = cursor.take(1)[0]
        if width not in (1, 2, 4, 8):
            raise CodecError("integers of a block have an invalid width.")
        self._empty: Array | None = None
        count = n_rows
        if some:
            self._empty = np.frombuffer(cursor.take(-(-n_rows // 8)), np.uint8)
            count -= int(np.unpackbits(self._empty, count=n_rows).sum())
        self._values = rearrange(cursor.take(1 + count * width), np.dtype(f"<i{width}"), count)
        self._row = self._number = 0  # the number of integers before a row

    def __call__(self, low: int, high: int) -> Texts:
        if low < self._row:
            self._row = self._number = 0
        first = self._number + int((~self._is_empty(self._row, low)).sum())
        held = ~self._is_empty(low, high)
        values = np.full(high - low, np.nan)
        self._row, self._number = high, first + int(held.sum())
        values[held] = self._values[first : self._number]
        nothing = np.zeros(len(values) - int(held.sum()) + 1, np.int64)
        written = number_texts(values, 0, 0, _POINT, BARE, np.empty(0, np.uint8), nothing)
        if written is None:
            raise CodecError("integers of a block are too large.")
        return Texts(*written)

    def _is_empty(self, low: int, high: int) -> Array:
        if self._empty is None:
            return np.zeros(high - low, bool)
        bits = np.unpackbits(self._empty[low // 8 : -(-high // 8)])
        return bits[low % 8 :][: high - low].astype(bool)


def _width(values: Array) -> int:
    return int(_narrow(values).dtype.itemsize)


def _narrow(values: Array) -> Array:
    """Return integers in the narrowest type that holds them."""
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    for kind in ("<i1", "<i2", "<i4"):
        ends = np.iinfo(kind)
        if ends.min <= low and high <= ends.max:
            return values.astype(kind)
    return values.astype("<i8")


def picked(data: Array, starts: Array, stops: Array) -> Texts:
    """Return parts of a text as texts."""
    return Texts(*take_texts(data, np.ascontiguousarray(starts), np.ascontiguousarray(stops)))
