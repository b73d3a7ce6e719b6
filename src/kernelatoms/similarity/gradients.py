"""Gradients of kernels: how k(x, y) changes when y moves.

Of every smooth kernel by name, the gradient lies in the plane of x and y:

    d k(x, y) / d y = a(x, y) x + b(x, y) y

    linear      k = x'y                    a = 1                       b = 0
    poly        k = (g x'y + c)^p          a = p g (g x'y + c)^(p-1)   b = 0
    sigmoid     k = tanh(g x'y + c)        a = g (1 - k^2)             b = 0
    rbf         k = exp(-g |x - y|^2)      a = 2 g k                   b = -2 g k
    cosine      k = x'y / (|x| |y|)        a = 1 / (|x| |y|)           b = -k / |y|^2

so weighted sums over many x are two matrix products and no array of pairs times features. The RBF
line, with weights W and W'W, is eq. (11) of the FKSC paper. The laplacian kernel
exp(-g |x - y|_1) has the gradient g k sign(x - y) almost everywhere.

Kernels give a and b by ``kernel.slopes(X, Y)``, and sums by ``kernel.weighted_gradient``.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Array = NDArray[Any]


class Slopes(NamedTuple):
    """Kernel values (n, m), and the factors of x and y in their gradients; ``along_y=None`` is 0.

    Of a kernel whose gradient leaves the plane of x and y (laplacian) they are those of a smooth
    kernel as wide: right in size, so good for the length of a step, not for its direction.

    Attributes
    ----------
    values : array of shape (n, m)
        k(x, y).
    along_x : array of shape (n, m)
        a(x, y).
    along_y : array of shape (n, m) or None
        b(x, y).
    """

    values: Array
    along_x: Array
    along_y: Array | None


def gradient_in_plane(weights: Any, X: Array, Y: Array, slopes: Slopes) -> Array:
    """Return the sums over i of weights[i, j] (a x_i + b y_j), one row for every j.

    Parameters
    ----------
    weights : array or CSR array of shape (n, m)
        The weight of every pair.
    X : array of shape (n, n_features)
        Rows that stand still.
    Y : array of shape (m, n_features)
        Rows that move.
    slopes : Slopes
        a and b.

    Returns
    -------
    array of shape (m, n_features)
    """
    gradient = np.asarray(weighted_values(weights, slopes.along_x).T @ X)
    if slopes.along_y is not None:
        gradient += weighted_values(weights, slopes.along_y).sum(axis=0)[:, None] * Y
    return gradient


def gradient_of_signs(weighted: Any, X: Array, Y: Array) -> Array:
    """Return the sums over i of weighted[i, j] sign(x_i - y_j), feature by feature."""
    gradient = np.empty_like(Y)
    if scipy.sparse.issparse(weighted):
        pairs = weighted.tocoo()
        for f in range(Y.shape[1]):
            signs = np.sign(X[pairs.row, f] - Y[pairs.col, f])
            gradient[:, f] = np.bincount(pairs.col, pairs.data * signs, minlength=len(Y))
        return gradient
    for f in range(Y.shape[1]):
        gradient[:, f] = np.vecdot(weighted.T, np.sign(X[:, f] - Y[:, f, None]))
    return gradient


def weighted_values(weights: Any, values: Array) -> Any:
    """Return weights * values, pair by pair; sparse (CSR) where the weights are."""
    if not scipy.sparse.issparse(weights):
        return weights * values
    row = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    data = weights.data * values[row, weights.indices]
    return scipy.sparse.csr_array((data, weights.indices, weights.indptr), shape=weights.shape)
