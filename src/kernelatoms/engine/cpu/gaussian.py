"""Values exp(-gamma |a - b|^2) of every signal's own atoms, where there is no Gram matrix of all.

Distances stay the same when all rows move. With the signal as origin its neighbours are short, so
that their squared distances |a|^2 + |b|^2 - 2 a'b lose few digits: float32 rows need no product in
float64, which takes twice as long, unless gamma makes the rounding of long ones count.

See docs/decisions/027-local-problems.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.products import check_shape

Array = NDArray[Any]

# Bytes of rows worked on at once: they are read twice, the second time from a core's own cache.
_AT_ONCE = 1 << 20
# Up to this gamma |x - a|^2, products in float32 change a value by a few of its last digits.
_NEAR = 2.0
# And no product of rows between these squared lengths overflows, or vanishes beside them.
_SHORTEST, _LONGEST = 2.0**-60, 2.0**60


@jit(fastmath=True)
def _squares(X, rows, candidates, out):
    """Write |x - a|^2 of every signal's atoms, 0 where a list is padded."""
    for s in range(len(X)):
        for i in range(candidates.shape[1]):
            total = 0.0
            if candidates[s, i] >= 0:
                row = rows[candidates[s, i]]
                for j in range(X.shape[1]):
                    change = np.float64(row[j]) - np.float64(X[s, j])
                    total += change * change
            out[s, i] = total


@jit(fastmath=True)
def _centre(X, rows, candidates, out, squares):
    """Write a - x for every signal's atoms, and their squared norms; 0 where a list is padded.

    A sum has a loop of its own: one that also writes is compiled twice, for arrays that lie close
    together in memory and for others, and adds in another order in each.
    """
    for s in range(len(X)):
        for i in range(candidates.shape[1]):
            centred = out[s, i]
            total = 0.0
            if candidates[s, i] < 0:
                centred[:] = 0
            else:
                row = rows[candidates[s, i]]
                for j in range(X.shape[1]):
                    centred[j] = row[j] - X[s, j]
                for j in range(X.shape[1]):
                    total += np.float64(centred[j]) * np.float64(centred[j])
            squares[s, i] = total


@jit()
def _exponents(products, squares, gamma, out):
    """Write -gamma |a - b|^2 from products a'b and squared norms."""
    n_local = squares.shape[1]
    for s in range(len(squares)):
        for i in range(n_local):
            for j in range(n_local):
                far = squares[s, i] + squares[s, j] - 2.0 * np.float64(products[s, i, j])
                out[s, i, j] = -gamma * max(far, 0.0)
            out[s, i, i] = 0


@jit()
def _clear(candidates, grams):
    """Write zeros where a list is padded."""
    for s in range(len(candidates)):
        for i in range(candidates.shape[1]):
            if candidates[s, i] < 0:
                grams[s, i] = 0
                grams[s, :, i] = 0


def gaussian_local(
    X: Array, rows: Array, candidates: NDArray[np.int32], gamma: float, *, with_grams: bool = True
) -> tuple[Array | None, Array]:
    """Return the values of every signal's own atoms among each other, and with the signal.

    Parameters
    ----------
    X : (n, n_features)
        Signals.
    rows : (n_atoms, n_features)
        Atoms, in the type of the signals.
    candidates : (n, K) int32
        Atoms of every signal; -1 pads shorter lists.
    gamma : float
        Of exp(-gamma |a - b|^2).
    with_grams : bool
        False: the second result is enough.

    Returns
    -------
    grams : (n, K, K), or None
        Values among the atoms, 0 where a list is padded.
    corrs : (n, K)
        Values with the signal, likewise.
    """
    n, n_local = candidates.shape
    check_shape(X, "signals", (n, rows.shape[1]))
    candidates = np.ascontiguousarray(candidates, np.int32)
    if candidates.size and not (candidates.min() >= -1 and candidates.max() < len(rows)):
        raise ValueError(f"candidates must lie within -1 and {len(rows) - 1}.")
    X, rows = np.ascontiguousarray(X), np.ascontiguousarray(rows)
    squares = np.empty((n, n_local))
    grams = np.empty((n, n_local, n_local), X.dtype) if with_grams else None
    if grams is None:
        _squares(X, rows, candidates, squares)
    else:
        _fill(X, rows, candidates, gamma, squares, grams)
    if not np.isfinite(4 * squares).all():  # sums of such among the atoms
        raise ValueError("The squared distances of rows overflow float64; scale them down.")
    with np.errstate(under="ignore", over="ignore"):
        corrs = np.exp(-gamma * squares).astype(X.dtype)
    corrs[candidates < 0] = 0
    return grams, corrs


def _fill(
    X: Array, rows: Array, candidates: NDArray[np.int32], gamma: float, squares: Array, grams: Array
) -> None:
    """Write squared distances to the signals, and values among their atoms, a few at a time."""
    n, n_local = candidates.shape
    fits = _AT_ONCE // max(n_local * X.shape[1] * X.itemsize, 1)
    at_once = min(max(fits, 1), max(n, 1))
    centred = np.empty((at_once, n_local, X.shape[1]), X.dtype)
    for start in range(0, n, at_once):
        part = slice(start, start + at_once)
        own = centred[: len(X[part])]
        _centre(X[part], rows, candidates[part], own, squares[part])
        with np.errstate(over="ignore", invalid="ignore"):
            products = own @ own.mT
        _exponents(products, squares[part], gamma, grams[part])
        if X.dtype == np.float64:
            continue
        longest = squares[part].max(axis=1, initial=0.0)
        far = (gamma * longest > _NEAR) | (longest > _LONGEST) | (longest < _SHORTEST)
        for s in start + np.flatnonzero(far & (longest > 0)):
            one = slice(s, s + 1)
            wide = np.empty((1, n_local, X.shape[1]))
            _centre(X[one], rows, candidates[one], wide, squares[one])
            _exponents(wide @ wide.mT, squares[one], gamma, grams[one])
    with np.errstate(under="ignore", invalid="ignore"):
        np.exp(grams, out=grams)
    _clear(candidates, grams)
