"""Alternate coding and updating, and keep the best dictionary met: min |X - W D|^2.

An update cannot raise the objective; a greedy pursuit can, because newly picked atoms may serve a
signal worse than its old ones. Keeping old codes where they are better would rule that out, but
it ties the dictionary to stale codes: on USPS the codes of the result are then 10 to 20% worse
(benchmarks/RESULTS.md). So every pass codes afresh, and what counts is the best pass so far.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

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


# The search ends when this many passes together bring no more than ``tol``.
_PATIENCE = 3


@dataclass(frozen=True)
class Learned:
    """The best dictionary met, and the lowest objective reached up to each pass."""

    dictionary: Array
    objective: Array


def learn(
    X: Array,
    dictionary: Array,
    n_nonzero: int,
    update: Update,
    *,
    selection: str,
    max_iter: int,
    tol: float,
    watch: Watch | None = None,
) -> Learned:
    """Improve a dictionary for rows X, ``n_nonzero`` atoms a row picked by ``selection``.

    Stops after ``max_iter`` passes, when three passes together lower the objective by no more
    than ``tol`` of itself, or when ``watch`` says so.
    """

    def improve(dictionary: Array) -> tuple[Array, float]:
        codes = omp(LinearProblem(X, dictionary), n_nonzero, selection=selection)
        dictionary, codes = update(X, dictionary, codes)
        return dictionary, float(np.sum(codes.error, dtype=np.float64))

    return repeat(improve, dictionary, max_iter=max_iter, tol=tol, watch=watch)


def repeat(
    improve: Callable[[Array], tuple[Array, float]],
    dictionary: Array,
    *,
    max_iter: int,
    tol: float,
    watch: Watch | None = None,
) -> Learned:
    """Call ``improve(dictionary) -> (dictionary, objective)`` until the objective settles."""
    best = dictionary
    objective: list[float] = []
    for _ in range(max_iter):
        if watch is not None:
            watch.begin_pass()
        dictionary, reached = improve(dictionary)
        if not objective or reached < objective[-1]:
            best = dictionary
            objective.append(reached)
        else:
            objective.append(objective[-1])
        if watch is not None and watch.end_pass(best, objective):
            break
        if len(objective) > _PATIENCE:
            before = objective[-1 - _PATIENCE]
            if before - objective[-1] <= tol * before:
                break
    return Learned(best, np.array(objective))
