"""Write a file whole or not at all, and check first what would be replaced.

A file is written beside its target and renamed, so the old file stays until the new one is
complete; the new one has its permissions. Devices, pipes and folders are never replaced.
``check_result_target`` compares the ending of a target, which says what will be written, with the
first bytes of the file that is there, which say what would be lost.

See docs/decisions/055-atomic-writes.md.
"""

import os
import re
import secrets
import stat
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import IO, Any

_unfinished: set[Path] = set()

# Nothing is silent for so many seconds: what is older was left by a process that was killed.
_ABANDONED = 3600


def check_target(path: Any) -> Path:
    """Return the path if a file can be written there, else raise OSError."""
    path = Path(path)
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    _refuse_devices(path)
    if not folder.is_dir():
        raise NotADirectoryError(
            f"the folder {str(path.parent)!r} does not exist; make it first or choose another."
        )
    probe = _neighbour(folder / path.name)
    try:
        # Permissions, quotas and read-only disks: only an attempt shows.
        probe.open("x").close()
        probe.unlink()
    except OSError as error:
        raise PermissionError(
            f"cannot write in the folder {str(path.parent)!r} ({error.strerror}); choose another."
        ) from error
    return path


def _refuse_devices(path: Path) -> None:
    """Refuse what is there and is no file: a rename would put one in its place."""
    # Where standard output goes to a file, /dev/stdout is a link to it.
    stream = re.match(r"/dev/(std(in|out|err)$|fd/)|/proc/[^/]+/fd/", os.path.abspath(path))
    if stream or (path.exists() and not stat.S_ISREG(path.stat().st_mode)):
        raise PermissionError(
            f"{path} is a device or a pipe, and no file; name a file, or - for standard output "
            "where a command writes a table."
        )


def refuse_to_overwrite(path: Any, *sources: Any) -> None:
    """Refuse to write to a file that is read; it need not exist, sources may be None."""
    for source in filter(None, sources):
        with suppress(OSError):  # a file that is not there is no other file
            if os.path.samefile(path, source):
                raise ValueError(
                    f"path: {path} is the file {source} itself, which would be lost; choose "
                    "another name."
                )


def write_whole(path: Any, data: bytes) -> Path:
    """Write a file, or leave the file that was there as it was."""
    with replacing(path) as file:
        file.write(data)
    return Path(path)


@contextmanager
def replacing(path: Any) -> Iterator[IO[bytes]]:
    """Give a file to write in pieces; it replaces that of this name if there is no exception."""
    path = check_target(path)
    # A link is followed, so that the file behind it is replaced and not the link.
    target = Path(os.path.realpath(path))
    temporary = _neighbour(target)
    try:
        unfinished(temporary)
        with temporary.open("x+b") as file:
            _keep_mode(target, file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        finished(temporary)
    _remove_abandoned(target)


def _keep_mode(target: Path, handle: int) -> None:
    """Give a file the permissions, and if possible the owner, of the one it replaces."""
    if not hasattr(os, "fchmod") or not target.exists():
        return
    was = target.stat()
    with suppress(OSError):
        os.fchown(handle, was.st_uid, was.st_gid)
    with suppress(OSError):  # file systems without permissions
        os.fchmod(handle, stat.S_IMODE(was.st_mode) & 0o777)


def unfinished(file: Path) -> None:
    """Note a file to be removed even if the process ends at once."""
    _unfinished.add(file)


def finished(file: Path) -> None:
    """Remove an unfinished file, if it exists."""
    with suppress(OSError):
        file.unlink()
    _unfinished.discard(file)


def remove_unfinished() -> None:
    """Remove all unfinished files: the process is about to end."""
    for file in tuple(_unfinished):
        finished(file)


def _remove_abandoned(target: Path) -> None:
    """Remove files that killed processes left of earlier attempts."""
    for file in target.parent.glob(f".{escape(target.name)}.????????.tmp"):
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > _ABANDONED:
                file.unlink()


def _neighbour(path: Path) -> Path:
    """Return an unused name in the same folder, where renaming is atomic."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


_TEXT, _PAGE, _ARCHIVE = "text", "an HTML page", "an archive"
_MODEL, _ARRAYS = "a model", "NumPy arrays"

# How files begin, and what they are then.
_BEGINNINGS = {
    b"\x93NUMPY": "a NumPy array", b"PAR1": "a Parquet file", b"ARROW1": "an Arrow file",
    b"FEA1": "an Arrow file", b"\x89PNG": "a PNG image", b"%PDF": "a PDF file",
    b"\x1f\x8b": "a gzip file", b"PK\x03\x04": _ARCHIVE, b"PK\x05\x06": _ARCHIVE,
}  # fmt: skip

# What files are that end so; anything may be written over by itself.
_KINDS = {
    ".csv": {_TEXT}, ".tsv": {_TEXT}, ".txt": {_TEXT}, ".svg": {_TEXT},
    ".html": {_PAGE}, ".htm": {_PAGE}, ".png": {"a PNG image"}, ".pdf": {"a PDF file"},
    ".parquet": {"a Parquet file"}, ".feather": {"an Arrow file"}, ".npy": {"a NumPy array"},
    # An archive that is cut short does not say what it was.
    ".npz": {_ARRAYS, _ARCHIVE}, ".skops": {_MODEL, _ARCHIVE},
}  # fmt: skip


def check_result_target(
    path: Path, suffixes: Sequence[str], *sources: Path | None, force: bool = False
) -> None:
    """Refuse a file that cannot or should not be written, before work starts.

    ``path`` must end with one of ``suffixes``, and be none of ``sources``, which are read; "-" is
    for tables only. ``force`` allows to replace a file of another kind, or a read-only one.
    """
    refuse_to_overwrite(path, *sources)
    endings = suffixes[0] if len(suffixes) == 1 else f"one of {', '.join(suffixes)}"
    if str(path) == "-":
        if ".csv" in suffixes:
            return
        raise ValueError(
            f"path: standard output (-) takes tables only; name a file that ends with {endings}."
        )
    check_target(path)
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise ValueError(f"path: {path} must end with {endings}.")
    if force or not path.is_file():
        return
    if not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"path: {path} is read-only; force=True replaces it, another name keeps it."
        )
    there = kind_of(path)
    if there and suffix in _KINDS and there not in _KINDS[suffix]:
        raise ValueError(
            f"path: {path} exists and holds {there}, not what {suffix} files hold; force=True "
            "replaces it, another name keeps it."
        )


def kind_of(path: Path) -> str:
    """Return in words what a file is, by its first bytes; "" if empty or unreadable."""
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError:
        return ""
    if not start:
        return ""
    for beginning, kind in _BEGINNINGS.items():
        if start.startswith(beginning):
            return _archive_kind(path) if kind == _ARCHIVE else kind
    if start.lstrip(b"\xef\xbb\xbf \r\n\t")[:14].lower().startswith((b"<!doctype html", b"<html")):
        return _PAGE
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _TEXT
    # Text has no control characters but ends of lines, tabs, form feeds and escapes.
    strange = bytes(set(range(32)) - {9, 10, 12, 13, 27})
    return "binary data" if start.translate(None, strange) != start else _TEXT


def _archive_kind(path: Path) -> str:
    """Distinguish model files and arrays from other archives, such as spreadsheets."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except Exception:
        # Broken archives make zipfile raise exceptions of all kinds.
        return _ARCHIVE
    if "schema.json" in names:
        return _MODEL
    return _ARRAYS if all(name.endswith(".npy") for name in names) else "another archive"
