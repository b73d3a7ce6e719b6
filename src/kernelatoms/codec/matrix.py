"""One block of rows to bytes and back."""

from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.errors import CodecError
from kernelatoms.codec.models import CodecModel

Array = NDArray[Any]


def encode_matrix(rows: Array, bound: Bound, model: CodecModel) -> bytes:
    """Return rows as bytes, from which ``decode_matrix`` makes rows within the bound.

    Parameters
    ----------
    rows : float array of shape (n_rows, n_columns)
        float32 or float64; NaN where missing. Of a 3-d array, whole slices one under another.
    bound : Bound
        The largest error allowed.
    model : CodecModel
        How rows are predicted.
    """
    planes = np.ascontiguousarray(rows).view(np.uint8).reshape(-1, rows.itemsize).T
    return zstandard.ZstdCompressor(level=19).compress(np.ascontiguousarray(planes).tobytes())


def decode_matrix(data: bytes, model: CodecModel, n_rows: int, dtype: Any) -> Array:
    """Return the rows of ``encode_matrix``; ``CodecError`` if the bytes are not its own.

    Parameters
    ----------
    data : bytes
        What ``encode_matrix`` returned.
    model : CodecModel
        The model it was given.
    n_rows : int
        The number of rows it was given.
    dtype : dtype
        float32 or float64, the type it was given.

    Returns
    -------
    rows : array of shape (n_rows, model.n_columns)
    """
    dtype = np.dtype(dtype)
    n_values = n_rows * model.n_columns
    try:
        if zstandard.frame_content_size(data) != n_values * dtype.itemsize:
            raise CodecError("a block does not hold the number of values that it should.")
        planes = zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise CodecError(f"a block cannot be read: {error}.") from error
    values = np.frombuffer(planes, np.uint8).reshape(dtype.itemsize, n_values).T
    return np.ascontiguousarray(values).view(dtype).reshape(n_rows, model.n_columns)
