"""Gradient steps of explicit atoms with one reading of the rows per pass: KSCDL over a source.

In memory a step is halved until it lowers the objective of the codes at hand (``gradients``), which
looks at the rows several times. Here a pass is one reduction. It codes all rows over the atoms that
the last step led to, and sums up the objective of these fresh codes, its gradient and its
curvature. If the objective has fallen enough (by Armijo's rule, as in memory), the next step begins
here; if not, the next pass tries half of the step from where it began.

See docs/decisions/036-kscdl-steps.md.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from kernelatoms.coding.pursuits import Pursuit
from kernelatoms.engine import Array
from kernelatoms.features.linear_algebra import OVERFLOW
from kernelatoms.learning.gradients import Gradient, GradientStep
from kernelatoms.learning.loop import (
    CodeAndSum,
    PassObserver,
    Problems,
    block_rows,
    has_converged,
    has_moved_little,
    replace_dead_atoms,
)
from kernelatoms.learning.runs import Run, SumRequest, TakeRequest
from kernelatoms.learning.state import LearnerState
from kernelatoms.rows import RowSource


def descend(
    problems: Problems,
    rows: RowSource,
    pursuit: Pursuit,
    update: GradientStep,
    state: LearnerState,
    *,
    max_iter: int,
    tol: float,
    change_tol: float | None = None,
    observer: PassObserver | None = None,
) -> Run:
    """Improve atoms by passes over all rows; the arguments are those of ``loop.passes``.

    ``state.objective`` is that of fresh codes over the atoms that a pass began with, so that the
    step after the last pass is not taken.
    """
    search = None if state.pending is None else _Search(*state.pending)
    trials: Iterator[tuple[Array, float]] = iter(())
    if search is not None:
        trials = islice(search.trials(update), search.n_tried, None)
    for number in range(max_iter):
        if observer is not None:
            observer.begin_pass()
        before = state.dictionary
        total = yield _pass_request(problems, rows, pursuit, update, before)
        here = total.sums.finish(update.kernel, before)
        if not np.isfinite(here.objective):
            raise ValueError(OVERFLOW)
        unused = state.record_pass(before, here.objective, total.uses, here.curvature)
        if search is None or here.objective <= search.enough:
            worst = total.worst.rows[: len(unused)]
            if len(worst):
                signals = yield TakeRequest(rows, worst)
                replace_dead_atoms(state, unused[: len(worst)], signals, update)
            reached = [*([] if search is None else search.reached), here.objective]
            search = _Search(
                state.dictionary, here.objective, here.gradient, here.curvature, total.uses,
                reached,
            )  # fmt: skip
            trials = search.trials(update)
        trial = next(trials, None)
        if trial is not None:
            state.dictionary = trial[0]
            search = search._replace(enough=trial[1], n_tried=search.n_tried + 1)
        is_last = number + 1 == max_iter or trial is None
        if change_tol is None:
            is_last = is_last or has_converged(search.reached, tol)
        else:
            is_last = is_last or has_moved_little(before, state.dictionary, change_tol)
        state.pending = tuple(search)
        if (observer is not None and observer.end_pass(state, is_last)) or is_last:
            break
    state.dictionary, state.pending = state.best, None


class _Search(NamedTuple):
    """Where a step begins, what is known there, and how far its shortening has come.

    ``uses`` are how many rows use each atom, ``reached`` the objectives of the passes that were
    good enough.
    """

    atoms: Array
    objective: float
    gradient: Array
    curvature: Array
    uses: Array
    reached: list[float]
    enough: float = 0.0
    n_tried: int = 0

    def trials(self, update: GradientStep) -> Iterator[tuple[Array, float]]:
        """Yield atoms to try, and the objective that is low enough."""
        here = Gradient(self.objective, self.gradient, self.curvature)
        return update.trials(self.atoms, here, self.uses > 0)


def _pass_request(
    problems: Problems, rows: RowSource, pursuit: Pursuit, update: GradientStep, atoms: Array
) -> SumRequest:
    """Return the request for all that a pass needs to know."""
    work = CodeAndSum(problems, rows.count(), pursuit, update, atoms)
    return SumRequest(rows, work, block_rows(rows, len(atoms)))
