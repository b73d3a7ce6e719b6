"""numpy's types and universal functions on tensors: which torch function does what, in which type.

numpy itself says in which types an operation runs (``ufunc.resolve_dtypes``), so that types of
results are numpy's: Python's numbers are weak, float32 with float64 is float64, integers divide to
float64. Operands are converted to these types before torch sees them.

See docs/decisions/008-device-arrays.md.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from kernelatoms.engine.gpu.arrays.linalg import matmul

_TORCH = {
    np.dtype(name): getattr(torch, name)
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")
}
_NUMPY = {theirs: ours for ours, theirs in _TORCH.items()}
# Few of torch's functions take these.
_INSTEAD = {np.dtype(np.uint16): torch.int32, np.dtype(np.uint32): torch.int64}
_WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
}


def torch_dtype(dtype: Any) -> Any:
    """Return torch's dtype for one of torch or numpy."""
    if isinstance(dtype, torch.dtype):
        return dtype
    dtype = np.dtype(dtype)
    found = _TORCH.get(dtype, _INSTEAD.get(dtype))
    if found is None:
        raise TypeError(f"There are no tensors of type {dtype} here; use float32 or float64.")
    return found


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return numpy's dtype for torch's."""
    found = _NUMPY.get(dtype)
    if found is None:
        raise TypeError(f"There are no arrays of type {dtype} here; use float32 or float64.")
    return found


def is_known(dtype: Any) -> bool:
    """Whether tensors of a torch dtype are supported, as they are or widened."""
    return dtype in _NUMPY or dtype in _WIDER


def widened(tensor: Any) -> Any:
    """Return a tensor of a supported dtype: 16-bit floats become float32."""
    return tensor.to(_WIDER.get(tensor.dtype, tensor.dtype))


def from_host(value: Any, device: Any) -> Any:
    """Return a tensor with the values of a numpy array, on a device."""
    array = np.asarray(value)
    wanted = torch_dtype(array.dtype)
    if array.dtype not in _TORCH:
        array = array.astype(numpy_dtype(wanted))
    # torch needs writable memory with positive strides.
    return torch.from_numpy(np.require(array, requirements=["C", "W"])).to(device)


# Universal functions ------------------------------------------------------------------------------


def ldexp(values: Any, exponents: Any) -> Any:
    """Return values times 2^exponents without a rounding on the way, unlike ``torch.ldexp``.

    That one computes 2^exponents in the values' type, where it may be no number while the result
    is one.
    """
    exponents = exponents.to(torch.int64)
    first = exponents.clamp(-1022, 1023)
    wide = values.to(torch.float64) * _power_of_two(first)
    return (wide * _power_of_two((exponents - first).clamp(-1022, 1023))).to(values.dtype)


def _power_of_two(exponents: Any) -> Any:
    """Return 2^exponents, from -1022 to 1023, as float64: the bits of its exponent."""
    return ((exponents + 1023) << 52).view(torch.float64)


def _sign(values: Any) -> Any:
    """Return the signs of numbers, NaN of NaN, for which torch says 0."""
    signs = torch.sign(values)
    return torch.where(values.isnan(), values, signs) if values.is_floating_point() else signs


def _vecdot(a: Any, b: Any) -> Any:
    return (a * b).sum(-1)


def _matvec(a: Any, b: Any) -> Any:
    return matmul(a, b[..., None])[..., 0]


# Those that write into ``out`` themselves: no copy.
_IN_PLACE: dict[np.ufunc, Callable[..., Any]] = {
    np.add: torch.add,
    np.subtract: torch.subtract,
    np.multiply: torch.multiply,
    np.true_divide: torch.true_divide,
    np.maximum: torch.maximum,
    np.minimum: torch.minimum,
    np.negative: torch.negative,
    np.absolute: torch.abs,
    np.square: torch.square,
    np.sqrt: torch.sqrt,
    np.exp: torch.exp,
    np.log: torch.log,
    np.tanh: torch.tanh,
    np.matmul: matmul,
}
_OTHERS: dict[np.ufunc, Callable[..., Any]] = {
    np.floor_divide: torch.floor_divide,
    np.power: torch.pow,
    np.sign: _sign,
    np.isfinite: torch.isfinite,
    np.isnan: torch.isnan,
    np.isinf: torch.isinf,
    np.equal: torch.eq,
    np.not_equal: torch.ne,
    np.less: torch.lt,
    np.less_equal: torch.le,
    np.greater: torch.gt,
    np.greater_equal: torch.ge,
    np.logical_not: torch.logical_not,
    np.bitwise_and: torch.bitwise_and,
    np.bitwise_or: torch.bitwise_or,
    np.bitwise_xor: torch.bitwise_xor,
    np.invert: torch.bitwise_not,
    np.ldexp: ldexp,
    np.frexp: torch.frexp,
    np.nextafter: torch.nextafter,
    np.vecdot: _vecdot,
    np.matvec: _matvec,
}
_ALL = _IN_PLACE | _OTHERS


@lru_cache(maxsize=1024)
def _types(ufunc: np.ufunc, given: tuple[Any, ...], dtype: Any) -> tuple[np.dtype[Any], ...]:
    """Return the types that a function takes and returns, given those of its operands."""
    kinds = (*given, *(None,) * ufunc.nout)
    if dtype is None:
        return ufunc.resolve_dtypes(kinds)
    asked = (*(None,) * ufunc.nin, *(dtype,) * ufunc.nout)
    return ufunc.resolve_dtypes(kinds, signature=asked)


def _kind(value: Any) -> Any:
    """Return an operand's type; of Python's own numbers the weak one."""
    if isinstance(value, torch.Tensor):
        return numpy_dtype(value.dtype)
    if type(value) in (int, float):
        return type(value)
    return np.asarray(value).dtype


def _operand(value: Any, dtype: np.dtype[Any], device: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(torch_dtype(dtype))
    if np.ndim(value) == 0:
        return torch.tensor(value, dtype=torch_dtype(dtype))  # on the host, for any device
    return from_host(value, device).to(torch_dtype(dtype))


def apply(
    ufunc: np.ufunc,
    operands: tuple[Any, ...],
    device: Any,
    out: tuple[Any, ...] | None = None,
    where: Any = True,
    dtype: Any = None,
) -> Any:
    """Return what a universal function gives, a tensor or a tuple of them.

    Parameters
    ----------
    ufunc : np.ufunc
        The function.
    operands : tuple
        Tensors, numbers and numpy arrays.
    device : torch.device
        Where the result is to be.
    out : tuple of tensors, optional
        Written and returned.
    where : bool or tensor of bool
        Where to write; ``out`` keeps what it has elsewhere.
    dtype : dtype, optional
        The type to compute in.
    """
    function = _ALL.get(ufunc)
    if function is None:
        raise TypeError(f"np.{ufunc.__name__} is not known of arrays on {device}.")
    types = _types(ufunc, tuple(map(_kind, operands)), None if dtype is None else np.dtype(dtype))
    tensors = [_operand(value, kind, device) for value, kind in zip(operands, types, strict=False)]
    target = None if out is None else out[0]
    if target is not None and where is True and _fits(ufunc, types, tensors, target):
        return function(*tensors, out=target)
    result = function(*tensors)
    if target is None:
        return result
    if where is not True:
        result = torch.where(_operand(where, np.dtype(bool), device), result, target)
    return target.copy_(result)


def _fits(ufunc: np.ufunc, types: tuple[Any, ...], tensors: list[Any], target: Any) -> bool:
    """Whether a function can write its result where it is to be."""
    if ufunc not in _IN_PLACE or torch_dtype(types[-1]) != target.dtype:
        return False
    if ufunc is np.matmul:
        return all(tensor.data_ptr() != target.data_ptr() for tensor in tensors)
    return torch.broadcast_shapes(*(tensor.shape for tensor in tensors)) == target.shape
