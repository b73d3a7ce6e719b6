"""Codes: what a pursuit returns, a few atoms and coefficients for every signal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.engine.cpu.lasso import pack

Array = NDArray[Any]


@dataclass
class Codes:
    """Sparse codes, padded: row s uses atoms ``indices[s]``, ascending, with ``values[s]``.

    Shorter codes end in index -1 and value 0. ``error`` is the squared residual of every signal;
    where its energy k(x, x) is not known, the squared residual less that energy, which still
    ranks codes of the same signal. ``gap`` is the duality gap, where the pursuit has one;
    ``n_passes`` and ``n_updates`` count passes of coordinate descent and coefficients computed in
    them, where it tells.
    """

    indices: NDArray[np.int32]
    values: Array
    n_atoms: int
    error: Array
    gap: Array | None = None
    n_passes: NDArray[np.int64] | None = None
    n_updates: NDArray[np.int64] | None = None

    @classmethod
    def from_dense(cls, dense: Array, error: Array) -> "Codes":
        """Return the codes of a dense (n_signals, n_atoms) array, in the type of ``error``."""
        width = int(np.count_nonzero(dense, axis=1).max(initial=1))
        indices = np.full((len(dense), width), -1, np.int32)
        values = np.zeros(indices.shape, error.dtype)
        pack(dense, indices, values)
        return cls(indices, values, dense.shape[1], error)

    @classmethod
    def stacked(
        cls, parts: Sequence["Codes"], n_atoms: int, dtype: np.dtype[Any], **told: Any
    ) -> "Codes":
        """Return the codes of consecutive blocks of signals as one."""
        n_signals = sum(len(part.indices) for part in parts)
        width = max((part.indices.shape[1] for part in parts), default=1)
        indices = np.full((n_signals, width), -1, np.int32)
        values, error = np.zeros(indices.shape, dtype), np.empty(n_signals, dtype)
        first = 0
        for part in parts:
            stop, used = first + len(part.indices), part.indices.shape[1]
            indices[first:stop, :used], values[first:stop, :used] = part.indices, part.values
            error[first:stop] = part.error
            first = stop
        return cls(indices, values, n_atoms, error, **told)

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
