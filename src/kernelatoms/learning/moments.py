"""The sums over rows that a quadratic dictionary update needs, and the base of such updates.

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
from kernelatoms.learning.missing import filled
from kernelatoms.learning.runs import UpdateResult
from kernelatoms.learning.state import LearnerState, unit_rows

# An atom that keeps no more than this share of its norm in other coordinates is only rounding.
_LOST = 1e-6


@dataclass(frozen=True)
class Moments:
    """W'W, W'X, |X|^2 and |W|_1 of signals X coded as W, in float64."""

    gram: Array
    cross: Array
    energy: float
    l1_norm: float = 0.0
    missing: Array | None = None  # of filled rows: sum_i |w_i|^2 [x_if is missing], (n_features,)

    @classmethod
    def of(cls, X: Array, codes: Codes, energy: float | None = None) -> "Moments":
        """Return the sums over these rows; ``energy`` is |X|^2, where it is known."""
        gram, cross = machine(X).sum_products(*codes.compressed(), X, codes.n_atoms)
        energy = float(machine(X).squared_norms(X).sum()) if energy is None else energy
        return cls(gram, cross, energy, codes.l1_norm())

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(
            self.gram + other.gram, self.cross + other.cross, self.energy + other.energy,
            self.l1_norm + other.l1_norm, _sum(self.missing, other.missing),
        )  # fmt: skip

    def __iadd__(self, other: "Moments") -> "Moments":
        """Add in the memory of these sums."""
        np.add(self.gram, other.gram, out=self.gram)
        np.add(self.cross, other.cross, out=self.cross)
        energy, l1_norm = self.energy + other.energy, self.l1_norm + other.l1_norm
        missing = _sum(self.missing, other.missing)
        return Moments(self.gram, self.cross, energy, l1_norm, missing)

    def scaled(self, factor: float) -> "Moments":
        """Return the sums with every row weighted by ``factor``."""
        return Moments(
            factor * self.gram, factor * self.cross, factor * self.energy, factor * self.l1_norm,
            None if self.missing is None else factor * self.missing,
        )  # fmt: skip

    def missing_shares(self) -> Array | None:
        """Return the share of the codes' energy for which each feature is missing."""
        total = float(np.trace(self.gram))
        return self.missing / total if self.missing is not None and total > 0 else None

    def with_atoms_scaled(self, factors: Array) -> "Moments":
        """Return the sums for atoms divided, and so coefficients multiplied, by ``factors``."""
        own = factors[:, None]
        return replace(self, gram=own * self.gram * factors, cross=own * self.cross)

    def in_coordinates(self, change: Array) -> "Moments":
        """Return the sums in other coordinates, with signals multiplied by ``change``.

        The energy does not change: the objective is the distance from the original signals.
        """
        cross = self.cross @ change.astype(np.float64, copy=False)
        return replace(self, cross=cross, missing=None)  # other features: steps are taken once

    def without(self, atoms: NDArray[np.intp]) -> "Moments":
        """Return the sums without any use of these atoms."""
        gram, cross = self.gram.copy(), self.cross.copy()
        gram[atoms], cross[atoms] = 0, 0
        gram[:, atoms] = 0
        return replace(self, gram=gram, cross=cross)

    def padded(self, n_new: int) -> "Moments":
        """Return the sums with ``n_new`` unused atoms more, at the end."""
        gram, cross = np.pad(self.gram, (0, n_new)), np.pad(self.cross, ((0, n_new), (0, 0)))
        return replace(self, gram=gram, cross=cross)

    def objective(self, dictionary: Array) -> float:
        """Return |X - W D|^2."""
        D = dictionary.astype(np.float64, copy=False)
        left = (
            self.energy - 2.0 * np.vdot(self.cross, D) + np.vdot(machine(D).times(self.gram, D), D)
        )
        return max(float(left), 0.0)  # below 0 only by rounding


def _sum(one: Array | None, other: Array | None) -> Array | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


class UpdateFromMoments:
    """The base of updates from moments: ``sums``, add, ``solve``."""

    def sums(self, rows: Array, codes: Codes, dictionary: Array) -> Moments:
        """Return the sums over these rows; those of several blocks add up.

        Missing values are filled by the codes over the dictionary (``missing``).
        """
        energy = float(machine(rows).squared_norms(rows).sum())
        if not np.isnan(energy):
            return Moments.of(rows, codes, energy)
        rows, missing = filled(rows, codes, dictionary)
        return replace(Moments.of(rows, codes), missing=missing)

    def solve(self, sums: Moments, dictionary: Array) -> UpdateResult:
        """Improve the dictionary whose codes were summed up over all rows."""
        raise NotImplementedError

    def take_batch(
        self, rows: Array, codes: Codes, dictionary: Array, past: Moments | None, decay: float
    ) -> UpdateResult:
        """Improve a dictionary by a batch and the sums of earlier ones."""
        return self.add_batch(self.sums(rows, codes, dictionary), dictionary, past, decay)

    def add_batch(
        self, sums: Moments, dictionary: Array, past: Moments | None, decay: float
    ) -> UpdateResult:
        """Improve a dictionary by the sums of a batch and those of earlier ones."""
        return self.solve(sums if past is None else past.scaled(decay) + sums, dictionary)

    def clear_atoms(self, sums: Moments, atoms: NDArray[np.intp]) -> Moments:
        """Return the sums without these atoms."""
        return sums.without(atoms) if len(atoms) else sums

    def padded(self, sums: Moments, n_new: int) -> Moments:
        """Return the sums with ``n_new`` unused atoms more."""
        return sums.padded(n_new)

    def new_atoms(self, rows: Array) -> Array | None:
        """Return rows at unit norm."""
        return unit_rows(rows)

    def change_coordinates(self, state: LearnerState, change: Array) -> None:
        """Change the coordinates of atoms and sums: vectors are multiplied by ``change``.

        Atoms that shrink are scaled back to unit norm, and coefficients accordingly; those that are
        only rounding become 0, and count as unused.
        """
        change = change.astype(np.float64, copy=False)
        D = state.best.astype(np.float64, copy=False)
        moved = D @ change
        before, after = (np.sqrt(np.vecdot(atoms, atoms)) for atoms in (D, moved))
        lost = np.flatnonzero(after <= _LOST * before)
        moved[lost] = 0
        factors = self._lengths(after)
        factors[lost] = 1
        sums = state.sums
        if sums is not None:
            sums = sums.in_coordinates(change).without(lost).with_atoms_scaled(factors)
        dictionary = (moved / factors[:, None]).astype(state.best.dtype)
        state.change_coordinates(dictionary, sums, lost)

    def _lengths(self, norms: Array) -> Array:
        """Return the divisors of atoms with these norms: the norms."""
        return norms.copy()
