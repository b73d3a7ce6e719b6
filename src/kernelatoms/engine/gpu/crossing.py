"""How users' tensors come in and go out.

Tensors of the CPU are worked on by the CPU's machine, as numpy arrays over the same memory; those
elsewhere (CUDA) by this one, as ``DeviceArray``s. Both come back as what they were.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from kernelatoms.engine.gpu.arrays import DeviceArray
from kernelatoms.engine.gpu.csr import DeviceCSR, csr
from kernelatoms.engine.gpu.dtypes import from_host

_cpu_is_elsewhere = False


@contextmanager
def cpu_as_device() -> Iterator[None]:
    """Count tensors of the CPU among those elsewhere: tests of this machine need no card."""
    global _cpu_is_elsewhere
    before, _cpu_is_elsewhere = _cpu_is_elsewhere, True
    try:
        yield
    finally:
        _cpu_is_elsewhere = before


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of torch's."""
    return isinstance(value, torch.Tensor)


def is_elsewhere(tensor: Any) -> bool:
    """Whether a tensor is for this machine to work on."""
    return _cpu_is_elsewhere or tensor.device.type != "cpu"


def place_of(value: Any) -> str | None:
    """Return where an array's numbers are: "cpu", or the name of a device; None of no array."""
    if isinstance(value, torch.Tensor):
        return _name(value.device) if is_elsewhere(value) else "cpu"
    if isinstance(value, DeviceArray | DeviceCSR):
        return _name(value.device)
    return "cpu" if isinstance(value, np.ndarray) else None


def _name(device: Any) -> str:
    return "cpu as a device" if device.type == "cpu" else str(device)


def array_of(tensor: Any, name: str) -> Any:
    """Return what stands for a tensor inside: a numpy array, a DeviceArray, or sparse rows.

    Parameters
    ----------
    tensor : torch.Tensor
        Of any type; numbers of 16 bits become float32.
    name : str
        What errors call it.

    Returns
    -------
    numpy array, DeviceArray, DeviceCSR, or (data, indices, indptr, shape)
        The last of sparse tensors of the CPU: numpy arrays for scipy to put together.
    """
    if tensor.requires_grad:
        raise ValueError(
            f"{name} requires gradients, which do not go through codes: give {name}.detach()."
        )
    if not is_elsewhere(tensor):
        return numpy_of(tensor, name)
    if tensor.layout != torch.strided:
        parts, shape = _sparse_parts(tensor, name)
        data, indices, indptr = (DeviceArray(_in_numpy_type(part)) for part in parts)
        return csr(data, indices, indptr, shape[1])
    if tensor.is_complex():
        raise ValueError(f"Complex data not supported: {name} is a tensor of {tensor.dtype}.")
    return DeviceArray(_in_numpy_type(tensor).contiguous())


def numpy_of(tensor: Any, name: str) -> Any:
    """Return a tensor of the CPU as a numpy array over the same memory, sparse ones in parts."""
    if tensor.layout != torch.strided:
        parts, shape = _sparse_parts(tensor, name)
        return (*(_in_numpy_type(part).numpy() for part in parts), shape)
    return _in_numpy_type(tensor).resolve_conj().resolve_neg().numpy()


def _in_numpy_type(tensor: Any) -> Any:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _sparse_parts(tensor: Any, name: str) -> tuple[list[Any], tuple[int, ...]]:
    """Return numbers, their columns, where rows begin, and the shape."""
    if tensor.ndim != 2 or tensor.layout not in (torch.sparse_csr, torch.sparse_coo):
        raise ValueError(
            f"{name} must be a dense tensor, or one of layout torch.sparse_csr, got "
            f"{tensor.layout} of shape {tuple(tensor.shape)}."
        )
    rows = tensor.to_sparse_csr()
    return [rows.values(), rows.col_indices(), rows.crow_indices()], tuple(rows.shape)


def tensor_of(array: Any, device: Any) -> Any:
    """Return the tensor that goes out for an array of either machine, on a device.

    Nothing is copied that is there already.
    """
    if isinstance(array, DeviceArray):
        return array.tensor.to(device)
    if isinstance(array, DeviceCSR):
        indptr, indices = array.indptr.tensor, array.indices.tensor
        return sparse_tensor(indptr, indices, array.data.tensor, array.shape).to(device)
    return from_host(array, device)


def sparse_tensor(indptr: Any, indices: Any, data: Any, shape: tuple[int, ...]) -> Any:
    """Return a tensor in compressed rows, of tensors or numpy arrays of one machine."""
    indptr, indices, data = (
        part if isinstance(part, torch.Tensor) else from_host(part, "cpu")
        for part in (indptr, indices, data)
    )
    # Indices of one type are all that torch takes: those that its own functions make.
    return torch.sparse_csr_tensor(indptr.long(), indices.long(), data, size=shape)


def as_device(name: Any) -> Any:
    """Return a device by its name, or refuse one that is not there."""
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"device must be 'cpu', 'cuda', 'cuda:1', ..., got {name!r}.") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device is {str(device)!r}, and torch finds no CUDA here: it needs an NVIDIA card, "
            "its driver, and a torch built for CUDA."
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device is {str(device)!r}, and there are {torch.cuda.device_count()} CUDA devices."
        )
    return device
