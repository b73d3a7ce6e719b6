"""Orthogonal matching pursuit over any coding problem.

    min |x - D w|^2   subject to   |w|_0 <= n_nonzero      (eq. (1) of the LKDL paper)

greedily; or as few atoms as reach a relative residual.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.omp import padded, pursue
from kernelatoms.engine.cpu.products import block_rows
from kernelatoms.engine.cpu.threads import each_block, n_threads
from kernelatoms.space.codes import Codes
from kernelatoms.space.problem import CodingProblem

Array = NDArray[Any]


def omp(
    problem: CodingProblem,
    n_nonzero: int,
    *,
    max_residual: float | None = None,
    selection: str = "omp",
    candidates: NDArray[np.int32] | None = None,
) -> Codes:
    """Code all signals of a problem, at most ``n_nonzero`` atoms each.

    Parameters
    ----------
    problem : CodingProblem
        Signals and atoms.
    n_nonzero : int
        The most atoms a signal may use.
    max_residual : float, optional
        Stop earlier once |residual| <= max_residual |x|.
    selection : {"omp", "ols"}
        Pick the atom of largest correlation, or of largest residual decrease.
    candidates : int32 array of shape (n_signals, n_candidates), optional
        The atoms that each signal may use; -1 pads shorter lists.

    Returns
    -------
    Codes
        An ``error`` below 10 eps of the signal's energy is 0.
    """
    n_signals, width = problem.n_signals, padded(problem.n_atoms)
    dtype = problem.dtype
    gram = problem.gram
    indices = np.empty((n_signals, n_nonzero), np.int32)
    values = np.empty((n_signals, n_nonzero), dtype)
    error = np.empty(n_signals, dtype)
    if max_residual is not None and problem.energy(0, 0) is None:
        raise ValueError(
            "max_residual needs k(x, x) of the signals, which a precomputed kernel does not "
            "give; use n_nonzero_coefs alone."
        )
    if candidates is None:
        candidates = np.empty((n_signals, 0), np.int32)
    block = block_rows(n_signals, width, dtype.itemsize, n_threads())

    def make_worker() -> Any:
        corr = np.zeros((block, width), dtype)
        explained = np.empty(block)
        until = np.full(block, np.inf)

        def work(start: int, stop: int) -> None:
            part, here = slice(start, stop), slice(0, stop - start)
            problem.correlate(start, stop, out=corr[here, : problem.n_atoms])
            energy = problem.energy(start, stop)
            if energy is not None and not np.isfinite(energy).all():
                raise ValueError(
                    f"X holds signals whose squared norm overflows {dtype.name}; scale X down or "
                    "use float64."
                )
            if max_residual is not None and energy is not None:
                until[here] = energy * (1.0 - max_residual**2)
            pursue(
                gram, corr[here], candidates[part], until[here], selection == "ols",
                indices[part], values[part], explained[here],
            )  # fmt: skip
            if energy is None:
                error[part] = -explained[here]
            else:
                left = energy - explained[here]
                error[part] = np.where(left > 10 * np.finfo(dtype).eps * energy, left, 0.0)

        return work

    each_block(n_signals, block, make_worker)
    return Codes(indices, values, problem.n_atoms, error)
