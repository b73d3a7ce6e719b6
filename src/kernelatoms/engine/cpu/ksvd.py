"""The K-SVD sweep over atoms, and residuals of padded codes.

K-SVD (Aharon et al. 2006; eq. (2) of the LKDL paper) improves one atom d and its coefficients w
at a time: with E the error of the signals that use the atom, its own part added back, the best
pair is E's leading singular pair. A few alternations d = E'w / |E'w|, w = E d from the present
pair reach it without an SVD, and each of them can only lower |E - w d'|^2.
``sweep_atoms_exactly`` takes the pair itself.

See docs/decisions/033-ksvd-sweeps.md.
"""

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.products import block_rows, check_shape
from kernelatoms.engine.cpu.scale import Array
from kernelatoms.engine.cpu.threads import each_block, stop_if_asked

# Nonzeros times features: tens of milliseconds.
_LONG_SWEEP = 1 << 24


@jit(fastmath=True)
def _subtract_reconstruction(residual, dictionary, indices, values):
    for s in range(residual.shape[0]):
        row = residual[s]
        for j in range(indices.shape[1]):
            if indices[s, j] >= 0:
                atom = dictionary[indices[s, j]]
                c = values[s, j]
                for i in range(row.shape[0]):
                    row[i] -= c * atom[i]


@jit()
def _users_of_atoms(indices, n_atoms):
    """Sort the nonzeros by atom: atom j's are entries starts[j]:starts[j+1] of rows and slots."""
    starts = np.zeros(n_atoms + 1, np.int64)
    for s in range(indices.shape[0]):
        for j in range(indices.shape[1]):
            if indices[s, j] >= 0:
                starts[indices[s, j] + 1] += 1
    for atom in range(n_atoms):
        starts[atom + 1] += starts[atom]
    rows = np.empty(starts[n_atoms], np.int64)
    slots = np.empty(starts[n_atoms], np.int64)
    free = starts[:-1].copy()
    for s in range(indices.shape[0]):
        for j in range(indices.shape[1]):
            if indices[s, j] >= 0:
                at = free[indices[s, j]]
                rows[at] = s
                slots[at] = j
                free[indices[s, j]] += 1
    return starts, rows, slots


@jit(fastmath=True)
def _sweep(
    residual, dictionary, values, n_alternations, starts, rows, slots, first_atom, last_atom
):
    """Improve atoms first_atom, first_atom + 1, ... up to last_atom, in turn."""
    n_features = dictionary.shape[1]
    most = 0
    for atom in range(first_atom, last_atom):
        most = max(most, starts[atom + 1] - starts[atom])
    old = np.empty(most, dictionary.dtype)
    new = np.empty(most, dictionary.dtype)
    d = np.empty(n_features, dictionary.dtype)
    for atom in range(first_atom, last_atom):
        first = starts[atom]
        n_users = starts[atom + 1] - first
        if n_users == 0:
            continue
        before = dictionary[atom]
        for u in range(n_users):
            old[u] = values[rows[first + u], slots[first + u]]
            new[u] = old[u]
        # The error with the atom's own part added back is E = R + old before'.
        for _ in range(n_alternations):
            overlap = dictionary.dtype.type(0)
            for u in range(n_users):
                overlap += old[u] * new[u]
            for i in range(n_features):
                d[i] = overlap * before[i]
            for u in range(n_users):
                r = residual[rows[first + u]]
                w = new[u]
                for i in range(n_features):
                    d[i] += w * r[i]
            norm2 = dictionary.dtype.type(0)
            for i in range(n_features):
                norm2 += d[i] * d[i]
            if not norm2 > 0.0:
                break
            scale = 1.0 / np.sqrt(norm2)
            along = dictionary.dtype.type(0)
            for i in range(n_features):
                d[i] *= scale
            for i in range(n_features):
                along += d[i] * before[i]
            for u in range(n_users):
                r = residual[rows[first + u]]
                w = old[u] * along
                for i in range(n_features):
                    w += r[i] * d[i]
                new[u] = w
        if not norm2 > 0.0:
            continue
        for u in range(n_users):
            r = residual[rows[first + u]]
            w_old, w_new = old[u], new[u]
            for i in range(n_features):
                r[i] += w_old * before[i] - w_new * d[i]
            values[rows[first + u], slots[first + u]] = w_new
        for i in range(n_features):
            before[i] = d[i]


def _check_codes(signals: Array, dictionary: Array, indices: Array, values: Array) -> None:
    check_shape(dictionary, "dictionary", (len(dictionary), signals.shape[1]))
    check_shape(indices, "indices", (len(signals), indices.shape[1]))
    check_shape(values, "values", indices.shape)


def sweep_atoms(
    residual: Array,
    dictionary: Array,
    indices: NDArray[np.int32],
    values: Array,
    n_alternations: int,
    n_sweeps: int = 1,
) -> None:
    """Improve every atom and its coefficients in turn; all arrays but ``indices`` are updated."""
    _check_codes(residual, dictionary, indices, values)
    n_atoms = len(dictionary)
    users = _users_of_atoms(indices, n_atoms)
    # One call for all, unless it takes so long that Ctrl-C must be able to end it in between.
    n_calls = 1 + indices.size * dictionary.shape[1] // _LONG_SWEEP
    step = -(-n_atoms // n_calls)
    for first in list(range(0, n_atoms, max(step, 1))) * n_sweeps:
        stop_if_asked()
        last = min(first + step, n_atoms)
        _sweep(residual, dictionary, values, n_alternations, *users, first, last)


def sweep_atoms_exactly(
    residual: Array, dictionary: Array, indices: NDArray[np.int32], values: Array
) -> None:
    """Replace every atom and its coefficients in turn by the leading singular pair of their error.

    Eqs. (8) to (13) of the kernel dictionary learning paper. All arrays but ``indices`` are
    updated.
    """
    _check_codes(residual, dictionary, indices, values)
    starts, rows, slots = _users_of_atoms(indices, len(dictionary))
    for atom in np.flatnonzero(np.diff(starts)):
        stop_if_asked()
        nonzeros = slice(starts[atom], starts[atom + 1])
        users, at = rows[nonzeros], (rows[nonzeros], slots[nonzeros])
        before = dictionary[atom].astype(np.float64)
        error = residual[users] + np.outer(values[at], before)
        d = _leading_direction(error)
        if d is None:  # the other atoms leave nothing for this one
            values[at], residual[users] = 0, 0
            continue
        # Either sign will do; the atom's own makes codes comparable from pass to pass.
        d = d if d @ before >= 0 else -d
        w = error @ d
        residual[users] = error - np.outer(w, d)
        dictionary[atom], values[at] = d, w


def _leading_direction(error: Array) -> Array | None:
    """Return the first right singular vector of a matrix; None of a zero matrix.

    From the smaller of the two Gram matrices, as in Fig. 3 of the paper.
    """
    wide = len(error) <= error.shape[1]
    gram = error @ error.T if wide else error.T @ error
    d = np.linalg.eigh(gram)[1][:, -1]
    d = error.T @ d if wide else d
    norm = np.linalg.norm(d) if error.any() else 0.0
    return d / norm if norm > 0 else None


def residuals(
    signals: Array, dictionary: Array, indices: NDArray[np.int32], values: Array
) -> Array:
    """Return signals less their reconstructions, row by row (no cancellation as in |x|^2 - z^2)."""
    _check_codes(signals, dictionary, indices, values)
    out = signals.copy()

    def worker(start: int, stop: int) -> None:
        part = slice(start, stop)
        _subtract_reconstruction(out[part], dictionary, indices[part], values[part])

    rows = block_rows(len(out), out.shape[1], out.itemsize)
    each_block(len(out), rows, lambda: worker)
    return out
