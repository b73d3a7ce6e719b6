"""Kernel sparse coding as the FKSC paper publishes it: ``ksc``, and ``fksc`` in two stages.

Kept to compare with: ``lasso`` reaches the same minimum, many times faster. See
``engine/cpu/ksc.py`` for the equations, and for the bound of ``fksc`` that was made safe.

See docs/decisions/025-l1-active-sets.md.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from kernelatoms.coding.codes import RaggedCodes
from kernelatoms.coding.lasso import as_codes, check_energy, check_start, code_at_any_size
from kernelatoms.coding.problem import CodingProblem
from kernelatoms.engine import Array, machine

# The tolerance of stage 1 of FKSC (A.6 of the paper).
_STAGE_TOL = 1e-3
# The most passes: the paper's (A.6), where the paper's stop is asked for, and on the way to a gap.
_PASSES_PUBLISHED, _PASSES_TO_GAP = 100, 100_000

#: Does some more passes: ``more(n_passes, n_done, n_updates, converged)``.
_More = Callable[[int, Array, Array, Array], None]
#: Begins a block: ``begin(gram, b, w)``, with inner products b of its signals and codes w.
_Begin = Callable[[Array, Array, Array], _More]


def ksc(
    problem: CodingProblem,
    alpha: float,
    *,
    gap_tol: float = 1e-6,
    change_tol: float | None = None,
    max_passes: int | None = None,
    start: Array | None = None,
) -> RaggedCodes:
    """Code all signals by cyclic coordinate descent, eqs. (8) and (9).

    Parameters
    ----------
    problem : CodingProblem
        Signals and atoms; energies must be known.
    alpha : float
        Weight of |w|_1, above 0.
    gap_tol : float
        Stop at a duality gap of this share of k(x, x).
    change_tol : float, optional
        Stop, as the paper does (at 1e-3), when a pass changes w by no more than this share of its
        norm, whatever the gap; a pass that leaves w = 0 changes nothing.
    max_passes : int, optional
        The most passes: by default the paper's 100 with ``change_tol``, else 100,000.
    start : array of shape (n_signals, n_atoms), optional
        Codes to start from.

    Returns
    -------
    RaggedCodes
        With ``gap``, ``n_passes``, and ``n_updates``: how often (8) was evaluated.
    """
    return _code(_one_stage, problem, alpha, gap_tol, change_tol, max_passes, start)


def fksc(
    problem: CodingProblem,
    alpha: float,
    *,
    gap_tol: float = 1e-6,
    change_tol: float | None = None,
    max_passes: int | None = None,
    start: Array | None = None,
) -> RaggedCodes:
    """Code all signals by coordinate descent in two stages (Algorithm 2), its bound made safe.

    Parameters
    ----------
    problem : CodingProblem
        Signals and atoms; energies must be known.
    alpha : float
        Weight of |w|_1, above 0.
    gap_tol : float
        Stop at a duality gap of this share of k(x, x).
    change_tol : float, optional
        Stop, as the paper does (at 1e-3), when a pass changes w by no more than this share of its
        norm, whatever the gap; a pass that leaves w = 0 changes nothing.
    max_passes : int, optional
        The most passes: by default the paper's 100 with ``change_tol``, else 100,000.
    start : array of shape (n_signals, n_atoms), optional
        Codes to start from.

    Returns
    -------
    Codes
        With ``gap``, ``n_passes``, and ``n_updates``: how often (8) was evaluated.
    """
    return _code(_two_stages, problem, alpha, gap_tol, change_tol, max_passes, start)


def _code(
    stages: Callable[[CodingProblem, float, float | None], _Begin],
    problem: CodingProblem,
    alpha: float,
    gap_tol: float,
    change_tol: float | None,
    max_passes: int | None,
    start: Array | None,
) -> RaggedCodes:
    def code(one: CodingProblem, weight: float, start: Array | None, _: Any) -> RaggedCodes:
        begin = stages(one, weight, change_tol)
        return _descend(one, weight, begin, gap_tol, change_tol, max_passes, start)

    return code_at_any_size(problem, alpha, start, None, code)


def _one_stage(problem: CodingProblem, alpha: float, change_tol: float | None) -> _Begin:
    tol = 0.0 if change_tol is None else change_tol

    def begin(gram: Array, b: Array, w: Array) -> _More:
        def more(n_passes: int, n_done: Array, n_updates: Array, converged: Array) -> None:
            machine(gram).in_short_parts(
                len(b),
                machine(gram).at_once(len(gram)),
                lambda part: machine(gram).ksc_passes(
                    gram, b[part], alpha, n_passes, tol, w[part], n_done[part], n_updates[part],
                    converged[part],
                ),
            )  # fmt: skip

        return more

    return begin


def _two_stages(problem: CodingProblem, alpha: float, change_tol: float | None) -> _Begin:
    tol, stage_tol = (0.0, _STAGE_TOL) if change_tol is None else (change_tol, change_tol)

    @cache
    def reach_of_atoms() -> Array:
        """Return |(G_ij)_{j != i}|_2, not too small by rounding."""
        gram = problem.gram.astype(np.float64, copy=False)
        diagonal = np.diagonal(gram)
        largest = max(float(np.abs(diagonal).max(initial=0)), np.finfo(np.float64).tiny)
        others = gram / largest - np.diag(diagonal / largest)
        reach: Array = largest * np.linalg.norm(others, axis=1) * (1 + 1e-12)
        return reach

    def begin(gram: Array, b: Array, w: Array) -> _More:
        reach = reach_of_atoms()
        last_z = b - w @ gram[:, : len(gram)] + w * np.diagonal(gram)
        last_moved, moved_so_far = np.zeros(b.shape), np.zeros(len(b))
        stage = np.ones(len(b), np.int64)

        def more(n_passes: int, n_done: Array, n_updates: Array, converged: Array) -> None:
            machine(gram).in_short_parts(
                len(b),
                machine(gram).at_once(len(gram)),
                lambda part: machine(gram).fksc_passes(
                    gram, b[part], alpha, n_passes, tol, stage_tol, reach, w[part], last_z[part],
                    last_moved[part], moved_so_far[part], stage[part], n_done[part],
                    n_updates[part], converged[part],
                ),
            )  # fmt: skip

        return more

    return begin


def _descend(
    problem: CodingProblem,
    alpha: float,
    begin: _Begin,
    gap_tol: float,
    change_tol: float | None,
    max_passes: int | None,
    start: Array | None,
) -> RaggedCodes:
    """Do passes until every signal has converged; the gap is computed seldom enough."""
    check_energy(problem)
    check_start(problem, start)
    problem.check_semidefinite()
    engine = machine(problem.norms2)
    n = problem.n_signals
    n_done, n_updates = np.zeros(n, np.int64), np.zeros(n, np.int64)
    if max_passes is None:
        max_passes = _PASSES_TO_GAP if change_tol is None else _PASSES_PUBLISHED
    most = max_passes

    def solve(gram: Array, b: Array, energy: Array, w: Array, first: int, stop: int) -> None:
        more = begin(gram, b, w)
        converged = np.zeros(stop - first, np.bool_)
        done, look = 0, 1
        while True:
            more(look, n_done[first:stop], n_updates[first:stop], converged)
            done += look
            if change_tol is None:
                still = np.flatnonzero(~converged)
                gaps, errors = np.empty(len(still)), np.empty(len(still))
                engine.certify(
                    gram, b[still], energy[still], float(alpha), False, w[still], gaps, errors
                )
                converged[still] = gaps <= gap_tol * energy[still]
            if converged.all() or done >= most:
                break
            # A tenth more each time: no signal does more than a tenth too many.
            look = min(max(1, done // 10), most - done)

    # Who stops on small changes, as the paper does, asks for no gap.
    wanted = gap_tol if change_tol is None else np.inf
    coded = engine.code_blocks(
        problem.gram, problem.products, n, problem.dtype, alpha, solve, gap_tol=wanted, start=start
    )
    return as_codes(coded, problem, wanted, n_passes=n_done, n_updates=n_updates)
