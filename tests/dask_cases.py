"""Rows in Dask, in chunks of every kind, and learners for tests of them."""

from uuid import uuid4

import dask.array as da
import numpy as np
from hypothesis import strategies as st

#: What small data in chunks are warned of.
SMALL = "ignore:Chunks of X are as small"


def in_dask(X, sizes, widths=None, known=True):
    """Return rows of an array as a Dask array with these chunks, whose lengths may be unknown."""
    sizes = (sizes,) * (len(X) // sizes) if isinstance(sizes, int) else tuple(sizes)
    chunks = (sizes,) if X.ndim == 1 else (sizes, widths or (X.shape[1],))
    rows = da.from_array(X, chunks=chunks)
    if known:
        return rows
    unknown = ((np.nan,) * len(sizes), *rows.chunks[1:])
    return da.Array(rows.dask, rows.name, unknown, dtype=rows.dtype, meta=rows._meta)


@st.composite
def chunkings(draw, n_columns=3):
    """Draw what ``in_dask`` takes beside rows: chunks of rows, some of them empty, and columns."""
    sizes = draw(st.lists(st.integers(0, 7), min_size=1, max_size=20).filter(any))
    first = draw(st.integers(0, n_columns - 1))
    widths = (first, n_columns - first) if first else (n_columns,)
    return tuple(sizes), widths, draw(st.booleans())


def uneven(n, sizes=(70, 0, 1, 130)):
    """Return sizes of chunks of n rows, over and over again those given."""
    found, i = [], 0
    while sum(found) < n:
        found.append(min(sizes[i % len(sizes)], n - sum(found)))
        i += 1
    return tuple(found)


class Counted:
    """A function for ``map_blocks`` that counts the chunks it is called with."""

    def __init__(self):
        self.n = 0

    def __call__(self, rows):
        self.n += 1
        return rows


def counted(rows):
    """Return rows whose chunks are counted when they are computed, and the count."""
    count = Counted()
    return rows.map_blocks(count, meta=rows._meta, name=f"counted-{uuid4().hex}"), count
