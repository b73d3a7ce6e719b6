"""MOD, the method of optimal directions: the best dictionary for given codes, from sums over rows.

With greedy codes, D = argmin |X - W D|^2 = (W'W)^-1 W'X      (eqs. (3)-(4) of the LKDL paper)

scaled to unit norm. With l1 codes longer atoms would make codes smaller and evade the penalty: then
D is the minimum under |d_k| <= 1, by block coordinate descent (Mairal et al. 2010, Algorithm 2).
Batches of it are online dictionary learning.

See docs/decisions/034-online-learning.md.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes, PaddedCodes
from kernelatoms.coding.pursuits import OMP, Lasso
from kernelatoms.engine import Array, machine
from kernelatoms.features.linear_algebra import solve_positive_all
from kernelatoms.learning.loop import UpdateResult
from kernelatoms.learning.moments import Moments
from kernelatoms.learning.state import LearnerState, unit_rows

# Sweeps of block coordinate descent: with all rows, and after a batch, where sums are partly of old
# codes and the last atoms are a good start.
_SWEEPS, _SWEEPS_A_BATCH = 20, 2
# An atom that keeps no more than this share of its norm in other coordinates is only rounding.
_LOST = 1e-6


class AdditiveUpdate:
    """The base of updates from moments: ``accumulate``, add, ``solve``."""

    def accumulate(self, rows: Array, codes: Codes) -> Moments:
        """Return the sums over these rows; those of several blocks add up."""
        return Moments.of(rows, codes)

    def take_batch(
        self, rows: Array, codes: Codes, dictionary: Array, past: Moments | None, decay: float
    ) -> UpdateResult:
        """Improve a dictionary by a batch and the sums of earlier ones."""
        sums = self.accumulate(rows, codes)
        sums = sums if past is None else past.scaled(decay) + sums
        return self.from_sums(sums, codes, dictionary)

    def from_sums(self, sums: Moments, codes: Codes, dictionary: Array) -> UpdateResult:
        """Improve a dictionary by sums over batches; ``codes`` are those of the last one."""
        raise NotImplementedError

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


class LeastSquares(AdditiveUpdate):
    """Replace all atoms by the best ones for greedy codes, at unit norm."""

    accepts: tuple[type, ...] = (OMP,)

    def apply(self, rows: Array, codes: Codes, dictionary: Array) -> UpdateResult:
        """Improve a dictionary, all rows and their codes at hand."""
        return self.apply_all([(rows, codes, dictionary)])[0]

    def apply_all(self, given: list[tuple[Array, Codes, Array]]) -> list[UpdateResult]:
        """Improve many dictionaries, each with its rows and codes: small systems together."""
        sums = [self.accumulate(rows, codes) for rows, codes, _ in given]
        best = best_dictionaries(sums, [dictionary for *_, dictionary in given])
        return [
            _rescaled(rows, codes, *found)
            for (rows, codes, _), found in zip(given, best, strict=True)
        ]

    def from_sums(self, sums: Moments, codes: Codes, dictionary: Array) -> UpdateResult:
        """Return the solution of least squares."""
        new, _, sums = best_dictionaries([sums], [dictionary])[0]
        return UpdateResult(new, codes, sums.objective(new), sums)


class BlockDescent(AdditiveUpdate):
    """Improve one atom after another for l1 codes, none longer than 1."""

    accepts: tuple[type, ...] = (Lasso,)

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def apply(self, rows: Array, codes: Codes, dictionary: Array) -> UpdateResult:
        """Improve a dictionary, all rows and their codes at hand."""
        sums = self.accumulate(rows, codes)
        new = self.solve(sums, dictionary, _SWEEPS)
        R = rows - codes.to_csr() @ new
        codes = replace(codes, error=machine(rows).squared_norms(R))
        squares = float(codes.error.sum())
        return UpdateResult(new, codes, 0.5 * squares + self.alpha * codes.l1_norm(), sums)

    def from_sums(self, sums: Moments, codes: Codes, dictionary: Array) -> UpdateResult:
        """Return better atoms."""
        new = self.solve(sums, dictionary, _SWEEPS_A_BATCH)
        objective = 0.5 * sums.objective(new) + self.alpha * sums.l1_norm
        return UpdateResult(new, codes, objective, sums)

    def _lengths(self, norms: Array) -> Array:
        return np.maximum(norms, 1.0)  # none longer than 1

    def solve(self, sums: Moments, dictionary: Array, n_sweeps: int) -> Array:
        """Return better atoms for the sums; unused ones do not change."""
        new = dictionary.copy()
        machine(new).descend_atoms(sums.gram, sums.cross, new, n_sweeps)
        return new


def _rescaled(rows: Array, codes: Codes, new: Array, norms: Array, sums: Moments) -> UpdateResult:
    """Return new atoms, with codes rescaled by the norms that the atoms had."""
    assert isinstance(codes, PaddedCodes)
    values = (codes.values * norms[codes.indices]).astype(codes.values.dtype)
    # From the rows themselves: a small difference of large sums would be rounding.
    R = machine(rows).residuals(rows, new, codes.indices, values)
    codes = replace(codes, values=values, error=machine(rows).squared_norms(R))
    return UpdateResult(new, codes, float(codes.error.sum()), sums)


def best_dictionaries(
    sums: list[Moments], dictionaries: list[Array]
) -> list[tuple[Array, Array, Moments]]:
    """Return dictionaries of least squares at unit norm, the norms they had, and rescaled sums."""
    used = [np.diagonal(moments.gram) > 0 for moments in sums]
    some = [i for i, atoms in enumerate(used) if atoms.any()]
    # At unit diagonal an atom with small coefficients weighs as much as any other: the solver's
    # rank decision is then about directions and not about sizes.
    sizes = {i: np.sqrt(np.diagonal(sums[i].gram)[used[i]]) for i in some}
    solutions = solve_positive_all(
        [sums[i].gram[np.ix_(used[i], used[i])] / sizes[i] / sizes[i][:, None] for i in some],
        [sums[i].cross[used[i]] / sizes[i][:, None] for i in some],
    )
    candidates = {
        i: solution / sizes[i][:, None] for i, solution in zip(some, solutions, strict=True)
    }
    return [
        _better(moments, dictionary, used[i], candidates.get(i))
        for i, (moments, dictionary) in enumerate(zip(sums, dictionaries, strict=True))
    ]


def _better(
    moments: Moments, dictionary: Array, used: NDArray[np.bool_], solution: Array | None
) -> tuple[Array, Array, Moments]:
    """Return the solution for the atoms in use where it is better, at unit norm."""
    D = dictionary.astype(np.float64)
    if solution is not None:  # unused atoms do not change, nor do all if rounding makes it worse
        candidate = D.copy()
        candidate[used] = np.where(solution.any(axis=1, keepdims=True), solution, D[used])
        if moments.objective(candidate) <= moments.objective(D):
            D = candidate
    norms = np.linalg.norm(D, axis=1)
    norms[norms == 0] = 1.0
    return (D / norms[:, None]).astype(dictionary.dtype), norms, moments.with_atoms_scaled(norms)
