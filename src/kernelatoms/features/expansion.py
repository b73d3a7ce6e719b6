"""An expansion: vectors of a feature space written as phi(anchors) @ coef."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelatoms.engine import Array, machine
from kernelatoms.similarity import Kernel

# BLAS threads pay from this many anchors on.
_THREADED_FROM = 3000


@dataclass(frozen=True)
class Expansion:
    """The vectors v_j = sum_i coef[i, j] phi(anchors[i]); ``coef=None`` means phi(anchors).

    Linear methods need their inner products only: ``inner(X)`` with mapped rows, ``gram()`` among
    themselves.
    """

    kernel: Kernel
    anchors: Array
    coef: Array | None = None

    @property
    def n_vectors(self) -> int:
        """How many vectors there are."""
        return len(self.anchors) if self.coef is None else self.coef.shape[1]

    def inner(self, X: Array, out: Array | None = None) -> Array:
        """Return <phi(x), v_j> for all rows of X, computed in the calling thread."""
        K = self.kernel(X, self.anchors)
        if self.coef is not None:
            return np.matmul(K, self.coef.astype(K.dtype, copy=False), out=out)
        if out is None:
            return K
        out[...] = K
        return out

    def project(self, X: Array, out_dtype: Any = None) -> Array:
        """Return <phi(x), v_j> for all rows in the type of X, or ``out_dtype``, block by block."""
        out = np.empty((len(X), self.n_vectors), out_dtype or X.dtype, like=X)
        # Coefficients may be as large as the inverse precision they were computed in: float32
        # rows are compared with float64 anchors in float64.
        dtype = X.dtype if self.coef is None else np.result_type(X.dtype, self.coef.dtype)

        def worker(start: int, stop: int) -> None:
            with np.errstate(over="ignore", invalid="ignore"):  # callers check
                rows = X[start:stop].astype(dtype, copy=False)
                if dtype == out.dtype:
                    self.inner(rows, out=out[start:stop])
                else:
                    out[start:stop] = self.inner(rows)

        machine(X).for_blocks(len(X), len(self.anchors), X.itemsize, worker)
        return out

    def gram(self) -> Array:
        """Return <v_i, v_j> for all pairs."""
        with machine(self.anchors).one_blas_thread(len(self.anchors) < _THREADED_FROM):
            K = self.kernel(self.anchors, self.anchors)
            return K if self.coef is None else self.coef.T @ K @ self.coef
