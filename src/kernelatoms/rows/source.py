"""``RowSource``: rows, wherever they are, as blocks that can be read again and again."""

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelatoms.engine import Array
from kernelatoms.rows.prefetch import Prefetch

#: Bytes of a block where nobody asked for a number of rows.
BLOCK_BYTES = 4 << 20
#: More rows than these are not shuffled as a whole to draw a few of them.
_SHUFFLED = 1 << 22


class RowSource:
    """Rows that are read block by block: an array, files, or whatever yields rows again and again.

    Every pass yields the same rows in the same order. Sources are made by
    :func:`~kernelatoms.open_rows`; learners read them, and ``transform`` of a source is a lazy
    source.

    Kinds of rows override ``_read``, which yields pieces of as many rows as asked for, and
    ``_finish``, which turns a piece into a block. ``_read`` waits for the disk, in one thread,
    ahead of time; ``_finish`` computes, in the threads that work on the blocks.

    Attributes
    ----------
    n_rows : int or None
        Number of rows; None until a pass has counted them.
    n_features : int or None
        Number of columns; None where a row is one value.
    dtype : dtype
        float32 or float64, as rows are delivered.
    feature_names : ndarray of str or None
        Names of the columns.
    """

    #: Whether a thread reads ahead: not where blocks are views.
    _waits_for_data = True
    #: Whether blocks are worked on one after another: those of a device.
    _one_by_one = False

    def __init__(
        self,
        n_rows: int | None,
        n_features: int | None,
        dtype: DTypeLike,
        feature_names: Iterable[str] | None = None,
        labels: Any = None,
    ) -> None:
        self.n_rows = n_rows
        self.n_features = n_features
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        names = None if feature_names is None else list(feature_names)
        self.feature_names = None if names is None else np.array(names, dtype=object)
        self._labels = None if labels is None else np.asarray(labels)
        if self._labels is not None and n_rows is not None and len(self._labels) != n_rows:
            raise ValueError(f"label has {len(self._labels):,} values for {n_rows:,} rows.")

    @property
    def shape(self) -> tuple[Any, ...]:
        """Rows and columns; the number of rows is None until a pass has counted them."""
        return (self.n_rows,) if self.n_features is None else (self.n_rows, self.n_features)

    @property
    def default_block_rows(self) -> int:
        """How many rows of 4 MiB together."""
        return max(1, BLOCK_BYTES // max(1, (self.n_features or 1) * self.dtype.itemsize))

    def blocks(self, block_rows: int) -> Iterator[Any]:
        """Yield all rows: ``block_rows`` rows at a time, the rest at the end.

        The next block is read while one is worked on.
        """
        with Prefetch(self._pieces(block_rows), 1, self._waits_for_data) as pieces:
            for _, piece in pieces:
                yield self._finish(piece)

    def take(self, indices: Any) -> Any:
        """Return these rows, in the order of ``indices``."""
        wanted = self._checked(indices)
        return self._take(wanted)

    def sample(self, n: int, rng: np.random.RandomState) -> Any:
        """Return ``n`` different random rows, or all in random order where there are fewer.

        The same rows for every kind of source that has equal rows. Rows that have not been counted
        are counted first.
        """
        return self._take(draw(self.count(), n, rng))

    def count(self) -> int:
        """Return the number of rows, by a pass where it is not known."""
        if self.n_rows is None:
            for _ in self._pieces(self.default_block_rows):
                pass
        return cast(int, self.n_rows)

    def labels(self) -> NDArray[Any] | None:
        """Return the label of every row, or None; a column is read when this is called."""
        return self._labels

    def identity(self) -> dict[str, Any]:
        """Return what tells these rows from others, as values that JSON can hold."""
        raise NotImplementedError

    def map(
        self,
        function: Callable[[Any], Any],
        n_features: int | None,
        *,
        dtype: DTypeLike | None = None,
        names: Iterable[str] | None = None,
    ) -> "RowSource":
        """Return ``function(rows)`` as a source, computed block by block as it is read.

        ``function`` must treat every row by itself. Its results may be arrays of ``n_features``
        columns, CSR arrays, or one value per row (``n_features=None``).
        """
        from kernelatoms.rows.mapped import MappedRows

        return MappedRows(self, function, n_features, dtype=dtype, names=names)

    def collect(self) -> Any:
        """Return all rows as one array, in memory."""
        return stacked(list(self.blocks(self.default_block_rows)), self.n_features, self.dtype)

    def reduce(
        self,
        work: Callable[[Any, int], Any],
        *,
        block_rows: int,
        add: Callable[[Any, Any], Any] | None = operator.add,
        max_at_once: int | None = None,
    ) -> Any:
        """Return the sum of ``work(block, start)`` over all blocks; see ``reduction``."""
        from kernelatoms.rows.reduction import reduce

        return reduce(self, work, block_rows=block_rows, add=add, max_at_once=max_at_once)

    def __iter__(self) -> Iterator[Any]:
        return self.blocks(self.default_block_rows)

    def __len__(self) -> int:
        if self.n_rows is None:
            raise TypeError("The rows have not been counted yet: count() reads them once.")
        return self.n_rows

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "These rows are read block by block and are no array. collect() brings all of them "
            "into memory; scikit-learn's own estimators need that."
        )

    def __repr__(self) -> str:
        rows = "not counted" if self.n_rows is None else f"{self.n_rows:,}"
        return f"<{type(self).__name__}: rows {rows}, features {self.n_features}, {self.dtype}>"

    def _read(self, block_rows: int) -> Iterator[Any]:
        """Yield pieces of ``block_rows`` rows, the last one of the rest; each has a ``shape``."""
        raise NotImplementedError

    def _finish(self, piece: Any) -> Any:
        """Turn a piece into a block."""
        return piece

    def _take(self, indices: NDArray[np.intp]) -> Any:
        """Return rows that exist, in order; by one pass, where a kind of rows knows no better."""
        order = np.argsort(indices, kind="stable")
        ascending = indices[order]
        found, start = [], 0
        for block in self.blocks(self.default_block_rows):
            stop = start + block.shape[0]
            low, high = np.searchsorted(ascending, [start, stop])
            if high > low:
                found.append(block[ascending[low:high] - start])
            start = stop
            if high == len(ascending):
                break
        back = np.empty(len(order), np.intp)
        back[order] = np.arange(len(order))
        return stacked(found, self.n_features, self.dtype)[back]

    def _pieces(self, block_rows: int) -> Iterator[Any]:
        """Read all pieces, and see that there are as many rows as ever."""
        if block_rows < 1:
            raise ValueError(f"block_rows must be 1 or more, got {block_rows}.")
        n_rows = 0
        for piece in self._read(block_rows):
            n_rows += piece.shape[0]
            if self.n_rows is not None and n_rows > self.n_rows:
                break
            yield piece
        if self.n_rows is not None and n_rows != self.n_rows:
            more = "more" if n_rows > self.n_rows else f"only {n_rows:,}"
            raise ValueError(
                f"The rows have changed since they were counted: there were {self.n_rows:,} and "
                f"there are now {more}. Every pass must find the same rows."
            )
        self.n_rows = n_rows

    def _checked(self, indices: Any) -> NDArray[np.intp]:
        wanted = np.asarray(indices)
        if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
            raise ValueError("indices must be a list of whole numbers.")
        n_rows = self.count()
        if wanted.size and not -n_rows <= wanted.min() <= wanted.max() < n_rows:
            raise IndexError(
                f"indices must be at least 0 and below {n_rows:,}, the number of rows; got "
                f"{wanted.min()} to {wanted.max()}."
            )
        wanted = wanted.astype(np.intp)
        return np.where(wanted < 0, wanted + n_rows, wanted)


def draw(n_rows: int, n: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Return ``min(n, n_rows)`` different random numbers below ``n_rows``.

    The first of a permutation; where that would be large and few are asked for, random numbers
    until enough of them differ. By ``n_rows`` and ``n`` alone, so that all sources draw the same.
    """
    if n_rows <= _SHUFFLED or n > n_rows // 4:
        return rng.permutation(n_rows)[:n].astype(np.intp)
    drawn = np.empty(0, np.intp)
    while len(drawn) < n:
        more = rng.randint(0, n_rows, size=n - len(drawn), dtype=np.int64)
        drawn = np.concatenate([drawn, more.astype(np.intp)])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn


def stacked(blocks: list[Any], n_features: int | None, dtype: np.dtype[Any]) -> Any:
    """Return blocks as one array: dense, CSR, or of one value per row."""
    if not blocks:
        return np.empty((0,) if n_features is None else (0, n_features), dtype)
    if len(blocks) == 1:
        return blocks[0]
    if isinstance(blocks[0], np.ndarray) or not hasattr(blocks[0], "indptr"):
        return np.concatenate(blocks)
    from scipy import sparse

    return sparse.csr_array(sparse.vstack(blocks, format="csr"))


def float_type(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the floats in which numbers of this type are delivered: float32 or float64."""
    given = np.dtype(dtype)
    if given.kind not in "fiub":
        raise TypeError(f"rows must be numbers, got {given}.")
    return np.dtype(np.float32 if given.kind == "f" and given.itemsize <= 4 else np.float64)


def float_type_asked(dtype: DTypeLike | None, stored: DTypeLike) -> np.dtype[Any]:
    """Return the type that was asked for, or else that of the stored numbers."""
    if dtype is None:
        return float_type(stored)
    asked = np.dtype(dtype)
    if asked not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {asked}.")
    return asked


def as_floats(block: Array, dtype: np.dtype[Any]) -> Array:
    """Return a block in rows of native floats; itself, where it is that already."""
    return np.ascontiguousarray(block, dtype)
