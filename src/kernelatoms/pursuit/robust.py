"""Codes that distrust some entries of a signal: the residual is counted by absolute values.

    min |e|_1 + mu |w|_2^2   or   min |e|_1 + mu |w|_1     subject to   y = D w + e

(eq. (14) of the KCRC-LCD paper, and robust SRC): a few entries that no code explains, hidden or
corrupted, cost as much as they are large and not their squares. e holds them.

Solved by the augmented Lagrangian (Algorithm 2) for many signals at once. With D = U S V' one
decomposition serves every penalty sigma of every signal: by eq. (28), D w is next
U S^2 (S^2 + 2 mu/sigma)^-1 U't with t = y - e + z/sigma. The paper stops when the code stands
still, which a small sigma alone brings about; here it is the duality gap. The multiplier z has
entries within [-1, 1] by construction, so that z'y - |D'z|^2 / (4 mu) is below every objective.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kernelatoms.engine import machine

Array = NDArray[Any]

# Iterations between two looks at the gap and at sigma.
_LOOK_EVERY = 20


@dataclass(frozen=True)
class RobustCodes:
    """Robust codes of signals.

    Parameters
    ----------
    weights : array of shape (n_signals, n_atoms)
        Coefficients.
    errors : array of shape (n_signals, n_entries)
        What they distrust of each signal.
    gap : array of shape (n_signals,)
        Duality gaps, shares of |y|_1.
    """

    weights: Array
    errors: Array
    gap: Array


class RobustDictionary:
    """Atoms (n_atoms, n_entries), decomposed once for all signals that are coded over them.

    Parameters
    ----------
    atoms : array of shape (n_atoms, n_entries)
        Explicit vectors: rows, or columns of kernel values.
    mu : float
        Weight of the code's size, above 0.
    penalty : {"l2", "l1"}
        |w|_2^2 (robust CRC) or |w|_1 (robust SRC).
    """

    def __init__(self, atoms: Array, mu: float, penalty: str = "l2") -> None:
        self.atoms = atoms.astype(np.float64, copy=False)
        self.mu, self.penalty = float(mu), penalty
        self.U, self.s, self.V = _decomposed(self.atoms)

    def code(self, signals: Array, *, gap_tol: float = 1e-3, max_iter: int = 2000) -> RobustCodes:
        """Code signals (n, n_entries) to a duality gap of this share of |y|_1.

        Parameters
        ----------
        signals : array of shape (n, n_entries)
            What is coded.
        gap_tol : float
            The gap to reach.
        max_iter : int
            The most steps; what has not settled then is told by a ConvergenceWarning.

        Returns
        -------
        RobustCodes
        """
        Y = signals.astype(np.float64, copy=False)
        weights = np.zeros((len(Y), len(self.atoms)))
        errors, gaps = np.array(Y), np.zeros(len(Y))  # of zero signals

        def work(start: int, stop: int) -> None:
            rows = np.arange(start, stop)[np.abs(Y[start:stop]).max(axis=1) > 0]
            if len(rows):
                step = _RidgeSteps if self.penalty == "l2" else _LassoSteps
                found = _solve(step(self, Y[rows]), gap_tol, max_iter)
                weights[rows], errors[rows], gaps[rows] = found

        machine(Y).for_blocks(len(Y), 8 * Y.shape[1], 8, work)
        n_late = int(np.count_nonzero(gaps > gap_tol))
        if n_late:
            warnings.warn(
                f"{n_late} of {len(Y)} robust codes have not settled after {max_iter} steps: gaps "
                f"up to {gaps.max():.2g} of |y|_1, where {gap_tol:g} is wanted.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return RobustCodes(weights, errors, gaps)


class _RidgeSteps:
    """Steps of Algorithm 2 for signals Y (n, n_entries), each with its own sigma."""

    def __init__(self, dictionary: RobustDictionary, Y: Array) -> None:
        self.of, self.Y = dictionary, Y
        self.sigma = 1.0 / np.abs(Y).mean(axis=1, keepdims=True)
        self.e, self.z = np.zeros_like(Y), np.zeros_like(Y)
        self.Dw = np.zeros_like(Y)
        self.inside = np.zeros((len(Y), len(dictionary.s)))  # V'w

    def take(self) -> None:
        """Take one step (28) and remember how far e moved."""
        of, sigma = self.of, self.sigma
        t = (self.Y - self.e + self.z / sigma) @ of.U
        self.inside = t * (of.s / (of.s**2 + 2 * of.mu / sigma))
        self.Dw = (self.inside * of.s) @ of.U.T
        self._shrink()

    def _shrink(self) -> None:
        target = self.Y - self.Dw + self.z / self.sigma
        before, self.e = self.e, _soft(target, 1 / self.sigma)
        self.z = self.sigma * (target - self.e)  # z + sigma (y - D w - e)
        self.moved = self.sigma[:, 0] * np.linalg.norm(self.e - before, axis=1)
        self.apart = np.linalg.norm(self.Y - self.Dw - self.e, axis=1)

    def gap(self) -> Array:
        """Return primal less dual objective, shares of |y|_1."""
        of = self.of
        size = np.vecdot(self.inside, self.inside)
        primal = np.abs(self.Y - self.Dw).sum(axis=1) + of.mu * size
        along = (self.z @ of.U) * of.s  # V'D'z
        dual = np.vecdot(self.z, self.Y) - np.vecdot(along, along) / (4 * of.mu)
        return np.maximum(primal - dual, 0.0) / np.abs(self.Y).sum(axis=1)

    def weights(self) -> Array:
        """Return the codes w = V V'w (n, n_atoms)."""
        return self.inside @ self.of.V.T

    def rescale(self) -> None:
        """Balance what is apart and what moves: sigma is no part of the solution."""
        apart, moved = self.sigma[:, 0] * self.apart, self.moved
        factor = np.where(apart > 5 * moved, 2.0, np.where(moved > 5 * apart, 0.5, 1.0))
        self.sigma = self.sigma * factor[:, None]

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Go on with some signals only."""
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(self, name, value[rows])


class _LassoSteps(_RidgeSteps):
    """The same with |w|_1, by a second copy v = w that is shrunk too."""

    def __init__(self, dictionary: RobustDictionary, Y: Array) -> None:
        super().__init__(dictionary, Y)
        self.v = np.zeros((len(Y), len(dictionary.atoms)))
        self.q = np.zeros_like(self.v)

    def take(self) -> None:
        """Take one step in w, v and e."""
        of, sigma = self.of, self.sigma
        t = (self.Y - self.e + self.z / sigma) @ of.U
        r = (t * of.s) @ of.V.T + self.v - self.q / sigma
        # (D'D + I)^-1 = I - V S^2 (S^2 + 1)^-1 V'
        inside = r @ of.V
        w = r - (inside * (of.s**2 / (of.s**2 + 1))) @ of.V.T
        before, self.v = self.v, _soft(w + self.q / sigma, of.mu / sigma)
        self.q = self.q + sigma * (w - self.v)
        self.Dw = ((inside / (of.s**2 + 1)) * of.s) @ of.U.T
        self._shrink()
        self.moved = np.hypot(self.moved, sigma[:, 0] * np.linalg.norm(self.v - before, axis=1))
        self.apart = np.hypot(self.apart, np.linalg.norm(w - self.v, axis=1))

    def gap(self) -> Array:
        """Return primal less dual objective, shares of |y|_1."""
        of = self.of
        left = self.Y - self.v @ of.atoms
        primal = np.abs(left).sum(axis=1) + of.mu * np.abs(self.v).sum(axis=1)
        largest = np.abs(self.z @ of.atoms.T).max(axis=1)
        inside = np.minimum(1.0, of.mu / np.maximum(largest, np.finfo(np.float64).tiny))
        dual = inside * np.vecdot(self.z, self.Y)
        return np.maximum(primal - dual, 0.0) / np.abs(self.Y).sum(axis=1)

    def weights(self) -> Array:
        """Return the codes, exact zeros where they are."""
        return self.v


def _solve(steps: _RidgeSteps, gap_tol: float, max_iter: int) -> tuple[Array, Array, Array]:
    """Step until every signal's gap is small; return codes, errors and gaps."""
    n_signals, n_entries = steps.Y.shape
    weights = np.empty((n_signals, len(steps.of.atoms)))
    errors, gaps = np.empty((n_signals, n_entries)), np.empty(n_signals)
    left = np.arange(n_signals)
    for done in range(_LOOK_EVERY, max_iter + _LOOK_EVERY, _LOOK_EVERY):
        for _ in range(_LOOK_EVERY):
            steps.take()
        gap = steps.gap()
        settled = (gap <= gap_tol) | (done >= max_iter)
        if settled.any():
            rows = left[settled]
            weights[rows], errors[rows] = steps.weights()[settled], steps.e[settled]
            gaps[rows] = gap[settled]
            left = left[~settled]
            if not len(left):
                break
            steps.keep(~settled)
        # A sigma that changes for ever need not converge.
        if done <= max_iter // 4:
            steps.rescale()
    return weights, errors, gaps


def _decomposed(atoms: Array) -> tuple[Array, Array, Array]:
    """Return U, s and V with D = U S V', the atoms being the columns of D.

    From the smaller of D'D and DD'. Singular values below the root of eps, which it does not know,
    are nothing beside any mu that is of use.
    """
    wide = len(atoms) > atoms.shape[1]
    with machine(atoms).one_blas_thread(min(atoms.shape) < 500):
        small = atoms.T @ atoms if wide else atoms @ atoms.T
        values, vectors = scipy.linalg.eigh(small, check_finite=False)
    keep = values > values[-1] * len(small) * np.finfo(np.float64).eps
    s, near = np.sqrt(values[keep]), np.ascontiguousarray(vectors[:, keep])
    far = (atoms @ near if wide else atoms.T @ near) / s
    return (near, s, far) if wide else (far, s, near)


def _soft(values: Array, threshold: Array) -> Array:
    """Return the values moved towards 0 by the threshold, eq. (29)."""
    return np.sign(values) * np.maximum(np.abs(values) - threshold, 0.0)
