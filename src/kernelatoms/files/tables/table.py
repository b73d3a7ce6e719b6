"""Tables from files: numbers in one matrix, words in columns of their own.

- ``.csv``, ``.tsv``, ``.txt``: a line of names, then the rows; commas, semicolons, tabs, bars or
  spaces between fields, quotes around them where needed. Without a line of names columns are
  called 0, 1, ...
- ``.jsonl``, ``.ndjson``: one object per line. All these also as ``.gz``, ``.bz2`` or ``.zst``.
- ``.parquet``, ``.feather``, ``.arrow``: as they are.
- ``.npy``: a matrix, columns called 0, 1, ...; a stack of images becomes one row per image.
- ``.npz``: rows under one key, labels and the like under others; or a sparse matrix of scipy.
- ``-``: standard input, any of these, recognised by its first bytes.

An empty field, ``NA``, ``NaN``, ``null`` or ``?`` is a missing value, NaN in the matrix.

See docs/decisions/056-exact-tables.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from kernelatoms.limits import TooLargeError

if TYPE_CHECKING:
    from kernelatoms.files.tables.opening import OpenedTable

Array = NDArray[Any]

#: Endings of tables of text, which may be compressed, and of all others.
TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson")
SUFFIXES = (*TEXT_SUFFIXES, ".parquet", ".feather", ".arrow", ".npy", ".npz")
COMPRESSIONS = (".gz", ".bz2", ".zst")


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
        The bytes that a file may become when it is read; None means 4 GiB, or 256 times its
        own size where that is more.

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
            known = True
        except (LookupError, ValueError) as error:
            known = isinstance(error, UnicodeError)  # there is such an encoding of other bytes
        if not known:
            raise ValueError(
                f"encoding: there is no encoding {self.encoding!r}; usual ones are utf-8, "
                "cp1252, latin-1 and utf-16."
            )


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
        Columns of words that also hold numbers: most likely a mistake, described in a message for
        those who want to use them.
    exact : dict of str to object array
        What columns of numbers hold exactly, wherever ``numbers`` would not give it back; None
        where missing. Whole numbers too long for it are Python's; of text files, columns with
        leading zeros ("007"), truth values and infinities are texts as written; truth values of
        typed files are True and False.
    unnamed : frozenset of str
        Columns that the file does not name, in a file that names others; they are called by
        their place, "column 1".
    index : frozenset of str
        Columns that the file itself says are its index, as pandas notes in Parquet files.
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
        if name in self.exact:
            return self.exact[name]
        if name in self.words:
            return self.words[name]
        if name in self.place_of:
            return self.numbers[:, self.place_of[name]]
        raise TableError(f"{self.path} has no column {name!r}; it has {shortened(self.names)}.")


def read_table(
    path: Any, options: ReadOptions | str | None = None, *, max_size: int | None = None
) -> Table:
    """Read a table.

    Parameters
    ----------
    path : str or path
        The file; "-" is standard input.
    options : ReadOptions, str or None
        What the file does not say of itself; a text is the key of an ``.npz`` file that holds the
        rows.
    max_size : int, optional
        The bytes that the file may become when it is read, before what ``options`` say. The
        default is 4 GiB, or 256 times its own size where that is more.

    Returns
    -------
    table : Table
        What the file holds.

    Raises
    ------
    TableError
        If it holds no table; the message says why.
    """
    from kernelatoms.files.tables.opening import open_table

    chosen = options if isinstance(options, ReadOptions) else ReadOptions(rows=options)
    try:
        opened = open_table(path, chosen.max_size if max_size is None else max_size)
        _check_options(opened, chosen)
        table = opened.read(chosen)
    except TooLargeError as error:
        raise TableError(f"{path} was not read: {error}.") from error
    if len(table) == 0:
        raise TableError(f"{opened.path} has no rows.")
    if not table.names:
        raise TableError(f"{opened.path} has no columns.")
    return table


def _check_options(opened: "OpenedTable", chosen: ReadOptions) -> None:
    """Refuse options that are for files of other kinds."""
    if chosen.rows is not None and opened.kind != "npz":
        raise TableError(f"rows: {opened.path} is no .npz file, so it has no keys.")
    for option in ("decimal", "encoding", "header"):
        kinds = ("csv", "jsonl") if option == "encoding" else ("csv",)
        if getattr(chosen, option) is not None and opened.kind not in kinds:
            raise TableError(f"{option}: {opened.path} is no table of text.")


def is_table(path: Any) -> bool:
    """Tell whether a file is called as tables are, or is standard input."""
    name = str(path).lower()
    packed = tuple(f"{suffix}{packing}" for suffix in TEXT_SUFFIXES for packing in COMPRESSIONS)
    return name == "-" or name.endswith((*SUFFIXES, *packed))


def shortened(names: Sequence[str], most: int = 8) -> str:
    """Return names for a message, the first ones if there are many."""
    shown = ", ".join(repr(str(name)) for name in names[:most])
    return shown + (f" and {len(names) - most:,} more" if len(names) > most else "")
