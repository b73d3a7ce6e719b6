"""Ways from vectors of feature space back to rows: fixed-point steps, and regressions.

Steps (``fixed_point_rows``) lead to the row whose phi is nearest to a vector, for many vectors at
once. The kernel's ``inversion`` describes how k(x, a) depends on x.

A linear map (``regress_rows``, ``ridge_rows``) is the ridge regression of rows on their
coordinates, with the ridge chosen by generalised cross-validation (``best_ridge``).

``learn_inverse_map`` is kernel ridge regression (Bakir, Weston and Schoelkopf, 2004), since rows
are curved functions of a few leading coordinates, or of those of a narrow kernel. Rows are
regressed on their virtual samples under a Gaussian kernel of these, or linearly; exact
leave-one-out errors choose its width and the ridge.

See docs/decisions/018-pre-images.md.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array, machine, to_numpy
from kernelatoms.features.linear_algebra import OVERFLOW, check_gram, eigh
from kernelatoms.similarity import Kernel
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


#: A regression on this many rows is about as good as one on more.
MOST_ROWS = 1000
# Every fit of a kernel learner regresses its atoms: that should take less time than learning.
_MOST_ROWS_IN_FIT = 500


def best_ridge(eigenvalues: Array, energies: Array, outside: float, n_rows: int) -> float:
    """Return the ridge of the lowest generalised cross-validation error.

    The regression of R on coordinates with Gram matrix V S V' is known in closed form for every
    ridge: ``energies`` are the squared norms of the rows of V'R, ``outside`` what V does not span.
    """
    if outside <= n_rows * np.finfo(np.float64).eps * float(energies.sum()):
        outside = 0.0  # rounding, which would outweigh the residuals of the smallest ridges
    alphas = eigenvalues[0] * np.logspace(-8, 0, 33)
    shrinkage = alphas[:, None] / (eigenvalues + alphas[:, None])
    rss = outside + shrinkage**2 @ energies
    freedom = n_rows - len(eigenvalues) + shrinkage.sum(axis=1)
    gcv = rss / np.maximum(freedom, 1e-9 * n_rows) ** 2
    # If all eigenvalues are equal (one row, or rows far apart), every ridge has the same error:
    # take the smallest, and not one chosen by rounding.
    return float(alphas[int((gcv <= gcv.min() * (1 + 1e-9)).argmax())])


def regress_rows(X: Array, F: Array, vectors: Array) -> Array:
    """Return rows (m, n_features) for vectors (m, r): ridge regression of X on coordinates F."""
    F = F.astype(np.float64)
    # Helper threads of BLAS cost more than they give on small matrices, and change last digits.
    with machine(F).one_blas_thread():
        return ((vectors @ F.T) @ _ridge_weights(X, F @ F.T)).astype(X.dtype)


def ridge_rows(kernel: Kernel, anchors: Array, inner: Array) -> Array:
    """Return rows for vectors with these inner products (n, m): ridge regression of the anchors."""
    chosen = _spread_rows(len(anchors), MOST_ROWS)
    X = anchors[chosen]
    with machine(X).one_blas_thread():
        K = kernel(X, X)
        check_gram(K, "the kernel on the anchors")
        return inner[chosen].T @ _ridge_weights(X, K)


def rows_to_regress(n_rows: int) -> NDArray[np.intp]:
    """Return the numbers of the training rows that ``regress_rows`` learns from in ``fit``."""
    return np.arange(n_rows)[_spread_rows(n_rows, _MOST_ROWS_IN_FIT)]


def _spread_rows(n: int, most: int) -> slice | NDArray[np.intp]:
    """Return which of n rows a regression learns from: all, or so many evenly spread ones."""
    if n <= most:
        return slice(None)
    return np.linspace(0, n - 1, most).astype(np.intp)


def _ridge_weights(X: Array, K: Array) -> Array:
    """Return (K + alpha)^+ X, alpha by generalised cross-validation."""
    X = X.astype(np.float64)
    s, V = eigh(K)
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


# The width is chosen on this many of them.
_ROWS_TO_CHOOSE_BY = 400
# Gaussian kernels exp(-width d^2 / mean d^2) to choose from; None is the linear kernel. Errors
# hardly change in between, and wider ones are polynomials of what the widest sees already.
_WIDTHS = (None, 0.01, 0.1, 1.0, 3.0, 10.0)
_RIDGES = np.logspace(-12, 1, 27)  # shares of the mean k(f, f)
# Virtual samples are exact: of regressions whose leave-one-out errors differ by no more than this
# factor, take the one with the smallest residual on its own rows.
_TOLERATED = 1.02


@dataclass(frozen=True)
class InverseMap:
    """``mean + k(F / size, centres) @ weights`` of virtual samples F; ``gamma=None``: 1 + f'c."""

    centres: Array
    weights: Array
    mean: Array
    size: float
    gamma: float | None

    def rows(self, F: Array) -> Array:
        """Return the rows (m, n_features) of virtual samples (m, r), block by block."""
        out = np.empty((len(F), len(self.mean)), F.dtype, like=F)

        def worker(start: int, stop: int) -> None:
            some = F[start:stop].astype(np.float64) / self.size
            K = _values(some @ self.centres.T, some, self.centres, self.gamma)
            with np.errstate(over="ignore"):
                out[start:stop] = K @ self.weights + self.mean

        machine(F).for_blocks(len(F), len(self.centres), 8, worker)
        return out


class _Fit(NamedTuple):
    left_out: float  # the root of the sum of squared leave-one-out errors
    own: float  # that of the errors on the rows themselves
    weights: Array


def learn_inverse_map(F: Array, X: Array) -> InverseMap:
    """Return the regression of rows X (n, n_features) on their virtual samples F (n, r)."""
    F, X = F.astype(np.float64), X.astype(np.float64)
    size = float(np.sqrt(np.mean(np.vecdot(F, F)))) or 1.0
    F, mean = F / size, X.mean(axis=0)
    centred = X - mean
    # The mean squared distance of two rows, without any pair.
    spread = 2 * max(1.0 - float(np.sum(F.mean(axis=0) ** 2)), np.finfo(np.float64).eps)
    some = _spread_rows(len(F), _ROWS_TO_CHOOSE_BY)
    # Helper threads of BLAS cost more than they give on small matrices, and change last digits.
    with machine(F).one_blas_thread():
        gammas = [None if width is None else width / spread for width in _WIDTHS]
        fits = [_regress(F[some], centred[some], gamma) for gamma in gammas]
        gamma = gammas[fits.index(_chosen(fits))]
        weights = _regress(F, centred, gamma).weights
    return InverseMap(F, weights, mean, size, gamma)


def more_rows(X: Array, landmarks: Array) -> Array:
    """Return rows to regress beside landmarks: evenly spread ones, none of them a landmark."""
    # A row that occurs twice would still be there when it is left out.
    missing = MOST_ROWS - len(landmarks)
    if missing <= 0:
        return X[:0]
    known = {row.tobytes() for row in to_numpy(landmarks)}
    some = X[_spread_rows(len(X), MOST_ROWS)]
    others = some[[row.tobytes() not in known for row in to_numpy(some)]]
    return others[_spread_rows(len(others), missing)].copy()


def _values(products: Array, A: Array, B: Array, gamma: float | None) -> Array:
    if gamma is None:
        return 1.0 + products
    squares = np.vecdot(A, A)[:, None] + np.vecdot(B, B) - 2 * products
    return np.exp(-gamma * np.maximum(squares, 0.0))


def _regress(F: Array, Y: Array, gamma: float | None) -> _Fit:
    """Return the regression of Y on F whose ridge predicts left-out rows best.

    With K = V S V', the errors on the rows themselves are E = V (a / (S + a)) V'Y, and those of
    rows left out E_i / (1 - h_i), where h_i is the diagonal of V (S / (S + a)) V'.
    """
    K = _values(F @ F.T, F, F, gamma)
    s, V = eigh(K)
    s, projected, squares = np.maximum(s, 0.0), V.T @ Y, V**2
    fits = []
    for ridge in _RIDGES * float(np.mean(np.diagonal(K))):
        left = ridge / (s + ridge)
        own = V @ (left[:, None] * projected)
        left_out = own / np.maximum(squares @ left, np.finfo(np.float64).tiny)[:, None]
        fits.append(_Fit(float(np.linalg.norm(left_out)), float(np.linalg.norm(own)), left / ridge))
    best = _chosen(fits)
    return best._replace(weights=V @ (best.weights[:, None] * projected))


def _chosen(fits: list[_Fit]) -> _Fit:
    least = min(fit.left_out for fit in fits)
    return min((fit for fit in fits if fit.left_out <= _TOLERATED * least), key=lambda fit: fit.own)
