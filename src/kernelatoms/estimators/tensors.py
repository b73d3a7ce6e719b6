"""Tensors at the door: estimators take torch's and give them back, on the same device.

Inside, everything is an array that speaks numpy: numpy's own for tensors of the CPU, over the same
memory, and ``DeviceArray``s for those elsewhere. A method runs on a *view* of its estimator, a
shallow copy whose tensors are such arrays; what ``fit`` sets is copied back as tensors, and
nothing else changes the estimator. Without a tensor among arguments and attributes a method is
called as it is, and torch is never imported; but for numpy rows that the user wants on a device
(``streaming``).
"""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.base import BaseEstimator
from sklearn.utils._set_output import _get_output_config

from kernelatoms.engine import lives_elsewhere, on_host
from kernelatoms.estimators.device_choice import chosen_device, on_the_cpu
from kernelatoms.estimators.devices import to_device
from kernelatoms.estimators.model_arrays import (
    as_array,
    converted,
    gate,
    holds_tensor,
    is_number,
    is_tensor,
    matrices,
    rebuilt,
)
from kernelatoms.estimators.streaming import DeviceCall
from kernelatoms.estimators.unchanged import begins_anew, fitted_names

Method = TypeVar("Method", bound=Callable[..., Any])

# Methods that set attributes; all others leave an estimator as it is.
_LEARNING = ("fit", "partial_fit", "renew", "change_coordinates")
# Arguments of one entry a row or so: they are brought to where X is.
_MOVED = ("y", "sample_weight", "max_residual", "energy", "candidates", "start", "alphas")


def takes_tensors(method: Method) -> Method:
    """Let a method, or a function, take tensors where it takes arrays.

    Its first argument that is no model, in the order of its signature, says where the work is done
    and what the answer is: a numpy array for a numpy array, a tensor of the same device for a
    tensor. Numbers of 16 bits (float16, bfloat16) are worked on in float32, and the answer is of
    float32.
    """

    @functools.wraps(method)
    def either(*args: Any, **kwargs: Any) -> Any:
        device = chosen_device()
        if device is None and "torch" not in sys.modules:
            return method(*args, **kwargs)
        given = _by_name(method, args, kwargs)
        if given is None:
            return method(*args, **kwargs)
        owner = given.pop("self", None)
        name, main = _main(given)
        known = [owner, *(value for value in given.values() if isinstance(value, BaseEstimator))]
        if lives_elsewhere(main):
            return method(*args, **kwargs)
        if any(is_tensor(value) for value in given.values()) or any(map(holds_tensor, known)):
            return _Crossing(method, owner, given).run()
        if device is None:
            return method(*args, **kwargs)
        call = DeviceCall(method, owner, given, name, device)
        if call.is_for_later():
            return method(*args, **kwargs)
        if call.is_possible():
            return call.run()
        with on_the_cpu():
            return method(*args, **kwargs)

    either.takes_tensors = True  # type: ignore[attr-defined]
    return either  # type: ignore[return-value]


def cpu_alone(method: Method) -> Method:
    """Let a method, or a function, of the CPU take tensors that are there, and models of them.

    What it returns is numpy's. Tensors elsewhere are refused.
    """

    @functools.wraps(method)
    def here(*args: Any, **kwargs: Any) -> Any:
        if "torch" not in sys.modules:
            return method(*args, **kwargs)
        given = _by_name(method, args, kwargs)
        if given is None:
            return method(*args, **kwargs)
        owner = f"{type(given['self']).__name__}." if "self" in given else ""
        what = owner + method.__name__
        inside = {name: _here(what, name, value) for name, value in given.items()}
        first = [inside.pop("self")] if "self" in inside else []
        return method(*first, **inside)

    return here  # type: ignore[return-value]


def _here(what: str, name: str, value: Any) -> Any:
    """Return an argument as the CPU takes it: numpy arrays for tensors, also in models."""
    if is_tensor(value):
        _check_is_here(what, name, value)
        return as_array(value, name)
    if not isinstance(value, BaseEstimator) or not holds_tensor(value):
        return value
    for path, array in matrices(type(value).__name__ if name == "self" else name, value):
        _check_is_here(what, path, array)
    # What learns is to learn itself; tensors among its parameters are looked at as arrays.
    return value if what.endswith(_LEARNING) else _view(value)


def _check_is_here(what: str, name: str, array: Any) -> None:
    place = gate().place_of(array)
    if place != "cpu":
        raise ValueError(
            f"{what} works on the CPU alone, and {name} is on {place}: kernelatoms.to_device(..., "
            "'cpu') brings models and arrays there."
        )


@functools.cache
def _signature(method: Any) -> inspect.Signature:
    return inspect.signature(method)


def _by_name(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Return arguments by name, in the order of the signature, however they were given.

    None where they do not fit it: the method itself says what is wrong.
    """
    try:
        bound = _signature(method).bind(*args, **kwargs)
    except TypeError:
        return None
    given: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        more = _signature(method).parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        given.update(value if more else {name: value})
    return given


def _main(given: dict[str, Any]) -> tuple[str, Any]:
    """Return the argument that the others follow, and its name."""
    arrays = (pair for pair in given.items() if not isinstance(pair[1], BaseEstimator))
    return next(arrays, ("X", None))


class _Crossing:
    """One call: what comes in, the view that it runs on, what goes out."""

    def __init__(self, method: Any, owner: Any, given: dict[str, Any]) -> None:
        self.method, self.owner, self.given = method, owner, given
        self.main: Any
        self.name, self.main = _main(given)
        self.place = gate().place_of(self.main) or "cpu"
        self.learns = owner is not None and method.__name__ in _LEARNING
        if owner is not None and not hasattr(type(owner).fit, "takes_tensors"):
            _check_is_here(type(owner).__name__, self.name, self.main)
        self._check_form()

    def run(self) -> Any:
        """Run the method on views and return its answer."""
        with gate().undisturbed():
            return self._run()

    def _run(self) -> Any:
        given = {name: self._inside(name, value) for name, value in self.given.items()}
        if self.owner is None:
            return self._outside(self.method(**given))
        forgotten = self._forgotten()
        self._check_places(type(self.owner).__name__, self.owner, forgotten)
        view = _view(self.owner, forgotten)
        answer = self.method(view, **given)
        if self.learns:
            self._keep(view)
        return self.owner if answer is view else self._outside(answer)

    def _check_form(self) -> None:
        if not is_tensor(self.main):
            return
        if self.main.ndim > 2:
            raise ValueError(
                f"{self.name} must have rows and columns, and is of shape "
                f"{tuple(self.main.shape)}: rows are signals, so give {self.name}.flatten(0, -2)."
            )
        if self.method.__name__ != "transform":
            return
        if _get_output_config("transform", self.owner)["dense"] != "default":
            raise ValueError(
                "set_output asks for data frames, which hold no tensors: give numpy arrays, or "
                'set_output(transform="default").'
            )

    # In

    def _inside(self, name: str, value: Any) -> Any:
        """Return an argument as it is inside."""
        if isinstance(value, BaseEstimator):
            self._check_places(name, value, frozenset())
            return _view(value)
        if name in ("y", "sample_weight"):
            return to_device(value, "cpu") if is_tensor(value) else value
        if is_tensor(value) and is_number(value, name):
            return as_array(value, name)
        if name not in _MOVED:
            self._check_place(name, value)
        elif is_tensor(value) and gate().place_of(value) != self.place:
            value = value.to(self.main.device) if is_tensor(self.main) else value.cpu()
        return as_array(value, name)

    def _check_place(self, name: str, value: Any) -> None:
        place = gate().place_of(value)
        if place is not None and place != self.place:
            raise ValueError(
                f"{self.name} is on {self.place} and {name} on {place}, and they must be on one "
                "device: kernelatoms.to_device(..., device) brings a model or an array there "
                "('cpu' for numpy arrays)."
            )

    def _check_places(self, path: str, model: Any, forgotten: frozenset[str]) -> None:
        for name, value in matrices(path, model, forgotten):
            self._check_place(name, value)

    def _forgotten(self) -> frozenset[str]:
        """Return the fitted attributes that ``fit`` begins without."""
        return frozenset(fitted_names(self.owner) if begins_anew(self.owner, self.method) else ())

    # Out

    def _outside(self, value: Any) -> Any:
        """Return an answer in the form of the first argument."""
        if not is_tensor(self.main):
            return value
        device = self.main.device
        return converted(value, lambda array: gate().tensor_of(array, device))

    def _keep(self, view: Any) -> None:
        """Give the estimator what the view has learned."""
        before, after = vars(self.owner), vars(view)
        y: Any = self.given.get("y")
        for name in fitted_names(self.owner):
            del before[name]
        for name in fitted_names(view):
            value = after[name]
            if name != "classes_":
                before[name] = self._outside(value)
            elif is_tensor(y):
                before[name] = gate().tensor_of(value, y.device)
            else:
                before[name] = value


def _view(model: Any, forgotten: frozenset[str] = frozenset()) -> Any:
    """Return an estimator that shares all with another but its tensors, which are arrays."""
    view = rebuilt(model, as_array, stands_for=lambda original: original)
    for name in forgotten:
        vars(view).pop(name, None)
    classes = vars(view).get("classes_")
    if lives_elsewhere(classes):
        view.classes_ = on_host(classes)
    return view
