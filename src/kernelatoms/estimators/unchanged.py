"""A ``fit`` that fails leaves the estimator as it was: the old model, or none."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def or_unchanged(method: Method) -> Method:
    """Take back what a method has set when it ends early: bad data, no memory, Ctrl-C.

    Without that, a model could have atoms of the last fit and the number of features of this one.
    """

    @functools.wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        if "state_" in before:  # the one attribute that learning changes in place
            before["state_"] = before["state_"].copy()
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return whole  # type: ignore[return-value]
