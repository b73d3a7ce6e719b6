"""Rows in memory: arrays, tensors on a device, sparse matrices."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelatoms.engine import is_device_array, to_numpy
from kernelatoms.rows.numbers import as_floats, checksum, float_type_asked
from kernelatoms.rows.source import RowSource


class ArrayRows(RowSource):
    """The rows of an array: blocks are views, unless numbers have to become floats in rows.

    Parameters
    ----------
    array : ndarray or DeviceArray of shape (n_rows, n_features)
        The rows.
    labels : array-like of shape (n_rows,), optional
        Their labels.
    dtype : dtype, optional
        float32 or float64; that of the array where it is one of them.
    feature_names : sequence of str, optional
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.rows import ArrayRows
    >>> source = ArrayRows(np.arange(10.0).reshape(5, 2))
    >>> [block.tolist() for block in source.blocks(3)]
    [[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], [[6.0, 7.0], [8.0, 9.0]]]
    """

    _waits_for_data = False

    def __init__(
        self,
        array: Any,
        labels: Any = None,
        *,
        dtype: DTypeLike | None = None,
        feature_names: Iterable[str] | None = None,
    ) -> None:
        self.one_by_one = is_device_array(array)
        if not self.one_by_one:
            array = np.asarray(array)
        if array.ndim != 2:
            raise ValueError(f"rows must be an array of 2 dimensions, got {array.ndim}.")
        floats = array.dtype if self.one_by_one else float_type_asked(dtype, array.dtype)
        n_rows, n_features = array.shape
        super().__init__(n_rows, n_features, floats, feature_names, labels)
        self._array = array

    def identity(self) -> dict[str, Any]:
        """Return shape, type and a checksum of the numbers."""
        crc = 0
        for block in self.blocks(self.default_block_rows):
            crc = checksum(to_numpy(block), crc)
        return {"kind": "array", "shape": list(self.shape), "dtype": self.dtype.name, "crc32": crc}

    def collect(self) -> Any:
        """Return the array."""
        return self._finish(self._array)

    def _read(self, block_rows: int) -> Iterator[Any]:
        for start in range(0, self._array.shape[0], block_rows):
            yield self._array[start : start + block_rows]

    def _finish(self, piece: Any) -> Any:
        return piece if self.one_by_one else as_floats(piece, self.dtype)

    def _take(self, indices: NDArray[np.intp]) -> Any:
        return self._finish(self._array[indices])


class SparseRows(RowSource):
    """The rows of a sparse matrix; blocks are CSR arrays that share its numbers.

    Parameters
    ----------
    matrix : sparse matrix or array of shape (n_rows, n_features)
        The rows.
    labels : array-like of shape (n_rows,), optional
        Their labels.
    dtype : dtype, optional
        float32 or float64; that of the matrix where it is one of them.
    feature_names : sequence of str, optional
        Names of the columns.
    """

    _waits_for_data = False

    def __init__(
        self,
        matrix: Any,
        labels: Any = None,
        *,
        dtype: DTypeLike | None = None,
        feature_names: Iterable[str] | None = None,
    ) -> None:
        from scipy import sparse

        floats = float_type_asked(dtype, matrix.dtype)
        n_rows, n_features = matrix.shape
        super().__init__(n_rows, n_features, floats, feature_names, labels)
        self._matrix = sparse.csr_array(matrix, dtype=floats)

    def identity(self) -> dict[str, Any]:
        """Return shape, type and a checksum of the numbers and their places."""
        crc, m = 0, self._matrix
        for part in (m.indptr, m.indices, m.data):
            crc = checksum(part, crc)
        return {"kind": "sparse", "shape": list(self.shape), "dtype": self.dtype.name, "crc32": crc}

    def collect(self) -> Any:
        """Return the matrix, as a CSR array."""
        return self._matrix

    def _read(self, block_rows: int) -> Iterator[Any]:
        from scipy import sparse

        matrix = self._matrix
        for first in range(0, matrix.shape[0], block_rows):
            places = matrix.indptr[first : first + block_rows + 1]
            start, stop = places[0], places[-1]
            parts = matrix.data[start:stop], matrix.indices[start:stop], places - start
            yield sparse.csr_array(parts, shape=(len(places) - 1, matrix.shape[1]))

    def _take(self, indices: NDArray[np.intp]) -> Any:
        return self._matrix[indices]
