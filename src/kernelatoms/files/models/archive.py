"""The container of a model file: a zip archive, read within bounds.

An archive may declare anything. So its members are counted, named and measured before the first is
unpacked; they are unpacked in pieces, up to the size that they declare; and arrays are checked
before memory is allocated. The result is packed again without compression, for skops to read.

Errors are ValueError, or whatever zipfile raises for a damaged archive.
"""

import hashlib
import io
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from kernelatoms.files.tables.arrays import UnreadableError, read_header
from kernelatoms.limits import (
    MODEL_MEMBERS,
    MODEL_TEXT,
    MODEL_VALUES,
    allowed_model_size,
    refuse_over,
)

#: The member that holds format, digests and record; the one that holds skops's description.
HEADER, SCHEMA = "kernelatoms.json", "schema.json"

_PIECE = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class Unpacked:
    """All members but the header: sizes, digests, the schema, and an archive of them."""

    sizes: dict[str, int]
    digests: dict[str, str]
    schema: bytes
    stored: bytes


def check_bounds(archive: zipfile.ZipFile, file_size: int, max_size: int | None = None) -> None:
    """Refuse an archive that declares too many or too large members."""
    members = archive.infolist()
    if len(members) > MODEL_MEMBERS:
        raise ValueError(f"it has {len(members):,} members, more than {MODEL_MEMBERS:,}")
    (name, times), *_ = Counter(member.filename for member in members).most_common(1) or [("", 0)]
    if times > 1:
        raise ValueError(f"two of its members are called {name!r}")
    for member in members:
        if member.flag_bits & 1:
            raise ValueError(f"its member {member.filename!r} is encrypted")
        if member.compress_type not in _METHODS:
            raise ValueError(f"its member {member.filename!r} is compressed in an unknown way")
        if member.filename in (HEADER, SCHEMA) and member.file_size > MODEL_TEXT:
            raise ValueError(
                f"its member {member.filename!r} is of {member.file_size:,} bytes, more than "
                f"{MODEL_TEXT:,}"
            )
    total = sum(member.file_size for member in members)
    refuse_over(allowed_model_size(file_size, max_size), total, file_size)


def read_text(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the header or the schema, unless it lists too many values."""
    text = b"".join(_pieces(archive, name))
    n_values = sum(map(text.count, (b",", b"[", b"{")))  # or fewer: texts hold such signs too
    if n_values > MODEL_VALUES:
        raise ValueError(
            f"its member {name!r} lists {n_values:,} values, more than {MODEL_VALUES:,}"
        )
    return text


def unpack(archive: zipfile.ZipFile) -> Unpacked:
    """Return all members but the header, as an archive without compression."""
    digests, stored = {}, io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED) as target:
        for name in archive.namelist():
            if name != HEADER:
                digests[name] = _copy(archive, target, name)
    with zipfile.ZipFile(stored) as copy:
        sizes = {member.filename: member.file_size for member in copy.infolist()}
        schema = read_text(copy, SCHEMA)
    return Unpacked(sizes, digests, schema, stored.getvalue())


def pack(unpacked: Unpacked, header: bytes) -> bytes:
    """Return an archive of members and header, compressed if that stays readable."""
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        data = io.BytesIO()
        with (
            zipfile.ZipFile(io.BytesIO(unpacked.stored)) as source,
            zipfile.ZipFile(data, "w", method, compresslevel=1) as target,
        ):
            for name in source.namelist():
                _copy(source, target, name)
            target.writestr(HEADER, header)
            total = sum(member.file_size for member in target.infolist())
        if total <= allowed_model_size(data.tell()):
            break
    return data.getvalue()


def check_arrays(stored: bytes, names: set[str]) -> None:
    """Refuse .npy members whose size differs from that of the array they declare."""
    with zipfile.ZipFile(io.BytesIO(stored)) as archive:
        for name in sorted(names):
            size = archive.getinfo(name).file_size
            with archive.open(name) as member:
                try:
                    read_header(io.BytesIO(member.read(1 << 16)), size)
                except UnreadableError as error:
                    raise ValueError(f"its member {name!r} is no array: {error}") from error


def _copy(source: zipfile.ZipFile, target: zipfile.ZipFile, name: str) -> str:
    """Copy a member and return its SHA-256."""
    digest = hashlib.sha256()
    with target.open(name, "w", force_zip64=True) as copy:
        for piece in _pieces(source, name):
            digest.update(piece)
            copy.write(piece)
    return digest.hexdigest()


def _pieces(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """Unpack a member in pieces: read at once, it might exceed its declared size."""
    left = archive.getinfo(name).file_size
    with archive.open(name) as member:
        while piece := member.read(_PIECE):
            left -= len(piece)
            yield piece
    if left:
        raise ValueError(f"its member {name!r} is not of the size that it declares")
