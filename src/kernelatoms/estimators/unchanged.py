"""A ``fit`` begins with nothing learned before, and ends with a whole model or the old one."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from kernelatoms.space.remembered import forget

Method = TypeVar("Method", bound=Callable[..., Any])


def or_unchanged(method: Method) -> Method:
    """Take back what a method has set when it ends early: bad data, no memory, Ctrl-C.

    Without that, a model could have atoms of the last fit and the number of features of this one.
    For the same reason ``fit`` begins without the fitted attributes of the last one, unless it is
    to go on from them; and nothing is remembered that was computed of these.
    """

    @functools.wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        if "state_" in before:  # the one attribute that learning changes in place
            before["state_"] = before["state_"].copy()
        forget(self)
        try:
            if begins_anew(self, method):
                for name in fitted_names(self):
                    del vars(self)[name]
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return whole  # type: ignore[return-value]


def begins_anew(estimator: Any, method: Callable[..., Any]) -> bool:
    """Whether a method learns from nothing: ``fit``, without warm starts."""
    learner = getattr(estimator, "dictionary", None)
    warm = any(getattr(model, "warm_start", False) for model in (estimator, learner))
    return method.__name__ == "fit" and not warm


def fitted_names(estimator: Any) -> list[str]:
    """Return the names of the fitted attributes that an estimator has."""
    return [name for name in vars(estimator) if name.endswith("_")]
