"""Blocks of rows to bytes and back, on all threads.

Approximate numbers go through ``matrix``; everything else is packed without loss. Decoded numbers
may be rounded to the type or the decimals of their column: the bound is checked after that.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.container.format import Entry
from kernelatoms.codec.container.packing import pack, unpack, unpacked_size
from kernelatoms.codec.error_stats import ColumnSums, column_sums, row_errors
from kernelatoms.codec.limits import BLOCK_ROWS, BLOCK_VALUES, PACKED_EXPANSION, CodecError
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.models.matrix import decode_matrix, encode_and_decode
from kernelatoms.engine.cpu.threads import each, n_threads

Array = NDArray[Any]
Item = TypeVar("Item")
Result = TypeVar("Result")

#: Rounds decoded numbers to what a reader gets, in one or several ways; each with bytes that store
#: the way. The first way within the bound is taken.
Finish = Callable[[Array], Iterable[tuple[Array, bytes]]]

#: Default number of values per block; half as many in large files, so that the blocks in memory
#: take less.
DEFAULT_VALUES, MANY_VALUES = 1 << 22, 1 << 25
# Bytes of decoded blocks in memory per thread.
_UNDER_WAY = 1 << 27
# If rounding breaks the bound, numbers are coded within these shares of it; finally exactly.
_CLOSER = (0.5, 0.1, 0.01)


@dataclass(frozen=True)
class Block:
    """Rows to encode."""

    part: int  # the index of their array or table
    n_rows: int  # the number of rows (slices of a 3-d array)
    matrix: Array | None = None  # approximate numbers, float32 or float64; slices are stacked
    exact: bytes = b""  # everything else
    finish: Finish | None = None  # how decoded numbers are rounded


@dataclass(frozen=True)
class EncodedBlock:
    """A block as bytes, with the errors of its decoded rows."""

    part: int
    n_rows: int
    matrix: bytes
    exact: bytes
    errors: Array
    largest: float
    columns: ColumnSums | None = None


def rows_per_block(n_rows: int, row_values: int, asked: int | None = None) -> int:
    """Return the rows per block: about ``DEFAULT_VALUES`` values, in blocks of equal size.

    ``row_values`` are the values per row or slice; ``asked`` is what the user wants, granted up to
    ``BLOCK_VALUES`` values.
    """
    if asked is not None:
        return max(1, min(asked, BLOCK_VALUES // max(1, row_values)))
    n_values = DEFAULT_VALUES if n_rows * row_values <= MANY_VALUES else DEFAULT_VALUES // 2
    n_blocks = max(1, round(n_rows * row_values / n_values))
    return max(1, -(-n_rows // n_blocks))


def encode_block(block: Block, bound: Bound, model: CodecModel | None) -> EncodedBlock:
    """Return a block as bytes that decode to rows within the bound."""
    matrix, note, errors, largest, columns = b"", b"", np.empty(0), 0.0, None
    if block.matrix is not None and model is not None:
        matrix, finished, note = _encode_numbers(block.matrix, bound, model, block.finish)
        errors, largest = row_errors(block.matrix, finished)
        if not model.slice_rows and block.matrix.size:
            columns = column_sums(block.matrix, finished)
    exact = pack(note + block.exact)
    n_values = 0 if block.matrix is None else block.matrix.size
    if not exact and not _believable(n_values, len(matrix)):
        # One huge slice of very few bytes: padded, because readers check the expansion.
        exact = bytes(1 + n_values // PACKED_EXPANSION - len(matrix))
    return EncodedBlock(block.part, block.n_rows, matrix, exact, errors, largest, columns)


def _encode_numbers(
    rows: Array, bound: Bound, model: CodecModel, finish: Finish | None
) -> tuple[bytes, Array, bytes]:
    """Return bytes, decoded rows and the stored way of rounding: the first within the bound."""
    for within in (bound, *(_closer(bound, share) for share in _CLOSER), Bound()):
        data, decoded = encode_and_decode(rows, within, model)
        if finish is None:
            return data, decoded, b""
        for finished, note in finish(decoded):
            if not bound.broken(rows, finished).any():
                return data, finished, note
    raise AssertionError("exact numbers do not come back")


def _closer(bound: Bound, share: float) -> Bound:
    return replace(bound, **{k: v * share for k, v in vars(bound).items() if v is not None})


def decode_block(
    entry: Entry, matrix: bytes, exact: bytes, model: CodecModel | None, dtype: str
) -> tuple[Array | None, bytes]:
    """Return a block's decoded numbers and its exact bytes; ``CodecError`` if it is damaged."""
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
    """Refuse a block of more rows or values than any writer makes."""
    if entry.n_rows > BLOCK_ROWS:
        raise CodecError(f"a block cannot have {entry.n_rows:,} rows.")
    n_values = n_values_of(entry, model)
    if not _believable(n_values, entry.size):
        raise CodecError(f"a block of {entry.size:,} bytes would become {n_values:,} values.")


def n_values_of(entry: Entry, model: CodecModel | None) -> int:
    """Return the number of approximate values in a block."""
    return 0 if model is None else entry.n_rows * max(1, model.slice_rows) * model.n_columns


def decoded_size(entry: Entry, exact: bytes, model: CodecModel | None, dtype: str) -> int:
    """Return the bytes that a block will become."""
    width = np.dtype(dtype).itemsize if dtype else 0
    return n_values_of(entry, model) * width + unpacked_size(exact)


def _believable(n_values: int, n_bytes: int) -> bool:
    return n_values <= max(BLOCK_VALUES, PACKED_EXPANSION * n_bytes)


def map_in_order(
    work: Callable[[Item], Result], items: Iterable[Item],
    size: Callable[[Item], int] | None = None,
) -> Iterator[Result]:  # fmt: skip
    """Yield the results of all items in order, computed on all threads.

    Items are read only as far as they are processed. ``size(item)`` is the number of bytes that an
    item becomes: large items are processed fewer at a time.
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
        # A single block may use all threads itself.
        yield from [work(some[0])] if len(some) == 1 else each(work, some)


def parts_of(starts: Sequence[int], start: int, stop: int) -> range:
    """Return the blocks that hold rows ``start`` to ``stop``.

    ``starts`` has the first row of every block, and the number of rows at last.
    """
    first = int(np.searchsorted(starts, start, side="right")) - 1
    last = int(np.searchsorted(starts, stop, side="left"))
    return range(max(first, 0), min(last, len(starts) - 1)) if stop > start else range(0)
