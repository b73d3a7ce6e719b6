"""Arrays of zarr: chunks in a folder or an archive."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelatoms.lazy import load_extra
from kernelatoms.rows.numbers import checksum, float_type_asked
from kernelatoms.rows.regroup import regroup
from kernelatoms.rows.source import RowSource


class ZarrRows(RowSource):
    """The rows of a zarr array of 2 dimensions.

    Parameters
    ----------
    array : zarr.Array or path
        The rows.
    labels : array-like of shape (n_rows,), optional
        Their labels.
    dtype : dtype, optional
        float32 or float64; that of the array where it is one of them.
    """

    def __init__(self, array: Any, labels: Any = None, *, dtype: DTypeLike | None = None) -> None:
        self._path = None if hasattr(array, "shape") else str(array)
        self._array = array if self._path is None else self._opened()
        if not hasattr(self._array, "shape"):
            names = ", ".join(sorted(self._array.array_keys()))
            raise ValueError(f"{array} is a group; open one of its arrays: {names or 'none'}.")
        if len(self._array.shape) != 2:
            raise ValueError(f"rows must be an array of 2 dimensions, got {self._array.shape}.")
        floats = float_type_asked(dtype, self._array.dtype)
        n_rows, n_features = self._array.shape
        super().__init__(n_rows, n_features, floats, labels=labels)

    def identity(self) -> dict[str, Any]:
        """Return shape, type and a checksum of the first rows."""
        first = next(self.blocks(64), np.empty((0, 0)))
        return {
            "kind": "zarr",
            "shape": list(self.shape),
            "dtype": self.dtype.name,
            "first": checksum(first),
        }

    def _opened(self) -> Any:
        zarr = load_extra("zarr", "Reading zarr arrays", extra="zarr")
        try:
            return zarr.open(self._path, mode="r")
        except Exception as error:  # of many kinds, by version and store
            raise ValueError(f"{self._path} cannot be read by zarr: {error}") from error

    def _read(self, block_rows: int) -> Iterator[Any]:
        array = self._array if self._path is None else self._opened()
        # As many rows as whole chunks hold are read together: no chunk is decoded twice.
        height = max(1, array.chunks[0])
        step = height * max(1, block_rows // height)
        chunks = (array[start : start + step] for start in range(0, array.shape[0], step))
        return regroup(chunks, block_rows, lambda chunk, start, stop: chunk[start:stop])

    def _finish(self, piece: Any) -> Any:
        return piece.joined(self.dtype)

    def _take(self, indices: NDArray[np.intp]) -> Any:
        order = np.argsort(indices, kind="stable")
        found = np.empty((len(indices), self.shape[1]), self.dtype)
        # Whole chunks are decoded for few of their rows: not too many at once.
        step = self.default_block_rows
        for first in range(0, len(order), step):
            places = order[first : first + step]
            found[places] = self._array.oindex[indices[places]]
        return found
