"""Large tables on a Dask cluster: workers read their parts of the files by themselves."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array
from kernelatoms.files.tables.large import LargeTable
from kernelatoms.files.tables.matching import rows_for
from kernelatoms.files.tables.parts import PartFile, Span
from kernelatoms.files.tables.table import TableError
from kernelatoms.rows import RowSource

if TYPE_CHECKING:  # models import scikit-learn, which takes a second
    from kernelatoms.files.models.record import ModelRecord

#: Bytes of numbers that a worker reads at once, where files can be read in such spans.
_CHUNK_BYTES = 32 << 20


def connected(scheduler: str | None, n_workers: int | None) -> AbstractContextManager[int]:
    """Connect to a cluster, or start workers of this machine; give their number."""
    from kernelatoms.rows.dask import connection

    return connection.connected(scheduler, n_workers)


def answers_in_order(
    function: Callable[[Any, Any], Any], model: Any, blocks: Iterable[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield blocks, each with ``function(model, block["X"])``, which workers compute."""
    from kernelatoms.rows.dask import parts

    return parts.answers_in_order(function, model, blocks)


def rows_read_by_workers(
    large: LargeTable,
    record: "ModelRecord",
    n_features: int,
    kept: NDArray[np.bool_],
    dtype: np.dtype[Any],
    identity: dict[str, Any],
) -> RowSource:
    """Return the rows of ``LargeRows`` as a source that the workers of a cluster read.

    A chunk is a file, or about 32 MiB of it: row groups of Parquet files, batches of Arrow files,
    lines of text, rows of NumPy files. The chunks depend on the files alone.

    Parameters
    ----------
    large : LargeTable
        The table, of which all parts have been read once.
    record, n_features, kept, dtype
        As in ``LargeRows``.
    identity : dict
        That of the ``LargeRows``.
    """
    from kernelatoms.rows.dask.parts import RowsReadByWorkers

    places, start = [], 0
    for number, file in enumerate(large.files):
        for span in file.spans(_CHUNK_BYTES):
            places.append(_Place.of(number, span, kept[start : start + span.n_rows]))
            start += span.n_rows
    if start != len(kept):
        raise TableError(
            f"{large.path} has changed since it was read first: it had {len(kept):,} rows, and has "
            f"now {start:,}."
        )
    reader = _Reader(large.files, replace(record, data={}, fit={}), n_features, dtype)
    sizes = [place.n_kept for place in places]
    return RowsReadByWorkers(reader, places, sizes, n_features, dtype, identity)


@dataclass(frozen=True)
class _Place:
    """What a chunk is read by: a span of a file, and which of its rows are kept."""

    file: int
    span: Span
    n_kept: int
    bits: bytes | None  # a bit per row; None where all are kept

    @classmethod
    def of(cls, file: int, span: Span, kept: NDArray[np.bool_]) -> "_Place":
        bits = None if kept.all() else np.packbits(kept).tobytes()
        return cls(file, span, int(kept.sum()), bits)

    def kept_of(self, X: Array) -> Array:
        """Return the rows that are kept."""
        if self.bits is None:
            return X
        bits = np.unpackbits(np.frombuffer(self.bits, np.uint8), count=self.span.n_rows)
        return X[np.flatnonzero(bits)]


@dataclass(frozen=True)
class _Reader:
    """Reads chunks on workers, as ``LargeRows`` reads them here."""

    files: list[PartFile]
    record: "ModelRecord"
    n_features: int
    dtype: np.dtype[Any]

    def __call__(self, place: _Place) -> Array:
        """Return the rows of a chunk."""
        file = self.files[place.file]
        if not file.path.exists():
            raise FileNotFoundError(
                f"a worker finds no file {file.path}: workers read the table by themselves, so all "
                "must see it under this name, on a shared disk, say."
            )
        new: dict[str, Any] = {}
        found = [
            rows_for(part.table, self.record, self.n_features, new)[0]
            for part in file.parts(place.span)
        ]
        X = np.concatenate(found) if found else np.empty((0, self.n_features))
        if len(X) != place.span.n_rows:
            raise TableError(f"{file.path} has changed since it was read first.")
        return np.ascontiguousarray(place.kept_of(X), self.dtype)
