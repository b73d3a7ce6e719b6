"""A checksum of an array's bytes, near the speed of memory: it tells edits in place."""

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit

# Odd, so that multiplying by it loses nothing: one word that changes changes its sum for certain.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
# Bytes for which zlib is as fast as anything.
_FEW = 1 << 16


@jit()
def _sums(words):  # type: ignore[no-untyped-def]
    """Return four sums of every fourth word, each term times a power of the factor by its place."""
    a = b = c = d = np.uint64(0)
    for i in range(0, len(words), 4):
        a = a * _FACTOR + words[i]
        b = b * _FACTOR + words[i + 1]
        c = c * _FACTOR + words[i + 2]
        d = d * _FACTOR + words[i + 3]
    return a, b, c, d


def checksum(array: NDArray[Any]) -> tuple[int, ...]:
    """Return numbers that tell an array's bytes from others of the same shape and type.

    Made for accidents, not against forgery. Three to four times as fast as crc32 on large arrays.
    """
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = len(data) // 32 * 32
    if len(data) < _FEW or data.ctypes.data % 8:
        return (zlib.crc32(data.data),)
    sums = _sums(data[:whole].view(np.uint64))
    return (*map(int, sums), zlib.crc32(data[whole:].data))
