"""The matrix products around the loops, on the thread pool; blocks of rows; rows in memory.

Each thread calls a one-threaded BLAS on its own piece. Rows of Gram matrices and correlations are
padded with zeros to whole vector lanes. Outside of this machine padding is invisible: a Gram matrix
is square, a view of padded memory.

See docs/decisions/003-one-thread-pool.md and docs/decisions/007-padded-rows.md.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.scale import all_in_safe_range
from kernelatoms.engine.cpu.threads import each, each_block, fair_share

# Columns of a padded row are a multiple of this.
LANES = 64

_GRAM_TILE = 512
# From this many bytes on a Gram matrix is not made; below this many atoms it always is.
_MOST_BYTES = 2 << 30
_FEWEST_ATOMS = 4096
# Columns of sums that a thread adds up, and rows that it takes at once.
_SUM_TILE, _SUM_ROWS = 128, 4096


def check_shape(array: Any, name: str, shape: tuple[int, ...]) -> None:
    """Refuse an array or tensor of another shape: the compiled loops do not check bounds."""
    if array.shape != shape:
        raise ValueError(f"The {name} must have shape {shape}, got {tuple(array.shape)}.")


def padded(n_columns: int) -> int:
    """Return ``n_columns`` rounded up to whole vector lanes."""
    return -(-n_columns // LANES) * LANES


def padded_memory(gram: NDArray[Any]) -> NDArray[Any]:
    """Return a square matrix with its rows padded, (n, padded(n)), contiguous and writable.

    A view of such memory, as ``gram_matrix`` returns it, costs nothing; anything else is copied.
    """
    n, width = len(gram), padded(len(gram))
    whole = _whole_rows(gram)
    if (
        whole is not None
        and whole.shape == (n, width)
        and whole.flags.writeable
        and not whole[:, n:].any()
    ):
        return whole
    out = np.zeros((n, width), gram.dtype)
    out[:, :n] = gram
    return out


def pad_rows(gram: NDArray[Any]) -> NDArray[Any]:
    """Return a square matrix as a view of padded memory, which the loops use without a copy."""
    return padded_memory(gram)[:, : len(gram)]


def gram_matrix(atoms: NDArray[Any]) -> NDArray[Any]:
    """Return atoms (n_atoms, n_features) @ atoms.T, a square view of padded memory.

    The loops use that memory without a copy. Only tiles on and above the diagonal are multiplied;
    the others are their transposes.
    """
    n_atoms = len(atoms)
    gram = np.zeros((n_atoms, padded(n_atoms)), atoms.dtype)
    columns = np.ascontiguousarray(atoms.T)
    edges = range(0, n_atoms, _GRAM_TILE)

    def multiply(tile: tuple[int, int]) -> None:
        i, j = tile
        i_stop, j_stop = min(i + _GRAM_TILE, n_atoms), min(j + _GRAM_TILE, n_atoms)
        with np.errstate(over="ignore", invalid="ignore"):  # callers look at the result
            np.matmul(atoms[i:i_stop], columns[:, j:j_stop], out=gram[i:i_stop, j:j_stop])
        if i != j:
            gram[j:j_stop, i:i_stop] = gram[i:i_stop, j:j_stop].T

    each(multiply, [(i, j) for i in edges for j in edges if i <= j])
    return gram[:, :n_atoms]


def prefers_no_gram(n_atoms: int, n_signals: int, n_nonzero: int, itemsize: int) -> bool:
    """Whether to code without a Gram matrix: it is too large, or more work than it saves.

    A signal of k nonzeros needs k rows of it; all signals together may need fewer rows than there
    are atoms.
    """
    if n_atoms < _FEWEST_ATOMS:
        return False
    return n_atoms**2 * itemsize > _MOST_BYTES or 2 * n_signals * n_nonzero < n_atoms


def cross_products(A: NDArray[Any], B: NDArray[Any]) -> NDArray[np.float64]:
    """Return A.T @ B of many rows, (n, p) and (n, q), in float64: sums over rows.

    Every thread has columns of its own, and rows are added up in blocks: the result does not depend
    on the number of threads, and float32 loses no digits to the length of the sum. Numbers far from
    1, whose products float32 does not hold, are multiplied in float64.
    """
    total = np.zeros((A.shape[1], B.shape[1]))
    # Without a copy of all rows, as of their absolute values.
    largest = np.array(
        [max(part.max(initial=0), -part.min(initial=0)) for part in (A, B)], np.float64
    )
    near_one = all_in_safe_range(largest**2, np.dtype(np.float32))
    dtype = np.result_type(A, B) if near_one else np.dtype(np.float64)

    def multiply(first: int) -> None:
        part = slice(first, first + _SUM_TILE)
        for start in range(0, len(A), _SUM_ROWS):
            rows = slice(start, start + _SUM_ROWS)
            total[:, part] += A[rows].T.astype(dtype, copy=False) @ B[rows, part]

    each(multiply, list(range(0, B.shape[1], _SUM_TILE)))
    return total


def times(rows: NDArray[Any], matrix: NDArray[Any]) -> NDArray[Any]:
    """Return rows @ matrix in the rows' type, in blocks: the same on any number of threads."""
    out = np.empty((len(rows), matrix.shape[1]), rows.dtype)
    matrix = matrix.astype(rows.dtype, copy=False)

    def work(start: int, stop: int) -> None:
        np.matmul(rows[start:stop], matrix, out=out[start:stop])

    for_blocks(len(rows), 2 * matrix.shape[1], rows.itemsize, work)
    return out


def block_rows(n_rows: int, width: int, itemsize: int, fewest: int = 512) -> int:
    """Return how many rows to work on at once: a few MiB per thread, enough rows for the GEMM.

    ``fewest`` as of ``fair_share``. A few blocks become two, four, eight or sixteen, which threads
    can share: of three, one of two threads would work while the other waits. More become a multiple
    of sixteen.
    """
    fits = (4 << 20) // max(width * itemsize, 1)
    most = min(max(fits, 128), 1024, fair_share(n_rows, fewest))
    n_blocks = 2
    while n_blocks < 16 and n_rows > n_blocks * most:
        n_blocks *= 2
    if n_rows > n_blocks * most:
        return _in_sixteens(n_rows, most)
    even = -(-n_rows // n_blocks)
    return even if 64 <= even < most else most


def _in_sixteens(n_rows: int, most: int) -> int:
    """Return at most so many rows per block, such that sixteen threads have as many blocks each."""
    n_blocks = 16 * -(-n_rows // (16 * most))
    return -(-n_rows // n_blocks)


def for_blocks(n_rows: int, width: int, itemsize: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(start, stop)`` for blocks of rows that need ``width`` numbers each."""
    each_block(n_rows, block_rows(n_rows, width, itemsize), lambda: work)


def for_rows(n_rows: int, most: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(start, stop)`` for blocks of at most so many rows, on all threads."""
    rows = min(most, fair_share(n_rows))
    each_block(n_rows, _in_sixteens(n_rows, rows) if n_rows > 16 * rows else rows, lambda: work)


def rows_in_memory(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return a square matrix with its rows contiguous: itself, its padded memory, or a copy.

    Loops over strided rows are not vectorised; those over rows of a wider matrix are.
    """
    whole = _whole_rows(matrix)
    return np.ascontiguousarray(matrix) if whole is None else whole


def _whole_rows(matrix: NDArray[Any]) -> NDArray[Any] | None:
    """Return the contiguous matrix whose first columns these are, or the matrix itself, or None."""
    base = matrix.base
    if (
        isinstance(base, np.ndarray)
        and base.flags.c_contiguous
        and base.ndim == 2
        and base.dtype == matrix.dtype
        and len(base) == len(matrix)
        and base.ctypes.data == matrix.ctypes.data
        and base.strides == matrix.strides
    ):
        return base
    return matrix if matrix.flags.c_contiguous else None
