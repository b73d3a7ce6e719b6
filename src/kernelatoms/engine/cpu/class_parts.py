"""Residuals of every signal over the atoms of each class.

With G the inner products of the atoms, c those of the signal with atoms, and I the atoms of a
class that the code w uses,

    |x - sum_I w_i d_i|^2 = |x|^2 - 2 sum_I w_i c_i + sum_{I x I} w_i w_j G_ij.

Every signal's nonzeros are sorted by class first, so that only pairs within a class are visited.
"""

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.products import check_shape
from kernelatoms.engine.cpu.scale import Array


@jit()
def _by_class(indices, first, stop, owner, starts, order):
    """Sort nonzeros first..stop by class: those of class c are order[starts[c]:starts[c + 1]]."""
    starts[:] = 0
    for p in range(first, stop):
        starts[owner[indices[p]] + 2] += 1
    for c in range(2, starts.shape[0]):
        starts[c] += starts[c - 1]
    # Now starts[c + 1] is where class c begins, and moves to where it ends as the class fills.
    for p in range(first, stop):
        c = owner[indices[p]]
        order[starts[c + 1]] = p
        starts[c + 1] += 1


@jit()
def _most_nonzeros(indptr):
    most = 0
    for s in range(indptr.shape[0] - 1):
        most = max(most, indptr[s + 1] - indptr[s])
    return most


@jit(fastmath=True)
def _subtract_class_parts(gram, corr, indptr, indices, values, owner, out):
    offset = indptr[0]
    n_classes = out.shape[1]
    starts = np.empty(n_classes + 2, np.int64)
    order = np.empty(_most_nonzeros(indptr), np.int64)
    for s in range(out.shape[0]):
        _by_class(indices, indptr[s], indptr[s + 1], owner, starts, order)
        for c in range(n_classes):
            change = 0.0
            for a in range(starts[c], starts[c + 1]):
                i, w = indices[order[a]], np.float64(values[order[a]])
                row = gram[i]
                explained = 0.5 * w * np.float64(row[i]) - np.float64(corr[order[a] - offset])
                for b in range(starts[c], a):
                    explained += np.float64(values[order[b]]) * np.float64(row[indices[order[b]]])
                change += 2.0 * w * explained
            out[s, c] += change


@jit(fastmath=True)
def _products_at(rows, atoms, indptr, indices, out):
    n_features, offset = rows.shape[1], indptr[0]
    for s in range(rows.shape[0]):
        row = rows[s]
        for p in range(indptr[s], indptr[s + 1]):
            atom = atoms[indices[p]]
            total = row.dtype.type(0)
            for i in range(n_features):
                total += row[i] * atom[i]
            out[p - offset] = total


@jit(fastmath=True)
def _observed_class_residuals(signals, atoms, indptr, indices, values, owner, out):
    n_features, n_classes = signals.shape[1], out.shape[1]
    starts = np.empty(n_classes + 2, np.int64)
    order = np.empty(_most_nonzeros(indptr), np.int64)
    left = np.empty(n_features, atoms.dtype)
    for s in range(out.shape[0]):
        _by_class(indices, indptr[s], indptr[s + 1], owner, starts, order)
        energy = 0.0
        for i in range(n_features):
            if not np.isnan(signals[s, i]):
                energy += np.float64(signals[s, i]) ** 2
        for c in range(n_classes):
            if starts[c] == starts[c + 1]:
                out[s, c] = energy
                continue
            for i in range(n_features):
                left[i] = signals[s, i]
            for a in range(starts[c], starts[c + 1]):
                w, atom = values[order[a]], atoms[indices[order[a]]]
                for i in range(n_features):
                    left[i] -= w * atom[i]
            total = 0.0
            for i in range(n_features):
                if not np.isnan(signals[s, i]):
                    total += np.float64(left[i]) ** 2
            out[s, c] = total


def products_at(
    rows: Array, atoms: Array, indptr: NDArray[np.int64], indices: NDArray[np.int32]
) -> Array:
    """Return the inner products of rows with the atoms that their codes use, in one list.

    - ``rows`` (n, n_features), ``atoms`` (n_atoms, n_features): signals and dictionary, of one
      type.
    - ``indptr`` (n + 1,): row s uses atoms indptr[s] to indptr[s + 1] of ``indices``; the result,
      (indptr[-1] - indptr[0],), begins at indptr[0].
    """
    check_shape(atoms, "atoms", (len(atoms), rows.shape[1]))
    _check_nonzeros(indptr, indices, None, len(rows))
    out = np.empty(indptr[-1] - indptr[0], rows.dtype)
    _products_at(rows, atoms, indptr, indices, out)
    return out


def subtract_class_parts(
    gram: Array,
    corr: Array,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: Array,
    owner: NDArray[np.int64],
    out: Array,
) -> None:
    """Take what each class explains off ``out``, which holds the signals' energies.

    - ``gram`` (n_atoms, n_atoms or more): inner products of the atoms; further columns are not
      read.
    - ``corr`` (indptr[-1] - indptr[0],): those of the signals with the atoms of their nonzeros.
    - ``indptr`` (n_signals + 1,): signal s has nonzeros indptr[s] to indptr[s + 1] of ``indices``
      and ``values`` (n_nonzeros,).
    - ``owner`` (n_atoms,): the class of every atom.
    - ``out`` (n_signals, n_classes): energies; becomes |x - D_c w_c|^2.
    """
    check_shape(gram, "Gram matrix", (len(owner), max(len(owner), gram.shape[1])))
    _check_nonzeros(indptr, indices, values, len(out))
    check_shape(corr, "correlations", (indptr[-1] - indptr[0],))
    _subtract_class_parts(gram, corr, indptr, indices, values, owner, out)


def observed_class_residuals(
    signals: Array,
    atoms: Array,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: Array,
    owner: NDArray[np.int64],
    out: Array,
) -> None:
    """Write |x - D_c w_c|^2 over the observed entries of signals that miss values (NaN).

    ``signals`` (n_signals, n_features) are NaN where nothing is observed, ``atoms``
    (n_atoms, n_features); ``out`` (n_signals, n_classes) takes the results, the rest is as in
    ``subtract_class_parts``.
    """
    check_shape(atoms, "atoms", (len(owner), signals.shape[1]))
    check_shape(signals, "signals", (len(out), signals.shape[1]))
    _check_nonzeros(indptr, indices, values, len(out))
    _observed_class_residuals(signals, atoms, indptr, indices, values, owner, out)


def _check_nonzeros(indptr: Array, indices: Array, values: Array | None, n_signals: int) -> None:
    check_shape(indptr, "indptr", (n_signals + 1,))
    if indptr[0] < 0 or indptr[-1] > len(indices):
        raise ValueError(f"indptr must lie within the {len(indices)} nonzeros.")
    if values is not None:
        check_shape(values, "values", indices.shape)


def subtract_dense_class_parts(
    grams: list[Array], corr: Array, codes: Array, members: list[slice | Array], out: Array
) -> None:
    """As ``subtract_class_parts``, for codes where most coefficients are nonzero, by BLAS.

    - ``grams``: inner products of the atoms of every class, (n_members, n_members) each.
    - ``corr``, ``codes`` (n_signals, n_atoms): inner products with the signals, and coefficients.
    - ``members``: the atoms of every class.
    - ``out`` (n_signals, n_classes): energies; becomes |x - D_c w_c|^2.
    """
    for c, atoms in enumerate(members):
        theirs = codes[:, atoms]
        explained = theirs @ grams[c] - 2 * corr[:, atoms]
        out[:, c] += np.vecdot(explained, theirs)
