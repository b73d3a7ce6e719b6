"""Rows of tables: which columns, that all files agree, and how batches become blocks."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelatoms.engine import Array
from kernelatoms.lazy import load_extra
from kernelatoms.rows.numbers import checksum, float_type_asked
from kernelatoms.rows.regroup import regroup
from kernelatoms.rows.source import RowSource
from kernelatoms.rows.table_files import TableFile, TableInMemory, as_array, first_value


class TableRows(RowSource):
    """Columns of numbers of one table, in one file or several.

    Parameters
    ----------
    files : sequence of TableFile
        The files, whose rows follow each other.
    columns : sequence of str, optional
        The columns to read, in this order. By default all but ``label`` and ``drop``.
    label : str or array-like, optional
        The column of labels, or the labels themselves.
    drop : sequence of str, optional
        Columns to leave out.
    dtype : dtype, optional
        float32 or float64; by default float32 where all columns are.
    """

    def __init__(
        self,
        files: Sequence[TableFile],
        *,
        columns: Iterable[str] | None = None,
        label: Any = None,
        drop: Iterable[str] | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self._files = list(files)
        self._label = label if isinstance(label, str) else None
        names = _chosen(self._files[0], columns, self._label, drop)
        if columns is None:
            _refuse_other_columns(self._files)
        kinds = []
        self._widths: dict[str, int | None] = {}
        wanted = names if self._label is None else [*names, self._label]
        for file in self._files[1:]:
            _refuse_other_types(self._files[0], file, wanted, dtype is not None)
        for name in names:
            self._widths[name], kind = _kind(self._files, name)
            kinds.append(kind)
        known = [file.n_rows for file in self._files]
        n_rows = None if None in known else sum(n or 0 for n in known)
        stored = np.result_type(*kinds)
        super().__init__(
            n_rows,
            sum(width or 1 for width in self._widths.values()),
            float_type_asked(dtype, stored),
            [part for name, width in self._widths.items() for part in _part_names(name, width)],
            None if isinstance(label, str) else label,
        )

    def labels(self) -> NDArray[Any] | None:
        """Return the label of every row, or None; a column is read when this is called."""
        if self._label is None:
            return super().labels()
        found = [
            as_array(batch.column(0))
            for file in self._files
            for batch in file.batches([self._label], 1 << 16)
        ]
        return np.concatenate(found) if found else np.empty(0)

    def identity(self) -> dict[str, Any]:
        """Return names, sizes and times of the files, and the columns."""
        known = {
            "kind": "table",
            "files": [file.identity() for file in self._files],
            "columns": list(self._widths),
            "label": self._label,
            "n_features": self.n_features,
            "dtype": self.dtype.name,
        }
        if isinstance(self._files[0], TableInMemory):
            crc = 0
            for block in self:
                crc = checksum(block, crc)
            known["crc32"] = crc
        return known

    def _read(self, block_rows: int) -> Iterator[Any]:
        for file in self._files:
            if not isinstance(file, TableInMemory):
                file.stamp.check()
        names = list(self._widths)
        batches = (batch for file in self._files for batch in file.batches(names, block_rows))
        try:
            yield from regroup(
                batches, block_rows, lambda b, start, stop: b.slice(start, stop - start)
            )
        finally:
            batches.close()

    def _finish(self, piece: Any) -> Any:
        found = np.empty((piece.shape[0], self.n_features or 0), self.dtype)
        start = 0
        for batch in piece.parts:
            stop = start + batch.num_rows
            self._fill(batch, found[start:stop])
            start = stop
        return found

    def _fill(self, batch: Any, out: Array) -> None:
        """Write the columns of a batch side by side."""
        kinds = set(batch.schema.types)
        if len(kinds) == 1 and str(next(iter(kinds))) in ("float", "double"):
            out[:] = batch.to_tensor(null_to_nan=True).to_numpy()
            return
        first = 0
        for name, width in self._widths.items():
            column = batch.column(batch.schema.get_field_index(name))
            if width is None:
                out[:, first] = as_array(column)
            else:
                out[:, first : first + width] = _vectors(name, column, width)
            first += width or 1


def _chosen(
    file: TableFile, columns: Iterable[str] | None, label: str | None, drop: Iterable[str] | None
) -> list[str]:
    """Return the columns to read."""
    # An index that pandas wrote is no column.
    index = (file.schema.pandas_metadata or {}).get("index_columns", [])
    there = [name for name in file.schema.names if name not in index]
    if twins := sorted({name for name in there if there.count(name) > 1}):
        raise ValueError(f"{file.name} has more than one column called {twins[0]!r}; rename them.")
    if isinstance(columns, str) or isinstance(drop, str):
        raise TypeError("columns and drop must be lists of names: columns=['a', 'b'].")
    if columns is not None and drop is not None:
        raise ValueError("Give columns or drop, not both.")
    dropped = list(drop or ())
    names = list(columns) if columns is not None else there
    for argument, asked in (
        ("label", [] if label is None else [label]), ("columns", names), ("drop", dropped),
    ):  # fmt: skip
        for name in asked:
            if name not in there:
                raise ValueError(
                    f"{argument} names the column {name!r}, which {file.name} does not have; it "
                    f"has: {_listed(there)}."
                )
    if columns is not None and label in names:
        raise ValueError(f"The column {label!r} is the label; it cannot be one of columns, too.")
    names = [name for name in names if name != label and name not in dropped]
    if "" in names and columns is None:
        raise ValueError(
            f"{file.name} has a column without a name, which may number the rows: leave it out by "
            "drop=[''], or name those to read by columns=[...]."
        )
    if not names or len(set(names)) < len(names):
        raise ValueError("columns must name one column or more, each once.")
    return names


def _kind(files: Sequence[TableFile], name: str) -> tuple[int | None, np.dtype[Any]]:
    """Return how many numbers a value of a column is (None: it is a number), and their type."""
    file = files[0]
    pyarrow = load_extra("pyarrow", "Reading tables")
    kinds, kind = pyarrow.types, file.schema.field(name).type
    width = None
    if kinds.is_fixed_size_list(kind):
        width, kind = kind.list_size, kind.value_type
    elif kinds.is_list(kind) or kinds.is_large_list(kind):
        # Files may be empty.
        values = (first_value(one, name) for one in files)
        value = next((found for found in values if found is not None), None)
        width, kind = 0 if value is None else len(value), kind.value_type
    elif kinds.is_dictionary(kind):
        kind = kind.value_type
    if width == 0:
        raise ValueError(f"{file.name}: the lists of column {name!r} are empty.")
    if kinds.is_null(kind) or kinds.is_decimal(kind):
        return width, np.dtype(np.float64)
    if not _is_number(kind):
        raise ValueError(
            f"{file.name}: the column {name!r} holds {kind} and no numbers. Leave it out by "
            f"drop=[{name!r}], name those to read by columns=[...], or, if it holds the classes, "
            f"say label={name!r}."
        )
    return width, np.dtype(bool if kinds.is_boolean(kind) else kind.to_pandas_dtype())


def _refuse_other_columns(files: Sequence[TableFile]) -> None:
    """Refuse files whose columns are not those of the first."""
    first = files[0]
    for file in files[1:]:
        for a, b in ((first, file), (file, first)):
            if missing := [name for name in a.schema.names if name not in b.schema.names]:
                raise ValueError(
                    f"All files must have the same columns: {a.name} has {_listed(missing)}, and "
                    f"{b.name} has not. Name those to read by columns=[...]."
                )


def _refuse_other_types(first: TableFile, file: TableFile, names: list[str], cast: bool) -> None:
    """Refuse a file that lacks a column or has it with another type."""
    for name in names:
        if file.schema.names.count(name) != 1:
            raise ValueError(
                f"{file.name} must have one column {name!r}, as {first.name} has; it has "
                f"{file.schema.names.count(name)}."
            )
        known, kind = first.schema.field(name).type, file.schema.field(name).type
        same = known == kind or ((cast or file.is_text) and _is_number(known) and _is_number(kind))
        if not same:
            raise ValueError(
                f"The column {name!r} is {known} in {first.name} and {kind} in {file.name}; all "
                "files must have the same types. With dtype='float32' or 'float64' numbers become "
                "that."
            )


def _is_number(kind: Any) -> bool:
    kinds = load_extra("pyarrow", "Reading tables").types
    tests = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_null)
    return any(is_kind(kind) for is_kind in tests)


def _vectors(name: str, column: Any, width: int) -> Array:
    """Return a column of lists as a matrix."""
    values = as_array(column.flatten())
    if (
        column.null_count
        or len(values) != width * len(column)
        or (hasattr(column, "offsets") and (np.diff(column.offsets.to_numpy()) != width).any())
    ):
        raise ValueError(f"The lists of column {name!r} must all have {width} numbers.")
    return values.reshape(len(column), width)


def _part_names(name: str, width: int | None) -> list[str]:
    return [name] if width is None else [f"{name}[{i}]" for i in range(width)]


def _listed(names: Sequence[str], most: int = 10) -> str:
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
