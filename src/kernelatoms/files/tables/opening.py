"""From a name to what a file is: by its suffix, or by its first bytes if it has none."""

import bz2
import gzip
import io
import stat
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kernelatoms.files.tables.table import (
    COMPRESSIONS,
    SUFFIXES,
    TEXT_SUFFIXES,
    ReadOptions,
    Table,
    TableError,
)
from kernelatoms.limits import Budget, TooLargeError

_KINDS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".feather": "feather", ".arrow": "feather", ".npy": "npy", ".npz": "npz",
}  # fmt: skip
_BEGINNINGS = {
    b"PAR1": "parquet", b"ARROW1": "feather", b"FEA1": "feather", b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz", b"PK\x05\x06": "npz", b"\x1f\x8b": ".gz", b"BZh": ".bz2",
    b"\x28\xb5\x2f\xfd": ".zst",
}  # fmt: skip
_PIECE = 1 << 22


@dataclass(frozen=True)
class OpenedTable:
    """A file whose kind is known."""

    path: Path  # as messages call it
    kind: str  # "csv", "jsonl", "parquet", "feather", "npy" or "npz"
    data: bytes | None  # of text and pipes, which are read at once
    budget: Budget

    def read(self, options: ReadOptions) -> Table:
        """Read it; readers are imported only when they are needed."""
        if self.kind == "csv":
            from kernelatoms.files.tables.csv_tables import read_csv

            return read_csv(self.path, self.data or b"", options, self.budget)
        if self.kind == "jsonl":
            from kernelatoms.files.tables.json_tables import read_json_lines

            return read_json_lines(self.path, self.data or b"", options, self.budget)
        if self.kind in ("parquet", "feather"):
            from kernelatoms.files.tables import arrow_tables

            reader = getattr(arrow_tables, f"read_{self.kind}")
            table: Table = reader(self.path, self.data, self.budget)
            return table
        from kernelatoms.files.tables.arrays import read_arrays

        return read_arrays(self.path, self.data, self.kind, options.rows, self.budget)


def open_table(path: Any, max_size: int | None = None) -> OpenedTable:
    """Return which kind of table a file is; text is read and unpacked."""
    if str(path) == "-":
        if sys.stdin is None:
            raise TableError("standard input is closed.")
        return _from_bytes(Path("standard input"), sys.stdin.buffer.read(), max_size)
    path = Path(path)
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file in it.")
    if not path.exists():
        raise TableError(f"there is no file {path}.")
    mode = path.stat().st_mode
    if stat.S_ISFIFO(mode):
        return _from_bytes(path, path.read_bytes(), max_size)
    if not stat.S_ISREG(mode):
        raise TableError(f"{path} is a device, and no file; - is standard input.")
    suffix, packing = path.suffix.lower(), ""
    if suffix in COMPRESSIONS:
        suffix, packing = Path(path.stem).suffix.lower(), suffix
    if suffix not in (TEXT_SUFFIXES if packing else SUFFIXES):
        raise TableError(
            f"{path} must end with {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} (those of text "
            f"also with {' or '.join(COMPRESSIONS)} behind), so that it is clear how to read it; "
            "through standard input (-) it is recognised by its first bytes."
        )
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
    budget = Budget(path.stat().st_size, max_size)
    if suffix not in TEXT_SUFFIXES:
        return OpenedTable(path, _KINDS[suffix], None, budget)
    data = path.read_bytes()
    if packing:
        data = _unpacked(path, data, packing, budget)
    is_really = _kind_of(data)
    if is_really not in ("csv", "jsonl"):
        what = is_really if is_really.startswith(".") else f".{is_really}"
        raise TableError(
            f"{path} is a binary file, not a table of text: it begins as {what} files do. Call it "
            "so."
        )
    return OpenedTable(path, _KINDS[suffix], data, budget)


def _from_bytes(path: Path, data: bytes, max_size: int | None) -> OpenedTable:
    """Return which kind of table bytes are that came without a name."""
    budget = Budget(len(data), max_size)
    kind = _kind_of(data)
    if kind in COMPRESSIONS:
        data = _unpacked(path, data, kind, budget)
        kind = _kind_of(data)
    if not data:
        raise TableError(f"{path} is empty.")
    if kind in COMPRESSIONS:
        raise TableError(f"{path} is compressed twice.")
    return OpenedTable(path, kind, data, budget)


def _kind_of(data: bytes) -> str:
    """Return the kind of table that bytes are, or the suffix of a compressed file."""
    for beginning, kind in _BEGINNINGS.items():
        if data.startswith(beginning):
            return kind
    text = data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    return "jsonl" if text.startswith((b'{"', b"{ ", b"{}")) else "csv"


def _unpacked(path: Path, data: bytes, packing: str, budget: Budget) -> bytes:
    """Return what a compressed file holds, within its budget."""
    found, total = [], 0
    try:
        with _OPENERS[packing](io.BytesIO(data)) as stream:
            while piece := stream.read(_PIECE):
                found.append(piece)
                total += len(piece)
                budget.check(total)
    except TooLargeError:
        raise
    except (OSError, EOFError, ValueError, zlib.error) as error:
        words = str(error).splitlines()
        raise TableError(
            f"{path} cannot be unpacked (damaged, cut short or of another kind): "
            f"{words[0].rstrip('.')[:200] if words else type(error).__name__}."
        ) from error
    if total == 0:
        raise TableError(f"{path} is empty.")
    return b"".join(found)


def _open_zstandard(file: IO[bytes]) -> IO[bytes]:
    import pyarrow

    stream: IO[bytes] = pyarrow.CompressedInputStream(file, "zstd")
    return stream


_OPENERS: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file), ".bz2": bz2.BZ2File, ".zst": _open_zstandard,
}  # fmt: skip
