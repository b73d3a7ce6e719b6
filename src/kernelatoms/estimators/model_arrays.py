"""The arrays that models are made of: found, and replaced by others, wherever they stand.

A model is an estimator with its attributes, other estimators and states of learning among them, in
lists and tuples or not. Arrays are numpy's, a device's, scipy's sparse ones, and tensors.
"""

import copy
import dataclasses
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator

from kernelatoms.engine import lives_elsewhere
from kernelatoms.learning.state import LearnerState


def gate() -> Any:
    """Return what knows torch; only called when torch is there already."""
    from kernelatoms.engine.gpu import crossing

    return crossing


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor; without torch nothing is."""
    return isinstance(value, getattr(sys.modules.get("torch"), "Tensor", ()))


def as_array(value: Any, name: str) -> Any:
    """Return what stands for a tensor inside; anything else as it is."""
    if not is_tensor(value):
        return value
    array = as_scipy(gate().array_of(value, name))
    return value.item() if is_number(value, name) else array


def is_number(tensor: Any, name: str) -> bool:
    """Whether a tensor is one number of torch's, given for one of Python's."""
    return not tensor.ndim and name != "" and not name.endswith("_")


def as_scipy(array: Any) -> Any:
    """Return sparse rows of the CPU, which come in parts, as scipy's."""
    if not isinstance(array, tuple):
        return array
    *parts, shape = array
    return scipy.sparse.csr_array(tuple(parts), shape=shape)


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a model is made of, by name: attributes, fields, entries."""
    if isinstance(value, BaseEstimator):
        attributes = vars(value).items()
        yield from ((f".{name}", part) for name, part in attributes if name != "_stands_for")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((f".{field.name}", getattr(value, field.name, None))
                    for field in dataclasses.fields(value))  # fmt: skip
    elif type(value) in (list, tuple):
        yield from ((f"[{i}]", part) for i, part in enumerate(value))
    elif type(value) is dict:
        yield from ((f"[{name!r}]", part) for name, part in value.items())


def matrices(
    path: str, model: Any, forgotten: frozenset[str] = frozenset()
) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of rows that a model is made of, and where they stand in it.

    Those of one side (labels, objectives, numbers of rows) may be anywhere.
    """
    if isinstance(model, np.ndarray) or is_tensor(model):
        if model.ndim > 1:
            yield path, model
        return
    for name, part in parts(model):
        if name[1:] not in forgotten:
            yield from matrices(path + name, part)


def holds_tensor(model: Any) -> bool:
    """Whether any array of a model is a tensor."""
    return any(is_tensor(part) or holds_tensor(part) for _, part in parts(model))


def converted(value: Any, make: Callable[[Any], Any]) -> Any:
    """Return an answer, or a fitted attribute, with tensors for its arrays."""
    if scipy.sparse.issparse(value):
        rows = value.tocsr()
        return gate().sparse_tensor(rows.indptr, rows.indices, rows.data, rows.shape)
    if lives_elsewhere(value):
        return make(value)
    if isinstance(value, np.ndarray):
        return make(value) if value.dtype.kind in "biuf" else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(converted(part, make) for part in value))
    return rebuilt(value, lambda array, _: converted(array, make))


def rebuilt(
    value: Any,
    make: Callable[[Any, str], Any],
    *,
    stands_for: Callable[[Any], Any] | None = None,
) -> Any:
    """Return a model with ``make(array, name)`` for every array; what has none stays as it is.

    Estimators and states that have some are copied, shallowly, and so what holds them. The copies
    are views where ``stands_for(estimator)`` says whom they stand for (``space.atoms.remember``).
    """
    changed = {}
    for name, part in parts(value):
        leaf = is_leaf(part)
        new = make(part, name[1:]) if leaf else rebuilt(part, make, stands_for=stands_for)
        if new is not part:
            changed[name] = new
    estimator = isinstance(value, BaseEstimator)
    if not changed and not (estimator and (stands_for or "_stands_for" in vars(value))):
        return value
    if type(value) in (list, tuple):
        return type(value)(changed.get(f"[{i}]", part) for i, part in enumerate(value))
    if type(value) is dict:
        return {name: changed.get(f"[{name!r}]", part) for name, part in value.items()}
    # Learning goes on in a state itself: a copy of it goes on by itself.
    other: Any = value.copy() if isinstance(value, LearnerState) else copy.copy(value)
    for name, part in changed.items():
        object.__setattr__(other, name[1:], part)
    if estimator:
        original = vars(other).pop("_stands_for", value)
        if stands_for:
            other._stands_for = stands_for(original)
    return other


def is_leaf(value: Any) -> bool:
    """Whether a value is an array of any kind."""
    return (
        isinstance(value, np.ndarray)
        or lives_elsewhere(value)
        or scipy.sparse.issparse(value)
        or is_tensor(value)
    )
