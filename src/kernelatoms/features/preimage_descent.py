"""Steps to the row whose phi is nearest to a vector of feature space, for many vectors at once.

The kernel's ``inversion`` describes how k(x, a) depends on x.

See docs/decisions/018-pre-images.md.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array, machine
from kernelatoms.features.linear_algebra import OVERFLOW
from kernelatoms.similarity.gradients import GaussianInversion, Inversion, pick

# If a step shortened by this factor still goes uphill, the objective is flat here.
_SHORTEST = 2.0**-30


@dataclass(frozen=True)
class Vectors:
    """Vectors of feature space, with the inner products that all methods need.

    - ``anchors`` (n, n_features), or (m, n, n_features) if separate per vector.
    - ``coef``, ``inner`` (n, m): the coefficients c_ij, and <phi(a_i), v_j>.
    - ``lengths`` (n,) or (m, n): |phi(a_i)|.
    - ``energy``, ``nonzero`` (m,): |v_j|^2, and whether that is more than rounding.
    """

    anchors: Array
    coef: Array
    inner: Array
    lengths: Array
    energy: Array
    nonzero: Array

    @classmethod
    def measured(cls, anchors: Array, coef: Array, inner: Array, lengths: Array) -> "Vectors":
        """Return the vectors with their energies |v|^2, and which of them are not 0."""
        with np.errstate(over="ignore", invalid="ignore"):
            energy = np.vecdot(coef.T, inner.T)
            reach = np.vecdot(np.abs(coef).T, np.broadcast_to(lengths, coef.T.shape)) ** 2
        if not (np.isfinite(inner).all() and np.isfinite(energy + reach).all()):
            raise ValueError(OVERFLOW)
        # Coefficients that cancel leave the rounding of kernel values, which are sums over
        # features, and of the sum over anchors.
        n_terms = anchors.shape[-1] + len(coef)
        there = energy > 4 * n_terms * np.finfo(np.float64).eps * reach
        return cls(anchors, coef, inner, lengths, energy, there)

    def for_inversion(self, inversion: Inversion) -> "Vectors":
        """Return unit vectors if only their direction matters, zeros where there are none."""
        # Every phi(x) of a Gaussian kernel has norm 1.
        unit = isinstance(inversion, GaussianInversion)
        norms = np.sqrt(np.where(self.nonzero, self.energy, 1.0)) if unit else np.ones(1)
        coef = np.where(self.nonzero, self.coef / norms, 0.0)
        inner = np.where(self.nonzero, self.inner / norms, 0.0)
        energy = np.where(self.nonzero, self.energy / norms**2, 0.0)
        return Vectors(self.anchors, coef, inner, self.lengths, energy, self.nonzero)


def nearest_anchors(nearness: Array, count: int) -> NDArray[np.intp]:
    """Return the numbers of the nearest anchors, nearest first: (n, m) -> (m, count)."""
    columns = np.ascontiguousarray(nearness.T)
    count = min(count, columns.shape[1])
    some = np.argpartition(-columns, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(columns, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def distance_rows(inversion: Inversion, vectors: Vectors, n_neighbors: int) -> Array:
    """Return rows whose distances to the nearest shared anchors (by angle) are the vectors'."""
    nearness = inversion.nearness(_over(vectors.inner, vectors.lengths))
    near = nearest_anchors(nearness, n_neighbors)
    return inversion.solve(vectors.anchors[near], np.take_along_axis(vectors.inner.T, near, axis=1))


def fixed_point_starts(inversion: Inversion, vectors: Vectors, n_anchors: int) -> Array:
    """Return rows to start from, (m, n_anchors + 1, n_features): near anchors, a weighted mean."""
    anchors, lengths = vectors.anchors, vectors.lengths
    cosine = _over(vectors.inner, lengths)
    nearness = inversion.nearness(cosine)
    if anchors.ndim == 3:  # separate lists are padded with anchors of weight 0
        nearness = np.where(vectors.coef != 0, nearness, -np.inf)
    near = nearest_anchors(nearness, n_anchors)
    factors = inversion.scale(np.take_along_axis(_over(cosine, lengths).T, near, axis=1))
    mean = inversion.combine(anchors, vectors.coef)
    return np.concatenate([factors[:, :, None] * pick(anchors, near), mean[:, None]], axis=1)


def _over(inner: Array, lengths: Array) -> Array:
    """Return inner / lengths, 0 where phi(a) = 0; lengths of shared (n,) or own anchors (m, n)."""
    return inner / np.where(lengths > 0, lengths, np.inf).T.reshape(len(inner), -1)


def fixed_point_rows(
    inversion: Inversion, vectors: Vectors, starts: Array, max_iter: int, tol: float
) -> Array:
    """Return the best rows that fixed-point steps reach from the starts (m, n_starts, n_features).

    Steps go to the fixed point's next iterate, x <- x + t (x' - x) with t = 1, halved whenever that
    would be uphill and doubled (up to 1) whenever it was not: with negative coefficients the plain
    iteration need not converge. Never worse than the best start. Steps end when one promises to
    lower |phi(x) - v|^2 by no more than the share ``tol`` of |v|^2.
    """
    m, n_starts, n_features = starts.shape
    anchors, energy = vectors.anchors, vectors.energy
    rows = starts.reshape(m * n_starts, n_features).copy()
    errors = np.empty(len(rows))
    vector = np.repeat(np.arange(m), n_starts)
    weights = np.ascontiguousarray(vectors.coef.T)

    def worker(start: int, stop: int) -> None:
        part = slice(start, stop)
        chosen = vector[part]
        rows_of = anchors if anchors.ndim == 2 else anchors[chosen]
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is no improvement
            rows[part], errors[part] = _descend(
                inversion, rows_of, weights[chosen], tol * energy[chosen], rows[part], max_iter
            )

    width = anchors.shape[0] if anchors.ndim == 2 else anchors.shape[1] * n_features
    machine(rows).for_blocks(len(rows), width, 8, worker)
    best = np.where(np.isnan(errors), np.inf, errors).reshape(m, n_starts).argmin(axis=1)
    return rows.reshape(m, n_starts, n_features)[np.arange(m), best]


def _descend(
    inversion: Inversion, anchors: Array, coef: Array, tol: Array, X: Array, max_iter: int
) -> tuple[Array, Array]:
    """Take up to ``max_iter`` steps from every row; return the rows and their errors."""
    X = X.copy()
    errors, way, promise = inversion.step(X, anchors, coef)
    length = np.ones(len(X))
    active = np.arange(len(X))
    for _ in range(max_iter):
        going = (length[active] * promise[active] > tol[active]) & (length[active] > _SHORTEST)
        active = active[going]
        if not len(active):
            break
        trial = X[active] + length[active, None] * way[active]
        rows_of = anchors if anchors.ndim == 2 else anchors[active]
        tried = inversion.step(trial, rows_of, coef[active])
        better = tried[0] < errors[active]
        length[active] = np.where(better, np.minimum(2 * length[active], 1), length[active] / 2)
        moved = active[better]
        X[moved] = trial[better]
        for old, new in zip((errors, way, promise), tried, strict=True):
            old[moved] = new[better]
    return X, errors
