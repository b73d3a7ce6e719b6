"""Kernels of users: a function or an object, or precomputed kernel values."""

import copy
import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from kernelatoms.engine import Array, call_user
from kernelatoms.similarity.base import Kernel, attribute_of, check_values
from kernelatoms.similarity.gammas import check_gamma
from kernelatoms.similarity.gradients import Slopes


def _method_of_given(name: str) -> Any:
    """Return a method: that of the user's object, or the default of ``Kernel``."""

    def method(self: "UserKernel", *args: Any) -> Any:
        own = getattr(self.given, name, None)
        return getattr(Kernel, name)(self, *args) if own is None else own(*args)

    return method


@dataclass(frozen=True)
class UserKernel(Kernel):
    """A user's function or object, checked on every call.

    ``given`` is a function of two matrices, or an object with ``values`` or ``__call__`` and
    whatever else of ``Kernel`` it has; ``params`` are further arguments of a function.
    """

    given: Any
    params: Mapping[str, Any] = field(default_factory=dict)
    _own = True

    def values(self, X: Array, Y: Array) -> Array:
        """Return what the function or object returns."""
        function = getattr(self.given, "values", self.given)
        return call_user(function, X, Y, **self.params)

    def _diag(self, X: Array) -> Array:
        own = getattr(self.given, "diag", None)
        if own is None or getattr(own, "__func__", None) is Kernel.diag or X.ndim > 2:
            return super()._diag(X)
        who = f"its diag, called with shape {X.shape},"
        diagonal = check_values(call_user(own, X), (len(X),), who)
        return diagonal.astype(X.dtype, copy=False)

    def _who(self) -> str:
        if inspect.isroutine(self.given):
            return "a kernel given as a function"
        return f"kernel {self.name!r}"

    @property
    def name(self) -> str:
        """The name of the function or class."""
        if isinstance(self.given, Kernel):
            return self.given.name
        return getattr(self.given, "__name__", type(self.given).__name__)

    # The object's own attributes and methods, and the defaults of Kernel for others.

    semidefinite = attribute_of("given", "semidefinite", None)
    bounded = attribute_of("given", "bounded", False)
    non_negative = attribute_of("given", "non_negative", False)

    @property
    def has_gradient(self) -> bool:
        """Whether the object has ``slopes``."""
        return bool(getattr(self.given, "has_gradient", hasattr(self.given, "slopes")))

    def slopes(self, X: Array, Y: Array) -> Slopes:
        """Return what the object returns."""
        if not self.has_gradient:
            return super().slopes(X, Y)
        return Slopes(*self.given.slopes(X, Y))

    weighted_gradient = _method_of_given("weighted_gradient")
    inversion = _method_of_given("inversion")
    exact_preimage = _method_of_given("exact_preimage")
    what_gamma_multiplies = _method_of_given("what_gamma_multiplies")
    default_gamma = _method_of_given("default_gamma")
    scale_gamma = _method_of_given("scale_gamma")

    @property
    def takes_missing(self) -> bool:
        """Whether the object has ``values_from_parts``."""
        known = hasattr(self.given, "values_from_parts")
        return bool(getattr(self.given, "takes_missing", known))

    def values_from_parts(self, X: Array, Y: Array) -> Array:
        """Return what the object returns."""
        K = self.given.values_from_parts(X, Y)
        return check_values(K, (*X.shape[:-1], Y.shape[-2]), "its values_from_parts")

    def diag_from_parts(self, X: Array) -> Array:
        """Return what the object returns."""
        return check_values(self.given.diag_from_parts(X), X.shape[:-1], "its diag_from_parts")

    @property
    def gamma(self) -> float | str | None:
        """The object's gamma; AttributeError if it has none."""
        return self.given.gamma

    def with_gamma(self, gamma: float | str | None) -> Self:
        """Return the same kernel with another gamma; the user's object stays as it is."""
        check_gamma(gamma)
        other = copy.copy(self.given)
        object.__setattr__(other, "gamma", gamma)
        return dataclasses.replace(self, given=other)


@dataclass(frozen=True)
class PrecomputedKernel(Kernel):
    """Values given by the user: rows hold k(x, t) for training rows t, which Y (m, 1) numbers."""

    _own = True

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the columns of X that Y numbers."""
        self._incomplete(X)
        return X[:, Y[:, 0].astype(np.intp)]

    def diag(self, X: Array) -> Array:
        """Return the diagonal of a square kernel matrix."""
        if X.shape[0] != X.shape[1]:
            raise ValueError("k(x, x) of new rows is not known with kernel='precomputed'.")
        return np.diagonal(X).copy()

    @property
    def name(self) -> str:
        """Its name."""
        return "precomputed"

    def _who(self) -> str:
        return "a precomputed kernel"
