"""Codes by thresholding: inner products with the atoms, shrunk towards 0.

    w = soft(b, alpha) = sign(b) max(|b| - alpha, 0),    b = D'x

minimises 1/2 |x - D w|^2 + alpha |w|_1 if the atoms are orthonormal (Proposition 1 of the K-SAD
paper, whose beta_1 beside the whole square is twice this alpha). Over other atoms it is a cheap
code and not the minimum, which ``lasso`` finds.
"""

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import DenseCodes, PaddedCodes
from kernelatoms.coding.neighbors import ascending
from kernelatoms.coding.problem import CodingProblem
from kernelatoms.engine import Array, machine
from kernelatoms.features.linear_algebra import OVERFLOW
from kernelatoms.similarity.base import check_flag, check_number


def soft_threshold(values: Array, alpha: float, *, positive: bool = False) -> Array:
    """Return values shrunk towards 0 by ``alpha``; with ``positive``, 0 for negative values."""
    check_flag("positive", positive)
    shift = values.dtype.type(alpha)
    above = np.maximum(values - shift, 0)
    if positive:
        return above
    above += np.minimum(values + shift, 0)
    return above


def threshold(
    problem: CodingProblem,
    alpha: float,
    *,
    positive: bool = False,
    candidates: NDArray[np.int32] | None = None,
) -> DenseCodes | PaddedCodes:
    """Code all signals, over all atoms or over candidates (n_signals, K) of their own; -1 pads."""
    check_number("alpha", alpha)
    if alpha < 0:
        raise ValueError(f"alpha must be at least 0, got {alpha!r}.")
    error = np.empty(problem.n_signals, like=problem.like)
    if candidates is not None:
        candidates = ascending(candidates)
        values = np.empty(candidates.shape, problem.dtype, like=problem.like)

        def work_local(start: int, stop: int) -> None:
            grams, corrs = problem.local(start, stop, candidates[start:stop])
            values[start:stop] = soft_threshold(corrs, alpha, positive=positive)
            w = values[start:stop].astype(np.float64)
            quadratic = np.vecdot((w[:, None] @ grams)[:, 0], w)
            error[start:stop] = _left(problem, start, stop, corrs, w, quadratic)

        machine(values).for_local_blocks(*candidates.shape, work_local)
        return PaddedCodes(n_atoms=problem.n_atoms, error=error, indices=candidates, values=values)
    shape = (problem.n_signals, problem.n_atoms)
    weights = np.empty(shape, problem.dtype, like=problem.like)
    gram = None if is_orthonormal(problem.gram) else problem.gram

    def work(start: int, stop: int) -> None:
        corr, _ = problem.products(start, stop)
        weights[start:stop] = soft_threshold(corr, alpha, positive=positive)
        w = weights[start:stop]
        quadratic = np.vecdot(w if gram is None else w @ gram, w, dtype=np.float64)
        error[start:stop] = _left(problem, start, stop, corr, w, quadratic)

    machine(weights).for_blocks(problem.n_signals, 2 * problem.n_atoms, weights.itemsize, work)
    return DenseCodes(n_atoms=problem.n_atoms, error=error, weights=weights)


def is_orthonormal(gram: Array) -> bool:
    """Whether a Gram matrix is the identity, up to rounding."""
    apart = np.abs(gram - np.eye(len(gram), dtype=gram.dtype, like=gram)).max(initial=0)
    return bool(apart <= 100 * np.finfo(gram.dtype).eps)


def _left(
    problem: CodingProblem, start: int, stop: int, corr: Array, codes: Array, quadratic: Array
) -> Array:
    """Return |x - D w|^2 = |x|^2 - 2 b'w + w'G w; rounding becomes 0."""
    left = quadratic - 2 * np.vecdot(corr, codes, dtype=np.float64)
    if not np.isfinite(left).all():
        raise ValueError("The inner products of signals and atoms overflow; scale them down.")
    energy = problem.energy(start, stop)
    if energy is None:
        return left
    if not np.isfinite(energy).all():
        raise ValueError(OVERFLOW)
    left += energy
    left[left <= 10 * np.finfo(problem.dtype).eps * energy] = 0.0
    return left
