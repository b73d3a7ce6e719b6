"""Norms, inner products and distances, estimated from the observed entries of a row.

With O the observed entries of x, of n, norms and distances to complete rows y are scaled up from
those on O, and the angle between x and y is taken to be that between x_O and y_O:

    |x|^2 ~ (n / |O|) |x_O|^2,   <x, y> ~ |x| |y| <x_O, y_O> / (|x_O| |y_O|),
    |x - y|^p ~ (n / |O|) sum_O |x_i - y_i|^p

The unbiased sum (n / |O|) <x_O, y_O> has a far larger variance, since it ignores the other entries
of y. All functions take rows X (..., n, n_features), NaN where a value is missing and each with at
least one value, and complete rows Y (..., m, n_features).

See docs/decisions/031-missing-values-in-signals.md.
"""

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array, is_device_array, machine


def rows_with_missing(X: Array) -> NDArray[np.intp]:
    """Return the numbers of the rows (of the entries, in a stack of rows) that hold NaN."""
    if is_device_array(X):  # validation refuses tensors with missing values
        return np.empty(0, np.intp)
    if not machine(X).holds_nan(X):
        return np.empty(0, np.intp)
    return np.flatnonzero(np.isnan(X).any(axis=tuple(range(1, X.ndim))))


def energy_from_parts(X: Array) -> Array:
    """Estimate |x|^2: (..., n)."""
    _, filled, share = _observed(X)
    return np.vecdot(filled, filled) / share


def inner_from_parts(X: Array, Y: Array) -> Array:
    """Estimate <x, y>: (..., n, m)."""
    known, filled, share = _observed(X, Y)
    along = _along(known, filled, Y)
    return along / np.sqrt(share)[..., None] * np.sqrt(np.vecdot(Y, Y))[..., None, :]


def cosine_from_parts(X: Array, Y: Array) -> Array:
    """Estimate the cosine of the angle between x and y, 0 where a row is 0: (..., n, m)."""
    known, filled, _ = _observed(X, Y)
    along = _along(known, filled, Y)
    norms = np.sqrt(np.vecdot(filled, filled))[..., None]
    return np.divide(along, norms, out=np.zeros_like(along), where=norms > 0)


def squared_distances_from_parts(X: Array, Y: Array) -> Array:
    """Estimate |x - y|^2: (..., n, m)."""
    known, filled, share = _observed(X, Y)
    sums = known @ np.square(Y).mT - 2 * (filled @ Y.mT) + np.vecdot(filled, filled)[..., None]
    return np.maximum(sums, 0) / share[..., None]


def l1_distances_from_parts(X: Array, Y: Array) -> Array:
    """Estimate the sum of the |x_i - y_i|: (..., n, m)."""
    known, filled, share = _observed(X, Y)
    # Missing values, taken for 0, have added |y_i|.
    sums = machine(filled).l1_distances(filled, Y) - (1 - known) @ np.abs(Y).mT
    return np.maximum(sums, 0) / share[..., None]


def _observed(X: Array, *complete: Array) -> tuple[Array, Array, Array]:
    """Return 1 where a value is known and 0 elsewhere, X with 0 for NaN, and known shares."""
    if not all(np.isfinite(Y).all() for Y in complete):
        raise ValueError("The rows that X is compared with contain NaN or infinity.")
    missing = np.isnan(X)
    known = (~missing).astype(X.dtype)
    share = known.mean(axis=-1, dtype=np.float64).astype(X.dtype)
    if not share.all():
        raise ValueError("X holds a row without any value: all of it is NaN.")
    return known, np.where(missing, 0, X).astype(X.dtype, copy=False), share


def _along(known: Array, filled: Array, Y: Array) -> Array:
    """Return <x_O, y_O> / |y_O|, 0 where y_O is 0."""
    norms = np.sqrt(known @ np.square(Y).mT)
    return np.divide(filled @ Y.mT, norms, out=np.zeros_like(norms), where=norms > 0)
