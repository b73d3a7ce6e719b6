"""Pursuits of signals with missing values (NaN): least squares on what is observed.

    min |x_O - (D w)_O|^2   subject to   |w|_0 <= n_nonzero

greedily, with O the observed entries of x and atoms at unit norm on O when they are compared: OMP
as in inpainting. Atoms that are only rounding on O are never picked. Under a kernel other than the
linear one there are no entries to leave out; its estimates from a part of a row are ordinary inner
products to ``omp``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.masked import masked_block_rows, pursue_observed
from kernelatoms.engine.cpu.threads import each_block, n_threads
from kernelatoms.pursuit.omp import omp
from kernelatoms.space.codes import Codes
from kernelatoms.space.problem import CodingProblem, LinearProblem, parted

Array = NDArray[Any]


def omp_of_observed(
    problem: CodingProblem,
    n_nonzero: int,
    *,
    max_residual: float | None = None,
    selection: str = "omp",
    candidates: NDArray[np.int32] | None = None,
) -> Codes:
    """Code all signals of a problem; those that miss values by what is observed of them.

    Parameters
    ----------
    problem : CodingProblem
        Signals, NaN where values are missing, and atoms.
    n_nonzero, max_residual, selection, candidates
        As in ``omp``.

    Returns
    -------
    Codes
        Complete signals have the codes that ``omp`` gives them. An ``error`` is that of the
        observed entries; under a kernel other than the linear one, an estimate of the whole.
    """
    parts = parted(problem)
    options: dict[str, Any] = {"max_residual": max_residual, "selection": selection}
    if parts is None:
        return omp(problem, n_nonzero, candidates=candidates, **options)
    codes = Codes(
        np.empty((problem.n_signals, n_nonzero), np.int32),
        np.empty((problem.n_signals, n_nonzero), problem.dtype),
        problem.n_atoms,
        np.empty(problem.n_signals, problem.dtype),
    )

    def write(pursuit: Any, part: CodingProblem, rows: NDArray[np.intp]) -> None:
        theirs = None if candidates is None else candidates[rows]
        found = pursuit(part, n_nonzero, candidates=theirs, **options)
        codes.indices[rows], codes.values[rows] = found.indices, found.values
        codes.error[rows] = found.error

    write(masked_omp, parts.partial, parts.partial_rows)
    if len(parts.complete_rows):
        write(omp, parts.complete, parts.complete_rows)
    return codes


def masked_omp(
    problem: LinearProblem,
    n_nonzero: int,
    *,
    max_residual: float | None = None,
    selection: str = "omp",
    candidates: NDArray[np.int32] | None = None,
) -> Codes:
    """Code signals by their observed entries, at most ``n_nonzero`` atoms each.

    Parameters
    ----------
    problem : LinearProblem
        Signals, NaN where values are missing, and atoms.
    n_nonzero : int
        The most atoms a signal may use.
    max_residual : float, optional
        Stop earlier once |residual| <= max_residual |x|, both on the observed entries.
    selection : {"omp", "ols"}
        Pick the atom of largest correlation, with atoms at unit norm on the observed entries, or
        of largest residual decrease.
    candidates : (n_signals, n_candidates) int32, optional
        The atoms that each signal may use; -1 pads shorter lists.

    Returns
    -------
    Codes
        With the squared residuals of the observed entries; below 10 eps of their energy they
        are 0.
    """
    signals, atoms, dtype = problem.signals, problem.atoms, problem.dtype
    n_signals, n_features = signals.shape
    columns = problem.columns
    with np.errstate(over="ignore"):
        squares = np.square(columns)
    norms2 = squares.sum(axis=0)
    problem.check_norms(norms2)
    norms2 = norms2.astype(np.float64)
    indices = np.empty((n_signals, n_nonzero), np.int32)
    values = np.empty((n_signals, n_nonzero), dtype)
    error = np.empty(n_signals, dtype)
    if candidates is None:
        candidates = np.empty((n_signals, 0), np.int32)
    share = -1.0 if max_residual is None else max_residual**2

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        missing = np.isnan(signals[part])
        residual = np.where(missing, dtype.type(0), signals[part])
        with np.errstate(over="ignore"):
            energy = np.vecdot(residual, residual)
        if not np.isfinite(energy).all():
            raise ValueError(
                f"X holds signals whose squared norm overflows {dtype.name}; scale X down or use "
                "float64."
            )
        left = np.empty(stop - start)
        pursue_observed(
            atoms, columns, squares, norms2, residual, (~missing).astype(dtype), candidates[part],
            energy * np.float64(share), selection == "ols", indices[part], values[part], left,
        )  # fmt: skip
        error[part] = np.where(left > 10 * np.finfo(dtype).eps * energy, left, 0.0)

    block = masked_block_rows(n_nonzero, n_features, problem.n_atoms, dtype.itemsize)
    each_block(n_signals, max(1, min(block, -(-n_signals // n_threads()))), lambda: work)
    return Codes(indices, values, problem.n_atoms, error)
