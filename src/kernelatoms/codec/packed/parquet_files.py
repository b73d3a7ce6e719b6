"""Parquet files to blocks, row group by row group, and back."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow
from pyarrow import parquet

from kernelatoms.codec.blocks import Block, Compressed, DecodedBlock
from kernelatoms.codec.limits import HEADER_SIZE, TEXT_EXPANSION, TEXT_SIZE, CodecError
from kernelatoms.codec.packed import arrow_columns, sources
from kernelatoms.codec.packed.arrow_messages import read_schema
from kernelatoms.codec.packing import Cursor, pack, stored, unpack, unpacked_size
from kernelatoms.engine import Array
from kernelatoms.files.tables.table import TableError
from kernelatoms.limits import Budget

# Compressions of a file's columns.
_CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")
# Columns over all row groups: this many, or one per ``_CHUNK_BYTES`` of the compressed file.
_MOST_CHUNKS, _CHUNK_BYTES = 1 << 16, 64
# The time per column of a block, in values of the fastest model.
_COLUMN_WORK = 20
# Rows that the size of rows is estimated from; batches of more bytes are several blocks.
_LOOK_AT_ROWS, _MOST_BATCH = 1000, 1 << 27


class ParquetSource(sources.Source):
    """A ``.parquet`` file.

    Columns named in ``approximate`` and ``exact`` are exceptions from the default, or all are as in
    ``like``, a compressed table.
    """

    kind = "parquet"

    def __init__(
        self, path: Path, approximate: Sequence[str], exact: Sequence[str],
        like: Compressed | None = None, all_exact: bool = False, max_size: int | None = None,
    ) -> None:  # fmt: skip
        self.path = path
        self.notes: list[str] = []
        self._file_size, self._max_size = path.stat().st_size, max_size
        with _opened(path) as file:
            self._schema, metadata = file.schema_arrow, file.metadata
            self._n_rows = metadata.num_rows
            groups = map(metadata.row_group, range(metadata.num_row_groups))
            n_bytes = sum(group.total_byte_size for group in groups)
            # Repeated values take no bytes in the file.
            row_bytes = sum(map(arrow_columns.least_width, self._schema.types))
            n_bytes = max(n_bytes, self._n_rows * row_bytes)
            Budget(self._file_size, max_size).check(n_bytes)
            n_bytes = max(n_bytes, self._n_rows * _row_bytes(file))
            self._details = _details(metadata)
        names, types = list(self._schema.names), list(self._schema.types)
        if like is None:
            self._chosen = sources.choose_columns(
                path, names, [_default(kind) for kind in types], approximate, exact, all_exact
            )
        else:
            self._schema = _same_schema(path, self._schema, stored_schema(like))
            self._chosen = sources.from_ranges(like.header.table.get("approximate", []), len(types))
            self._details = {k: v for k, v in like.header.table.items() if k != "approximate"}
        self._kept = sources.other_columns(self._chosen, len(types))
        self.columns: dict[str, list[str]] = {
            "approximate": [names[i] for i in self._chosen],
            "exact": [names[i] for i in self._kept],
        }
        self._dtype = arrow_columns.matrix_type([types[i] for i in self._chosen])
        self.parts = [sources.table_plan(self._n_rows, len(self._chosen), n_bytes, self._dtype)]

    def sample(self, part: int, n_rows: int) -> Array:
        """Return the first rows of the matrix."""
        return self._matrix(next(self._batches(min(n_rows, self._n_rows), self._chosen)).columns)

    def blocks(self, part: int, block_rows: int) -> Iterator[Block]:
        """Yield the blocks of the table."""
        finish = arrow_columns.finisher([self._schema.types[i] for i in self._chosen])
        for batch in _in_pieces(self._batches(block_rows)):
            chosen = [batch.column(i) for i in self._chosen]
            matrix, exact = None, b""
            if chosen:
                matrix = self._matrix(chosen)
                exact = arrow_columns.missing_marks(chosen, matrix)
            exact += arrow_columns.exact_columns([batch.column(i) for i in self._kept])
            yield Block(0, batch.num_rows, matrix, b"" if exact == b"\0" else exact, finish)

    def table(self) -> Mapping[str, Any]:
        """Return the approximate columns, and how the file was written."""
        return {"approximate": sources.as_ranges(self._chosen), **self._details}

    def schema(self) -> bytes:
        """Return names, types and metadata; ``ValueError`` if they are too long."""
        data = bytes(self._schema.serialize())
        if len(data) > HEADER_SIZE:
            raise ValueError(
                f"names and types of columns take {len(data):,} bytes, more than {HEADER_SIZE:,}."
            )
        packed = pack(data)
        # Readers would refuse the expansion.
        return stored(data) if len(data) > max(TEXT_SIZE, TEXT_EXPANSION * len(packed)) else packed

    def _batches(self, n_rows: int, columns: Sequence[int] | None = None) -> Iterator[Any]:
        """Yield batches of exactly ``n_rows`` rows, finally perhaps fewer."""
        waiting: list[Any] = []
        n_waiting = 0
        with _opened(self.path) as file:
            n_bytes = 0
            for batch in file.iter_batches(batch_size=n_rows, use_threads=False):
                n_bytes += batch.nbytes
                Budget(self._file_size, self._max_size).check(n_bytes)
                if columns is not None:
                    batch = batch.select(list(columns))
                while batch.num_rows:
                    piece = batch.slice(0, n_rows - n_waiting)
                    batch = batch.slice(piece.num_rows)
                    waiting.append(piece)
                    n_waiting += piece.num_rows
                    if n_waiting == n_rows:
                        yield _one_batch(waiting)
                        waiting, n_waiting = [], 0
            if waiting:
                yield _one_batch(waiting)

    def _matrix(self, columns: Sequence[Any]) -> Array:
        matrix = np.empty((len(columns[0]), len(columns)), self._dtype)
        for i, column in enumerate(columns):
            matrix[:, i] = column.to_numpy(zero_copy_only=False)
            if pyarrow.types.is_integer(column.type):
                matrix[:, i] = np.minimum(matrix[:, i], arrow_columns.largest(column.type))
        return matrix


def _same_schema(path: Path, new: Any, old: Any) -> Any:
    """Return the schema of the compressed table; refuse other columns."""
    if not new.equals(old, check_metadata=False):
        differ = [name for name in new.names if name not in old.names]
        differ += [name for name in old.names if name not in new.names]
        which = f"; {differ[0]!r} is in one of them only" if differ else " or types"
        raise ValueError(f"{path} has other columns{which} than the file that was compressed.")
    return old


def _one_batch(batches: list[Any]) -> Any:
    """Return batches as one, without neighbouring values in its buffers."""
    table = pyarrow.Table.from_batches(batches)
    arrays = [_one_chunk(column) for column in table.columns]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=table.schema)


def _one_chunk(column: Any) -> Any:
    if column.num_chunks == 1:
        chunk = column.chunk(0)
        return pyarrow.concat_arrays([chunk]) if chunk.offset else chunk
    return column.combine_chunks()


def _in_pieces(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches, large ones in several pieces."""
    for batch in batches:
        n_pieces = min(-(-batch.nbytes // _MOST_BATCH), batch.num_rows)
        if n_pieces <= 1:
            yield batch
            continue
        n_rows = -(-batch.num_rows // n_pieces)
        for start in range(0, batch.num_rows, n_rows):
            yield _one_batch([batch.slice(start, n_rows)])


def _row_bytes(file: Any) -> int:
    """Return the bytes per row, estimated from the first rows."""
    for batch in file.iter_batches(batch_size=_LOOK_AT_ROWS, use_threads=False):
        return int(batch.nbytes) // max(1, batch.num_rows)
    return 0


def _details(metadata: Any) -> dict[str, Any]:
    """Return how a file was written, where that differs from the default."""
    found: dict[str, Any] = {}
    if metadata.num_row_groups:
        first = metadata.row_group(0)
        if first.num_columns:
            codec = first.column(0).compression.lower().replace("uncompressed", "none")
            if codec != "snappy" and codec in _CODECS:
                found["codec"] = codec
        if metadata.num_row_groups > 1 and 0 < first.num_rows < 1 << 20:
            found["group"] = first.num_rows
    return found


def _default(kind: Any) -> str:
    """Return the default treatment of a column."""
    if pyarrow.types.is_floating(kind):
        return "approximate"
    return "exact" if pyarrow.types.is_integer(kind) else "no numbers"


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a Parquet file; errors of pyarrow name it."""
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (pyarrow.ArrowException, OSError) as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        raise TableError(
            f"{path} cannot be read as a Parquet file (damaged, cut short or of another kind): "
            f"{words[0].rstrip('.')[:300]}."
        ) from error


def restore_parquet(
    opened: Compressed, file: IO[bytes], rows: tuple[int, int] | None,
    on_block: Callable[[int], None],
) -> None:  # fmt: skip
    """Write the ``.parquet`` file that was compressed, or some of its rows."""
    table = opened.header.table
    chosen, schema = chosen_columns(opened)
    kept = sources.other_columns(chosen, len(schema.types))
    codec = table.get("codec", "snappy")
    group = table.get("group", 1 << 20)
    if codec not in _CODECS or type(group) is not int or not 0 < group < 1 << 31:
        raise CodecError("it does not say how its table was written.")
    start, stop = (0, opened.n_rows()) if rows is None else rows
    opened.budget.check((stop - start) * sum(map(arrow_columns.least_width, schema.types)))
    n_columns = max(1, len(schema.types))
    opened.budget.take_work(_COLUMN_WORK * n_columns * len(opened.entries()))
    # Every column of every group takes a kilobyte of memory until the file is closed.
    n_chunks = max(_MOST_CHUNKS, opened.reader.size // _CHUNK_BYTES)
    group = max(group, (stop - start) * n_columns // n_chunks)
    with parquet.ParquetWriter(file, schema, compression=codec) as writer:
        for block in opened.blocks(0, start, stop):
            columns = _columns(block, schema, chosen, kept)
            n_bytes = sum(arrow_columns.column_size(columns[place]) for place in kept)
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
    chosen = sources.from_ranges(opened.header.table.get("approximate", []), len(schema.types))
    is_floating, is_integer = pyarrow.types.is_floating, pyarrow.types.is_integer
    if not all(is_floating(schema.types[i]) or is_integer(schema.types[i]) for i in chosen):
        raise CodecError("it does not say which columns are approximate.")
    sources.check_columns(opened, len(chosen))
    return chosen, schema


def decoded_numbers(opened: Compressed) -> Iterator[Array]:
    """Yield the matrix of approximate columns as a reader gets it, block by block."""
    chosen, schema = chosen_columns(opened)
    finish = arrow_columns.finisher([schema.types[i] for i in chosen])
    for block in opened.blocks():
        assert block.matrix is not None
        yield block.matrix if finish is None else next(iter(finish(block.matrix)))[0]


def stored_schema(opened: Compressed) -> Any:
    """Return the types of a compressed table's columns."""
    packed = opened.reader.tail.schema
    if unpacked_size(packed) > min(HEADER_SIZE, max(TEXT_SIZE, TEXT_EXPANSION * len(packed))):
        raise CodecError("the types of its columns would take too many bytes.")
    return read_schema(unpack(packed, "the schema"))


def _columns(block: DecodedBlock, schema: Any, chosen: list[int], kept: list[int]) -> list[Any]:
    columns: list[Any] = [None] * len(schema.types)
    cursor = Cursor(block.exact or b"\0", "a block")
    if block.matrix is not None:
        masks = arrow_columns.read_missing_marks(cursor, block.matrix)
        for i, place in enumerate(chosen):
            values = arrow_columns.to_type(block.matrix[:, i], schema.types[place])
            columns[place] = pyarrow.array(values, schema.types[place], mask=masks[i])
    elif chosen:
        raise CodecError("a block has no numbers where some should be.")
    found = arrow_columns.read_exact_columns(cursor, [schema.types[i] for i in kept], block.n_rows)
    for place, column in zip(kept, found, strict=True):
        columns[place] = column
    return columns
