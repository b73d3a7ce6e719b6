"""The container of a model file: a zip archive, read within bounds.

An archive may say anything of itself. So its members are counted, named and measured before the
first of them is unpacked; they are unpacked piece by piece, no further than the size that they
declare; and arrays are looked at before anybody makes room for them. What passes is packed anew,
uncompressed, for skops to read: nothing that it does with the archive can surprise us then.

Everything here raises ValueError in words, or whatever zipfile raises at a damaged archive.
"""

import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

from kernelatoms.files.arrays import UnreadableError, read_header

#: The member that holds format, digests and record; the one that holds skops's description.
HEADER, SCHEMA = "kernelatoms.json", "schema.json"

# What members may take together: this, or so many times the file itself. skops holds all of it
# three times for a while. Models that shrink more than this are written without compression.
_MOST_BYTES, _MOST_EXPANSION = 256 << 20, 20
# The longest header or schema: as objects of Python it takes some twenty times as much.
_MOST_TEXT = 16 << 20
_PIECE = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class Unpacked:
    """The members of an archive but the header: digests, the schema, and an archive of them."""

    digests: dict[str, str]
    schema: bytes
    stored: bytes


def check_bounds(archive: zipfile.ZipFile, file_size: int) -> None:
    """Refuse an archive that would unpack to more than it should, by what it declares."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two of its members are called {twice!r}")
    for member in members:
        if member.flag_bits & 1:
            raise ValueError(f"its member {member.filename!r} is encrypted")
        if member.compress_type not in _METHODS:
            raise ValueError(f"its member {member.filename!r} is compressed in an unknown way")
        if member.filename in (HEADER, SCHEMA) and member.file_size > _MOST_TEXT:
            raise ValueError(
                f"its member {member.filename!r} is of {member.file_size:,} bytes, more than "
                f"{_MOST_TEXT:,}"
            )
    total = sum(member.file_size for member in members)
    if not _fits(total, file_size):
        raise ValueError(
            f"it would unpack from {file_size:,} bytes to {total:,}, more than "
            f"{_MOST_EXPANSION} times as many; if you know who made it, pack it anew without "
            "compression (zip -0)"
        )


def read_text(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the header or the schema."""
    return b"".join(_pieces(archive, name))


def unpack(archive: zipfile.ZipFile) -> Unpacked:
    """Return all members but the header, as an archive without compression."""
    digests, stored = {}, io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED) as target:
        for name in archive.namelist():
            if name != HEADER:
                digests[name] = _copy(archive, target, name)
    with zipfile.ZipFile(stored) as copy:
        schema = read_text(copy, SCHEMA)
    return Unpacked(digests, schema, stored.getvalue())


def pack(unpacked: Unpacked, header: bytes) -> bytes:
    """Return an archive of these members and the header, compressed unless it were too much."""
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
        if _fits(total, data.tell()):
            break
    return data.getvalue()


def check_arrays(stored: bytes, names: set[str]) -> None:
    """Refuse .npy members that are not as large as the array that they declare."""
    with zipfile.ZipFile(io.BytesIO(stored)) as archive:
        for name in sorted(names):
            size = archive.getinfo(name).file_size
            with archive.open(name) as member:
                try:
                    read_header(io.BytesIO(member.read(1 << 16)), size)
                except UnreadableError as error:
                    raise ValueError(f"its member {name!r} is no array: {error}") from error


def _fits(total: int, file_size: int) -> bool:
    return total <= max(_MOST_BYTES, _MOST_EXPANSION * file_size)


def _copy(source: zipfile.ZipFile, target: zipfile.ZipFile, name: str) -> str:
    """Copy a member and return its SHA-256."""
    digest = hashlib.sha256()
    with target.open(name, "w", force_zip64=True) as copy:
        for piece in _pieces(source, name):
            digest.update(piece)
            copy.write(piece)
    return digest.hexdigest()


def _pieces(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """Unpack a member piece by piece: asked for all at once, it might first grow beyond bounds."""
    left = archive.getinfo(name).file_size
    with archive.open(name) as member:
        while piece := member.read(_PIECE):
            left -= len(piece)
            yield piece
    if left:
        raise ValueError(f"its member {name!r} is not of the size that it declares")
