"""Rows in Dask, in chunks of every kind, and learners for tests of them."""

import hashlib
import time
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


def _rows_of_chunk(block_info, n_columns, labels):
    """Return a chunk, made where it is needed: classes are about directions of their own."""
    rng = np.random.default_rng(block_info[None]["chunk-location"][0])
    y = rng.integers(0, 3, block_info[None]["chunk-shape"][0])
    directions = np.random.default_rng(99).standard_normal((3, 4, n_columns))
    codes = rng.standard_normal((len(y), 4)) * (rng.random((len(y), 4)) < 0.5)
    rows = np.einsum("ij,ijk->ik", codes, directions[y])
    rows += 0.05 * rng.standard_normal(rows.shape)
    return y if labels else rows.astype(np.float32)


def made_rows(n_chunks=12, n_rows=500, n_columns=16):
    """Return rows that workers make themselves, and their labels."""
    chunks = ((n_rows,) * n_chunks, (n_columns,))
    X = da.map_blocks(
        _rows_of_chunk, n_columns=n_columns, labels=False, chunks=chunks, dtype=np.float32,
        meta=np.empty((0, 0), np.float32),
    )  # fmt: skip
    y = da.map_blocks(
        _rows_of_chunk, n_columns=n_columns, labels=True, chunks=chunks[:1], dtype=np.int64,
        meta=np.empty(0, np.int64),
    )  # fmt: skip
    return X, y


def sha256(model):
    """Return the checksum of all that a learner, or a classifier by dictionaries, has learned."""
    last = model[-1] if hasattr(model, "steps") else model
    crc = hashlib.sha256()
    for one in getattr(last, "dictionaries_", [last]):
        for name in ("components_", "dual_coef_", "objective_"):
            if hasattr(one, name):
                crc.update(np.ascontiguousarray(getattr(one, name)).tobytes())
    return crc.hexdigest()


def wait_until(is_so, seconds=30):
    """Wait until something is so, and fail where it does not become so."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "still not so"
        time.sleep(0.05)
