"""The Cauchy kernel 1 / (1 + gamma |x - y|^2): heavier tails than RBF."""

from dataclasses import dataclass

import numpy as np

from kernelatoms.similarity import Kernel, Slopes


@dataclass(frozen=True)
class Cauchy(Kernel):
    """All that a kernel can know of itself, but the way back."""

    gamma: float | str | None = None
    semidefinite = True
    bounded = True

    def values(self, X, Y):
        """Return k(x, y) for all pairs of rows."""
        squares = np.vecdot(X, X)[:, None] + np.vecdot(Y, Y) - 2 * X @ Y.T
        return self._of(squares, X)

    def diag(self, X):
        """Return k(x, x) = 1."""
        return np.ones(len(X))

    def slopes(self, X, Y):
        """Return k and the factors of x and y in its gradient, 2 gamma k^2 (x - y)."""
        K = self.values(X, Y)
        along = 2 * self.gamma_for(X.shape[1]) * K**2
        return Slopes(K, along, -along)

    def values_from_parts(self, X, Y):
        """Scale the distance on the observed entries up to all of them."""
        seen = ~np.isnan(X)
        filled = np.where(seen, X, 0)
        squares = np.vecdot(filled, filled)[:, None] + seen @ np.square(Y).T - 2 * filled @ Y.T
        return self._of(squares / seen.mean(axis=1)[:, None], X)

    def diag_from_parts(self, X):
        """Return 1, whatever is missing."""
        return np.ones(len(X))

    def what_gamma_multiplies(self, X, Y):
        """Return squared distances: a search for gamma begins with their typical size."""
        return np.square(X - Y).sum(axis=1)

    def _of(self, squares, X):
        return 1 / (1 + self.gamma_for(X.shape[1]) * np.maximum(squares, 0))
