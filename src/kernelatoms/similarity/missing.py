"""Kernels of rows with missing values (NaN), from what is observed: estimates.

With O the observed entries of x, of n, norms and distances to complete rows y are scaled up from
what O shows of them, and the angle between x and y is taken for that between x_O and y_O:

    |x|^2 ~ (n / |O|) |x_O|^2,   <x, y> ~ |x| |y| <x_O, y_O> / (|x_O| |y_O|),
    |x - y|^p ~ (n / |O|) sum_O |x_i - y_i|^p

The kernel is applied to these. The sum (n / |O|) <x_O, y_O> would be right on average over sets O
of one size, but it is far more scattered: it leaves out what is known of y. It would also give
homogeneous kernels no more than zeros in place of missing values do, up to a factor.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import manhattan_distances

Array = NDArray[Any]

_INNER = ("linear", "poly", "polynomial", "sigmoid")
# The kernels that can be estimated.
PARTIAL_KERNELS = (*_INNER, "rbf", "laplacian", "cosine")


def can_miss(kernel: Any) -> bool:
    """Whether this is the name of a kernel that takes rows with missing values."""
    return isinstance(kernel, str) and kernel in PARTIAL_KERNELS


def rows_with_missing(X: Array) -> NDArray[np.intp]:
    """Return the numbers of the rows that hold NaN."""
    # A sum is faster than a look at every value, and NaN gets through it.
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isnan(np.sum(X)):
            return np.empty(0, np.intp)
    return np.flatnonzero(np.isnan(X).any(axis=1))


def refuse_missing(X: Array, kernel: str) -> None:
    """Refuse NaN where a kernel has no use for a part of a row."""
    if len(rows_with_missing(X)):
        raise ValueError(
            f"X contains NaN, but {kernel} needs complete rows: impute the missing values, or use "
            f"one of the kernels {', '.join(repr(name) for name in PARTIAL_KERNELS)}."
        )


def partial_kernel(name: str, params: Mapping[str, Any], X: Array, Y: Array) -> Array:
    """Estimate k(x, y) for rows x with missing values and complete rows y.

    Parameters
    ----------
    name : one of PARTIAL_KERNELS
        The kernel.
    params : mapping
        Its gamma, degree and coef0, as far as it has them.
    X : array of shape (n, n_features)
        Rows, NaN where a value is missing, each with at least one value.
    Y : array of shape (m, n_features)
        Complete rows.

    Returns
    -------
    array of shape (n, m)
        As precise as X.
    """
    if not np.isfinite(Y).all():
        raise ValueError("The rows that X is compared with contain NaN or infinity.")
    dtype = X.dtype
    if name not in _INNER:
        # Distances are differences of large numbers: scikit-learn takes them in float64 as well.
        X, Y = X.astype(np.float64, copy=False), Y.astype(np.float64, copy=False)
    known, filled, share = _observed(X)
    with np.errstate(over="ignore", invalid="ignore"):  # callers look at the result
        if name == "rbf":
            sums = known @ np.square(Y).T - 2 * (filled @ Y.T) + _energy(filled)[:, None]
        elif name == "laplacian":
            # Missing values, taken for 0, have added |y_i|.
            sums = manhattan_distances(filled, Y) - (1 - known) @ np.abs(Y).T
        else:
            norms = np.sqrt(known @ np.square(Y).T)
            along = np.divide(filled @ Y.T, norms, out=np.zeros_like(norms), where=norms > 0)
        if name == "cosine":
            norms = np.sqrt(_energy(filled))[:, None]
            K = np.divide(along, norms, out=np.zeros_like(along), where=norms > 0)
        elif name in _INNER:
            inner = along / np.sqrt(share)[:, None] * np.sqrt(_energy(Y))
            K = _of_inner(name, params, inner, X.shape[1])
        else:
            K = np.exp(-_gamma(params, X.shape[1]) * np.maximum(sums, 0) / share[:, None])
    return K.astype(dtype, copy=False)


def partial_diagonal(name: str, params: Mapping[str, Any], X: Array) -> Array:
    """Estimate k(x, x) for rows x with missing values; as ``partial_kernel`` otherwise."""
    if name in ("rbf", "laplacian"):
        return np.ones(len(X), X.dtype)
    _, filled, share = _observed(X)
    with np.errstate(over="ignore", invalid="ignore"):
        energy = _energy(filled)
        if name == "cosine":
            return (energy > 0).astype(X.dtype)
        K = _of_inner(name, params, energy / share, X.shape[1])
    return K.astype(X.dtype, copy=False)


def _observed(X: Array) -> tuple[Array, Array, Array]:
    """Return 1 where a value is known and 0 elsewhere, X with 0 for NaN, and known shares."""
    missing = np.isnan(X)
    known = (~missing).astype(X.dtype)
    share = known.mean(axis=1, dtype=np.float64).astype(X.dtype)
    if not share.all():
        raise ValueError("X holds a row without any value: all of it is NaN.")
    return known, np.where(missing, 0, X), share


def _energy(rows: Array) -> Array:
    return np.vecdot(rows, rows)


def _of_inner(name: str, params: Mapping[str, Any], inner: Array, n_features: int) -> Array:
    """Return the kernel that is this function of the inner product, as scikit-learn has it."""
    if name == "linear":
        return inner
    inner = inner * _gamma(params, n_features) + params.get("coef0", 1)
    if name == "sigmoid":
        return np.tanh(inner)
    return inner ** params.get("degree", 3)


def _gamma(params: Mapping[str, Any], n_features: int) -> float:
    gamma = params.get("gamma")
    return 1 / n_features if gamma is None else float(gamma)
