"""Codes in closed form: ridge codes, which use all atoms, and thresholded inner products.

Ridge codes minimise 1/2 |x - D w|^2 + mu/2 |w|^2. With G the Gram matrix of the atoms and b the
signal's inner products with them, w = (G + mu I)^-1 b. One factorisation serves all signals;
signals with candidates of their own need a small one each.

Thresholding shrinks the inner products towards 0,

    w = soft(b, alpha) = sign(b) max(|b| - alpha, 0)

which minimises 1/2 |x - D w|^2 + alpha |w|_1 if the atoms are orthonormal (Proposition 1 of the
K-SAD paper, whose beta_1 beside the whole square is twice this alpha). Over other atoms it is a
cheap code and not the minimum, which ``lasso`` finds.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import DenseCodes, PaddedCodes
from kernelatoms.coding.neighbors import ascending
from kernelatoms.coding.problem import CodingProblem, check_explained, prefers_no_gram
from kernelatoms.engine import Array, machine
from kernelatoms.features.linear_algebra import OVERFLOW, check_gram, eigh, root_of_inverse
from kernelatoms.similarity.base import check_flag, check_number

# Above this reciprocal condition number, the inverse of a Cholesky factor keeps at least half of
# the digits; below it, eigenvectors are used, which are slower and keep more.
_WELL_CONDITIONED = np.sqrt(np.finfo(np.float64).eps)


def ridge(
    problem: CodingProblem, mu: float, *, candidates: NDArray[np.int32] | None = None
) -> DenseCodes | PaddedCodes:
    """Code all signals of a problem; computed in float64.

    ``mu``, at least 0, is the weight of |w|^2 / 2. Of several minimisers (mu = 0, atoms that are
    alike) the shortest is returned. ``candidates`` (n_signals, K) are the atoms that each signal
    may use; -1 pads shorter lists.
    """
    _check_weight(mu)
    if candidates is None or not prefers_no_gram(problem, candidates.shape[1]):
        problem.check_semidefinite()  # which needs the whole matrix
    if candidates is None:
        with machine(problem.norms2).one_blas_thread():
            root = _root_of_inverse(problem.gram, float(mu))
        gram = problem.gram.astype(np.float64)

    def solve(corr: Array, energy: Array | None, grams: Array | None) -> tuple[Array, Array]:
        b = corr.astype(np.float64, copy=False)
        _check_range(b, energy)
        with np.errstate(over="ignore", invalid="ignore"):
            if grams is None:
                weights = ((b @ root) @ root.T).astype(problem.dtype)
            else:
                found = machine(grams).ridge_local(grams, b, float(mu), gram_columns=False)
                weights = found.astype(problem.dtype)
            w = weights.astype(np.float64)
            Gw = w @ gram if grams is None else (w[:, None] @ grams)[:, 0]
            left = np.vecdot(Gw - 2 * b, w)  # of the codes as they are returned
        _check_codes(weights, left)
        return weights, left

    return _code_blocks(problem, candidates, solve, itemsize=8, check=True)


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
    gram = problem.gram if candidates is None and not is_orthonormal(problem.gram) else None

    def solve(corr: Array, energy: Array | None, grams: Array | None) -> tuple[Array, Array]:
        weights = soft_threshold(corr, alpha, positive=positive).astype(problem.dtype, copy=False)
        w, Gw = weights, weights if gram is None else weights @ gram
        if grams is not None:
            w = weights.astype(np.float64)
            Gw = (w[:, None] @ grams)[:, 0]
        left = np.vecdot(Gw, w, dtype=np.float64) - 2 * np.vecdot(corr, w, dtype=np.float64)
        _check_range(left, energy)
        return weights, left

    itemsize = problem.dtype.itemsize
    return _code_blocks(problem, candidates, solve, itemsize=itemsize, check=False)


def soft_threshold(values: Array, alpha: float, *, positive: bool = False) -> Array:
    """Return values shrunk towards 0 by ``alpha``; with ``positive``, 0 for negative values."""
    check_flag("positive", positive)
    shift = values.dtype.type(alpha)
    above = np.maximum(values - shift, 0)
    if not positive:
        above += np.minimum(values + shift, 0)
    return above


def is_orthonormal(gram: Array) -> bool:
    """Whether a Gram matrix is the identity, up to rounding."""
    apart = np.abs(gram - np.eye(len(gram), dtype=gram.dtype, like=gram)).max(initial=0)
    return bool(apart <= 100 * np.finfo(gram.dtype).eps)


def _code_blocks(
    problem: CodingProblem,
    candidates: NDArray[np.int32] | None,
    solve: Callable[[Array, Array | None, Array | None], tuple[Array, Array]],
    *,
    itemsize: int,
    check: bool,
) -> DenseCodes | PaddedCodes:
    """Code signals block by block, over all atoms or over candidates of their own.

    ``solve(corr, energy, grams)`` returns weights and |x - D w|^2 - |x|^2; ``grams`` are those of
    the candidates, else None. With ``check``, codes that explain too much are refused.
    """
    like, n_signals = problem.like, problem.n_signals
    candidates = None if candidates is None else ascending(candidates)
    shape = (n_signals, problem.n_atoms) if candidates is None else candidates.shape
    weights = np.empty(shape, problem.dtype, like=like)
    error, energies = np.empty(n_signals, like=like), np.zeros(n_signals, like=like)

    def work(start: int, stop: int) -> None:
        grams = None
        if candidates is None:
            corr, energy = problem.products(start, stop)
        else:
            grams, corr = problem.local(start, stop, candidates[start:stop])
            energy = problem.energy(start, stop)
        weights[start:stop], left = solve(corr, energy, grams)
        if energy is not None:
            left += energy
            energies[start:stop] = energy
        error[start:stop] = left

    if candidates is None:
        machine(weights).for_blocks(n_signals, 2 * problem.n_atoms, itemsize, work)
    else:
        machine(weights).for_local_blocks(*shape, work)
    if problem.knows_energy:
        if check:
            check_explained(problem, energies, error)
        error[error <= 10 * np.finfo(problem.dtype).eps * energies] = 0.0  # only rounding
    if candidates is None:
        return DenseCodes(n_atoms=problem.n_atoms, error=error, weights=weights)
    return PaddedCodes(n_atoms=problem.n_atoms, error=error, indices=candidates, values=weights)


def _check_range(products: Array, energy: Array | None) -> None:
    """Refuse inner products of signals with atoms, or of signals, that overflow."""
    if not np.isfinite(products).all():
        raise ValueError("The inner products of signals and atoms overflow; scale them down.")
    if energy is not None and not np.isfinite(energy).all():
        raise ValueError(OVERFLOW)


def _check_codes(weights: Array, left: Array) -> None:
    """Replace codes that are worse than none by 0, and refuse overflow; changes both in place."""
    # Coefficients near the smallest number of their type may be worse than none.
    worse = (left > 0) & np.isfinite(left)
    weights[worse], left[worse] = 0.0, 0.0
    if not np.isfinite(left).all():
        raise ValueError(
            f"The codes overflow {weights.dtype.name}; choose a larger mu, scale X down or the "
            "atoms up, or use float64."
        )


def solve_ridge(gram: Array, corr: Array, mu: float) -> Array:
    """Return the codes w = (G + mu I)^-1 b that minimise 1/2 |x - D w|^2 + mu/2 |w|^2.

    Where mu is 0, or below the rounding of a singular G (equal atoms, wide kernels), they are the
    shortest of the minimisers.

    Parameters
    ----------
    gram : array of shape (n_atoms, n_atoms)
        G, inner products of the atoms: symmetric and positive semi-definite.
    corr : array of shape (n_signals, n_atoms)
        A row b for every signal: its inner products with the atoms.
    mu : float
        Weight of |w|^2 / 2, at least 0.

    Returns
    -------
    codes : array of shape (n_signals, n_atoms)
        Dense codes, computed in float64, in the dtype of ``corr``.
    """
    _check(gram, corr, mu)
    with machine(corr).one_blas_thread():
        root = _root_of_inverse(gram, float(mu))
    codes = np.empty(corr.shape, corr.dtype, like=corr)

    def work(start: int, stop: int) -> None:
        codes[start:stop] = (corr[start:stop].astype(np.float64, copy=False) @ root) @ root.T

    machine(codes).for_blocks(len(corr), 2 * len(gram), root.itemsize, work)
    return codes


def inverse_gram(gram: Array, mu: float) -> Array:
    """Return (G + mu I)^-1, or the pseudo-inverse, in float64: codes are ``corr @ inverse``."""
    _check_weight(mu)
    root = _root_of_inverse(gram, float(mu))
    return root @ root.T


def _root_of_inverse(gram: Array, mu: float) -> Array:
    """Return R with R R' = (G + mu I)^-1, or the pseudo-inverse: few columns if the rank is low."""
    n_atoms = len(gram)
    # A Gram matrix of lower precision holds that precision's rounding.
    rounding = n_atoms * float(np.finfo(gram.dtype).eps)
    A = gram.astype(np.float64)
    each = np.arange(n_atoms)
    A[each, each] += mu
    root = root_of_inverse(A, max(float(_WELL_CONDITIONED), rounding))
    if root is not None:
        return root
    values, vectors = eigh(gram.astype(np.float64), check_finite=True)
    values = np.maximum(values, 0) + mu
    keep = values > rounding * values[-1]
    return vectors[:, keep] / np.sqrt(values[keep])


def _check_weight(mu: Any) -> None:
    if isinstance(mu, bool) or not isinstance(mu, Real):
        raise TypeError(f"mu must be a number of at least 0, got {mu!r}.")
    if not 0 <= float(mu) < np.inf:
        raise ValueError(f"mu must be at least 0 and finite, got {mu!r}.")


def _check(gram: Array, corr: Array, mu: Any) -> None:
    """Refuse what cannot be inner products of atoms and of signals with them, or a weight."""
    _check_weight(mu)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not gram.size:
        raise ValueError(f"gram must be square, got shape {gram.shape}.")
    if corr.ndim != 2 or corr.shape[1] != len(gram):
        raise ValueError(
            f"corr must have one column for each of the {len(gram)} atoms, got shape {corr.shape}."
        )
    if not np.isfinite(corr).all():
        raise ValueError("corr contains NaN or infinity.")
    check_gram(gram, "the Gram matrix of the atoms")
