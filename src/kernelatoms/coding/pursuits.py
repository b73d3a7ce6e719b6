"""Pursuits with their parameters chosen: what learners code with in every pass.

An update names the pursuits from whose codes it can learn.

See docs/decisions/019-kernel-blind-pursuits.md.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.closed_form import ridge, threshold
from kernelatoms.coding.codes import Codes, RaggedCodes
from kernelatoms.coding.lasso import ksc, lasso
from kernelatoms.coding.neighbors import ascending, nearest_in_space
from kernelatoms.coding.omp import omp
from kernelatoms.coding.problem import CodingProblem

#: Atoms that each signal may use, (n_signals, K), ascending, padded with -1; None for all.
Candidates = NDArray[np.int32] | None


class Pursuit(Protocol):
    """A way to code signals, with its parameters: called with a problem, it returns codes."""

    def __call__(self, problem: CodingProblem, candidates: Candidates = None) -> Codes:
        """Return the codes of all signals, over all atoms or over candidates (n, K) per signal."""


@dataclass(frozen=True)
class OMP:
    """Greedy codes.

    Parameters
    ----------
    n_nonzero : int
        The most atoms a signal may use.
    selection : {"omp", "ols"}
        Pick the atom of largest correlation, or of largest residual decrease.
    positive : bool
        Allow no negative coefficients.
    max_residual : float or None
        Stop earlier, once |residual| is no more than this.
    sparing : bool
        Code signals that miss values for learning: see ``omp``.
    """

    n_nonzero: int
    selection: str = "omp"
    positive: bool = False
    max_residual: float | None = None
    sparing: bool = False

    def __call__(self, problem: CodingProblem, candidates: Candidates = None) -> Codes:
        """Return the codes of all signals, padded."""
        codes = omp(
            problem, self.n_nonzero, selection=self.selection, positive=self.positive,
            candidates=candidates, max_residual=self.max_residual,
            absolute=self.max_residual is not None, sparing=self.sparing,
        )  # fmt: skip
        return codes.to_padded() if isinstance(codes, RaggedCodes) else codes


@dataclass(frozen=True)
class Lasso:
    """l1 codes.

    Parameters
    ----------
    alpha : float
        Weight of |w|_1.
    positive : bool
        Allow no negative coefficients.
    gap_tol : float
        The duality gap to reach, as a share of k(x, x).
    """

    alpha: float
    positive: bool = False
    gap_tol: float = 1e-6

    def __call__(self, problem: CodingProblem, candidates: Candidates = None) -> Codes:
        """Return the codes of all signals."""
        return lasso(
            problem, self.alpha, positive=self.positive, gap_tol=self.gap_tol,
            candidates=candidates,
        )  # fmt: skip


@dataclass(frozen=True)
class KSC:
    """l1 codes as the FKSC paper publishes them: cyclic coordinate descent.

    In one stage ("ksc"), or in two ("fksc", Algorithm 2). With ``change_tol``, the paper's stop: a
    pass changes w by no more than this share of its norm, or 100 passes are done; None for a
    duality gap.
    """

    alpha: float
    method: str = "fksc"
    change_tol: float | None = None

    def __call__(self, problem: CodingProblem, candidates: Candidates = None) -> Codes:
        """Return the codes of all signals; over all atoms only."""
        if candidates is not None:
            raise ValueError(
                f"method={self.method!r} codes over all atoms and takes no n_neighbors; use "
                "method='lasso'."
            )
        if self.method not in ("ksc", "fksc"):
            raise ValueError(f"method must be one of 'ksc', 'fksc', got {self.method!r}.")
        two_stages = self.method == "fksc"
        return ksc(problem, self.alpha, change_tol=self.change_tol, two_stages=two_stages)


@dataclass(frozen=True)
class Ridge:
    """Dense codes, ``mu`` the weight of |w|^2 / 2."""

    mu: float

    def __call__(self, problem: CodingProblem, candidates: Candidates = None) -> Codes:
        """Return the codes of all signals."""
        return ridge(problem, self.mu, candidates=candidates)


@dataclass(frozen=True)
class Threshold:
    """Inner products with the atoms, drawn towards 0 by ``alpha``: see ``threshold``."""

    alpha: float
    positive: bool = False

    def __call__(self, problem: CodingProblem, candidates: Candidates = None) -> Codes:
        """Return the codes of all signals."""
        return threshold(problem, self.alpha, positive=self.positive, candidates=candidates)


def code_over_nearest(pursuit: Pursuit, problem: CodingProblem, n_neighbors: int | None) -> Codes:
    """Code every signal over its K nearest atoms (Alg. 3 of the KCRC-LCD paper); None for all."""
    if n_neighbors is None or n_neighbors >= problem.n_atoms:
        return pursuit(problem)
    return pursuit(problem, ascending(nearest_in_space(problem, n_neighbors)))
