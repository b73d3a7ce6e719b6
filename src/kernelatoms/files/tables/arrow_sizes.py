"""The memory that Arrow's files need, from their headers, before anything is unpacked.

An Arrow file (Feather 2, or a stream) is a sequence of messages. The flatbuffers header of a
message says where the buffers of its columns are, and a compressed buffer begins with its unpacked
size. A file, unlike a stream, ends with a list of its messages, which may name one of them often.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: ``read(offset, n_bytes)`` returns bytes of a file, fewer at its end.
Read = Callable[[int, int], bytes]

_MARK, _CONTINUED = b"ARROW1", b"\xff\xff\xff\xff"
_DICTIONARY, _BATCH = 2, 3
# An object of Python's, and the place that refers to it.
_OBJECT = 64


def unpacked_size(read: Read, size: int) -> int:
    """Return the bytes of all buffers of an Arrow file or stream; ValueError if it is none."""
    try:
        blocks = _listed(read, size) if read(0, 6) == _MARK else _in_a_row(read, size)
        return sum(_body_size(read, *block) for block in blocks)
    except (struct.error, IndexError) as error:
        raise ValueError("its headers are damaged") from error


def column_cost(array: Any) -> int:
    """Return the least memory of a column as numbers or Python objects, in bytes.

    Arrow can say in a few bytes that a value is repeated a million times.
    """
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

    return any(
        getattr(types, f"is_{name}")(kind)
        for name in ("string", "large_string", "binary", "large_binary", "fixed_size_binary")
    )


def _repeated_cost(array: Any) -> int:
    """Return the memory of dictionary-encoded values, one value per index."""
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
        places = self.place - _int32(self.data, self.place)
        (length,) = struct.unpack_from("<H", self.data, max(places, 0))
        if 4 + 2 * field >= length:
            return 0
        (offset,) = struct.unpack_from("<H", self.data, places + 4 + 2 * field)
        return self.place + offset if offset else 0

    def table(self, field: int) -> "_Table | None":
        """Return the table that a field refers to."""
        place = self.at(field)
        return _Table(self.data, place + _uint32(self.data, place)) if place else None

    def rows(self, field: int, width: int) -> NDArray[np.int64]:
        """Return a vector of structures of ``width`` 64-bit numbers."""
        place = self.at(field)
        if not place:
            return np.empty((0, width), np.int64)
        place += _uint32(self.data, place)
        n = _uint32(self.data, place)
        if place + 4 + 8 * width * n > len(self.data):
            raise IndexError("a vector ends behind its table")
        return np.frombuffer(self.data, "<i8", width * n, place + 4).reshape(n, width)


def _uint32(data: bytes, place: int) -> int:
    return int(struct.unpack_from("<I", data, place)[0])


def _int32(data: bytes, place: int) -> int:
    return int(struct.unpack_from("<i", data, place)[0])


def _listed(read: Read, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the messages that the end of a file lists: offset of the body, and header."""
    (length,) = struct.unpack("<i", read(size - 10, 4))
    if not 0 < length <= size - 10:
        raise IndexError("the list of messages is larger than the file")
    footer = read(size - 10 - length, length)
    root = _Table(footer, _uint32(footer, 0))
    for field in (2, 3):
        for offset, header, _ in root.rows(field, 3).tolist():
            header &= 0xFFFFFFFF  # 32 bits, and as many that are not used
            if not 8 <= header <= size or offset < 0:
                raise IndexError("a message is not in the file")
            yield offset + header, _header(read(offset, header))


def _in_a_row(read: Read, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the messages of a stream."""
    place = 0
    while len(start := read(place, 8)) == 8 or len(start) >= 4:
        long = start[:4] == _CONTINUED
        length = _int32(start, 4 if long else 0)
        place += 8 if long else 4
        if length == 0:
            return
        if not 0 < length <= size:
            raise IndexError("a header is larger than the file")
        header = read(place, length)
        place += length
        yield place, header
        body = _Table(header, _uint32(header, 0)).at(3)
        n_bytes = struct.unpack_from("<q", header, body)[0] if body else 0
        if n_bytes < 0:
            raise IndexError("a body of negative size")
        place += n_bytes


def _header(message: bytes) -> bytes:
    return message[8:] if message[:4] == _CONTINUED else message[4:]


def _body_size(read: Read, start: int, header: bytes) -> int:
    """Return the unpacked size of the buffers of a message."""
    message = _Table(header, _uint32(header, 0))
    kind = message.at(1)
    batch = message.table(2)
    if batch is not None and kind and header[kind] == _DICTIONARY:
        batch = batch.table(1)
    elif not kind or header[kind] != _BATCH:
        return 0
    if batch is None:
        return 0
    buffers = batch.rows(2, 2)
    total = 0
    for offset, length in buffers.tolist():
        size = length
        if length >= 8 and batch.at(3):
            (size,) = struct.unpack("<q", read(start + offset, 8))
            size = length - 8 if size == -1 else size
        if size < 0 or length < 0:
            raise IndexError("a buffer of negative size")
        total += size
    return total
