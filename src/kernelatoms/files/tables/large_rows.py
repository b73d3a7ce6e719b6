"""``LargeRows``: the rows of a large table in a model's columns, as a source that learners read."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelatoms.engine import Array
from kernelatoms.files.tables.large import LargeTable
from kernelatoms.files.tables.matching import rows_for
from kernelatoms.rows import RowSource
from kernelatoms.rows.regroup import regroup

if TYPE_CHECKING:  # models import scikit-learn, which takes a second
    from kernelatoms.files.models.record import ModelRecord


class LargeRows(RowSource):
    """The rows of a large table in the columns of a model, NaN where values are missing.

    Parameters
    ----------
    large : LargeTable
        The table.
    record : ModelRecord
        Which columns, and how they become numbers.
    n_features : int
        How many numbers a row has then.
    kept : bool array of shape (n_rows,)
        Which rows to read: those with a label.
    dtype : dtype
        float32 or float64.

    Attributes
    ----------
    n_passes : int
        How often rows were read.
    new : dict of str to Counter
        Values that no encoding knows, by column, of the last pass.
    """

    def __init__(
        self,
        large: LargeTable,
        record: "ModelRecord",
        n_features: int,
        kept: NDArray[np.bool_],
        dtype: DTypeLike,
    ) -> None:
        super().__init__(int(kept.sum()), n_features, dtype)
        self.n_passes = 0
        self.new: dict[str, Counter[str]] = {}
        self._large, self._record, self._kept = large, record, kept

    def identity(self) -> dict[str, Any]:
        """Return names, sizes and times of the files, and the columns."""
        return {
            "kind": "large table",
            "files": self._large.identity(),
            "columns": self._record.columns,
            "encoded": self._record.encoded,
            "label": self._record.label,
            "n_features": self.n_features,
            "n_rows": self.n_rows,
            "dtype": self.dtype.name,
        }

    def read_by_workers(self) -> RowSource:
        """Return the same rows, read and worked on by the workers of a Dask cluster."""
        from kernelatoms.files.tables.on_workers import rows_read_by_workers

        return rows_read_by_workers(
            self._large, self._record, self.n_features or 0, self._kept, self.dtype,
            self.identity(),
        )  # fmt: skip

    def _read(self, block_rows: int) -> Iterator[Any]:
        self.n_passes += 1
        self.new = {}
        yield from regroup(self._chunks(), block_rows, lambda chunk, start, stop: chunk[start:stop])

    def _chunks(self) -> Iterator[Array]:
        for start, part in self._large.parts():
            X, _ = rows_for(part.table, self._record, self.n_features or 0, self.new)
            kept = self._kept[start : start + len(X)]
            yield X if kept.all() and len(kept) == len(X) else X[np.flatnonzero(kept)]

    def _finish(self, piece: Any) -> Any:
        return piece.joined(self.dtype)
