"""Rows of Python objects that can be iterated over again and again."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelatoms.engine import Array
from kernelatoms.rows.numbers import checksum, float_type_asked
from kernelatoms.rows.regroup import regroup
from kernelatoms.rows.source import RowSource

#: Rows that are put together before they are cut into blocks.
_CHUNK = 256


class IterableRows(RowSource):
    """Rows of an object whose ``__iter__`` starts again each time: a data set of Hugging Face, say.

    It yields rows (sequences of numbers), blocks (arrays of 2 dimensions) or dicts. A dict is one
    row where one of its values is a single number, or where it has one list only; otherwise it is a
    block of columns.

    Parameters
    ----------
    items : iterable
        What to iterate over.
    columns : sequence of str, optional
        The keys of dicts to read, in this order. By default all but ``label``.
    label : str or array-like, optional
        The key of labels, or the labels themselves.
    drop : sequence of str, optional
        Keys to leave out.
    dtype : dtype, optional
        float32 or float64; by default that of the first item.
    """

    def __init__(
        self,
        items: Iterable[Any],
        *,
        columns: Iterable[str] | None = None,
        label: Any = None,
        drop: Iterable[str] | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        iterator = iter(items)
        if iterator is items:
            raise TypeError(
                f"{type(items).__name__} gives its rows once, and learning reads them again and "
                "again. Give an object that starts again each time it is iterated over, or pass "
                "its blocks to partial_fit."
            )
        first = next(iterator, None)
        del iterator
        if first is None:
            raise ValueError(f"{type(items).__name__} yields no rows.")
        self._items = items
        self._label = label if isinstance(label, str) else None
        self._columns = _keys(first, columns, self._label, drop)
        self._n_columns: int | None = None
        block = self._block(first)
        self._n_columns = block.shape[1]
        super().__init__(
            None,
            block.shape[1],
            float_type_asked(dtype, block.dtype),
            self._columns if len(self._columns or ()) == block.shape[1] else None,
            None if self._label is not None else label,
        )

    def labels(self) -> NDArray[Any] | None:
        """Return the label of every row, or None; found by a pass when this is called."""
        if self._label is None:
            return super().labels()
        found = [np.atleast_1d(np.asarray(item[self._label])) for item in self._items]
        return np.concatenate(found) if found else np.empty(0)

    def identity(self) -> dict[str, Any]:
        """Return what it is called, and a checksum of its first rows."""
        first = next(self.blocks(64), np.empty((0, 0)))
        mark = getattr(self._items, "_fingerprint", None)  # data sets of Hugging Face have it
        return {
            "kind": "iterable",
            "type": type(self._items).__name__,
            "fingerprint": mark if isinstance(mark, str) else None,
            "columns": self._columns,
            "label": self._label,
            "n_features": self.n_features,
            "dtype": self.dtype.name,
            "first": checksum(first),
        }

    def _read(self, block_rows: int) -> Iterator[Any]:
        return regroup(self._chunks(), block_rows, lambda chunk, start, stop: chunk[start:stop])

    def _chunks(self) -> Iterator[Array]:
        """Yield blocks; single rows many together."""
        rows: list[Array] = []
        n_rows = 0
        for item in self._items:
            rows.append(self._block(item))
            n_rows += len(rows[-1])
            if n_rows >= _CHUNK:
                yield np.concatenate(rows)
                rows, n_rows = [], 0
        if rows:
            yield np.concatenate(rows)

    def _block(self, item: Any) -> Array:
        """Return the rows of an item, as a matrix."""
        if isinstance(item, Mapping) != (self._columns is not None):
            raise ValueError("All items must be dicts, or none of them.")
        # A copy: some data sets yield the same array again and again, with other numbers in it.
        block = np.array(item) if self._columns is None else self._of_dict(item)
        if block.dtype.kind not in "fiub" or block.ndim not in (1, 2):
            raise ValueError(
                "Items must be rows of numbers, blocks of 2 dimensions or dicts of them; got an "
                f"item of type {type(item).__name__}, {block.dtype}, shape {block.shape}."
            )
        block = block.reshape(1, -1) if block.ndim == 1 else block
        if self._n_columns not in (None, block.shape[1]):
            raise ValueError(
                f"All rows must have the same columns: the first has {self._n_columns:,}, another "
                f"has {block.shape[1]:,}."
            )
        return block

    def _of_dict(self, item: Mapping[str, Any]) -> Array:
        """Return the rows of a dict: numbers of one row, or columns of several."""
        names = self._columns or []
        for name in [*names, *([self._label] if self._label is not None else [])]:
            if name not in item:
                raise ValueError(f"An item has no {name!r}; it has: {', '.join(map(str, item))}.")
        values = [np.asarray(item[name]) for name in names]
        for name, value in zip(names, values, strict=True):
            if value.dtype.kind not in "fiub":
                raise ValueError(
                    f"{name!r} holds {value.dtype} and no numbers. Leave it out by "
                    f"drop=[{name!r}], or name what to read by columns=[...]."
                )
        single = self._label is not None and np.ndim(item[self._label]) == 0
        one_list = len(values) == 1 and values[0].ndim == 1 and self._label is None
        if single or one_list or any(value.ndim == 0 for value in values):
            return np.concatenate([value.reshape(-1) for value in values])
        if len({len(value) for value in values}) > 1:
            raise ValueError(f"The columns {', '.join(names)} of an item differ in length.")
        return np.concatenate([value.reshape(len(value), -1) for value in values], axis=1)

    def _finish(self, piece: Any) -> Any:
        return piece.joined(self.dtype)


def _keys(
    first: Any, columns: Iterable[str] | None, label: str | None, drop: Iterable[str] | None
) -> list[str] | None:
    """Return the keys of dicts to read; None where items are no dicts."""
    if isinstance(columns, str) or isinstance(drop, str):
        raise TypeError("columns and drop must be lists of names: columns=['a', 'b'].")
    if not isinstance(first, Mapping):
        if columns is not None or label is not None or drop is not None:
            raise ValueError("columns, label and drop name keys of dicts; the items are no dicts.")
        return None
    dropped = set(drop or ())
    asked = list(first) if columns is None else list(columns)
    names = [name for name in asked if name != label and name not in dropped]
    if not names or (columns is not None and label in asked):
        raise ValueError("columns must name one key or more, and not the label.")
    return names
