"""The kernels by name, one class each: scikit-learn's names, parameters and defaults.

``kernel="poly", degree=4, gamma=1, coef0=0`` is the (x'y)^4 of the LKDL paper. The table
``KERNELS`` is the only list of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    manhattan_distances,
    paired_manhattan_distances,
)

from kernelatoms.similarity.base import Kernel, check_gamma, check_number
from kernelatoms.similarity.gradients import Slopes, gradient_of_signs, weighted_values
from kernelatoms.similarity.inversion import GaussianInversion, PolynomialInversion
from kernelatoms.similarity.missing import (
    cosine_from_parts,
    energy_from_parts,
    inner_from_parts,
    l1_distances_from_parts,
    squared_distances_from_parts,
)

Array = NDArray[Any]
Gamma = float | str | None


def squared_distances(X: Array, Y: Array) -> Array:
    """Return |x - y|^2 of rows (..., n, n_features) and (..., m, n_features), in float64.

    Differences of large numbers, so never in float32.
    """
    same = X is Y
    X, Y = _wide(X), _wide(Y)
    D = X @ Y.mT
    D *= -2
    D += np.vecdot(X, X)[..., None]
    D += np.vecdot(Y, Y)[..., None, :]
    np.maximum(D, 0, out=D)
    if same:
        each = np.arange(X.shape[-2])
        D[..., each, each] = 0  # without rounding
    return D


def _in_stacks(function: Any, X: Array, Y: Array) -> Array:
    """Return ``function(X, Y)`` of two matrices for every pair in a stack of them."""
    if X.ndim == 2 and Y.ndim == 2 and len(X) and len(Y):
        return np.asarray(function(X, Y))
    heads = np.broadcast_shapes(X.shape[:-2], Y.shape[:-2])
    X = np.broadcast_to(X, heads + X.shape[-2:])
    Y = np.broadcast_to(Y, heads + Y.shape[-2:])
    out = np.empty((*heads, X.shape[-2], Y.shape[-2]), X.dtype)
    for place in np.ndindex(*heads):
        if out[place].size:  # compiled functions want rows of their own, and some
            out[place] = function(X[place].copy(), Y[place].copy())
    return out


class NamedKernel(Kernel):
    """A kernel by name: its values need no check, its parameters one."""

    _name = ""
    takes_stacks = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        for name in ("degree", "coef0"):
            if hasattr(self, name):
                check_number(name, getattr(self, name))
        if self.has_gamma:
            check_gamma(self.gamma)  # type: ignore[attr-defined]

    @property
    def name(self) -> str:
        """Its name in ``KERNELS``."""
        return self._name

    def _checked(self, X: Array, Y: Array) -> Array:
        return self.values(X, Y).astype(X.dtype, copy=False)


class InnerProductKernel(NamedKernel):
    """k(x, y) = f(x'y): subclasses write ``of_inner(inner, n_features)``, which may overwrite."""

    def of_inner(self, inner: Array, n_features: int) -> Array:
        """Return f of inner products, an array that may be overwritten."""
        raise NotImplementedError

    def values(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all pairs of rows, also in stacks."""
        Y = Y.astype(X.dtype, copy=False)
        return self.of_inner(X @ Y.mT, X.shape[-1])

    def _diag(self, X: Array) -> Array:
        return self.of_inner(np.vecdot(X, X), X.shape[-1])

    def values_from_parts(self, X: Array, Y: Array) -> Array:
        """Estimate k(x, y) of rows x with missing values from angles on the observed entries."""
        return self.of_inner(inner_from_parts(X, Y), X.shape[-1])

    def diag_from_parts(self, X: Array) -> Array:
        """Estimate k(x, x) of rows x with missing values."""
        return self.of_inner(energy_from_parts(X), X.shape[-1])

    def what_gamma_multiplies(self, X: Array, Y: Array) -> Array | None:
        """Return the squared norms of X: the size of its inner products."""
        return np.vecdot(X, X) if self.has_gamma else None


@dataclass(frozen=True)
class LinearKernel(InnerProductKernel):
    """k(x, y) = x'y."""

    _name = "linear"
    semidefinite = True

    def of_inner(self, inner: Array, n_features: int) -> Array:
        """Return the inner products themselves."""
        return inner

    def slopes(self, X: Array, Y: Array) -> Slopes:
        """Return a = 1, b = 0."""
        K = self.values(X, Y)
        return Slopes(K, np.ones_like(K), None)

    def inversion(self, n_features: int) -> PolynomialInversion:
        """Return the polynomial of degree 1."""
        return PolynomialInversion(1.0, 1, 0.0)

    def exact_preimage(self, weights: Any, rows: Array) -> Array:
        """Return the weighted sums of the rows."""
        return np.asarray(weights @ rows)


@dataclass(frozen=True)
class PolynomialKernel(InnerProductKernel):
    """k(x, y) = (gamma x'y + coef0)^degree.

    Parameters
    ----------
    gamma : float, "scale", "auto" or None
        None is 1 / n_features.
    degree : float
        The degree.
    coef0 : float
        The constant.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = PolynomialKernel(degree=2, gamma=1, coef0=0)
    >>> kernel(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0], [0.0, 1.0]]))
    array([[25.,  4.]])
    >>> kernel(np.array([[1.0, np.nan]]), np.array([[3.0, 1.0], [0.0, 1.0]]))
    array([[20.,  0.]])
    """

    gamma: Gamma = None
    degree: float = 3
    coef0: float = 1
    _name = "poly"

    @property
    def semidefinite(self) -> bool | None:  # type: ignore[override]
        """True for whole degrees and coef0 from 0; not known otherwise."""
        return True if self._whole and self.coef0 >= 0 else None

    @property
    def _whole(self) -> bool:
        return self.degree >= 1 and float(self.degree).is_integer()

    def of_inner(self, inner: Array, n_features: int) -> Array:
        """Return (gamma inner + coef0)^degree, in place."""
        inner *= self.gamma_for(n_features)
        inner += float(self.coef0)
        return _power(inner, self.degree)

    def slopes(self, X: Array, Y: Array) -> Slopes:
        """Return a = degree gamma (gamma x'y + coef0)^(degree - 1), b = 0."""
        gamma = self.gamma_for(X.shape[1])
        base = gamma * (X @ Y.T) + float(self.coef0)
        inner = _power(base.copy(), self.degree - 1)
        K = inner * base if self._whole else base**self.degree
        return Slopes(K, self.degree * gamma * inner, None)

    def inversion(self, n_features: int) -> PolynomialInversion | None:
        """Return how it depends on a row, for whole degrees and coef0 from 0."""
        if not self.semidefinite:
            return None
        return PolynomialInversion(self.gamma_for(n_features), int(self.degree), float(self.coef0))


@dataclass(frozen=True)
class SigmoidKernel(InnerProductKernel):
    """k(x, y) = tanh(gamma x'y + coef0): often not positive semi-definite.

    Parameters
    ----------
    gamma : float, "scale", "auto" or None
        None is 1 / n_features.
    coef0 : float
        The constant.
    """

    gamma: Gamma = None
    coef0: float = 1
    _name = "sigmoid"

    def of_inner(self, inner: Array, n_features: int) -> Array:
        """Return tanh(gamma inner + coef0), in place where that can be."""
        inner *= self.gamma_for(n_features)
        inner += float(self.coef0)
        return np.tanh(inner)

    def slopes(self, X: Array, Y: Array) -> Slopes:
        """Return a = gamma (1 - k^2), b = 0."""
        K = self.values(X, Y)
        return Slopes(K, self.gamma_for(X.shape[1]) * (1 - K * K), None)


@dataclass(frozen=True)
class DecayingKernel(NamedKernel):
    """k(x, y) = exp(-gamma d(x, y)): subclasses write ``distances``."""

    gamma: Gamma = None
    semidefinite = True
    bounded = True

    def distances(self, X: Array, Y: Array) -> Array:
        """Return d(x, y) for all pairs of rows, an array that may be overwritten."""
        raise NotImplementedError

    def values(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all pairs of rows, also in stacks."""
        return self._decay(self.distances(X, Y), X)

    def _decay(self, distances: Array, X: Array) -> Array:
        """Return exp(-gamma distances) in the dtype of X."""
        distances = distances.astype(X.dtype, copy=False)
        distances *= -self.gamma_for(X.shape[-1])
        return np.exp(distances, out=distances)

    def _diag(self, X: Array) -> Array:
        return np.ones(X.shape[:-1], X.dtype)


@dataclass(frozen=True)
class RBFKernel(DecayingKernel):
    """k(x, y) = exp(-gamma |x - y|^2).

    Parameters
    ----------
    gamma : float, "scale", "auto" or None
        None is 1 / n_features.
    """

    _name = "rbf"

    def distances(self, X: Array, Y: Array) -> Array:
        """Return squared distances."""
        return squared_distances(X, Y)

    def values_from_parts(self, X: Array, Y: Array) -> Array:
        """Estimate k(x, y) of rows x with missing values from distances on observed entries."""
        return self._decay(squared_distances_from_parts(_wide(X), _wide(Y)), X)

    def diag_from_parts(self, X: Array) -> Array:
        """Return 1 for every row."""
        return self._diag(X)

    def slopes(self, X: Array, Y: Array) -> Slopes:
        """Return a = -b = 2 gamma k."""
        K = self.values(X, Y)
        factor = 2 * self.gamma_for(X.shape[1]) * K
        return Slopes(K, factor, -factor)

    def inversion(self, n_features: int) -> GaussianInversion:
        """Return how it depends on a row."""
        return GaussianInversion(self.gamma_for(n_features))

    def what_gamma_multiplies(self, X: Array, Y: Array) -> Array:
        """Return squared distances."""
        return np.square(X - Y).sum(axis=1)


@dataclass(frozen=True)
class LaplacianKernel(DecayingKernel):
    """k(x, y) = exp(-gamma |x - y|_1).

    Parameters
    ----------
    gamma : float, "scale", "auto" or None
        None is 1 / n_features.
    """

    _name = "laplacian"

    def distances(self, X: Array, Y: Array) -> Array:
        """Return l1 distances."""
        return _l1_distances(X, Y)

    def values_from_parts(self, X: Array, Y: Array) -> Array:
        """Estimate k(x, y) of rows x with missing values from distances on observed entries."""
        return self._decay(l1_distances_from_parts(_wide(X), _wide(Y), _l1_distances), X)

    def diag_from_parts(self, X: Array) -> Array:
        """Return 1 for every row."""
        return self._diag(X)

    def slopes(self, X: Array, Y: Array) -> Slopes:
        """Return a = -b = gamma k, of a smooth kernel as wide."""
        K = self.values(X, Y)
        factor = self.gamma_for(X.shape[1]) * K
        return Slopes(K, factor, -factor)

    def weighted_gradient(
        self, weights: Any, X: Array, Y: Array, slopes: Slopes | None = None
    ) -> Array:
        """Return the sums over i of weights[i, j] gamma k(x_i, y_j) sign(x_i - y_j)."""
        slopes = self.slopes(X, Y) if slopes is None else slopes
        return gradient_of_signs(weighted_values(weights, slopes.along_x), X, Y)

    def what_gamma_multiplies(self, X: Array, Y: Array) -> Array:
        """Return l1 distances."""
        return np.asarray(paired_manhattan_distances(X, Y))


@dataclass(frozen=True)
class CosineKernel(NamedKernel):
    """k(x, y) = x'y / (|x| |y|), 0 where a row is 0."""

    _name = "cosine"
    semidefinite = True
    bounded = True

    def values(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all pairs of rows, also in stacks."""
        return _unit(X) @ _unit(Y.astype(X.dtype, copy=False)).mT

    def _diag(self, X: Array) -> Array:
        return (np.vecdot(X, X) > 0).astype(X.dtype)

    def values_from_parts(self, X: Array, Y: Array) -> Array:
        """Estimate k(x, y) of rows x with missing values by the angle on observed entries."""
        return cosine_from_parts(_wide(X), _wide(Y)).astype(X.dtype, copy=False)

    def diag_from_parts(self, X: Array) -> Array:
        """Return 1 for rows that are not 0 where they are known."""
        return (energy_from_parts(X) > 0).astype(X.dtype)

    def slopes(self, X: Array, Y: Array) -> Slopes:
        """Return a = 1 / (|x| |y|), b = -k / |y|^2; 0 for zero rows, which have no angle."""
        K = self.values(X, Y)
        x, y = (np.linalg.norm(rows, axis=1) for rows in (X, Y))
        inverse = np.divide(1, y, out=np.zeros_like(y), where=y > 0)
        lengths = np.divide(1, x, out=np.zeros_like(x), where=x > 0)
        return Slopes(K, lengths[:, None] * inverse, -K * inverse**2)

    def exact_preimage(self, weights: Any, rows: Array) -> Array:
        """Return weighted sums of unit rows: exact but for the length, which k does not see."""
        return np.asarray(weights @ _unit(rows))


@dataclass(frozen=True)
class AdditiveChi2Kernel(NamedKernel):
    """k(x, y) = -sum_i (x_i - y_i)^2 / (x_i + y_i), 0/0 = 0, for rows without negative values.

    Conditionally positive definite: k(x, x) = 0, so that no feature space has these inner
    products.
    """

    _name = "additive_chi2"
    semidefinite = False
    bounded = True
    non_negative = True

    def values(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all pairs of rows, also in stacks."""
        return -chi2_sums(X, Y)

    def _diag(self, X: Array) -> Array:
        return np.zeros(X.shape[:-1], X.dtype)


@dataclass(frozen=True)
class Chi2Kernel(DecayingKernel):
    """k(x, y) = exp(-gamma sum_i (x_i - y_i)^2 / (x_i + y_i)), for rows without negative values.

    Parameters
    ----------
    gamma : float, "scale", "auto" or None
        None is 1.
    """

    _name = "chi2"
    non_negative = True

    def distances(self, X: Array, Y: Array) -> Array:
        """Return sum_i (x_i - y_i)^2 / (x_i + y_i)."""
        return chi2_sums(X, Y)

    def default_gamma(self, n_features: int) -> float:
        """Return 1, whatever the features."""
        return 1.0

    def what_gamma_multiplies(self, X: Array, Y: Array) -> Array:
        """Return chi-squared distances."""
        sums = X + Y
        return np.divide((X - Y) ** 2, sums, out=np.zeros_like(sums), where=sums > 0).sum(axis=1)


KERNELS: dict[str, type[NamedKernel]] = {
    "additive_chi2": AdditiveChi2Kernel,
    "chi2": Chi2Kernel,
    "cosine": CosineKernel,
    "laplacian": LaplacianKernel,
    "linear": LinearKernel,
    "poly": PolynomialKernel,
    "polynomial": PolynomialKernel,
    "rbf": RBFKernel,
    "sigmoid": SigmoidKernel,
}


def _l1_distances(X: Array, Y: Array) -> Array:
    return _in_stacks(manhattan_distances, X, Y)


def chi2_sums(X: Array, Y: Array) -> Array:
    """Return sum_i (x_i - y_i)^2 / (x_i + y_i) for all pairs of rows, 0/0 = 0."""
    return np.negative(_in_stacks(additive_chi2_kernel, X, Y.astype(X.dtype, copy=False)))


def _wide(rows: Array) -> Array:
    """Return rows in float64: distances and angles are differences of large numbers."""
    return rows.astype(np.float64, copy=False)


def _unit(rows: Array) -> Array:
    """Return rows over their norms; zero rows stay."""
    norms = np.sqrt(np.vecdot(rows, rows))[..., None]
    return rows / np.where(norms > 0, norms, 1)


def _power(base: Array, degree: float) -> Array:
    """Return base^degree, overwriting base; whole degrees by squaring, far faster than pow."""
    if not (float(degree).is_integer() and 0 < degree <= 32):
        return np.asarray(base**degree)
    exponent = int(degree)
    while exponent % 2 == 0:
        np.multiply(base, base, out=base)
        exponent //= 2
    if exponent == 1:
        return base
    result = base.copy()
    while exponent > 1:
        np.multiply(base, base, out=base)
        exponent //= 2
        if exponent % 2:
            np.multiply(result, base, out=result)
    return result
