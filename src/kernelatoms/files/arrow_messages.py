"""Arrow's messages of unknown origin, looked through before Arrow reads them.

Arrow believes what a message says: a name that many fields share is copied for each of them, and a
compressed buffer becomes as large as it says. No writer of ours makes either.
"""

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow

from kernelatoms.codec.errors import CodecError
from kernelatoms.limits import MOST_COLUMNS

# Places of fields in Arrow's tables (Message.fbs, Schema.fbs): of a message, a schema, a field, a
# pair of metadata, a batch, a dictionary, a type of times.
_HEADER = 2
_FIELDS, _SCHEMA_PAIRS = 1, 2
_NAME, _KIND, _TYPE, _CHILDREN, _FIELD_PAIRS = 0, 2, 3, 5, 6
_KEY, _VALUE = 0, 1
_COMPRESSION, _DICTIONARY_BATCH = 3, 1
_ZONE, _TIMESTAMP = 1, 10
# Bytes before a message: a mark, its size. Bytes that a table takes at least.
_BEFORE, _TABLE = 8, 8


def read_schema(data: bytes) -> Any:
    """Return the types of a table's columns; ``CodecError`` if the bytes do not tell them."""
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
    """Return the one batch of columns in a stream; ``CodecError`` if there is no such one.

    Parameters
    ----------
    data : bytes
        A stream of Arrow's: a schema, dictionaries, a batch.
    types : list of DataType
        The types that the columns should have.
    """
    try:
        start = _BEFORE + int(struct.unpack_from("<i", data, 4)[0])
        if data[:4] != b"\xff" * 4 or not _BEFORE <= start <= len(data):
            raise CodecError("columns are no stream of Arrow's.")
        # What the stream says of its types is left out: they are known.
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
    """Refuse a schema in which many tell of the same bytes: each would get a copy."""
    schema = _Table.root(data).table(_HEADER)
    if schema is None:
        raise CodecError("the types of its columns cannot be read.")
    told = 0
    fields, pairs = [schema.tables(_FIELDS)], [schema.tables(_SCHEMA_PAIRS)]
    while fields or pairs:
        if pairs:
            for pair in pairs.pop():
                told += _TABLE + pair.length(_KEY) + pair.length(_VALUE)
                _check_told(told, data)
            continue
        field = next(fields[-1], None)
        if field is None:
            fields.pop()
            continue
        told += _TABLE + field.length(_NAME)
        kind, kind_table = field.byte(_KIND), field.table(_TYPE)
        if kind == _TIMESTAMP and kind_table is not None:
            told += kind_table.length(_ZONE)
        _check_told(told, data)
        fields.append(field.tables(_CHILDREN))
        pairs.append(field.tables(_FIELD_PAIRS))


def _check_told(told: int, data: bytes) -> None:
    if told > 2 * len(data):
        raise CodecError("the types of its columns tell of the same bytes many times.")


class _Table:
    """A table of a flatbuffer; ``struct.error`` where it would be outside of its bytes."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data, self._start = data, start
        self._places = start - self._number("<i", start)

    @classmethod
    def root(cls, data: bytes) -> "_Table":
        """Return the first table."""
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def place(self, field: int) -> int | None:
        """Return where a field is; None if it is not there."""
        at = 4 + 2 * field
        if at >= self._number("<H", self._places):
            return None
        offset = self._number("<H", self._places + at)
        return self._start + offset if offset else None

    def byte(self, field: int) -> int:
        """Return a small number, 0 if it is not there."""
        place = self.place(field)
        return 0 if place is None else self._number("<B", place)

    def table(self, field: int) -> "_Table | None":
        """Return another table; None if it is not there."""
        place = self._behind(field)
        return None if place is None else _Table(self._data, place)

    def length(self, field: int) -> int:
        """Return the length of a text, 0 if it is not there."""
        place = self._behind(field)
        return 0 if place is None else self._number("<I", place)

    def tables(self, field: int) -> Iterator["_Table"]:
        """Yield a sequence of tables."""
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
