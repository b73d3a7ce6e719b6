"""The sums over rows that a quadratic dictionary update needs.

With codes W (rows: signals) and signals X,

    |X - W D|^2 = energy - 2 <cross, D> + <gram D, D>,   gram = W'W,   cross = W'X,

so the best dictionary and its objective follow from sums that add up over blocks, files or
machines.

See docs/decisions/042-blocks-and-sums.md.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes
from kernelatoms.engine import Array, machine


@dataclass(frozen=True)
class Moments:
    """W'W, W'X, |X|^2 and |W|_1 of signals X coded as W, in float64."""

    gram: Array
    cross: Array
    energy: float
    l1_norm: float = 0.0

    @classmethod
    def of(cls, X: Array, codes: Codes) -> "Moments":
        """Return the sums over these rows."""
        W = codes.to_csr()
        gram, cross = machine(X).sum_products(W.indptr, W.indices, W.data, X, codes.n_atoms)
        return cls(
            gram=gram,
            cross=cross,
            energy=float(machine(X).squared_norms(X).sum()),
            l1_norm=codes.l1_norm(),
        )

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(
            self.gram + other.gram, self.cross + other.cross, self.energy + other.energy,
            self.l1_norm + other.l1_norm,
        )  # fmt: skip

    def scaled(self, factor: float) -> "Moments":
        """Return the sums with every row weighted by ``factor``."""
        return Moments(
            factor * self.gram, factor * self.cross, factor * self.energy, factor * self.l1_norm
        )

    def with_atoms_scaled(self, factors: Array) -> "Moments":
        """Return the sums for atoms divided, and so coefficients multiplied, by ``factors``."""
        return Moments(
            factors[:, None] * self.gram * factors, factors[:, None] * self.cross, self.energy,
            self.l1_norm,
        )  # fmt: skip

    def in_coordinates(self, change: Array) -> "Moments":
        """Return the sums in other coordinates, with signals multiplied by ``change``.

        The energy does not change: the objective is the distance from the original signals.
        """
        return replace(self, cross=self.cross @ change.astype(np.float64, copy=False))

    def without(self, atoms: NDArray[np.intp]) -> "Moments":
        """Return the sums without any use of these atoms."""
        gram, cross = self.gram.copy(), self.cross.copy()
        gram[atoms], cross[atoms] = 0, 0
        gram[:, atoms] = 0
        return Moments(gram, cross, self.energy, self.l1_norm)

    def padded(self, n_new: int) -> "Moments":
        """Return the sums with ``n_new`` unused atoms more, at the end."""
        return Moments(
            np.pad(self.gram, (0, n_new)), np.pad(self.cross, ((0, n_new), (0, 0))), self.energy,
            self.l1_norm,
        )  # fmt: skip

    def objective(self, dictionary: Array) -> float:
        """Return |X - W D|^2."""
        D = dictionary.astype(np.float64, copy=False)
        return float(self.energy - 2.0 * np.vdot(self.cross, D) + np.vdot(self.gram @ D, D))
