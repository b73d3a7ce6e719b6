"""Columns of a text file: how many digits numbers are written with, and texts as bytes.

Approximate numbers are written with so many digits that the bound holds for the text. Columns of
text are stored as integers, as texts of one length, or as any texts.
"""

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from kernelatoms.codec.blocks import Finish
from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.loops.text_fields import (
    BARE,
    EMPTY,
    WHOLE,
    Numbers,
    Texts,
    number_texts,
    rounded,
)
from kernelatoms.codec.packing import Cursor, arrange, number, rearrange
from kernelatoms.engine import Array

#: The most decimals.
MOST_DECIMALS = 18
#: Numbers are written with at most the decimals of their column, with more decimals, or with a
#: number of significant digits.
CLIPPED, EXTENDED, SIGNIFICANT = range(3)
_ALL_DIGITS = 17

# How a column of texts is stored; texts of one length up to this.
_WHOLE, _SOME_WHOLE, _ONE_LENGTH, _ANY, _SAME = range(5)
_MOST_LENGTH = 64


def finisher(matrix: Array, low: Array, high: Array, whole: Array) -> Finish:
    """Return the ways to round decoded numbers, those with the fewest digits first.

    ``low`` and ``high`` are the fewest and the most decimals of the columns of ``matrix``; columns
    marked in ``whole`` hold integers.
    """
    sizes = np.abs(matrix[np.isfinite(matrix) & (matrix != 0)])
    size = float(np.median(sizes)) if len(sizes) else 0.0

    def finish(decoded: Array) -> Iterable[tuple[Array, bytes]]:
        for digits, form in _ways(decoded, matrix, size):
            finished = finish_numbers(decoded, digits, form, low, high, whole)
            yield finished, bytes([digits, form])

    return finish


def finish_numbers(
    decoded: Array, digits: int, form: int, low: Array, high: Array, whole: Array
) -> Array:
    """Return decoded numbers as rounded in their texts.

    ``digits`` are decimals, or significant digits; ``form`` is ``CLIPPED``, ``EXTENDED`` or
    ``SIGNIFICANT``. For the others see ``finisher``.
    """
    if form == SIGNIFICANT:
        finished = significant(decoded, digits)
        finished[:, whole] = rounded(decoded[:, whole], np.zeros(int(whole.sum()), np.int64))
        return finished
    return rounded(decoded, column_decimals(digits, form, low, high, whole))


def column_decimals(digits: int, form: int, low: Array, high: Array, whole: Array) -> Array:
    """Return the decimals of each column."""
    most = np.minimum(high, digits) if form == CLIPPED else np.full(len(high), digits)
    found = np.maximum(low, most).astype(np.int64)
    found[whole] = 0
    return found


def significant(values: Array, digits: int) -> Array:
    """Return numbers rounded to significant digits; 17 keep every bit."""
    if digits >= _ALL_DIGITS:
        return values.copy()
    flat = [float(f"{value:.{digits - 1}e}") for value in values.reshape(-1).tolist()]
    return np.array(flat).reshape(values.shape)


def _ways(decoded: Array, rows: Array, size: float) -> Iterator[tuple[int, int]]:
    """Yield ways to round numbers, the shortest first; errors show how many decimals suffice.

    ``size`` is the median magnitude of the rows.
    """
    errors = np.abs(decoded - rows)
    errors = errors[np.isfinite(errors) & (errors > 0)]
    step = float(np.median(errors)) if len(errors) else size * 1e-15
    enough = math.ceil(-math.log10(step)) + 1 if step > 0 else MOST_DECIMALS
    if enough <= MOST_DECIMALS:
        enough = max(enough, 0)
        yield from ((min(enough + more, MOST_DECIMALS), CLIPPED) for more in (0, 1, 2, 4))
        yield MOST_DECIMALS, CLIPPED
        yield from ((min(enough + more, MOST_DECIMALS), EXTENDED) for more in (1, 2, 4))
    for digits in (4, 6, 9, _ALL_DIGITS):
        yield digits, SIGNIFICANT


def column_bytes(texts: Texts, numbers: Numbers) -> bytes:
    """Return the texts of a column as bytes; ``numbers`` are those that are numbers."""
    whole = (numbers.kinds == WHOLE) & (numbers.styles == BARE)
    empty = numbers.kinds == EMPTY
    if not whole.any() or not (whole | empty).all():
        return text_bytes(texts)
    values = _narrow(numbers.values[whole])
    form, bits = (_SOME_WHOLE, np.packbits(empty).tobytes()) if empty.any() else (_WHOLE, b"")
    return bytes([form, values.itemsize]) + bits + arrange(values)


def text_bytes(texts: Texts) -> bytes:
    """Return any texts as bytes."""
    lengths = np.diff(texts.offsets)
    if len(lengths) > 1 and (lengths == lengths[0]).all() and lengths[0] <= _MOST_LENGTH:
        # Bytes at the same place come together: dates and codes compress far better.
        grid = texts.data.reshape(len(lengths), -1)
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
    if form in (_SAME, _ONE_LENGTH):
        return _texts_of_one_length(cursor, n_rows, form == _SAME)
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


def _texts_of_one_length(cursor: Cursor, n_rows: int, same: bool) -> TextColumn:
    length = cursor.number()
    if length > _MOST_LENGTH:
        raise CodecError("a text of a block is too long.")
    n_texts = 1 if same else n_rows
    grid = np.frombuffer(cursor.take(n_texts * length), np.uint8).reshape(length, n_texts)

    def some(low: int, high: int) -> Texts:
        part = np.repeat(grid, high - low, axis=1) if same else grid[:, low:high]
        data = np.ascontiguousarray(part.T).reshape(-1)
        return Texts(data, np.arange(high - low + 1) * length)

    return some


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
        written = number_texts(values, 0, 0, ord("."), BARE, no_texts(0, int((~held).sum())))
        if written is None:
            raise CodecError("integers of a block are too large.")
        return written

    def _is_empty(self, low: int, high: int) -> Array:
        if self._empty is None:
            return np.zeros(high - low, bool)
        bits = np.unpackbits(self._empty[low // 8 : -(-high // 8)])
        return bits[low % 8 :][: high - low].astype(bool)


def _narrow(values: Array) -> Array:
    """Return integers in the narrowest type that holds them."""
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    for kind in ("<i1", "<i2", "<i4"):
        ends = np.iinfo(kind)
        if ends.min <= low and high <= ends.max:
            return values.astype(kind)
    return values.astype("<i8")
