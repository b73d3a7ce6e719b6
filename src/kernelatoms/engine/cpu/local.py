"""One small coding problem per signal: its own Gram matrix, of the atoms near it.

- ``gather``: the small Gram matrices, out of that of all atoms;
- ``ridge_local``: their ridge codes, Alg. 3 of the KCRC-LCD paper;
- ``class_parts_local``: what the atoms of one class leave of a signal.

Lists of atoms may be shorter than K: rows and columns of their Gram matrix are 0 there.

See docs/decisions/027-local-problems.md.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.local_loops import solve_each
from kernelatoms.engine.cpu.products import check_shape, for_rows, rows_in_memory

Array = NDArray[Any]


# Bytes of small Gram matrices worked on at once: they should stay in a core's own cache.
_AT_ONCE = 1 << 20


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
    """Return the Gram matrix of every signal's own atoms.

    Parameters
    ----------
    gram : (n_atoms, n_atoms)
        Inner products of all atoms.
    candidates : (n, K) int32
        Atoms; -1 pads shorter lists.

    Returns
    -------
    (n, K, K)
        gram[c, c'], 0 where a list is padded.
    """
    n_atoms, (n, n_local) = len(gram), candidates.shape
    check_shape(gram, "Gram matrix", (n_atoms, n_atoms))
    candidates = np.ascontiguousarray(candidates, np.int32)
    if candidates.size and not (candidates.min() >= -1 and candidates.max() < n_atoms):
        raise ValueError(f"candidates must lie within -1 and {n_atoms - 1}.")
    gram, out = rows_in_memory(gram), np.empty((n, n_local, n_local), gram.dtype)

    def work(start: int, stop: int) -> None:
        _gather(gram, candidates[start:stop], out[start:stop])

    for_local_blocks(n, n_local, work)
    return out


def for_local_blocks(n_rows: int, n_local: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(start, stop)`` for blocks of signals that have K = ``n_local`` atoms each.

    Their Gram matrices fit in a core's own cache, so that those who gather, solve and compare
    block by block do not wait for memory.
    """
    fits = max(_AT_ONCE // max(8 * n_local * n_local, 1), 1)
    for_rows(n_rows, fits, work)


def ridge_local(grams: Array, corrs: Array, mu: float, gram_columns: bool) -> NDArray[np.float64]:
    """Return the ridge codes of signals, each over its own atoms; computed in float64.

    Parameters
    ----------
    grams : (n, K, K)
        G, the inner products of every signal's atoms; symmetric.
    corrs : (n, K)
        b, their inner products with the signal.
    mu : float
        Weight of |w|^2, at least 0.
    gram_columns : bool
        False: atoms of feature space, (G + mu I) w = b. True: the columns of G are the atoms and b
        the signal, in R^K: (G G + mu I) w = G b, eq. (13) of the KCRC-LCD paper.

    Returns
    -------
    (n, K) float64
        Where mu is 0, or lost in rounding, and G is singular: the shortest of the solutions.
        Negative eigenvalues of G (no inner products of vectors have any) count as 0 where
        ``gram_columns`` is False and mu does not outweigh them.
    """
    n, n_local = corrs.shape
    check_shape(grams, "local Gram matrices", (n, n_local, n_local))
    grams, corrs = np.ascontiguousarray(grams), np.ascontiguousarray(corrs)
    weights, doubtful = np.empty((n, n_local)), np.empty(n, bool)
    rounding = float(np.finfo(grams.dtype).eps)

    def work(start: int, stop: int) -> None:
        G, b, w = grams[start:stop], corrs[start:stop], weights[start:stop]
        matrices = G
        if gram_columns:
            wide = G.astype(np.float64, copy=False)
            matrices = wide @ wide.mT
        solve_each(G, matrices, b, mu, gram_columns, rounding, w, doubtful[start:stop])
        some = np.flatnonzero(doubtful[start:stop])
        if len(some):
            w[some] = _by_eigenvectors(G[some], b[some], mu, gram_columns)

    for_local_blocks(n, n_local, work)
    return weights


def _by_eigenvectors(
    grams: Array, corrs: Array, mu: float, gram_columns: bool
) -> NDArray[np.float64]:
    """Solve with eigenvectors: slow, and defined where nothing else is."""
    if not np.isfinite(grams).all():
        raise ValueError("Gram matrices of candidates hold NaN or infinity.")
    n_local = corrs.shape[1]
    rounding = float(np.finfo(grams.dtype).eps)
    values, vectors = np.linalg.eigh(grams.astype(np.float64))
    if not gram_columns:
        np.maximum(values, 0.0, out=values)
    largest = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
    # Without a ridge to speak of, eigenvalues that are nothing but rounding take no part.
    needless = np.abs(values) <= n_local * rounding * largest
    if gram_columns:
        needless &= mu <= (rounding * largest) ** 2
        bottom, top = values**2 + mu, values
    else:
        needless &= mu <= rounding * largest
        bottom, top = values + mu, np.ones_like(values)
    needless |= bottom == 0
    factors = np.where(needless, 0.0, top / np.where(needless, 1.0, bottom))
    inside = np.einsum("ski,sk->si", vectors, corrs.astype(np.float64))
    return np.einsum("ski,si->sk", vectors, factors * inside)


@jit(fastmath=True)
def _class_parts(grams, corrs, energies, weights, owners, columns, residuals2, norms2):
    n, n_local = corrs.shape
    n_classes = residuals2.shape[1]
    starts, order = np.empty(n_classes + 2, np.int64), np.empty(n_local, np.int64)
    left = np.empty(n_local)
    for s in range(n):
        gram, b, w, owner = grams[s], corrs[s], weights[s], owners[s]
        starts[:] = 0
        for i in range(n_local):
            if owner[i] >= 0:
                starts[owner[i] + 2] += 1
        for c in range(2, n_classes + 2):
            starts[c] += starts[c - 1]
        # Now starts[c + 1] is where class c begins, and moves to where it ends as the class fills.
        for i in range(n_local):
            if owner[i] >= 0:
                order[starts[owner[i] + 1]] = i
                starts[owner[i] + 1] += 1
        energy = 0.0
        if columns:
            for i in range(n_local):
                energy += np.float64(b[i]) ** 2
        else:
            energy = np.float64(energies[s])
        for c in range(n_classes):
            squares, change = 0.0, 0.0
            for a in range(starts[c], starts[c + 1]):
                squares += w[order[a]] ** 2
            norms2[s, c] = squares
            if squares == 0.0:
                residuals2[s, c] = energy
                continue
            if columns:
                for i in range(n_local):
                    left[i] = b[i]
                for a in range(starts[c], starts[c + 1]):
                    row, weight = gram[order[a]], w[order[a]]
                    for i in range(n_local):
                        left[i] -= weight * np.float64(row[i])
                for i in range(n_local):
                    change += left[i] ** 2
                residuals2[s, c] = change
                continue
            for a in range(starts[c], starts[c + 1]):
                i = order[a]
                row = gram[i]
                explained = 0.5 * w[i] * np.float64(row[i]) - np.float64(b[i])
                for d in range(starts[c], a):
                    explained += w[order[d]] * np.float64(row[order[d]])
                change += 2.0 * w[i] * explained
            residuals2[s, c] = max(energy + change, 0.0)


def class_parts_local(
    grams: Array,
    corrs: Array,
    energies: Array | None,
    weights: Array,
    owners: NDArray[np.int64],
    n_classes: int,
    gram_columns: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what the atoms of every class leave of a signal, and the size of their weights.

    Parameters
    ----------
    grams, corrs, gram_columns
        As of ``ridge_local``.
    energies : (n,), or None
        Squared norms of the signals; not needed where ``gram_columns`` is True.
    weights : (n, K)
        Codes w.
    owners : (n, K) int
        The class of every atom, -1 where a list is padded.
    n_classes : int
        How many classes there are.

    Returns
    -------
    residuals2 : (n, n_classes) float64
        |y - D_c w_c|^2, never negative: of atoms in feature space, or of the columns of G.
    norms2 : (n, n_classes) float64
        |w_c|^2.
    """
    n, n_local = corrs.shape
    check_shape(grams, "local Gram matrices", (n, n_local, n_local))
    check_shape(weights, "weights", (n, n_local))
    check_shape(owners, "owners", (n, n_local))
    if owners.size and not (owners.min() >= -1 and owners.max() < n_classes):
        raise ValueError(f"owners must lie within -1 and {n_classes - 1}.")
    if energies is None:
        if not gram_columns:
            raise ValueError("energies must be given where gram_columns is False.")
        energies = np.zeros(n)
    check_shape(energies, "energies", (n,))
    grams, corrs = np.ascontiguousarray(grams), np.ascontiguousarray(corrs)
    weights = np.ascontiguousarray(weights, np.float64)
    energies = np.ascontiguousarray(energies, np.float64)
    owners = np.ascontiguousarray(owners, np.int64)
    residuals2, norms2 = np.empty((n, n_classes)), np.empty((n, n_classes))

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        _class_parts(
            grams[part], corrs[part], energies[part], weights[part], owners[part], gram_columns,
            residuals2[part], norms2[part],
        )  # fmt: skip

    for_local_blocks(n, n_local, work)
    return residuals2, norms2
