"""Kernel sparse coding as the FKSC paper publishes it: ``ksc``, and in two stages ``fksc``.

Kept to compare with: ``lasso`` reaches the same minimum, many times faster. ``engine/cpu/ksc.py``
has the equations, and the bound of ``fksc`` that was made safe.

See docs/decisions/025-l1-active-sets.md.
"""

from functools import partial

import numpy as np

from kernelatoms.coding.codes import RaggedCodes
from kernelatoms.coding.lasso import as_codes, code_at_any_size
from kernelatoms.coding.problem import CodingProblem
from kernelatoms.engine import Array, machine

# The tolerance of stage 1 of FKSC (A.6 of the paper).
_STAGE_TOL = 1e-3
# The most passes: the paper's (A.6), where the paper's stop is asked for, and on the way to a gap.
_PASSES_PUBLISHED, _PASSES_TO_GAP = 100, 100_000


def ksc(
    problem: CodingProblem,
    alpha: float,
    *,
    two_stages: bool = False,
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
    two_stages : bool
        True for FKSC, coordinate descent in two stages (Algorithm 2), its bound made safe.
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
    if max_passes is None:
        max_passes = _PASSES_TO_GAP if change_tol is None else _PASSES_PUBLISHED
    code = partial(
        _descend, two_stages=two_stages, gap_tol=gap_tol, change_tol=change_tol,
        max_passes=max_passes,
    )  # fmt: skip
    return code_at_any_size(problem, alpha, start, None, code)


fksc = partial(ksc, two_stages=True)


def _descend(
    problem: CodingProblem,
    alpha: float,
    start: Array | None,
    candidates: None,
    *,
    two_stages: bool,
    gap_tol: float,
    change_tol: float | None,
    max_passes: int,
) -> RaggedCodes:
    """Do passes until every signal has converged; the gap is computed seldom enough."""
    problem.check_semidefinite()
    engine = machine(problem.norms2)
    n = problem.n_signals
    n_done, n_updates = np.zeros(n, np.int64), np.zeros(n, np.int64)
    tol, stage_tol = (0.0, _STAGE_TOL) if change_tol is None else (change_tol, change_tol)
    reach = _reach_of_atoms(problem.gram) if two_stages else None

    def solve(gram: Array, b: Array, energy: Array, w: Array, first: int, stop: int) -> None:
        converged = np.zeros(stop - first, np.bool_)
        state = [n_done[first:stop], n_updates[first:stop], converged]
        if two_stages:
            last_z = b - w @ gram[:, : len(gram)] + w * np.diagonal(gram)
            # Besides: how far the last pass moved, and all of them; the stage.
            moved, stage = [np.zeros(b.shape), np.zeros(len(b))], np.ones(len(b), np.int64)
            state = [last_z, *moved, stage, *state]

        def passes(n_passes: int, part: slice) -> None:
            own = [array[part] for array in (w, *state)]
            if two_stages:
                engine.fksc_passes(gram, b[part], alpha, n_passes, tol, stage_tol, reach, *own)
            else:
                engine.ksc_passes(gram, b[part], alpha, n_passes, tol, *own)

        done, look = 0, 1
        while True:
            engine.in_short_parts(len(b), engine.at_once(len(gram)), partial(passes, look))
            done += look
            if change_tol is None:
                still = np.flatnonzero(~converged)
                gaps, errors = np.empty(len(still)), np.empty(len(still))
                engine.certify(
                    gram, b[still], energy[still], float(alpha), False, w[still], gaps, errors
                )
                converged[still] = gaps <= gap_tol * energy[still]
            if converged.all() or done >= max_passes:
                break
            # A tenth more each time: no signal does more than a tenth too many.
            look = min(max(1, done // 10), max_passes - done)

    # Who stops on small changes, as the paper does, asks for no gap.
    wanted = gap_tol if change_tol is None else np.inf
    coded = engine.code_blocks(
        problem.gram, problem.products, n, problem.dtype, alpha, solve, gap_tol=wanted, start=start
    )
    return as_codes(coded, problem, wanted, n_passes=n_done, n_updates=n_updates)


def _reach_of_atoms(gram: Array) -> Array:
    """Return |(G_ij)_{j != i}|_2, not too small by rounding."""
    gram = gram.astype(np.float64, copy=False)
    diagonal = np.diagonal(gram)
    largest = max(float(np.abs(diagonal).max(initial=0)), np.finfo(np.float64).tiny)
    others = gram / largest - np.diag(diagonal / largest)
    return np.asarray(largest * np.linalg.norm(others, axis=1) * (1 + 1e-12))
