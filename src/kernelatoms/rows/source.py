"""``RowSource``: rows, wherever they are, as blocks that can be read again and again."""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelatoms.rows.numbers import stacked
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

    Parameters
    ----------
    n_rows : int or None
        Number of rows; None until a pass has counted them.
    n_features : int or None
        Number of columns; None where a row is one value.
    dtype : dtype
        Type of the rows as they are delivered.
    feature_names : sequence of str, optional
        Names of the columns.
    labels : array-like of shape (n_rows,), optional
        A label per row.

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

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import open_rows
    >>> rows = open_rows(np.arange(10.0).reshape(5, 2), label=[0, 1, 0, 1, 1])
    >>> rows.shape, rows.labels()
    ((5, 2), array([0, 1, 0, 1, 1]))
    >>> [len(block) for block in rows.blocks(2)]
    [2, 2, 1]
    >>> rows.reduce(lambda block, start: block.sum(axis=0), block_rows=2)
    array([20., 25.])
    >>> rows.map(np.sqrt, 2).take([4])
    array([[2.82842712, 3.        ]])
    """

    #: Whether a thread reads ahead: not where blocks are views.
    _waits_for_data = True
    #: Whether blocks are worked on one after another: those of a device.
    one_by_one = False
    #: Whether ``reduce`` sends its work to where the rows are: those of Dask.
    is_distributed = False
    #: How many rows each chunk has, where the chunks are part of what is learned.
    row_chunks: tuple[int, ...] | None = None
    #: At most so many bytes have been sent by passes so far.
    bytes_moved = 0
    #: How all rows are brought into memory.
    how_to_collect = "X.collect()"

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
        if n_rows is not None:
            self._refuse_other_labels(n_rows)

    @property
    def shape(self) -> tuple[Any, ...]:
        """Rows and columns; the number of rows is None until a pass has counted them."""
        return (self.n_rows,) if self.n_features is None else (self.n_rows, self.n_features)

    @property
    def default_block_rows(self) -> int:
        """How many rows of 4 MiB together."""
        return max(1, BLOCK_BYTES // max(1, (self.n_features or 1) * self.dtype.itemsize))

    def blocks(self, block_rows: int) -> Iterator[Any]:
        """Yield all rows, ``block_rows`` at a time, the rest at the end.

        The next blocks are read while one is worked on. Passes are independent of each other:
        several may be under way.

        Parameters
        ----------
        block_rows : int
            Rows per block.

        Yields
        ------
        ndarray, csr_array or DeviceArray
            The next rows, in order. They may be a view of the rows: do not write into them.
        """
        with Prefetch(self._pieces(block_rows), 1, self._waits_for_data) as pieces:
            for _, piece in pieces:
                yield self._finish(piece)

    def take(self, indices: Any) -> Any:
        """Return some rows.

        Parameters
        ----------
        indices : array-like of int, of shape (n,)
            Which rows, in any order; negative ones count from the end.

        Returns
        -------
        ndarray or csr_array of shape (n, n_features)
            The rows, in the order of ``indices``.
        """
        return self._take(self._checked(indices))

    def sample(self, n: int, rng: np.random.RandomState) -> Any:
        """Return random rows, none of them twice.

        Equal rows give equal samples, whatever kind of source has them. Rows that have not been
        counted are counted first.

        Parameters
        ----------
        n : int
            How many; where there are fewer rows, all are returned.
        rng : RandomState
            Draws them.

        Returns
        -------
        ndarray or csr_array of shape (min(n, n_rows), n_features)
            The rows, in random order.
        """
        return self._take(draw(self.count(), n, rng))

    def count(self) -> int:
        """Return the number of rows, by a pass where it is not known."""
        if self.n_rows is None:
            for _ in self._pieces(self.default_block_rows):
                pass
        return cast(int, self.n_rows)

    def labels(self) -> NDArray[Any] | None:
        """Return the label of every row; a column of labels is read when this is called.

        Returns
        -------
        ndarray of shape (n_rows,), or None
            The labels, where there are any.
        """
        return self._labels

    def identity(self) -> dict[str, Any]:
        """Return what tells these rows from others.

        Returns
        -------
        dict
            Values that JSON can hold: names, sizes and times of files, or a checksum.
        """
        raise NotImplementedError

    def map(
        self,
        function: Callable[[Any], Any],
        n_features: int | None,
        *,
        dtype: DTypeLike | None = None,
        names: Iterable[str] | None = None,
    ) -> "RowSource":
        """Return ``function(rows)`` as a source, computed block by block when it is read.

        Parameters
        ----------
        function : callable
            Treats every row by itself. It returns arrays, CSR arrays or one value per row.
        n_features : int or None
            Columns of what it returns; None for one value per row.
        dtype : dtype, optional
            Type of what it returns; by default that of the rows.
        names : sequence of str, optional
            Names of the columns.

        Returns
        -------
        MappedRows
            The lazy source.
        """
        from kernelatoms.rows.mapped import MappedRows

        return MappedRows(self, function, n_features, dtype=dtype, names=names)

    def collect(self) -> Any:
        """Return all rows as one array, in memory."""
        return stacked(list(self.blocks(self.default_block_rows)), self.n_features, self.dtype)

    def reduce(
        self,
        work: Callable[..., Any],
        *,
        block_rows: int,
        add: Callable[[Any, Any], Any] | None = operator.add,
        max_at_once: int | None = None,
        beside: Sequence[NDArray[Any]] = (),
    ) -> Any:
        """Return the sum of ``work(block, start, *values)`` over all blocks.

        Blocks are worked on by all threads while the next ones are read. The bits of the sum do not
        depend on the number of threads.

        Parameters
        ----------
        work : callable
            Called with every block, the number of its first row and the values beside its rows,
            each block by one thread. Calls of the library inside of it run in that thread.
        block_rows : int
            Rows per block.
        add : callable or None
            Adds two results; it may change the first one and return it. With None nothing is
            added, and None is returned.
        max_at_once : int, optional
            At most so many blocks are worked on or wait to be added; for large results. With 1,
            ``work`` runs in the calling thread and may use all threads itself.
        beside : sequence of arrays of shape (n_rows,)
            Values of every row, such as its weight.

        Returns
        -------
        object
            The sum. Errors and Ctrl-C stop all threads; of several errors that of the first block
            is raised.
        """
        from kernelatoms.rows.reduction import reduce

        return reduce(
            self, work, block_rows=block_rows, add=add, max_at_once=max_at_once, beside=beside
        )

    def plan(self, n_atoms: int, n_features: int, n_dictionaries: int = 1) -> None:
        """Log what passes will do and warn of bad chunks, where rows are distributed.

        Parameters
        ----------
        n_atoms, n_features : int
            The size of a dictionary.
        n_dictionaries : int, default=1
            How many are learned.
        """

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
        """Return all pieces."""
        if block_rows < 1:
            raise ValueError(f"block_rows must be 1 or more, got {block_rows}.")
        return self._as_many_as_ever(block_rows)

    def _as_many_as_ever(self, block_rows: int) -> Iterator[Any]:
        """Read all pieces, and see that there are as many rows as ever."""
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
        if self.n_rows is None:
            self._refuse_other_labels(n_rows)
        self.n_rows = n_rows

    def _refuse_other_labels(self, n_rows: int) -> None:
        if self._labels is not None and len(self._labels) != n_rows:
            raise ValueError(f"label has {len(self._labels):,} values for {n_rows:,} rows.")

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
