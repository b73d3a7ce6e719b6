"""Which rows become landmarks (section IV-C of the LKDL paper), and randomly pivoted Cholesky.

A sampler is a function ``sample(X, kernel, n_landmarks, rng) -> landmarks``. All but k-means choose
rows of X, without replacement; with a precomputed kernel, landmarks are a column of row numbers.

``randomly_pivoted_cholesky`` (Chen, Epperly, Tropp and Webber, 2022) factors K = k(X, X) from its
diagonal and the pivots' columns alone. The next pivot is drawn in proportion to the remainder of
k(x, x) after the pivots before it, so that outliers are picked only as often as their share. Pivots
are drawn in blocks (Epperly, Tropp and Webber, 2024): rows are proposed by the remainders of the
last block, and each is accepted with the share of its remainder that the rows accepted before it in
the block have left. The distribution is the same, and the work is matrix products.

See docs/decisions/015-kernel-methods-in-coordinates.md.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from kernelatoms.engine import Array, machine, to_numpy
from kernelatoms.features.linear_algebra import NOT_SEMIDEFINITE, check_gram, solve_triangular
from kernelatoms.features.memory import check_fits
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.factory import as_anchors
from kernelatoms.similarity.user_kernels import PrecomputedKernel

# Rows proposed at once. A rejected one costs a row of this length, an accepted one a column of K.
_N_PROPOSED = 128


def randomly_pivoted_cholesky(
    kernel: Kernel,
    rows: Array,
    anchors: Array,
    n_pivots: int,
    rng: np.random.RandomState,
    accuracy: float = 0.0,
    relative: bool = False,
) -> tuple[Array, NDArray[np.intp]]:
    """Return F with F F' about k(rows, rows), and the rows drawn as pivots, in their order.

    F is exact in the pivots' rows and columns, and ``F[pivots]`` lower triangular.

    - ``rows``, ``anchors``: rows (k(train, train), if precomputed), and ``as_anchors(rows,
      kernel)``.
    - ``n_pivots``, ``accuracy``: stop at so many pivots, or once at most this share of the trace is
      left; at 0, when only rounding is left.
    - ``relative``: count every row by the share of its k(x, x) that is left, as if that were 1.
      Otherwise a few rows of large k(x, x) may have all the trace.
    """
    parts, pivots = _pivoted(kernel, rows, anchors, n_pivots, rng, accuracy, relative)
    F = np.empty((len(rows), len(pivots)), rows.dtype, like=rows)

    def work(start: int, stop: int) -> None:
        F[start:stop] = np.concatenate([part[start:stop] for part in parts], axis=1)

    if parts:
        machine(F).for_blocks(len(F), F.shape[1], F.itemsize, work)
    return F, pivots


def _pivoted(
    kernel: Kernel,
    rows: Array,
    anchors: Array,
    n_pivots: int,
    rng: np.random.RandomState,
    accuracy: float = 0.0,
    relative: bool = False,
) -> tuple[list[Array], NDArray[np.intp]]:
    """Return the columns of ``randomly_pivoted_cholesky``, as they come, and the pivots."""
    n, dtype = len(rows), rows.dtype
    diagonal = _diagonal(kernel, rows, anchors)
    left = diagonal.copy()
    weights = np.ones(n)
    if relative:
        np.divide(1.0, diagonal, out=weights, where=diagonal > 0)
    trace = float(weights @ diagonal)
    parts: list[Array] = []
    pivots = np.empty(0, np.intp)
    while (count := len(pivots)) < n_pivots and weights @ left > accuracy * trace:
        # Remainders as small as accumulated rounding are not new directions.
        floor = (10 + count) * np.finfo(dtype).eps * diagonal
        likely = np.where(left > floor, weights * left, 0.0)
        if not likely.any():
            break
        check_fits(
            n * (count + 2 * _N_PROPOSED) * dtype.itemsize,
            f"coordinates of {n} rows on {count + _N_PROPOSED} pivots, which still leave "
            f"{100 * (weights @ left) / trace:.2g}% of the kernel's trace",
            "Allow more to be left (coordinates=0.1, say), or choose a number of landmarks: "
            "KernelLinearizer(n_landmarks=1000).",
            like=rows,
        )
        proposed = _draw(likely, _N_PROPOSED, rng)
        remainder = kernel(rows[proposed], anchors[proposed])
        check_gram(remainder, "the kernel on these rows")
        for part in parts:
            remainder -= part[proposed] @ part[proposed].T
        remainder = to_numpy(remainder)
        # Computed anew: the first is accepted for certain, or known to be rounding.
        left[proposed] = np.maximum(np.diagonal(remainder), 0.0)
        accepted, factor = _accept(remainder, floor[proposed], n_pivots - count, rng)
        if not len(accepted):
            continue
        chosen = proposed[accepted]
        columns = _columns(kernel, rows, anchors, chosen, parts, factor)
        columns[pivots] = 0.0  # exact already: what is there is rounding
        gains = _gains(columns, weights)
        enough = np.flatnonzero(weights @ left - np.cumsum(gains) <= accuracy * trace)
        if accuracy > 0 and len(enough):
            keep = int(enough[0]) + 1
            columns = np.ascontiguousarray(columns[:, :keep], like=columns)
            chosen = chosen[:keep]
        left -= to_numpy(machine(columns).squared_norms(columns))
        if not left.min() >= -np.sqrt(np.finfo(dtype).eps) * diagonal.max():
            raise ValueError(NOT_SEMIDEFINITE)
        np.maximum(left, 0.0, out=left)
        left[chosen] = 0.0
        parts.append(columns)
        pivots = np.concatenate([pivots, chosen])
    return parts, pivots


def _gains(columns: Array, weights: Array) -> Array:
    """Return the weighted sums of the squares of columns, in host memory."""
    weights, sums = np.asarray(weights, like=columns), {}

    def work(start: int, stop: int) -> None:
        sums[start] = weights[start:stop] @ np.square(columns[start:stop], dtype=np.float64)

    machine(columns).for_blocks(len(columns), 2 * columns.shape[1], 8, work)
    return to_numpy(sum(sums[start] for start in sorted(sums)))


def _diagonal(kernel: Kernel, rows: Array, anchors: Array) -> Array:
    """Return k(x, x) in host memory, like everything that draws depend on."""
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(kernel, PrecomputedKernel):
            diagonal = np.take_along_axis(rows, anchors, axis=1)[:, 0]
        else:
            diagonal = kernel.diag(rows)
    if not np.isfinite(diagonal).all():
        raise ValueError("the kernel on these rows overflows: k(x, x) is infinite or undefined.")
    if (diagonal < 0).any():
        raise ValueError(NOT_SEMIDEFINITE)
    return to_numpy(diagonal.astype(np.float64))


def _draw(weights: Array, count: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Return numbers drawn in proportion to the weights, with replacement."""
    sums = np.cumsum(weights)
    drawn = np.searchsorted(sums, rng.random_sample(count) * sums[-1], side="right")
    return np.minimum(drawn, np.flatnonzero(weights)[-1])


def _accept(
    remainder: Array, floor: Array, limit: int, rng: np.random.RandomState
) -> tuple[NDArray[np.intp], Array]:
    """Return which proposals become pivots, and the Cholesky factor of their remainder.

    ``remainder`` is the proposals' kernel matrix less what the pivots so far explain. Row i is
    accepted with the share of its remainder that the rows accepted before it leave.
    """
    m = len(remainder)
    before = np.diagonal(remainder).astype(np.float64)
    left = before.copy()
    chances = rng.random_sample(m)
    factor = np.zeros((m, min(limit, m)), remainder.dtype)
    accepted: list[int] = []
    for i in range(m):
        if left[i] <= floor[i] or chances[i] * before[i] >= left[i]:
            continue
        j = len(accepted)
        factor[:, j] = (remainder[:, i] - factor[:, :j] @ factor[i, :j]) / np.sqrt(left[i])
        left -= np.square(factor[:, j], dtype=np.float64)
        accepted.append(i)
        if len(accepted) == limit:
            break
    return np.array(accepted, np.intp), np.tril(factor[accepted, : len(accepted)])


def _columns(
    kernel: Kernel, rows: Array, anchors: Array, chosen: Array, parts: list[Array], factor: Array
) -> Array:
    """Return the columns of F that new pivots add, block by block of rows."""
    factor = np.asarray(factor, like=rows)
    out = np.empty((len(rows), len(chosen)), factor.dtype, like=rows)
    new_anchors = anchors[chosen]
    own = [part[chosen].T for part in parts]

    def worker(start: int, stop: int) -> None:
        K = kernel(rows[start:stop], new_anchors)
        for part, coordinates in zip(parts, own, strict=True):
            K -= part[start:stop] @ coordinates
        out[start:stop] = solve_triangular(factor, K.T).T

    machine(rows).for_blocks(len(rows), len(chosen), rows.itemsize, worker)
    # In exact arithmetic the pivots' own rows are the factor.
    out[chosen] = factor
    return out


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
    map_rows = machine(X).map_rows
    sums = map_rows(lambda rows: rows.sum(axis=0, dtype=np.float64)[None], X)
    mean = sums.sum(axis=0) / len(X)
    energy = float(mean @ mean)

    def distances2(rows: Array) -> Array:
        along = (rows @ mean.astype(X.dtype)).astype(np.float64) ** 2
        along = along / energy if energy > 0 else 0.0
        return np.maximum(np.vecdot(rows, rows).astype(np.float64) - along, 0.0)

    return _choose(X, kernel, n_landmarks, map_rows(distances2, X), rng)


def rpcholesky(X: Array, kernel: Kernel, n_landmarks: int, rng: np.random.RandomState) -> Array:
    """Pivots of randomly pivoted Cholesky, filled up with random rows if the rank is lower."""
    anchors = as_anchors(X, kernel)
    _, pivots = _pivoted(kernel, X, anchors, n_landmarks, rng)
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
        last = np.partition(times, n_landmarks - 1)[n_landmarks - 1]
        early = np.flatnonzero(times <= last)
        chosen = early[np.lexsort((tie_break[early], times[early]))[:n_landmarks]]
    return as_anchors(X, kernel)[np.sort(chosen)]


def _needs_rows(kernel: Kernel, name: str) -> None:
    if isinstance(kernel, PrecomputedKernel):
        raise ValueError(
            f"sampling={name!r} needs the rows themselves, which kernel='precomputed' does not "
            "give; use 'uniform', 'diagonal', 'column-norm' or 'rpcholesky'."
        )
