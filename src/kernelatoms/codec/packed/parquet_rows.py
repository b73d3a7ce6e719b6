"""Decoded blocks to a Parquet file, and the rounding that its types need."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow import parquet

from kernelatoms.codec.blocks import Compressed, DecodedBlock
from kernelatoms.codec.limits import HEADER_SIZE, TEXT_EXPANSION, TEXT_SIZE, CodecError
from kernelatoms.codec.packed.arrow_columns import (
    column_size,
    read_exact_columns,
    read_missing_marks,
)
from kernelatoms.codec.packed.arrow_messages import read_schema
from kernelatoms.codec.packed.sources import check_columns, from_ranges, other_columns
from kernelatoms.codec.packing import Cursor, unpack, unpacked_size

Array = NDArray[Any]

#: Compressions of a file's columns.
CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")
# Columns over all row groups: this many, or one per ``_CHUNK_BYTES`` of the compressed file.
_MOST_CHUNKS, _CHUNK_BYTES = 1 << 16, 64
# The time per column of a block, in values of the fastest model.
_COLUMN_WORK = 20


def restore_parquet(
    opened: Compressed, file: IO[bytes], rows: tuple[int, int] | None,
    on_block: Callable[[int], None],
) -> None:  # fmt: skip
    """Write the ``.parquet`` file that was compressed, or some of its rows."""
    table = opened.header.table
    chosen, schema = chosen_columns(opened)
    kept = other_columns(chosen, len(schema.types))
    codec = table.get("codec", "snappy")
    group = table.get("group", 1 << 20)
    if codec not in CODECS or type(group) is not int or not 0 < group < 1 << 31:
        raise CodecError("it does not say how its table was written.")
    start, stop = (0, opened.n_rows()) if rows is None else rows
    opened.budget.check((stop - start) * sum(map(least_width, schema.types)))
    n_columns = max(1, len(schema.types))
    opened.budget.take_work(_COLUMN_WORK * n_columns * len(opened.entries()))
    # Every column of every group takes a kilobyte of memory until the file is closed.
    n_chunks = max(_MOST_CHUNKS, opened.reader.size // _CHUNK_BYTES)
    group = max(group, (stop - start) * n_columns // n_chunks)
    with parquet.ParquetWriter(file, schema, compression=codec) as writer:
        for block in opened.blocks(0, start, stop):
            columns = _columns(block, schema, chosen, kept)
            n_bytes = sum(column_size(columns[place]) for place in kept)
            opened.budget.take(n_bytes, block.size)
            low, high = max(start, block.start), min(stop, block.start + block.n_rows)
            try:
                whole = pyarrow.Table.from_arrays(columns, schema=schema)
                some = whole.slice(low - block.start, high - low)
                writer.write_table(some, row_group_size=group)
            except (pyarrow.ArrowException, ValueError, TypeError) as error:
                raise CodecError(f"its columns do not make a table: {error}.") from error
            opened.budget.check(file.tell())
            on_block(high - low)


def chosen_columns(opened: Compressed) -> tuple[list[int], Any]:
    """Return the indices of approximate columns, and the schema."""
    schema = stored_schema(opened)
    chosen = from_ranges(opened.header.table.get("approximate", []), len(schema.types))
    is_floating, is_integer = pyarrow.types.is_floating, pyarrow.types.is_integer
    if not all(is_floating(schema.types[i]) or is_integer(schema.types[i]) for i in chosen):
        raise CodecError("it does not say which columns are approximate.")
    check_columns(opened, len(chosen))
    return chosen, schema


def decoded_numbers(opened: Compressed) -> Iterator[Array]:
    """Yield the matrix of approximate columns as a reader gets it, block by block."""
    chosen, schema = chosen_columns(opened)
    finish = finisher([schema.types[i] for i in chosen])
    for block in opened.blocks():
        assert block.matrix is not None
        yield block.matrix if finish is None else next(iter(finish(block.matrix)))[0]


def stored_schema(opened: Compressed) -> Any:
    """Return the types of a compressed table's columns."""
    packed = opened.reader.tail.schema
    if unpacked_size(packed) > min(HEADER_SIZE, max(TEXT_SIZE, TEXT_EXPANSION * len(packed))):
        raise CodecError("the types of its columns would take too many bytes.")
    return read_schema(unpack(packed, "the schema"))


def least_width(kind: Any) -> int:
    """Return the fewest bytes of a value of a type."""
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return 1


def matrix_type(types: Sequence[Any]) -> str:
    """Return "f4" if that holds values of all types, else "f8"."""
    narrow = (pyarrow.float16(), pyarrow.float32())
    return "f4" if types and all(kind in narrow for kind in types) else "f8"


def finisher(types: Sequence[Any]) -> Any:
    """Return how decoded numbers are rounded to the types of their columns; None if not at all."""
    wide = pyarrow.float32() if matrix_type(types) == "f4" else pyarrow.float64()
    if all(kind == wide for kind in types):
        return None

    def rounded(decoded: Array) -> Iterable[tuple[Array, bytes]]:
        finished = decoded.copy()
        for i, kind in enumerate(types):
            held = ~np.isnan(decoded[:, i])
            finished[held, i] = _to_type(decoded[held, i], kind)
        return [(finished, b"")]

    return rounded


def _to_type(values: Array, kind: Any) -> Array:
    """Return numbers in the type of a column; missing integers are 0."""
    dtype = np.dtype(kind.to_pandas_dtype())
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    ends, high = np.iinfo(dtype), largest(kind)
    whole = np.rint(values.astype(np.float64))
    inside = np.nan_to_num(whole, nan=0.0, posinf=high, neginf=float(ends.min))
    return inside.clip(float(ends.min), high).astype(dtype)


def largest(kind: Any) -> float:
    """Return the largest float64 within an integer type, whose maximum may not be a float64."""
    end = np.iinfo(np.dtype(kind.to_pandas_dtype())).max
    high = np.float64(end)
    return float(high if int(high) <= end else np.nextafter(high, 0))


def _columns(block: DecodedBlock, schema: Any, chosen: list[int], kept: list[int]) -> list[Any]:
    columns: list[Any] = [None] * len(schema.types)
    cursor = Cursor(block.exact or b"\0", "a block")
    if block.matrix is not None:
        masks = read_missing_marks(cursor, block.matrix)
        for i, place in enumerate(chosen):
            values = _to_type(block.matrix[:, i], schema.types[place])
            columns[place] = pyarrow.array(values, schema.types[place], mask=masks[i])
    elif chosen:
        raise CodecError("a block has no numbers where some should be.")
    found = read_exact_columns(cursor, [schema.types[i] for i in kept], block.n_rows)
    for place, column in zip(kept, found, strict=True):
        columns[place] = column
    return columns
