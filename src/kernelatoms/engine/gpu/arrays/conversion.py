"""Conversion of users' tensors to arrays of the engine, and back.

Tensors of the CPU become numpy arrays over the same memory, CUDA tensors become ``DeviceArray``s.
Results are tensors on the device of the input.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch

from kernelatoms.engine.gpu.arrays.csr import DeviceCSR, csr
from kernelatoms.engine.gpu.arrays.device_array import DeviceArray
from kernelatoms.engine.gpu.arrays.dtypes import from_host, is_known, widened

_WORKED_ON = ("cpu", "cuda")
_NO_DEVICE = "device must be 'cpu', 'cuda', 'cuda:1', ..., got {!r}."
_cpu_is_device = False


@contextmanager
def cpu_as_device() -> Iterator[None]:
    """Treat tensors of the CPU as those of a device, so that tests need no card."""
    global _cpu_is_device
    before, _cpu_is_device = _cpu_is_device, True
    try:
        yield
    finally:
        _cpu_is_device = before


@contextmanager
def undisturbed() -> Iterator[None]:
    """Switch off autocast, inference mode and the default device that a user may have set.

    A model that was fitted in inference mode can go on learning.
    """
    with ExitStack() as settings:
        if torch.is_inference_mode_enabled():
            settings.enter_context(torch.inference_mode(mode=False))
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                settings.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device().type != "cpu":
            settings.enter_context(torch.device("cpu"))
        yield


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of torch's."""
    return isinstance(value, torch.Tensor)


def is_on_device(tensor: Any) -> bool:
    """Whether a tensor becomes a ``DeviceArray``."""
    return _cpu_is_device or tensor.device.type != "cpu"


def place_of(value: Any) -> str | None:
    """Return the name of an array's device, or "cpu"; None of anything else."""
    if isinstance(value, torch.Tensor):
        return _name(value.device) if is_on_device(value) else "cpu"
    if isinstance(value, DeviceArray | DeviceCSR):
        return _name(value.device)
    return "cpu" if isinstance(value, np.ndarray) else None


def _name(device: Any) -> str:
    return "cpu as a device" if device.type == "cpu" else str(device)


def array_of(tensor: Any, name: str) -> Any:
    """Return the engine's array for a tensor: a numpy array, a DeviceArray, or sparse rows.

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
    _refuse_strange(tensor, name)
    if not is_on_device(tensor):
        return numpy_of(tensor, name)
    if tensor.layout != torch.strided:
        parts, shape = _sparse_parts(tensor, name)
        data, indices, indptr = (DeviceArray(widened(part)) for part in parts)
        return csr(data, indices, indptr, shape[1])
    return DeviceArray(widened(tensor).contiguous())


def _refuse_strange(tensor: Any, name: str) -> None:
    """Refuse tensors that neither machine supports."""
    if tensor.requires_grad:
        raise ValueError(
            f"{name} requires gradients, which do not go through codes: give {name}.detach()."
        )
    if tensor.device.type not in _WORKED_ON:
        raise ValueError(
            f"{name} is on {tensor.device}, and tensors must be on the CPU or on a CUDA device."
        )
    if tensor.is_complex():
        raise ValueError(f"Complex data not supported: {name} is a tensor of {tensor.dtype}.")
    if not is_known(tensor.dtype):
        raise ValueError(
            f"{name} is a tensor of {tensor.dtype}, which is not supported: give {name}.float(), "
            "times its scale where it has one."
        )
    if tensor.is_nested:
        raise ValueError(
            f"{name} is a nested tensor, and rows must be of one length: give "
            f"{name}.to_padded_tensor(0)."
        )


def numpy_of(tensor: Any, name: str) -> Any:
    """Return a tensor of the CPU as a numpy array over the same memory, sparse ones in parts."""
    if tensor.layout != torch.strided:
        parts, shape = _sparse_parts(tensor, name)
        return (*(widened(part).numpy() for part in parts), shape)
    return widened(tensor).resolve_conj().resolve_neg().numpy()


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
    """Return a tensor on a device for an array of either machine, without a copy if it is there."""
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
        raise ValueError(_NO_DEVICE.format(name)) from error
    if device.type not in _WORKED_ON:
        raise ValueError(_NO_DEVICE.format(name))
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
