"""Orthogonal matching pursuit over any coding problem.

    min |x - D w|^2   subject to   |w|_0 <= n_nonzero      (eq. (1) of the LKDL paper)

greedily; or as few atoms as reach a relative residual.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import cpu
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
    candidates : (n_signals, n_candidates) int32, optional
        The atoms that each signal may use; -1 pads shorter lists.

    Returns
    -------
    Codes
        An ``error`` below 10 eps of the signal's energy is 0.
    """
    n_signals, n_atoms, dtype = problem.n_signals, problem.n_atoms, problem.dtype
    energies = np.empty(n_signals)
    gram = problem.gram.astype(dtype, copy=False)

    def products(start: int, stop: int) -> tuple[Array, Array | None]:
        corr = np.empty((stop - start, n_atoms), dtype)
        problem.correlate(start, stop, out=corr)
        energy = problem.energy(start, stop)
        energies[start:stop] = 0.0 if energy is None else energy
        return corr, energy

    options: dict[str, Any] = {"use_ols": selection == "ols"}
    if max_residual is not None:
        options["stop_at"] = np.full(n_signals, float(max_residual))
    if candidates is None:
        indices, values, left = cpu.omp(gram, products, n_signals, n_nonzero, **options)
    else:
        lists = candidates

        def local(start: int, stop: int) -> tuple[Array, Array, Array | None]:
            corr, energy = products(start, stop)
            own = lists[start:stop]
            listed = own >= 0
            grams = gram[own[:, :, None], own[:, None, :]]
            grams *= listed[:, :, None] & listed[:, None, :]
            return grams, np.take_along_axis(corr, own, axis=1) * listed, energy

        indices, values, left = cpu.omp_local(local, lists, n_nonzero, **options)
    error = np.where(left > 10 * np.finfo(dtype).eps * energies, left, 0.0)
    if n_signals and problem.energy(0, 1) is None:
        error = left
    return Codes(indices, values, n_atoms, error.astype(dtype))
