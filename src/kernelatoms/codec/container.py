"""The container: a signature, blocks of rows, and a tail that describes them.

    signature | block | block | ... | tail | size of the tail, checksum, end mark

The tail holds the header (a small JSON object), the models and the index: per block its part, rows,
sizes and checksum. The checksum of the tail also covers the size of the file. So the checksums
detect every block that is damaged, moved, missing, doubled or taken from another file. A file is
written in one pass, and reading some rows needs the tail and their blocks only.

See docs/codec-format.md and docs/decisions/051-codec-format.md.
"""

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import IO, Any

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.limits import MOST_PARTS, CodecError
from kernelatoms.codec.packing import Cursor, number, squeeze, unsqueeze

KINDS = ("array", "npy", "npz", "csv", "parquet", "model")
SIGNATURE, VERSION, END = b"\xe1KAC", 1, b"kac"
START = len(SIGNATURE) + 1
_CHECKSUM = 8
#: Size of the tail (4 bytes, lowest first), its checksum, the end mark.
_CLOSING = 4 + _CHECKSUM + len(END)
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """A block in the index."""

    part: int  # the index of its array or table
    n_rows: int
    matrix_size: int  # bytes of approximate numbers
    exact_size: int  # bytes of everything else
    checksum: bytes
    offset: int  # its place in the file

    @property
    def size(self) -> int:
        """Its bytes in total."""
        return self.matrix_size + self.exact_size


@dataclass(frozen=True)
class Tail:
    """Everything in a file except its blocks."""

    header: bytes
    models: tuple[bytes, ...] = ()
    # SHA-256 of models that are not stored; they are numbered after the stored ones.
    digests: tuple[bytes, ...] = ()
    schema: bytes = b""  # the types of a table's columns, if it has typed columns


class Writer:
    """Write a container block by block."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.entries: list[Entry] = []
        self._offset = START
        file.write(SIGNATURE + bytes([VERSION]))

    def add(self, part: int, n_rows: int, matrix: bytes, exact: bytes) -> None:
        """Write a block."""
        checksum = _block_checksum(len(self.entries), matrix, exact)
        entry = Entry(part, n_rows, len(matrix), len(exact), checksum, self._offset)
        self.entries.append(entry)
        self._file.write(matrix)
        self._file.write(exact)
        self._offset += entry.size

    def copy(self, reader: "Reader") -> None:
        """Write all blocks of another container unchanged."""
        for i, entry in enumerate(reader.entries):
            self.add(entry.part, entry.n_rows, *reader.read(i))

    def finish(self, tail: Tail) -> int:
        """Write the tail; return the size of the file."""
        data = _tail_bytes(tail, self.entries)
        if len(data) >= 1 << 32:
            raise ValueError(f"models and column names take {len(data):,} bytes, over 4 GiB.")
        size = self._offset + len(data) + _CLOSING
        self._file.write(data)
        self._file.write(len(data).to_bytes(4, "little") + _tail_checksum(data, size) + END)
        return size


class Reader:
    """Read a container: the tail immediately, blocks on demand."""

    def __init__(self, source: IO[bytes] | bytes) -> None:
        self._file = io.BytesIO(source) if isinstance(source, bytes) else source
        self.size = self._file.seek(0, os.SEEK_END)
        self._check_start()
        data, n_bytes = self._read_tail()
        self.tail_size = len(data)
        self.tail, self.entries = _parse_tail(data)
        found = sum(entry.size for entry in self.entries)
        if found != n_bytes:
            raise CodecError(f"the index has {found:,} bytes of blocks, but there are {n_bytes:,}.")

    def read(self, number: int) -> tuple[bytes, bytes]:
        """Return the bytes of a block: approximate numbers and everything else."""
        entry = self.entries[number]
        data = self._at(entry.offset, entry.size)
        matrix, exact = data[: entry.matrix_size], data[entry.matrix_size :]
        if _block_checksum(number, matrix, exact) != entry.checksum:
            raise CodecError(f"block {number} is damaged: its checksum does not fit.")
        return matrix, exact

    def _at(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        data = self._file.read(size)
        if len(data) != size:
            raise CodecError("it is cut short.")
        return data

    def _check_start(self) -> None:
        start = self._at(0, min(START, self.size))
        if not start.startswith(SIGNATURE[: len(start)]) or len(start) < len(SIGNATURE):
            raise CodecError("this is not a compressed file of kernelatoms: it begins otherwise.")
        if self.size < START + _CLOSING:
            raise CodecError("it is cut short.")
        if start[-1] != VERSION:
            raise CodecError(
                f"it is of format {start[-1]}, which this version of kernelatoms does not know; it "
                f"reads format {VERSION}."
            )

    def _read_tail(self) -> tuple[bytes, int]:
        """Return the tail, and the number of bytes before it."""
        closing = self._at(self.size - _CLOSING, _CLOSING)
        if closing[-len(END) :] != END:
            raise CodecError("it is cut short, or damaged: its end mark is missing.")
        size = int.from_bytes(closing[:4], "little")
        offset = self.size - _CLOSING - size
        if offset < START:
            raise CodecError("it is damaged: its tail would be longer than the file.")
        data = self._at(offset, size)
        if _tail_checksum(data, self.size) != closing[4 : 4 + _CHECKSUM]:
            raise CodecError("it is damaged: the checksum of its tail does not fit.")
        return data, offset - START


def section_sizes(reader: Reader) -> dict[str, int]:
    """Return the bytes of each kind of section; their sum is the size of the file."""
    tail = reader.tail
    models = sum(map(len, (*tail.models, *tail.digests)))
    sizes = {
        "numbers": sum(entry.matrix_size for entry in reader.entries),
        "exact columns": sum(entry.exact_size for entry in reader.entries),
        "models": models,
        "header": len(tail.header) + len(tail.schema),
        "index": reader.tail_size - models - len(tail.header) - len(tail.schema),
        "signature and end": START + _CLOSING,
    }
    return {name: size for name, size in sizes.items() if size}


def _tail_bytes(tail: Tail, entries: Sequence[Entry]) -> bytes:
    parts = [number(len(tail.header)), tail.header, number(len(tail.schema)), tail.schema]
    parts += [number(len(tail.models)), number(len(tail.digests))]
    for model in tail.models:
        parts += [number(len(model)), model]
    parts += tail.digests
    for entry in entries:
        counts = (entry.part, entry.n_rows, entry.matrix_size, entry.exact_size)
        parts += [*map(number, counts), entry.checksum]
    return b"".join(parts)


def _parse_tail(data: bytes) -> tuple[Tail, list[Entry]]:
    cursor = Cursor(data, "the tail")
    header, schema = cursor.counted(), cursor.counted()
    n_models, n_digests = cursor.number(), cursor.number()
    if n_models + 32 * n_digests > cursor.left:
        raise CodecError(f"the tail lists {n_models + n_digests:,} models, but ends before.")
    models = tuple(cursor.counted() for _ in range(n_models))
    digests = tuple(cursor.take(32) for _ in range(n_digests))
    entries, offset = [], START
    while cursor.left:
        part, n_rows, matrix, exact = (cursor.number() for _ in range(4))
        entries.append(Entry(part, n_rows, matrix, exact, cursor.take(_CHECKSUM), offset))
        offset += matrix + exact
    return Tail(header, models, digests, schema), entries


def _block_checksum(number: int, matrix: bytes, exact: bytes) -> bytes:
    return _checksum(b"kac block", number, len(matrix).to_bytes(8, "little"), matrix, exact)


def _tail_checksum(data: bytes, file_size: int) -> bytes:
    return _checksum(b"kac tail", file_size, data)


def _checksum(what: bytes, number: int, *data: bytes) -> bytes:
    salt = number.to_bytes(16, "little")
    digest = blake2b(digest_size=_CHECKSUM, salt=salt, person=what)
    for part in data:
        digest.update(part)
    return digest.digest()


@dataclass(frozen=True)
class Part:
    """An array of a file, or its table."""

    name: str = ""  # its name, if there are several
    head: str = ""  # the header of its NumPy file, unchanged; empty for tables
    # The type of the matrix of approximate numbers, "f4" or "f8"; empty if there is none.
    dtype: str = ""
    model: int = -1  # the index of the model that predicts it; -1 without approximate numbers


@dataclass(frozen=True)
class Header:
    """The description of a file."""

    kind: str  # one of ``KINDS``
    by: str  # the version of the library that wrote it
    bound: Bound = field(default_factory=Bound)
    parts: Sequence[Part] = ()
    table: Mapping[str, Any] = field(default_factory=dict)  # how the columns of a table are stored
    # Quantiles of the rows' relative errors (0.5, 0.9, 0.99, 1), and the largest error of a value;
    # empty if not recorded.
    errors: Sequence[float] = ()
    trials: Sequence[tuple[str, int]] = ()  # models that were compared, with their bytes
    size: int = 0  # bytes of the original; 0 if not known

    def to_bytes(self) -> bytes:
        """Return the header as bytes; ``ValueError`` if it is too long."""
        parts = [
            {key: value for key, value in vars(part).items() if value != getattr(Part, key)}
            for part in self.parts
        ]
        bound = [self.bound.relative, self.bound.absolute]
        fields = {**vars(self), "bound": bound, "parts": parts}
        return squeeze({key: value for key, value in fields.items() if value or key == "kind"})

    @classmethod
    def from_bytes(cls, data: bytes) -> "Header":
        """Invert ``to_bytes``; ``CodecError`` if the bytes are not its result."""
        tree = unsqueeze(data, "the header")
        try:
            return cls(**_checked(tree))
        except (ValueError, TypeError) as error:
            raise CodecError(f"the header cannot be read: {error}.") from error


def _checked(tree: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a header, checked."""
    if unknown := set(tree) - set(Header.__dataclass_fields__):
        raise ValueError(f"it has an unknown field {sorted(unknown)[0][:40]!r}")
    kind = tree.get("kind")
    if kind not in KINDS:
        raise ValueError(f"it is of an unknown kind, {str(kind)[:40]!r}")
    if any(len(_of(list, tree.get(name, []))) > MOST_PARTS for name in ("parts", "trials")):
        raise ValueError(f"it has more than {MOST_PARTS:,} arrays or trials")
    return {
        "kind": kind,
        "by": _of(str, tree.get("by", "")),
        "bound": _bound(_of(list, tree.get("bound", [None, None]))),
        "parts": tuple(_part(entry) for entry in _of(list, tree.get("parts", []))),
        "table": _of(dict, tree.get("table", {})),
        "errors": tuple(_number(entry) for entry in _of(list, tree.get("errors", []))),
        "trials": tuple(_trial(entry) for entry in _of(list, tree.get("trials", []))),
        "size": _count(tree.get("size", 0)),
    }


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"it has {str(value)[:40]!r} where a {kind.__name__} should be")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"it has {str(value)[:40]!r} where a count should be")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) < 1e308:
        raise ValueError(f"it has {str(value)[:40]!r} where a number should be")
    return float(value)


def _bound(values: list[Any]) -> Bound:
    if len(values) != 2:
        raise ValueError("its bound is not a pair of numbers")
    relative, absolute = (None if value is None else _number(value) for value in values)
    return Bound(relative, absolute)


def _part(entry: Any) -> Part:
    fields = dict(_of(dict, entry))
    part = Part(
        _of(str, fields.pop("name", "")),
        _of(str, fields.pop("head", "")),
        _of(str, fields.pop("dtype", "")),
        _count(fields.pop("model", -1) + 1) - 1 if type(fields.get("model", -1)) is int else -2,
    )
    if fields or part.dtype not in ("", "f4", "f8") or part.model < -1:
        raise ValueError(f"it has an invalid part: {str(entry)[:60]!r}")
    if bool(part.dtype) != (part.model >= 0):
        raise ValueError("it has a part with numbers without a model, or a model without numbers")
    return part


def _trial(entry: Any) -> tuple[str, int]:
    name, n_bytes = _of(list, entry)
    return _of(str, name), _count(n_bytes)
