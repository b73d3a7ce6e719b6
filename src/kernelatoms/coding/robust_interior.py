"""Robust codes by an interior-point method: few steps, however correlated the atoms are.

    min |y - D w|_1 + mu |w|_2^2   or   min |y - D w|_1 + mu |w|_1

The dual variables z have entries within [-1, 1], and with the second penalty |D'z| <= mu. They stay
strictly inside, so that every step has a duality gap,

    |r|_1 - z'r + |D'z - 2 mu w|^2 / (4 mu)   or   |r|_1 - z'r + mu |w|_1 - w'D'z,     r = y - D w,

a sum of non-negative terms, accurate far below |y|_1. Steps are those of Mehrotra (1992). Each
solves (diag(W) + D diag(V) D') dz = t, in as many unknowns as a signal has entries, or by the
Woodbury formula in as many as there are atoms. V is 1 / (2 mu) for the first penalty: D D' is
computed once.

See docs/decisions/028-robust-codes.md.
"""

from collections.abc import Callable
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from kernelatoms.engine import Array

# How far a step goes towards the bound that it meets first.
_SHORT_OF = 0.99
# Steps below, and products of bounds and multipliers below this share of the first, are rounding.
_SHORTEST, _SMALLEST = 1e-6, float(np.finfo(np.float64).eps)


class InteriorPoint:
    """Atoms (n_atoms, n_entries), float64, and what all signals coded over them share.

    ``mu``, above 0, is the weight of |w|_2^2 (``penalty="l2"``) or |w|_1 ("l1").
    """

    def __init__(self, atoms: Array, mu: float, penalty: str) -> None:
        self.atoms, self.mu, self.ridge = atoms, mu, penalty == "l2"
        n, c = atoms.shape
        by_entries = c**3 / 3 + (0.0 if self.ridge else float(c * c * n))
        by_atoms = c * n * n + n**3 / 3
        self.in_entries = by_entries <= by_atoms
        #: Multiplications of one step.
        self.cost = min(by_entries, by_atoms)

    @cached_property
    def _outer(self) -> Array:
        """D D' / (2 mu)."""
        return (self.atoms.T @ self.atoms) / (2 * self.mu)

    def code(self, y: Array, gap_tol: float, max_iter: int) -> tuple[Array, Array, float]:
        """Return the code of a signal that is not 0, its errors, and its gap over its objective."""
        point = _Point(self.atoms, y, self.mu, self.ridge)
        found, first = point.found(), point.level()
        for _ in range(max_iter):
            rounded = point.level() < _SMALLEST * first
            if found[2] <= gap_tol or rounded or not self._step(point):
                break
            found = min(found, point.found(), key=itemgetter(2))
        if not found[2] <= gap_tol:
            found = min(found, point.found(zeros=False), key=itemgetter(2))
        return found

    def _step(self, at: "_Point") -> bool:
        """Move the point once; False where rounding ends it."""
        W, V = at.pull(0), (1 / (2 * self.mu) if self.ridge else at.pull(2))
        try:
            solve = self._factored(W, V)
        except np.linalg.LinAlgError:
            return False
        ahead = at.direction(solve, 0.0, None)
        centre = (at.level(ahead, at.longest(ahead)) / at.level()) ** 3
        move = at.direction(solve, centre * at.level(), ahead)
        length = min(1.0, _SHORT_OF * at.longest(move))
        if not length > _SHORTEST:  # nor a number
            return False
        at.go(move, length)
        return True

    def _factored(self, W: Array, V: Any) -> "_Solve":
        """Return what solves (diag(W) + D V D') dz = t: t -> (dz, D'dz, V D'dz)."""
        D = self.atoms.T
        if self.in_entries:
            matrix = self._outer.copy() if self.ridge else (D * V) @ D.T
            matrix.flat[:: len(matrix) + 1] += W
            factor = _cholesky(matrix)

            def by_entries(t: Array) -> tuple[Array, Array, Array]:
                dz = scipy.linalg.cho_solve(factor, t, check_finite=False)
                along = dz @ D
                return dz, along, V * along

            return by_entries
        scaled = self.atoms / np.sqrt(W)
        matrix = scaled @ scaled.T
        matrix.flat[:: len(matrix) + 1] += 1 / V
        factor = _cholesky(matrix)

        def by_atoms(t: Array) -> tuple[Array, Array, Array]:
            dw = scipy.linalg.cho_solve(factor, self.atoms @ (t / W), check_finite=False)
            return (t - D @ dw) / W, dw / V, dw

        return by_atoms


_Solve = Callable[[Array], tuple[Array, Array, Array]]


class _Move(NamedTuple):
    """A step: of z, of the code, of the bounds and of their multipliers."""

    z: Array
    w: Array
    bounds: list[Array]
    multipliers: list[Array]


class _Point:
    """The state of a signal's search: the code w, z, and bounds with their multipliers, above 0.

    The bounds are 1 - z and 1 + z, whose multipliers end as the parts of y - D w above and below 0;
    with |w|_1 also mu - D'z and mu + D'z, whose multipliers end as the parts of w. Bounds are moved
    with z and not computed from it, so that those near 0 keep their digits.
    """

    def __init__(self, atoms: Array, y: Array, mu: float, ridge: bool) -> None:
        self.atoms, self.y, self.mu, self.ridge = atoms, y, mu, ridge
        self.size = float(np.abs(y).mean())
        self.z, self.w = np.zeros(len(y)), np.zeros(len(atoms))
        self.bounds = [np.ones(len(y)), np.ones(len(y))]
        self.multipliers = [np.maximum(y, 0.0) + self.size, np.maximum(-y, 0.0) + self.size]
        if not ridge:
            self.bounds += [np.full(len(atoms), float(mu)) for _ in range(2)]
            self.multipliers += [np.full(len(atoms), self.size / mu) for _ in range(2)]
        self.along, self.left = self.atoms @ self.z, self.y  # D'z and y - D w

    def pull(self, first: int) -> Array:
        """Return multipliers over bounds, summed over two kinds of bounds."""
        x, m = self.bounds, self.multipliers
        return m[first] / x[first] + m[first + 1] / x[first + 1]

    def level(self, move: _Move | None = None, length: float = 0.0) -> float:
        """Return the mean product of bounds and multipliers, here or after a step."""
        x, m = self.bounds, self.multipliers
        if move is not None:
            x = [old + length * step for old, step in zip(x, move.bounds, strict=True)]
            m = [old + length * step for old, step in zip(m, move.multipliers, strict=True)]
        total = sum(float(one @ other) for one, other in zip(x, m, strict=True))
        return total / sum(len(one) for one in x)

    def direction(self, solve: _Solve, level: float, ahead: _Move | None) -> _Move:
        """Return the Newton step to products of this level, corrected by the step ``ahead``."""
        x, m = self.bounds, self.multipliers
        # (x + dx)(m + dm) = level, so that dm = fix - (m / x) dx
        fix = [level / one - other for one, other in zip(x, m, strict=True)]
        if ahead is not None:
            for f, one, dx, dm in zip(fix, x, ahead.bounds, ahead.multipliers, strict=True):
                f -= dx * dm / one
        if self.ridge:
            shift = self.along / (2 * self.mu) - self.w
        else:
            shift = fix[2] - fix[3] + (m[2] - m[3] - self.w)
        dz, along, dw = solve(self.left - (m[0] - m[1]) - shift @ self.atoms - fix[0] + fix[1])
        bounds = [-dz, dz] if self.ridge else [-dz, dz, -along, along]
        steps = [f - other / one * dx for f, one, other, dx in zip(fix, x, m, bounds, strict=True)]
        return _Move(dz, dw + shift, bounds, steps)

    def longest(self, move: _Move) -> float:
        """Return how far the step may go until a bound or a multiplier is 0, at most 1."""
        longest = 1.0
        for values, steps in ((self.bounds, move.bounds), (self.multipliers, move.multipliers)):
            for value, step in zip(values, steps, strict=True):
                falls = float((-step / value).max())
                longest = min(longest, 1 / falls) if falls > 0 else longest
        return longest

    def go(self, move: _Move, length: float) -> None:
        """Take the step."""
        self.z, self.w = self.z + length * move.z, self.w + length * move.w
        for values, steps in ((self.bounds, move.bounds), (self.multipliers, move.multipliers)):
            for value, step in zip(values, steps, strict=True):
                value += length * step
        self.along, self.left = self.atoms @ self.z, self.y - self.w @ self.atoms

    def found(self, *, zeros: bool = True) -> tuple[Array, Array, float]:
        """Return the code, its errors, and its gap as a share of its objective.

        An error is 0 where the residual is nearer to that than z is to its bounds; with ``zeros``
        and |w|_1, so is a coefficient where D'z is farther from its own.
        """
        w, left, z, along = self.w, self.left, self.z, self.along
        if self.ridge:
            apart = along - 2 * self.mu * w
            beside, size = float(apart @ apart) / (4 * self.mu), float(w @ w)
        else:
            if zeros:
                near = np.minimum(self.bounds[2], self.bounds[3]) / self.mu
                w = np.where(np.abs(w) > near * np.abs(w).max(), w, 0.0)
            left = self.y - w @ self.atoms
            inside = min(1.0, self.mu / max(float(np.abs(along).max()), self.mu))
            z, along = inside * z, inside * along
            size = float(np.abs(w).sum())
            beside = self.mu * size - float(along @ w)
        z = np.clip(z, -1.0, 1.0)
        residual = float(np.abs(left).sum())
        gap = residual - float(z @ left) + beside
        near = np.minimum(self.bounds[0], self.bounds[1]) * self.size
        errors = np.where(np.abs(left) > near, left, 0.0)
        return w, errors, gap / (residual + self.mu * size)


def _cholesky(matrix: Array) -> Any:
    """Return the factor of a positive definite matrix; a little larger, where rounding wants it."""
    try:
        return scipy.linalg.cho_factor(matrix, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        size = len(matrix) * np.finfo(np.float64).eps * float(np.trace(matrix))
        matrix.flat[:: len(matrix) + 1] += size
        return scipy.linalg.cho_factor(matrix, lower=True, check_finite=False)
