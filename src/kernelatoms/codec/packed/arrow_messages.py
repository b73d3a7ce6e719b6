"""Checks of Arrow messages of unknown origin, before Arrow reads them.

Arrow trusts a message: it copies a name for each of the fields that share it, and expands a
compressed buffer to the size that it declares. The codec writes neither.
"""

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow

from kernelatoms.codec.limits import MOST_COLUMNS, CodecError

# Field numbers in Arrow's tables (Message.fbs, Schema.fbs): of a message, a schema, a field, a pair
# of metadata, a batch, a dictionary, a timestamp type.
_HEADER = 2
_FIELDS, _SCHEMA_PAIRS = 1, 2
_NAME, _KIND, _TYPE, _CHILDREN, _FIELD_PAIRS = 0, 2, 3, 5, 6
_KEY, _VALUE = 0, 1
_COMPRESSION, _DICTIONARY_BATCH = 3, 1
_ZONE, _TIMESTAMP = 1, 10
# Bytes before a message (mark and size), and the fewest bytes of a table.
_BEFORE, _TABLE = 8, 8


def read_schema(data: bytes) -> Any:
    """Return the schema of a table; ``CodecError`` if the bytes are not one."""
    try:
        _refuse_copies(data[_BEFORE:])
        schema = pyarrow.ipc.read_schema(pyarrow.py_buffer(data))
    except (pyarrow.ArrowException, OSError, ValueError, struct.error) as error:
        if isinstance(error, CodecError):
            raise
        raise CodecError("the types of its columns cannot be read.") from error
    if len(schema) > MOST_COLUMNS:
        raise CodecError(f"a table cannot have {len(schema):,} columns.")
    return schema


def read_batch(data: bytes, types: list[Any]) -> Any:
    """Return the single batch in an Arrow stream; ``CodecError`` if there is none.

    The stream has a schema, dictionaries and a batch, of columns of these types.
    """
    try:
        start = _BEFORE + int(struct.unpack_from("<i", data, 4)[0])
        if data[:4] != b"\xff" * 4 or not _BEFORE <= start <= len(data):
            raise CodecError("columns are not an Arrow stream.")
        # The schema of the stream is replaced: the types are known.
        schema = pyarrow.schema([(str(i), kind) for i, kind in enumerate(types)])
        stream = pyarrow.py_buffer(bytes(schema.serialize()) + data[start:])
        messages = list(pyarrow.ipc.MessageReader.open_stream(stream))
        if [message.type for message in messages].count("record batch") != 1:
            raise CodecError("columns do not come in one batch.")
        if any(map(_is_compressed, messages)):
            raise CodecError("columns are compressed twice.")
        with pyarrow.ipc.open_stream(stream) as reader:
            batch = reader.read_next_batch()
        batch.validate(full=True)
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, struct.error) as error:
        if isinstance(error, CodecError):
            raise
        words = (str(error).splitlines() or [type(error).__name__])[0]
        raise CodecError(f"columns cannot be read: {words[:200]}.") from error
    return batch


def _is_compressed(message: Any) -> bool:
    header = _Table.root(message.metadata.to_pybytes()).table(_HEADER)
    if message.type == "dictionary" and header is not None:
        header = header.table(_DICTIONARY_BATCH)
    is_batch = message.type in ("record batch", "dictionary")
    return is_batch and header is not None and header.place(_COMPRESSION) is not None


def _refuse_copies(data: bytes) -> None:
    """Refuse a schema in which many fields share bytes: each would get a copy."""
    schema = _Table.root(data).table(_HEADER)
    if schema is None:
        raise CodecError("the types of its columns cannot be read.")
    n_bytes = 0
    fields, pairs = [schema.tables(_FIELDS)], [schema.tables(_SCHEMA_PAIRS)]
    while fields or pairs:
        if pairs:
            for pair in pairs.pop():
                n_bytes += _TABLE + pair.length(_KEY) + pair.length(_VALUE)
                _check_shared(n_bytes, data)
            continue
        field = next(fields[-1], None)
        if field is None:
            fields.pop()
            continue
        n_bytes += _TABLE + field.length(_NAME)
        kind, kind_table = field.byte(_KIND), field.table(_TYPE)
        if kind == _TIMESTAMP and kind_table is not None:
            n_bytes += kind_table.length(_ZONE)
        _check_shared(n_bytes, data)
        fields.append(field.tables(_CHILDREN))
        pairs.append(field.tables(_FIELD_PAIRS))


def _check_shared(n_bytes: int, data: bytes) -> None:
    if n_bytes > 2 * len(data):
        raise CodecError("the types of its columns use the same bytes many times.")


class _Table:
    """A table of a flatbuffer; ``struct.error`` outside of its bytes."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data, self._start = data, start
        self._places = start - self._number("<i", start)

    @classmethod
    def root(cls, data: bytes) -> "_Table":
        """Return the first table."""
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def place(self, field: int) -> int | None:
        """Return the place of a field; None if it is absent."""
        at = 4 + 2 * field
        if at >= self._number("<H", self._places):
            return None
        offset = self._number("<H", self._places + at)
        return self._start + offset if offset else None

    def byte(self, field: int) -> int:
        """Return a small number; 0 if it is absent."""
        place = self.place(field)
        return 0 if place is None else self._number("<B", place)

    def table(self, field: int) -> "_Table | None":
        """Return a nested table; None if it is absent."""
        place = self._behind(field)
        return None if place is None else _Table(self._data, place)

    def length(self, field: int) -> int:
        """Return the length of a text; 0 if it is absent."""
        place = self._behind(field)
        return 0 if place is None else self._number("<I", place)

    def tables(self, field: int) -> Iterator["_Table"]:
        """Yield the tables of a vector."""
        place = self._behind(field)
        for i in range(0 if place is None else self._number("<I", place)):
            assert place is not None
            at = place + 4 + 4 * i
            yield _Table(self._data, at + self._number("<I", at))

    def _behind(self, field: int) -> int | None:
        place = self.place(field)
        return None if place is None else place + self._number("<I", place)

    def _number(self, form: str, place: int) -> int:
        if place < 0:
            raise struct.error("a place before the first")
        return int(struct.unpack_from(form, self._data, place)[0])
