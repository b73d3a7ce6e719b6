"""Pursuits of signals with missing values (NaN): least squares on what is observed.

    min |x_O - (D w)_O|^2   subject to   |w|_0 <= n_nonzero

greedily, with O the observed entries of x and atoms at unit norm on O when they are compared: OMP
as in inpainting. Atoms that are only rounding on O are never picked. Under a kernel other than the
linear one there are no entries to leave out; its estimates from a part of a row are ordinary inner
products to ``omp``.

See docs/decisions/031-missing-values-in-signals.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes, PaddedCodes, replace_rows
from kernelatoms.coding.problem import LinearProblem
from kernelatoms.coding.tiny import enlarge, enlarged, put_back, tiny_signals
from kernelatoms.engine import machine

Array = NDArray[Any]


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

    Parameters
    ----------
    problem : LinearProblem
        Signals, NaN where values are missing, and atoms.
    n_nonzero : int
        The most atoms a signal may use.
    stop_at : array of shape (n_signals,), optional
        Stop earlier once |residual| <= stop_at |x|, both on the observed entries.
    absolute : bool
        Stop once |residual| <= stop_at instead.
    selection : {"omp", "ols"}
        Pick the atom of largest correlation, with atoms at unit norm on the observed entries, or
        of largest residual decrease.
    positive : bool
        Not for signals that miss values: refused.
    candidates : int32 array of shape (n_signals, n_candidates), optional
        The atoms that each signal may use; -1 pads shorter lists.

    Returns
    -------
    Codes
        With the squared residuals of the observed entries; below 10 eps of their energy they
        are 0.
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
