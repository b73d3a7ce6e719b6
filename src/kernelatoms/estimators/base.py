"""``Estimator``: what all estimators share: one fitted state.

``fit`` sets public attributes. What later calls need beside them (Gram matrices, factors, an index
of neighbours) is one private object, the *fitted state*: made of the public attributes on first
use, kept in ``_fitted_states``, one for each device where the estimator is used. Assigning a public
attribute drops it, and so do ``fit``, copies and pickles. Editing fitted arrays in place is
undefined, as in scikit-learn.

See docs/decisions/043-fitted-state.md.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

from kernelatoms.estimators.devices.conversion import place_of, to_machine
from kernelatoms.estimators.devices.use_device import note_use

#: Brings a fitted attribute to where the fitted state is: an array of numpy, or of a device.
Bring = Callable[[Any], Any]

Class = TypeVar("Class", bound=type)


class Estimator(BaseEstimator):
    """Keeps a fitted state for each device where it is used.

    Subclasses make it (``_make_fitted``), of immutable parts and parts that are computed once.
    """

    #: Whether methods take rows of a device; else they take those of the CPU alone.
    _on_devices = False

    def _fitted(self, X: Any = None) -> Any:
        """Return the fitted state where the rows X are; where the CPU's are without them."""
        place = place_of(X) or "cpu"
        states = self.__dict__.setdefault("_fitted_states", {})
        if place not in states:
            if place != "cpu":
                note_use(self)
            states[place] = self._make_fitted(lambda array: to_machine(array, X))
        return states[place]

    def _make_fitted(self, bring: Bring) -> Any:
        """Return the fitted state, ``bring(self.attribute_)`` for the arrays that it is made of."""
        raise NotImplementedError

    def _keep_fitted(self, state: Any, X: Any) -> None:
        """Keep the fitted state that ``fit`` has made already, where the rows X are."""
        place = place_of(X) or "cpu"
        self.__dict__["_fitted_states"] = {place: state}
        if place != "cpu":
            note_use(self)

    def _leave_devices(self) -> None:
        """Keep the fitted state of the CPU alone."""
        states = vars(self).get("_fitted_states", {})
        for place in [place for place in states if place != "cpu"]:
            del states[place]

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            self.__dict__.pop("_fitted_states", None)
        super().__setattr__(name, value)

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_fitted_states"}


def unnamed(cls: Class) -> Class:
    """Have errors of Python name a base class's methods without their class.

    ``KSVD(atoms=3)`` would be an error of ``LinearLearner.__init__()``, which nobody has called.
    """
    for member in list(vars(cls).values()):
        while hasattr(member, "__qualname__") and hasattr(member, "__code__"):
            member.__qualname__ = member.__name__
            member = getattr(member, "__wrapped__", None)
    return cls
