"""The size of an Arrow column once it is written.

Values of a column may share bytes (dictionaries, views, lists without values), but each of them is
written.
"""

from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from kernelatoms.codec.limits import CodecError

#: Bytes per value; a number if all values have the same size. Floats, which never overflow.
Sizes = NDArray[np.float64] | float

# Bytes of an offset.
_OFFSET = 4.0
# Parquet's writer keeps dictionaries up to twice this size and writes out larger ones.
_SMALL_DICTIONARY = 1 << 19


def column_size(column: Any) -> int:
    """Return the bytes of a column; ``CodecError`` for types that cannot be written."""
    sizes = _sizes(column)
    return int(min(float(np.sum(sizes)) if np.ndim(sizes) else sizes * len(column), 2.0**62))


def _sizes(array: Any) -> Sizes:
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


def _list_sizes(array: Any) -> Sizes:
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
