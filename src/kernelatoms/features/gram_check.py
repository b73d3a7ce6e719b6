"""Is this a Gram matrix: what can be told in O(n^2). Are squares of rows numbers.

See docs/decisions/024-indefinite-kernels.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import machine

Array = NDArray[Any]

NOT_SEMIDEFINITE = (
    "kernel is not positive semi-definite on these rows, so it has no exact coordinates. Choose a "
    "kernel that is (linear, poly with coef0 >= 0, rbf, laplacian, cosine, chi2), or repair the "
    "matrix."
)

OVERFLOW = (
    "kernel overflows on these rows; scale X (rows of unit norm, say) or choose a smaller degree "
    "or gamma."
)

# The least sum of squares of which a share of 1e-6 still has all digits of float64.
_LEAST_SQUARES = 2.0**-1000


def check_squares(rows: Array, energy: float) -> None:
    """Refuse rows that are not zero, but the sum of their squares, ``energy``, nearly is."""
    if energy < _LEAST_SQUARES and np.any(rows):
        raise ValueError(
            "The squared norms of X underflow float64: all together they are "
            f"{float(energy):.2g}; scale X up."
        )


def check_gram(K: Array, what: str) -> None:
    """Refuse a square matrix of inner products that no positive semi-definite kernel gives.

    It must be finite and symmetric, with k(x, x) >= 0 and k(x, y)^2 <= k(x, x) k(y, y).
    Eigenvalues are checked where a matrix is factored anyway.
    """
    n = len(K)
    diagonal = np.diagonal(K)
    if not np.isfinite(K).all():
        raise ValueError(f"{what} overflows: it has infinite or undefined values.")
    if (diagonal < 0).any():
        i = int(diagonal.argmin())
        raise ValueError(
            f"{what} is not positive semi-definite: K[{i}, {i}] = {diagonal[i]:.3g} is negative."
        )
    tolerance = np.sqrt(np.finfo(K.dtype).eps)
    roots = np.sqrt(diagonal)
    scale = float(roots.max(initial=0.0)) ** 2

    def worker(start: int, stop: int) -> None:
        rows = K[start:stop]
        if (np.abs(rows - K[:, start:stop].T) > tolerance * scale).any():
            raise ValueError(f"{what} is not symmetric.")
        bounds = roots[start:stop, None] * roots * (1 + tolerance) + tolerance * scale
        if (np.abs(rows) > bounds).any():
            raise ValueError(
                f"{what} is not positive semi-definite: some |K[i, j]| is larger than "
                "sqrt(K[i, i] K[j, j])."
            )

    machine(K).for_blocks(n, n, K.itemsize, worker)
