"""The sums over rows that a quadratic dictionary update needs.

With codes W (rows: signals) and signals X,

    |X - W D|^2 = energy - 2 <cross, D> + <gram D, D>,   gram = W'W,   cross = W'X,

so the best dictionary and its objective follow from two small matrices and a number. They add
up: over blocks, mini-batches, files or machines.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.space.codes import Codes

Array = NDArray[Any]


@dataclass(frozen=True)
class Moments:
    """W'W, W'X and |X|^2 of signals X coded as W, in float64."""

    gram: Array
    cross: Array
    energy: float

    @classmethod
    def of(cls, X: Array, codes: Codes) -> "Moments":
        """Return the sums over these rows."""
        W = codes.to_csr().astype(np.float64)
        return cls(
            gram=(W.T @ W).toarray(),
            cross=np.asarray(W.T @ X),
            energy=float(np.vecdot(X, X).sum(dtype=np.float64)),
        )

    def __add__(self, other: "Moments") -> "Moments":
        """Return the sums over both sets of rows."""
        return Moments(self.gram + other.gram, self.cross + other.cross, self.energy + other.energy)

    def scaled(self, factor: float) -> "Moments":
        """Return the sums with every row weighted by ``factor``, to forget the past slowly."""
        return Moments(factor * self.gram, factor * self.cross, factor * self.energy)

    def with_atoms_scaled(self, factors: Array) -> "Moments":
        """Return the sums for atoms divided, and so coefficients multiplied, by ``factors``."""
        return Moments(
            factors[:, None] * self.gram * factors, factors[:, None] * self.cross, self.energy
        )

    def objective(self, dictionary: Array) -> float:
        """Return |X - W D|^2."""
        D = dictionary.astype(np.float64, copy=False)
        return float(self.energy - 2.0 * np.vdot(self.cross, D) + np.vdot(self.gram @ D, D))
