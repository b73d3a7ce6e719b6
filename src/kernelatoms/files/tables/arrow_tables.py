"""Typed tables: Parquet and Arrow (Feather) files, and Arrow's columns of all readers."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.files.tables import typed_sizes
from kernelatoms.files.tables.first_lines import WIDE
from kernelatoms.files.tables.table import (
    ReadOptions,
    Table,
    TableError,
    TableFile,
    first_sentence,
    repeated,
    shortened,
)
from kernelatoms.files.tables.text_numbers import mixture
from kernelatoms.limits import Budget, TooLargeError

#: float64 rounds whole numbers from here on.
_LARGE = 2.0**53
_PIECE_ROWS = 1 << 16


def owned_by_arrow(data: bytes, start: int = 0) -> Any:
    """Return an Arrow file over a copy of bytes.

    Arrow's threads release what they have read some moments after they are done. If that were a
    Python object and Python about to exit, the process could be aborted.
    """
    import pyarrow

    held = pyarrow.BufferOutputStream()
    held.write(pyarrow.py_buffer(data).slice(start))
    return pyarrow.BufferReader(held.getvalue())


def read_parquet(file: TableFile, options: ReadOptions) -> Table:
    """Read a Parquet file."""
    from pyarrow import ArrowException, parquet

    del options
    path, data, budget = file.path, file.data, file.budget
    try:
        with parquet.ParquetFile(path if data is None else owned_by_arrow(data)) as opened:
            budget.check(8 * opened.metadata.num_rows * opened.metadata.num_columns)
            with _bytes_of(path, data) as (read, size):
                sizes = typed_sizes.parquet_sizes(opened, read, size)
            arrow = _within(budget, path if data is None else owned_by_arrow(data), opened, sizes)
            arrow.validate(full=True)  # text that is no UTF-8, say
    except TooLargeError:
        raise
    except (ArrowException, ValueError, OSError) as error:
        raise TableError(
            f"{path} cannot be read as a Parquet file (damaged, cut short or of another kind): "
            f"{first_sentence(error)}."
        ) from error
    return from_arrow(path, arrow, budget)


def _within(budget: Budget, source: Any, file: Any, sizes: typed_sizes.ParquetSizes) -> Any:
    """Read a Parquet file within its budget, although values may repeat long texts."""
    budget.check(sizes.n_bytes)
    threads = file.metadata.num_columns <= WIDE
    if sizes.n_bytes + sizes.by_number.total() + sizes.by_prefix.total() <= budget.allowed:
        return file.read(use_threads=threads)
    names = file.schema_arrow.names
    budget.check(sum(n for path, n in sizes.by_prefix.items() if path not in names))
    inside = {path.partition(".")[0] for path in sizes.by_number if path not in names}
    parts: list[list[str]] = [[], [], []]
    for name in names:
        parts[2 if name in inside else int(name in sizes.by_prefix)].append(name)
    from pyarrow import parquet

    with parquet.ParquetFile(source, read_dictionary=sorted(sizes.by_number)) as again:
        # Numbers of texts stay such until it is known what they become.
        table = again.read(parts[0], use_threads=threads)
        budget.check(sum(map(typed_sizes.column_cost, table.columns)))
        n_rows = min(max(budget.allowed // max(1, sizes.longest), 1), _PIECE_ROWS)
        pieces = again.iter_batches(n_rows, columns=parts[1], use_threads=False)
        table = _beside(table, pieces if parts[1] else (), budget)
        groups = (again.read_row_group(i, parts[2]) for i in range(again.num_row_groups))
        table = _beside(table, groups if parts[2] else (), budget)
    return table.select(names).cast(file.schema_arrow)


def _beside(table: Any, pieces: Iterable[Any], budget: Budget) -> Any:
    """Return a table with further columns, which come as pieces of rows."""
    import pyarrow

    found, total = [], sum(map(typed_sizes.column_cost, table.columns))
    for piece in pieces:
        total += sum(map(typed_sizes.column_cost, piece.columns))
        budget.check(total)
        found.append(pyarrow.table(piece))
    more = pyarrow.concat_tables(found) if found else pyarrow.table({})
    for name, column in zip(more.column_names, more.columns, strict=True):
        table = table.append_column(name, column)
    return table


def read_feather(file: TableFile, options: ReadOptions) -> Table:
    """Read an Arrow file: Feather, or an Arrow stream."""
    from pyarrow import ArrowException, OSFile, feather, ipc

    del options
    path, data, budget = file.path, file.data, file.budget
    try:
        with _bytes_of(path, data) as (read, size):
            start = read(0, 6)
            if not start.startswith(b"FEA1"):  # of which no version compresses
                budget.check(typed_sizes.unpacked_size(read, size))
        # Not mapped into memory: a change of the file would change the table.
        with OSFile(str(path)) if data is None else owned_by_arrow(data) as opened:
            if start == b"ARROW1" or start.startswith(b"FEA1"):
                arrow = feather.read_table(opened)
            else:
                arrow = ipc.open_stream(opened).read_all()
            arrow.validate(full=True)
    except TooLargeError:
        raise
    except (ArrowException, ValueError, OSError, TypeError) as error:
        raise TableError(
            f"{path} cannot be read as an Arrow file (damaged, cut short or of another kind): "
            f"{first_sentence(error)}."
        ) from error
    return from_arrow(path, arrow, budget)


@contextmanager
def _bytes_of(path: Path, data: bytes | None) -> Iterator[tuple[typed_sizes.Read, int]]:
    """Give a function that returns bytes of a file, and the size of the file."""
    if data is not None:
        held = data
        yield lambda offset, n: held[offset : offset + n], len(held)
        return
    with path.open("rb") as file:

        def read(offset: int, n: int) -> bytes:
            file.seek(offset)
            return file.read(n)

        yield read, path.stat().st_size


def from_arrow(path: Path, arrow: Any, budget: Budget) -> Table:
    """Return a table of typed columns, within a budget."""
    budget.check(sum(map(typed_sizes.column_cost, arrow.columns)))
    refuse_twins(path, arrow.column_names)
    noted = (arrow.schema.pandas_metadata or {}).get("index_columns", [])
    # An index that only counts the rows is noted as a dictionary, and is no column of the file.
    index = frozenset(name for name in noted if isinstance(name, str))
    mixed = {
        name: trouble
        for i, (name, kind) in enumerate(zip(arrow.column_names, arrow.schema.types, strict=True))
        if kind in ("string", "large_string")
        and (trouble := mixture(path, name, arrow.column(i), None))
    }
    return Table(path, **part_columns(arrow), named=True, index=index, mixed=mixed)


def part_columns(arrow: Any) -> dict[str, Any]:
    """Separate columns of numbers from others; keep values that float64 would change."""
    import pyarrow

    types = pyarrow.types
    columns, series = [], []
    words: dict[str, Array] = {}
    for name, column in zip(arrow.column_names, arrow.columns, strict=True):
        kind = column.type
        if types.is_dictionary(kind):
            column = column.cast(kind.value_type)
            kind = column.type
        is_number = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
        if any(is_kind(kind) for is_kind in is_number):
            columns.append(name)
            series.append(column)
        else:
            # An all-empty column has no type; it counts as words.
            words[name] = objects(column)
    numbers = np.empty((arrow.num_rows, len(columns)))
    for i, column in enumerate(series):
        numbers[:, i] = _floats(column)
    exact = {}
    for i in large_columns(numbers):
        kind = series[i].type
        if types.is_integer(kind) or (types.is_decimal(kind) and kind.scale <= 0):
            whole = [None if value is None else int(value) for value in objects(series[i])]
            exact[columns[i]] = np.array(whole, dtype=object)
    for name, column in zip(columns, series, strict=True):
        if types.is_boolean(column.type):
            exact[name] = objects(column)
    return {"columns": columns, "numbers": numbers, "words": words, "exact": exact}


def large_columns(numbers: Array) -> list[int]:
    """Return which columns hold numbers of 2^53 and more, or infinite ones."""
    found = np.zeros(numbers.shape[1], bool)
    block = max(1, (1 << 18) // max(1, numbers.shape[1]))
    for start in range(0, len(numbers), block):
        found |= (np.abs(numbers[start : start + block]) >= _LARGE).any(axis=0)
    return np.flatnonzero(found).tolist()


def objects(column: Any) -> Array:
    """Return one Python object per row, lists too; None where missing."""
    import pyarrow

    if str(column.type) in ("string", "large_string"):
        texts: Array = column.to_numpy(zero_copy_only=False)
        return texts
    if len(column) and pyarrow.types.is_temporal(column.type):  # few days, many rows
        coded = column.combine_chunks().dictionary_encode()
        different = np.empty(len(coded.dictionary) + 1, dtype=object)
        different[:-1] = coded.dictionary.to_pylist()
        dates: Array = different[coded.indices.fill_null(len(coded.dictionary)).to_numpy()]
        return dates
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return values


def refuse_twins(path: Path, names: Sequence[str]) -> None:
    """Refuse column names that occur more than once."""
    if twins := repeated(names):
        raise TableError(f"{path} has more than one column called {shortened(twins)}; rename them.")


def _floats(column: Any) -> Array:
    import pyarrow

    types = pyarrow.types
    kind = column.type
    if types.is_boolean(kind):
        column = column.cast(pyarrow.int8())
    elif types.is_decimal(kind) or types.is_float16(kind):
        column = column.cast(pyarrow.float64())
    elif column.null_count and types.is_integer(kind):
        column = column.cast(pyarrow.float64(), safe=False)
    values: Array = column.to_numpy()
    return values
