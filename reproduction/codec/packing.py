"""Integers as bytes by general-purpose compressors: what rivals store beside their streams."""

import bz2
import lzma
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

Array = NDArray[Any]

#: Levels of zstandard: during the search for a setting, and for the final file.
QUICK, THOROUGH = 9, 22


def squeezed(data: bytes) -> int:
    """Return the bytes that are left by the best of three compressors."""
    return min(
        len(zstandard.ZstdCompressor(level=THOROUGH).compress(data)),
        len(bz2.compress(data, 9)),
        _lzma(data),
    )


def integer_bytes(codes: Array) -> int:
    """Return the bytes of integers: themselves or their changes, along either axis first."""
    codes = codes - codes.min(initial=0)
    forms = [codes, *(np.diff(codes, axis=axis, prepend=0) for axis in range(codes.ndim))]
    return min(squeezed(small(order).tobytes()) for form in forms for order in (form, form.T))


def mask_bytes(known: Array) -> int:
    """Return the bytes of the places of known values; 0 where all are known."""
    if known.all():
        return 0
    rows = known.reshape(-1, known.shape[-1])
    forms = [rows, rows.T, *(np.diff(order, axis=0, prepend=True) for order in (rows, rows.T))]
    return min(squeezed(np.packbits(form).tobytes()) for form in forms)


def zstd_bytes(values: Array, level: int = QUICK) -> int:
    """Return the bytes of integers by zstandard, value by value or byte plane by byte plane."""
    compressor = zstandard.ZstdCompressor(level=level)
    return min(len(compressor.compress(form)) for form in _forms(values))


def xz_bytes(values: Array) -> int:
    """Return the bytes of integers by LZMA, likewise."""
    return min(_lzma(form) for form in _forms(values))


def _lzma(data: bytes) -> int:
    # The preset's own dictionary has 64 MiB, which takes longer to set up than to use.
    window = 1 << max(len(data) - 1, 4095).bit_length()
    preset = 9 | lzma.PRESET_EXTREME
    chain = [{"id": lzma.FILTER_LZMA1, "preset": preset, "dict_size": window}]
    return len(lzma.compress(data, lzma.FORMAT_ALONE, filters=chain))


def _forms(values: Array) -> list[bytes]:
    integers = small(values)
    planes = integers.reshape(-1, 1).view(np.uint8).T
    return [form.tobytes() for form in (integers, planes)][: integers.itemsize]


def small(values: Array) -> Array:
    """Return integers, contiguous, in the smallest type that holds them."""
    largest = int(np.abs(values).max(initial=0))
    kind = np.int8 if largest < 128 else np.int16 if largest < 32768 else np.int32
    return np.ascontiguousarray(values, kind)
