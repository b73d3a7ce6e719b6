"""Kernels of inner products and angles: linear, poly, sigmoid, cosine; what all by name share."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelatoms.engine import Array, machine
from kernelatoms.similarity.base import Kernel, check_number
from kernelatoms.similarity.gammas import check_gamma, gamma_by_norms
from kernelatoms.similarity.gradients import PolynomialInversion, Slopes
from kernelatoms.similarity.missing import cosine_from_parts, energy_from_parts, inner_from_parts

Gamma = float | str | None


class NamedKernel(Kernel):
    """A kernel by name: its values need no check, its parameters one."""

    _name = ""
    _own = True
    takes_stacks = True
    exact_in_float64 = True

    def __post_init__(self) -> None:
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
        if self._is_far(X):
            return self.of_inner(in_float64(X) @ in_float64(Y).mT, X.shape[-1]).astype(X.dtype)
        return self.of_inner(X @ Y.mT, X.shape[-1])

    def _diag(self, X: Array) -> Array:
        if self._is_far(X):
            wide = in_float64(X)
            return self.of_inner(np.vecdot(wide, wide), X.shape[-1]).astype(X.dtype)
        return self.of_inner(np.vecdot(X, X), X.shape[-1])

    def _is_far(self, X: Array) -> bool:
        """Whether gamma makes up for float32 rows whose inner products need not be numbers."""
        if not self.has_gamma or X.dtype == np.float64:
            return False
        return not 2.0**-40 < self.gamma_for(X.shape[-1]) < 2.0**40

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
    gamma : float, "scale", "auto", "spread" or None
        None is 1 / n_features.
    degree, coef0 : float
        The degree and the constant.

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
    gamma : float, "scale", "auto", "spread" or None
        None is 1 / n_features; "scale" is 1 over the mean squared norm of rows.
    coef0 : float
        The constant.
    """

    gamma: Gamma = None
    coef0: float = 1
    _name = "sigmoid"

    def of_inner(self, inner: Array, n_features: int) -> Array:
        """Return tanh(gamma inner + coef0), in place where that can be."""
        inner[np.isinf(inner)] = np.nan  # their signs are lost, which tanh would hide
        inner *= self.gamma_for(n_features)
        inner += float(self.coef0)
        return np.tanh(inner)

    def scale_gamma(self, X: Array) -> float:
        """Return 1 over the mean squared norm of rows; for rows of mean 0 as in ``SVC``.

        For other rows the variance is not the size of inner products, and values would be 1.
        """
        return gamma_by_norms(X)

    def slopes(self, X: Array, Y: Array) -> Slopes:
        """Return a = gamma (1 - k^2), b = 0."""
        K = self.values(X, Y)
        return Slopes(K, self.gamma_for(X.shape[1]) * (1 - K * K), None)


@dataclass(frozen=True)
class CosineKernel(NamedKernel):
    """k(x, y) = x'y / (|x| |y|), 0 where a row is 0."""

    _name = "cosine"
    semidefinite = True
    bounded = True

    def values(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all pairs of rows, also in stacks."""
        unit_rows = machine(X).unit_rows
        return unit_rows(X) @ unit_rows(Y.astype(X.dtype, copy=False)).mT

    def _diag(self, X: Array) -> Array:
        return X.any(axis=-1).astype(X.dtype)

    def values_from_parts(self, X: Array, Y: Array) -> Array:
        """Estimate k(x, y) of rows x with missing values by the angle on observed entries."""
        return cosine_from_parts(in_float64(X), in_float64(Y)).astype(X.dtype, copy=False)

    def diag_from_parts(self, X: Array) -> Array:
        """Return 1 for rows that are not 0 where they are known."""
        return (energy_from_parts(in_float64(X)) > 0).astype(X.dtype)

    def slopes(self, X: Array, Y: Array) -> Slopes:
        """Return a = 1 / (|x| |y|), b = -k / |y|^2; 0 for zero rows, which have no angle."""
        K = self.values(X, Y)
        x, y = (np.linalg.norm(rows, axis=1) for rows in (X, Y))
        inverse = np.divide(1, y, out=np.zeros_like(y), where=y > 0)
        lengths = np.divide(1, x, out=np.zeros_like(x), where=x > 0)
        return Slopes(K, lengths[:, None] * inverse, -K * inverse**2)

    def exact_preimage(self, weights: Any, rows: Array) -> Array:
        """Return weighted sums of unit rows: exact but for the length, which k does not see."""
        return np.asarray(weights @ machine(rows).unit_rows(rows))


def in_float64(rows: Array) -> Array:
    """Return rows in float64: distances and angles are differences of large numbers."""
    return rows.astype(np.float64, copy=False)


def _power(base: Array, degree: float) -> Array:
    """Return base^degree, overwriting base; whole degrees by squaring, far faster than pow."""
    if not (float(degree).is_integer() and 0 < degree <= 32):
        return np.asarray(base**degree, like=base)
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
