"""The K-SVD sweep over atoms, and residuals of padded codes.

K-SVD (Aharon et al. 2006; eq. (2) of the LKDL paper) improves one atom d and its coefficients w
at a time: with E the error of the signals that use the atom, its own part added back, the best
pair is E's leading singular pair. A few alternations d = E'w / |E'w|, w = E d from the present
pair reach it without an SVD, and each of them can only lower |E - w d'|^2. Threads share the rows
of E, and meet once per alternation (``gang``).
``sweep_atoms_exactly`` takes the pair itself.

See docs/decisions/033-ksvd-sweeps.md and docs/decisions/063-threads-in-step.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.gang import enter, gang_size, in_step, meet
from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.products import block_rows, check_shape
from kernelatoms.engine.cpu.scale import Array
from kernelatoms.engine.cpu.threads import each, each_block, stop_if_asked

# Nonzeros times features: tens of milliseconds.
_LONG_SWEEP = 1 << 24
# Chunks of rows are made of stripes of this many, dealt out in turn: rows of one class, which often
# stand together and use the same atoms, then belong to all chunks.
_STRIPE = 8
# A chunk has this many users of an atom at least, in the mean, and this many of their numbers: some
# microseconds, which is what a meeting costs.
_FEWEST_USERS, _FEWEST_NUMBERS, _MOST_CHUNKS = 8, 1 << 13, 16
# Threads share chunks from this number on: fewer are done sooner than threads have met.
_FEWEST_TO_SHARE = 8


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
def _sort_users(indices, chunk, starts, rows, slots):
    """Sort the nonzeros of a chunk by atom: atom j's are starts[j]:starts[j + 1] of rows, slots."""
    n_chunks, n_atoms = starts.shape[0], starts.shape[1] - 1
    n_rows, n_slots = indices.shape
    own = starts[chunk]
    own[0] = n_slots * _STRIPE * _stripes_before(n_rows, n_chunks, chunk)
    counts = np.zeros(n_atoms, np.int64)
    for stripe in range(chunk * _STRIPE, n_rows, n_chunks * _STRIPE):
        for s in range(stripe, min(stripe + _STRIPE, n_rows)):
            for j in range(n_slots):
                if indices[s, j] >= 0:
                    counts[indices[s, j]] += 1
    for atom in range(n_atoms):
        own[atom + 1] = own[atom] + counts[atom]
        counts[atom] = own[atom]  # from here on, the next free place
    for stripe in range(chunk * _STRIPE, n_rows, n_chunks * _STRIPE):
        for s in range(stripe, min(stripe + _STRIPE, n_rows)):
            for j in range(n_slots):
                if indices[s, j] >= 0:
                    at = counts[indices[s, j]]
                    rows[at] = s
                    slots[at] = j
                    counts[indices[s, j]] += 1


@jit()
def _stripes_before(n_rows, n_chunks, chunk):
    """Return how many stripes belong to earlier chunks; the last stripe may be a short one."""
    n_stripes = (n_rows + _STRIPE - 1) // _STRIPE
    return chunk * (n_stripes // n_chunks) + min(chunk, n_stripes % n_chunks)


@jit(fastmath=True)
def _add_up(sums, place, before, d):
    """Write the unit atom in the direction E'w from the sums over chunks; return |E'w|^2."""
    n_features = d.shape[0]
    total = d.dtype.type(0)
    for chunk in range(sums.shape[1]):
        total += sums[place, chunk, n_features]
    for i in range(n_features):
        d[i] = total * before[i] + sums[place, 0, i]
    for chunk in range(1, sums.shape[1]):
        for i in range(n_features):
            d[i] += sums[place, chunk, i]
    norm2 = d.dtype.type(0)
    for i in range(n_features):
        norm2 += d[i] * d[i]
    if norm2 > 0.0:
        scale = 1.0 / np.sqrt(norm2)
        for i in range(n_features):
            d[i] *= scale
    return norm2


@jit(fastmath=True)
def _sweep(
    words, wanted, give_way, residual, dictionary, values, n_alternations, starts, rows, slots,
    sums, first_atom, last_atom,
):  # fmt: skip
    """Improve atoms first_atom, first_atom + 1, ... up to last_atom, in turn.

    Each thread of a gang has some chunks of the rows, and adds up over their users; all threads
    then add up the chunks' sums, in their order. Sums of one alternation are read while those of
    the next are written: there are two places for them.
    """
    number, size = enter(words, wanted, give_way)
    if number < 0:
        return
    n_chunks, n_features = len(starts), dictionary.shape[1]
    first_chunk, last_chunk = number * n_chunks // size, (number + 1) * n_chunks // size
    before = np.empty(n_features, dictionary.dtype)
    d = np.empty(n_features, dictionary.dtype)
    own = np.empty(n_features, dictionary.dtype)
    n_met = 0
    for atom in range(first_atom, last_atom):
        for i in range(n_features):
            before[i] = dictionary[atom, i]
        # The error with the atom's own part added back is E = R + old before'.
        along = d.dtype.type(0)
        norm2 = d.dtype.type(0)
        for alternation in range(n_alternations):
            place = n_met % 2
            for chunk in range(first_chunk, last_chunk):
                total = d.dtype.type(0)
                for i in range(n_features):
                    own[i] = 0
                for u in range(starts[chunk, atom], starts[chunk, atom + 1]):
                    r = residual[rows[u]]
                    old = values[rows[u], slots[u]]
                    w = old
                    if alternation > 0:  # w = E d
                        w = old * along
                        for i in range(n_features):
                            w += r[i] * d[i]
                    total += old * w
                    for i in range(n_features):
                        own[i] += w * r[i]
                for i in range(n_features):
                    sums[place, chunk, i] = own[i]
                sums[place, chunk, n_features] = total
            n_met += 1
            meet(words, size, n_met, give_way)
            norm2 = _add_up(sums, place, before, d)
            if not norm2 > 0.0:
                break
            along = d.dtype.type(0)
            for i in range(n_features):
                along += d[i] * before[i]
        if not norm2 > 0.0:
            continue
        for chunk in range(first_chunk, last_chunk):
            for u in range(starts[chunk, atom], starts[chunk, atom + 1]):
                r = residual[rows[u]]
                old = values[rows[u], slots[u]]
                w = old * along
                for i in range(n_features):
                    w += r[i] * d[i]
                for i in range(n_features):
                    r[i] += old * before[i] - w * d[i]
                values[rows[u], slots[u]] = w
        if number == 0:  # all have read it before they met
            for i in range(n_features):
                dictionary[atom, i] = d[i]


def _n_chunks(n_nonzeros: int, n_atoms: int, n_features: int) -> int:
    """Return into how many chunks the rows are divided, whose sums are added up one by one.

    So few that adding them up and meeting in between take little beside the work on an atom's
    users; as many as there may be threads.
    """
    users = n_nonzeros // max(n_atoms, 1)
    most = min(users // _FEWEST_USERS, users * n_features // _FEWEST_NUMBERS)
    n_chunks = 1
    while n_chunks < _MOST_CHUNKS and 2 * n_chunks <= most:
        n_chunks *= 2
    return n_chunks


def _users_of_atoms(indices: NDArray[np.int32], n_atoms: int, n_chunks: int) -> tuple[Any, ...]:
    """Return the users of all atoms by chunk: starts (n_chunks, n_atoms + 1), rows and slots."""
    starts = np.empty((n_chunks, n_atoms + 1), np.int64)
    n_places = indices.shape[1] * (len(indices) + _STRIPE)
    rows, slots = np.empty(n_places, np.int64), np.empty(n_places, np.int32)
    each(lambda chunk: _sort_users(indices, chunk, starts, rows, slots), range(n_chunks))
    return starts, rows, slots


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
    n_atoms, n_features = dictionary.shape
    n_chunks = _n_chunks(indices.size, n_atoms, n_features)
    users = _users_of_atoms(indices, n_atoms, n_chunks)
    sums = np.empty((2, n_chunks, n_features + 1), dictionary.dtype)
    wanted = gang_size(n_chunks) if n_chunks >= _FEWEST_TO_SHARE else 1
    # One call for all, unless it takes so long that Ctrl-C must be able to end it in between.
    n_calls = 1 + indices.size * n_features // (_LONG_SWEEP * wanted)
    step = max(-(-n_atoms // n_calls), 1)
    for first in list(range(0, n_atoms, step)) * n_sweeps:
        stop_if_asked()
        rest = (*users, sums, first, min(first + step, n_atoms))
        in_step(
            wanted,
            lambda *gang: _sweep(*gang, residual, dictionary, values, n_alternations, *rest),  # noqa: B023
        )


def sweep_atoms_exactly(
    residual: Array, dictionary: Array, indices: NDArray[np.int32], values: Array
) -> None:
    """Replace every atom and its coefficients in turn by the leading singular pair of their error.

    Eqs. (8) to (13) of the kernel dictionary learning paper. All arrays but ``indices`` are
    updated.
    """
    _check_codes(residual, dictionary, indices, values)
    (starts,), rows, slots = _users_of_atoms(indices, len(dictionary), 1)
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
    out = np.empty_like(signals, order="C")

    def worker(start: int, stop: int) -> None:
        part = slice(start, stop)
        out[part] = signals[part]
        _subtract_reconstruction(out[part], dictionary, indices[part], values[part])

    rows = block_rows(len(out), out.shape[1], out.itemsize)
    each_block(len(out), rows, lambda: worker)
    return out
