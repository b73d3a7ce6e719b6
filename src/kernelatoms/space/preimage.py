"""Pre-images: rows x whose phi(x) is about a given vector of feature space."""

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.engine.threads import one_blas_thread

Array = NDArray[Any]

# A regression on this many rows knows the way back about as well as one on all of them, and the
# eigenvectors of a larger matrix would take longer than learning.
_MOST_ROWS = 500


def best_ridge(eigenvalues: Array, energies: Array, outside: float, n_rows: int) -> float:
    """Return the ridge of the lowest generalised cross-validation error.

    The regression of R on coordinates with Gram matrix V S V' is known in closed form for every
    ridge: ``energies`` are the squared norms of the rows of V'R, ``outside`` what V does not span.
    """
    alphas = eigenvalues[0] * np.logspace(-8, 0, 33)
    shrink = eigenvalues / (eigenvalues + alphas[:, None])
    rss = outside + (1 - shrink) ** 2 @ energies
    gcv = rss / np.maximum(n_rows - shrink.sum(axis=1), 1e-9 * n_rows) ** 2
    return float(alphas[int(gcv.argmin())])


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
    if len(X) > _MOST_ROWS:
        chosen = np.linspace(0, len(X) - 1, _MOST_ROWS).astype(np.intp)
        X, F = X[chosen], F[chosen]
    F, X64 = F.astype(np.float64), X.astype(np.float64)
    with one_blas_thread():
        s, V = scipy.linalg.eigh(F @ F.T, check_finite=False)
    keep = s > len(s) * np.finfo(np.float64).eps * s[-1]
    s, V = s[keep][::-1], V[:, keep][:, ::-1]
    if not len(s):
        return np.zeros((len(vectors), X.shape[1]), X.dtype)
    projected = V.T @ X64
    energies = np.vecdot(projected, projected)
    outside = max(float(np.vdot(X64, X64)) - float(energies.sum()), 0.0)
    alpha = best_ridge(s, energies, outside, len(X))
    weights = V @ (projected / (s + alpha)[:, None])
    return ((vectors @ F.T) @ weights).astype(X.dtype)
