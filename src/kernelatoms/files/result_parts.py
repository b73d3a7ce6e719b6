"""Predictions and codes written a part at a time: the same files as ``results`` writes at once.

A file is complete when the last part is there; if there is an exception before, nothing is left.
NumPy files say at their beginning how long they are, so their parts wait in temporary files.
"""

import io
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from kernelatoms.engine import Array
from kernelatoms.files.results import TRIPLES, arrow_columns, without_objects, write_csv
from kernelatoms.files.writing import replacing

# Rows of a Parquet file that are written together, at least.
_GROUP_ROWS = 1 << 16


class Stream(Protocol):
    """Takes text."""

    def write(self, text: str, /) -> Any:
        """Take the next text."""


class PartWriter:
    """Takes parts of equal columns, in order."""

    def write(self, columns: Mapping[str, Any]) -> None:
        """Take the next rows."""
        raise NotImplementedError

    def finish(self) -> None:
        """Write what was waiting: there are no more rows."""


@contextmanager
def columns_writer(target: Path | Stream) -> Iterator[PartWriter]:
    """Give a writer of columns, as ``write_columns`` writes them; to a stream as CSV."""
    if not isinstance(target, Path):
        yield _CSVWriter(target)
        return
    suffix = target.suffix.lower()
    with ExitStack() as opened:
        file = opened.enter_context(replacing(target))
        writer: PartWriter
        if suffix == ".csv":
            writer = _CSVWriter(_Encoded(file))
        elif suffix == ".parquet":
            writer = _ParquetWriter(file)
        else:
            only = "prediction" if suffix == ".npy" else None
            writer = _NumpyWriter(file, target.parent, opened, only)
        yield writer
        writer.finish()


class _Encoded:
    """Text for a file, in UTF-8."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str, /) -> None:
        self._file.write(text.encode())


class _CSVWriter(PartWriter):
    def __init__(self, stream: Stream) -> None:
        self._stream, self._names = stream, True

    def write(self, columns: Mapping[str, Any]) -> None:
        text = io.StringIO()
        write_csv(text, columns, names=self._names)
        self._names = False
        self._stream.write(text.getvalue())


class _ParquetWriter(PartWriter):
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer: Any = None
        self._schema: Any = None
        self._held: list[Any] = []

    def write(self, columns: Mapping[str, Any]) -> None:
        import pyarrow

        table = pyarrow.table(arrow_columns(columns))
        if self._schema is None:
            kinds = [pyarrow.string() if str(f.type) == "null" else f.type for f in table.schema]
            self._schema = pyarrow.schema(list(zip(table.schema.names, kinds, strict=True)))
        try:
            self._held.append(table.cast(self._schema))
        except (pyarrow.ArrowException, ValueError) as error:
            raise ValueError(
                f"path: a column changes its type from part to part ({error}); write .csv, which "
                "has no types, or have the table read as a whole, by more memory, such as "
                "memory='16GiB'."
            ) from error
        if sum(map(len, self._held)) >= _GROUP_ROWS:
            self._flush()

    def finish(self) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        import pyarrow
        from pyarrow import parquet

        if not self._held:
            return
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, self._schema)
        self._writer.write_table(pyarrow.concat_tables(self._held))
        self._held = []


class _NumpyWriter(PartWriter):
    """Columns as arrays of an ``.npz`` file; or ``only`` one of them, as ``.npy``."""

    def __init__(self, file: IO[bytes], folder: Path, opened: ExitStack, only: str | None) -> None:
        self._file, self._folder, self._opened, self._only = file, folder, opened, only
        self._spools: dict[str, _Spool] = {}

    def write(self, columns: Mapping[str, Any]) -> None:
        for name, values in columns.items():
            if self._only in (None, name):
                if name not in self._spools:
                    self._spools[name] = _Spool(self._folder, self._opened)
                self._spools[name].add(without_objects(np.asarray(values)))

    def finish(self) -> None:
        if self._only is not None:
            self._spools[self._only].write_to(self._file)
            return
        with _new_archive(self._file) as archive:
            for name, spool in self._spools.items():
                spool.write_member(archive, name)


class _Spool:
    """An array in a temporary file, which grows by rows."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self._file = opened.enter_context(tempfile.TemporaryFile(dir=folder))  # noqa: SIM115
        self._pieces: list[tuple[np.dtype[Any], tuple[int, ...]]] = []

    def add(self, rows: Array) -> None:
        rows = np.ascontiguousarray(rows)
        self._pieces.append((rows.dtype, rows.shape))
        self._file.write(rows.tobytes())

    def write_to(self, file: IO[bytes], dtype: DTypeLike | None = None) -> None:
        """Write an ``.npy`` file: texts are as long as the longest."""
        kind = np.dtype(dtype) if dtype is not None else np.result_type(
            *{piece for piece, _ in self._pieces}
        )  # fmt: skip
        n_rows = sum(shape[0] for _, shape in self._pieces)
        header = {
            "descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False,
            "shape": (n_rows, *self._pieces[0][1][1:]),
        }  # fmt: skip
        np.lib.format.write_array_header_1_0(file, header)
        self._file.seek(0)
        for given, shape in self._pieces:
            data = self._file.read(given.itemsize * int(np.prod(shape)))
            file.write(np.frombuffer(data, given).astype(kind).tobytes())

    def write_member(
        self, archive: zipfile.ZipFile, name: str, dtype: DTypeLike | None = None
    ) -> None:
        with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
            self.write_to(member, dtype)


def _new_archive(file: IO[bytes]) -> zipfile.ZipFile:
    return zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, allowZip64=True)


class CodesWriter:
    """Takes codes of rows, in order; counts rows and nonzeros."""

    def __init__(self, target: Path | Stream, opened: ExitStack) -> None:
        self._target, self._opened = target, opened
        self._suffix = target.suffix.lower() if isinstance(target, Path) else ".csv"
        self.n_rows = self.nonzeros = self.n_columns = 0
        self.sparse = True
        self._columns: PartWriter | None = None
        self._empty: Mapping[str, Any] = {}
        self._spools: dict[str, _Spool] = {}
        if self._suffix in (".npy", ".npz") and isinstance(target, Path):
            self._file = opened.enter_context(replacing(target))
        else:
            self._columns = opened.enter_context(columns_writer(target))

    def write(self, codes: Any) -> None:
        """Take the codes of the next rows: a sparse array, or coordinates in a dense one."""
        self.sparse = scipy.sparse.issparse(codes)
        if self._columns is not None:
            self._write_columns(self._columns, codes)
        elif self._suffix == ".npy" or not self.sparse:
            self._add("X", codes.toarray() if self.sparse else codes)
        else:
            rows = scipy.sparse.csr_array(codes)
            self._add("data", rows.data)
            self._add("indices", rows.indices)
            ends = rows.indptr if self.n_rows == 0 else rows.indptr[1:]
            self._add("indptr", ends.astype(np.int64) + self.nonzeros)
        self.n_rows += codes.shape[0]
        self.n_columns = codes.shape[1]
        self.nonzeros += int(codes.nnz if self.sparse else np.count_nonzero(codes))

    def finish(self) -> None:
        """Write what was waiting: there are no more rows."""
        if self._columns is not None:
            if self._empty:
                self._columns.write(self._empty)
        elif self._suffix == ".npy":
            self._spools["X"].write_to(self._file)
        else:
            with _new_archive(self._file) as archive:
                if self.sparse:
                    self._write_sparse(archive)
                else:
                    self._spools["X"].write_member(archive, "X")

    def _write_columns(self, writer: PartWriter, codes: Any) -> None:
        if not self.sparse:
            writer.write({f"component {i}": column for i, column in enumerate(codes.T)})
            return
        part = codes.tocoo()
        row = part.row.astype(np.int64) + self.n_rows
        columns = dict(zip(TRIPLES, (row, part.col, part.data), strict=True))
        if part.nnz:
            writer.write(columns)
            self._empty = {}
        elif not self.nonzeros:
            self._empty = columns

    def _write_sparse(self, archive: zipfile.ZipFile) -> None:
        """Write the arrays of ``scipy.sparse.save_npz``."""
        small = max(self.nonzeros, self.n_columns) <= np.iinfo(np.int32).max
        places = np.int32 if small else np.int64
        self._spools["indices"].write_member(archive, "indices", places)
        self._spools["indptr"].write_member(archive, "indptr", places)
        for name, value in (
            ("format", np.array(b"csr")), ("shape", np.array((self.n_rows, self.n_columns))),
            ("_is_array", np.array(True)),
        ):  # fmt: skip
            with archive.open(f"{name}.npy", "w") as member:
                np.save(member, value, allow_pickle=False)
        self._spools["data"].write_member(archive, "data")

    def _add(self, name: str, rows: Array) -> None:
        if name not in self._spools:
            assert isinstance(self._target, Path)
            self._spools[name] = _Spool(self._target.parent, self._opened)
        self._spools[name].add(rows)


@contextmanager
def codes_writer(target: Path | Stream) -> Iterator[CodesWriter]:
    """Give a writer of codes, as ``write_codes`` writes them; to a stream as CSV."""
    with ExitStack() as opened:
        writer = CodesWriter(target, opened)
        yield writer
        writer.finish()
