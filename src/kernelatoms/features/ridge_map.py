"""The way back by ridge regression: a linear map from feature space to rows, learned from rows.

See docs/decisions/018-pre-images.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import machine
from kernelatoms.features.gram_check import check_gram
from kernelatoms.features.linear_algebra import eigh
from kernelatoms.similarity import Kernel

Array = NDArray[Any]

# A regression on this many rows knows the way back as well as one on all of them.
_MOST_ROWS = 1000
# Every fit of a kernel learner regresses its atoms: the eigenvectors must not outlast learning.
_MOST_ROWS_IN_FIT = 500


def best_ridge(eigenvalues: Array, energies: Array, outside: float, n_rows: int) -> float:
    """Return the ridge of the lowest generalised cross-validation error.

    The regression of R on coordinates with Gram matrix V S V' is known in closed form for every
    ridge: ``energies`` are the squared norms of the rows of V'R, ``outside`` what V does not span.
    """
    if outside <= n_rows * np.finfo(np.float64).eps * float(energies.sum()):
        outside = 0.0  # rounding, which would weigh more than the smallest ridges leave
    alphas = eigenvalues[0] * np.logspace(-8, 0, 33)
    shrinkage = alphas[:, None] / (eigenvalues + alphas[:, None])
    rss = outside + shrinkage**2 @ energies
    freedom = n_rows - len(eigenvalues) + shrinkage.sum(axis=1)
    gcv = rss / np.maximum(freedom, 1e-9 * n_rows) ** 2
    # Where all eigenvalues are equal (one row, or rows far apart) every ridge has the same error:
    # the smallest is taken, not the one that rounding favours.
    return float(alphas[int((gcv <= gcv.min() * (1 + 1e-9)).argmax())])


def regress_rows(X: Array, F: Array, vectors: Array) -> Array:
    """Return rows for vectors of feature space, as ridge regression learns them.

    Parameters
    ----------
    X : array of shape (n, n_features)
        Rows.
    F : array of shape (n, r)
        Their coordinates.
    vectors : array of shape (m, r)
        Coordinates of the vectors.

    Returns
    -------
    array of shape (m, n_features)
        Linear in the vectors.
    """
    chosen = _some_rows(len(X), _MOST_ROWS_IN_FIT)
    X, F = X[chosen], F[chosen]
    F = F.astype(np.float64)
    # Helper threads of BLAS cost more than they give on small matrices, and change last digits.
    with machine(F).one_blas_thread():
        return ((vectors @ F.T) @ _ridge_weights(X, F @ F.T)).astype(X.dtype)


def ridge_rows(kernel: Kernel, anchors: Array, inner: Array) -> Array:
    """Return rows for vectors known by their inner products, as ridge regression learns them.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    anchors : array of shape (n, n_features)
        The rows to learn from.
    inner : array of shape (n, m)
        <phi(a_i), v_j>.

    Returns
    -------
    array of shape (m, n_features)
        Linear in the vectors.
    """
    chosen = _some_rows(len(anchors), _MOST_ROWS)
    X = anchors[chosen]
    with machine(X).one_blas_thread():
        K = kernel(X, X)
        check_gram(K, "the kernel on the anchors")
        return inner[chosen].T @ _ridge_weights(X, K)


def _some_rows(n: int, most: int) -> slice | NDArray[np.intp]:
    """Return which of n rows a regression learns from: all, or so many evenly spread ones."""
    if n <= most:
        return slice(None)
    return np.linspace(0, n - 1, most).astype(np.intp)


def _ridge_weights(X: Array, K: Array) -> Array:
    """Return (K + alpha)^+ X, alpha by generalised cross-validation."""
    X = X.astype(np.float64)
    s, V = eigh(K)
    if s[0] < -np.sqrt(np.finfo(np.float64).eps) * np.abs(s).max():
        raise ValueError(
            "kernel is not positive semi-definite on these rows: its smallest eigenvalue is "
            f"{s[0]:.3g} and its largest {s[-1]:.3g}, so it has no feature space."
        )
    keep = s > len(s) * np.finfo(np.float64).eps * s[-1]
    s, V = s[keep][::-1], V[:, keep][:, ::-1]
    if not len(s):
        return np.zeros_like(X)
    projected = V.T @ X
    energies = np.vecdot(projected, projected)
    outside = max(float(np.vdot(X, X)) - float(energies.sum()), 0.0)
    alpha = best_ridge(s, energies, outside, len(X))
    return V @ (projected / (s + alpha)[:, None])
