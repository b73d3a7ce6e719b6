"""Randomly pivoted Cholesky: few rows that stand for all, without the kernel matrix.

Chen, Epperly, Tropp and Webber, 2022: like a pivoted Cholesky decomposition of K = k(X, X), but the
next pivot is drawn in proportion to what the pivots before it leave of k(x, x). The largest
remainder is often an outlier that stands for nobody but itself; a draw meets outliers as often as
they are worth. Of K, only its diagonal and the pivots' columns are computed.

Pivots are drawn in blocks (Epperly, Tropp and Webber, 2024): propose many rows by the remainders of
the last block, and accept each with the share of its remainder that the rows accepted before it
in the block have left. That is the same distribution, and its work is matrix products.

See docs/decisions/015-kernel-methods-in-coordinates.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import machine, to_numpy
from kernelatoms.features.gram_check import NOT_SEMIDEFINITE, check_gram
from kernelatoms.features.linear_algebra import solve_triangular
from kernelatoms.features.memory import check_fits
from kernelatoms.similarity import Kernel, PrecomputedKernel

Array = NDArray[Any]

# Rows proposed at once. Rejected ones cost a row of this length, accepted ones a column of K.
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
    """Return F with F F' about k(rows, rows), and the rows drawn as pivots.

    Parameters
    ----------
    kernel : Kernel
        Positive semi-definite.
    rows : array of shape (n, n_features)
        The rows; k(train, train), if precomputed.
    anchors : array of shape (n, n_features) or (n, 1)
        What stands for the rows as the kernel's second argument.
    n_pivots : int
        Stop at this many pivots.
    rng : RandomState
        Draws the pivots.
    accuracy : float
        Stop as soon as at most this share of the trace is left. At 0, when all that is left is
        rounding.
    relative : bool
        Count every row by the share of its k(x, x) that is left, in draws and in ``accuracy``:
        this is the method on the kernel scaled to k(x, x) = 1. Otherwise rows of large k(x, x),
        under a polynomial kernel a few outliers, may have all the trace.

    Returns
    -------
    F : array of shape (n, r)
        ``F[pivots]`` is lower triangular, and F F' is exact in the pivots' rows and columns.
    pivots : array of shape (r,)
        Row numbers, all different, in the order drawn. Empty where the kernel is 0 on all rows.
    """
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
        # Remainders as small as what rounding adds up to are no directions of their own.
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
        # Computed afresh: the first of them is accepted for sure, or known to be rounding.
        left[proposed] = np.maximum(np.diagonal(remainder), 0.0)
        accepted, factor = _accept(remainder, floor[proposed], n_pivots - count, rng)
        if not len(accepted):
            continue
        chosen = proposed[accepted]
        columns = _columns(kernel, rows, anchors, chosen, parts, factor)
        columns[pivots] = 0.0  # exact already: what is there is rounding
        gains = to_numpy(np.asarray(weights, like=columns) @ np.square(columns, dtype=np.float64))
        enough = np.flatnonzero(weights @ left - np.cumsum(gains) <= accuracy * trace)
        if accuracy > 0 and len(enough):
            keep = int(enough[0]) + 1
            columns = np.ascontiguousarray(columns[:, :keep], like=columns)
            chosen = chosen[:keep]
        left -= to_numpy(np.vecdot(columns, columns))
        if not left.min() >= -np.sqrt(np.finfo(dtype).eps) * diagonal.max():
            raise ValueError(NOT_SEMIDEFINITE)
        np.maximum(left, 0.0, out=left)
        left[chosen] = 0.0
        parts.append(columns)
        pivots = np.concatenate([pivots, chosen])
    F = np.concatenate(parts, axis=1) if parts else np.empty((n, 0), dtype, like=rows)
    return F, pivots


def _diagonal(kernel: Kernel, rows: Array, anchors: Array) -> Array:
    """Return k(x, x), which a precomputed kernel knows where rows are training rows.

    On the host, like all that draws are made with: few numbers, looked at one by one.
    """
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
    """Return which proposals become pivots, and the Cholesky factor of what they had left.

    ``remainder`` is what the pivots so far leave of the proposals' kernel matrix. Row i is
    accepted with the share of its remainder that the rows accepted before it have left of it.
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
    kernel: Kernel,
    rows: Array,
    anchors: Array,
    chosen: NDArray[np.intp],
    parts: list[Array],
    factor: Array,
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
