"""Robust codes: the residual is penalised by its l1 norm.

    min |e|_1 + mu |w|_2^2   or   min |e|_1 + mu |w|_1     subject to   y = D w + e

(eq. (14) of the KCRC-LCD paper, and robust SRC). A few entries that no code explains, occluded or
corrupted, count by their size and not by its square; e holds them.

Two solvers share the work, and both end by the duality gap over the objective. The augmented
Lagrangian (Algorithm 2) takes cheap steps for many signals at once: with D = U S V', by eq. (28), D
w is next U S^2 (S^2 + 2 mu/sigma)^-1 U't with t = y - e + z/sigma, for a sigma of each signal. That
takes some hundred steps over images, but tens of thousands over columns of kernel values, which are
nearly parallel. Signals that have not converged at a quarter of the cost of the interior-point
method (``robust_interior``) are left to that, and so are all codes with |w|_1.

See docs/decisions/028-robust-codes.md.
"""

import warnings
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kernelatoms.coding.robust_interior import InteriorPoint
from kernelatoms.engine import Array, machine

# Steps of the augmented Lagrangian between two checks of the gap and of sigma.
_LOOK_EVERY = 20
# Steps of the interior-point method that most signals need.
_FEW_STEPS = 9


class RobustCodes(NamedTuple):
    """Coefficients, errors (n_signals, n_entries) and duality gaps as shares of the objective."""

    weights: Array
    errors: Array
    gap: Array


class RobustDictionary:
    """Atoms (n_atoms, n_entries), decomposed once for all signals coded over them.

    ``mu``, above 0, is the weight of |w|_2^2 (``penalty="l2"``, robust CRC) or |w|_1 ("l1", SRC).
    """

    def __init__(self, atoms: Array, mu: float, penalty: str = "l2") -> None:
        self.atoms = atoms.astype(np.float64, copy=False)
        self.mu, self.penalty = float(mu), penalty
        self._interior = InteriorPoint(self.atoms, self.mu, penalty)

    @cached_property
    def decomposed(self) -> tuple[Array, Array, Array]:
        """U, s and V with D = U S V', the atoms being the columns of D.

        From the smaller of D'D and DD', which loses singular values below the root of eps of the
        largest: these are negligible beside any useful mu.
        """
        atoms = self.atoms
        wide = len(atoms) > atoms.shape[1]
        with machine(atoms).one_blas_thread(min(atoms.shape) < 500):
            small = atoms.T @ atoms if wide else atoms @ atoms.T
            values, vectors = scipy.linalg.eigh(small, check_finite=False)
        keep = values > values[-1] * len(small) * np.finfo(np.float64).eps
        s, near = np.sqrt(values[keep]), np.ascontiguousarray(vectors[:, keep])
        far = (atoms @ near if wide else atoms.T @ near) / s
        return (near, s, far) if wide else (far, s, near)

    def with_mu(self, mu: float) -> "RobustDictionary":
        """Return the same atoms with another weight and the same decomposition."""
        other = RobustDictionary(self.atoms, mu, self.penalty)
        if "decomposed" in vars(self):
            other.decomposed = self.decomposed
        return other

    def code(self, signals: Array, gap_tol: float = 1e-4, max_iter: int = 100) -> RobustCodes:
        """Code signals (n, n_entries) to a duality gap of this share; callers warn of larger ones.

        They warn once for many calls, by ``warn_not_converged``.
        """
        Y = signals.astype(np.float64, copy=False)
        weights = np.zeros((len(Y), len(self.atoms)))
        errors, gaps = np.array(Y), np.zeros(len(Y))  # of zero signals
        n_steps = self._n_cheap_steps()
        if n_steps:
            _ = self.decomposed  # once, not once per thread

        def work(start: int, stop: int) -> None:
            rows = np.arange(start, stop)[np.abs(Y[start:stop]).max(axis=1) > 0]
            if n_steps and len(rows):
                found = _solve(_RidgeSteps(self, Y[rows]), gap_tol, n_steps)
                weights[rows], errors[rows], gaps[rows] = found
                rows = rows[gaps[rows] > gap_tol]
            for i in rows:
                weights[i], errors[i], gaps[i] = self._interior.code(Y[i], gap_tol, max_iter)

        machine(Y).for_blocks(len(Y), 8 * Y.shape[1], 8, work)
        return RobustCodes(weights, errors, gaps)

    def _n_cheap_steps(self) -> int:
        """Return how many steps of the augmented Lagrangian to try, a multiple of the interval."""
        if self.penalty != "l2":
            return 0
        step = 2 * self.atoms.shape[1] * min(self.atoms.shape)
        looks = int(_FEW_STEPS * self._interior.cost / (4 * step * _LOOK_EVERY))
        return looks * _LOOK_EVERY


def warn_not_converged(gaps: Array, gap_tol: float) -> None:
    """Warn once about all robust codes whose gap is above ``gap_tol``."""
    n_late = int(np.count_nonzero(gaps > gap_tol))
    if n_late:
        warnings.warn(
            f"{n_late} of {len(gaps)} robust codes have not converged: their duality gaps are up "
            f"to {gaps.max():.2g} of the objective, where {gap_tol:g} is wanted.",
            ConvergenceWarning,
            stacklevel=3,
        )


class _RidgeSteps:
    """Steps of Algorithm 2 for signals Y (n, n_entries), each with its own sigma."""

    def __init__(self, dictionary: RobustDictionary, Y: Array) -> None:
        self.mu, self.Y = dictionary.mu, Y
        self._U, self._s, self._V = dictionary.decomposed
        self.sigma = 1.0 / np.abs(Y).mean(axis=1, keepdims=True)
        self.e, self.z = np.zeros_like(Y), np.zeros_like(Y)
        self.Dw = np.zeros_like(Y)
        self.inside = np.zeros((len(Y), len(self._s)))  # V'w
        self.moved = self.apart = np.zeros(len(Y))

    def take(self) -> None:
        """Take one step (28), and record how far e moved."""
        sigma, s = self.sigma, self._s
        t = (self.Y - self.e + self.z / sigma) @ self._U
        self.inside = t * (s / (s**2 + 2 * self.mu / sigma))
        self.Dw = (self.inside * s) @ self._U.T
        target = self.Y - self.Dw + self.z / sigma
        shrunk = np.sign(target) * np.maximum(np.abs(target) - 1 / sigma, 0.0)  # (29)
        before, self.e = self.e, shrunk
        self.z = sigma * (target - self.e)  # z + sigma (y - D w - e), within [-1, 1]
        self.moved = sigma[:, 0] * np.linalg.norm(self.e - before, axis=1)
        self.apart = np.linalg.norm(self.Y - self.Dw - self.e, axis=1)

    def gap(self) -> Array:
        """Return primal less dual objective, over the primal one; see ``robust_interior``."""
        left, z = self.Y - self.Dw, np.clip(self.z, -1.0, 1.0)
        apart = (z @ self._U) * self._s - 2 * self.mu * self.inside  # V'(D'z - 2 mu w)
        residuals = np.abs(left).sum(axis=1)
        gaps = residuals - np.vecdot(z, left) + np.vecdot(apart, apart) / (4 * self.mu)
        return gaps / (residuals + self.mu * np.vecdot(self.inside, self.inside))

    def weights(self) -> Array:
        """Return the codes w = V V'w (n, n_atoms)."""
        return self.inside @ self._V.T

    def rescale(self) -> None:
        """Balance primal residuals (``apart``) and dual ones (``moved``) by sigma."""
        apart, moved = self.sigma[:, 0] * self.apart, self.moved
        factor = np.where(apart > 5 * moved, 2.0, np.where(moved > 5 * apart, 0.5, 1.0))
        self.sigma = self.sigma * factor[:, None]

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Keep some signals only."""
        for name in ("Y", "sigma", "e", "z", "Dw", "inside", "moved", "apart"):
            setattr(self, name, getattr(self, name)[rows])


def _solve(steps: _RidgeSteps, gap_tol: float, n_steps: int) -> tuple[Array, Array, Array]:
    """Step until every signal's gap is small; return codes of these signals, errors and gaps."""
    n_signals, n_entries = steps.Y.shape
    weights = np.zeros((n_signals, len(steps._V)))
    errors, gaps = np.zeros((n_signals, n_entries)), np.full(n_signals, np.inf)
    left = np.arange(n_signals)
    for done in range(0, n_steps, _LOOK_EVERY):
        for _ in range(_LOOK_EVERY):
            steps.take()
        gap = steps.gap()
        converged = gap <= gap_tol
        if converged.any():
            rows = left[converged]
            weights[rows], errors[rows] = steps.weights()[converged], steps.e[converged]
            gaps[rows] = gap[converged]
            left = left[~converged]
            if not len(left):
                break
            steps.keep(~converged)
        # With a sigma that never stops changing, steps need not converge.
        if done < n_steps // 2:
            steps.rescale()
    return weights, errors, gaps
