"""Values of gamma, and its choice by training rows: "scale" and "spread".

See docs/decisions/012-gamma-defaults.md.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from kernelatoms.engine import Array, machine

#: Values of gamma beside a number above 0 and None.
GAMMA_WORDS = ("scale", "auto", "spread")
# The mean size of what gamma multiplies is that of so many rows, each with so many others.
_ROWS_OF_SPREAD, _PARTNERS = 256, 16


def check_gamma(gamma: Any, *, words: tuple[str, ...] = GAMMA_WORDS) -> None:
    """Refuse anything but a number above 0, None, or one of these words."""
    if gamma is None or (isinstance(gamma, str) and gamma in words):
        return
    allowed = ", ".join(["a number above 0", "None", *(repr(word) for word in words)])
    number = isinstance(gamma, Real) and not isinstance(gamma, bool)
    if not number or not np.isfinite(float(gamma)) or not float(gamma) > 0:
        raise ValueError(f"gamma must be above 0 and finite: one of {allowed}; got {gamma!r}.")


def gamma_by_variance(X: Array) -> float:
    """Return 1 / (n_features * X.var()) without missing values; 1 where all values are equal."""
    values, found = _known(X)
    if found is None or found.lowest == found.highest:  # a mean is rounded: the variance is not 0
        return 1.0
    return _one_over(lambda spread: spread.variance, values, found, X.shape[1])


def gamma_by_norms(X: Array) -> float:
    """Return 1 over the mean squared norm of rows, without missing values; 1 where all are 0."""
    values, found = _known(X)
    if found is None or found.lowest == found.highest == 0:
        return 1.0
    return _one_over(
        lambda spread: spread.variance + spread.mean * spread.mean, values, found, X.shape[1]
    )


def _known(X: Array) -> tuple[Array, Any]:
    """Return the values that are not missing, and their spread; None of no values."""
    found = machine(X).spread(X)
    if not np.isnan(found.lowest):
        return X, found
    X = X[~np.isnan(X)]
    return X, machine(X).spread(X) if len(X) else None


def _one_over(mean_square: Callable[[Any], float], X: Array, spread: Any, n_features: int) -> float:
    """Return 1 over n_features times a mean square of values, also where squares do not fit."""
    largest, unit = max(-spread.lowest, spread.highest), 1.0
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        mean = mean_square(spread)
        if not np.finfo(np.float64).tiny < mean < np.inf:
            unit = largest
            mean = mean_square(machine(X).spread(X.astype(np.float64) / unit))
        return _gamma(np.float64(1) / (n_features * mean) / unit / unit, largest)


def gamma_by_mean(mean: float, at_mean: float = 1.0) -> float:
    """Return ``at_mean`` over ``mean``, the mean of what gamma multiplies; 1 if that is 0."""
    if mean == 0:
        return 1.0
    with np.errstate(over="ignore"):
        return _gamma(np.float64(at_mean) / mean, mean)


def _gamma(number: Any, size: float) -> float:
    """Return gamma; refuse rows for which it is not a number above 0."""
    if not 0 < number < np.inf:
        raise ValueError(
            f"gamma='scale' and 'spread' fit gamma to the rows, whose values are too "
            f"{'small' if number > 0 else 'large'} for that (up to {size:.3g}): scale the "
            "rows (sklearn.preprocessing.StandardScaler), or give gamma as a number."
        )
    return float(number)


def mean_over_pairs(sizes_of: Callable[[Array, Array], Array | None], X: Array, who: str) -> float:
    """Return the mean of ``sizes_of(rows, others)`` over pairs of at most 256 complete rows."""
    chosen = np.linspace(0, len(X) - 1, min(len(X), _ROWS_OF_SPREAD)).astype(np.intp)
    rows = X[chosen].astype(np.float64)
    rows = rows[~np.isnan(rows).any(axis=1)]
    if len(rows) < 2:
        return 0.0
    # Neighbouring rows may be similar: pair each row with others near and far.
    shifts = np.unique(np.linspace(1, len(rows) - 1, _PARTNERS).astype(np.intp))
    with np.errstate(over="ignore"):
        means = []
        for shift in shifts:
            sizes = sizes_of(rows, np.roll(rows, shift, axis=0))
            if sizes is None:
                raise ValueError(
                    f"gamma='spread': {who} does not say what its gamma multiplies; give it "
                    "what_gamma_multiplies(X, Y), or choose gamma."
                )
            means.append(float(np.mean(sizes)))
        return float(np.mean(means))
