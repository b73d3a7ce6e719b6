"""Small integers and masks to bytes and back: adaptive, lossless, identical on every machine.

See docs/decisions/052-codec-bounds.md.
"""

from collections.abc import Callable

import numpy as np

from kernelatoms.codec.loops.integers import code_integers, first_state
from kernelatoms.codec.loops.range_coder import FULL, TABLES, code_mask, first_mask_state
from kernelatoms.engine import Array

_NOTHING = np.empty(0, np.uint8)


def encode_integers(
    k: Array, coded: Array, steps: Array, slice_rows: int = 0, lag: int = 0
) -> Array:
    """Return a matrix of integers as bytes (uint8); small integers take fewer.

    ``k`` (int32, (n, m)) are at most 2^30 in magnitude, ``coded`` is 1 where they are coded, which
    the decoder knows. The unit of a row is 2^(steps / 16), with steps up to 2^20 in magnitude.
    ``slice_rows`` and ``lag`` are the distances to the two most related rows before; 0 for none.
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
    return _written(lambda room: code_mask(mask, room, False, TABLES, *first_mask_state()), 0)


def decode_bits(data: Array, shape: tuple[int, int]) -> Array:
    """Invert ``encode_bits``; raises as ``decode_integers``."""
    mask = np.zeros(shape, np.uint8)
    if mask.size:
        data = _for_loops(data, np.uint8)
        _check_size(code_mask(mask, data, True, TABLES, *first_mask_state()), data)
    elif len(data):
        raise ValueError("bytes of no mask.")
    return mask


def encode_all(k: Array) -> Array:
    """Return a matrix of integers of one unit, all of them coded, as bytes."""
    return encode_integers(k, np.ones(k.shape, np.uint8), np.zeros(len(k), np.int32))


def decode_all(data: Array, shape: tuple[int, int]) -> Array:
    """Invert ``encode_all``; raises as ``decode_integers``."""
    return decode_integers(data, np.ones(shape, np.uint8), np.zeros(shape[0], np.int32))


def encode_small(values: Array) -> Array:
    """Return a sequence of small integers as bytes."""
    return encode_all(values[:, None])


def decode_small(data: Array, n: int) -> Array:
    """Invert ``encode_small``."""
    return decode_all(data, (n, 1))[:, 0]


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
