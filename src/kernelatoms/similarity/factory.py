"""The table of kernels by name; ``make_kernel``, which turns ``kernel=`` into a ``Kernel``; checks.

Names, parameters and defaults are scikit-learn's: ``kernel="poly", degree=4, gamma=1, coef0=0`` is
the (x'y)^4 of the LKDL paper.
"""

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelatoms.engine import Array, is_device_array
from kernelatoms.similarity import decaying, inner
from kernelatoms.similarity.base import Kernel, check_number, plain_number
from kernelatoms.similarity.distance_kernels import DistanceKernel
from kernelatoms.similarity.gammas import check_gamma
from kernelatoms.similarity.inner import NamedKernel
from kernelatoms.similarity.named_distances import DISTANCES, make_distance, parameters_of
from kernelatoms.similarity.user_kernels import PrecomputedKernel, UserKernel

KERNELS: dict[str, type[NamedKernel]] = {
    "additive_chi2": decaying.AdditiveChi2Kernel,
    "chi2": decaying.Chi2Kernel,
    "cosine": inner.CosineKernel,
    "laplacian": decaying.LaplacianKernel,
    "linear": inner.LinearKernel,
    "poly": inner.PolynomialKernel,
    "polynomial": inner.PolynomialKernel,
    "rbf": decaying.RBFKernel,
    "sigmoid": inner.SigmoidKernel,
}


def names_of_kernels(knows: str) -> tuple[str, ...]:
    """Return the names of the kernels for which a property, ``"has_gradient"`` say, is true."""
    return tuple(name for name, kind in KERNELS.items() if getattr(kind(), knows))


# How many rows a user's kernel is tried on at fit.
_TRIED = 8


def make_kernel(
    kernel: Any,
    *,
    gamma: float | str | None = None,
    degree: float = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
) -> Kernel:
    """Return a kernel, in whichever form it is given.

    Parameters
    ----------
    kernel : str, callable, object or class
        A name in ``KERNELS`` or "precomputed"; another name in ``DISTANCES``, for
        exp(-gamma d^power); a function ``k(X, Y)`` of two matrices; an object with
        ``values`` or ``__call__`` and, optionally, ``diag`` and the rest of ``Kernel``; or a class
        of such objects, then made with ``kernel_params``.
    gamma : float, "scale", "auto", "spread" or None
        For kernels by name, as far as they have it: a number above 0; None for the default of
        ``sklearn.metrics.pairwise``, which needs no rows (0.5 for distances); "scale" and "spread"
        are taken from rows, by ``with_gamma_from(X)``; "auto" for 1 / n_features. Estimators pass
        "scale" where they are given no other.
    degree, coef0 : float
        For kernels by name, as far as they have them.
    kernel_params : dict, optional
        Further arguments of a function, all those of a class, or those of a name: for that of a
        distance its ``power`` (2 by default) and the distance's own, such as ``image_shape``.

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
    gamma, degree, coef0 = (
        plain_number(name, value)
        for name, value in (("gamma", gamma), ("degree", degree), ("coef0", coef0))
    )
    check_gamma(gamma)
    check_number("degree", degree)
    check_number("coef0", coef0)
    if isinstance(kernel, str):
        if kernel == "precomputed":
            return PrecomputedKernel()
        if kernel in KERNELS:
            return _by_name(kernel, {"gamma": gamma, "degree": degree, "coef0": coef0}, extra)
        if kernel in DISTANCES:
            return _by_name_of_distance(kernel, gamma, extra)
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
    names = ", ".join(repr(name) for name in dict.fromkeys([*KERNELS, *DISTANCES]))
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
        raise ValueError(
            "kernel must be written as module:Class, or module:name of an object or function, got "
            f"{path!r}."
        )
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
    """Return the kernel's second argument for the rows of X: row numbers if precomputed."""
    if not isinstance(kernel, PrecomputedKernel):
        return X
    return np.arange(len(X), like=X)[:, None]


def check_machine(kernel: Kernel, X: Array) -> None:
    """Refuse a kernel that cannot be computed on the device of rows X."""
    if not is_device_array(X) or isinstance(kernel, NamedKernel | PrecomputedKernel | UserKernel):
        return
    names = ", ".join(repr(name) for name in KERNELS)
    raise ValueError(
        f"kernel {kernel.name} is computed on the CPU alone, and the data are on {X.device}: use "
        f"one of {names} or a function of tensors, or kernelatoms.to_device(..., 'cpu')."
    )


def check_kernel(kernel: Kernel, X: Array) -> None:
    """Try a user's kernel on a few complete rows; refuse one that contradicts itself."""
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


def check_gradient(kernel: Kernel) -> None:
    """Refuse a kernel without a gradient."""
    if kernel.has_gradient:
        return
    names = ", ".join(repr(name) for name in names_of_kernels("has_gradient"))
    raise ValueError(
        f"kernel must be one that atoms can move along, {names}, or an object with slopes; got "
        f"{kernel.why_no_gradient()}."
    )


def _by_name(name: str, given: dict[str, Any], extra: dict[str, Any]) -> Kernel:
    kind = KERNELS[name]
    known = [entry.name for entry in dataclasses.fields(kind)]  # type: ignore[arg-type]
    _refuse_unknown(extra, sorted(known), f"kernel {name!r}")
    return kind(**{key: value for key, value in given.items() if key in known} | extra)


def _by_name_of_distance(name: str, gamma: float | str | None, extra: dict[str, Any]) -> Kernel:
    known = sorted(["power", *parameters_of(name)])
    _refuse_unknown(extra, known, f"the kernel of distance {name!r}")
    power = extra.pop("power", 2)
    return DistanceKernel(make_distance(name, **extra), gamma, power)


def _refuse_unknown(extra: dict[str, Any], known: list[str], kernel: str) -> None:
    unknown = ", ".join(sorted(set(extra) - set(known)))
    if unknown:
        raise ValueError(
            f"kernel_params holds {unknown}, which {kernel} does not take; it takes "
            f"{', '.join(known) or 'none'}."
        )


def _usable(given: Any) -> bool:
    if isinstance(given, Mapping):
        return False  # its values are others
    called = callable(given)
    if isinstance(given, type):  # calling a class makes an object, calling that gives values
        called = any("__call__" in vars(kind) for kind in given.__mro__)
    return called or callable(getattr(given, "values", None))


def _from_object(given: Any, params: dict[str, Any]) -> Kernel:
    if isinstance(given, Kernel) and given._own:
        if params:
            raise ValueError(
                "kernel_params are for functions and classes: the kernel is an object."
            )
        return given
    return UserKernel(given, params)
