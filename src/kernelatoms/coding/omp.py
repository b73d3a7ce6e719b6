"""Orthogonal matching pursuit over any coding problem.

    min |x - D w|^2   subject to   |w|_0 <= n_nonzero      (eq. (1) of the LKDL paper)

greedily; or with as few atoms as reach a given residual; with w >= 0 on request.

Signals of a linear problem with missing values (NaN) are coded by least squares on their observed
entries O, min |x_O - (D w)_O|^2, with atoms compared at unit norm on O, as in inpainting. Atoms
that are only rounding on O are never picked. Other kernels estimate inner products from a part of a
row, which are used as they are.

See docs/decisions/020-greedy-steps.md and docs/decisions/031-missing-values-in-signals.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes, PaddedCodes, RaggedCodes, replace_rows, stack_rows
from kernelatoms.coding.missing_and_tiny import (
    enlarge,
    enlarged,
    put_back,
    split_missing,
    tiny_signals,
)
from kernelatoms.coding.problem import (
    CodingProblem,
    LinearProblem,
    check_explained,
    prefers_no_gram,
    rows_of,
)
from kernelatoms.engine import Array, machine
from kernelatoms.features.memory import check_fits
from kernelatoms.similarity.base import check_flag


@dataclass(frozen=True)
class _Options:
    """Arguments of ``omp``; ``stop_at`` (n_signals,) and ``candidates`` have rows per signal."""

    n_nonzero: int
    stop_at: Array | None
    absolute: bool
    selection: str
    positive: bool
    candidates: NDArray[np.int32] | None
    sparing: bool

    def take(self, rows: NDArray[np.intp]) -> "_Options":
        """Return the options of some signals."""
        stop_at = None if self.stop_at is None else self.stop_at[rows]
        candidates = None if self.candidates is None else self.candidates[rows]
        return replace(self, stop_at=stop_at, candidates=candidates)

    def enlarged(self) -> "_Options":
        """Return the options for signals at 2^EXPONENT of themselves."""
        return replace(self, stop_at=enlarge(self.stop_at)) if self.absolute else self


# Nonzeros per observed value that signals for learning may have at least.
_SPARING = 0.1

# Returns codes, the signals for which float32 is too inexact, and energies of signals.
_Coder = Callable[..., tuple[Codes, Array, Array]]


def omp(
    problem: CodingProblem,
    n_nonzero: int,
    *,
    max_residual: float | Array | None = None,
    absolute: bool = False,
    selection: str = "omp",
    positive: bool = False,
    candidates: NDArray[np.int32] | None = None,
    sparing: bool = False,
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
    sparing : bool
        Code signals that miss values for learning: with no more nonzeros per observed value than
        ``n_nonzero`` per feature, or a tenth if that is more; most correlations are estimated,
        which is faster (not with "ols").

    Returns
    -------
    PaddedCodes, or RaggedCodes where ``max_residual`` is given
        An ``error`` below 10 eps of the signal's energy is 0. Of signals that miss values, it is
        that of the observed entries; under a kernel other than the linear one, an estimate.
    """
    check_flag("positive", positive)
    check_flag("absolute", absolute)
    check_flag("sparing", sparing)
    stop_at = None
    if max_residual is not None:
        if not problem.knows_energy:
            raise ValueError(
                "max_residual needs k(x, x) of the signals, which a precomputed kernel does not "
                "give; pass them as energy, or use n_nonzero_coefs alone."
            )
        goal = np.asarray(max_residual, np.float64, like=problem.like)
        stop_at = np.broadcast_to(goal, problem.n_signals)
    options = _Options(n_nonzero, stop_at, absolute, selection, positive, candidates, sparing)
    parts = split_missing(problem)
    if parts is None:
        return _code_precisely(_code_complete, problem, options)
    if positive:
        raise ValueError(
            "positive=True needs complete signals, but X contains NaN: impute what is missing, or "
            "leave such rows out."
        )
    masked = _code_precisely(_code_observed, parts.partial, options.take(parts.partial_rows))
    if stop_at is not None and isinstance(masked, PaddedCodes):
        masked = masked.to_ragged()
    if not len(parts.complete_rows):
        return masked
    own = options.take(parts.complete_rows)
    complete = _code_precisely(_code_complete, parts.complete, own)
    return stack_rows([(parts.complete_rows, complete), (parts.partial_rows, masked)])


def _code_precisely(code: _Coder, problem: CodingProblem, options: _Options) -> Codes:
    """Code signals, once more in float64 where float32 is too inexact, and tiny ones enlarged."""
    codes, inexact, energies = code(problem, options)
    some = np.flatnonzero(inexact) if problem.gains_digits else np.arange(0)
    if len(some):
        again, *_ = code(problem.in_float64(some), options.take(some), exact=True)
        codes = replace_rows(codes, some, again.astype(codes.dtype))
    if options.stop_at is None:
        return codes
    tiny = tiny_signals(problem, energies)
    if len(tiny):
        larger = enlarged(problem, tiny)
        again, *_ = code(larger, options.take(tiny).enlarged())
        codes = put_back(codes, tiny, again, larger)
    return codes


def _code_complete(
    problem: CodingProblem, options: _Options, exact: bool = False
) -> tuple[Codes, Array, Array]:
    """Return codes of complete signals, which of them are inexact, and energies."""
    n_signals, n_nonzero, dtype = problem.n_signals, options.n_nonzero, problem.dtype
    stop_at, candidates = options.stop_at, options.candidates
    if stop_at is None:
        check_fits(
            float(n_signals) * n_nonzero * (4 + dtype.itemsize),
            f"codes of {n_signals} signals with {n_nonzero} nonzeros each",
            "Use fewer nonzeros, a stop by max_residual, or code fewer signals at a time.",
            like=problem.like,
        )
    leave_unsettled = problem.gains_digits and not exact
    arguments: dict[str, Any] = {
        "relative": not options.absolute, "use_ols": options.selection == "ols",
        "positive": options.positive, "ragged": stop_at is not None, "stop_at": stop_at,
        "leave_unsettled": leave_unsettled, **({"exact": True} if exact else {}),
    }  # fmt: skip
    energies = np.zeros(n_signals, like=problem.like)

    def kept(start: int, stop: int, energy: Array | None) -> Array | None:
        if energy is not None:
            energies[start:stop] = energy
        return energy

    def energy_of(start: int, stop: int) -> Array | None:
        return kept(start, stop, problem.energy(start, stop))

    def products(start: int, stop: int) -> tuple[Array, Array | None]:
        corr, energy = problem.products(start, stop)
        return corr, kept(start, stop, energy)

    if candidates is not None:

        def local(start: int, stop: int) -> tuple[Array, Array, Array | None]:
            grams, corrs = problem.local(start, stop, candidates[start:stop])
            return grams, corrs, energy_of(start, stop)

        found = machine(candidates).omp_local(local, candidates, n_nonzero, **arguments)
    elif prefers_no_gram(problem, n_nonzero, few=exact):
        norms2 = problem.norms2
        found = machine(norms2).omp_without_gram(
            problem.gram_rows, norms2, products, n_signals, n_nonzero, rows=rows_of(problem),
            energy=energy_of, **arguments,
        )  # fmt: skip
    else:
        gram = problem.gram
        found = machine(gram).omp(
            gram, products, n_signals, n_nonzero, rows=rows_of(problem), energy=energy_of,
            **arguments,
        )  # fmt: skip
    inexact = found[-1] if leave_unsettled else np.zeros(0, bool)
    *codes, left = found[:-1] if leave_unsettled else found
    if problem.knows_energy:
        check_explained(problem, energies, left)
        eps = np.finfo(np.float32 if exact else dtype).eps  # of the codes
        left = np.where(left > 10 * eps * energies, left, 0.0)
    return _as_codes(problem.n_atoms, left, codes), inexact, energies


def _as_codes(n_atoms: int, error: Array, parts: list[Array]) -> PaddedCodes | RaggedCodes:
    """Return indices and values as padded codes; indptr, indices and values as ragged ones."""
    indices, values = parts[-2:]
    if len(parts) == 2:
        return PaddedCodes(n_atoms=n_atoms, error=error, indices=indices, values=values)
    return RaggedCodes(
        n_atoms=n_atoms, error=error, indptr=parts[0], indices=indices, values=values
    )


def _code_observed(
    problem: LinearProblem, options: _Options, exact: bool = False
) -> tuple[Codes, Array, Array]:
    """Return padded codes by observed entries, which are inexact, and energies of the entries."""
    signals, atoms, dtype = problem.signals, problem.atoms, problem.dtype
    _ = atoms.norms2  # refused where they overflow
    candidates = options.candidates
    if candidates is None:
        candidates = np.empty((len(signals), 0), np.int32)
    limits = _sparing_limits(signals, options.n_nonzero) if options.sparing else None
    indices, values, left, energy, inexact = machine(signals).omp_observed(
        signals, atoms.rows, atoms.columns, options.n_nonzero, candidates=candidates,
        stop_at=options.stop_at, relative=not options.absolute, limits=limits,
        use_ols=options.selection == "ols", gram=atoms.gram if options.sparing else None,
        exact=exact,
    )  # fmt: skip
    eps = np.finfo(np.float32 if exact else dtype).eps  # of the codes
    error = np.where(left > 10 * eps * energy, left, 0.0)
    codes = PaddedCodes(n_atoms=problem.n_atoms, error=error, indices=indices, values=values)
    return codes, inexact, energy


def _sparing_limits(signals: Array, n_nonzero: int) -> NDArray[np.int64]:
    """Return how many atoms signals with missing values may use in learning, at least 1."""
    n_features = signals.shape[1]
    observed = n_features - np.isnan(signals).sum(axis=1)
    share = max(_SPARING, n_nonzero / n_features)
    return np.clip(np.rint(share * observed).astype(np.int64), 1, n_nonzero)
