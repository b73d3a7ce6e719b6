"""``to_device``: a model, or an array, on another device."""

import copy
from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator

from kernelatoms.estimators.devices.conversion import (
    as_numpy,
    converted,
    holds_tensor,
    is_leaf,
    is_tensor,
    rebuilt,
    torch_side,
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
        The same model, its arrays on the device: what rows of that device can be given to. Labels
        (``classes_``) stay as they are on the way to a device, and are numpy's on the way back.

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
        return moved(model_or_array, _to_numpy)
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


def _to_numpy(value: Any, name: str) -> Any:
    return as_numpy(value, name) if is_tensor(value) else value


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
    if not holds_tensor(model):
        return model
    return to_device(model, "cpu")
