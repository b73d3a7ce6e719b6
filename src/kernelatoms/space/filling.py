"""Missing values from the rows that are nearest by what is known of both.

The mean squared difference over the entries that two rows have is, for all pairs, three matrix
products of values with zeros in the gaps, their squares, and the patterns of gaps themselves.
"""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.engine import machine

Array = NDArray[Any]

# Rows compared at once: enough for BLAS, and a few MiB of distances.
_ROWS, _KEPT = 512, 2048


def fill_from_nearest(rows: Array, kept: Array, n_neighbors: int) -> Array:
    """Return rows whose gaps are filled with the means of what their nearest rows have there.

    Parameters
    ----------
    rows : (n, n_features)
        Rows, NaN where a value is missing.
    kept : (m, n_features)
        Rows to fill from, of the same type, NaN likewise.
    n_neighbors : int
        K, from 1 to m. Of the K nearest rows, those that have an entry give it. Rows without an
        entry in common are no neighbours.

    Returns
    -------
    (n, n_features)
        0 where no neighbour has the entry.
    """
    filled = np.empty_like(rows)
    theirs = np.nan_to_num(kept, nan=0.0)
    has = (~np.isnan(kept)).astype(rows.dtype)
    squares = theirs**2
    engine = machine(rows)

    def work(start: int, stop: int) -> None:
        block = rows[start:stop]
        gone = np.isnan(block)
        own, known = np.where(gone, 0, block), (~gone).astype(rows.dtype)
        indices, values = engine.none_yet(len(block), n_neighbors, rows.dtype)
        for first in range(0, len(kept), _KEPT):
            part = slice(first, first + _KEPT)
            sums = known @ squares[part].T + own**2 @ has[part].T - 2 * (own @ theirs[part].T)
            common = known @ has[part].T
            far = np.full_like(sums, np.inf)  # never kept
            np.divide(np.maximum(sums, 0), common, out=far, where=common > 0)
            engine.keep_smallest(far, first, indices, values)
        chosen = _choice(indices, len(kept), rows.dtype)
        means = (chosen @ theirs) / np.maximum(chosen @ has, 1)
        filled[start:stop] = np.where(gone, means, block)

    engine.for_rows(len(rows), _ROWS, work)
    return filled


def _choice(indices: NDArray[np.int32], n_kept: int, dtype: Any) -> Any:
    """Return a sparse array with a 1 for every neighbour; -1 stands for none."""
    found = indices >= 0
    ends = np.concatenate([[0], np.cumsum(found.sum(axis=1))])
    columns = indices[found]
    shape = (len(indices), n_kept)
    return scipy.sparse.csr_array((np.ones(len(columns), dtype), columns, ends), shape=shape)
