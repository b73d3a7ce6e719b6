"""l1 coding over any coding problem, with a certificate.

    min 1/2 |x - D w|^2 + alpha |w|_1                       (eq. (6) of the FKSC paper)

to a duality gap that is returned: no other code is better by more than that.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.lasso import solve_lasso
from kernelatoms.engine.products import block_rows
from kernelatoms.engine.threads import each_block, n_threads
from kernelatoms.space.codes import Codes
from kernelatoms.space.problem import CodingProblem

Array = NDArray[Any]

# From so many active atoms on, coordinate descent goes on where the path stopped: the factor of
# a larger active set costs more than passes over the atoms that screening leaves.
_MOST_ACTIVE = 120
_MOST_PASSES = 100_000
# What is left of an atom below this share counts as spanned by the active ones.
_ROUNDING = 1e-11


def lasso(
    problem: CodingProblem, alpha: float, *, positive: bool = False, gap_tol: float = 1e-6
) -> Codes:
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

    Returns
    -------
    Codes
        With ``gap``: at most ``gap_tol`` of the energy, unless coordinate descent ran out of
        passes.
    """
    if problem.energy(0, 0) is None:
        raise ValueError(
            "method='lasso' needs k(x, x) of the signals for its duality gap, which a precomputed "
            "kernel does not give."
        )
    n_signals, n_atoms = problem.n_signals, problem.n_atoms
    gram = np.ascontiguousarray(problem.gram[:, :n_atoms], dtype=np.float64)
    error, gap = np.empty(n_signals), np.empty(n_signals)
    found: list[Any] = [None] * n_signals
    block = block_rows(n_signals, n_atoms, 8, n_threads())

    def work(start: int, stop: int) -> None:
        corr = np.empty((stop - start, n_atoms), problem.dtype)
        problem.correlate(start, stop, out=corr)
        b = corr.astype(np.float64, copy=False)
        energies = problem.energy(start, stop)
        assert energies is not None
        energy = energies.astype(np.float64)
        w = np.zeros((stop - start, n_atoms))
        solve_lasso(
            gram, b, energy, float(alpha), positive, gap_tol, min(n_atoms, _MOST_ACTIVE),
            _ROUNDING, _MOST_PASSES, w, gap[start:stop],
        )  # fmt: skip
        left = energy - 2 * np.vecdot(b, w) + np.vecdot(w @ gram, w)
        error[start:stop] = np.where(left > 10 * np.finfo(np.float64).eps * energy, left, 0.0)
        for i, row in enumerate(w, start=start):
            atoms = np.flatnonzero(row)
            found[i] = (atoms, row[atoms])

    each_block(n_signals, block, lambda: work)
    width = max((len(atoms) for atoms, _ in found), default=0)
    indices = np.full((n_signals, max(width, 1)), -1, np.int32)
    values = np.zeros(indices.shape, problem.dtype)
    for i, (atoms, coefficients) in enumerate(found):
        indices[i, : len(atoms)], values[i, : len(atoms)] = atoms, coefficients
    dtype = problem.dtype
    return Codes(indices, values, n_atoms, error.astype(dtype), gap)
