"""What runs on workers, each task on one chunk, or on sums: plain functions of arrays.

A task uses one thread. A worker runs as many tasks at once as it has threads.
"""

import copy
import ctypes
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import to_numpy
from kernelatoms.engine.cpu.threads import alone
from kernelatoms.rows.arrays import ArrayRows, SparseRows
from kernelatoms.rows.numbers import checksum, stacked
from kernelatoms.rows.source import RowSource

# Options of glibc's mallopt.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


@dataclass(frozen=True)
class Chunk:
    """What a chunk of rows must be: its place among all rows, its columns and their type.

    Parameters
    ----------
    what : str
        What errors call the rows: "X".
    number : int
        The number of the chunk, from 0.
    start, n_rows : int
        The number of its first row, and how many it has.
    n_features : int
        Columns.
    stored, dtype : dtype
        The type of its numbers, and the floats that they become.
    """

    what: str
    number: int
    start: int
    n_rows: int
    n_features: int
    stored: np.dtype[Any]
    dtype: np.dtype[Any]

    def opened(self, rows: Any) -> RowSource:
        """Return the rows of the chunk as a source; refuse what was not announced."""
        if type(rows).__module__.partition(".")[0] in ("cupy", "torch"):
            from kernelatoms.engine.gpu.arrays.conversion import array_from

            rows = array_from(rows, self.what)
        expected = (self.n_rows, self.n_features)
        if rows.shape != expected or rows.dtype != self.stored:
            raise ValueError(
                f"{self} must be of shape {expected} and type {self.stored}, as {self.what} says, "
                f"but it is of shape {tuple(rows.shape)} and type {rows.dtype}. All chunks must "
                f"have the same columns and the same type: {self.what}.astype(...), say."
            )
        kind = SparseRows if hasattr(rows, "tocsr") else ArrayRows
        return kind(rows, dtype=self.dtype)

    def __str__(self) -> str:
        return f"chunk {self.number} of {self.what}"


@dataclass(frozen=True)
class Sized:
    """What tasks give to tasks, and how many bytes it takes: Dask plans by these."""

    value: Any
    n_bytes: int

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return a value with the bytes that it takes when it is sent."""
        buffers: list[pickle.PickleBuffer] = []
        try:  # copies no arrays
            rest = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        except (pickle.PicklingError, AttributeError, TypeError):  # of a user's own class
            return cls(value, sys.getsizeof(value))
        return cls(value, len(rest) + sum(memoryview(buffer).nbytes for buffer in buffers))

    def __sizeof__(self) -> int:
        return self.n_bytes


def unpack(packed: bytes) -> Sized:
    """Return what was sent as bytes."""
    return Sized(pickle.loads(packed), len(packed))


def work_on_chunk(
    work: Sized,
    rows: Any,
    chunk: Chunk,
    block_rows: int,
    add: Callable[[Any, Any], Any] | None,
    *beside: NDArray[Any],
) -> Sized:
    """Return the sum of ``work(block, start, *values)`` over the blocks of a chunk."""
    function = work.value

    def of_block(block: Any, first: int, *values: Any) -> Any:
        return function(block, chunk.start + first, *values)

    with alone(), _Noted(chunk):
        keep_freed_memory()
        source = chunk.opened(rows)
        if source.one_by_one or on_a_device():  # which works on all rows together
            block_rows = chunk.n_rows
        return Sized.of(source.reduce(of_block, block_rows=block_rows, add=add, beside=beside))


def add_sums(add: Callable[[Any, Any], Any] | None, first: Sized, *others: Sized) -> Sized:
    """Return the sum of neighbours, from left to right, as a new object.

    What a task is given may be needed again, by a task on another worker: ``add`` may change its
    first argument, which is a copy here.
    """
    if add is None:
        return first
    with alone():
        total = copy.deepcopy(first.value)
        for one in others:
            total = add(total, one.value)
        return Sized.of(total)


def answer_chunk(
    function: Sized,
    none: Any,
    block_rows: int,
    chunks: list[Chunk],
    *rows: Any,
) -> Any:
    """Return ``function(block, ...)`` of all blocks of chunks beside each other, in one array.

    ``none`` is the answer for no rows.
    """
    with alone(), _Noted(chunks[0]):
        keep_freed_memory()
        sources = [chunk.opened(one) for chunk, one in zip(chunks, rows, strict=True)]
        blocks = zip(*(source.blocks(block_rows) for source in sources), strict=True)
        found = [function.value(*some) for some in blocks]
        n_columns = none.shape[1] if none.ndim == 2 else None
        return stacked(found, n_columns, none.dtype) if found else none


def pick_rows(rows: Any, chunk: Chunk, indices: NDArray[np.intp]) -> Any:
    """Return some rows of a chunk."""
    with alone(), _Noted(chunk):
        return to_numpy_or_csr(chunk.opened(rows).take(indices))


def checksum_of(rows: Any, chunk: Chunk) -> int:
    """Return a checksum of the numbers of a chunk."""
    crc = 0
    with alone(), _Noted(chunk):
        source = chunk.opened(rows)
        for block in source.blocks(source.default_block_rows):
            for part in (block.indptr, block.indices, block.data) if is_csr(block) else (block,):
                crc = checksum(to_numpy(part), crc)
    return crc


def frame_to_array(frame: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the columns of a data frame as an array, NaN where values are missing."""
    return frame.to_numpy(dtype=dtype, na_value=np.nan) if len(frame.columns) else np.empty((0, 0))


def to_numpy_or_csr(rows: Any) -> Any:
    """Return rows as a numpy array of their own, or in CSR."""
    return rows if is_csr(rows) else np.array(to_numpy(rows))


def is_csr(rows: Any) -> bool:
    """Whether rows are sparse."""
    return hasattr(rows, "indptr")


def on_a_device() -> bool:
    """Whether this process does its work on a device."""
    return os.environ.get("KERNELATOMS_DEVICE", "").strip() not in ("", "cpu")


@cache
def keep_freed_memory() -> None:
    """Let a worker use memory again that it has freed, as processes of glibc do by themselves.

    Dask starts workers so that they give all of it back at once (MALLOC_TRIM_THRESHOLD_). The pages
    of every block would be new then, and a pass takes 1.4 times as long. These are the largest
    thresholds that glibc comes to where nobody sets one.
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ or not sys.platform.startswith("linux"):
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_MMAP_THRESHOLD, 32 << 20)
        set_option(_TRIM_THRESHOLD, 64 << 20)


class _Noted:
    """A context whose errors say which chunk they are about."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, Exception):
            last = self._chunk.start + self._chunk.n_rows - 1
            error.add_note(f"In {self._chunk}, rows {self._chunk.start:,} to {last:,}.")
