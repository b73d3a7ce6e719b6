"""The memory that Arrow and Parquet files need, by their headers, before anything is unpacked.

An Arrow file (Feather 2, or a stream) is a sequence of messages. The flatbuffers header of a
message says where the buffers of its columns are, and a compressed buffer begins with its unpacked
size. A file, unlike a stream, ends with a list of its messages, which may name one of them often.

The sizes at the end of a Parquet file are not checked by any reader. The header of a page, in
Thrift's compact protocol, says its unpacked size and its number of values, and readers keep to
that. Values may still repeat a long text: the page then bounds the length of each.
"""

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: ``read(offset, n_bytes)`` returns bytes of a file, fewer at its end.
Read = Callable[[int, int], bytes]

_MARK, _CONTINUED = b"ARROW1", b"\xff\xff\xff\xff"
_DICTIONARY, _BATCH = 2, 3
# An object of Python's, and the place that refers to it.
_OBJECT = 64
_TEXTS = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_BY_DICTIONARY, _BY_PREFIX = (2, 8), (7,)
_DICTIONARY_PAGE = 2
_WINDOW, _MOST_HEADER, _DEEPEST = 1 << 12, 1 << 26, 8


def unpacked_size(read: Read, size: int) -> int:
    """Return the bytes of all buffers of an Arrow file or stream; ValueError if it is none."""
    try:
        blocks = _listed(read, size) if read(0, 6) == _MARK else _in_a_row(read, size)
        return sum(_body_size(read, *block) for block in blocks)
    except (struct.error, IndexError) as error:
        raise ValueError("its headers are damaged") from error


def column_cost(array: Any) -> int:
    """Return the least memory of a column, in bytes; Arrow may store repeated values in a few."""
    import pyarrow
    from pyarrow import compute

    if isinstance(array, pyarrow.ChunkedArray):
        return sum(map(column_cost, array.chunks))
    kind, types, n = array.type, pyarrow.types, len(array)
    if types.is_dictionary(kind):
        return _repeated_cost(array)
    if types.is_null(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return _OBJECT * n
    if types.is_primitive(kind):
        return (_OBJECT if types.is_temporal(kind) else 8) * n
    if _has_lengths(kind):
        return _OBJECT * n + int(compute.sum(compute.binary_length(array)).as_py() or 0)
    if types.is_struct(kind):
        return _OBJECT * n + sum(map(column_cost, array.flatten()))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _OBJECT * n + column_cost(array.flatten())
    if types.is_map(kind):
        return _OBJECT * n + column_cost(array.keys) + column_cost(array.items)
    if isinstance(array, pyarrow.ExtensionArray):
        return column_cost(array.storage)
    # Views, runs, unions: a row is at most everything that there is.
    return n * max(_OBJECT, array.nbytes)


def _has_lengths(kind: Any) -> bool:
    """Return whether Arrow knows the length of each value."""
    from pyarrow import types

    names = ("string", "large_string", "binary", "large_binary", "fixed_size_binary")
    return any(getattr(types, f"is_{name}")(kind) for name in names)


def _repeated_cost(array: Any) -> int:
    """Return the memory of dictionary-encoded values."""
    from pyarrow import compute

    values, n = array.dictionary, len(array)
    if not _has_lengths(values.type):
        return n * max(_OBJECT, column_cost(values))
    lengths = compute.fill_null(compute.binary_length(values), 0).to_numpy(zero_copy_only=False)
    places = array.indices.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
    return _OBJECT * n + int(lengths.astype(np.int64)[places].sum())


@dataclass(frozen=True)
class _Table:
    """A flatbuffers table: fields by number, at offsets from a table of offsets."""

    data: bytes
    place: int

    def at(self, field: int) -> int:
        """Return the offset of a field, or 0 if it is absent."""
        places = self.place - _number_at("<i", self.data, self.place)
        if 4 + 2 * field >= _number_at("<H", self.data, max(places, 0)):
            return 0
        offset = _number_at("<H", self.data, places + 4 + 2 * field)
        return self.place + offset if offset else 0

    def table(self, field: int) -> "_Table | None":
        """Return the table that a field refers to."""
        place = self.at(field)
        return _Table(self.data, place + _number_at("<I", self.data, place)) if place else None

    def rows(self, field: int, width: int) -> NDArray[np.int64]:
        """Return a vector of structures of ``width`` 64-bit numbers."""
        place = self.at(field)
        if not place:
            return np.empty((0, width), np.int64)
        place += _number_at("<I", self.data, place)
        n = _number_at("<I", self.data, place)
        if place + 4 + 8 * width * n > len(self.data):
            raise IndexError("a vector ends behind its table")
        return np.frombuffer(self.data, "<i8", width * n, place + 4).reshape(n, width)


def _number_at(form: str, data: bytes, place: int) -> int:
    return int(struct.unpack_from(form, data, place)[0])


def _listed(read: Read, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the messages that the end of a file lists: offset of the body, and header."""
    length = _number_at("<i", read(size - 10, 4), 0)
    if not 0 < length <= size - 10:
        raise IndexError("the list of messages is larger than the file")
    footer = read(size - 10 - length, length)
    root = _Table(footer, _number_at("<I", footer, 0))
    for offset, header, _ in [*root.rows(2, 3).tolist(), *root.rows(3, 3).tolist()]:
        header &= 0xFFFFFFFF  # 32 bits, and as many that are not used
        if not 8 <= header <= size or offset < 0:
            raise IndexError("a message is not in the file")
        message = read(offset, header)
        yield offset + header, message[8:] if message[:4] == _CONTINUED else message[4:]


def _in_a_row(read: Read, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the messages of a stream."""
    place = 0
    while len(start := read(place, 8)) == 8 or len(start) >= 4:
        long = start[:4] == _CONTINUED
        length = _number_at("<i", start, 4 if long else 0)
        place += 8 if long else 4
        if length == 0:
            return
        if not 0 < length <= size:
            raise IndexError("a header is larger than the file")
        header = read(place, length)
        place += length
        yield place, header
        body = _Table(header, _number_at("<I", header, 0)).at(3)
        n_bytes = _number_at("<q", header, body) if body else 0
        if n_bytes < 0:
            raise IndexError("a body of negative size")
        place += n_bytes


def _body_size(read: Read, start: int, header: bytes) -> int:
    """Return the unpacked size of the buffers of a message."""
    message = _Table(header, _number_at("<I", header, 0))
    place, batch = message.at(1), message.table(2)
    kind = header[place] if place else 0
    if batch is not None and kind == _DICTIONARY:
        batch = batch.table(1)
    if batch is None or kind not in (_DICTIONARY, _BATCH):
        return 0
    total = 0
    for offset, length in batch.rows(2, 2).tolist():
        size = length
        if length >= 8 and batch.at(3):
            size = _number_at("<q", read(start + offset, 8), 0)
            size = length - 8 if size == -1 else size
        if size < 0 or length < 0:
            raise IndexError("a buffer of negative size")
        total += size
    return total


@dataclass
class ParquetSizes:
    """What is known before a file is read."""

    n_bytes: int = 0  # unpacked pages and fixed-size values, all columns
    # Bounds by column: values that index a dictionary of texts, or share a prefix with the last.
    by_number: Counter[str] = field(default_factory=Counter)
    by_prefix: Counter[str] = field(default_factory=Counter)
    longest: int = 0  # bound of the prefix-coded values of one row, all columns


def parquet_sizes(file: Any, read: Read, size: int) -> ParquetSizes:
    """Return the sizes of a ``ParquetFile``; ValueError if its columns overlap."""
    metadata, found, seen = file.metadata, ParquetSizes(), 0
    schema = [metadata.schema.column(j) for j in range(metadata.num_columns)]
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for j, column in enumerate(schema):
            chunk = group.column(j)
            # Offset 0, where the magic bytes are, means no page: a group without rows.
            dictionary = chunk.dictionary_page_offset if chunk.has_dictionary_page else 0
            start = min(filter(None, (chunk.data_page_offset, dictionary)), default=0)
            seen += chunk.total_compressed_size
            if start < 0 or chunk.total_compressed_size < 0 or seen > size:
                raise ValueError("its columns overlap")
            end = start + chunk.total_compressed_size
            width = max(8, column.length if chunk.physical_type == _TEXTS[1] else 0)
            _look_at(_pages(read, start, end), column, chunk.physical_type, found)
            found.n_bytes += width * group.num_rows
    return found


def _look_at(pages: Iterator[dict[int, Any]], column: Any, kind: str, found: ParquetSizes) -> None:
    """Add the pages of one column of one row group."""
    dictionary = 0
    for page in pages:
        n_bytes = _number(page, 2)
        found.n_bytes += n_bytes
        if page.get(1) == _DICTIONARY_PAGE:
            dictionary = max(dictionary, n_bytes)
            continue
        inside = page.get(5 if 5 in page else 8)
        if not isinstance(inside, dict):
            continue  # an index
        n_values, encoding = _number(inside, 1), _number(inside, 2 if 5 in page else 4)
        if column.max_repetition_level:
            found.n_bytes += 8 * n_values
        if kind not in _TEXTS or encoding not in (*_BY_DICTIONARY, *_BY_PREFIX):
            continue
        if encoding in _BY_PREFIX:
            found.by_prefix[column.path] += n_bytes * n_values
            found.longest += n_bytes
        else:
            found.by_number[column.path] += dictionary * n_values


def _pages(read: Read, start: int, end: int) -> Iterator[dict[int, Any]]:
    """Yield the headers of pages, as fields by number."""
    while start < end:
        window = _WINDOW
        while True:
            data = read(start, min(window, end - start))
            try:
                header, length = _structure(data, 0)
                break
            except IndexError:
                if window >= min(end - start, _MOST_HEADER):
                    raise ValueError("the header of a page is damaged") from None
                window *= 16
        yield header
        start += length + _number(header, 3)


def _number(fields: dict[int, Any], number: int) -> int:
    """Return a non-negative integer of a page header."""
    value = fields.get(number)
    if type(value) is not int or value < 0:
        raise ValueError("the header of a page is damaged")
    return value


def _structure(data: bytes, place: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Read a structure in Thrift's compact protocol; keep integers and structures."""
    if depth > _DEEPEST:
        raise ValueError("the header of a page is nested too deeply")
    found: dict[int, Any] = {}
    number = 0
    while kind := data[place]:
        place += 1
        if kind >> 4:
            number += kind >> 4
        else:
            number, place = _whole(data, place)
        value, place = _value(data, place, kind & 15, depth)
        found[number] = value
    return found, place + 1


def _value(data: bytes, place: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):  # true, false
        return kind == 1, place
    if kind == 3:
        return data[place], place + 1
    if kind in (4, 5, 6):
        return _whole(data, place)
    if kind in (7, 8):  # a number of eight bytes, or bytes
        length, place = (8, place) if kind == 7 else _plain(data, place)
        if place + length > len(data):
            raise IndexError("it ends too early")
        return None, place + length
    if kind == 12:
        return _structure(data, place, depth + 1)
    raise ValueError("the header of a page holds what no page has")


def _plain(data: bytes, place: int) -> tuple[int, int]:
    """Read an integer of seven bits per byte."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[place + shift // 7]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place + shift // 7 + 1
    raise ValueError("the header of a page holds a number too long")


def _whole(data: bytes, place: int) -> tuple[int, int]:
    value, place = _plain(data, place)
    return (value >> 1) ^ -(value & 1), place
