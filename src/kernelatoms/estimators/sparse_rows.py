"""Rows that come as sparse arrays: dense inside, in blocks where every row is judged by itself."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from kernelatoms.engine import lives_elsewhere
from kernelatoms.space.memory import check_fits

Method = TypeVar("Method", bound=Callable[..., Any])

# Dense values at once, in bytes.
_BLOCK = 1 << 26


def dense_rows(X: Any, name: str = "X") -> Any:
    """Return a sparse array as a dense one, where that fits; anything else as it is."""
    if lives_elsewhere(X) and hasattr(X, "toarray"):
        return X.toarray()
    if not scipy.sparse.issparse(X):
        return X
    n_bytes = float(np.prod(X.shape)) * _itemsize(X)
    shape = " x ".join(f"{side:,}" for side in X.shape)
    check_fits(
        n_bytes, f"the {shape} values of {name}, which is sparse and dense inside,",
        "Give fewer rows, or fewer columns (sklearn.decomposition.TruncatedSVD, say).",
    )  # fmt: skip
    return X.toarray()


def sparse_in_blocks(method: Method) -> Method:
    """Let a method that answers row by row take large sparse arrays block after block."""

    @functools.wraps(method)
    def blockwise(self: Any, X: Any) -> Any:
        if not scipy.sparse.issparse(X) or X.ndim != 2:
            return method(self, X)
        step = max(1, int(_BLOCK // max(1, X.shape[1] * _itemsize(X))))
        if X.shape[0] <= step:
            return method(self, X)
        rows = X.tocsr()
        return _joined([method(self, rows[i : i + step]) for i in range(0, X.shape[0], step)])

    return blockwise  # type: ignore[return-value]


def _itemsize(X: Any) -> int:
    return 4 if X.dtype == np.float32 else 8


def _joined(parts: list[Any]) -> Any:
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.csr_array(scipy.sparse.vstack(parts, format="csr"))
    if isinstance(parts[0], list):
        return [one for part in parts for one in part]
    return np.concatenate(parts)
