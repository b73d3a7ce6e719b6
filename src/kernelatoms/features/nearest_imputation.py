"""Missing values from the rows that are nearest by what is known of both.

With gaps as zeros, x_i and y_i where values are, and p_i and q_i telling where that is, the squared
difference over the entries that both rows have is a sum of three inner products, and their number
a fourth:

    sum_i p_i y_i^2 - 2 x_i y_i + q_i x_i^2,   sum_i p_i q_i

The first over the second is the distance. It is found in float32: of two rows that are about as
far, either will do.

See docs/decisions/047-nearest-imputation.md.
"""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.engine import machine

Array = NDArray[Any]

# Rows compared at once: enough for BLAS, and a few MiB of distances.
_ROWS, _KEPT = 256, 1024


def fill_from_nearest(rows: Array, kept: Array, n_neighbors: int) -> Array:
    """Return rows whose gaps are filled with the means of what their nearest rows have there.

    Parameters
    ----------
    rows : (n, n_features)
        Rows of a common scale, NaN where a value is missing.
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
    # Complete rows first: of these, every row has as many entries in common as it has itself.
    lacking = np.isnan(kept).any(axis=1)
    kept, n_complete = kept[np.argsort(lacking, kind="stable")], np.count_nonzero(~lacking)
    theirs = np.nan_to_num(kept, nan=0.0)
    has = (~np.isnan(kept)).astype(rows.dtype)
    compared = np.hstack([theirs**2, theirs, has]).astype(np.float32)
    has_single = has.astype(np.float32)
    engine = machine(rows)

    def work(start: int, stop: int) -> None:
        block = rows[start:stop]
        gone = np.isnan(block)
        own, known = np.where(gone, 0, block), (~gone).astype(np.float32)
        count = np.maximum(known.sum(axis=1, keepdims=True), 1)
        comparing = (np.hstack([known, -2 * own, own**2]) / count).astype(np.float32)
        nearest = engine.TopK.empty(len(block), n_neighbors, comparing.dtype)
        for first in range(0, len(kept), _KEPT):
            part = slice(first, first + _KEPT)
            far = comparing @ compared[part].T
            if part.stop > n_complete:
                common = known @ has_single[part].T
                far *= count / np.maximum(common, 1)
                far[common == 0] = np.inf  # never kept
            nearest.push(far, first)
        nearest.indices[gone.all(axis=1)] = -1
        chosen = _choice(nearest.indices, len(kept), rows.dtype)
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
