"""Alternate coding and updating until the objective |X - W D|^2 settles.

Neither half may raise the objective. The updates cannot; a greedy pursuit can, for a signal
whose old atoms served better than the newly picked ones, so such a signal keeps its old atoms.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.ksvd import residuals
from kernelatoms.pursuit import omp
from kernelatoms.space.codes import Codes
from kernelatoms.space.problem import LinearProblem

Array = NDArray[Any]
Update = Callable[[Array, Array, Codes], tuple[Array, Codes]]


class Watch(Protocol):
    """Somebody who follows the passes: progress bars, early stopping."""

    def begin_pass(self) -> None:
        """Be told that a pass starts."""

    def end_pass(self, dictionary: Array, objective: list[float]) -> bool:
        """Be told what a pass reached; answer True to stop."""


@dataclass(frozen=True)
class Learned:
    """What a loop returns: the dictionary and the objective after every pass."""

    dictionary: Array
    objective: Array


def learn(
    X: Array,
    dictionary: Array,
    n_nonzero: int,
    update: Update,
    *,
    max_iter: int,
    tol: float,
    watch: Watch | None = None,
) -> Learned:
    """Improve a dictionary for rows X, ``n_nonzero`` atoms a row.

    Stops after ``max_iter`` passes, when a pass lowers the objective by less than ``tol`` of
    itself, or when ``watch`` says so.
    """
    codes: Codes | None = None
    objective: list[float] = []
    for _ in range(max_iter):
        if watch is not None:
            watch.begin_pass()
        codes = code_no_worse(X, dictionary, n_nonzero, codes)
        dictionary, codes = update(X, dictionary, codes)
        objective.append(float(np.sum(codes.error, dtype=np.float64)))
        if watch is not None and watch.end_pass(dictionary, objective):
            break
        if len(objective) > 1 and objective[-2] - objective[-1] <= tol * objective[-2]:
            break
    return Learned(dictionary, np.array(objective))


def code_no_worse(X: Array, dictionary: Array, n_nonzero: int, old: Codes | None) -> Codes:
    """Code all rows; where the old code is better, keep it, refitted to its own atoms."""
    problem = LinearProblem(X, dictionary)
    codes = _with_exact_error(X, dictionary, omp(problem, n_nonzero))
    if old is None:
        return codes
    worse = codes.error > old.error
    if worse.any():
        kept = old.rows(worse)
        refitted = omp(problem.rows(worse), kept.indices.shape[1], candidates=kept.indices)
        refitted = _with_exact_error(X[worse], dictionary, refitted)
        better = refitted.error < kept.error
        kept.replace(better, refitted.rows(better))
        codes.replace(worse, kept)
    return codes


def _with_exact_error(X: Array, dictionary: Array, codes: Codes) -> Codes:
    """Measure the residuals themselves: |x|^2 less the explained energy cancels digits."""
    R = residuals(X, dictionary, codes.indices, codes.values)
    return Codes(codes.indices, codes.values, codes.n_atoms, np.vecdot(R, R))
