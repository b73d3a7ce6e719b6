"""Block coordinate descent on the atoms of a dictionary, from the sums of its codes.

    min 1/2 tr(D'A D) - tr(D'B)   subject to   |d_j| <= 1,   A = W'W,   B = W'X

is what min 1/2 |X - W D|^2 says of D once the rows are summed up (Mairal et al. 2010, eq. (10)).
With the other atoms held, the best atom j is the projection of a minimum known in closed form:

    v = A_jj d_j + B_j - A_j D,   d_j = v / max(|v|, A_jj)              (their Algorithm 2)

The work is A D. A dense A is multiplied in blocks of atoms, by BLAS, and only the atoms of one
block correct one another in a loop; of a sparse A only the nonzeros are read.

See docs/decisions/034-online-learning.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.products import check_shape
from kernelatoms.engine.cpu.threads import one_blas_thread

# Measured at 256 to 1,024 atoms: smaller blocks starve BLAS, larger ones lengthen the loop inside.
_BLOCK = 32

# W'X of this size stays in a core's second cache beside W'W and the signals. Of larger ones, rows
# are added to for this many signals at a time, which do stay there: 1.2 to 1.7 times as fast.
_CACHED_BYTES, _SIGNALS = 1 << 19, 512

# BLAS multiplies about this many times faster than a loop over the nonzeros of a row.
_SPARSE_SHARE = 0.125

# A sweep lowers the objective by at least half of what it moved, sum_j A_jj |step_j|^2. Below
# this share of tr(A), an atom's typical step is shorter than 1e-6 of its length.
_SMALL_MOVE = 1e-12


@jit(fastmath=True)
def _step(left, own, atom, step):
    """Move one atom to its minimum, given B_j - A_j D and A_jj; write its step, return |step|^2."""
    n_features = atom.shape[0]
    largest = own
    for i in range(n_features):
        step[i] = own * atom[i] + left[i]
        largest = max(largest, abs(step[i]))
    # Squares of numbers between 0 and 1 neither overflow nor vanish together.
    norm2 = 0.0
    for i in range(n_features):
        norm2 += (step[i] / largest) ** 2
    length = max(own, largest * np.sqrt(norm2))
    moved = 0.0
    for i in range(n_features):
        new = step[i] / length
        step[i] = new - atom[i]
        atom[i] = new
    for i in range(n_features):
        moved += step[i] * step[i]
    return moved


@jit(fastmath=True)
def _descend_block(gram, left, atoms, start):
    """Improve atoms start, start + 1, ... in turn; ``left`` is B - A D of theirs before."""
    n_block, n_features = left.shape
    step = np.empty(n_features)
    total = 0.0
    for j in range(n_block):
        own = gram[start + j, start + j]
        if not own > 0.0:
            continue
        moved = _step(left[j], own, atoms[start + j], step)
        total += own * moved
        if moved > 0.0:
            for later in range(j + 1, n_block):
                a = gram[start + later, start + j]
                for i in range(n_features):
                    left[later, i] -= a * step[i]
    return total


@jit(fastmath=True)
def _descend_sparse(gram, cross, atoms, starts, partners):
    """Improve all atoms in turn; row j of A is nonzero at partners[starts[j]:starts[j + 1]]."""
    n_atoms, n_features = atoms.shape
    left, step = np.empty(n_features), np.empty(n_features)
    total = 0.0
    for j in range(n_atoms):
        own = gram[j, j]
        if not own > 0.0:
            continue
        for i in range(n_features):
            left[i] = cross[j, i]
        for p in range(starts[j], starts[j + 1]):
            a, partner = gram[j, partners[p]], atoms[partners[p]]
            for i in range(n_features):
                left[i] -= a * partner[i]
        total += own * _step(left, own, atoms[j], step)
    return total


@jit(fastmath=True)
def _add_products_by_atom(indptr, indices, values, signals, gram, cross):
    """Do as ``_add_products``, to the same bits, for W'X that does not stay in a core's cache.

    Of some signals at a time, those that use an atom are added to its row one after another.
    """
    n_signals, n_atoms = signals.shape[0], gram.shape[0]
    gram[:] = 0.0
    cross[:] = 0.0
    ends = np.zeros(n_atoms + 1, np.int64)
    users, weights = np.empty(0, np.int64), np.empty(0, np.float64)
    for first in range(0, n_signals, _SIGNALS):
        last = min(first + _SIGNALS, n_signals)
        start, n_uses = indptr[first], indptr[last] - indptr[first]
        if n_uses > users.shape[0]:
            users, weights = np.empty(n_uses, np.int64), np.empty(n_uses, np.float64)
        ends[:] = 0
        for p in range(start, start + n_uses):
            ends[indices[p] + 1] += 1
        for atom in range(n_atoms):
            ends[atom + 1] += ends[atom]
        # Where an atom's signals begin moves to where they end, as they are put there.
        for s in range(first, last):
            for p in range(indptr[s], indptr[s + 1]):
                atom, weight = indices[p], np.float64(values[p])
                users[ends[atom]] = s
                weights[ends[atom]] = weight
                ends[atom] += 1
                for q in range(indptr[s], p + 1):
                    gram[atom, indices[q]] += weight * values[q]
        at = 0
        for atom in range(n_atoms):
            own = cross[atom]
            while at < ends[atom]:
                x, weight = signals[users[at]], weights[at]
                for i in range(signals.shape[1]):
                    own[i] += weight * x[i]
                at += 1
    for j in range(n_atoms):
        for later in range(j + 1, n_atoms):
            gram[j, later] = gram[later, j]


@jit(fastmath=True)
def _add_products(indptr, indices, values, signals, gram, cross):
    """Sum up W'W, and W'X, signal after signal."""
    gram[:] = 0.0
    cross[:] = 0.0
    for s in range(signals.shape[0]):
        for p in range(indptr[s], indptr[s + 1]):
            atom, weight = indices[p], np.float64(values[p])
            for q in range(indptr[s], p + 1):
                gram[atom, indices[q]] += weight * values[q]
            for i in range(signals.shape[1]):
                cross[atom, i] += weight * signals[s, i]
    for j in range(gram.shape[0]):
        for later in range(j + 1, gram.shape[0]):
            gram[j, later] = gram[later, j]


def sum_products(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[Any],
    signals: NDArray[Any],
    n_atoms: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return W'W (n_atoms, n_atoms) and W'X (n_atoms, n_features) of sparse codes W, in float64.

    On batches of 512 signals a third of what products of sparse matrices take.

    - ``indptr`` (n_signals + 1,): signal s has the coefficients ``indptr[s]`` to ``indptr[s + 1]``.
    - ``indices``, ``values`` (n_nonzeros,): their atoms, ascending for each signal, and they
      themselves, float32 or float64.
    - ``signals`` (n_signals, n_features): the rows of X.
    """
    check_shape(indptr, "indptr", (len(signals) + 1,))
    check_shape(indices, "indices", (int(indptr[-1]),))
    check_shape(values, "values", indices.shape)
    # Zeros are written in compiled code, where other threads may run meanwhile.
    gram, cross = np.empty((n_atoms, n_atoms)), np.empty((n_atoms, signals.shape[1]))
    add = _add_products if cross.nbytes <= _CACHED_BYTES else _add_products_by_atom
    add(indptr, indices, values, np.ascontiguousarray(signals), gram, cross)
    return gram, cross


def descend_atoms(
    gram: NDArray[np.float64], cross: NDArray[np.float64], dictionary: NDArray[Any], n_sweeps: int
) -> int:
    """Improve every atom in turn, at most ``n_sweeps`` times; return how many sweeps were made.

    Sweeps end when one hardly moves any atom. Atoms without users (A_jj = 0) keep their place. The
    objective never rises if atoms start within the unit ball; those outside it are taken back to it
    when their turn comes.

    - ``gram`` (n_atoms, n_atoms), ``cross`` (n_atoms, n_features): W'W and W'X, float64.
    - ``dictionary`` (n_atoms, n_features): the atoms, overwritten. The work is done in float64.
    """
    n_atoms = len(dictionary)
    if gram.shape != (n_atoms, n_atoms) or cross.shape != dictionary.shape:
        raise ValueError(
            f"A dictionary of shape {dictionary.shape} needs gram of shape {(n_atoms, n_atoms)} "
            f"and cross of the dictionary's, got {gram.shape} and {cross.shape}."
        )
    gram = np.ascontiguousarray(gram, np.float64)
    cross = np.ascontiguousarray(cross, np.float64)
    atoms = np.array(dictionary, np.float64, order="C")
    nonzero = gram != 0
    counts = np.count_nonzero(nonzero, axis=1)
    is_sparse = counts.sum() < _SPARSE_SHARE * gram.size
    if is_sparse:
        starts = np.concatenate([[0], np.cumsum(counts)])
        partners = np.nonzero(nonzero)[1]
    least = _SMALL_MOVE * float(np.trace(gram))
    n_made = 0
    with one_blas_thread():
        while n_made < n_sweeps:
            n_made += 1
            if is_sparse:
                moved = _descend_sparse(gram, cross, atoms, starts, partners)
            else:
                moved = 0.0
                for start in range(0, n_atoms, _BLOCK):
                    rows = slice(start, start + _BLOCK)
                    moved += _descend_block(gram, cross[rows] - gram[rows] @ atoms, atoms, start)
            if moved <= least:
                break
    dictionary[...] = atoms
    return n_made
