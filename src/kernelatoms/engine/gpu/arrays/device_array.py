"""``DeviceArray``: a tensor with numpy's API, so that code above the engine is written once.

It wraps one tensor and implements numpy's protocols (``__array_ufunc__``, ``__array_function__``)
and the methods of its arrays, as CuPy's arrays do. Types of results are numpy's. A function without
an implementation raises a TypeError that names it. Nothing is copied to the host except by
``to_numpy``; numpy arrays among operands are copied to the device. ``DeviceCSR``, for sparse codes,
has the part of scipy's API that is used.

See docs/decisions/008-device-arrays.md.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin

from kernelatoms.engine.gpu.arrays import ufuncs
from kernelatoms.engine.gpu.arrays.functions import FUNCTIONS, NEW
from kernelatoms.engine.gpu.arrays.ufuncs import from_host, numpy_dtype, torch_dtype

with warnings.catch_warnings():
    # torch warns once per process that sparse tensors are in beta.
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], torch.zeros(0, dtype=torch.int64), torch.zeros(0), (1, 1))


class DeviceArray(NDArrayOperatorsMixin):
    """An array over the memory of a tensor, on any device.

    Parameters
    ----------
    tensor : torch.Tensor
        Dense, of a dtype that numpy has; not copied.
    """

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    # numpy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        if method != "__call__":
            raise TypeError(f"np.{ufunc.__name__}.{method} is not known of arrays on {self.device}")
        options.pop("casting", None)
        out = options.get("out")
        if out is not None and not isinstance(out[0], DeviceArray):
            raise TypeError(f"out must be an array on {self.device}, like the operands.")
        options = {name: unwrapped(value) for name, value in options.items()}
        with torch.no_grad():
            found = ufuncs.apply(ufunc, unwrapped(operands), self.device, **options)
        return wrapped(found) if out is None else out[0]

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        device = self.device
        ours = FUNCTIONS.get(function) or NEW.get(function)
        if ours is None:
            raise TypeError(f"np.{function.__name__} is not known of arrays on {device}.")
        for name in ("device", "order"):  # of numpy's own, for arrays made like this one
            kwargs.pop(name, None)
        where = {"on": device} if function in NEW else {}
        with torch.no_grad():
            return wrapped(ours(*_moved(args, device), **_moved(kwargs, device), **where))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            f"An array on {self.device} is not copied to numpy by itself: kernelatoms.to_device("
            "array, 'cpu') does that."
        )

    # Attributes

    @property
    def device(self) -> Any:
        """Its device."""
        return self.tensor.device

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its elements, numpy's."""
        return numpy_dtype(self.tensor.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return int(self.tensor.ndim)

    @property
    def size(self) -> int:
        """The number of its elements."""
        return int(self.tensor.numel())

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def T(self) -> "DeviceArray":  # noqa: N802
        """The transpose, a view."""
        return DeviceArray(self.tensor.permute(*range(self.ndim - 1, -1, -1)))

    @property
    def mT(self) -> "DeviceArray":  # noqa: N802
        """The transposes of stacked matrices, a view."""
        return DeviceArray(self.tensor.mT)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of an array without axes")
        return int(self.tensor.shape[0])

    def __iter__(self) -> Iterator["DeviceArray"]:
        return (DeviceArray(row) for row in self.tensor)

    def __repr__(self) -> str:
        return f"DeviceArray({self.tensor!r})"

    # Scalars, which wait for the device

    def item(self) -> Any:
        """Return its only element."""
        return self.tensor.item()

    def tolist(self) -> Any:
        """Return its elements as nested lists."""
        return self.tensor.tolist()

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __float__(self) -> float:
        return float(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __index__(self) -> int:
        return int(self.tensor.__index__())

    def __format__(self, form: str) -> str:
        return format(self.item(), form) if not self.ndim else repr(self)

    # Copies and types

    def astype(self, dtype: Any, copy: bool = True) -> "DeviceArray":
        """Return the array in another dtype; itself if ``copy`` is False and it has it."""
        if not copy and self.dtype == dtype:
            return self
        return DeviceArray(self.tensor.to(torch_dtype(dtype), copy=copy))

    def copy(self) -> "DeviceArray":
        """Return a copy."""
        return DeviceArray(self.tensor.clone(memory_format=torch.contiguous_format))

    def __deepcopy__(self, memo: Any) -> "DeviceArray":
        return self.copy()

    def reshape(self, *shape: Any) -> "DeviceArray":
        """Return the array in another shape, a view where possible."""
        sides = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return DeviceArray(self.tensor.reshape(tuple(int(side) for side in sides)))

    def ravel(self) -> "DeviceArray":
        """Return the array with one axis."""
        return self.reshape(-1)

    # Indexing

    def __getitem__(self, key: Any) -> "DeviceArray":
        places, flipped = _places(key, self.device)
        found = self.tensor[places]
        return DeviceArray(found.flip(flipped) if flipped else found)

    def __setitem__(self, key: Any, value: Any) -> None:
        places, flipped = _places(key, self.device)
        if flipped:
            raise TypeError("Arrays on a device cannot be assigned to with negative steps.")
        value = unwrapped(value)
        if isinstance(value, np.ndarray) and value.ndim:
            value = from_host(value, self.device)
        if isinstance(value, torch.Tensor):
            value = value.to(self.tensor.dtype)
        elif isinstance(value, np.generic | np.ndarray):
            value = value.item()
        self.tensor[places] = value


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: DeviceArray, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, f"As of numpy's arrays: ``np.{name}``."
    return method


for _name in (
    "all", "any", "argmax", "argmin", "argsort", "cumsum", "dot", "max", "mean", "min", "nonzero",
    "repeat", "sum", "var",
):  # fmt: skip
    setattr(DeviceArray, _name, _method(_name))


# Indices ------------------------------------------------------------------------------------------


def _places(key: Any, device: Any) -> tuple[Any, list[int]]:
    """Return an index as torch takes it, and the axes to flip afterwards."""
    keys = key if isinstance(key, tuple) else (key,)
    flipped = [
        axis
        for axis, k in enumerate(keys)
        if isinstance(k, slice) and k.step is not None and int(k.step) < 0
    ]
    if not flipped:
        return tuple(_place(k, device) for k in keys), []
    if not all(isinstance(k, slice) for k in keys):
        raise TypeError("Slices with negative steps can only be combined with other slices.")
    if any(keys[axis] != slice(None, None, -1) for axis in flipped):
        raise TypeError("Of slices with negative steps only [::-1] is supported.")
    return tuple(slice(None) if i in flipped else k for i, k in enumerate(keys)), flipped


def _place(key: Any, device: Any) -> Any:
    if isinstance(key, DeviceArray):
        key = key.tensor
    elif isinstance(key, list) or (isinstance(key, np.ndarray) and key.ndim):
        key = from_host(np.asarray(key, np.intp) if not len(key) else key, device)
    elif isinstance(key, np.generic | np.ndarray):
        return key.item()
    elif isinstance(key, slice):
        ends = (key.start, key.stop, key.step)
        return slice(*(None if end is None else int(end) for end in ends))
    if isinstance(key, torch.Tensor) and key.dtype != torch.bool:
        return key.long()
    return key


# Tensors in and out ---------------------------------------------------------------------------


def unwrapped(value: Any) -> Any:
    """Return tensors for DeviceArrays, also in tuples and lists; anything else as it is."""
    if isinstance(value, DeviceArray):
        return value.tensor
    if type(value) in (tuple, list):
        return type(value)(unwrapped(part) for part in value)
    return value


def wrapped(value: Any) -> Any:
    """Return DeviceArrays for tensors, also in tuples and lists; anything else as it is."""
    if isinstance(value, torch.Tensor):
        return DeviceArray(value)
    if isinstance(value, tuple):  # torch's own kinds of tuples too
        return tuple(wrapped(part) for part in value)
    return [wrapped(part) for part in value] if type(value) is list else value


def _moved(value: Any, device: Any) -> Any:
    """Return tensors for DeviceArrays and for numpy arrays, those copied to a device."""
    if isinstance(value, DeviceArray):
        return value.tensor
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return from_host(value, device)
    if type(value) in (tuple, list):
        return type(value)(_moved(part, device) for part in value)
    if type(value) is dict:
        return {name: _moved(part, device) for name, part in value.items()}
    return value


# Sparse codes -------------------------------------------------------------------------------------


class DeviceCSR:
    """A matrix in compressed rows.

    Row s holds ``data[indptr[s]:indptr[s + 1]]`` in the columns ``indices`` of these places,
    ascending: ``indices`` are int32, ``indptr`` int64.
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
