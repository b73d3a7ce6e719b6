"""Kernels: functions k(X, Y) that give every inner product of rows in some feature space.

The contract is two methods: ``kernel(X, Y) -> (n, m)`` and ``kernel.diag(X) -> (n,)``. The names
and their parameters are scikit-learn's; ``kernel="poly", degree=4, gamma=1, coef0=0`` is the
(x'y)^4 of the LKDL paper. Under most names X, but never Y, may hold missing values (NaN): k(x, y)
is then an estimate, see ``missing``.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import KERNEL_PARAMS, pairwise_kernels

from kernelatoms.similarity.missing import (
    can_miss,
    partial_diagonal,
    partial_kernel,
    refuse_missing,
    rows_with_missing,
)

Array = NDArray[Any]

# k(x, x) is known without computing it: on the rows of these kernels it is 1 (0 where cosine
# meets a zero row, which is why cosine is not here).
_UNIT_DIAGONAL = {"rbf", "laplacian", "chi2"}


class Kernel(Protocol):
    """Inner products in a feature space."""

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all rows x of X and y of Y."""

    def diag(self, X: Array) -> Array:
        """Return k(x, x) for all rows of X."""


@dataclass(frozen=True)
class NamedKernel:
    """One of scikit-learn's kernels.

    Rows of X with missing values are compared by what is observed of them: an estimate. Only the
    chi-squared kernels refuse NaN.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = make_kernel("poly", degree=2, gamma=1, coef0=0)
    >>> kernel(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0], [0.0, 1.0]]))
    array([[25.,  4.]])
    >>> kernel(np.array([[1.0, np.nan]]), np.array([[3.0, 1.0], [0.0, 1.0]]))
    array([[20.,  0.]])
    """

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all rows x of X and y of Y; estimates where x has missing values."""
        incomplete = self._incomplete(X)
        if not len(incomplete):
            K = pairwise_kernels(X, Y, metric=self.name, **self.params)
            return K.astype(X.dtype, copy=False)
        K = np.empty((len(X), len(Y)), X.dtype)
        K[incomplete] = partial_kernel(self.name, self.params, X[incomplete], Y)
        if len(incomplete) < len(X):
            complete = np.delete(np.arange(len(X)), incomplete)
            K[complete] = self(X[complete], Y)
        return K

    def diag(self, X: Array) -> Array:
        """Return k(x, x) for all rows of X; estimates where x has missing values."""
        incomplete = self._incomplete(X)
        if len(incomplete):
            out = np.empty(len(X), X.dtype)
            out[incomplete] = partial_diagonal(self.name, self.params, X[incomplete])
            complete = np.delete(np.arange(len(X)), incomplete)
            out[complete] = self.diag(X[complete])
            return out
        if self.name in _UNIT_DIAGONAL:
            return np.ones(len(X), X.dtype)
        if self.name == "linear":
            return np.vecdot(X, X)
        return _diagonal_by_blocks(self, X)

    def _incomplete(self, X: Array) -> NDArray[np.intp]:
        """Return the rows that hold NaN, if any may."""
        if not can_miss(self.name):
            refuse_missing(X, f"kernel {self.name!r}")
        return rows_with_missing(X)


@dataclass(frozen=True)
class CallableKernel:
    """A user's function of two matrices, checked on every call."""

    function: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all rows x of X and y of Y."""
        refuse_missing(X, "a kernel given as a function")
        K = np.asarray(self.function(X, Y, **self.params))
        if K.shape != (len(X), len(Y)):
            raise ValueError(
                "kernel must be a function of two matrices: called with shapes "
                f"{X.shape} and {Y.shape} it should return shape {(len(X), len(Y))}, "
                f"but it returned {K.shape}."
            )
        if K.dtype.kind not in "fiub":
            raise ValueError(f"kernel must return real numbers, but it returned {K.dtype}.")
        if not np.isfinite(K).all():
            raise ValueError("kernel returned NaN or infinity; it must be finite on finite rows.")
        return K.astype(X.dtype, copy=False)

    def diag(self, X: Array) -> Array:
        """Return k(x, x) for all rows of X."""
        return _diagonal_by_blocks(self, X)


@dataclass(frozen=True)
class PrecomputedKernel:
    """Kernel values given by the user: a row of "X" holds k(x, t) for all training rows t.

    Training rows are then known by number only, so Y is a column of row numbers, shape (m, 1).
    k(x, x) of new rows is unknown.
    """

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the columns of X that Y numbers."""
        refuse_missing(X, "a precomputed kernel")
        return X[:, Y[:, 0].astype(np.intp)]

    def diag(self, X: Array) -> Array:
        """Return the diagonal of a square kernel matrix."""
        if X.shape[0] != X.shape[1]:
            raise ValueError("k(x, x) of new rows is not known with kernel='precomputed'.")
        return np.diagonal(X).copy()


def make_kernel(
    kernel: str | Callable[..., Any],
    *,
    gamma: float | None = None,
    degree: float = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
) -> Kernel:
    """Return the kernel of this name, function or ``"precomputed"``, its parameters bound.

    Of ``gamma``, ``degree`` and ``coef0`` a named kernel receives those it knows; a callable
    receives ``kernel_params`` alone.
    """
    if kernel_params is not None and not isinstance(kernel_params, Mapping):
        raise TypeError(f"kernel_params must be a dictionary, got {kernel_params!r}.")
    extra = dict(kernel_params or {})
    if isinstance(kernel, type):
        try:
            return CallableKernel(kernel(**extra))
        except TypeError as error:
            raise TypeError(
                f"kernel is the class {kernel.__name__}, which cannot be made with "
                f"kernel_params={extra!r}: {error}."
            ) from error
    if callable(kernel):
        return CallableKernel(kernel, extra)
    if isinstance(kernel, str) and kernel == "precomputed":
        return PrecomputedKernel()
    if not isinstance(kernel, str) or kernel not in KERNEL_PARAMS:
        names = ", ".join(sorted(repr(name) for name in KERNEL_PARAMS))
        raise ValueError(
            f"kernel must be one of {names}, 'precomputed' or a function of two matrices, "
            f"got {kernel!r}."
        )
    known = KERNEL_PARAMS[kernel]
    given = {"gamma": gamma, "degree": degree, "coef0": coef0}
    params = {name: value for name, value in given.items() if name in known and value is not None}
    unknown = sorted(set(extra) - set(known))
    if unknown:
        raise ValueError(
            f"kernel_params holds {', '.join(unknown)}, which kernel {kernel!r} does not take; "
            f"it takes {', '.join(sorted(known)) or 'none'}."
        )
    params |= extra
    for name in given.keys() & params.keys():
        value: Any = params[name]
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not np.isfinite(float(value)):
            raise ValueError(f"{name} must be a finite number, got {value!r}.")
        if name == "gamma" and not float(value) > 0:
            raise ValueError(f"gamma must be above 0, got {value!r}.")
    return NamedKernel(kernel, params)


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
    if not callable(found):
        raise ValueError(
            f"kernel={path!r} must be a function of two matrices, or a class or object with "
            f"__call__(X, Y), got {found!r}."
        )
    return found


def as_anchors(X: Array, kernel: Kernel) -> Array:
    """Return what stands for the rows of X as a kernel's second argument."""
    return np.arange(len(X))[:, None] if isinstance(kernel, PrecomputedKernel) else X


def _diagonal_by_blocks(kernel: Kernel, X: Array) -> Array:
    """Read k(x, x) off small square blocks: the matrix form is all that a kernel must have."""
    blocks = [np.diagonal(kernel(X[i : i + 64], X[i : i + 64])) for i in range(0, len(X), 64)]
    return np.concatenate(blocks) if blocks else np.empty(0, X.dtype)
