"""Dask arrays and data frames as one array whose chunks are rows, and labels beside them."""

from collections.abc import Iterable
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import NDArray

from kernelatoms.rows.dask.cluster import errors_in_words, futures_behind
from kernelatoms.rows.dask.tasks import frame_to_array


def is_frame(collection: Any) -> bool:
    """Whether a collection is a data frame."""
    return hasattr(collection, "columns") and hasattr(collection, "partitions")


def rows_of_array(array: Any, what: str) -> Any:
    """Return a Dask array of 2 dimensions with one chunk per some rows; columns are merged."""
    if array.ndim != 2:
        raise ValueError(
            f"{what} must have 2 dimensions, rows and columns, got shape {array.shape}; "
            "X.reshape(-1, 1) makes rows of single numbers."
        )
    if any(np.isnan(width) for width in array.chunks[1]):
        raise ValueError(
            f"{what} has an unknown number of columns, {array.shape}: call "
            f"{what}.compute_chunk_sizes() first."
        )
    if array.shape[1] == 0:
        raise ValueError(f"{what} has no columns: shape {array.shape}.")
    if len(array.chunks[1]) > 1:
        if any(np.isnan(height) for height in array.chunks[0]):
            array = with_known_rows(array)
        array = array.rechunk({1: -1})
    return _optimized(array, array)


def rows_of_frame(
    frame: Any, columns: Iterable[str] | None, drop: Iterable[str] | None, label: str | None
) -> tuple[Any, list[str]]:
    """Return columns of numbers of a data frame as a Dask array, and their names."""
    if frame.ndim != 2:
        raise ValueError("X must be a data frame or an array of 2 dimensions, got a series.")
    there = [str(name) for name in frame.columns]
    if isinstance(columns, str) or isinstance(drop, str):
        raise TypeError("columns and drop must be lists of names: columns=['a', 'b'].")
    if columns is not None and drop is not None:
        raise ValueError("Give columns or drop, not both.")
    asked = [] if label is None else [label]
    for name in [*asked, *(columns or ()), *(drop or ())]:
        if name not in there:
            raise ValueError(f"The data frame has no column {name!r}; it has: {', '.join(there)}.")
    left_out = {*asked, *(drop or ())}
    names = [name for name in (there if columns is None else columns) if name not in left_out]
    if not names:
        raise ValueError("The data frame has no columns to learn from.")
    part = frame[[frame.columns[there.index(name)] for name in names]]
    kinds = [_number_type(name, kind) for name, kind in zip(names, part.dtypes, strict=True)]
    dtype = np.result_type(*kinds)
    dtype = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)
    arrays = [
        da.from_delayed(
            delayed(frame_to_array)(one, dtype), (np.nan, len(names)), meta=np.empty((0, 0), dtype)
        )
        for one in part.to_delayed()
    ]
    array = da.concatenate(arrays, allow_unknown_chunksizes=True)
    return _optimized(array, frame), names


def _optimized(array: Any, collection: Any) -> Any:
    """Return an array with a simpler graph, which holds what a cluster keeps of the collection.

    A graph that is made simpler forgets chunks that exist already: where nobody else remembers
    them, the cluster gives up their memory.
    """
    simpler = dask.optimize(array)[0]
    kept = {future.key: future for future in futures_behind(collection)}
    if not kept:
        return simpler
    name = simpler.name
    graph = HighLevelGraph({name: {**kept, **simpler.dask}}, {name: set()})
    return da.Array(graph, name, simpler.chunks, dtype=simpler.dtype, meta=simpler._meta)


def _number_type(name: str, kind: Any) -> np.dtype[Any]:
    """Return the type of a column's numbers; float64 where some may be missing."""
    stored = getattr(kind, "numpy_dtype", kind)
    if not isinstance(stored, np.dtype) or stored.kind not in "fiub":
        raise ValueError(
            f"X: the column {name!r} holds {kind} and no numbers. Leave it out "
            f"(X.drop(columns=[{name!r}])), or encode it as numbers."
        )
    small = stored.kind == "f" and stored.itemsize <= 4
    return np.dtype(np.float32 if small else np.float64)


def with_known_rows(array: Any) -> Any:
    """Return an array whose chunks have known numbers of rows: unknown ones are counted."""
    if not any(np.isnan(n_rows) for n_rows in array.chunks[0]):
        return array
    known = array.copy()
    # As it is: another simplification would give other tasks the same names.
    chunks = array.to_delayed(optimize_graph=False).reshape(len(array.chunks[0]), -1)
    counts = [delayed(_n_rows)(chunk) for chunk in chunks[:, 0]]
    with errors_in_words("counting rows"):
        sizes = dask.compute(*counts)
    known._chunks = (tuple(int(size) for size in sizes), *array.chunks[1:])
    return known


def _n_rows(rows: Any) -> int:
    return int(rows.shape[0])


def values_beside(
    values: Any, what: str, row_chunks: tuple[int, ...], rows_are: str, n_partitions: int | None
) -> NDArray[Any]:
    """Return one value per row, labels or weights, of a Dask collection beside the rows.

    Arrays must have the chunks of the rows. Columns of data frames need not: Dask reads some files
    together, depending on how wide the columns are, and what was a data frame may be an array by
    now. Beside a data frame they must have its number of partitions (``n_partitions``).
    """
    if is_frame(values) and n_partitions not in (None, values.npartitions):
        raise ValueError(
            f"{rows_are} and {what} are chunked differently: {rows_are} has {n_partitions:,} "
            f"partitions, {what} has {values.npartitions:,}. Take columns of one data frame."
        )
    of_frame = is_frame(values)
    chunks = getattr(values, "chunks", None)
    if is_frame(values) and values.ndim == 2:
        if len(values.columns) != 1:
            raise ValueError(f"{what} must be one column, got {len(values.columns)}.")
        values = values[values.columns[0]]
    elif chunks is not None and len(chunks) == 2 and values.shape[1] == 1:
        values = values[:, 0]
    parts: list[Delayed] = np.ravel(values.to_delayed()).tolist()
    with errors_in_words(f"reading {what}"):
        found = dask.compute(*[delayed(np.asarray)(part) for part in parts])
    sizes = tuple(len(part) for part in found)
    if sum(sizes) != sum(row_chunks) or (sizes != row_chunks and not of_frame):
        raise ValueError(
            f"{rows_are} and {what} are chunked differently: {rows_are} has chunks of "
            f"{_listed(row_chunks)} rows, {what} of {_listed(sizes)}. Chunk them alike: "
            f"{what}.rechunk({rows_are}.chunks[0]), or columns of one data frame."
        )
    for number, part in enumerate(found):
        if n_missing := _n_missing(part):
            raise ValueError(
                f"{what} is missing (None or NaN) in {n_missing:,} rows of chunk {number}: every "
                "row needs a value. Leave such rows out."
            )
    kinds = {part.dtype.kind for part in found if len(part)}
    if len(kinds) > 1 and not kinds <= set("biuf"):
        raise ValueError(
            f"{what} holds values of different types in different chunks "
            f"({', '.join(sorted(str(part.dtype) for part in found))}): make them alike, "
            f"{what}.astype(str), say."
        )
    full = [part for part in found if len(part)]
    return np.concatenate(full) if full else np.empty(0)


def _n_missing(values: NDArray[Any]) -> int:
    if values.dtype.kind == "f":
        return int(np.isnan(values).sum())
    if values.dtype.kind != "O":
        return 0
    return sum(map(_is_missing, values.tolist()))


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is neither equal to itself nor unequal
        return True


def _listed(sizes: tuple[int, ...], most: int = 6) -> str:
    shown = ", ".join(f"{size:,}" for size in sizes[:most])
    return shown if len(sizes) <= most else f"{shown}, ... ({len(sizes):,} chunks)"
