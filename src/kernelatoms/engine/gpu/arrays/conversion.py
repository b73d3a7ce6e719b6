"""Conversion of tensors to arrays of the engine, and back.

Users' tensors of the CPU become numpy arrays over the same memory, CUDA tensors become
``DeviceArray``s. Results are tensors on the device of the input. ``on_tensors`` makes functions of
arrays of functions of tensors.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch

from kernelatoms.engine.gpu.arrays.device_array import (
    DeviceArray,
    DeviceCSR,
    csr,
    unwrapped,
    wrapped,
)
from kernelatoms.engine.gpu.arrays.ufuncs import from_host, is_known, widened
from kernelatoms.engine.gpu.arrays.work import on_card

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


def is_on_device(tensor: Any) -> bool:
    """Whether a tensor becomes a ``DeviceArray``."""
    return _cpu_is_device or tensor.device.type != "cpu"


def place_of(value: Any) -> str | None:
    """Return the name of an array's device, or "cpu"; None of anything else."""
    if isinstance(value, np.ndarray) or (
        isinstance(value, torch.Tensor) and not is_on_device(value)
    ):
        return "cpu"
    if not isinstance(value, torch.Tensor) and not isinstance(value, DeviceArray | DeviceCSR):
        return None
    return "cpu as a device" if value.device.type == "cpu" else str(value.device)


def array_of(tensor: Any, name: str) -> Any:
    """Return the engine's array for a tensor, which errors call ``name``; 16 bits become float32.

    Of sparse tensors of the CPU these are (data, indices, indptr, shape), for scipy.
    """
    _refuse_strange(tensor, name)
    if not is_on_device(tensor):
        return numpy_of(tensor, name)
    if tensor.layout != torch.strided:
        parts, shape = _sparse_parts(tensor, name)
        data, indices, indptr = (DeviceArray(widened(part)) for part in parts)
        return csr(data, indices, indptr, shape[1])
    return DeviceArray(widened(tensor).contiguous())


def array_from(rows: Any, name: str) -> Any:
    """Return the engine's array for a tensor, or for an array that DLPack takes: CuPy's."""
    tensor = rows if isinstance(rows, torch.Tensor) else torch.from_dlpack(rows)
    return array_of(tensor, name)


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


def to_numpy(array: DeviceArray) -> Any:
    """Return a copy of an array as a numpy array; waits for the device."""
    return array.tensor.cpu().numpy()


def call_user(function: Callable[..., Any], *arrays: DeviceArray, **options: Any) -> DeviceArray:
    """Call a user's function of tensors; refuse one that cannot take them, or returns no tensor."""
    device = arrays[0].device
    name = getattr(function, "__name__", type(function).__name__)
    try:
        found = function(*unwrapped(arrays), **options)
    except TypeError as error:
        raise TypeError(
            f"{name} was called with tensors on {device}, and raised: {error}. Give a function of "
            "tensors, or bring data and model to the CPU by kernelatoms.to_device(..., 'cpu')."
        ) from error
    if not isinstance(found, torch.Tensor) or found.device != device:
        raise TypeError(
            f"{name} was called with tensors on {device} and must return one there, not "
            f"{type(found).__name__}."
        )
    return DeviceArray(widened(found.detach()))


def on_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of tensors take and return DeviceArrays.

    Callables among its arguments are functions of DeviceArrays: they get these, and their results
    are passed on as tensors.
    """

    @functools.wraps(function)
    def outside(*args: Any, **kwargs: Any) -> Any:
        with torch.no_grad(), _device_of((*args, *kwargs.values())):
            return wrapped(
                function(
                    *(_given(value) for value in args),
                    **{name: _given(value) for name, value in kwargs.items()},
                )
            )

    return outside


def _device_of(values: tuple[Any, ...]) -> Any:
    """Return a context in which kernels are launched on the card of the first array, if on one."""
    for value in values:
        first = value[0] if type(value) is tuple and value else value
        if isinstance(first, DeviceArray):
            return on_card(first.device)
    return nullcontext()


def _given(value: Any) -> Any:
    if not callable(value) or isinstance(value, type):
        return unwrapped(value)

    def inside(*args: Any) -> Any:
        return unwrapped(value(*(wrapped(arg) for arg in args)))

    return inside
