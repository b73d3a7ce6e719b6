"""Whether an object is a fitted model whose parts agree; asked before writing and after reading.

Estimators of the library check themselves (``_check_state``); those of scikit-learn follow the
rules of their type (``sklearn_types``).
"""

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from kernelatoms.features.projections import PROJECTIONS
from kernelatoms.files.models.sklearn_containers import require_fitted
from kernelatoms.files.models.sklearn_types import RULES, check_estimator
from kernelatoms.similarity import OWN_TYPES

# Numbers in the state of MT19937; a position beyond them is read from other memory.
_MT19937_SIZE = 624


def forget_machine(model: Any) -> None:
    """Set ``n_jobs`` and ``memory``, which the reader did not choose, to None in all estimators."""
    for held in _all_held(model):
        if isinstance(held, BaseEstimator):
            vars(held).update(dict.fromkeys(vars(held).keys() & {"n_jobs", "memory"}))


def check_model(model: Any, *, reading: bool = False, trusted: Collection[str] = ()) -> None:
    """Refuse what is no fitted estimator, or has parts that contradict each other.

    ``reading``: it is from a file; ``trusted``: types whose attributes the user accepts unchecked.
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"it holds an object of type {type(model).__name__}, and no estimator")
    everything = list(_all_held(model))
    for held in everything:
        if isinstance(held, np.random.RandomState):
            state: Any = held.get_state(legacy=False)
            inside = 0 <= state["state"]["pos"] <= _MT19937_SIZE
            if state["bit_generator"] != "MT19937" or not inside:
                raise ValueError("it holds a RandomState that no seed leads to")
        elif isinstance(held, (*OWN_TYPES, *PROJECTIONS.values())):
            type(held)(**vars(held))  # constructed again, it checks its parameters
    for held in everything:  # these use their kernels to answer
        if isinstance(held, BaseEstimator):
            _check_estimator(held, reading, trusted)
    require_fitted(model)


def _check_estimator(estimator: Any, reading: bool, trusted: Collection[str]) -> None:
    kind = type(estimator)
    for name in vars(estimator):
        # An attribute in the place of a method would be called instead of it.
        if callable(getattr(kind, name, None)) or isinstance(getattr(kind, name, None), property):
            raise ValueError(f"{kind.__name__}.{name} is a value in the place of a method")
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name in RULES and name not in trusted:
        check_estimator(estimator, reading=reading)
    if hasattr(kind, "_check_state"):
        estimator.get_params(deep=False)  # none may be missing
        # One that is not fitted is a pattern for others, such as the dictionary of a classifier.
        if any(name.endswith("_") for name in vars(estimator)):
            estimator._check_state()


def _all_held(model: Any) -> Iterator[Any]:
    """Yield a model and all that it holds, each object once."""
    seen: dict[int, Any] = {}  # keeps objects alive, so that no two have one number
    todo = [model]
    while todo:
        held = todo.pop()
        if id(held) in seen:
            continue
        seen[id(held)] = held
        yield held
        if isinstance(held, dict):
            todo += [*held, *held.values()]
        elif isinstance(held, list | tuple | set | frozenset):
            todo += held
        elif isinstance(held, np.ndarray):
            todo += held.ravel().tolist() if held.dtype.hasobject else []
        elif not isinstance(held, type) and hasattr(held, "__dict__"):
            todo += vars(held).values()
