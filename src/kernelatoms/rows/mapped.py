"""What a function makes of the rows of a source, or of two, block by block."""

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelatoms.engine import to_numpy
from kernelatoms.rows.numbers import checksum
from kernelatoms.rows.source import RowSource

#: Rows whose results tell one function from another.
_LOOKED_AT = 64


class MappedRows(RowSource):
    """``function(rows)``, computed when its blocks are read; made by ``RowSource.map``.

    Parameters
    ----------
    parent : RowSource
        The rows.
    function : callable
        Treats every row by itself: arrays, CSR arrays or one value per row.
    n_features : int or None
        Columns of what it returns; None for one value per row.
    dtype : dtype, optional
        Type of what it returns; by default that of the rows.
    names : sequence of str, optional
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.rows import ArrayRows
    >>> source = ArrayRows(np.arange(10.0).reshape(5, 2))
    >>> squares = source.map(np.square, 2)
    >>> [block.tolist() for block in squares.blocks(3)]
    [[[0.0, 1.0], [4.0, 9.0], [16.0, 25.0]], [[36.0, 49.0], [64.0, 81.0]]]
    >>> squares.collect().shape
    (5, 2)
    """

    def __init__(
        self,
        parent: RowSource,
        function: Callable[[Any], Any],
        n_features: int | None,
        *,
        dtype: DTypeLike | None = None,
        names: Iterable[str] | None = None,
    ) -> None:
        super().__init__(parent.n_rows, n_features, parent.dtype if dtype is None else dtype, names)
        self.parent, self.function = parent, function
        self._waits_for_data = parent._waits_for_data
        self.one_by_one = parent.one_by_one
        self.is_distributed = parent.is_distributed
        self.how_to_collect = parent.how_to_collect

    @property
    def row_chunks(self) -> tuple[int, ...] | None:  # type: ignore[override]
        """The chunks of the rows that the function is applied to."""
        return self.parent.row_chunks

    @property
    def bytes_moved(self) -> int:  # type: ignore[override]
        """How much passes over these rows have sent."""
        return self.parent.bytes_moved

    def plan(self, n_atoms: int, n_features: int, n_dictionaries: int = 1) -> None:
        """Log what passes will do, where rows are distributed.

        Parameters
        ----------
        n_atoms, n_features, n_dictionaries : int
            As in ``RowSource.plan``.
        """
        self.parent.plan(n_atoms, n_features, n_dictionaries)

    @property
    def default_block_rows(self) -> int:
        """How many rows of the parent are 4 MiB together."""
        return self.parent.default_block_rows

    def count(self) -> int:
        """Return the number of rows; the function is not called."""
        self.n_rows = self.parent.count()
        return self.n_rows

    def labels(self) -> NDArray[Any] | None:
        """Return the labels of the rows that the function is applied to."""
        return self.parent.labels()

    def identity(self) -> dict[str, Any]:
        """Return the identity of the rows, and a checksum of what becomes of the first of them."""
        crc = 0
        first = next(iter(self.parent.blocks(_LOOKED_AT)), None)
        if first is not None:
            found = self.function(first)
            for part in (found.indptr, found.indices, found.data) if _is_csr(found) else (found,):
                crc = checksum(to_numpy(part), crc)
        return {"kind": "mapped", "of": self.parent.identity(), "first": crc} | {
            "n_features": self.n_features,
            "dtype": self.dtype.name,
        }

    def reduce(self, work: Callable[..., Any], **options: Any) -> Any:
        """Return the sum of work on blocks of what the function returns, where the rows are.

        Parameters
        ----------
        work : callable
            As in ``RowSource.reduce``.
        **options
            Its further arguments.

        Returns
        -------
        object
            The sum.
        """
        function = self.function

        def of_block(block: Any, start: int, *beside: Any) -> Any:
            return work(function(block), start, *beside)

        return self.parent.reduce(of_block, **options)

    def _read(self, block_rows: int) -> Iterator[Any]:
        return self.parent._pieces(block_rows)

    def _finish(self, piece: Any) -> Any:
        return self.function(self.parent._finish(piece))

    def _take(self, indices: NDArray[np.intp]) -> Any:
        return self.function(self.parent._take(indices))


class PairedRows(RowSource):
    """``function(rows, others)`` of the rows of two sources, one value per row.

    Parameters
    ----------
    rows, others : RowSource
        Two sources of equally many rows.
    function : callable
        Treats every row, with its other one, by itself.
    dtype : dtype
        Type of what it returns.
    """

    def __init__(
        self,
        rows: RowSource,
        others: RowSource,
        function: Callable[[Any, Any], Any],
        dtype: DTypeLike,
    ) -> None:
        super().__init__(rows.n_rows, None, dtype)
        self._rows, self._others, self._function = rows, others, function
        self._waits_for_data = rows._waits_for_data or others._waits_for_data

    @property
    def default_block_rows(self) -> int:
        """How many rows are 4 MiB together, of the source with wider ones."""
        return min(self._rows.default_block_rows, self._others.default_block_rows)

    def identity(self) -> dict[str, Any]:
        """Return the identities of both sources."""
        return {"kind": "pairs", "of": [self._rows.identity(), self._others.identity()]}

    def _read(self, block_rows: int) -> Iterator[Any]:
        both = zip_longest(self._rows._pieces(block_rows), self._others._pieces(block_rows))
        for piece, other in both:
            if piece is None or other is None or piece.shape[0] != other.shape[0]:
                raise ValueError("One of two sources has more rows than the other.")
            yield _Pair(piece, other)

    def _finish(self, piece: Any) -> Any:
        return self._function(self._rows._finish(piece.one), self._others._finish(piece.other))

    def _take(self, indices: NDArray[np.intp]) -> Any:
        return self._function(self._rows._take(indices), self._others._take(indices))


class _Pair(NamedTuple):
    one: Any
    other: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.one.shape[0],)


def _is_csr(found: Any) -> bool:
    return hasattr(found, "indptr")
