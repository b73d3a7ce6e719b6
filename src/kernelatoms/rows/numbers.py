"""Numbers as rows: the floats that they become, blocks put together, checksums."""

import zlib
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernelatoms.engine import Array


def stacked(blocks: list[Any], n_features: int | None, dtype: np.dtype[Any]) -> Any:
    """Return blocks as one array: dense, CSR, or of one value per row."""
    if not blocks:
        return np.empty((0,) if n_features is None else (0, n_features), dtype)
    if len(blocks) == 1:
        return blocks[0]
    if isinstance(blocks[0], np.ndarray) or not hasattr(blocks[0], "indptr"):
        return np.concatenate(blocks)
    from scipy import sparse

    return sparse.csr_array(sparse.vstack(blocks, format="csr"))


def float_type(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the floats in which numbers of this type are delivered: float32 or float64."""
    given = np.dtype(dtype)
    if given.kind not in "fiub":
        raise TypeError(f"rows must be numbers, got {given}.")
    return np.dtype(np.float32 if given.kind == "f" and given.itemsize <= 4 else np.float64)


def float_type_asked(dtype: DTypeLike | None, stored: DTypeLike) -> np.dtype[Any]:
    """Return the type that was asked for, or else that of the stored numbers."""
    if dtype is None:
        return float_type(stored)
    asked = np.dtype(dtype)
    if asked not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {asked}.")
    return asked


def checksum(numbers: Array, crc: int = 0) -> int:
    """Return the CRC-32 of an array's bytes, after those of earlier ones."""
    return zlib.crc32(np.ascontiguousarray(numbers).reshape(-1).view(np.uint8).data, crc)


def as_floats(block: Array, dtype: np.dtype[Any]) -> Array:
    """Return a block in rows of native floats; itself, where it is that already."""
    return np.ascontiguousarray(block, dtype)
