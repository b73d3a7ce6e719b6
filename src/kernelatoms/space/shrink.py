"""Coordinates estimated from a part of a row, shrunk until their norm can be that of a vector.

Kernel values of a row with missing values are estimates, and need not be the inner products of any
vector with the landmarks. Coordinates f_i = (V'k)_i / sqrt(s_i) divide what is wrong in them by
the eigenvalues s_i of the landmarks' kernel matrix, so that small s_i make large errors. The
estimate of k(x, x) tells: where |f|^2 is above it, ridge regression with the smallest weight
lambda that brings it down,

    f_i s_i / (s_i + lambda),   sum_i (f_i s_i / (s_i + lambda))^2 <= k(x, x),

shrinks the coordinates that are known worst the most.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import machine

Array = NDArray[Any]

# Squared norms this many times k(x, x) are far from consistent; a tenth of such rows is many.
_FAR_ABOVE = 4.0
_MANY = 0.1
_MAX_STEPS = 100


def shrink_to_energy(F: Array, eigenvalues: Array, energy: Array) -> Array:
    """Shrink rows of coordinates whose squared norm is above their energy; F is overwritten.

    Parameters
    ----------
    F : array of shape (n, r)
        Coordinates.
    eigenvalues : array of shape (r,)
        Of the landmarks' kernel matrix, all above 0.
    energy : array of shape (n,)
        Estimates of k(x, x).

    Returns
    -------
    array of shape (n,)
        How many times its energy every row's squared norm was; 0 where both are 0.
    """
    excess = np.empty(len(F))
    s = eigenvalues.astype(np.float64)

    def worker(start: int, stop: int) -> None:
        rows = F[start:stop].astype(np.float64)
        allowed = np.maximum(energy[start:stop].astype(np.float64), 0.0)
        norms2 = np.vecdot(rows, rows)
        tiny = np.finfo(np.float64).tiny
        excess[start:stop] = np.where(norms2 > 0, norms2 / np.maximum(allowed, tiny), 0.0)
        above = np.flatnonzero(norms2 > allowed)
        F[start + above] = _ridge(rows[above], s, np.sqrt(allowed[above]))

    machine(F).for_blocks(len(F), F.shape[1], 8, worker)
    return excess


def _ridge(F: Array, s: Array, radius: Array) -> Array:
    """Return f_i s_i / (s_i + lambda) of norm ``radius``, which is below the norm of every f.

    Newton's method on 1 / |p(lambda)| = 1 / radius (Moré and Sorensen, 1983): that function is
    concave and nearly linear, so the steps from 0 go up to the root and not past it.
    """
    found = np.zeros_like(F)
    active = np.flatnonzero(radius > 0)
    weight = np.zeros(len(F))
    for _ in range(_MAX_STEPS):
        if not len(active):
            break
        scale = 1 / (s + weight[active, None])
        p = F[active] * (s * scale)
        norm = np.sqrt(np.vecdot(p, p))
        found[active] = p
        ratio = norm / radius[active]
        slope = np.vecdot(p, p * scale)
        weight[active] += norm**2 / slope * np.maximum(ratio - 1, 0.0)
        active = active[ratio > 1 + 1e-12]
    norms = np.sqrt(np.vecdot(found, found))
    factors = np.divide(radius, norms, out=np.zeros_like(norms), where=norms > radius)
    return found * np.where(norms > radius, factors, 1.0)[:, None]


def warn_of_estimates(excess: Array) -> None:
    """Warn if many estimates from parts of rows were far from consistent.

    ``excess`` (n,) holds the squared norm that the estimates give each row, in units of k(x, x).
    """
    if np.count_nonzero(excess > _FAR_ABOVE) > _MANY * len(excess):
        # No numbers: the same words are shown once, however many classes say them.
        warnings.warn(
            "Many rows with missing values have estimates that contradict each other: their "
            f"kernel values would need more than {_FAR_ABOVE:g} times the squared norm k(x, x). "
            "They are shrunk to it, but too little is observed for this kernel to rely on them; "
            "compare with a linear dictionary (KSVD), which needs no estimates, or with imputed "
            "values.",
            UserWarning,
            stacklevel=4,
        )
