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
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.similarity.kernels import NamedKernel

Array = NDArray[Any]

#: The kernels with a gradient. The chi-squared ones have one too, but on positive rows only: a
#: step along it would leave them.
GRADIENT_KERNELS = ("rbf", "linear", "poly", "polynomial", "sigmoid", "cosine", "laplacian")
#: Those whose k(x, x) grows with |x|.
UNBOUNDED_KERNELS = ("linear", "poly", "polynomial", "sigmoid")


class Slopes(NamedTuple):
    """Kernel values (n, m), and the factors of x and y in their gradients; ``along_y=None`` is 0.

    Of the laplacian kernel they are those of a smooth kernel as wide: right in size, so good for
    the length of a step, not for its direction.
    """

    values: Array
    along_x: Array
    along_y: Array | None


def check_gradient(kernel: Any) -> None:
    """Refuse a kernel, as users give it, that has no gradient to follow."""
    if isinstance(kernel, str) and kernel in GRADIENT_KERNELS:
        return
    names = ", ".join(repr(name) for name in GRADIENT_KERNELS)
    if isinstance(kernel, str) and kernel in ("chi2", "additive_chi2"):
        why = f"got {kernel!r}, which knows no negative values, and a step may lead there"
    elif callable(kernel) or kernel == "precomputed":
        what = "a function" if callable(kernel) else "'precomputed'"
        why = f"got {what}, whose gradient is not known"
    else:
        why = f"got {kernel!r}"
    raise ValueError(f"kernel must be one that atoms can move along, {names}; {why}.")


def kernel_slopes(kernel: NamedKernel, X: Array, Y: Array) -> Slopes:
    """Return k(x, y) for all rows x of X and y of Y, and the factors of its gradient in y."""
    gamma = float(kernel.params.get("gamma", 1 / X.shape[1]))
    if kernel.name == "linear":
        K = X @ Y.T
        return Slopes(K, np.ones_like(K), None)
    if kernel.name in ("poly", "polynomial", "sigmoid"):
        base = gamma * (X @ Y.T) + float(kernel.params.get("coef0", 1))
        if kernel.name == "sigmoid":
            K = np.tanh(base)
            return Slopes(K, gamma * (1 - K * K), None)
        degree = float(kernel.params.get("degree", 3))
        return Slopes(base**degree, degree * gamma * base ** (degree - 1), None)
    K = kernel(X, Y)
    if kernel.name == "cosine":
        x, y = (np.linalg.norm(rows, axis=1) for rows in (X, Y))
        # Zero rows have no angle: k is 0 there, and no step is better than another.
        inverse = np.divide(1, y, out=np.zeros_like(y), where=y > 0)
        lengths = np.divide(1, x, out=np.zeros_like(x), where=x > 0)
        return Slopes(K, lengths[:, None] * inverse, -K * inverse**2)
    factor = (2 * gamma if kernel.name == "rbf" else gamma) * K
    return Slopes(K, factor, -factor)


def weighted_gradient(
    kernel: NamedKernel, weights: Any, X: Array, Y: Array, slopes: Slopes | None = None
) -> Array:
    """Return the sums over i of weights[i, j] d k(x_i, y_j) / d y_j, one row for every j.

    Parameters
    ----------
    kernel : NamedKernel
        One of ``GRADIENT_KERNELS``.
    weights : array or CSR array of shape (n, m)
        The weight of every pair.
    X : array of shape (n, n_features)
        Rows that stand still.
    Y : array of shape (m, n_features)
        Rows that move.
    slopes : Slopes, optional
        ``kernel_slopes(kernel, X, Y)``, where it is known already.

    Returns
    -------
    array of shape (m, n_features)
    """
    check_gradient(getattr(kernel, "name", kernel))
    slopes = kernel_slopes(kernel, X, Y) if slopes is None else slopes
    along_x = weigh(weights, slopes.along_x)
    if kernel.name == "laplacian":
        return _laplacian(along_x, X, Y)
    gradient = np.asarray(along_x.T @ X)
    if slopes.along_y is not None:
        gradient += weigh(weights, slopes.along_y).sum(axis=0)[:, None] * Y
    return gradient


def weigh(weights: Any, values: Array) -> Any:
    """Return weights * values, pair by pair; sparse where the weights are."""
    if not scipy.sparse.issparse(weights):
        return weights * values
    row = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    data = weights.data * values[row, weights.indices]
    return scipy.sparse.csr_array((data, weights.indices, weights.indptr), shape=weights.shape)


def _laplacian(weighted: Any, X: Array, Y: Array) -> Array:
    """Return the sums of weighted[i, j] sign(x_i - y_j), feature by feature."""
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
