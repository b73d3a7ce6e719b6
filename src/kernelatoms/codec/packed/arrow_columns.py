"""Columns of a Parquet table: as bytes, missing values, rounding to their types, their sizes."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.packed.arrow_messages import read_batch
from kernelatoms.codec.packing import Cursor, arrange, rearrange
from kernelatoms.engine import Array

_VALUES, _SOME_MISSING, _OTHER = 0, 1, 2
# NaN of a column in the matrix: all are numbers, all are missing values, or some.
_ALL_NAN, _ALL_NULL, _MIXED = 0, 1, 2

# Bytes per value; a number if all values have the same size. Floats, which never overflow.
_Sizes = NDArray[np.float64] | float
# Bytes of an offset.
_OFFSET = 4.0
# Parquet's writer keeps dictionaries up to twice this size and writes out larger ones.
_SMALL_DICTIONARY = 1 << 19


def exact_columns(columns: Sequence[Any]) -> bytes:
    """Return columns as bytes: integers, dates and flags arranged, others in Arrow's format."""
    parts, others = [], []
    for column in columns:
        width = _width(column.type)
        if width is None:
            parts.append(bytes([_OTHER]))
            others.append(column)
            continue
        mask = _mask(column)
        values = arrange(_integers(column, width))
        if mask.any():
            parts += [bytes([_SOME_MISSING]), np.packbits(mask).tobytes(), values]
        else:
            parts += [bytes([_VALUES]), values]
    if others:
        parts.append(_arrow_bytes(others))
    return b"".join(parts)


def read_exact_columns(cursor: Cursor, types: Sequence[Any], n_rows: int) -> list[Any]:
    """Invert ``exact_columns``; ``CodecError`` if the bytes are not its result."""
    columns: list[Any] = []
    for kind in types:
        form = cursor.take(1)[0]
        width = _width(kind)
        if form == _OTHER or width is None or form > _SOME_MISSING:
            if form != _OTHER:
                raise CodecError(f"a column of type {kind} is stored in an unknown way.")
            columns.append(None)
            continue
        mask = None
        if form == _SOME_MISSING:
            bits = np.frombuffer(cursor.take(-(-n_rows // 8)), np.uint8)
            mask = np.unpackbits(bits, count=n_rows).astype(bool)
        values = rearrange(cursor.take(1 + n_rows * width.itemsize), width, n_rows)
        columns.append(_from_integers(values, mask, kind))
    places = [i for i, column in enumerate(columns) if column is None]
    if places:
        batch = read_batch(cursor.take(cursor.left), [types[i] for i in places])
        if batch.num_rows != n_rows:
            raise CodecError(f"columns should have {n_rows:,} rows, but have {batch.num_rows:,}.")
        for i, column in zip(places, batch.columns, strict=True):
            columns[i] = column
    cursor.end()
    return columns


def missing_marks(columns: Sequence[Any], matrix: Array) -> bytes:
    """Return as bytes which NaN of a matrix are missing values."""
    states, bits = [], []
    for i, column in enumerate(columns):
        holes = np.isnan(matrix[:, i])
        null = _mask(column)[holes]
        state = _ALL_NAN if not null.any() else _ALL_NULL if null.all() else _MIXED
        states.append(state)
        if state == _MIXED:
            bits.append(np.packbits(null).tobytes())
        elif not holes.any():
            states[-1] = -1  # any state
    known = {state for state in states if state >= 0}
    usual = min(known, default=_ALL_NAN)
    if known <= {usual} and usual != _MIXED:
        return bytes([usual])
    return bytes([_MIXED, *(max(state, 0) for state in states)]) + b"".join(bits)


def read_missing_marks(cursor: Cursor, matrix: Array) -> list[Array]:
    """Return the rows of each column that are missing; inverts ``missing_marks``."""
    usual = cursor.take(1)[0]
    n_columns = matrix.shape[1]
    states = cursor.take(n_columns) if usual == _MIXED else bytes([usual]) * n_columns
    masks = []
    for i, state in enumerate(states):
        mask = np.isnan(matrix[:, i])
        if state == _ALL_NAN:
            mask = np.zeros(len(matrix), bool)
        elif state == _MIXED:
            n_holes = int(mask.sum())
            bits = np.frombuffer(cursor.take(-(-n_holes // 8)), np.uint8)
            mask[mask] = np.unpackbits(bits, count=n_holes).astype(bool)
        elif state != _ALL_NULL:
            raise CodecError("missing values are stored in an unknown way.")
        masks.append(mask)
    return masks


def _width(kind: Any) -> np.dtype[Any] | None:
    """Return the integer type that holds values of a type; None if there is none."""
    types = pyarrow.types
    if types.is_boolean(kind):
        return np.dtype("u1")
    if types.is_integer(kind):
        return np.dtype(kind.to_pandas_dtype())
    if types.is_date32(kind) or types.is_time32(kind):
        return np.dtype("<i4")
    wide = (types.is_date64, types.is_time64, types.is_timestamp, types.is_duration)
    return np.dtype("<i8") if any(is_such(kind) for is_such in wide) else None


def _integers(column: Any, width: np.dtype[Any]) -> Array:
    arrow = pyarrow.from_numpy_dtype(width)
    if pyarrow.types.is_boolean(column.type):
        column = column.cast(arrow)
    values = column.view(arrow).fill_null(0)
    return np.asarray(values.to_numpy(zero_copy_only=False), width)


def _from_integers(values: Array, mask: Array | None, kind: Any) -> Any:
    if pyarrow.types.is_boolean(kind):
        return pyarrow.array(values.astype(bool), mask=mask)
    return pyarrow.array(values, mask=mask).view(kind)


def _mask(column: Any) -> Array:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)


def _arrow_bytes(columns: Sequence[Any]) -> bytes:
    batch = pyarrow.RecordBatch.from_arrays(columns, [str(i) for i in range(len(columns))])
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def least_width(kind: Any) -> int:
    """Return the fewest bytes of a value of a type."""
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return 1


def matrix_type(types: Sequence[Any]) -> str:
    """Return "f4" if that holds values of all types, else "f8"."""
    narrow = (pyarrow.float16(), pyarrow.float32())
    return "f4" if types and all(kind in narrow for kind in types) else "f8"


def finisher(types: Sequence[Any]) -> Any:
    """Return how decoded numbers are rounded to the types of their columns; None if not at all."""
    wide = pyarrow.float32() if matrix_type(types) == "f4" else pyarrow.float64()
    if all(kind == wide for kind in types):
        return None

    def rounded(decoded: Array) -> Iterable[tuple[Array, bytes]]:
        finished = decoded.copy()
        for i, kind in enumerate(types):
            held = ~np.isnan(decoded[:, i])
            finished[held, i] = to_type(decoded[held, i], kind)
        return [(finished, b"")]

    return rounded


def to_type(values: Array, kind: Any) -> Array:
    """Return numbers in the type of a column; missing integers are 0."""
    dtype = np.dtype(kind.to_pandas_dtype())
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    ends, high = np.iinfo(dtype), largest(kind)
    whole = np.rint(values.astype(np.float64))
    inside = np.nan_to_num(whole, nan=0.0, posinf=high, neginf=float(ends.min))
    return inside.clip(float(ends.min), high).astype(dtype)


def largest(kind: Any) -> float:
    """Return the largest float64 within an integer type, whose maximum may not be a float64."""
    end = np.iinfo(np.dtype(kind.to_pandas_dtype())).max
    high = np.float64(end)
    return float(high if int(high) <= end else np.nextafter(high, 0))


def column_size(column: Any) -> int:
    """Return the bytes of a column once it is written; ``CodecError`` if it cannot be.

    Values may share bytes (dictionaries, views, lists without values), but each of them is written.
    """
    sizes = _sizes(column)
    return int(min(float(np.sum(sizes)) if np.ndim(sizes) else sizes * len(column), 2.0**62))


def _sizes(array: Any) -> _Sizes:
    """Return the bytes of each value."""
    types, kind = pyarrow.types, array.type
    if isinstance(kind, pyarrow.BaseExtensionType):
        return _sizes(array.storage)
    if types.is_null(kind):
        return 1.0
    if types.is_string_view(kind) or types.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1], np.int32).reshape(-1, 4)
        return views[array.offset :][: len(array), 0].astype(np.float64) + _OFFSET
    if types.is_string(kind) or types.is_binary(kind):
        return _differences(array, np.int32) + _OFFSET
    if types.is_large_string(kind) or types.is_large_binary(kind):
        return _differences(array, np.int64) + _OFFSET
    if types.is_dictionary(kind):
        sizes = _sizes(array.dictionary)
        if not isinstance(sizes, np.ndarray):
            return sizes
        if sizes.sum() < _SMALL_DICTIONARY:
            return _OFFSET
        places = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return sizes[places.astype(np.int64)]
    if types.is_struct(kind):
        return _OFFSET + sum((_sizes(field) for field in array.flatten()), 0.0)
    if types.is_nested(kind):
        return _list_sizes(array)
    try:
        return max(kind.bit_width / 8, 1.0)
    except ValueError as error:
        raise CodecError(f"a column of type {kind} cannot be written.") from error


def _list_sizes(array: Any) -> _Sizes:
    types, kind = pyarrow.types, array.type
    if types.is_fixed_size_list(kind):
        sizes, width = _sizes(array.values), kind.list_size
        if not isinstance(sizes, np.ndarray):
            return _OFFSET + sizes * width
        first = array.offset * width
        rows = sizes[first : first + len(array) * width].reshape(len(array), width)
        return _OFFSET + rows.sum(axis=1)
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        starts = array.offsets.to_numpy().astype(np.int64)
        stops = starts + array.sizes.to_numpy().astype(np.int64)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        ends = array.offsets.to_numpy().astype(np.int64)
        starts, stops = ends[:-1], ends[1:]
    else:
        raise CodecError(f"a column of type {kind} cannot be written.")
    sizes = _sizes(array.values)
    if not isinstance(sizes, np.ndarray):
        return _OFFSET + sizes * (stops - starts)
    before = np.concatenate([[0.0], np.cumsum(sizes)])
    return _OFFSET + before[stops] - before[starts]


def _differences(array: Any, dtype: Any) -> NDArray[np.float64]:
    if not len(array):
        return np.empty(0)
    ends = np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array) + 1]
    return np.diff(ends).astype(np.float64)
