"""Parquet files to blocks and back, row group by row group."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.blocks import Block
from kernelatoms.codec.errors import CodecError
from kernelatoms.codec.opened import Compressed, DecodedBlock
from kernelatoms.codec.packing import Cursor, pack, stored, unpack, unpacked_size
from kernelatoms.files.arrow_messages import read_schema
from kernelatoms.files.arrow_sizes import column_size
from kernelatoms.files.columns import (
    exact_columns,
    missing_marks,
    read_exact_columns,
    read_missing_marks,
)
from kernelatoms.files.ranges import as_ranges, check_columns, from_ranges
from kernelatoms.files.selecting import choose_columns
from kernelatoms.files.sources import PartPlan
from kernelatoms.files.tables import TableError
from kernelatoms.limits import HEADER_SIZE, TEXT_EXPANSION, TEXT_SIZE, check_size

Array = NDArray[Any]

# Rows that tell how long rows are; a batch of more bytes is more than one block.
_LOOK_AT_ROWS, _MOST_BATCH = 1000, 1 << 27
# Columns of row groups, all together: so many, or one for so many bytes.
_MOST_CHUNKS, _CHUNK_BYTES = 1 << 16, 64
# How long a column of a block takes, in values of the plainest model.
_COLUMN_WORK = 20


class ParquetSource:
    """A ``.parquet`` file; see ``sources.Source``.

    Parameters
    ----------
    path : Path
        The file.
    approximate, exact : sequence of str
        Columns of whole numbers to approximate, columns of floats to keep.
    like : Compressed or None
        A compressed table whose columns are kept in the same way.
    all_exact : bool
        Keep all columns as they are.
    max_size : int or None
        The bytes that the file may become.
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
            self._schema = file.schema_arrow
            self._n_rows = file.metadata.num_rows
            n_bytes = sum(
                file.metadata.row_group(i).total_byte_size
                for i in range(file.metadata.num_row_groups)
            )
            # Values that repeat themselves take no bytes in the file.
            n_bytes = max(n_bytes, self._n_rows * sum(map(_least_width, self._schema.types)))
            check_size(n_bytes, self._file_size, max_size)
            n_bytes = max(n_bytes, self._n_rows * _row_bytes(file))
            self._details = _details(file.metadata)
        names, types = list(self._schema.names), list(self._schema.types)
        if like is None:
            self._chosen, self._kept = choose_columns(
                path, names, [_default(kind) for kind in types], approximate, exact, all_exact
            )
        else:
            self._schema = _same_schema(path, self._schema, _read_schema(like))
            self._chosen = from_ranges(like.header.table.get("approximate", []), len(types))
            self._kept = sorted(set(range(len(types))) - set(self._chosen))
            self._details = {key: value for key, value in like.header.table.items()
                             if key != "approximate"}  # fmt: skip
        self.columns: dict[str, list[str]] = {
            "approximate": [names[i] for i in self._chosen],
            "exact": [names[i] for i in self._kept],
        }
        n_columns = len(self._chosen)
        self._dtype = matrix_type([types[i] for i in self._chosen])
        dtype = self._dtype if n_columns and self._n_rows else ""
        # Rows of long texts count for as many values as they have bytes for.
        row_values = max(n_columns, n_bytes // max(1, self._n_rows) // 16, 1)
        self.parts = [
            PartPlan("", "", self._n_rows, row_values, n_columns if dtype else 0, 0, dtype)
        ]

    def sample(self, part: int, n_rows: int) -> Array:
        """Return the first rows of the matrix of approximate columns."""
        for batch in self._batches(min(n_rows, self._n_rows), self._chosen):
            return self._matrix(batch.columns)
        raise AssertionError("a table without rows has no numbers")

    def blocks(self, part: int, block_rows: int) -> Iterator[Block]:
        """Yield the table, block after block."""
        finish = finisher([self._schema.types[i] for i in self._chosen])
        for batch in _in_pieces(self._batches(block_rows)):
            chosen = [batch.column(i) for i in self._chosen]
            matrix, exact = None, b""
            if chosen:
                matrix = self._matrix(chosen)
                exact = missing_marks(chosen, matrix)
            exact += exact_columns([batch.column(i) for i in self._kept])
            yield Block(0, batch.num_rows, matrix, b"" if exact == b"\0" else exact, finish)

    def table(self) -> Mapping[str, Any]:
        """Return which columns are approximate, and how the file was written."""
        return {"approximate": as_ranges(self._chosen), **self._details}

    def schema(self) -> bytes:
        """Return names, types and metadata; ``ValueError`` if they are too long."""
        data = bytes(self._schema.serialize())
        if len(data) > HEADER_SIZE:
            raise ValueError(
                f"names and types of columns take {len(data):,} bytes, more than {HEADER_SIZE:,}."
            )
        packed = pack(data)
        if len(data) > max(TEXT_SIZE, TEXT_EXPANSION * len(packed)):
            return stored(data)  # it would not be believed
        return packed

    def _batches(self, n_rows: int, columns: Sequence[int] | None = None) -> Iterator[Any]:
        """Yield batches of exactly so many rows, the last perhaps fewer."""
        import pyarrow

        waiting: list[Any] = []
        n_waiting = 0
        with _opened(self.path) as file, _in_words(self.path):
            n_bytes = 0
            for batch in file.iter_batches(batch_size=n_rows, use_threads=False):
                n_bytes += batch.nbytes
                check_size(n_bytes, self._file_size, self._max_size)
                if columns is not None:
                    batch = batch.select(list(columns))
                while batch.num_rows:
                    piece = batch.slice(0, n_rows - n_waiting)
                    batch = batch.slice(piece.num_rows)
                    waiting.append(piece)
                    n_waiting += piece.num_rows
                    if n_waiting == n_rows:
                        yield _one(pyarrow.Table.from_batches(waiting))
                        waiting, n_waiting = [], 0
            if waiting:
                yield _one(pyarrow.Table.from_batches(waiting))

    def _matrix(self, columns: Sequence[Any]) -> Array:
        matrix = np.empty((len(columns[0]), len(columns)), self._dtype)
        for i, column in enumerate(columns):
            matrix[:, i] = column.to_numpy(zero_copy_only=False)
            if not read_as_floats(column.type):
                matrix[:, i] = np.minimum(matrix[:, i], _largest(column.type))
        return matrix


def _same_schema(path: Path, new: Any, old: Any) -> Any:
    """Return the schema that a compressed table has; refuse one of other columns."""
    if not new.equals(old, check_metadata=False):
        differ = [name for name in new.names if name not in old.names]
        differ += [name for name in old.names if name not in new.names]
        which = f"; {differ[0]!r} is in one of them only" if differ else " or types"
        raise ValueError(f"{path} has other columns{which} than the file that was compressed.")
    return old


def _one(table: Any) -> Any:
    """Return a table as one batch, texts without what lies beside them in memory."""
    import pyarrow

    arrays = [_alone(column) for column in table.columns]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=table.schema)


def _alone(column: Any) -> Any:
    import pyarrow

    if column.num_chunks == 1:
        chunk = column.chunk(0)
        return pyarrow.concat_arrays([chunk]) if chunk.offset else chunk
    return column.combine_chunks()


def _in_pieces(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches, those of far more bytes than usual in several."""
    for batch in batches:
        n_pieces = min(-(-batch.nbytes // _MOST_BATCH), batch.num_rows) or 1
        n_rows = -(-batch.num_rows // n_pieces)
        if n_pieces == 1:
            yield batch
            continue
        for start in range(0, batch.num_rows, n_rows):
            yield _alone_batch(batch.slice(start, n_rows))


def _alone_batch(batch: Any) -> Any:
    import pyarrow

    return _one(pyarrow.Table.from_batches([batch]))


def _least_width(kind: Any) -> int:
    """Return the bytes that a value of a type takes at least."""
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return 1


def _row_bytes(file: Any) -> int:
    """Return the bytes of a row, by the first ones."""
    for batch in file.iter_batches(batch_size=_LOOK_AT_ROWS, use_threads=False):
        return int(batch.nbytes) // max(1, batch.num_rows)
    return 0


def restore_parquet(
    opened: Compressed, file: IO[bytes], rows: tuple[int, int] | None,
    on_block: Callable[[int], None],
) -> None:  # fmt: skip
    """Write the ``.parquet`` file that was compressed, or some of its rows."""
    import pyarrow
    from pyarrow import parquet

    table = opened.header.table
    chosen, schema = chosen_columns(opened)
    kept = sorted(set(range(len(schema.types))) - set(chosen))
    codec = table.get("codec", "snappy")
    group = table.get("group", 1 << 20)
    if codec not in _CODECS or type(group) is not int or not 0 < group < 1 << 31:
        raise CodecError("it does not say how its table was written.")
    start, stop = (0, opened.n_rows()) if rows is None else rows
    opened.budget.check((stop - start) * sum(map(_least_width, schema.types)))
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
    """Return the places of approximate columns, and the types of all."""
    import pyarrow

    schema = _read_schema(opened)
    chosen = from_ranges(opened.header.table.get("approximate", []), len(schema.types))
    types = pyarrow.types
    numbers = all(
        types.is_floating(schema.types[i]) or types.is_integer(schema.types[i]) for i in chosen
    )
    if not numbers:
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


_CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")


def _details(metadata: Any) -> dict[str, Any]:
    """Return how a file was written, as far as it is not the usual way."""
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
    """Return what becomes of a column: approximate, exact, or exact because nothing else can be."""
    import pyarrow

    if pyarrow.types.is_floating(kind):
        return "approximate"
    return "exact" if pyarrow.types.is_integer(kind) else "no numbers"


def matrix_type(types: Sequence[Any]) -> str:
    """Return "f4" if that holds all columns of these types, else "f8"."""
    import pyarrow

    narrow = (pyarrow.float16(), pyarrow.float32())
    return "f4" if types and all(kind in narrow for kind in types) else "f8"


def finisher(types: Sequence[Any]) -> Any:
    """Return how decoded numbers are rounded to the types of their columns; None if none are."""
    import pyarrow

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
    """Return numbers of the type of a column; missing whole numbers are 0."""
    dtype = np.dtype(kind.to_pandas_dtype())
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    ends, high = np.iinfo(dtype), _largest(kind)
    whole = np.rint(values.astype(np.float64))
    inside = np.nan_to_num(whole, nan=0.0, posinf=high, neginf=float(ends.min))
    return inside.clip(float(ends.min), high).astype(dtype)


def read_as_floats(kind: Any) -> bool:
    """Tell whether a type is one of floats."""
    return np.dtype(kind.to_pandas_dtype()).kind == "f"


def _largest(kind: Any) -> float:
    """Return the largest float that is in a type of whole numbers; its own end may be none."""
    end = np.iinfo(np.dtype(kind.to_pandas_dtype())).max
    high = np.float64(end)
    return float(high if int(high) <= end else np.nextafter(high, 0))


def _columns(block: DecodedBlock, schema: Any, chosen: list[int], kept: list[int]) -> list[Any]:
    import pyarrow

    columns: list[Any] = [None] * len(schema.types)
    cursor = Cursor(block.exact or b"\0", "a block")
    if block.matrix is not None:
        masks = read_missing_marks(cursor, block.matrix)
        for i, place in enumerate(chosen):
            values = _to_type(block.matrix[:, i], schema.types[place])
            columns[place] = pyarrow.array(values, schema.types[place], mask=masks[i])
    elif chosen:
        raise CodecError("a block has no numbers where some should be.")
    if kept:
        types = [schema.types[i] for i in kept]
        found = read_exact_columns(cursor, types, block.n_rows)
        for place, column in zip(kept, found, strict=True):
            columns[place] = column
    else:
        cursor.end()
    return columns


def _read_schema(opened: Compressed) -> Any:
    packed = opened.reader.tail.schema
    if unpacked_size(packed) > min(HEADER_SIZE, max(TEXT_SIZE, TEXT_EXPANSION * len(packed))):
        raise CodecError("the types of its columns would take too many bytes.")
    return read_schema(unpack(packed, "the schema"))


def _opened(path: Path) -> Any:
    from pyarrow import parquet

    with _in_words(path):
        return parquet.ParquetFile(path)


class _in_words:  # noqa: N801 - used as a function
    """Say in words that a Parquet file cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        from pyarrow import ArrowException

        if isinstance(error, ArrowException | OSError):
            words = str(error).strip().splitlines() or [type(error).__name__]
            raise TableError(
                f"{self._path} cannot be read as a Parquet file (damaged, cut short or of another "
                f"kind): {words[0].rstrip('.')[:300]}."
            ) from error
