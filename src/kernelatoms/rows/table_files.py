"""Tables of which record batches are read one after another: Parquet, Arrow, CSV, data frames."""

import copy
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from kernelatoms.lazy import load_extra
from kernelatoms.rows.stamps import Stamp

#: Bytes of a CSV file that are parsed together.
_CSV_BYTES = 4 << 20
#: Bytes that are read of a Parquet column at a time: row groups need not fit in memory.
_BUFFER = 1 << 16


class TableFile:
    """A file with a table. Subclasses read one kind of files."""

    #: Whether types of columns are guesses.
    is_text = False
    #: Which groups of rows are read, of those that ``group_sizes`` counts; None means all.
    groups: range | None = None

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.path = path
        self.stamp = Stamp.of(path)
        self.schema, self.n_rows = self.explained(self._describe)

    def identity(self) -> list[Any]:
        """Return what tells this file from others, as values that JSON can hold."""
        return self.stamp.identity()

    def group_sizes(self) -> list[int] | None:
        """Return the rows of every group that can be read by itself; None where there are none."""
        return None

    def limited_to(self, groups: range) -> Self:
        """Return the same file, of which some groups of rows are read."""
        limited = copy.copy(self)
        limited.groups = groups
        return limited

    def _groups_of(self, n: int) -> range:
        return range(n) if self.groups is None else self.groups

    def batches(self, names: list[str], batch_rows: int) -> Iterator[Any]:
        """Yield record batches of some columns; memory goes back to the system in between."""
        self.stamp.check()
        pool = load_extra("pyarrow", "Reading tables").default_memory_pool()
        chunks = self._batches(names, batch_rows)
        held = 0
        try:
            while (batch := self.explained(lambda: next(chunks, None))) is not None:
                self.explained(partial(batch.validate, full=True))
                held += batch.nbytes
                yield batch
                if held > 64 << 20:
                    pool.release_unused()
                    held = 0
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()
            pool.release_unused()

    def explained(self, read: Callable[[], Any]) -> Any:
        """Call a function of pyarrow; say which file it is that cannot be read."""
        pyarrow = load_extra("pyarrow", "Reading tables")
        try:
            return read()
        except (pyarrow.ArrowException, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"{self.name} cannot be read: {said}") from error

    def _describe(self) -> tuple[Any, int | None]:
        """Return the schema and the number of rows, if the file says it."""
        raise NotImplementedError

    def _batches(self, names: list[str], batch_rows: int) -> Iterator[Any]:
        raise NotImplementedError


class ParquetFile(TableFile):
    """Row groups are read one after another, each a part of every column at a time."""

    def _open(self) -> Any:
        parquet = load_extra("pyarrow.parquet", "Reading Parquet files")
        return parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=_BUFFER)

    def _describe(self) -> tuple[Any, int | None]:
        with self._open() as file:
            return file.schema_arrow, file.metadata.num_rows

    def group_sizes(self) -> list[int] | None:
        """Return the rows of every row group."""
        return list(self.explained(self._sizes))

    def _sizes(self) -> list[int]:
        with self._open() as file:
            known = file.metadata
            return [known.row_group(i).num_rows for i in range(known.num_row_groups)]

    def _batches(self, names: list[str], batch_rows: int) -> Iterator[Any]:
        with self._open() as file:
            for group in self._groups_of(file.num_row_groups):
                yield from file.iter_batches(batch_rows, row_groups=[group], columns=names)


class ArrowFile(TableFile):
    """Arrow (Feather) files and streams: batches as they were written."""

    def _describe(self) -> tuple[Any, int | None]:
        pyarrow = load_extra("pyarrow", "Reading Arrow files")
        with pyarrow.OSFile(str(self.path)) as file:
            if not self._has_footer():
                return pyarrow.ipc.open_stream(file).schema, None
            return pyarrow.ipc.open_file(file).schema, sum(self._sizes(file))

    def group_sizes(self) -> list[int] | None:
        """Return the rows of every batch; None for a stream."""
        if not self._has_footer():
            return None
        pyarrow = load_extra("pyarrow", "Reading Arrow files")
        with pyarrow.OSFile(str(self.path)) as file:
            return list(self.explained(lambda: self._sizes(file)))

    def _sizes(self, file: Any) -> list[int]:
        pyarrow = load_extra("pyarrow", "Reading Arrow files")
        # Without columns a batch is a header: counting reads no numbers.
        options = pyarrow.ipc.IpcReadOptions(included_fields=[0])
        counted = pyarrow.ipc.open_file(file, options=options)
        return [counted.get_batch(i).num_rows for i in range(counted.num_record_batches)]

    def _has_footer(self) -> bool:
        with self.path.open("rb") as file:
            return file.read(6) == b"ARROW1"

    def _batches(self, names: list[str], batch_rows: int) -> Iterator[Any]:
        pyarrow = load_extra("pyarrow", "Reading Arrow files")
        with pyarrow.OSFile(str(self.path)) as file:
            wanted = [self.schema.get_field_index(name) for name in names]
            options = pyarrow.ipc.IpcReadOptions(included_fields=wanted)
            if not self._has_footer():
                for batch in pyarrow.ipc.open_stream(file, options=options):
                    yield batch.select(names)  # they come in the order of the file
                return
            opened = pyarrow.ipc.open_file(file, options=options)
            for i in self._groups_of(opened.num_record_batches):
                yield opened.get_batch(i).select(names)


class CSVFile(TableFile):
    """Text with a header line; a file whose first line is of numbers has none."""

    is_text = True

    def _describe(self) -> tuple[Any, int | None]:
        pyarrow = load_extra("pyarrow", "Reading CSV files")
        with self.path.open("rb") as file:
            line = file.readline(1 << 22).decode("utf-8-sig", errors="replace").rstrip("\r\n")
        found = [mark for mark in ",;\t" if mark in line]
        self._delimiter = max(found, key=line.count) if found else ","
        self._headed = not all(_is_number(field) for field in line.split(self._delimiter))
        if not line:
            raise pyarrow.ArrowInvalid("it is empty, and has no line of column names.")
        with self._open(None) as reader:
            return reader.schema, None

    def _open(self, names: list[str] | None) -> Any:
        csv = load_extra("pyarrow.csv", "Reading CSV files")
        types: dict[str, Any] = {}
        if names is not None:
            pyarrow = load_extra("pyarrow", "Reading CSV files")
            kinds = pyarrow.types
            # A column may begin with whole numbers, or with none, and go on with others.
            for name in names:
                kind = self.schema.field(name).type
                number = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_null(kind)
                types[name] = pyarrow.float64() if number else kind
        return csv.open_csv(
            self.path,
            read_options=csv.ReadOptions(
                block_size=_CSV_BYTES, autogenerate_column_names=not self._headed
            ),
            parse_options=csv.ParseOptions(delimiter=self._delimiter),
            convert_options=csv.ConvertOptions(include_columns=names, column_types=types),
        )

    def _batches(self, names: list[str], batch_rows: int) -> Iterator[Any]:
        with self._open(names) as reader:
            yield from reader


class TableInMemory(TableFile):
    """A data frame of pandas or polars, or a table of pyarrow."""

    def __init__(self, frame: Any) -> None:
        pyarrow = load_extra("pyarrow", "Reading data frames by blocks")
        self.name = f"The {type(frame).__name__}"
        if type(frame).__module__.startswith("pandas"):
            self._table = pyarrow.Table.from_pandas(frame, preserve_index=False)
        else:
            self._table = pyarrow.table(frame)
        self.schema, self.n_rows = self._table.schema, self._table.num_rows

    def identity(self) -> list[Any]:
        """Return the number of rows; the numbers are summed up elsewhere."""
        return [self.n_rows]

    def batches(self, names: list[str], batch_rows: int) -> Iterator[Any]:
        """Yield record batches of some columns."""
        yield from self._table.select(names).to_batches(batch_rows)


#: How files of a name are read.
TABLE_FILES: dict[str, type[TableFile]] = {
    ".parquet": ParquetFile,
    ".pq": ParquetFile,
    ".arrow": ArrowFile,
    ".arrows": ArrowFile,
    ".feather": ArrowFile,
    ".ipc": ArrowFile,
    ".csv": CSVFile,
    ".tsv": CSVFile,
}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def first_value(file: TableFile, name: str) -> Any:
    """Return the first value of a column that is not missing."""
    batches = file.batches([name], 64)
    for batch in itertools.islice(batches, 16):
        for value in batch.column(0):
            if value.is_valid:
                return value
    return None


def as_array(column: Any) -> Any:
    """Return a column of pyarrow as a numpy array; missing numbers as NaN."""
    pyarrow = load_extra("pyarrow", "Reading tables")
    kinds, kind = pyarrow.types, column.type
    if kinds.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if kinds.is_null(kind) or kinds.is_decimal(kind):
        column = column.cast(pyarrow.float64())
    elif column.null_count and kinds.is_boolean(kind):
        column = column.cast(pyarrow.int8()).cast(pyarrow.float64())
    elif column.null_count and kinds.is_integer(kind):
        column = column.cast(pyarrow.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))
