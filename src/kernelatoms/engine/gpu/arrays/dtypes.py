"""dtypes of numpy and torch, and host values as tensors."""

from typing import Any

import numpy as np
import torch

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


def scalar(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a number as a 0-d tensor on the host, an operand for tensors of any device."""
    return torch.tensor(value, dtype=torch_dtype(dtype))
