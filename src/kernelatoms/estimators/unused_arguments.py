"""Arguments that others leave without use: refused, unless they are at their defaults."""

import functools
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

#: Methods of ``sparse_encode`` that minimise half of |x - D w|^2 plus alpha |w|_1.
L1_METHODS = ("lasso", "ksc", "fksc")
#: What ``method`` may be, of those that are more than a comparison.
METHODS = ("omp", "lasso", "ridge", "threshold")
#: Which methods of ``sparse_encode`` take which of its arguments; all others belong to any method.
TAKEN_BY = {
    "n_nonzero_coefs": ("omp",),
    "max_residual": ("omp",),
    "absolute": ("omp",),
    "selection": ("omp",),
    "candidates": METHODS,
    "alpha": (*L1_METHODS, "threshold"),
    "mu": ("ridge",),
    "positive": ("omp", "lasso", "threshold"),
    "gap_tol": L1_METHODS,
    "change_tol": ("ksc", "fksc"),
    "start": L1_METHODS,
    "energy": ("omp", *L1_METHODS),
    "return_gap": L1_METHODS,
}


def refuse_of_other_methods(method: str, takes: Any, given: Mapping[str, Any]) -> None:
    """Refuse arguments that another method of ``sparse_encode`` takes.

    Parameters
    ----------
    method : str
        The method that is asked for.
    takes : callable
        Whose arguments they are: their defaults are always allowed.
    given : mapping
        Arguments by name, all of them in ``TAKEN_BY``.
    """
    for name, value in given.items():
        if method not in TAKEN_BY[name] and not is_default(takes, name, value):
            takers = " or ".join(repr(taker) for taker in TAKEN_BY[name])
            raise ValueError(f"{name} belongs to method={takers}, not to {method!r}.")


def refuse_unused(takes: Any, given: Mapping[str, Any], why: str) -> None:
    """Refuse arguments that are not at their defaults.

    Parameters
    ----------
    takes : callable
        Whose arguments they are.
    given : mapping
        Arguments by name.
    why : str
        What they need, or which other argument leaves them without use.
    """
    for name, value in given.items():
        if not is_default(takes, name, value):
            default = _defaults(takes)[name].default
            raise ValueError(f"{name} {why}; leave it at its default, {default!r}.")


def is_default(takes: Any, name: str, value: Any) -> bool:
    """Whether an argument has its default value."""
    default = _defaults(takes)[name].default
    if value is None or default is None:
        return value is default
    if isinstance(value, np.floating):  # 0.01 of float32 is another number
        default = value.dtype.type(default)
    return bool(np.ndim(value) == 0 and value == default)


@functools.cache
def _defaults(takes: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(takes).parameters
