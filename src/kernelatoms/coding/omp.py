"""Orthogonal matching pursuit over any coding problem.

    min |x - D w|^2   subject to   |w|_0 <= n_nonzero      (eq. (1) of the LKDL paper)

greedily; or with as few atoms as reach a given residual; with w >= 0 on request.

Signals of a linear problem with missing values (NaN) are coded by least squares on their observed
entries O, min |x_O - (D w)_O|^2, with atoms compared at unit norm on O: OMP as in inpainting. Atoms
that are only rounding on O are never picked. Other kernels estimate inner products from a part of
a row, and those are ordinary inner products here.

See docs/decisions/020-greedy-steps.md and docs/decisions/031-missing-values-in-signals.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes, PaddedCodes, RaggedCodes, replace_rows, stack_rows
from kernelatoms.coding.gram_policy import prefers_no_gram, rows_of
from kernelatoms.coding.problem import CodingProblem, LinearProblem, check_explained, split_missing
from kernelatoms.coding.tiny import enlarge, enlarged, put_back, tiny_signals
from kernelatoms.engine import machine
from kernelatoms.features.memory import check_fits
from kernelatoms.similarity.base import check_flag

Array = NDArray[Any]


def omp(
    problem: CodingProblem,
    n_nonzero: int,
    *,
    max_residual: float | Array | None = None,
    absolute: bool = False,
    selection: str = "omp",
    positive: bool = False,
    candidates: NDArray[np.int32] | None = None,
) -> Codes:
    """Code all signals of a problem, at most ``n_nonzero`` atoms each.

    Parameters
    ----------
    problem : CodingProblem
        Signals, NaN where values are missing, and atoms.
    n_nonzero : int
        The most atoms a signal may use.
    max_residual : float or array of shape (n_signals,), optional
        Stop earlier once |residual| <= max_residual |x|.
    absolute : bool
        Stop once |residual| <= max_residual instead.
    selection : {"omp", "ols"}
        Pick the atom of largest correlation, or of largest residual decrease.
    positive : bool
        Allow no negative coefficients: pick the largest positive correlation, solve the
        non-negative least squares on the support; atoms that end at zero leave it.
    candidates : int32 array of shape (n_signals, n_candidates), optional
        The atoms that each signal may use; -1 pads shorter lists.

    Returns
    -------
    PaddedCodes, or RaggedCodes where ``max_residual`` is given
        An ``error`` below 10 eps of the signal's energy is 0. Of signals that miss values, it is
        that of the observed entries; under a kernel other than the linear one, an estimate.
    """
    check_flag("positive", positive)
    check_flag("absolute", absolute)
    stop_at = None
    if max_residual is not None:
        if not problem.knows_energy:
            raise ValueError(
                "max_residual needs k(x, x) of the signals, which a precomputed kernel does not "
                "give; pass them as energy, or use n_nonzero_coefs alone."
            )
        goal = np.asarray(max_residual, np.float64, like=problem.like)
        stop_at = np.broadcast_to(goal, problem.n_signals)
    parts = split_missing(problem)
    if parts is None:
        return _omp(problem, n_nonzero, stop_at, absolute, selection, positive, candidates)

    def of(rows: NDArray[np.intp], values: Array | None) -> Array | None:
        return None if values is None else values[rows]

    some = parts.partial_rows
    masked = masked_omp(
        parts.partial, n_nonzero, stop_at=of(some, stop_at), absolute=absolute,
        selection=selection, positive=positive, candidates=of(some, candidates),
    )  # fmt: skip
    if not len(parts.complete_rows):
        return masked
    some = parts.complete_rows
    complete = _omp(
        parts.complete, n_nonzero, of(some, stop_at), absolute, selection, positive,
        of(some, candidates),
    )  # fmt: skip
    return stack_rows([(parts.complete_rows, complete), (parts.partial_rows, masked)])


def _omp(
    problem: CodingProblem,
    n_nonzero: int,
    stop_at: Array | None,
    absolute: bool,
    selection: str,
    positive: bool,
    candidates: NDArray[np.int32] | None,
) -> Codes:
    """Code complete signals; those that float32 cannot settle once more in float64.

    Those whose squares are no numbers once more at another size, where they are looked at.
    """
    options: dict[str, Any] = {
        "relative": not absolute, "use_ols": selection == "ols", "positive": positive,
        "ragged": stop_at is not None,
    }  # fmt: skip
    codes, unsettled, energies = _code(
        problem, n_nonzero, stop_at, candidates, leave_unsettled=problem.gains_digits, **options
    )
    some = np.flatnonzero(unsettled)
    if len(some):
        again, *_ = _code(
            problem.in_float64(some), n_nonzero, None if stop_at is None else stop_at[some],
            None if candidates is None else candidates[some], exact=True, **options,
        )  # fmt: skip
        codes = replace_rows(codes, some, again.astype(codes.dtype))
    if stop_at is None:
        return codes
    tiny = tiny_signals(problem, energies)
    if len(tiny):
        larger = enlarged(problem, tiny)
        again, *_ = _code(
            larger, n_nonzero, enlarge(stop_at[tiny]) if absolute else stop_at[tiny],
            None if candidates is None else candidates[tiny], **options,
        )  # fmt: skip
        codes = put_back(codes, tiny, again, larger)
    return codes


def _code(
    problem: CodingProblem,
    n_nonzero: int,
    stop_at: Array | None,
    candidates: NDArray[np.int32] | None,
    *,
    leave_unsettled: bool = False,
    **options: Any,
) -> tuple[Codes, Array, Array]:
    """Return codes, which signals rounding left unsettled, and energies.

    Options are those of the engine.
    """
    n_signals, dtype = problem.n_signals, problem.dtype
    if stop_at is None:
        check_fits(
            float(n_signals) * n_nonzero * (4 + dtype.itemsize),
            f"codes of {n_signals} signals with {n_nonzero} nonzeros each",
            "Use fewer nonzeros, a stop by max_residual, or code fewer signals at a time.",
            like=problem.like,
        )
    energies = np.zeros(n_signals, like=problem.like)
    options = {**options, "stop_at": stop_at, "leave_unsettled": leave_unsettled}

    def energy_of(start: int, stop: int) -> Array | None:
        energy = problem.energy(start, stop)
        if energy is not None:
            energies[start:stop] = energy
        return energy

    def products(start: int, stop: int) -> tuple[Array, Array | None]:
        corr, energy = problem.products(start, stop)
        if energy is not None:
            energies[start:stop] = energy
        return corr, energy

    if candidates is not None:

        def local(start: int, stop: int) -> tuple[Array, Array, Array | None]:
            grams, corrs = problem.local(start, stop, candidates[start:stop])
            return grams, corrs, energy_of(start, stop)

        found = machine(candidates).omp_local(local, candidates, n_nonzero, **options)
    elif prefers_no_gram(problem, n_nonzero, few=bool(options.get("exact"))):
        norms2 = problem.norms2
        found = machine(norms2).omp_without_gram(
            problem.gram_rows, norms2, products, n_signals, n_nonzero, rows=rows_of(problem),
            energy=energy_of, **options,
        )  # fmt: skip
    else:
        gram = problem.gram
        found = machine(gram).omp(
            gram, products, n_signals, n_nonzero, rows=rows_of(problem), energy=energy_of, **options
        )
    unsettled = found[-1] if leave_unsettled else np.zeros(0, bool)
    *codes, left = found[:-1] if leave_unsettled else found
    error = left
    if problem.knows_energy:
        check_explained(problem, energies, left)
        eps = np.finfo(np.float32 if options.get("exact") else dtype).eps  # of the codes
        error = np.where(left > 10 * eps * energies, left, 0.0)
    if stop_at is None:
        indices, values = codes
        padded = PaddedCodes(n_atoms=problem.n_atoms, error=error, indices=indices, values=values)
        return padded, unsettled, energies
    indptr, indices, values = codes
    ragged = RaggedCodes(
        n_atoms=problem.n_atoms, error=error, indptr=indptr, indices=indices, values=values
    )
    return ragged, unsettled, energies


def masked_omp(
    problem: LinearProblem,
    n_nonzero: int,
    *,
    stop_at: Array | None = None,
    absolute: bool = False,
    selection: str = "omp",
    positive: bool = False,
    candidates: NDArray[np.int32] | None = None,
) -> Codes:
    """Code signals by their observed entries, at most ``n_nonzero`` atoms each.

    - ``problem``: signals, NaN where values are missing, and atoms.
    - ``n_nonzero``: the most atoms a signal may use.
    - ``stop_at`` (n_signals,): stop earlier once |residual| <= stop_at |x|, both on the observed
      entries.
    - ``absolute``: stop once |residual| <= stop_at instead.
    - ``selection``, {"omp", "ols"}: pick the atom of largest correlation, with atoms at unit norm
      on the observed entries, or of largest residual decrease.
    - ``positive``: not for signals that miss values: refused.
    - ``candidates`` (n_signals, n_candidates): the atoms that each signal may use; -1 pads shorter
      lists.
    - result: with the squared residuals of the observed entries; below 10 eps of their energy
      they are 0.
    """
    if positive:
        raise ValueError(
            "positive=True needs complete signals, but X contains NaN: impute what is missing, or "
            "leave such rows out."
        )
    codes, energy, unsettled = _masked_omp(
        problem, n_nonzero, stop_at, absolute, selection, candidates
    )
    some = np.flatnonzero(unsettled) if problem.gains_digits else np.arange(0)
    if len(some):
        again, *_ = _masked_omp(
            problem.in_float64(some), n_nonzero, None if stop_at is None else stop_at[some],
            absolute, selection, None if candidates is None else candidates[some], exact=True,
        )  # fmt: skip
        codes = replace_rows(codes, some, again.astype(codes.dtype))
    if stop_at is None:
        return codes
    tiny = tiny_signals(problem, energy)
    if len(tiny):
        larger = enlarged(problem, tiny)
        again, *_ = _masked_omp(
            larger, n_nonzero, enlarge(stop_at[tiny]) if absolute else stop_at[tiny], absolute,
            selection, None if candidates is None else candidates[tiny],
        )  # fmt: skip
        codes = put_back(codes, tiny, again, larger)
    assert isinstance(codes, PaddedCodes)
    return codes.to_ragged()


def _masked_omp(
    problem: LinearProblem,
    n_nonzero: int,
    stop_at: Array | None,
    absolute: bool,
    selection: str,
    candidates: NDArray[np.int32] | None,
    exact: bool = False,
) -> tuple[Codes, Array, Array]:
    """Return padded codes, squared norms of observed entries, and whom rounding ended."""
    signals, atoms, dtype = problem.signals, problem.atoms, problem.dtype
    _ = atoms.norms2  # refused where they overflow
    if candidates is None:
        candidates = np.empty((len(signals), 0), np.int32)
    indices, values, left, energy, unsettled = machine(signals).omp_observed(
        signals, atoms.rows, atoms.columns, n_nonzero, candidates=candidates, stop_at=stop_at,
        relative=not absolute, use_ols=selection == "ols", exact=exact,
    )  # fmt: skip
    eps = np.finfo(np.float32 if exact else dtype).eps  # of the codes
    error = np.where(left > 10 * eps * energy, left, 0.0)
    codes = PaddedCodes(n_atoms=problem.n_atoms, error=error, indices=indices, values=values)
    return codes, energy, unsettled
