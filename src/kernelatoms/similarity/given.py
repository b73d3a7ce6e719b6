"""Kernels that users bring: a function, an object, a class; and kernel values given as they are.

``make_kernel`` turns whatever ``kernel=`` may be into a ``Kernel``.
"""

import copy
import dataclasses
import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelatoms.similarity.base import Kernel, check_gamma, check_number, check_values
from kernelatoms.similarity.distances import DistanceKernel
from kernelatoms.similarity.gradients import Slopes
from kernelatoms.similarity.named import KERNELS, NamedKernel

Array = NDArray[Any]

# How many rows a user's kernel is tried on at fit.
_TRIED = 8


@dataclass(frozen=True)
class UserKernel(Kernel):
    """A user's function or object, checked on every call.

    Parameters
    ----------
    given : callable or object
        A function of two matrices, or an object with ``values`` or ``__call__`` and whatever else
        of ``Kernel`` it has: ``diag``, ``slopes``, ``values_from_parts``, ``semidefinite``, ...
    params : mapping
        Further arguments of a function.
    """

    given: Any
    params: Mapping[str, Any] = field(default_factory=dict)

    def values(self, X: Array, Y: Array) -> Array:
        """Return what the function or object returns."""
        function = getattr(self.given, "values", self.given)
        return function(X, Y, **self.params)

    def _diag(self, X: Array) -> Array:
        own = getattr(self.given, "diag", None)
        if own is None or getattr(own, "__func__", None) is Kernel.diag or X.ndim > 2:
            return super()._diag(X)
        diagonal = check_values(own(X), (len(X),), f"its diag, called with shape {X.shape},")
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

    # What the object knows of itself, and the defaults of Kernel for what it does not say.

    @property
    def semidefinite(self) -> bool | None:  # type: ignore[override]
        """What the object says; None if it does not."""
        return getattr(self.given, "semidefinite", None)

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """What the object says; False if it does not."""
        return bool(getattr(self.given, "bounded", False))

    @property
    def non_negative(self) -> bool:  # type: ignore[override]
        """What the object says; False if it does not."""
        return bool(getattr(self.given, "non_negative", False))

    @property
    def has_gradient(self) -> bool:
        """Whether the object has ``slopes``."""
        return bool(getattr(self.given, "has_gradient", hasattr(self.given, "slopes")))

    def slopes(self, X: Array, Y: Array) -> Slopes:
        """Return what the object returns."""
        if not self.has_gradient:
            return super().slopes(X, Y)
        return Slopes(*self.given.slopes(X, Y))

    def weighted_gradient(
        self, weights: Any, X: Array, Y: Array, slopes: Slopes | None = None
    ) -> Array:
        """Return what the object returns, else the sums that follow from its slopes."""
        own = getattr(self.given, "weighted_gradient", super().weighted_gradient)
        return own(weights, X, Y, slopes)

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

    def inversion(self, n_features: int) -> Any:
        """Return what the object returns; None if it has no such method."""
        own = getattr(self.given, "inversion", None)
        return None if own is None else own(n_features)

    def exact_preimage(self, weights: Any, rows: Array) -> Array | None:
        """Return what the object returns; None if it has no such method."""
        own = getattr(self.given, "exact_preimage", None)
        return None if own is None else own(weights, rows)

    @property
    def gamma(self) -> float | str | None:
        """The object's gamma; AttributeError if it has none."""
        return self.given.gamma

    def default_gamma(self, n_features: int) -> float:
        """Return the object's, else 1 / n_features."""
        own = getattr(self.given, "default_gamma", super().default_gamma)
        return float(own(n_features))

    def what_gamma_multiplies(self, X: Array, Y: Array) -> Array | None:
        """Return what the object returns; None if it has no such method."""
        own = getattr(self.given, "what_gamma_multiplies", super().what_gamma_multiplies)
        return own(X, Y)

    def with_gamma(self, gamma: float | str | None) -> Self:
        """Return the same kernel with another gamma; the user's object stays as it is."""
        check_gamma(gamma)
        other = copy.copy(self.given)
        object.__setattr__(other, "gamma", gamma)
        return dataclasses.replace(self, given=other)


@dataclass(frozen=True)
class PrecomputedKernel(Kernel):
    """Kernel values given by the user: a row of "X" holds k(x, t) for all training rows t.

    Training rows are then known by number only, so Y is a column of row numbers, shape (m, 1).
    k(x, x) of new rows is unknown.
    """

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


def make_kernel(
    kernel: Any,
    *,
    gamma: float | str | None = None,
    degree: float = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
) -> Kernel:
    """Return a kernel, whatever way it is given.

    Parameters
    ----------
    kernel : str, callable, object or class
        A name in ``KERNELS`` or "precomputed"; a function ``k(X, Y)`` of two matrices; an object
        with ``values`` or ``__call__`` and, optionally, ``diag`` and the rest of ``Kernel``; or a
        class of such objects, then made with ``kernel_params``.
    gamma : float, "scale", "auto" or None
        For kernels by name, as far as they have it: a number above 0, None for the kernel's
        default, "scale" for 1 / (n_features * X.var()), "auto" for 1 / n_features.
    degree, coef0 : float
        For kernels by name, as far as they have them.
    kernel_params : dict, optional
        Further arguments of a function, all those of a class, or those of a name.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import make_kernel
    >>> kernel = make_kernel("poly", degree=2, gamma=1, coef0=0)
    >>> kernel(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0], [0.0, 1.0]]))
    array([[25.,  4.]])
    """
    if kernel_params is not None and not isinstance(kernel_params, Mapping):
        raise TypeError(f"kernel_params must be a dictionary, got {kernel_params!r}.")
    extra = dict(kernel_params or {})
    check_gamma(gamma)
    check_number("degree", degree)
    check_number("coef0", coef0)
    if isinstance(kernel, str):
        if kernel == "precomputed":
            return PrecomputedKernel()
        if kernel in KERNELS:
            return _by_name(kernel, {"gamma": gamma, "degree": degree, "coef0": coef0}, extra)
    if isinstance(kernel, type) and _usable(kernel):
        try:
            return _from_object(kernel(**extra), {})
        except TypeError as error:
            raise TypeError(
                f"kernel is the class {kernel.__name__}, which cannot be made with "
                f"kernel_params={extra!r}: {error}."
            ) from error
    if not isinstance(kernel, type | str) and _usable(kernel):
        return _from_object(kernel, extra)
    names = ", ".join(repr(name) for name in KERNELS)
    raise ValueError(
        f"kernel must be one of {names}, 'precomputed', a function of two matrices, or an object "
        f"or class with values(X, Y) (see kernelatoms.similarity.Kernel), got {kernel!r}."
    )


def kernel_from_path(path: str) -> Any:
    """Return what a text such as ``"package.module:Class"`` names, to be given as ``kernel=``.

    Parameters
    ----------
    path : str
        An importable module and, after a colon, a class, object or function in it. Importing
        runs the module's code: for paths that the user typed, not for those in a file.

    Returns
    -------
    class, object or function

    Examples
    --------
    >>> from kernelatoms.similarity import kernel_from_path
    >>> kernel_from_path("sklearn.gaussian_process.kernels:RationalQuadratic").__name__
    'RationalQuadratic'
    """
    module, _, name = path.partition(":")
    if not module or not name.isidentifier():
        raise ValueError(f"kernel must be written as module:Class, got {path!r}.")
    try:
        found = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise ValueError(
            f"kernel={path!r}: the module {module!r} cannot be imported ({error}). Install it, or "
            "put its folder on PYTHONPATH."
        ) from error
    except AttributeError:
        raise ValueError(f"kernel={path!r}: the module {module!r} has no {name!r}.") from None
    if not _usable(found):
        raise ValueError(
            f"kernel={path!r} must be a function of two matrices, or a class or object with "
            f"values(X, Y) or __call__(X, Y), got {found!r}."
        )
    return found


def is_precomputed(kernel: Any) -> bool:
    """Whether ``kernel=`` means kernel values instead of rows."""
    return isinstance(kernel, PrecomputedKernel) or (
        isinstance(kernel, str) and kernel == "precomputed"
    )


def as_anchors(X: Array, kernel: Kernel) -> Array:
    """Return what stands for the rows of X as a kernel's second argument."""
    return np.arange(len(X))[:, None] if isinstance(kernel, PrecomputedKernel) else X


def check_kernel(kernel: Kernel, X: Array) -> None:
    """Try a kernel that is not the library's on a few rows; refuse one that contradicts itself.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array of shape (n, n_features)
        Complete rows.
    """
    if isinstance(kernel, NamedKernel | PrecomputedKernel):
        return
    rows = X[:: max(1, len(X) // _TRIED)][:_TRIED].astype(np.float64)
    K, diagonal = kernel(rows, rows), kernel.diag(rows)
    size = 1e-6 * max(float(np.abs(K).max(initial=0)), float(np.abs(diagonal).max(initial=0)))
    wrong = np.flatnonzero(np.abs(np.diagonal(K) - diagonal) > size)
    if len(wrong):
        says, is_really = diagonal[wrong[0]], K[wrong[0], wrong[0]]
        raise ValueError(
            f"kernel {kernel.name} contradicts itself: its diag gives k(x, x) = {says:.6g} for a "
            f"row where its values give {is_really:.6g}."
        )
    if (np.abs(K - K.T) > size).any():
        raise ValueError(f"kernel {kernel.name} is not symmetric: k(x, y) must be k(y, x).")


def names_of_kernels(knows: str) -> tuple[str, ...]:
    """Return the names of the kernels for which a property, ``"has_gradient"`` say, is true."""
    return tuple(name for name, kind in KERNELS.items() if getattr(kind(), knows))


def check_gradient(kernel: Kernel) -> None:
    """Refuse a kernel that has no gradient to follow."""
    if kernel.has_gradient:
        return
    names = ", ".join(repr(name) for name in names_of_kernels("has_gradient"))
    if kernel.non_negative:
        why = f"got {kernel.name!r}, which knows no negative values, and a step may lead there"
    else:
        why = f"got {kernel.name!r}, whose gradient is not known"
    raise ValueError(
        f"kernel must be one that atoms can move along, {names}, or an object with slopes; {why}."
    )


def _by_name(name: str, given: dict[str, Any], extra: dict[str, Any]) -> Kernel:
    kind = KERNELS[name]
    known = [entry.name for entry in dataclasses.fields(kind)]  # type: ignore[arg-type]
    unknown = sorted(set(extra) - set(known))
    if unknown:
        raise ValueError(
            f"kernel_params holds {', '.join(unknown)}, which kernel {name!r} does not take; "
            f"it takes {', '.join(sorted(known)) or 'none'}."
        )
    return kind(**{key: value for key, value in given.items() if key in known} | extra)


def _usable(given: Any) -> bool:
    if isinstance(given, Mapping):
        return False  # its values are others
    called = callable(given)
    if isinstance(given, type):  # calling a class makes an object, calling that gives values
        called = any("__call__" in vars(kind) for kind in given.__mro__)
    return called or callable(getattr(given, "values", None))


def _from_object(given: Any, params: dict[str, Any]) -> Kernel:
    if isinstance(given, NamedKernel | PrecomputedKernel | UserKernel | DistanceKernel):
        if params:
            raise ValueError(
                "kernel_params are for functions and classes: the kernel is an object."
            )
        return given
    return UserKernel(given, params)
