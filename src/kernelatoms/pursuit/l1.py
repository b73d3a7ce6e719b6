"""What all l1 pursuits share: blocks of signals, warm starts, the certificate.

They minimise 1/2 |x - D w|^2 + alpha |w|_1 (eq. (6) of the FKSC paper) through the Gram matrix, the
correlations b = D'x and the energies k(x, x), in float64 whatever the signals' type: supports of
nearly parallel atoms need the digits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.engine.cpu.lasso import certify
from kernelatoms.engine.cpu.products import block_rows
from kernelatoms.engine.cpu.threads import each_block, n_threads, one_blas_thread
from kernelatoms.space.codes import Codes
from kernelatoms.space.problem import CodingProblem, KernelProblem, LinearProblem

Array = NDArray[Any]

#: Codes a block in place: ``solve(gram, b, energy, w, start, stop)``; w holds the warm start.
Solve = Callable[[Array, Array, Array, Array, int, int], None]


def code_blocks(
    problem: CodingProblem,
    alpha: float,
    positive: bool,
    start: Array | None,
    solve: Solve,
    *,
    candidates: NDArray[np.int32] | None = None,
    **told: Array,
) -> Codes:
    """Code all signals of a problem, block by block on all threads, and certify the codes.

    ``told`` is what ``solve`` writes about each signal.
    """
    if problem.energy(0, 0) is None:
        raise ValueError(
            "l1 coding needs k(x, x) of the signals for its duality gap, which a precomputed "
            "kernel does not give."
        )
    n_signals, n_atoms = problem.n_signals, problem.n_atoms
    # With its padding: the rows are read up to the last atom, and nothing is copied.
    gram = np.ascontiguousarray(problem.gram, dtype=np.float64)
    _check_semidefinite(problem, gram[:, :n_atoms])
    if start is not None and start.shape != (n_signals, n_atoms):
        raise ValueError(
            f"start must hold a coefficient for each of {n_signals} signals and {n_atoms} atoms, "
            f"got shape {start.shape}."
        )
    if candidates is None:
        candidates = np.empty((n_signals, 0), np.int32)
    gap = np.empty(n_signals)
    blocks: dict[int, Codes] = {}

    def work(first: int, stop: int) -> None:
        corr = np.empty((stop - first, n_atoms), problem.dtype)
        problem.correlate(first, stop, out=corr)
        b = corr.astype(np.float64, copy=False)
        energies = problem.energy(first, stop)
        assert energies is not None
        energy = energies.astype(np.float64)
        _check_finite(b, energy)
        w = np.zeros(b.shape)
        if start is not None:  # zero atoms get no weight
            np.multiply(start[first:stop], np.diagonal(gram) > 0, out=w)
        solve(gram, b, energy, w, first, stop)
        error = np.empty(stop - first)
        certify(
            gram, b, energy, float(alpha), positive, candidates[first:stop], w, gap[first:stop],
            error,
        )  # fmt: skip
        error[error <= 10 * np.finfo(np.float64).eps * energy] = 0.0
        blocks[first] = Codes.from_dense(w, error.astype(problem.dtype))

    each_block(n_signals, block_rows(n_signals, n_atoms, 8, n_threads()), lambda: work)
    parts = [blocks[first] for first in sorted(blocks)]
    return Codes.stacked(parts, n_atoms, problem.dtype, gap=gap, **told)


def _check_finite(b: Array, energy: Array) -> None:
    if not (np.isfinite(b).all() and np.isfinite(energy).all()):
        raise ValueError(
            "The inner products of signals and atoms overflow or are undefined; scale the data "
            "down, use float64, or choose smaller kernel parameters."
        )


def _check_semidefinite(problem: CodingProblem, gram: Array) -> None:
    """Refuse a Gram matrix under which the problem has no minimum.

    n^3 / 3 operations, so only for kernels that may be at fault.
    """
    if isinstance(problem, LinearProblem) or not len(gram):
        return
    if isinstance(problem, KernelProblem) and problem.atoms.kernel.semidefinite is True:
        return
    scale = float(np.diagonal(gram).max())
    rounding = 10 * len(gram) * np.finfo(problem.dtype).eps * scale
    try:
        shifted = gram + rounding * np.eye(len(gram))
        with one_blas_thread():
            scipy.linalg.cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        raise ValueError(
            "The Gram matrix of the atoms is not positive semi-definite, so l1 coding over it has "
            "no minimum; choose another kernel (sigmoid kernels often are not) or "
            "other parameters."
        ) from None
