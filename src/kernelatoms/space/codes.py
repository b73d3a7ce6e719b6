"""Codes: what a pursuit returns, a few atoms and coefficients for every signal."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass
class Codes:
    """Sparse codes, padded: row s uses atoms ``indices[s]``, ascending, with ``values[s]``.

    Shorter codes end in index -1 and value 0. ``error`` is the squared residual of every signal;
    where its energy k(x, x) is not known, the squared residual less that energy, which still
    ranks codes of the same signal. ``gap`` is the duality gap, where the pursuit has one.
    """

    indices: NDArray[np.int32]
    values: Array
    n_atoms: int
    error: Array
    gap: Array | None = None

    def to_csr(self) -> scipy.sparse.csr_array:
        """Return the (n_signals, n_atoms) matrix of coefficients, indices sorted."""
        used = self.indices >= 0
        starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        index_type = np.int32 if starts[-1] < np.iinfo(np.int32).max else np.int64
        matrix = scipy.sparse.csr_array(
            (self.values[used], self.indices[used].astype(index_type), starts.astype(index_type)),
            shape=(len(self.indices), self.n_atoms),
        )
        matrix.has_sorted_indices = True
        return matrix

    def to_dense(self) -> Array:
        """Return the (n_signals, n_atoms) array of coefficients."""
        return self.to_csr().toarray()
