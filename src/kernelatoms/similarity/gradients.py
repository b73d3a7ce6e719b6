"""How k(x, y) depends on one row: gradients to learn atoms, and inversions for pre-images.

The gradient of every smooth kernel by name lies in the plane of x and y:

    d k(x, y) / d y = a(x, y) x + b(x, y) y

    linear      k = x'y                    a = 1                       b = 0
    poly        k = (g x'y + c)^p          a = p g (g x'y + c)^(p-1)   b = 0
    sigmoid     k = tanh(g x'y + c)        a = g (1 - k^2)             b = 0
    rbf         k = exp(-g |x - y|^2)      a = 2 g k                   b = -2 g k
    cosine      k = x'y / (|x| |y|)        a = 1 / (|x| |y|)           b = -k / |y|^2

so weighted sums over many x are two matrix products, without an array of pairs times features. The
RBF line, with weights W and W'W, is eq. (11) of the FKSC paper. The laplacian kernel
exp(-g |x - y|_1) has the gradient g k sign(x - y) almost everywhere.

An inversion (``kernel.inversion``) describes how k(x, a) depends on x, for Gaussian and polynomial
kernels. Anchors a are shared by all vectors, (n, n_features), or separate, (m, n, n_features).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.engine import Array


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
    """Return the sums over i of weights[i, j] (a x_i + b y_j), one row per y_j: (m, n_features)."""
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


# <phi(a), v> of unit vectors below this is rounding, from which no distance follows.
_FAINT = 1e-12


def mix(weights: Array, anchors: Array) -> Array:
    """Return weighted sums of the anchors, shared or own: (m, n) -> (m, n_features)."""
    if anchors.ndim == 2:
        return weights @ anchors
    return (weights[:, None] @ anchors)[:, 0]


def pick(anchors: Array, chosen: NDArray[np.intp]) -> Array:
    """Return the anchors, shared or own, of these numbers: (m, k) -> (m, k, n_features)."""
    if anchors.ndim == 2:
        return anchors[chosen]
    return np.take_along_axis(anchors, chosen[:, :, None], axis=1)


def weighted_mean(anchors: Array, weights: Array) -> Array:
    """Return means of anchors by weights (m, n) of any sign; by |weights| where these cancel."""
    sizes = np.abs(weights)
    usable = weights.sum(axis=1, keepdims=True) > 1e-3 * sizes.sum(axis=1, keepdims=True)
    share = np.where(usable, weights, sizes)
    total = share.sum(axis=1, keepdims=True)
    return mix(share / np.where(total > 0, total, 1), anchors)


def _inner(X: Array, anchors: Array) -> Array:
    """Return the inner products of every row with the anchors, shared or own: (m, n)."""
    if anchors.ndim == 2:
        return X @ anchors.T
    return (anchors @ X[:, :, None])[:, :, 0]


@dataclass(frozen=True)
class GaussianInversion:
    """k(x, a) = exp(-gamma |x - a|^2). Every phi(x) has norm 1, so vectors must be unit vectors."""

    gamma: float

    def nearness(self, cosine: Array) -> Array:
        """Return the order of anchors as starts, largest first, given <phi(a), v> / |phi(a)|."""
        return cosine

    def scale(self, ratio: Array) -> Array:
        """Return the factors that bring anchors closest to v, given <phi(a), v> / |phi(a)|^2."""
        return np.ones_like(ratio)

    def combine(self, anchors: Array, coef: Array) -> Array:
        """Return the weighted means of the anchors: v itself, if the kernel were flat."""
        return weighted_mean(anchors, coef.T)

    def gram(self, anchors: Array) -> Array:
        """Return the kernel values of the anchors: (n, n), or (m, n, n) for own anchors."""
        norms2 = np.vecdot(anchors, anchors)
        squared = norms2[..., :, None] + norms2[..., None, :] - 2 * anchors @ anchors.mT
        values = np.exp(-self.gamma * np.maximum(squared, 0))
        each = np.arange(anchors.shape[-2])
        values[..., each, each] = 1  # without rounding
        return values

    def step(self, X: Array, anchors: Array, coef: Array) -> tuple[Array, Array, Array]:
        """Return |phi(x) - v|^2 less a constant, the step from x and the decrease it promises.

        The step leads to sum_i w_i a_i / sum_i w_i with w_i = c_i k(x, a_i): Mika et al. (1998),
        eq. (10). To go downhill, and not where all kernel values are 0, the sum of w_i is kept
        above a hundredth of sum_i |w_i|, which replaces it where it is not positive. Less the
        constant, errors are sums of c_i (k(x, a_i) - 1): they keep their digits.
        """
        squared = np.vecdot(X, X)[:, None] + np.vecdot(anchors, anchors) - 2 * _inner(X, anchors)
        less = np.expm1(-self.gamma * np.maximum(squared, 0))
        w = (1 + less) * coef
        inner = w.sum(axis=1)
        most = np.abs(w).sum(axis=1)
        weight = np.where(inner > 0, np.maximum(inner, 0.01 * most), most)
        way = (mix(w, anchors) - inner[:, None] * X) / np.where(weight > 0, weight, 1)[:, None]
        return -2 * np.vecdot(less, coef), way, 4 * self.gamma * weight * np.vecdot(way, way)

    def solve(self, neighbours: Array, inner: Array) -> Array:
        """Return rows x with k(x, a) near <phi(a), v> for the neighbours a of each unit vector v.

        Kwok and Tsang (2004): |x - a|^2 should be -log(<phi(a), v>) / gamma, where that is known.
        """
        usable = inner > _FAINT
        squared = -np.log(np.where(usable, np.minimum(inner, 1), 1)) / self.gamma
        usable[:, 0] |= ~usable.any(axis=1)
        weights = usable[:, :, None] / usable.sum(axis=1)[:, None, None]
        centre = (weights * neighbours).sum(axis=1)
        offsets = np.where(usable[:, :, None], neighbours - centre[:, None], 0)
        # |x - a|^2 = d^2 less its mean over the neighbours is linear in x: |x|^2 drops out.
        rest = np.where(usable, (np.vecdot(offsets, offsets) - squared) / 2, 0)
        return centre + _least_squares(offsets, rest)


@dataclass(frozen=True)
class PolynomialInversion:
    """k(x, a) = (gamma x'a + coef0)^degree, of a whole degree from 1."""

    gamma: float
    degree: int
    coef0: float

    @property
    def _odd(self) -> bool:
        """Whether -phi(a) = phi(-a)."""
        return self.coef0 == 0 and self.degree % 2 == 1

    def nearness(self, cosine: Array) -> Array:
        """Return the order of anchors as starts, largest first, given <phi(a), v> / |phi(a)|."""
        return np.abs(cosine) if self._odd else cosine

    def scale(self, ratio: Array) -> Array:
        """Return the factors that bring anchors closest to v, given <phi(a), v> / |phi(a)|^2.

        With coef0 = 0, phi(t a) = t^degree phi(a); otherwise anchors are left as they are.
        """
        return self._root(ratio) if self.coef0 == 0 else np.ones_like(ratio)

    def combine(self, anchors: Array, coef: Array) -> Array:
        """Return the weighted sums of the anchors: v itself, if the degree were 1."""
        return mix(coef.T, anchors)

    def gram(self, anchors: Array) -> Array:
        """Return the kernel values of the anchors: (n, n), or (m, n, n) for own anchors."""
        return (self.gamma * (anchors @ anchors.mT) + self.coef0) ** self.degree

    def step(self, X: Array, anchors: Array, coef: Array) -> tuple[Array, Array, Array]:
        """Return |phi(x) - v|^2 less a constant, the step from x and the decrease it promises.

        The step leads to sum_i c_i k'(x'a_i) a_i / k'(x'x), k' the derivative: Schoelkopf et al.
        (1999). It is the negative gradient over 2 k'(x'x), so downhill, though often too far.
        """
        base = self.gamma * _inner(X, anchors) + self.coef0
        own = self.gamma * np.vecdot(X, X) + self.coef0
        w = base ** (self.degree - 1) * coef
        weight = own ** (self.degree - 1)
        way = (mix(w, anchors) - weight[:, None] * X) / np.where(weight > 0, weight, 1)[:, None]
        error = own**self.degree - 2 * np.vecdot(w, base)
        return error, way, 2 * self.degree * self.gamma * weight * np.vecdot(way, way)

    def solve(self, neighbours: Array, inner: Array) -> Array:
        """Return rows x with k(x, a) near <phi(a), v> for the neighbours a of each v.

        Kwok and Tsang (2004): x'a should be (<phi(a), v>^(1/degree) - coef0) / gamma.
        """
        return _least_squares(neighbours, (self._root(inner) - self.coef0) / self.gamma)

    def _root(self, values: Array) -> Array:
        """Return the degree-th root: that from 0 up if there are two, 0 if there is none."""
        if self.degree % 2 == 1:
            return np.sign(values) * np.abs(values) ** (1 / self.degree)
        return np.maximum(values, 0) ** (1 / self.degree)


Inversion = GaussianInversion | PolynomialInversion


def _least_squares(A: Array, b: Array) -> Array:
    """Return the shortest x that minimise |A x - b|, for a stack of systems."""
    return (np.linalg.pinv(A, rcond=1e-10) @ b[:, :, None])[:, :, 0]
