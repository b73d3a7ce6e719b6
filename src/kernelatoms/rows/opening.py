"""``open_rows``: a source of rows of whatever holds them."""

import glob
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from kernelatoms.engine import is_array
from kernelatoms.rows.arrays import ArrayRows, SparseRows
from kernelatoms.rows.iterables import IterableRows
from kernelatoms.rows.raw_files import RawFileRows, mapped_array, npy_array, tensor_array
from kernelatoms.rows.source import RowSource
from kernelatoms.rows.table_files import TABLE_FILES, TableInMemory
from kernelatoms.rows.tables import TableRows
from kernelatoms.rows.zarr_arrays import ZarrRows


def open_rows(
    rows: Any,
    *,
    label: str | ArrayLike | None = None,
    columns: Iterable[str] | None = None,
    drop: Iterable[str] | None = None,
    dtype: DTypeLike | None = None,
    tensor: str | None = None,
) -> RowSource:
    """Return a source of rows that need not fit in memory.

    Learners take a source where they take an array. They read it block by block, several times, and
    hold a few blocks at a time.

    Parameters
    ----------
    rows : str, path, list of them, array of shape (n_rows, n_features), data frame or iterable
        What holds the rows:

        - files by name, by a pattern such as ``"big/*.parquet"`` or as a list: ``.npy``,
          ``.parquet``, ``.arrow``, ``.feather``, ``.csv``, ``.tsv``, ``.safetensors``, a folder
          ``.zarr``. Files of a pattern are sorted by name, ``part-2`` before ``part-10``;
        - arrays, memory maps, sparse matrices, data frames, arrays of zarr;
        - Dask arrays and data frames, which are worked on where their chunks lie;
        - objects that can be iterated over again and again and yield rows, blocks or dicts, as data
          sets of Hugging Face do. A generator gives its rows once: pass its blocks to
          ``partial_fit``.
    label : str or array-like of shape (n_rows,), optional
        The column that holds the label of each row, or the labels themselves.
    columns : sequence of str, optional
        The columns of a table to read, in this order; all but ``label`` and ``drop`` by default. A
        column may hold lists of equal length.
    drop : sequence of str, optional
        Columns of a table to leave out.
    dtype : {"float32", "float64"}, optional
        The type of the rows. By default float32 where all numbers are float32 or float16, float64
        otherwise.
    tensor : str, optional
        The name of the tensor in ``.safetensors`` files.

    Returns
    -------
    RowSource
        Has ``shape``, ``dtype`` and ``feature_names``; iterating over it yields blocks. ``blocks``
        sets their size; ``take``, ``sample`` and ``labels`` read what they say; ``collect`` brings
        all rows into memory.

    Raises
    ------
    FileNotFoundError
        No file has the name or matches the pattern.
    ValueError
        Files differ in columns or types, a column holds no numbers, a file is damaged. Later: a
        file has changed since it was opened.
    TypeError
        A generator was given, or something that holds no rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from kernelatoms import open_rows
    >>> X = np.random.default_rng(0).standard_normal((1_000, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for i, part in enumerate(np.array_split(X, 2)):
    ...         np.save(Path(folder, f"part-{i}.npy"), part)
    ...     rows = open_rows(f"{folder}/*.npy")
    ...     rows.shape, [block.shape for block in rows.blocks(400)]
    ((1000, 3), [(400, 3), (400, 3), (200, 3)])
    """
    tables: dict[str, Any] = {"columns": columns, "drop": drop, "dtype": dtype}
    if isinstance(rows, str | os.PathLike) or _is_list_of_paths(rows):
        return _from_files(rows, label, tables, tensor)
    if tensor is not None:
        raise ValueError("tensor names a tensor in .safetensors files; these rows are in none.")
    if isinstance(rows, RowSource):
        if label is None and columns is None and drop is None and dtype is None:
            return rows
        raise ValueError("The rows are open already; give label, columns, drop or dtype once.")
    if is_dask(rows):
        from kernelatoms.rows.dask.source import DaskRows

        return DaskRows(rows, label, columns=columns, drop=drop, dtype=dtype)
    if hasattr(rows, "__arrow_c_stream__"):
        return TableRows([TableInMemory(rows)], label=label, **tables)
    if isinstance(rows, list | tuple) and not (rows and isinstance(rows[0], Mapping)):
        rows = np.asarray(rows)
    found = _from_arrays(rows, label, columns, drop, dtype)
    if found is not None:
        return found
    if not isinstance(rows, Iterable):
        raise TypeError(
            f"{type(rows).__name__} holds no rows: give files, an array, a data frame or an object "
            "that yields rows each time it is iterated over."
        )
    return IterableRows(rows, label=label, **tables)


def is_dask(rows: Any) -> bool:
    """Whether rows are a Dask array or data frame; Dask is not imported."""
    return hasattr(rows, "__dask_graph__") and type(rows).__module__.startswith("dask")


def _from_arrays(rows: Any, label: Any, columns: Any, drop: Any, dtype: Any) -> RowSource | None:
    """Return a source of an array of some kind; None where it is none."""
    from scipy import sparse

    is_zarr = type(rows).__module__.partition(".")[0] == "zarr"
    if not (is_array(rows) or sparse.issparse(rows) or is_zarr):
        return None
    _refuse_columns("an array", label, columns, drop)
    if is_zarr:
        return ZarrRows(rows, label, dtype=dtype)
    if sparse.issparse(rows):
        return SparseRows(rows, label, dtype=dtype)
    in_file = mapped_array(rows) if isinstance(rows, np.memmap) else None
    if in_file is not None:
        return RawFileRows([in_file], "mapped", label, dtype=dtype)
    return ArrayRows(rows, label, dtype=dtype)


def _from_files(rows: Any, label: Any, tables: dict[str, Any], tensor: str | None) -> RowSource:
    """Return a source of files, which are all of one kind."""
    paths = [path for name in ([rows] if _is_path(rows) else rows) for path in _paths(name)]
    kinds = {path.suffix.lower() for path in paths}
    if len(kinds) > 1:
        raise ValueError(f"All files must be of one kind, got {', '.join(sorted(kinds))}.")
    kind = kinds.pop()
    if tensor is not None and kind != ".safetensors":
        raise ValueError(f"tensor names a tensor in .safetensors files, got {paths[0]}.")
    if kind in TABLE_FILES:
        return TableRows([TABLE_FILES[kind](path) for path in paths], label=label, **tables)
    dtype = tables["dtype"]
    if kind not in (".npy", ".safetensors", ".zarr"):
        known = ", ".join([".npy", ".safetensors", ".zarr", *TABLE_FILES])
        raise ValueError(f"{paths[0]} cannot be read block by block; what can: {known}.")
    _refuse_columns(f"a {kind} file", label, tables["columns"], tables["drop"])
    if kind == ".zarr":
        if len(paths) > 1:
            raise ValueError(f"Only one zarr array can be opened at a time, got {len(paths)}.")
        return ZarrRows(paths[0], label, dtype=dtype)
    if kind == ".npy":
        return RawFileRows([npy_array(path) for path in paths], "npy", label, dtype=dtype)
    if tensor is None:
        raise ValueError(f"Say which tensor of {paths[0]} holds the rows: tensor='name'.")
    arrays = [tensor_array(path, tensor) for path in paths]
    return RawFileRows(arrays, "safetensors", label, dtype=dtype)


def _refuse_columns(what: str, label: Any, columns: Any, drop: Any) -> None:
    if isinstance(label, str) or columns is not None or drop is not None:
        raise ValueError(
            f"label, columns and drop name columns of tables; {what} has no names. The label of "
            "each row can be given as label=array."
        )


def _is_path(rows: Any) -> bool:
    return isinstance(rows, str | os.PathLike)


def _is_list_of_paths(rows: Any) -> bool:
    return isinstance(rows, list | tuple) and len(rows) > 0 and all(map(_is_path, rows))


def _paths(name: Any) -> list[Path]:
    """Return the files of a name or a pattern, in natural order."""
    path = Path(name).expanduser()
    if path.exists():
        if path.is_dir() and path.suffix.lower() != ".zarr":
            raise ValueError(f"{path} is a folder: give a pattern such as '{path}/*.parquet'.")
        return [path]
    if not glob.has_magic(str(path)):
        raise FileNotFoundError(f"There is no file {path}.")
    found = sorted(glob.glob(str(path), recursive=True), key=natural)
    if not found:
        raise FileNotFoundError(f"No file matches {path}.")
    return [Path(each) for each in found]


def natural(name: str) -> tuple[Any, ...]:
    """Return what sorts part-2 before part-10."""
    parts = re.split(r"(\d+)", name)
    return (*((part, 0) if i % 2 == 0 else ("", int(part)) for i, part in enumerate(parts)), name)
