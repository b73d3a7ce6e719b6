"""Blocks of rows to bytes and back on all threads, and the compressed file that holds them.

Approximate numbers go through ``models.matrix``; everything else is packed without loss. Decoded
numbers may be rounded to the type or the decimals of their column: the bound is checked after that.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, TypeVar

import numpy as np

from kernelatoms.codec.bounds import Bound, ColumnSums, column_sums, row_errors
from kernelatoms.codec.container import Entry, Header, Reader
from kernelatoms.codec.limits import (
    BLOCK_ROWS,
    BLOCK_VALUES,
    PACKED_EXPANSION,
    CodecError,
    DecodingBudget,
)
from kernelatoms.codec.models.codec_model import CodecModel, ReadyModel, read_models
from kernelatoms.codec.models.matrix import decode_matrix, encode_and_decode
from kernelatoms.codec.models.predictors import decoding_cost, ready
from kernelatoms.codec.packing import pack, unpack, unpacked_size
from kernelatoms.engine import Array
from kernelatoms.engine.cpu.threads import each, n_threads

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


@dataclass(frozen=True)
class DecodedBlock:
    """A decoded block."""

    start: int
    n_rows: int  # the number of rows (slices of a 3-d array)
    matrix: Array | None  # approximate numbers; slices are stacked
    exact: bytes  # everything else
    size: int = 0  # the bytes that it was decoded from


class Compressed:
    """A compressed file.

    ``model`` is the model that the file refers to, if it does not store it. ``budget`` counts what
    is decoded, which may not exceed ``max_size`` (by default, the limits).
    """

    def __init__(
        self, source: IO[bytes] | bytes, model: CodecModel | None = None,
        max_size: int | None = None,
    ) -> None:  # fmt: skip
        self.reader = Reader(source)
        self.budget = DecodingBudget(self.reader.size, max_size)
        tail = self.reader.tail
        self.header = Header.from_bytes(tail.header)
        self._given, self._given_digest = model, None if model is None else model.digest
        self.stored = read_models(tail.models, self.budget)
        self.digests = [digest.hex() for digest in tail.digests]
        n_models = len(self.stored) + len(self.digests)
        if any(part.model >= n_models for part in self.header.parts):
            raise CodecError("the header refers to a model that does not exist.")
        self._numbers = self._by_part()

    def n_rows(self, part: int = 0) -> int:
        """Return the rows of an array or table (slices of a 3-d array)."""
        return sum(entry.n_rows for entry in self.entries(part))

    def entries(self, part: int = 0) -> list[Entry]:
        """Return the index entries of an array or table."""
        return [self.reader.entries[i] for i in self._numbers[part]]

    def model(self, part: int = 0) -> CodecModel | None:
        """Return the model of an array or table; None if it is exact."""
        number = self.header.parts[part].model
        if number < 0:
            return None
        if number < len(self.stored):
            return self.stored[number]
        wanted = self.digests[number - len(self.stored)]
        if self._given is None:
            raise CodecError(
                f"it was compressed with a model that it does not hold; give the model file with "
                f"the digest {wanted}."
            )
        if self._given_digest != wanted:
            raise CodecError(
                f"it was compressed with the model of the digest {wanted}, and the one given has "
                f"{self._given_digest}."
            )
        return self._given

    def known_model(self, part: int = 0) -> CodecModel | None:
        """Return the model of an array or table; None also if it is not stored or given."""
        number = self.header.parts[part].model - len(self.stored)
        unknown = number >= 0 and self._given_digest != self.digests[number]
        return None if unknown else self.model(part)

    def blocks(
        self, part: int = 0, start: int = 0, stop: int | None = None
    ) -> Iterator[DecodedBlock]:
        """Yield the decoded blocks that hold these rows, in order."""
        numbers, entries = self._numbers[part], self.entries(part)
        starts = np.cumsum([0, *(entry.n_rows for entry in entries)]).tolist()
        wanted = _blocks_with(starts, start, starts[-1] if stop is None else stop)
        dtype = self.header.parts[part].dtype
        model = self._ready(self.model(part), dtype, [entries[i] for i in wanted])

        def read(i: int) -> tuple[int, int, bytes, bytes]:
            matrix, exact = self.reader.read(numbers[i])
            width = np.dtype(dtype).itemsize if dtype else 0
            n_bytes = _n_values(entries[i], model) * width + unpacked_size(exact)
            self.budget.take(n_bytes, entries[i].size)
            return i, n_bytes, matrix, exact

        def decode(item: tuple[int, int, bytes, bytes]) -> DecodedBlock:
            i, _, matrix, exact = item
            entry, rows = entries[i], None
            if model is not None:
                rows = decode_matrix(matrix, model, entry.n_rows * max(1, model.slice_rows), dtype)
            exact = unpack(exact, "a block")
            return DecodedBlock(starts[i], entry.n_rows, rows, exact, entry.size)

        # Read sequentially, decoded in parallel.
        return map_in_order(decode, map(read, wanted), lambda item: item[1])

    def check(self) -> None:
        """Compare all blocks with their checksums."""
        for i in range(len(self.reader.entries)):
            self.reader.read(i)

    def _ready(
        self, model: CodecModel | None, dtype: str, entries: list[Entry]
    ) -> ReadyModel | None:
        """Return the model of blocks, after checking what their decoding costs."""
        if model is None:
            return None
        for entry in entries:
            _check_size(entry, model)
        n_values = sum(_n_values(entry, model) for entry in entries)
        self.budget.check(n_values * np.dtype(dtype).itemsize)
        prepared = ready(model)
        self.budget.take_work(decoding_cost(prepared, n_values // model.n_columns, len(entries)))
        return prepared

    def _by_part(self) -> list[list[int]]:
        """Return the block numbers of every part."""
        found: list[list[int]] = [[] for _ in self.header.parts]
        last = 0
        for i, entry in enumerate(self.reader.entries):
            if not last <= entry.part < len(found) or entry.n_rows == 0:
                raise CodecError(f"the index has an impossible block {i}.")
            last = entry.part
            found[last].append(i)
            number = self.header.parts[last].model
            if number < 0 and entry.matrix_size:
                raise CodecError("a block has numbers where no model is.")
            _check_size(entry, self.stored[number] if 0 <= number < len(self.stored) else None)
        for numbers in found:
            if sum(self.reader.entries[i].n_rows for i in numbers) >= 1 << 62:
                raise CodecError("the index has more rows than any file.")
        return found


def _check_size(entry: Entry, model: CodecModel | None) -> None:
    """Refuse a block of more rows or values than any writer makes."""
    if entry.n_rows > BLOCK_ROWS:
        raise CodecError(f"a block cannot have {entry.n_rows:,} rows.")
    n_values = _n_values(entry, model)
    if not _believable(n_values, entry.size):
        raise CodecError(f"a block of {entry.size:,} bytes would become {n_values:,} values.")


def _n_values(entry: Entry, model: CodecModel | None) -> int:
    """Return the number of approximate values in a block."""
    return 0 if model is None else entry.n_rows * max(1, model.slice_rows) * model.n_columns


def _blocks_with(starts: Sequence[int], start: int, stop: int) -> range:
    """Return the blocks that hold rows ``start`` to ``stop``.

    ``starts`` has the first row of every block, and the number of rows at last.
    """
    first = int(np.searchsorted(starts, start, side="right")) - 1
    last = int(np.searchsorted(starts, stop, side="left"))
    return range(max(first, 0), min(last, len(starts) - 1)) if stop > start else range(0)
