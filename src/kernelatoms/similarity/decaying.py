"""Kernels of distances: rbf, laplacian and chi2, which decay with one, and additive_chi2."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelatoms.engine import Array, machine
from kernelatoms.similarity.base import Kernel
from kernelatoms.similarity.gammas import gamma_by_mean
from kernelatoms.similarity.gradients import (
    GaussianInversion,
    Slopes,
    gradient_of_signs,
    weighted_values,
)
from kernelatoms.similarity.inner import Gamma, NamedKernel, in_float64
from kernelatoms.similarity.missing import l1_distances_from_parts, squared_distances_from_parts


def squared_distances(X: Array, Y: Array) -> Array:
    """Return |x - y|^2 for all pairs, also in stacks: differences of large numbers, in float64."""
    same = X is Y
    X, Y = in_float64(X), in_float64(Y)
    with np.errstate(over="ignore", invalid="ignore"):
        D = X @ Y.mT
        D *= -2
        ours, others = np.vecdot(X, X), np.vecdot(Y, Y)
    if not (np.isfinite(ours).all() and np.isfinite(others).all()):
        raise ValueError("The squared norms of rows overflow float64; scale them down.")
    D += ours[..., None]
    D += others[..., None, :]
    np.maximum(D, 0, out=D)
    if same:
        each = np.arange(X.shape[-2])
        D[..., each, each] = 0  # without rounding
    return D


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
        # Times gamma before they are rounded: distances of float32 rows may be no float32 numbers.
        scaled = distances
        if distances.dtype != X.dtype:
            scaled = np.empty(distances.shape, X.dtype, like=X)
        with np.errstate(over="ignore", under="ignore"):
            np.multiply(distances, -self.gamma_for(X.shape[-1]), out=scaled, casting="same_kind")
            return np.exp(scaled, out=scaled)

    def _diag(self, X: Array) -> Array:
        return np.ones(X.shape[:-1], X.dtype, like=X)

    def diag_from_parts(self, X: Array) -> Array:
        """Return 1 for every row."""
        return self._diag(X)

    def scale_gamma(self, X: Array) -> float:
        """Return 1 over the mean distance of rows: gamma multiplies no squares."""
        return gamma_by_mean(self._mean_size(X))


@dataclass(frozen=True)
class RBFKernel(DecayingKernel):
    """k(x, y) = exp(-gamma |x - y|^2).

    Parameters
    ----------
    gamma : float, "scale", "auto", "spread" or None
        None is 1 / n_features.
    """

    _name = "rbf"

    def distances(self, X: Array, Y: Array) -> Array:
        """Return squared distances."""
        return squared_distances(X, Y)

    def values_from_parts(self, X: Array, Y: Array) -> Array:
        """Estimate k(x, y) of rows x with missing values from distances on observed entries."""
        return self._decay(squared_distances_from_parts(in_float64(X), in_float64(Y)), X)

    def slopes(self, X: Array, Y: Array) -> Slopes:
        """Return a = -b = 2 gamma k."""
        K = self.values(X, Y)
        factor = 2 * self.gamma_for(X.shape[1]) * K
        return Slopes(K, factor, -factor)

    def inversion(self, n_features: int) -> GaussianInversion:
        """Return how it depends on a row."""
        return GaussianInversion(self.gamma_for(n_features))

    scale_gamma = Kernel.scale_gamma  # by the variance: gamma multiplies squares

    def what_gamma_multiplies(self, X: Array, Y: Array) -> Array:
        """Return squared distances."""
        return np.square(X - Y).sum(axis=1)


@dataclass(frozen=True)
class LaplacianKernel(DecayingKernel):
    """k(x, y) = exp(-gamma |x - y|_1).

    Parameters
    ----------
    gamma : float, "scale", "auto", "spread" or None
        None is 1 / n_features; "scale" is 1 over the mean l1 distance of rows.
    """

    _name = "laplacian"

    def distances(self, X: Array, Y: Array) -> Array:
        """Return l1 distances."""
        return machine(X).l1_distances(X, Y)

    def values_from_parts(self, X: Array, Y: Array) -> Array:
        """Estimate k(x, y) of rows x with missing values from distances on observed entries."""
        return self._decay(l1_distances_from_parts(in_float64(X), in_float64(Y)), X)

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
        return np.abs(X - Y).sum(axis=1)


@dataclass(frozen=True)
class AdditiveChi2Kernel(NamedKernel):
    """k(x, y) = -sum_i (x_i - y_i)^2 / (x_i + y_i), 0/0 = 0, for rows without negative values.

    Conditionally positive definite: k(x, x) = 0, so no feature space has these inner products.
    """

    _name = "additive_chi2"
    semidefinite = False
    bounded = True
    non_negative = True

    def values(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all pairs of rows, also in stacks."""
        return -machine(X).chi2_distances(X, Y)

    def _diag(self, X: Array) -> Array:
        return np.zeros(X.shape[:-1], X.dtype, like=X)


@dataclass(frozen=True)
class Chi2Kernel(DecayingKernel):
    """k(x, y) = exp(-gamma sum_i (x_i - y_i)^2 / (x_i + y_i)), for rows without negative values.

    Parameters
    ----------
    gamma : float, "scale", "auto", "spread" or None
        None is 1; "scale" is 1 over the mean chi-squared distance of rows.
    """

    _name = "chi2"
    non_negative = True

    def distances(self, X: Array, Y: Array) -> Array:
        """Return sum_i (x_i - y_i)^2 / (x_i + y_i)."""
        return machine(X).chi2_distances(X, Y)

    def default_gamma(self, n_features: int) -> float:
        """Return 1, whatever the features."""
        return 1.0

    def what_gamma_multiplies(self, X: Array, Y: Array) -> Array:
        """Return chi-squared distances."""
        sums, apart = X + Y, X - Y
        shares = np.divide(apart, sums, out=np.zeros_like(sums), where=sums > 0)
        return (shares * apart).sum(axis=1)
