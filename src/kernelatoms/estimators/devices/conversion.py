"""Users' arrays as the engine's, and back; models on other devices (``to_device``).

Users have numpy arrays, sparse arrays of scipy and tensors of torch; the engine works on numpy
arrays, and on ``DeviceArray``s for tensors of other devices than the CPU. A model is an estimator
with its attributes, other estimators and states of learning among them, in lists and tuples or not.
"""

import copy
import dataclasses
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator

from kernelatoms.coding.codes import as_csr
from kernelatoms.engine import is_device_array, to_numpy
from kernelatoms.learning.state import LearnerState


def torch_side() -> Any:
    """Return what knows torch; only called when torch is there already."""
    from kernelatoms.engine.gpu.arrays import conversion

    return conversion


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor; without torch nothing is."""
    return isinstance(value, getattr(sys.modules.get("torch"), "Tensor", ()))


def place_of(value: Any) -> str | None:
    """Return where an array is: "cpu", or the name of a device; None of anything else."""
    if isinstance(value, np.ndarray):
        return "cpu"
    if is_tensor(value) or is_device_array(value):
        place: str | None = torch_side().place_of(value)
        return place
    return None


def enter(value: Any, name: str = "") -> Any:
    """Return the engine's array for a tensor; anything else as it is.

    A tensor of one number is a number, but in fitted attributes (``name_``).
    """
    if not is_tensor(value):
        return value
    array = _as_scipy(torch_side().array_of(value, name))
    return array.item() if is_number(value, name) else array


def leave(value: Any, device: Any) -> Any:
    """Return an answer, or a fitted attribute, with tensors on a device for its arrays."""
    return converted(value, lambda array: torch_side().tensor_of(array, device))


def all_to_numpy(value: Any) -> Any:
    """Return an answer, or what was learned, with numpy arrays for those of a device."""
    if is_device_array(value):
        if not hasattr(value, "indptr"):
            return to_numpy(value)
        data, indices, indptr = map(to_numpy, (value.data, value.indices, value.indptr))
        return as_csr(data, indices, indptr, value.shape[1])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(all_to_numpy(part) for part in value))
    return rebuilt(value, lambda array, _: all_to_numpy(array))


def to_machine(value: Any, like: Any) -> Any:
    """Return an array of a model as the engine works on it where ``like`` is."""
    value = enter(value, "_")
    if not is_device_array(like) or is_device_array(value):
        return value
    numbers = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    if not numbers and not scipy.sparse.issparse(value):
        return value
    return enter(leave(value, like.device).to(like.device), "_")


def is_number(tensor: Any, name: str) -> bool:
    """Whether a tensor is one number of torch's, given for one of Python's."""
    return not tensor.ndim and name != "" and not name.endswith("_")


def as_numpy(tensor: Any, name: str) -> Any:
    """Return the numbers of a tensor on the CPU: a number, a numpy array, sparse rows."""
    if is_number(tensor, name):
        return tensor.item()
    return _as_scipy(torch_side().numpy_of(tensor.detach().cpu(), name))


def _as_scipy(array: Any) -> Any:
    """Return sparse rows of the CPU, which come in parts, as scipy's."""
    if not isinstance(array, tuple):
        return array
    *parts, shape = array
    return scipy.sparse.csr_array(tuple(parts), shape=shape)


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a model is made of, by name: attributes, fields, entries."""
    if isinstance(value, BaseEstimator):
        attributes = vars(value).items()
        yield from ((f".{name}", part) for name, part in attributes if name != "_fitted_states")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((f".{field.name}", getattr(value, field.name, None))
                    for field in dataclasses.fields(value))  # fmt: skip
    elif type(value) in (list, tuple):
        yield from ((f"[{i}]", part) for i, part in enumerate(value))
    elif type(value) is dict:
        yield from ((f"[{name!r}]", part) for name, part in value.items())


def matrices(path: str, model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of rows that a model is made of, and where they stand in it.

    Those of one side (labels, objectives, numbers of rows) may be anywhere.
    """
    if isinstance(model, np.ndarray) or is_tensor(model):
        if model.ndim > 1:
            yield path, model
        return
    for name, part in parts(model):
        yield from matrices(path + name, part)


def holds_tensor(model: Any) -> bool:
    """Whether any array of a model is a tensor."""
    return any(is_tensor(part) or holds_tensor(part) for _, part in parts(model))


def converted(value: Any, make: Callable[[Any], Any]) -> Any:
    """Return an answer, or a fitted attribute, with tensors for its arrays."""
    if scipy.sparse.issparse(value):
        rows = value.tocsr()
        return torch_side().sparse_tensor(rows.indptr, rows.indices, rows.data, rows.shape)
    if is_device_array(value):
        return make(value)
    if isinstance(value, np.ndarray):
        return make(value) if value.dtype.kind in "biuf" else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(converted(part, make) for part in value))
    return rebuilt(value, lambda array, _: converted(array, make))


def rebuilt(value: Any, make: Callable[[Any, str], Any]) -> Any:
    """Return a model with ``make(array, name)`` for every array; what has none stays as it is.

    Estimators and states that have some are copied, shallowly, and so what holds them.
    """
    changed = {}
    for name, part in parts(value):
        new = make(part, name[1:]) if is_leaf(part) else rebuilt(part, make)
        if new is not part:
            changed[name] = new
    if not changed:
        return value
    if type(value) in (list, tuple):
        return type(value)(changed.get(f"[{i}]", part) for i, part in enumerate(value))
    if type(value) is dict:
        return {name: changed.get(f"[{name!r}]", part) for name, part in value.items()}
    # Learning goes on in a state itself: a copy of it goes on by itself.
    other: Any = value.copy() if isinstance(value, LearnerState) else copy.copy(value)
    for name, part in changed.items():
        object.__setattr__(other, name[1:], part)
    return other


def is_leaf(value: Any) -> bool:
    """Whether a value is an array of any kind."""
    return (
        isinstance(value, np.ndarray)
        or is_device_array(value)
        or scipy.sparse.issparse(value)
        or is_tensor(value)
    )


def to_device(model_or_array: Any, device: Any) -> Any:
    """Return a copy of a model, or an array, whose numbers are on another device.

    Parameters
    ----------
    model_or_array : estimator, or array or tensor of shape (...)
        What is to be used there: a model, fitted or not, a pipeline, rows.
    device : str or torch.device
        "cpu" for numpy arrays; "cuda", "cuda:1" and the like for tensors there.

    Returns
    -------
    estimator, array or tensor
        The same with its arrays on the device. Labels (``classes_``) stay as they are on the way to
        a device, and are numpy's on the way back.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import KSVD, to_device
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> ksvd = KSVD(n_atoms=16, random_state=0).fit(X)
    >>> again = to_device(ksvd, "cpu")  # to_device(ksvd, "cuda") for tensors there
    >>> type(again.components_).__name__, again is ksvd
    ('ndarray', False)
    """
    if device == "cpu" or getattr(device, "type", None) == "cpu":
        return moved(model_or_array, lambda v, name: as_numpy(v, name) if is_tensor(v) else v)
    try:
        known = torch_side()
    except ImportError as error:
        raise ImportError(
            f"device is {device!r}, and tensors need torch: pip install kernelatoms[gpu]."
        ) from error
    there = known.as_device(device)

    def to_tensor(value: Any, name: str) -> Any:
        if name == "classes_":
            return value
        if is_tensor(value):
            return value.to(there)
        made = converted(value, lambda array: known.tensor_of(array, there))
        return made.to(there) if is_tensor(made) else made

    return moved(model_or_array, to_tensor)


def moved(value: Any, move: Callable[[Any, str], Any]) -> Any:
    """Return a model with ``move(array, name)`` for its arrays, a copy; or that of an array."""
    if is_leaf(value):
        return move(value, "")
    if not isinstance(value, BaseEstimator):
        raise TypeError(
            "model_or_array must be an estimator, an array or a tensor, got "
            f"{type(value).__name__}."
        )
    other = rebuilt(value, move)
    return copy.copy(value) if other is value else other


def on_cpu(model: Any) -> Any:
    """Return a model whose arrays are numpy's: itself, if they are."""
    return to_device(model, "cpu") if holds_tensor(model) else model
