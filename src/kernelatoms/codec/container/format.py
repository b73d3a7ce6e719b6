"""The container: a signature, blocks of rows, and a tail that describes them.

    signature | block | block | ... | tail | size of the tail, checksum, end mark

The tail holds the header, the models and the index: per block its part, rows, sizes and checksum.
The checksum of the tail also covers the size of the file. So the checksums detect every block that
is damaged, moved, missing, doubled or taken from another file. A file is written in one pass, and
reading some rows needs the tail and their blocks only. See docs/codec-format.md and
docs/decisions/051-codec-format.md.
"""

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import IO

from kernelatoms.codec.container.packing import Cursor, number
from kernelatoms.codec.limits import CodecError

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

    @property
    def offset(self) -> int:
        """The number of bytes written."""
        return self._offset

    def add(self, part: int, n_rows: int, matrix: bytes, exact: bytes) -> None:
        """Write a block."""
        checksum = _block_checksum(len(self.entries), matrix, exact)
        self.entries.append(
            Entry(part, n_rows, len(matrix), len(exact), checksum, self._offset)
        )  # fmt: skip
        self._file.write(matrix)
        self._file.write(exact)
        self._offset += len(matrix) + len(exact)

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
        self._file.write(len(data).to_bytes(4, "little"))
        self._file.write(_tail_checksum(data, size) + END)
        return size


class Reader:
    """Read a container: the tail immediately, blocks on demand."""

    def __init__(self, source: IO[bytes] | bytes) -> None:
        self._file = io.BytesIO(source) if isinstance(source, bytes) else source
        self.size = self._file.seek(0, os.SEEK_END)
        self._check_start()
        data, self.tail_offset = self._read_tail()
        self.tail_size = len(data)
        self.tail, self.entries = _parse_tail(data)
        end = self.entries[-1].offset + self.entries[-1].size if self.entries else START
        if end != self.tail_offset:
            raise CodecError(
                f"the index has {end - START:,} bytes of blocks, but there are "
                f"{self.tail_offset - START:,}."
            )

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
        return data, offset


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
    digest = blake2b(
        len(matrix).to_bytes(8, "little"),
        digest_size=_CHECKSUM, salt=number.to_bytes(16, "little"), person=b"kac block",
    )  # fmt: skip
    digest.update(matrix)
    digest.update(exact)
    return digest.digest()


def _tail_checksum(data: bytes, file_size: int) -> bytes:
    return blake2b(
        data, digest_size=_CHECKSUM, salt=file_size.to_bytes(16, "little"), person=b"kac tail"
    ).digest()
