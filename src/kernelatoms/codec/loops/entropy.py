"""Small integers and masks to bytes and back: adaptive, lossless, identical on every machine.

See docs/decisions/052-codec-bounds.md.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.loops.entropy_loops import (
    FULL,
    LARGEST,
    TABLES,
    code_bits,
    code_integers,
    fresh,
    fresh_mask,
)

Array = NDArray[Any]

# Steps are powers of two in sixteenths of an octave; this covers the range of float64.
_LARGEST_STEP = 1 << 20
_NOTHING = np.empty(0, np.uint8)


def encode_integers(
    k: Array,
    coded: Array,
    steps: Array,
    slice_rows: int = 0,
    lag: int = 0,
    *,
    symmetric: bool = False,
) -> Array:
    """Return a matrix of integers as bytes.

    Parameters
    ----------
    k : int32 array of shape (n, m)
        The integers, at most 2^30 in magnitude; small ones take fewer bytes.
    coded : uint8 array of shape (n, m)
        1 where an integer is coded, 0 elsewhere; known to the decoder.
    steps : int32 array of shape (n,)
        The unit of every row, 2^(steps / 16).
    slice_rows, lag : int
        The distances to the two most related rows before; 0 for none in particular.
    symmetric : bool
        Whether slices of m rows are symmetric, with k[s * m + i, j] for j < i not coded.

    Returns
    -------
    uint8 array of shape (n_bytes,)
    """
    k = np.asarray(k)
    coded, steps = _checked(coded, steps)
    if coded.shape != k.shape:
        raise ValueError(f"coded must be of shape {k.shape}, got {coded.shape}.")
    if not coded.any():
        return _NOTHING
    related = _related(slice_rows, lag, symmetric, len(k))
    k = np.where(coded, k, 0)
    if max(-int(k.min()), int(k.max())) > LARGEST:
        raise ValueError("integers must be at most 2^30 in magnitude.")
    k = k.astype(np.int32)

    def write(room: Array) -> int:
        state = fresh(k.shape, *related)
        return code_integers(k, coded, steps, *related, room, False, TABLES, *state)

    return _written(write, k.size)


def decode_integers(
    data: Array,
    coded: Array,
    steps: Array,
    slice_rows: int = 0,
    lag: int = 0,
    *,
    symmetric: bool = False,
) -> Array:
    """Invert ``encode_integers``; 0 where nothing is coded.

    ``ValueError`` for bytes that no encoder writes; other damaged bytes may give any integers.
    """
    coded, steps = _checked(coded, steps)
    k: Array = np.zeros(coded.shape, np.int32)
    if coded.any():
        related = _related(slice_rows, lag, symmetric, len(k))
        data = _plain(data, np.uint8)
        state = fresh(k.shape, *related)
        _check_size(code_integers(k, coded, steps, *related, data, True, TABLES, *state), data)
    elif len(data):
        raise ValueError("bytes of no integers.")
    return k


def encode_bits(mask: Array) -> Array:
    """Return a matrix of zeros and ones as bytes; rows like the one before take few."""
    mask = _plain(mask, np.uint8)
    if mask.ndim != 2 or (mask > 1).any():
        raise ValueError("a mask must be a matrix of zeros and ones.")
    if not mask.size:
        return _NOTHING
    return _written(lambda room: code_bits(mask, room, False, TABLES, *fresh_mask()), 0)


def decode_bits(data: Array, shape: tuple[int, int]) -> Array:
    """Invert ``encode_bits``; raises as ``decode_integers``."""
    mask = np.zeros(shape, np.uint8)
    if mask.size:
        data = _plain(data, np.uint8)
        _check_size(code_bits(mask, data, True, TABLES, *fresh_mask()), data)
    elif len(data):
        raise ValueError("bytes of no mask.")
    return mask


def encode_small(values: Array) -> Array:
    """Return a sequence of small integers as bytes."""
    values = np.asarray(values)
    if values.ndim != 1:
        raise ValueError(f"values must be a sequence, got shape {values.shape}.")
    n = len(values)
    return encode_integers(values[:, None], np.ones((n, 1), np.uint8), np.zeros(n, np.int32))


def decode_small(data: Array, n: int) -> Array:
    """Invert ``encode_small``."""
    return decode_integers(data, np.ones((n, 1), np.uint8), np.zeros(n, np.int32))[:, 0]


def _plain(array: Array, dtype: type) -> Array:
    """Return an array as loops are compiled for: C-contiguous and writeable."""
    return np.require(array, dtype, ["C", "W"])


def _checked(coded: Array, steps: Array) -> tuple[Array, Array]:
    coded, steps = _plain(coded, np.uint8), _plain(steps, np.int32)
    if coded.ndim != 2 or steps.shape != coded.shape[:1]:
        raise ValueError(
            f"coded needs one step per row: {coded.shape} and {steps.shape} do not fit."
        )
    if len(steps) and np.abs(steps, dtype=np.int64).max() > _LARGEST_STEP:
        raise ValueError(f"steps must be at most {_LARGEST_STEP} in magnitude.")
    # A row without coded integers takes the step of the row before.
    last = np.maximum.accumulate(np.where(coded.any(1), np.arange(len(coded)), 0))
    return coded, steps[last]


def _related(slice_rows: int, lag: int, symmetric: bool, n: int) -> tuple[int, int, bool]:
    """Return distances to related rows; 0 where these are before the first."""
    if slice_rows < 0 or lag < 0:
        raise ValueError(f"slice_rows and lag must be at least 0, got {slice_rows} and {lag}.")
    return slice_rows if slice_rows < n else 0, lag if lag < n else 0, bool(symmetric)


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
