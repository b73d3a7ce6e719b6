"""Ridge codes: all atoms are used, with a penalty on the energy of the coefficients.

    min_w 1/2 |x - D w|^2 + mu/2 |w|^2

has its minimum at w = (G + mu I)^-1 b, with G the Gram matrix of the atoms and b the signal's inner
products with them. One factorisation serves all signals; signals with candidates of their own need
a small one each.
"""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import DenseCodes, PaddedCodes
from kernelatoms.coding.neighbors import ascending
from kernelatoms.coding.problem import CodingProblem, check_explained, prefers_no_gram
from kernelatoms.engine import Array, machine
from kernelatoms.features.linear_algebra import OVERFLOW, check_gram, eigh, root_of_inverse

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
    if candidates is not None:
        return _ridge_local(problem, float(mu), candidates)
    problem.check_semidefinite()
    with machine(problem.norms2).one_blas_thread():
        root = _root_of_inverse(problem.gram, float(mu))
    like, shape = problem.like, (problem.n_signals, problem.n_atoms)
    gram, energies = problem.gram.astype(np.float64), np.zeros(shape[0], like=like)
    weights, error = np.empty(shape, problem.dtype, like=like), np.empty(shape[0], like=like)

    def work(start: int, stop: int) -> None:
        corr, energy = problem.products(start, stop)
        b = corr.astype(np.float64, copy=False)
        _check_products(b, energy)
        with np.errstate(over="ignore", invalid="ignore"):
            weights[start:stop] = (b @ root) @ root.T
            w = weights[start:stop].astype(np.float64)
            left = np.vecdot(w @ gram - 2 * b, w)  # of the codes as they are returned
        _check_codes(weights[start:stop], left)
        if energy is not None:
            left += energy
            energies[start:stop] = energy
        error[start:stop] = left

    machine(weights).for_blocks(problem.n_signals, 2 * problem.n_atoms, 8, work)
    _check_error(problem, energies, error)
    return DenseCodes(n_atoms=problem.n_atoms, error=error, weights=weights)


def _ridge_local(problem: CodingProblem, mu: float, candidates: NDArray[np.int32]) -> PaddedCodes:
    """Code each signal over its own candidates, by a small Gram matrix each."""
    if not prefers_no_gram(problem, candidates.shape[1]):  # a check that needs all of it
        problem.check_semidefinite()
    candidates = ascending(candidates)
    like, n_signals = problem.like, problem.n_signals
    energies, error = np.zeros(n_signals, like=like), np.empty(n_signals, like=like)
    weights = np.empty(candidates.shape, problem.dtype, like=like)

    def work(start: int, stop: int) -> None:
        grams, corrs = problem.local(start, stop, candidates[start:stop])
        energy = problem.energy(start, stop)
        b = corrs.astype(np.float64, copy=False)
        _check_products(b, energy)
        with np.errstate(over="ignore", invalid="ignore"):
            weights[start:stop] = machine(grams).ridge_local(grams, b, mu, gram_columns=False)
            w = weights[start:stop].astype(np.float64)
            left = np.vecdot((w[:, None] @ grams)[:, 0] - 2 * b, w)
        _check_codes(weights[start:stop], left)
        if energy is not None:
            left += energy
            energies[start:stop] = energy
        error[start:stop] = left

    machine(weights).for_local_blocks(*candidates.shape, work)
    _check_error(problem, energies, error)
    return PaddedCodes(n_atoms=problem.n_atoms, error=error, indices=candidates, values=weights)


def _check_products(b: Array, energy: Array | None) -> None:
    if not np.isfinite(b).all():
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


def _check_error(problem: CodingProblem, energies: Array, error: Array) -> None:
    """Refuse codes that explain too much; errors that are only rounding become 0."""
    if problem.knows_energy:
        check_explained(problem, energies, error)
        error[error <= 10 * np.finfo(problem.dtype).eps * energies] = 0.0


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
