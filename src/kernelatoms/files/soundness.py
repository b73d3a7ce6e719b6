"""Whether something is a fitted model, and all that it holds fits together.

Asked before a model is written and after one is read. An estimator of the library answers for
itself (``_check_state``); what scikit-learn and numpy would take from a file without a look is
looked at here.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kernelatoms.similarity import OWN_TYPES
from kernelatoms.space.projections import PROJECTIONS

# Numbers in the state of MT19937; a position beyond them is read from other memory.
_MT19937_SIZE = 624


def check_model(model: Any) -> None:
    """Refuse what is no fitted estimator, or one whose parts contradict each other.

    Parameters
    ----------
    model : object
        Whatever a file held.

    Raises
    ------
    TypeError, ValueError, AttributeError
        In words that name the attribute at fault, as far as it is known.
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"it holds an object of type {type(model).__name__}, and no estimator")
    check_is_fitted(model)
    everything = list(_all_held(model))
    for held in everything:
        if isinstance(held, np.random.RandomState):
            _check_random_state(held)
        elif isinstance(held, (*OWN_TYPES, *PROJECTIONS.values())):
            _check_choice(held)
    for held in everything:  # these use their kernels to answer
        if isinstance(held, BaseEstimator):
            _check_estimator(held)


def _check_estimator(estimator: Any) -> None:
    kind = type(estimator)
    for name in vars(estimator):
        # An attribute in the place of a method would be called instead of it.
        if callable(getattr(kind, name, None)) or isinstance(getattr(kind, name, None), property):
            raise ValueError(f"{kind.__name__}.{name} is a value in the place of a method")
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps:
            if hasattr(step, "_check_state"):
                check_is_fitted(step)
    if hasattr(kind, "_check_state"):
        estimator.get_params(deep=False)  # none may be missing
        # One that is not fitted is a pattern for others, such as the dictionary of a classifier.
        if any(name.endswith("_") for name in vars(estimator)):
            estimator._check_state()


def _check_choice(choice: Any) -> None:
    """Make a kernel, distance or projection anew: that checks its parameters; reading does not."""
    type(choice)(**vars(choice))


def _check_random_state(random_state: np.random.RandomState) -> None:
    state: Any = random_state.get_state(legacy=False)
    if state["bit_generator"] != "MT19937" or not 0 <= state["state"]["pos"] <= _MT19937_SIZE:
        raise ValueError("it holds a RandomState that no seed leads to")


def _all_held(model: Any) -> Iterator[Any]:
    """Return a model and all that it holds, each object once."""
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
