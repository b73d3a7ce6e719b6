"""A pursuit with its parameters chosen: what a learner codes with, pass after pass.

A choice is called with a problem and returns codes; ``objective`` is what it minimises, of codes
that it gave. Learners keep flat parameters and build a choice from them.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kernelatoms.pursuit.lasso import lasso
from kernelatoms.pursuit.omp import omp
from kernelatoms.pursuit.ridge import ridge
from kernelatoms.space.codes import Codes
from kernelatoms.space.problem import CodingProblem


class Pursuit(Protocol):
    """A way to code signals, its parameters bound."""

    def __call__(self, problem: CodingProblem) -> Codes:
        """Return the codes of all signals."""

    def objective(self, codes: Codes) -> float:
        """Return what the pursuit minimises, summed over all signals."""


@dataclass(frozen=True)
class OMP:
    """Greedy codes of at most ``n_nonzero`` atoms; the objective is the squared error."""

    n_nonzero: int
    selection: str = "omp"
    positive: bool = False

    def __call__(self, problem: CodingProblem) -> Codes:
        """Return the codes of all signals."""
        return omp(problem, self.n_nonzero, selection=self.selection, positive=self.positive)

    def objective(self, codes: Codes) -> float:
        """Return the sum of |x - D w|^2."""
        return float(np.sum(codes.error, dtype=np.float64))


@dataclass(frozen=True)
class Lasso:
    """l1 codes; the objective is half the squared error plus ``alpha`` times the l1 norm."""

    alpha: float
    positive: bool = False
    gap_tol: float = 1e-6

    def __call__(self, problem: CodingProblem) -> Codes:
        """Return the codes of all signals."""
        return lasso(problem, self.alpha, positive=self.positive, gap_tol=self.gap_tol)

    def objective(self, codes: Codes) -> float:
        """Return the sum of half of |x - D w|^2 plus alpha |w|_1."""
        return 0.5 * float(np.sum(codes.error, dtype=np.float64)) + self.alpha * codes.l1_norm()


@dataclass(frozen=True)
class Ridge:
    """Dense codes; the objective is half the squared error plus ``mu`` / 2 times |w|^2."""

    mu: float

    def __call__(self, problem: CodingProblem) -> Codes:
        """Return the codes of all signals."""
        return ridge(problem, self.mu)

    def objective(self, codes: Codes) -> float:
        """Return the sum of half of |x - D w|^2 plus mu / 2 |w|^2."""
        weights = codes.to_dense()
        energy = float(np.vdot(weights, weights))
        return 0.5 * (float(np.sum(codes.error, dtype=np.float64)) + self.mu * energy)
