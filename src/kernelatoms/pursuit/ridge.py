"""Ridge codes: every atom takes part, and the energy of the coefficients is held down.

    min_w 1/2 |x - D w|^2 + mu/2 |w|^2

is flat where G w - b + mu w = 0, with G the Gram matrix of the atoms and b the signal's inner
products with them, so w = (G + mu I)^-1 b. One factorisation serves all signals, under any kernel.
"""

from numbers import Real
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.engine import machine
from kernelatoms.space.codes import DenseCodes
from kernelatoms.space.gram_check import OVERFLOW, check_gram
from kernelatoms.space.problem import CodingProblem, check_explained

Array = NDArray[Any]

# Above this reciprocal condition number the inverse of a Cholesky factor keeps half of the digits
# at least; below it the eigenvectors, which are slower, keep all that there are.
_WELL_CONDITIONED = np.sqrt(np.finfo(np.float64).eps)


def ridge(problem: CodingProblem, mu: float) -> DenseCodes:
    """Code all signals of a problem; computed in float64.

    Parameters
    ----------
    problem : CodingProblem
        Signals and atoms.
    mu : float
        Weight of |w|^2 / 2, at least 0.

    Returns
    -------
    DenseCodes
    """
    _check_weight(mu)
    problem.check_semidefinite()
    with machine(problem.norms2).one_blas_thread():
        root = _root_of_inverse(problem.gram, float(mu))
    gram, energies = problem.gram.astype(np.float64), np.zeros(problem.n_signals)
    weights = np.empty((problem.n_signals, problem.n_atoms), problem.dtype)
    error = np.empty(problem.n_signals)

    def work(start: int, stop: int) -> None:
        corr, energy = problem.products(start, stop)
        b = corr.astype(np.float64, copy=False)
        if not np.isfinite(b).all():
            raise ValueError("The inner products of signals and atoms overflow; scale them down.")
        with np.errstate(over="ignore", invalid="ignore"):
            weights[start:stop] = (b @ root) @ root.T
            w = weights[start:stop].astype(np.float64)
            left = np.vecdot(w @ gram - 2 * b, w)  # of the codes as they are returned
        # Coefficients near the smallest number of their type may be worse than none.
        worse = (left > 0) & np.isfinite(left)
        weights[start:stop][worse], left[worse] = 0.0, 0.0
        if energy is not None and not np.isfinite(energy).all():
            raise ValueError(OVERFLOW)
        if not np.isfinite(left).all():
            raise ValueError(
                f"The codes overflow {problem.dtype.name}; choose a larger mu, scale X down or the "
                "atoms up, or use float64."
            )
        if energy is not None:
            left += energy
            energies[start:stop] = energy
        error[start:stop] = left

    machine(weights).for_blocks(problem.n_signals, 2 * problem.n_atoms, 8, work)
    if problem.knows_energy:
        check_explained(problem, energies, error)
        error[error <= 10 * np.finfo(problem.dtype).eps * energies] = 0.0
    return DenseCodes(n_atoms=problem.n_atoms, error=error, weights=weights)


def solve_ridge(gram: Array, corr: Array, mu: float) -> Array:
    """Return the codes w = (G + mu I)^-1 b that minimise 1/2 |x - D w|^2 + mu/2 |w|^2.

    Where mu is 0, or lost in the rounding of a singular G (twins, wide kernels), they are the
    shortest of the minimisers: where the atoms span nothing, b has nothing but rounding.

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
    codes = np.empty(corr.shape, corr.dtype)

    def work(start: int, stop: int) -> None:
        codes[start:stop] = (corr[start:stop].astype(np.float64, copy=False) @ root) @ root.T

    machine(codes).for_blocks(len(corr), 2 * len(gram), root.itemsize, work)
    return codes


def _root_of_inverse(gram: Array, mu: float) -> Array:
    """Return R with R R' = (G + mu I)^-1, or the pseudo-inverse: few columns if the rank is low."""
    n_atoms = len(gram)
    # A Gram matrix of lower precision holds that precision's rounding.
    rounding = n_atoms * float(np.finfo(gram.dtype).eps)
    A = gram.astype(np.float64)
    A[np.diag_indices_from(A)] += mu
    norm = float(np.abs(A).sum(axis=0).max())
    factor, failed = scipy.linalg.lapack.dpotrf(A, lower=1, clean=1)
    if not failed:
        reciprocal_condition, _ = scipy.linalg.lapack.dpocon(factor, norm, uplo="L")
        if reciprocal_condition > max(_WELL_CONDITIONED, rounding):
            return scipy.linalg.lapack.dtrtri(factor, lower=1)[0].T
    values, vectors = scipy.linalg.eigh(gram.astype(np.float64))
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
