"""Files of which a part of the rows is read at a time: Parquet, Arrow, NumPy."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.files.tables import arrays, arrow_tables, typed_sizes
from kernelatoms.files.tables.table import (
    ReadOptions,
    Table,
    TableError,
    first_sentence,
    shortened,
)
from kernelatoms.limits import Budget, TooLargeError
from kernelatoms.rows.stamps import Stamp
from kernelatoms.rows.table_files import ArrowFile, ParquetFile, TableFile

# Bytes that a part may take beside numbers, at least: a few long texts are no danger.
_FEWEST_ALLOWED = 1 << 28


@dataclass(frozen=True)
class Span:
    """Rows of a file that follow each other and can be read without those before them.

    Parameters
    ----------
    first_row, n_rows : int
        The number of the first row in the file, and how many there are.
    where : object
        Where the kind of files finds them; None means the whole file.
    """

    first_row: int
    n_rows: int
    where: Any = None


@dataclass(frozen=True)
class Part:
    """Some rows of a file, as a table; ``take`` keeps some of them, for ``PartFile.joined``."""

    table: Table
    take: Callable[[NDArray[np.intp]], Any]


class PartFile:
    """A file that is read in parts. Subclasses read one kind of files.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        What it does not say of itself.
    part_bytes : int
        About how many bytes the numbers of a part take.
    memory : int
        How many bytes a part with texts may take.
    """

    def __init__(self, path: Path, options: ReadOptions, part_bytes: int, memory: int) -> None:
        self.path, self.options, self.part_bytes = path, options, part_bytes
        self.stamp = Stamp.of(path)
        self.budget = Budget(self.stamp.size, max(memory, _FEWEST_ALLOWED))
        self.n_rows = 0  # that the last pass over the file has found

    @staticmethod
    def needs(path: Path) -> int:
        """Return about how many bytes of memory the whole table takes."""
        raise NotImplementedError

    def parts(self, span: Span | None = None) -> Iterator[Part]:
        """Yield parts, in order: of the whole file, or of one of its ``spans``."""
        raise NotImplementedError

    def spans(self, n_bytes: int) -> list[Span]:
        """Return spans of about ``n_bytes`` of numbers; the file has been read once."""
        return [Span(0, self.n_rows)]

    def joined(self, kept: list[Any]) -> Table:
        """Return rows that ``Part.take`` kept, of this or similar files, as one table."""
        raise NotImplementedError


class TypedParts(PartFile):
    """Parquet and Arrow files: record batches."""

    opener: type[TableFile]

    def __init__(self, path: Path, options: ReadOptions, part_bytes: int, memory: int) -> None:
        super().__init__(path, options, part_bytes, memory)
        for option in ("rows", "decimal", "encoding", "header"):
            if getattr(options, option) is not None:
                raise TableError(f"{option}: {path} is no {'.npz file' * (option == 'rows')}"
                                 f"{'table of text' * (option != 'rows')}.")  # fmt: skip
        self._file = self.opener(path)

    def parts(self, span: Span | None = None) -> Iterator[Part]:
        """Yield a part per batch of rows."""
        import pyarrow

        names = list(self._file.schema.names)
        arrow_tables.refuse_twins(self.path, names)
        rows = max(1, self.part_bytes // (8 * max(1, len(names))))
        start = 0 if span is None else span.first_row
        file = self._file
        if span is not None and span.where is not None:
            file = file.limited_to(span.where)
        for batch in file.batches(names, rows):
            for first in range(0, batch.num_rows, rows):
                arrow = pyarrow.Table.from_batches([batch.slice(first, rows)])
                yield Part(replace(self._table(arrow), first_row=start), arrow.take)
                start += len(arrow)
        if span is None:
            self.n_rows = start

    def spans(self, n_bytes: int) -> list[Span]:
        """Return runs of row groups, or of batches."""
        sizes = self._file.group_sizes()
        if sizes is None:
            return super().spans(n_bytes)
        most = n_bytes // (8 * max(1, len(self._file.schema.names)))
        ends = np.cumsum([0, *sizes]).tolist()
        return [
            Span(ends[run.start], ends[run.stop] - ends[run.start], run)
            for run in runs_of(sizes, most)
        ]

    def joined(self, kept: list[Any]) -> Table:
        """Return rows of Arrow tables as one table."""
        import pyarrow

        first = kept[0].schema
        try:
            tables = [table.select(first.names).cast(first) for table in kept]
        except pyarrow.ArrowException as error:
            raise TableError(
                f"the columns of {self.path} and of the other files differ in type: "
                f"{first_sentence(error)}."
            ) from error
        return self._table(pyarrow.concat_tables(tables))

    def _table(self, arrow: Any) -> Table:
        import pyarrow

        arrow = arrow.replace_schema_metadata(self._file.schema.metadata)
        try:
            arrow.validate(full=True)
            return arrow_tables.from_arrow(self.path, arrow, self.budget)
        except TooLargeError as error:
            raise TableError(f"{self.path} was not read: {error}.") from error
        except pyarrow.ArrowException as error:
            raise TableError(f"{self.path} cannot be read: {first_sentence(error)}.") from error


class ParquetParts(TypedParts):
    """Parquet files."""

    opener = ParquetFile

    @staticmethod
    def needs(path: Path) -> int:
        """Return the size of Arrow's columns and of numbers in double precision."""
        from pyarrow import ArrowException, parquet

        try:
            with parquet.ParquetFile(path) as file:
                known = file.metadata
                unpacked = sum(known.row_group(i).total_byte_size
                               for i in range(known.num_row_groups))  # fmt: skip
                return int(8 * known.num_rows * known.num_columns + unpacked)
        except (ArrowException, OSError, ValueError):
            return 0  # damaged: who reads it as a whole says so


class ArrowParts(TypedParts):
    """Feather and Arrow files, and streams."""

    opener = ArrowFile

    @staticmethod
    def needs(path: Path) -> int:
        """Return the size of Arrow's columns, unpacked, and of numbers in double precision."""
        size = path.stat().st_size
        try:
            with path.open("rb") as file:

                def read(offset: int, n: int) -> bytes:
                    file.seek(offset)
                    return file.read(n)

                return 3 * max(size, typed_sizes.unpacked_size(read, size))
        except ValueError:
            return 0


class NumpyParts(PartFile):
    """``.npy`` files."""

    def __init__(self, path: Path, options: ReadOptions, part_bytes: int, memory: int) -> None:
        super().__init__(path, options, part_bytes, memory)
        for option in ("rows", "decimal", "encoding", "header"):
            if getattr(options, option) is not None:
                raise TableError(f"{option}: {path} is a NumPy array, which has none.")
        self._width = 1  # columns, known of the first pass

    @staticmethod
    def needs(path: Path) -> int:
        """Return twice the size of the file: numbers are checked, and filled in."""
        return 2 * path.stat().st_size

    def parts(self, span: Span | None = None) -> Iterator[Part]:
        """Yield a part per block of rows."""
        self.stamp.check()
        with self.path.open("rb") as file:
            try:
                shape, columns_first, dtype = arrays.read_header(file, self.stamp.size)
            except arrays.UnreadableError as error:
                raise TableError(f"{self.path} cannot be read as a NumPy file: {error}.") from error
            if columns_first and len(shape) > 1:
                raise TableError(
                    f"{self.path} holds its numbers column by column, and cannot be read in parts: "
                    "save it row by row (numpy.ascontiguousarray), or have it read as a whole, by "
                    "more memory, such as memory='16GiB'."
                )
            width = int(np.prod(shape[1:]))
            rows = max(1, self.part_bytes // (8 * max(1, width)))
            self.n_rows, self._width = shape[0] if shape else 0, width
            low, high = 0, self.n_rows
            if span is not None:
                low, high = span.first_row, span.first_row + span.n_rows
                file.seek(low * width * dtype.itemsize, 1)
            for first in range(low, high, rows):
                n = min(rows, high - first)
                values = np.fromfile(file, dtype, n * width)
                if len(values) < n * width:
                    raise TableError(f"{self.path} was cut short while it was read.")
                array = values.reshape(n, *shape[1:])
                table = replace(arrays.table_of_array(self.path, array), first_row=first)
                yield Part(table, array.__getitem__)

    def spans(self, n_bytes: int) -> list[Span]:
        """Return blocks of rows."""
        rows = max(1, n_bytes // (8 * max(1, self._width)))
        return [
            Span(first, min(rows, self.n_rows - first)) for first in range(0, self.n_rows, rows)
        ]

    def joined(self, kept: list[Any]) -> Table:
        """Return rows of arrays as one table."""
        if len({array.shape[1:] for array in kept}) > 1:
            shapes = shortened([array.shape[1:] for array in kept])
            raise TableError(f"the rows of {self.path} and of the other files differ: {shapes}.")
        return arrays.table_of_array(self.path, np.concatenate(kept))


def runs_of(sizes: Sequence[int], most: int) -> list[range]:
    """Return runs of neighbours with ``most`` together, or with one of them.

    >>> runs_of([3, 3, 3, 9, 1], 6)
    [range(0, 2), range(2, 3), range(3, 4), range(4, 5)]
    """
    runs, first, total = [], 0, 0
    for i, size in enumerate(sizes):
        if i > first and total + size > most:
            runs.append(range(first, i))
            first, total = i, 0
        total += size
    return [*runs, range(first, len(sizes))] if sizes else []
