"""Small integers and masks to bytes and back: adaptive, lossless, identical on every machine.

See docs/decisions/052-codec-bounds.md.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.loops.integers import code_integers, first_state
from kernelatoms.codec.loops.range_coder import (
    FULL,
    N_INPUTS,
    PLACE,
    PLACES,
    ROOM,
    SQUASH,
    STRETCH,
    TABLES,
    WRONG,
    clamp,
    code_bit,
    finish,
    learn,
    mixed,
    new_slot,
    start,
    update,
)
from kernelatoms.engine.cpu.jit import jit

Array = NDArray[Any]

_NOTHING = np.empty(0, np.uint8)
# How fast the weights of masks learn.
_RATE = 192


def encode_integers(
    k: Array, coded: Array, steps: Array, slice_rows: int = 0, lag: int = 0
) -> Array:
    """Return a matrix of integers as bytes.

    Parameters
    ----------
    k : int32 array of shape (n, m)
        The integers, at most 2^30 in magnitude; small ones take fewer bytes.
    coded : uint8 array of shape (n, m)
        1 where an integer is coded, 0 elsewhere; known to the decoder.
    steps : int32 array of shape (n,)
        The unit of every row, 2^(steps / 16); at most 2^20 in magnitude.
    slice_rows, lag : int
        The distances to the two most related rows before; 0 for none in particular.

    Returns
    -------
    uint8 array of shape (n_bytes,)
    """
    if not coded.any():
        return _NOTHING
    related = _related(slice_rows, lag, len(k))
    k, coded = np.where(coded, k, 0).astype(np.int32), _for_loops(coded, np.uint8)
    steps = _steps(coded, steps)

    def write(room: Array) -> int:
        state = first_state(k.shape, *related)
        return code_integers(k, coded, steps, *related, room, False, TABLES, *state)

    return _written(write, k.size)


def decode_integers(
    data: Array, coded: Array, steps: Array, slice_rows: int = 0, lag: int = 0
) -> Array:
    """Invert ``encode_integers``; 0 where nothing is coded.

    ``ValueError`` for bytes that no encoder writes; other damaged bytes may give any integers.
    """
    k: Array = np.zeros(coded.shape, np.int32)
    if coded.any():
        related = _related(slice_rows, lag, len(k))
        data, coded = _for_loops(data, np.uint8), _for_loops(coded, np.uint8)
        steps, state = _steps(coded, steps), first_state(k.shape, *related)
        _check_size(code_integers(k, coded, steps, *related, data, True, TABLES, *state), data)
    elif len(data):
        raise ValueError("bytes of no integers.")
    return k


def encode_bits(mask: Array) -> Array:
    """Return a matrix of zeros and ones as bytes; rows like the one before take few."""
    mask = _for_loops(mask, np.uint8)
    if not mask.size:
        return _NOTHING
    return _written(lambda room: _code_bits(mask, room, False, TABLES, *_first_state()), 0)


def decode_bits(data: Array, shape: tuple[int, int]) -> Array:
    """Invert ``encode_bits``; raises as ``decode_integers``."""
    mask = np.zeros(shape, np.uint8)
    if mask.size:
        data = _for_loops(data, np.uint8)
        _check_size(_code_bits(mask, data, True, TABLES, *_first_state()), data)
    elif len(data):
        raise ValueError("bytes of no mask.")
    return mask


def encode_small(values: Array) -> Array:
    """Return a sequence of small integers as bytes."""
    n = len(values)
    return encode_integers(values[:, None], np.ones((n, 1), np.uint8), np.zeros(n, np.int32))


def decode_small(data: Array, n: int) -> Array:
    """Invert ``encode_small``."""
    return decode_integers(data, np.ones((n, 1), np.uint8), np.zeros(n, np.int32))[:, 0]


def _first_state() -> tuple[Array, Array]:
    """Return the initial probabilities and weights of ``_code_bits``."""
    weights = np.full((8, N_INPUTS), 17000, np.int32)
    weights[:, 0] = 0
    return np.full(4 + 128 + 256 + 256 + 256 + 2 * PLACES, new_slot(np.uint32(32768))), weights


@jit()
def _code_bits(mask, data, decoding, tables, slots, weights):  # type: ignore[no-untyped-def]
    """Code a matrix of zeros and ones; return as ``code_integers`` does."""
    n, m = mask.shape
    coder = start(data, decoding)
    at, inputs = np.zeros(5, np.int64), np.zeros(N_INPUTS, np.int32)
    inputs[0] = 256
    # The last bits of every column, and the rows since it changed.
    columns, runs = np.zeros(m, np.int64), np.zeros(m, np.int64)
    above, above2 = np.zeros(m + 4, np.int64), np.zeros(m + 4, np.int64)
    recent = 3
    for i in range(n):
        if decoding and coder[PLACE] > len(data) + 4:
            return WRONG
        if not decoding and coder[PLACE] + ROOM > len(data):
            return FULL
        # Is the row equal to the one above? The context is whether the last two were.
        same = 1
        for j in range(m):
            if mask[i, j] != above[j + 2]:
                same = 0
                break
        p = clamp(np.int64(slots[recent]) >> 16, 1, 65535)
        same = code_bit(coder, data, decoding, same, p)
        update(slots, recent, same, tables)
        recent = (2 * recent + same) & 3

        row, change, n_changes = 0, 0, 0
        for j in range(m):
            c = j + 2
            bit = above[c]
            if not same:
                if not decoding and coder[PLACE] + ROOM > len(data):
                    return FULL
                around = 8 * above[c - 1] + 4 * above[c] + 2 * above[c + 1] + above[c + 2]
                at[0] = 4 + 64 * above2[c] + 16 * (row & 3) + around
                at[1] = 132 + columns[j]
                at[2] = 388 + row
                octave = 0
                while octave < 15 and runs[j] >> octave:
                    octave += 1
                mixer = 2 * clamp(n_changes, 0, 3) + above[c]
                at[3] = 644 + 128 * change + 8 * octave + mixer
                at[4] = 900 + 2 * (j & (PLACES - 1)) + above[c]
                for t in range(5):
                    inputs[1 + t] = tables[STRETCH + (slots[at[t]] >> 20)]
                p = np.int64(tables[SQUASH + mixed(inputs, weights, mixer)])
                bit = code_bit(coder, data, decoding, np.int64(mask[i, j]), p)
                learn(inputs, weights, mixer, (bit << 16) - p, _RATE)
                for t in range(5):
                    update(slots, at[t], bit, tables)
            mask[i, j] = bit
            change = bit ^ above[c]
            n_changes += change
            runs[j] = 0 if change else runs[j] + 1
            row = (2 * row + bit) & 255
            columns[j] = (2 * columns[j] + bit) & 255
        for j in range(m):
            above2[j + 2], above[j + 2] = above[j + 2], np.int64(mask[i, j])
    return coder[PLACE] if decoding else finish(coder, data)


def _for_loops(array: Array, dtype: type) -> Array:
    """Return an array as loops are compiled for: C-contiguous and writeable."""
    return np.require(array, dtype, ["C", "W"])


def _steps(coded: Array, steps: Array) -> Array:
    """Return steps, those of the row before for rows without coded integers."""
    last = np.maximum.accumulate(np.where(coded.any(1), np.arange(len(coded)), 0))
    return _for_loops(steps, np.int32)[last]


def _related(slice_rows: int, lag: int, n: int) -> tuple[int, int]:
    """Return distances to related rows; 0 where these are before the first."""
    return slice_rows if slice_rows < n else 0, lag if lag < n else 0


def _written(write: Callable[[Array], int], n_bytes: int) -> Array:
    """Return the bytes written, with a larger buffer if it was full."""
    room = np.empty(n_bytes + 4096, np.uint8)
    while (size := write(room)) == FULL:
        room = np.empty(4 * len(room), np.uint8)
    return room[:size].copy()


def _check_size(size: int, data: Array) -> None:
    # Four bytes are read ahead, of which the encoder writes one.
    if size != len(data) + 3:
        raise ValueError("the bytes are not what an encoder wrote.")
