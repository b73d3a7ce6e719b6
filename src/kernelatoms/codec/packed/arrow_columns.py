"""Exact columns of a Parquet table as bytes, and which NaN of the matrix are missing values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from kernelatoms.codec.container.exact import arrange, rearrange
from kernelatoms.codec.container.packing import Cursor
from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.packed.arrow_messages import read_batch

Array = NDArray[Any]

_VALUES, _SOME_MISSING, _OTHER = 0, 1, 2
# NaN of a column in the matrix: all are numbers, all are missing values, or some.
_ALL_NAN, _ALL_NULL, _MIXED = 0, 1, 2


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
        found = _from_arrow_bytes(
            cursor.take(cursor.left), [types[i] for i in places], n_rows
        )  # fmt: skip
        for i, column in zip(places, found, strict=True):
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
    names = [str(i) for i in range(len(columns))]
    batch = pyarrow.RecordBatch.from_arrays(columns, names)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _from_arrow_bytes(data: bytes, types: Sequence[Any], n_rows: int) -> list[Any]:
    batch = read_batch(data, list(types))
    if batch.num_rows != n_rows:
        raise CodecError(f"columns should have {n_rows:,} rows, but have {batch.num_rows:,}.")
    return list(batch.columns)
