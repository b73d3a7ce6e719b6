"""Blocks of rows to bytes and back, some at a time on all threads.

A block's approximate numbers go through ``matrix``, all else is packed without loss. What the
encoder promises is checked here once more, on what a reader will finally get: numbers may yet be
rounded to the type or the decimals of their column.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.errors import CodecError
from kernelatoms.codec.format import Entry
from kernelatoms.codec.matrix import decode_matrix, encode_and_decode
from kernelatoms.codec.measuring import ColumnSums, column_sums, row_errors
from kernelatoms.codec.models import CodecModel
from kernelatoms.codec.packing import pack, unpack, unpacked_size
from kernelatoms.engine.cpu.threads import each, n_threads
from kernelatoms.limits import BLOCK_ROWS, BLOCK_VALUES, PACKED_EXPANSION

Array = NDArray[Any]
Item = TypeVar("Item")
Result = TypeVar("Result")

#: How decoded numbers become what a reader gets: one or more ways, each with bytes that tell which.
#: The first within the bound is taken.
Finish = Callable[[Array], Iterable[tuple[Array, bytes]]]

#: Values in a block, unless the user says otherwise; fewer where there are many blocks anyway, so
#: that those under way take less memory.
USUAL_VALUES, MANY_VALUES = 1 << 22, 1 << 25
# Bytes of decoded blocks that each thread may have under way.
_UNDER_WAY = 1 << 27
# Where rounding breaks the bound, numbers are coded closer; in the end exactly.
_CLOSER = (0.5, 0.1, 0.01)


@dataclass(frozen=True)
class Block:
    """Rows to be encoded.

    Parameters
    ----------
    part : int
        The array or table that they belong to.
    n_rows : int
        How many; of a 3-d array, slices.
    matrix : array of shape (n_rows, n_columns) or None
        Their approximate numbers, float32 or float64; of slices, their rows one under another.
    exact : bytes
        All else.
    finish : callable or None
        What becomes of decoded numbers; nothing by default.
    """

    part: int
    n_rows: int
    matrix: Array | None = None
    exact: bytes = b""
    finish: Finish | None = None


@dataclass(frozen=True)
class EncodedBlock:
    """A block as bytes, with the errors that its reader will see."""

    part: int
    n_rows: int
    matrix: bytes
    exact: bytes
    errors: Array
    largest: float
    columns: ColumnSums | None = None


def rows_a_block(n_rows: int, row_values: int, asked: int | None = None) -> int:
    """Return how many rows a block has: as many as make about ``USUAL_VALUES``, all blocks alike.

    Parameters
    ----------
    n_rows : int
        All rows.
    row_values : int
        Values in a row, or in a slice.
    asked : int or None
        What the user wants; granted up to ``2 * USUAL_VALUES`` values.
    """
    if asked is not None:
        return max(1, min(asked, BLOCK_VALUES // max(1, row_values)))
    usual = USUAL_VALUES if n_rows * row_values <= MANY_VALUES else USUAL_VALUES // 2
    n_blocks = max(1, round(n_rows * row_values / usual))
    return max(1, -(-n_rows // n_blocks))


def encode_block(block: Block, bound: Bound, model: CodecModel | None) -> EncodedBlock:
    """Return a block as bytes, from which ``decode_block`` makes rows within the bound."""
    matrix, note, errors, largest, columns = b"", b"", np.empty(0), 0.0, None
    if block.matrix is not None and model is not None:
        matrix, finished, note = _encode_numbers(block.matrix, bound, model, block.finish)
        errors, largest = row_errors(block.matrix, finished)
        if not model.slice_rows and block.matrix.size:
            columns = column_sums(block.matrix, finished)
    exact = pack(note + block.exact)
    n_values = 0 if block.matrix is None else block.matrix.size
    if not exact and not _believable(n_values, len(matrix)):
        # One huge slice of next to no bytes: filled up, so that readers may trust sizes.
        exact = bytes(1 + n_values // PACKED_EXPANSION - len(matrix))
    return EncodedBlock(block.part, block.n_rows, matrix, exact, errors, largest, columns)


def _encode_numbers(
    rows: Array, bound: Bound, model: CodecModel, finish: Finish | None
) -> tuple[bytes, Array, bytes]:
    """Return bytes, what comes back of them, and how: the first way that holds the bound."""
    for within in (bound, *(_closer(bound, share) for share in _CLOSER), Bound()):
        data, decoded = encode_and_decode(rows, within, model)
        if finish is None:
            return data, decoded, b""
        for finished, note in finish(decoded):
            if not bound.broken(rows, finished).any():
                return data, finished, note
    raise AssertionError("numbers that are kept exactly do not come back")


def _closer(bound: Bound, share: float) -> Bound:
    shares = {
        name: value * share for name, value in vars(bound).items() if value is not None
    }  # fmt: skip
    return replace(bound, **shares)


def decode_block(
    entry: Entry, matrix: bytes, exact: bytes, model: CodecModel | None, dtype: str
) -> tuple[Array | None, bytes]:
    """Return a block's decoded numbers and all else; ``CodecError`` if the bytes are wrong."""
    if model is None:
        if matrix:
            raise CodecError("a block has numbers where no model is.")
        return None, unpack(exact, "a block")
    check_size(entry, model)
    n_rows = entry.n_rows * max(1, model.slice_rows)
    try:
        decoded = decode_matrix(matrix, model, n_rows, np.dtype(dtype))
    except CodecError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise CodecError(f"a block cannot be read: {error}.") from error
    if decoded.shape != (n_rows, model.n_columns):
        raise CodecError("a block does not hold the rows that it should.")
    return decoded, unpack(exact, "a block")


def check_size(entry: Entry, model: CodecModel | None) -> None:
    """Refuse a block that would become far more rows or values than any that is written."""
    if entry.n_rows > BLOCK_ROWS:
        raise CodecError(f"a block cannot have {entry.n_rows:,} rows.")
    n_values = n_values_of(entry, model)
    if not _believable(n_values, entry.size):
        raise CodecError(f"a block of {entry.size:,} bytes would become {n_values:,} values.")


def n_values_of(entry: Entry, model: CodecModel | None) -> int:
    """Return how many approximate values a block has."""
    return 0 if model is None else entry.n_rows * max(1, model.slice_rows) * model.n_columns


def decoded_size(entry: Entry, exact: bytes, model: CodecModel | None, dtype: str) -> int:
    """Return how many bytes a block becomes, as it tells."""
    width = np.dtype(dtype).itemsize if dtype else 0
    return n_values_of(entry, model) * width + unpacked_size(exact)


def _believable(n_values: int, n_bytes: int) -> bool:
    return n_values <= max(BLOCK_VALUES, PACKED_EXPANSION * n_bytes)


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item],
    size: Callable[[Item], int] | None = None,
) -> Iterator[Result]:  # fmt: skip
    """Yield the results of all items in their order, as many at a time as there are threads.

    Parameters
    ----------
    work : callable
        Makes a result of an item.
    items : iterable
        The items; no more are asked for than are worked on.
    size : callable or None
        The bytes that an item becomes: fewer large ones are worked on at a time, one at least.
    """
    rest = iter(items)
    waiting: list[Item] = []
    while some := waiting + list(islice(rest, n_threads() - len(waiting))):
        waiting = []
        if size is not None:
            total, fit = size(some[0]), 1
            while fit < len(some) and total + size(some[fit]) <= _UNDER_WAY * n_threads():
                total, fit = total + size(some[fit]), fit + 1
            some, waiting = some[:fit], some[fit:]
        # One block alone may use all threads itself.
        yield from [work(some[0])] if len(some) == 1 else each(work, some)


def parts_of(starts: Sequence[int], start: int, stop: int) -> range:
    """Return the numbers of the blocks that hold some of these rows.

    Parameters
    ----------
    starts : sequence of int
        The first row of every block, and the number of rows behind the last.
    start, stop : int
        The rows.
    """
    first = int(np.searchsorted(starts, start, side="right")) - 1
    last = int(np.searchsorted(starts, stop, side="left"))
    return range(max(first, 0), min(last, len(starts) - 1)) if stop > start else range(0)
