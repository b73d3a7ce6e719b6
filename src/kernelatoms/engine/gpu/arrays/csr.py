"""Sparse codes on a device in compressed rows, with the part of scipy's API that is used."""

import warnings
from typing import Any

import numpy as np
import torch

from kernelatoms.engine.gpu.arrays.device_array import DeviceArray
from kernelatoms.engine.gpu.arrays.dtypes import torch_dtype

with warnings.catch_warnings():
    # torch warns once per process that sparse tensors are in beta.
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], torch.zeros(0, dtype=torch.int64), torch.zeros(0), (1, 1))


class DeviceCSR:
    """A matrix in compressed rows.

    Row s holds ``data[indptr[s]:indptr[s + 1]]`` in the columns ``indices`` of these places.

    Parameters
    ----------
    data : (n_nonzero,) DeviceArray
        Numbers.
    indices : (n_nonzero,) DeviceArray of int32
        Their columns, ascending in every row.
    indptr : (n_rows + 1,) DeviceArray of int64
        Where rows begin.
    shape : (int, int)
        Rows and columns.
    """

    def __init__(
        self, data: DeviceArray, indices: DeviceArray, indptr: DeviceArray, shape: tuple[int, int]
    ) -> None:
        self.data, self.indices, self.indptr, self.shape = data, indices, indptr, shape

    ndim = 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its numbers."""
        return self.data.dtype

    @property
    def device(self) -> Any:
        """Where its numbers are."""
        return self.data.device

    @property
    def nnz(self) -> int:
        """The number of stored elements."""
        return len(self.data)

    def __len__(self) -> int:
        return self.shape[0]

    def astype(self, dtype: Any, copy: bool = True) -> "DeviceCSR":
        """Return the matrix with its numbers in another type."""
        if not copy and self.dtype == dtype:
            return self
        return DeviceCSR(self.data.astype(dtype), self.indices, self.indptr, self.shape)

    def rows(self) -> Any:
        """Return the row of every stored element, a tensor (n_nonzero,)."""
        counts = torch.diff(self.indptr.tensor)
        numbers = torch.arange(self.shape[0], device=self.device)
        return torch.repeat_interleave(numbers, counts, output_size=self.nnz)

    def toarray(self) -> DeviceArray:
        """Return the dense matrix."""
        out = torch.zeros(self.shape, dtype=torch_dtype(self.dtype), device=self.device)
        out[self.rows(), self.indices.tensor.long()] = self.data.tensor
        return DeviceArray(out)

    def __matmul__(self, other: Any) -> DeviceArray:
        """Return the product with a dense matrix (n_columns, m), in numpy's type for both."""
        dtype = np.result_type(self.dtype, other.dtype)
        right = other.astype(dtype, copy=False).tensor
        made = torch.zeros((self.shape[0], right.shape[1]), dtype=right.dtype, device=self.device)
        if self.nnz:
            # A weighted sum of the rows that the columns name: one pass, in a fixed order.
            made = torch.nn.functional.embedding_bag(
                self.indices.tensor.long(), right, self.indptr.tensor[:-1].long(), mode="sum",
                per_sample_weights=self.data.tensor.to(right.dtype),
            )  # fmt: skip
        return DeviceArray(made)


def csr(data: Any, indices: Any, indptr: Any, n_columns: int) -> DeviceCSR:
    """Return codes as a matrix of so many columns: values, their atoms, where signals begin."""
    indptr = indptr.astype(np.int64, copy=False)
    shape = (len(indptr) - 1, int(n_columns))
    return DeviceCSR(data, indices.astype(np.int32, copy=False), indptr, shape)


def stacked(parts: list[DeviceCSR]) -> DeviceCSR:
    """Return matrices of the same columns under each other."""
    starts = np.concatenate([part.indptr[1:] - part.indptr[:-1] for part in parts])
    indptr = np.concatenate([np.zeros(1, np.int64, like=starts), np.cumsum(starts)])
    data, indices = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "indices")
    )
    return csr(data, indices, indptr, parts[0].shape[1])
