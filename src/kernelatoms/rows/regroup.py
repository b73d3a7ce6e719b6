"""Rows that come in chunks of any size, in pieces of as many rows as were asked for."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.rows.numbers import as_floats


class Piece:
    """Rows of one block, as parts that follow each other."""

    def __init__(self, parts: list[Any], n_rows: int) -> None:
        self.parts = parts
        self.shape = (n_rows,)

    def joined(self, dtype: np.dtype[Any]) -> Array:
        """Return parts that are arrays as one array of floats."""
        parts = self.parts
        return as_floats(parts[0] if len(parts) == 1 else np.concatenate(parts), dtype)


def regroup(
    chunks: Iterable[Any], block_rows: int, cut: Callable[[Any, int, int], Any]
) -> Iterator[Piece]:
    """Yield pieces of ``block_rows`` rows, and of the rest at the end.

    ``cut(chunk, start, stop)`` returns rows of a chunk. Empty chunks are left out.
    """
    parts: list[Any] = []
    n_rows = 0
    for chunk in chunks:
        start, length = 0, chunk.shape[0]
        while start < length:
            stop = min(length, start + block_rows - n_rows)
            parts.append(chunk if stop - start == length else cut(chunk, start, stop))
            n_rows += stop - start
            start = stop
            if n_rows == block_rows:
                yield Piece(parts, n_rows)
                parts, n_rows = [], 0
    if parts:
        yield Piece(parts, n_rows)
