"""Steps to the row whose phi is nearest to a vector of feature space, for many vectors at once.

The kernel's ``inversion`` describes how k(x, a) depends on x. Anchors are rows (n, n_features) that
all vectors share, or separate per vector, (m, n, n_features). ``coef`` and ``inner``, <phi(a_i),
v_j>, are (n, m); ``lengths``, |phi(a_i)|, are (n,) or (m, n).

See docs/decisions/018-pre-images.md.
"""

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array, machine
from kernelatoms.similarity.gradients import GaussianInversion, PolynomialInversion, pick

# If a step shortened by this factor still goes uphill, the objective is flat here.
_SHORTEST = 2.0**-30


def nearest_anchors(nearness: Array, count: int) -> NDArray[np.intp]:
    """Return the numbers of the nearest anchors, nearest first: (n, m) -> (m, count)."""
    columns = np.ascontiguousarray(nearness.T)
    count = min(count, columns.shape[1])
    some = np.argpartition(-columns, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(columns, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def distance_rows(
    form: GaussianInversion | PolynomialInversion,
    anchors: Array,
    inner: Array,
    lengths: Array,
    n_neighbors: int,
) -> Array:
    """Return rows whose distances to the nearest shared anchors are those of the vector.

    Nearest are the ``n_neighbors`` anchors at the smallest angle. Vectors are unit, if Gaussian.
    """
    near = nearest_anchors(form.nearness(_over(inner, lengths)), n_neighbors)
    return form.solve(anchors[near], np.take_along_axis(inner.T, near, axis=1))


def fixed_point_starts(
    form: GaussianInversion | PolynomialInversion,
    anchors: Array,
    coef: Array,
    inner: Array,
    lengths: Array,
    n_anchors: int,
    usable: Array | None = None,
) -> Array:
    """Return rows to start from, (m, n_anchors + 1, n_features): near anchors and a weighted mean.

    Anchors at the smallest angle come first, scaled to the vector where that can be done; those
    that are ``usable`` (n, m) before all others.
    """
    cosine = _over(inner, lengths)
    nearness = form.nearness(cosine)
    if usable is not None:
        nearness = np.where(usable, nearness, -np.inf)
    near = nearest_anchors(nearness, n_anchors)
    factors = form.scale(np.take_along_axis(_over(cosine, lengths).T, near, axis=1))
    return np.concatenate(
        [factors[:, :, None] * pick(anchors, near), form.combine(anchors, coef)[:, None]], axis=1
    )


def _over(inner: Array, lengths: Array) -> Array:
    """Return inner / lengths, 0 where phi(a) = 0; lengths of shared (n,) or own anchors (m, n)."""
    return inner / np.where(lengths > 0, lengths, np.inf).T.reshape(len(inner), -1)


def fixed_point_rows(
    form: GaussianInversion | PolynomialInversion,
    anchors: Array,
    coef: Array,
    energy: Array,
    starts: Array,
    max_iter: int,
    tol: float,
) -> Array:
    """Return the best rows that fixed-point steps reach from the starts (m, n_starts, n_features).

    Steps go to the fixed point's next iterate, x <- x + t (x' - x) with t = 1, halved whenever that
    would be uphill and doubled (up to 1) whenever it was not: with negative coefficients the plain
    iteration need not converge. Never worse than the best start.

    ``energy`` is |v_j|^2 (m,). From each start at most ``max_iter`` steps are tried; they end when
    one promises to lower |phi(x) - v|^2 by no more than the share ``tol`` of |v|^2.
    """
    m, n_starts, n_features = starts.shape
    rows = starts.reshape(m * n_starts, n_features).copy()
    errors = np.empty(len(rows))
    vector = np.repeat(np.arange(m), n_starts)
    weights = np.ascontiguousarray(coef.T)

    def worker(start: int, stop: int) -> None:
        part = slice(start, stop)
        chosen = vector[part]
        rows_of = anchors if anchors.ndim == 2 else anchors[chosen]
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is no improvement
            rows[part], errors[part] = _descend(
                form, rows_of, weights[chosen], tol * energy[chosen], rows[part], max_iter
            )

    width = anchors.shape[0] if anchors.ndim == 2 else anchors.shape[1] * n_features
    machine(rows).for_blocks(len(rows), width, 8, worker)
    best = np.where(np.isnan(errors), np.inf, errors).reshape(m, n_starts).argmin(axis=1)
    return rows.reshape(m, n_starts, n_features)[np.arange(m), best]


def _descend(
    form: GaussianInversion | PolynomialInversion,
    anchors: Array,
    coef: Array,
    tol: Array,
    X: Array,
    max_iter: int,
) -> tuple[Array, Array]:
    """Take up to ``max_iter`` steps from every row; return the rows and their errors."""
    X = X.copy()
    errors, way, promise = form.step(X, anchors, coef)
    length = np.ones(len(X))
    active = np.arange(len(X))
    for _ in range(max_iter):
        going = (length[active] * promise[active] > tol[active]) & (length[active] > _SHORTEST)
        active = active[going]
        if not len(active):
            break
        trial = X[active] + length[active, None] * way[active]
        rows_of = anchors if anchors.ndim == 2 else anchors[active]
        tried = form.step(trial, rows_of, coef[active])
        better = tried[0] < errors[active]
        length[active] = np.where(better, np.minimum(2 * length[active], 1), length[active] / 2)
        moved = active[better]
        X[moved] = trial[better]
        for old, new in zip((errors, way, promise), tried, strict=True):
            old[moved] = new[better]
    return X, errors
