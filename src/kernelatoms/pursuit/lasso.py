"""l1 coding over any coding problem, with a certificate.

    min 1/2 |x - D w|^2 + alpha |w|_1                       (eq. (6) of the FKSC paper)

to a duality gap that is returned: no other code is better by more than that.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.lasso import solve_lasso, solve_lasso_among
from kernelatoms.pursuit.l1 import code_blocks
from kernelatoms.space.codes import Codes
from kernelatoms.space.problem import CodingProblem

Array = NDArray[Any]

# From so many active atoms on, coordinate descent goes on where the active set stopped: the factor
# of a larger one costs more than passes over the atoms that screening leaves, unless these are
# very many passes.
_MOST_ACTIVE, _MOST_ACTIVE_AT_ALL = 256, 2048
_MOST_PASSES = 100_000
# What is left of an atom below this share counts as spanned by the active ones.
_ROUNDING = 1e-11


def lasso(
    problem: CodingProblem,
    alpha: float,
    *,
    positive: bool = False,
    gap_tol: float = 1e-6,
    start: Array | None = None,
    candidates: NDArray[np.int32] | None = None,
) -> Codes:
    """Code all signals of a problem; computed in float64.

    Parameters
    ----------
    problem : CodingProblem
        Signals and atoms; energies must be known.
    alpha : float
        Weight of |w|_1, above 0.
    positive : bool
        Allow no negative coefficients.
    gap_tol : float
        Stop at a duality gap of this share of k(x, x).
    start : array of shape (n_signals, n_atoms), optional
        Codes to start from, such as those of a slightly different dictionary or alpha.
    candidates : int32 array of shape (n_signals, n_candidates), optional
        The atoms that each signal may use; -1 pads shorter lists.

    Returns
    -------
    Codes
        With ``gap``: at most ``gap_tol`` of the energy, unless coordinate descent ran out of
        passes.
    """
    most = (_MOST_ACTIVE, _MOST_ACTIVE_AT_ALL)

    limits = (float(alpha), positive, gap_tol, most, _ROUNDING, _MOST_PASSES)

    def solve(gram: Array, b: Array, energy: Array, w: Array, first: int, stop: int) -> None:
        if positive:
            np.maximum(w, 0.0, out=w)
        if candidates is None:
            solve_lasso(gram, b, energy, *limits, w)
        else:
            solve_lasso_among(gram, b, energy, *limits, candidates[first:stop], w)

    return code_blocks(problem, alpha, positive, start, solve, candidates=candidates)


def lasso_path(
    problem: CodingProblem,
    alphas: Sequence[float],
    *,
    positive: bool = False,
    gap_tol: float = 1e-6,
) -> list[Codes]:
    """Code all signals at every alpha, largest first, each from the codes of the one before.

    Parameters
    ----------
    problem : CodingProblem
        Signals and atoms; energies must be known.
    alphas : list of float
        Weights of |w|_1, above 0, in any order.
    positive : bool
        Allow no negative coefficients.
    gap_tol : float
        Stop at a duality gap of this share of k(x, x).

    Returns
    -------
    list of Codes
        In the order of ``alphas``.
    """
    found: dict[float, Codes] = {}
    start = None
    for alpha in sorted(set(alphas), reverse=True):
        found[alpha] = lasso(problem, alpha, positive=positive, gap_tol=gap_tol, start=start)
        start = found[alpha].to_dense()
    return [found[alpha] for alpha in alphas]
