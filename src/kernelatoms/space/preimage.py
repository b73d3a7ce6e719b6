"""Pre-images: rows x whose phi(x) is about a given vector of feature space.

A vector v = sum_i c_i phi(a_i) is known through its coefficients c on anchors a. Seldom is it phi
of any row. Three ways to a row that comes close, all of them for many vectors at once:

- ``ridge_rows``: a linear map, learned from the anchors, any kernel (``regress_rows`` is the same
  in given coordinates);
- ``distance_rows``: a row that compares with the anchors next to v as v does;
- ``fixed_point_rows``: downhill on |phi(x) - v|^2 from given starts.

The last two must know how k(x, a) depends on x: the forms ``Gaussian`` and ``Polynomial`` do. The
last works on anchors that all vectors share and on anchors of each vector's own.
"""

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.engine import machine
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.inversion import GaussianInversion, PolynomialInversion, pick
from kernelatoms.space.gram_check import check_gram

Array = NDArray[Any]

# A regression on this many rows knows the way back as well as one on all of them.
_MOST_ROWS = 1000
# Every fit of a kernel learner regresses its atoms: the eigenvectors must not outlast learning.
_MOST_ROWS_IN_FIT = 500
# A step this many times shorter than the fixed point's that still leads uphill: it is flat here.
_SHORTEST = 2.0**-30


def best_ridge(eigenvalues: Array, energies: Array, outside: float, n_rows: int) -> float:
    """Return the ridge of the lowest generalised cross-validation error.

    The regression of R on coordinates with Gram matrix V S V' is known in closed form for every
    ridge: ``energies`` are the squared norms of the rows of V'R, ``outside`` what V does not span.
    """
    if outside <= n_rows * np.finfo(np.float64).eps * float(energies.sum()):
        outside = 0.0  # rounding, which would weigh more than the smallest ridges leave
    alphas = eigenvalues[0] * np.logspace(-8, 0, 33)
    shrinkage = alphas[:, None] / (eigenvalues + alphas[:, None])
    rss = outside + shrinkage**2 @ energies
    freedom = n_rows - len(eigenvalues) + shrinkage.sum(axis=1)
    gcv = rss / np.maximum(freedom, 1e-9 * n_rows) ** 2
    # Where all eigenvalues are equal (one row, or rows far apart) every ridge has the same error:
    # the smallest is taken, not the one that rounding favours.
    return float(alphas[int((gcv <= gcv.min() * (1 + 1e-9)).argmax())])


def regress_rows(X: Array, F: Array, vectors: Array) -> Array:
    """Return rows for vectors of feature space, as ridge regression learns them.

    Parameters
    ----------
    X : array of shape (n, n_features)
        Rows.
    F : array of shape (n, r)
        Their coordinates.
    vectors : array of shape (m, r)
        Coordinates of the vectors.

    Returns
    -------
    array of shape (m, n_features)
        Linear in the vectors.
    """
    chosen = _some_rows(len(X), _MOST_ROWS_IN_FIT)
    X, F = X[chosen], F[chosen]
    F = F.astype(np.float64)
    return ((vectors @ F.T) @ _ridge_weights(X, F @ F.T)).astype(X.dtype)


def ridge_rows(kernel: Kernel, anchors: Array, inner: Array) -> Array:
    """Return rows for vectors known by their inner products, as ridge regression learns them.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    anchors : array of shape (n, n_features)
        The rows to learn from.
    inner : array of shape (n, m)
        <phi(a_i), v_j>.

    Returns
    -------
    array of shape (m, n_features)
        Linear in the vectors.
    """
    chosen = _some_rows(len(anchors), _MOST_ROWS)
    X = anchors[chosen]
    K = kernel(X, X)
    check_gram(K, "the kernel on the anchors")
    return inner[chosen].T @ _ridge_weights(X, K)


def _some_rows(n: int, most: int) -> slice | NDArray[np.intp]:
    """Return which of n rows a regression learns from: all, or so many evenly spread ones."""
    if n <= most:
        return slice(None)
    return np.linspace(0, n - 1, most).astype(np.intp)


def _ridge_weights(X: Array, K: Array) -> Array:
    """Return (K + alpha)^+ X, alpha by generalised cross-validation."""
    X = X.astype(np.float64)
    with machine(
        K
    ).one_blas_thread():  # helper threads of BLAS cost more than they give on small matrices
        s, V = scipy.linalg.eigh(K, check_finite=False)
    if s[0] < -np.sqrt(np.finfo(np.float64).eps) * np.abs(s).max():
        raise ValueError(
            "kernel is not positive semi-definite on these rows: its smallest eigenvalue is "
            f"{s[0]:.3g} and its largest {s[-1]:.3g}, so it has no feature space."
        )
    keep = s > len(s) * np.finfo(np.float64).eps * s[-1]
    s, V = s[keep][::-1], V[:, keep][:, ::-1]
    if not len(s):
        return np.zeros_like(X)
    projected = V.T @ X
    energies = np.vecdot(projected, projected)
    outside = max(float(np.vdot(X, X)) - float(energies.sum()), 0.0)
    alpha = best_ridge(s, energies, outside, len(X))
    return V @ (projected / (s + alpha)[:, None])


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
    """Return rows that compare with the anchors next to each vector as the vector does.

    Parameters
    ----------
    form : Gaussian or Polynomial
        The kernel.
    anchors : array of shape (n, n_features)
        The anchors.
    inner : array of shape (n, m)
        <phi(a_i), v_j>; of unit vectors, if Gaussian.
    lengths : array of shape (n,)
        |phi(a_i)|.
    n_neighbors : int
        How many anchors each vector is compared with: those at the smallest angle, which with
        rows of unit length are the nearest.

    Returns
    -------
    array of shape (m, n_features)
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

    Anchors at the smallest angle come first, scaled to the vector where that can be done. All
    vectors share ``anchors`` (n, n_features) and their ``lengths`` (n,), or have their own,
    (m, n, n_features) and (m, n); ``coef`` and ``inner`` are (n, m), as is ``usable``: anchors to
    start from before all others.
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
    """Return the best rows that fixed-point steps reach from the starts.

    Steps go to the fixed point's next iterate, x <- x + t (x' - x) with t = 1, halved whenever that
    would be uphill and doubled (up to 1) whenever it was not: with negative coefficients the plain
    iteration need not converge. Never worse than the best start.

    Parameters
    ----------
    form : Gaussian or Polynomial
        The kernel.
    anchors : array of shape (n, n_features) or (m, n, n_features)
        The anchors; of each vector's own, if three-dimensional.
    coef : array of shape (n, m)
        The vectors; of unit norm, if Gaussian.
    energy : array of shape (m,)
        |v_j|^2.
    starts : array of shape (m, n_starts, n_features)
        Rows to start from.
    max_iter : int
        The most steps tried from each start.
    tol : float
        Stop when a step promises to lower |phi(x) - v|^2 by no more than this share of |v|^2.

    Returns
    -------
    array of shape (m, n_features)
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


def inner_with_own(kernel: Kernel, rows: Array, anchors: Array, coef: Array) -> Array:
    """Return <phi(x_j), v_j> for every row and its own vector, in blocks."""
    out = np.empty(len(rows))
    weights = np.ascontiguousarray(coef.T)

    def worker(start: int, stop: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # callers look at the result
            out[start:stop] = np.vecdot(kernel(rows[start:stop], anchors), weights[start:stop])

    machine(rows).for_blocks(len(rows), len(anchors), rows.itemsize, worker)
    return out
