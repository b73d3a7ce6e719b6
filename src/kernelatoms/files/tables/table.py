"""Tables from files: numbers in one matrix, words in columns of their own.

The ending of a file says its kind; standard input, ``-``, is recognised by its first bytes. Columns
without names are called 0, 1, ... A stack of images in ``.npy`` becomes one row per image. ``.npz``
holds rows under one key, labels and the like under others; or a sparse matrix of scipy. An empty
field, ``NA``, ``NaN``, ``null`` or ``?`` is a missing value, NaN in the matrix.

See docs/cli.md for every kind, and docs/decisions/056-exact-tables.md.
"""

import bz2
import gzip
import io
import stat
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from kernelatoms.engine import Array
from kernelatoms.limits import Budget, TooLargeError

_KINDS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".feather": "feather", ".arrow": "feather", ".npy": "npy", ".npz": "npz",
}  # fmt: skip
_SUFFIXES = tuple(_KINDS)
_TEXT_KINDS = ("csv", "jsonl")
# Endings of tables of text, which may be compressed.
_TEXT_SUFFIXES = tuple(suffix for suffix, kind in _KINDS.items() if kind in _TEXT_KINDS)
_COMPRESSIONS = (".gz", ".bz2", ".zst")
_BEGINNINGS = {
    b"PAR1": "parquet", b"ARROW1": "feather", b"FEA1": "feather", b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz", b"PK\x05\x06": "npz", b"\x1f\x8b": ".gz", b"BZh": ".bz2",
    b"\x28\xb5\x2f\xfd": ".zst",
}  # fmt: skip
# Module and function that read a kind; they are imported only when they are needed.
_READERS = {
    "csv": ("csv_tables", "read_csv"), "jsonl": ("json_tables", "read_json_lines"),
    "parquet": ("arrow_tables", "read_parquet"), "feather": ("arrow_tables", "read_feather"),
    "npy": ("arrays", "read_arrays"), "npz": ("arrays", "read_arrays"),
}  # fmt: skip
_PIECE = 1 << 22


class TableError(ValueError):
    """A file does not hold a table that can be used; the message says why."""


@dataclass(frozen=True)
class ReadOptions:
    """What a file does not say of itself; None leaves it to the reader to find out.

    Parameters
    ----------
    rows : str or None
        The key of an ``.npz`` file that holds the rows.
    decimal : "." or "," or None
        The decimal mark of a text file.
    encoding : str or None
        The encoding of a text file, as Python calls it.
    header : bool or None
        Whether the first line of a text file names its columns.
    max_size : int or None
        The bytes that a file may become when it is read; None means 4 GiB, or 256 times its own
        size where that is more.

    Raises
    ------
    ValueError
        If there is no such mark or encoding.
    """

    rows: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    max_size: int | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without a file."""
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal must be '.' or ',', got {self.decimal!r}.")
        try:
            b"..".decode(self.encoding or "utf-8")
        except UnicodeError:
            pass  # there is such an encoding, of other bytes
        except (LookupError, ValueError) as error:
            raise ValueError(
                f"encoding: there is no encoding {self.encoding!r}; usual ones are utf-8, "
                "cp1252, latin-1 and utf-16."
            ) from error


@dataclass(frozen=True)
class Table:
    """What a file holds.

    Parameters
    ----------
    path : Path
        The file.
    columns : list of str
        Names of the columns of numbers.
    numbers : array of shape (n_rows, len(columns))
        Their values, NaN where missing.
    words : dict of str to object array
        Columns of text, dates and the like; None where missing. For ``.npz``: other keys.
    named : bool
        Whether the columns have names of their own, so that their order does not matter.
    image_shape : (height, width) or None
        The shape of a row, where the file holds a stack of images.
    notes : list of str
        What the reader should know.
    mixed : dict of str to str
        Columns of words that also hold numbers, each with a message about this likely mistake.
    exact : dict of str to object array
        What columns hold that ``numbers`` does not give back; None where missing. Long whole
        numbers are Python's; in text files, leading zeros ("007"), truth values and infinities
        are texts as written; truth values of typed files are True and False.
    unnamed : frozenset of str
        Columns without a name in a file that names others, called by their place, "column 1".
    index : frozenset of str
        Columns that the file itself says are its index, as pandas notes in Parquet files.
    first_row : int
        The number of the first row in its file, where this is a part of one.
    """

    path: Path
    columns: list[str]
    numbers: Array
    words: dict[str, Array]
    named: bool
    image_shape: tuple[int, int] | None = None
    notes: list[str] = field(default_factory=list)
    mixed: dict[str, str] = field(default_factory=dict)
    exact: dict[str, Array] = field(default_factory=dict)
    unnamed: frozenset[str] = frozenset()
    index: frozenset[str] = frozenset()
    first_row: int = 0

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def place_of(self) -> dict[str, int]:
        """Where each column of numbers stands."""
        return {name: i for i, name in enumerate(self.columns)}

    @property
    def names(self) -> list[str]:
        """All columns, numbers first."""
        return [*self.columns, *self.words]

    def column(self, name: str) -> Array:
        """Return one column, by name: what it holds exactly, else words or floats."""
        for held in (self.exact, self.words):
            if name in held:
                return held[name]
        if name in self.place_of:
            return self.numbers[:, self.place_of[name]]
        raise TableError(f"{self.path} has no column {name!r}; it has {shortened(self.names)}.")


@dataclass(frozen=True)
class TableFile:
    """A file that holds a table of a known kind."""

    path: Path  # as messages call it
    kind: str  # "csv", "jsonl", "parquet", "feather", "npy" or "npz"
    data: bytes | None  # of text and pipes, which are read at once
    budget: Budget


def read_table(
    path: Any, options: ReadOptions | str | None = None, *, max_size: int | None = None
) -> Table:
    """Read a table.

    Parameters
    ----------
    path : str or path
        The file; "-" is standard input.
    options : ReadOptions, str or None
        What the file does not say of itself; a text is the key of the rows in an ``.npz`` file.
    max_size : int, optional
        The bytes that the file may become when it is read; it overrules that of ``options``.

    Returns
    -------
    table : Table
        What the file holds.

    Raises
    ------
    TableError
        If it holds no table; the message says why.
    """
    chosen = options if isinstance(options, ReadOptions) else ReadOptions(rows=options)
    try:
        opened = _open_table(path, chosen.max_size if max_size is None else max_size)
        _check_options(opened, chosen)
        module, reader = _READERS[opened.kind]
        read = getattr(import_module(f"kernelatoms.files.tables.{module}"), reader)
        table: Table = read(opened, chosen)
    except TooLargeError as error:
        raise TableError(f"{path} was not read: {error}.") from error
    if len(table) == 0:
        raise TableError(f"{opened.path} has no rows.")
    if not table.names:
        raise TableError(f"{opened.path} has no columns.")
    return table


def is_table(path: Any) -> bool:
    """Tell whether a file is called as tables are, or is standard input."""
    name = str(path).lower()
    packed = tuple(f"{suffix}{packing}" for suffix in _TEXT_SUFFIXES for packing in _COMPRESSIONS)
    return name == "-" or name.endswith((*_SUFFIXES, *packed))


def is_missing(value: Any) -> bool:
    """Tell whether a value of a column is None or NaN."""
    return value is None or (isinstance(value, float) and value != value)


def shortened(names: Sequence[Any], most: int = 8) -> str:
    """Return names for a message, the first ones if there are many."""
    return first_few([repr(str(name)) for name in names], most)


def first_few(parts: Sequence[str], most: int, more: str = "more") -> str:
    """Return the first parts of an enumeration, and how many more there are."""
    left = len(parts) - most
    return ", ".join(parts[:most]) + (f" and {left:,} {more}" if left > 0 else "")


def repeated(names: Sequence[str]) -> list[str]:
    """Return the names that stood before, at each place where they stand again."""
    seen: set[str] = set()
    found = []
    for name in names:
        found += [name] if name in seen else []
        seen.add(name)
    return found


def first_sentence(error: BaseException, most: int = 300) -> str:
    """Return the first line of an exception's message."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".")[:most] if lines else type(error).__name__


def _check_options(opened: TableFile, chosen: ReadOptions) -> None:
    """Refuse options that are for files of other kinds."""
    if chosen.rows is not None and opened.kind != "npz":
        raise TableError(f"rows: {opened.path} is no .npz file, so it has no keys.")
    for option in ("decimal", "encoding", "header"):
        kinds = _TEXT_KINDS if option == "encoding" else ("csv",)
        if getattr(chosen, option) is not None and opened.kind not in kinds:
            raise TableError(f"{option}: {opened.path} is no table of text.")


def _open_table(path: Any, max_size: int | None = None) -> TableFile:
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
    if suffix in _COMPRESSIONS:
        suffix, packing = Path(path.stem).suffix.lower(), suffix
    if suffix not in (_TEXT_SUFFIXES if packing else _SUFFIXES):
        raise TableError(
            f"{path} must end with {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]} (those of text "
            f"also with {' or '.join(_COMPRESSIONS)} behind), so that it is clear how to read it; "
            "through standard input (-) it is recognised by its first bytes."
        )
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
    budget = Budget(path.stat().st_size, max_size)
    if suffix not in _TEXT_SUFFIXES:
        return TableFile(path, _KINDS[suffix], None, budget)
    data = path.read_bytes()
    data = _unpacked(path, data, packing, budget) if packing else data
    is_really = _kind_of(data)
    if is_really not in _TEXT_KINDS:
        what = f"it begins as .{is_really.removeprefix('.')} files do. Call it so."
        raise TableError(f"{path} is a binary file, not a table of text: {what}")
    return TableFile(path, _KINDS[suffix], data, budget)


def _from_bytes(path: Path, data: bytes, max_size: int | None) -> TableFile:
    """Return which kind of table bytes are that came without a name."""
    budget = Budget(len(data), max_size)
    kind = _kind_of(data)
    if kind in _COMPRESSIONS:
        data = _unpacked(path, data, kind, budget)
        kind = _kind_of(data)
    if not data:
        raise TableError(f"{path} is empty.")
    if kind in _COMPRESSIONS:
        raise TableError(f"{path} is compressed twice.")
    return TableFile(path, kind, data, budget)


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
        raise TableError(
            f"{path} cannot be unpacked (damaged, cut short or of another kind): "
            f"{first_sentence(error, 200)}."
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
