"""Kernel values of rows and their own candidates, and no others.

See docs/decisions/027-local-problems.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array, machine
from kernelatoms.similarity import DistanceKernel, Kernel, RBFKernel, make_distance
from kernelatoms.similarity.distances import L2
from kernelatoms.similarity.missing import rows_with_missing

# Bytes of candidates' rows held at once.
_AT_ONCE = 1 << 24


def local_values(
    kernel: Kernel, X: Array, anchors: Array, candidates: NDArray[np.int32], *, with_grams: bool
) -> tuple[Array | None, Array]:
    """Return k(a, a') of every row's candidates (n, K, K), and k(x, a) (n, K); 0 for -1."""
    gamma = gaussian_gamma(kernel, X.shape[1])
    if gamma is not None and X.dtype == anchors.dtype and not len(rows_with_missing(X)):
        return machine(X).gaussian_local(X, anchors, candidates, gamma, with_grams=with_grams)
    n, n_local = candidates.shape
    corrs = np.empty((n, n_local), X.dtype, like=X)
    grams = np.empty((n, n_local, n_local), X.dtype, like=X) if with_grams else None
    fits = _AT_ONCE // max(8 * n_local * X.shape[1], 1)
    at_once = max(fits, 1)
    for start in range(0, n, at_once):
        part = slice(start, start + at_once)
        own = anchors[candidates[part]]
        corrs[part] = stack_values(kernel, X[part, None], own)[:, 0]
        if grams is not None:
            grams[part] = stack_values(kernel, own, own)
    padded = candidates < 0
    corrs[padded] = 0
    if grams is not None:
        grams[padded] = 0
        grams.mT[padded] = 0
    return grams, corrs


def gaussian_gamma(kernel: Any, n_features: int) -> float | None:
    """Return gamma of a kernel that is exp(-gamma |x - y|^2); None of any other."""
    kernel = getattr(kernel, "kernel", kernel)  # of descriptors, which are the rows for l2
    if not falls_with_l2(kernel) or getattr(kernel, "power", 2) != 2:
        return None
    return float(kernel.gamma_for(n_features))


def falls_with_l2(kernel: Any) -> bool:
    """Whether k(x, y) is a decreasing function of |x - y|."""
    kernel = getattr(kernel, "kernel", kernel)
    if type(kernel) is DistanceKernel:
        return type(make_distance(kernel.distance)) is L2
    return type(kernel) is RBFKernel


def stack_values(kernel: Kernel, X: Array, Y: Array) -> Array:
    """Return the kernel values of each pair of matrices."""
    with np.errstate(all="ignore"):
        if kernel.takes_stacks:
            return kernel(X, Y)
        return np.stack([kernel(x, y) for x, y in zip(X, Y, strict=True)])
