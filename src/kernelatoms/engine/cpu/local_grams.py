"""Small Gram matrices: one per signal, of the atoms near it.

- ``gather``: out of the Gram matrix of all atoms;
- ``gaussian_local``: values exp(-gamma |a - b|^2), where there is no such matrix.

Squared distances |a|^2 + |b|^2 - 2 a'b of rows with the signal as origin, which are short, lose few
digits: float32 rows need no product in float64, unless gamma makes the rounding of long ones count.

Lists of atoms may be shorter than K: rows and columns of their Gram matrix are 0 there.

See docs/decisions/027-local-problems.md.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.products import check_shape, for_rows, rows_in_memory
from kernelatoms.engine.cpu.scale import Array

# Bytes of small Gram matrices, or of rows that are read twice, worked on at once: they should stay
# in a core's own cache.
_AT_ONCE = 1 << 20
# Up to this gamma |x - a|^2, products in float32 change a value by a few of its last digits.
_NEAR = 2.0
# And no product of rows between these squared lengths overflows, or vanishes beside them.
_SHORTEST, _LONGEST = 2.0**-60, 2.0**60


@jit()
def _gather(gram, candidates, out):
    n, n_local = candidates.shape
    places = np.empty(n_local, np.uint64)  # numba looks for negative ones in other types
    for s in range(n):
        small = out[s]
        for i in range(n_local):
            places[i] = np.uint64(max(candidates[s, i], 0))
        for i in range(n_local):
            row, mine = gram[places[i]], small[i]
            for j in range(n_local):
                mine[j] = row[places[j]]
        for i in range(n_local):
            if candidates[s, i] < 0:
                small[i] = 0
                small[:, i] = 0


def gather(gram: Array, candidates: NDArray[np.int32]) -> Array:
    """Return the Gram matrix of every signal's own atoms, gram[c, c']: (n, K, K).

    ``gram`` (n_atoms, n_atoms) is that of all atoms; ``candidates`` (n, K) are numbers of atoms, -1
    where a list is padded, which gives 0.
    """
    n_atoms, (n, n_local) = len(gram), candidates.shape
    check_shape(gram, "Gram matrix", (n_atoms, n_atoms))
    candidates = _checked(candidates, n_atoms)
    gram, out = rows_in_memory(gram), np.empty((n, n_local, n_local), gram.dtype)

    def work(start: int, stop: int) -> None:
        _gather(gram, candidates[start:stop], out[start:stop])

    for_local_blocks(n, n_local, work)
    return out


def _checked(candidates: NDArray[np.int32], n_atoms: int) -> NDArray[np.int32]:
    candidates = np.ascontiguousarray(candidates, np.int32)
    if candidates.size and not (candidates.min() >= -1 and candidates.max() < n_atoms):
        raise ValueError(f"candidates must lie within -1 and {n_atoms - 1}.")
    return candidates


def for_local_blocks(n_rows: int, n_local: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(start, stop)`` for blocks of signals that have K = ``n_local`` atoms each.

    Their Gram matrices fit in a core's own cache, so that those who gather, solve and compare
    block by block do not wait for memory.
    """
    fits = max(_AT_ONCE // max(8 * n_local * n_local, 1), 1)
    for_rows(n_rows, fits, work)


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


def gaussian_local(
    X: Array, rows: Array, candidates: NDArray[np.int32], gamma: float, *, with_grams: bool = True
) -> tuple[Array | None, Array]:
    """Return the values of every signal's own atoms among each other, and with the signal.

    - ``X`` (n, n_features), ``rows`` (n_atoms, n_features): signals and atoms, of one type.
    - ``candidates`` (n, K): the atoms of every signal; -1 pads shorter lists.
    - ``with_grams``: False if the second result is enough; the first is None then.
    - result: (n, K, K) and (n, K), 0 where a list is padded.
    """
    n, n_local = candidates.shape
    check_shape(X, "signals", (n, rows.shape[1]))
    candidates = _checked(candidates, len(rows))
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
    padded = candidates < 0
    grams[padded] = 0
    grams.mT[padded] = 0
