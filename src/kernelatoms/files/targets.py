"""What a result may be written over: nothing, or a file of the same kind.

Names lie, and so do people in a hurry: ``fit -o data.csv``. The ending says what will be written,
the first bytes of the file that is there say what would be lost.
"""

import stat
import zipfile
from collections.abc import Sequence
from pathlib import Path

from kernelatoms.files.writing import check_target, is_standard_stream
from kernelatoms.similarity.base import check_flag

_TEXT, _PAGE, _ARCHIVE = "text", "an HTML page", "an archive"
_MODEL, _ARRAYS = "a model", "NumPy arrays"

# How files begin, and what they are then.
_BEGINNINGS = (
    (b"\x93NUMPY", "a NumPy array"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"FEA1", "an Arrow file"),
    (b"\x89PNG", "a PNG image"),
    (b"%PDF", "a PDF file"),
    (b"\x1f\x8b", "a gzip file"),
    (b"PK\x03\x04", _ARCHIVE),
    (b"PK\x05\x06", _ARCHIVE),
)

# What files are that end so; anything may be written over by itself.
_KINDS = {
    ".csv": {_TEXT}, ".tsv": {_TEXT}, ".txt": {_TEXT}, ".svg": {_TEXT},
    ".html": {_PAGE}, ".htm": {_PAGE}, ".png": {"a PNG image"}, ".pdf": {"a PDF file"},
    ".parquet": {"a Parquet file"}, ".feather": {"an Arrow file"}, ".npy": {"a NumPy array"},
    # An archive that is cut short does not say what it was.
    ".npz": {_ARRAYS, _ARCHIVE}, ".skops": {_MODEL, _ARCHIVE},
}  # fmt: skip


def check_result_target(path: Path, suffixes: Sequence[str], *, force: bool = False) -> None:
    """Refuse a file that cannot or should not be written, before work starts.

    Parameters
    ----------
    path : Path
        The file to be written; "-" is standard output, for tables only.
    suffixes : sequence of str
        The endings that it may have.
    force : bool
        Write over a file of another kind, or one that is read-only, all the same.

    Raises
    ------
    ValueError, OSError
        With one sentence that says what is wrong and what would be right.
    """
    force = check_flag("force", force)
    endings = suffixes[0] if len(suffixes) == 1 else f"one of {', '.join(suffixes)}"
    if is_standard_stream(path):
        if ".csv" not in suffixes:
            raise ValueError(
                f"--output: standard output (-) takes tables only; name a file that ends with "
                f"{endings}."
            )
        return
    check_target(path)
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise ValueError(f"--output: {path} must end with {endings}.")
    if force or not path.is_file():
        return
    if not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"--output: {path} is read-only; --force replaces it, another name keeps it."
        )
    there = kind_of(path)
    if there and suffix in _KINDS and there not in _KINDS[suffix]:
        raise ValueError(
            f"--output: {path} is there already and holds {there}, not what {suffix} files hold; "
            "--force replaces it, another name keeps it."
        )


def kind_of(path: Path) -> str:
    """Return what a file is by its first bytes, in words; "" if it is empty or cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError:
        return ""
    if not start:
        return ""
    for beginning, kind in _BEGINNINGS:
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
    """Tell model files and arrays from other archives, such as spreadsheets."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except Exception:
        # Broken archives make zipfile raise exceptions of all kinds.
        return _ARCHIVE
    if "schema.json" in names:
        return _MODEL
    return _ARRAYS if all(name.endswith(".npy") for name in names) else "another archive"
