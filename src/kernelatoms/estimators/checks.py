"""Checks of arguments: each names the argument, what was wrong and what would be right."""

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

Array = NDArray[Any]

FLOATS = [np.float64, np.float32]


def check_count(name: str, value: Any) -> int:
    """Return a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}.")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}.")
    return int(value)


def check_real(
    name: str, value: Any, *, low: float, high: float = np.inf, low_open: bool = False
) -> float:
    """Return a number between two bounds, the lower one in or out."""
    span = f"{'above' if low_open else 'at least'} {low:g}"
    if high < np.inf:
        span += f" and at most {high:g}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number {span}, got {value!r}.")
    number = float(value)
    if not (low < number if low_open else low <= number) or not number <= high:
        raise ValueError(f"{name} must be {span}, got {value}.")
    return number


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return one of the given words."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {words}, got {value!r}.")
    return value


def clip_count(name: str, value: int, limit: int, reason: str, then: str = "") -> int:
    """Return the value or the limit, whichever is smaller, and warn if it was the limit."""
    if value <= limit:
        return value
    warnings.warn(
        f"{name}={value} is more than {reason} ({limit}); {then or f'{limit} is used'}.",
        UserWarning,
        stacklevel=3,
    )
    return limit


def check_dictionary(name: str, value: Any, n_features: int, dtype: Any) -> Array:
    """Return a finite matrix of atoms over these features, C-ordered and of this dtype."""
    atoms = check_array(value, dtype=dtype, order="C", input_name=name)
    if atoms.shape[1] != n_features:
        raise ValueError(
            f"{name} must have one column per feature: {n_features}, but its shape is "
            f"{atoms.shape}."
        )
    return atoms
