"""l1 coding over any coding problem, with a certificate.

    min 1/2 |x - D w|^2 + alpha |w|_1                       (eq. (6) of the FKSC paper)

``lasso`` goes to a duality gap, which is returned: no other code is better by more than the gap.
``ksc``, and in two stages ``fksc``, are kernel sparse coding as the FKSC paper publishes it, kept
to compare with: ``lasso`` reaches the same minimum, many times faster. ``engine/cpu/ksc.py`` has
the equations, and the bound of ``fksc`` that was made safe.

See docs/decisions/025-l1-active-sets.md.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kernelatoms.coding.codes import RaggedCodes
from kernelatoms.coding.missing_and_tiny import enlarge, enlarged, put_back, tiny_signals, without
from kernelatoms.coding.problem import CodingProblem, check_explained, prefers_no_gram, rows_of
from kernelatoms.engine import Array, machine
from kernelatoms.features.memory import check_fits
from kernelatoms.similarity.base import check_flag

# The tolerance of stage 1 of FKSC (A.6 of the paper).
_STAGE_TOL = 1e-3
# The most passes: the paper's (A.6), where the paper's stop is asked for, and on the way to a gap.
_PASSES_PUBLISHED, _PASSES_TO_GAP = 100, 100_000


def lasso(
    problem: CodingProblem,
    alpha: float,
    *,
    positive: bool = False,
    gap_tol: float = 1e-6,
    start: Array | None = None,
    candidates: NDArray[np.int32] | None = None,
) -> RaggedCodes:
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
    RaggedCodes
        With ``gap``, that of the codes as they are returned: at most ``gap_tol`` of the energy (and
        rounding, in float32), unless a ConvergenceWarning says otherwise.
    """
    check_flag("positive", positive)
    _ = problem.norms2  # which refuses atoms whose inner products do not fit
    code = partial(_lasso, positive=positive, gap_tol=gap_tol)
    return _code_at_any_size(problem, alpha, start, candidates, code)


def _lasso(
    problem: CodingProblem,
    alpha: float,
    start: Array | None,
    candidates: NDArray[np.int32] | None,
    *,
    positive: bool,
    gap_tol: float,
) -> RaggedCodes:
    engine = machine(problem.norms2)
    options: dict[str, Any] = {"positive": positive, "gap_tol": gap_tol}
    if candidates is not None:

        def local(first: int, stop: int) -> tuple[Array, Array, Array | None]:
            grams, corrs = problem.local(first, stop, candidates[first:stop])
            return grams, corrs, problem.energy(first, stop)

        def local_start(first: int, stop: int) -> Array:
            chosen = candidates[first:stop]
            assert start is not None
            codes = np.take_along_axis(start[first:stop], np.maximum(chosen, 0), axis=1)
            return np.where(chosen < 0, 0, codes)

        if not prefers_no_gram(problem, candidates.shape[1]):  # the check needs the whole matrix
            problem.check_semidefinite()
        coded = engine.lasso_local(
            local, candidates, problem.dtype, alpha, **options,
            start=None if start is None else local_start,
        )  # fmt: skip
    elif start is None and prefers_no_gram(problem, 32):
        coded = engine.lasso_without_gram(
            problem.products, problem.local, problem.gram_times, problem.n_signals,
            problem.n_atoms, problem.dtype, alpha, rows=rows_of(problem), **options,
        )  # fmt: skip
    else:
        problem.check_semidefinite()
        coded = engine.lasso(
            problem.gram, problem.products, problem.n_signals, problem.dtype, alpha, **options,
            start=start,
        )  # fmt: skip
    return _as_codes(coded, problem, gap_tol)


def lasso_path(
    problem: CodingProblem,
    alphas: Sequence[float],
    *,
    positive: bool = False,
    gap_tol: float = 1e-6,
) -> list[RaggedCodes]:
    """Code all signals at every alpha, falling, each from the codes of the one before."""
    check_fits(
        8.0 * problem.n_signals * problem.n_atoms,
        f"codes of {problem.n_signals} signals over {problem.n_atoms} atoms to go on from",
        "Follow the path for fewer signals at a time.",
    )
    found: dict[float, RaggedCodes] = {}
    start = None
    for alpha in sorted(set(alphas), reverse=True):
        found[alpha] = lasso(problem, alpha, positive=positive, gap_tol=gap_tol, start=start)
        start = found[alpha].to_dense()
    return [found[alpha] for alpha in alphas]


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
    check_flag("two_stages", two_stages)
    if max_passes is None:
        max_passes = _PASSES_TO_GAP if change_tol is None else _PASSES_PUBLISHED
    code = partial(
        _descend, two_stages=two_stages, gap_tol=gap_tol, change_tol=change_tol,
        max_passes=max_passes,
    )  # fmt: skip
    return _code_at_any_size(problem, alpha, start, None, code)


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
    return _as_codes(coded, problem, wanted, n_passes=n_done, n_updates=n_updates)


def _reach_of_atoms(gram: Array) -> Array:
    """Return |(G_ij)_{j != i}|_2, not too small by rounding."""
    gram = gram.astype(np.float64, copy=False)
    diagonal = np.diagonal(gram)
    largest = max(float(np.abs(diagonal).max(initial=0)), np.finfo(np.float64).tiny)
    others = gram / largest - np.diag(diagonal / largest)
    return np.asarray(largest * np.linalg.norm(others, axis=1) * (1 + 1e-12))


def _code_at_any_size(
    problem: CodingProblem,
    alpha: float,
    start: Array | None,
    candidates: NDArray[np.int32] | None,
    code: Callable[[CodingProblem, float, Array | None, Any], RaggedCodes],
) -> RaggedCodes:
    """Return l1 codes; signals whose squares underflow are coded at another size."""
    _check(problem, start)
    tiny = tiny_signals(problem)
    if not len(tiny):
        return code(problem, alpha, start, candidates)
    codes = code(without(problem, tiny), alpha, start, candidates)
    larger = enlarged(problem, tiny)
    coded = code(
        larger,
        float(min(enlarge(alpha), np.finfo(np.float64).max)),
        None if start is None else enlarge(start[tiny]),
        None if candidates is None else candidates[tiny],
    )
    found = put_back(codes, tiny, coded, larger)
    assert isinstance(found, RaggedCodes)
    return found


def _check(problem: CodingProblem, start: Array | None) -> None:
    """Refuse signals of unknown energies, and codes to start from that are not of this problem."""
    if not problem.knows_energy:
        raise ValueError(
            "l1 coding needs k(x, x) of the signals for its duality gap, which a precomputed "
            "kernel does not give; pass them as energy."
        )
    if start is not None and start.shape != (problem.n_signals, problem.n_atoms):
        raise ValueError(
            f"start must hold a coefficient for each of {problem.n_signals} signals and "
            f"{problem.n_atoms} atoms, got shape {start.shape}."
        )


def _as_codes(
    coded: tuple[Any, ...], problem: CodingProblem, gap_tol: float, **counts: Any
) -> RaggedCodes:
    """Return what an l1 engine coded, and warn where it stopped short of the gap."""
    indptr, indices, values, left, gap, missed = coded
    if not problem.assume_psd:
        energies = problem.energy(0, problem.n_signals)
        assert energies is not None  # asked for before coding
        check_explained(problem, energies, left)
    if missed.any():
        warnings.warn(
            f"l1 coding stopped at a duality gap above gap_tol={gap_tol:g} of the energy for "
            f"{np.count_nonzero(missed)} of {len(gap)} signals (the largest is {gap.max():.2g}); "
            "use a larger gap_tol or alpha, or atoms that are less alike.",
            ConvergenceWarning,
            stacklevel=6,
        )
    return RaggedCodes(
        n_atoms=problem.n_atoms, error=np.maximum(left, 0.0), gap=gap, indptr=indptr,
        indices=indices, values=values, **counts,
    )  # fmt: skip
