"""Memory layout for the loops: rows padded with zeros to whole vector lanes.

No other module sees padding: Gram matrices are square, and views of padded memory where this
machine allocated them.

See docs/decisions/007-padded-rows.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Rows of Gram and correlations are padded with zeros to a multiple of this many columns, so that
# vector loops have no scalar remainder (worth 2x at 300 atoms).
LANES = 64


def check_shape(array: NDArray[Any], name: str, shape: tuple[int, ...]) -> None:
    """Refuse an array of another shape: the compiled loops do not check bounds."""
    if array.shape != shape:
        raise ValueError(f"The {name} must have shape {shape}, got {array.shape}.")


def padded(n_columns: int) -> int:
    """Return ``n_columns`` rounded up to whole vector lanes."""
    return -(-n_columns // LANES) * LANES


def padded_memory(gram: NDArray[Any]) -> NDArray[Any]:
    """Return a square matrix with its rows padded: the memory behind it, or a copy.

    Parameters
    ----------
    gram : (n, n) float32 or float64
        Inner products of atoms. The view ``out[:, :n]`` of zero-padded (n, padded(n)) memory, as
        ``gram_matrix`` returns it, costs nothing; anything else is copied.

    Returns
    -------
    (n, padded(n)) array, C-contiguous and writable (as the loops are compiled for; they only read).
    """
    n, width = len(gram), padded(len(gram))
    whole = gram if n == width else gram.base
    if (
        isinstance(whole, np.ndarray)
        and whole.shape == (n, width)
        and whole.dtype == gram.dtype
        and whole.flags.c_contiguous
        and whole.flags.writeable
        and whole.ctypes.data == gram.ctypes.data
        and whole.strides == gram.strides
        and not whole[:, n:].any()
    ):
        return whole
    out = np.zeros((n, width), gram.dtype)
    out[:, :n] = gram
    return out


def pad_rows(gram: NDArray[Any]) -> NDArray[Any]:
    """Return a square matrix as a view of padded memory, which the loops use without a copy."""
    return padded_memory(gram)[:, : len(gram)]
