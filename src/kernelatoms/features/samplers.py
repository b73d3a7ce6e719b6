"""Which rows become landmarks (section IV-C of the LKDL paper).

A sampler is a function ``sample(X, kernel, n_landmarks, rng) -> landmarks``. All but k-means
choose rows of X, without replacement; with a precomputed kernel rows are known by number, so
landmarks are a column of row numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from kernelatoms.engine import machine, to_numpy
from kernelatoms.features.rpcholesky import randomly_pivoted_cholesky
from kernelatoms.similarity import Kernel, PrecomputedKernel, as_anchors

Array = NDArray[Any]
Sampler = Callable[[Array, Kernel, int, np.random.RandomState], Array]


def uniform(X: Array, kernel: Kernel, n_landmarks: int, rng: np.random.RandomState) -> Array:
    """Every row is as likely as any other."""
    return _choose(X, kernel, n_landmarks, None, rng)


def diagonal(X: Array, kernel: Kernel, n_landmarks: int, rng: np.random.RandomState) -> Array:
    """Rows in proportion to k(x, x)^2; uniform where k(x, x) is constant, as with RBF."""
    return _choose(X, kernel, n_landmarks, kernel.diag(X).astype(np.float64) ** 2, rng)


def column_norm(X: Array, kernel: Kernel, n_landmarks: int, rng: np.random.RandomState) -> Array:
    """Rows in proportion to the squared norms of their kernel columns, block by block."""
    weights = np.empty(len(X), like=X)
    everything = as_anchors(X, kernel)

    def worker(start: int, stop: int) -> None:
        K = kernel(X[start:stop], everything)
        weights[start:stop] = np.einsum("ij,ij->i", K, K, dtype=np.float64)

    machine(X).for_blocks(len(X), len(X), X.itemsize, worker)
    return _choose(X, kernel, n_landmarks, weights, rng)


def kmeans(X: Array, kernel: Kernel, n_landmarks: int, rng: np.random.RandomState) -> Array:
    """Centres of k-means clusters: the lowest Nystroem error, for the price of the clustering."""
    _needs_rows(kernel, "kmeans")
    model = KMeans(n_landmarks, init="random", n_init=1, max_iter=20, random_state=rng)
    centres = model.fit(to_numpy(X)).cluster_centers_.astype(X.dtype, copy=False)
    return np.asarray(centres, like=X)


def coreset(X: Array, kernel: Kernel, n_landmarks: int, rng: np.random.RandomState) -> Array:
    """Rows in proportion to their squared distance from the line through the mean.

    err(x, mu) = |x|^2 - (x'mu)^2 / |mu|^2: rows that the mean represents badly.
    """
    _needs_rows(kernel, "coreset")
    mean = X.mean(axis=0, dtype=np.float64)
    energy = float(mean @ mean)
    along = (X @ mean.astype(X.dtype)).astype(np.float64) ** 2 / energy if energy > 0 else 0.0
    weights = np.vecdot(X, X).astype(np.float64) - along
    return _choose(X, kernel, n_landmarks, np.maximum(weights, 0.0), rng)


def rpcholesky(X: Array, kernel: Kernel, n_landmarks: int, rng: np.random.RandomState) -> Array:
    """Rows one after another, in proportion to what those before leave of k(x, x).

    Randomly pivoted Cholesky. Where fewer rows leave nothing, others fill up the number.
    """
    anchors = as_anchors(X, kernel)
    _, pivots = randomly_pivoted_cholesky(kernel, X, anchors, n_landmarks, rng)
    others = rng.permutation(np.delete(np.arange(len(X)), pivots))
    chosen = np.concatenate([pivots, others])[:n_landmarks]
    return anchors[np.sort(chosen)]


SAMPLERS: dict[str, Sampler] = {
    "uniform": uniform,
    "diagonal": diagonal,
    "column-norm": column_norm,
    "kmeans": kmeans,
    "coreset": coreset,
    "rpcholesky": rpcholesky,
}


def _choose(
    X: Array, kernel: Kernel, n_landmarks: int, weights: Array | None, rng: np.random.RandomState
) -> Array:
    if weights is None:
        chosen = rng.permutation(len(X))[:n_landmarks]
    else:
        # Exponential races: the n smallest times are a draw without replacement in proportion
        # to the weights; rows of weight 0 come last, in random order.
        weights, times = to_numpy(weights), rng.standard_exponential(len(X))
        with np.errstate(divide="ignore"):
            times = np.where(weights > 0, times / weights, np.inf)
        tie_break = rng.random_sample(len(X))
        chosen = np.lexsort((tie_break, times))[:n_landmarks]
    return as_anchors(X, kernel)[np.sort(chosen)]


def _needs_rows(kernel: Kernel, name: str) -> None:
    if isinstance(kernel, PrecomputedKernel):
        raise ValueError(
            f"sampling={name!r} needs the rows themselves, which kernel='precomputed' does not "
            "give; use 'uniform', 'diagonal', 'column-norm' or 'rpcholesky'."
        )
