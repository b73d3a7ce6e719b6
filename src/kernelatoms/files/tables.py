"""Tables from files: numbers in one matrix, words in columns of their own.

- ``.csv`` (and ``.tsv``): a line of names, then the rows; commas, semicolons, tabs or bars between
  fields, quotes around them where needed. Without a line of names columns are called 0, 1, ...
- ``.parquet``: as it is.
- ``.npy``: a matrix, columns called 0, 1, ...; a stack of images becomes one row an image.
- ``.npz``: rows under one key, labels and the like under others.

An empty field, ``NA``, ``NaN``, ``null`` or ``?`` is a missing value, NaN in the matrix.
"""

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.files.arrays import UnreadableError, check_expansion, read_npy, read_npz

Array = NDArray[Any]

SUFFIXES = (".csv", ".tsv", ".parquet", ".npy", ".npz")

DELIMITERS = ",;\t|"
MISSING_WORDS = ["", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "None"]
# A row must fit into a block; wide files have rows of megabytes.
_BLOCK_BYTES = 64 * 2**20


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

    Raises
    ------
    ValueError
        If there is no such mark or encoding.
    """

    rows: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without a file."""
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"--decimal must be . or , and is {self.decimal!r}.")
        try:
            known = self.encoding is None or b"".decode(self.encoding) == ""
        except (LookupError, ValueError):
            known = False
        if not known:
            raise ValueError(
                f"--encoding: there is no encoding {self.encoding!r}; usual ones are utf-8, "
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
        whoever wants to use them.
    exact : dict of str to array
        Columns of whole numbers too long for ``numbers``, which rounds them: identifiers.
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
        """Return one column, by name; words are objects, numbers floats, long ones exact."""
        if name in self.exact:
            return self.exact[name]
        if name in self.words:
            return self.words[name]
        if name in self.place_of:
            return self.numbers[:, self.place_of[name]]
        raise TableError(f"{self.path} has no column {name!r}; it has {shortened(self.names)}.")


def read_table(path: Any, options: ReadOptions | str | None = None) -> Table:
    """Read a table.

    Parameters
    ----------
    path : str or path
        The file; "-" is standard input.
    options : ReadOptions, str or None
        What the file does not say of itself; a text is the key of an ``.npz`` file that holds the
        rows.

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
    rows = chosen.rows
    path = Path(path)
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file in it.")
    if not path.exists():
        raise TableError(f"there is no file {path}.")
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise TableError(
            f"{path} must end with {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, so that it is "
            "clear how to read it."
        )
    if rows is not None and suffix != ".npz":
        raise TableError(f"--rows names a key of an .npz file, but {path} is none.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
    if suffix == ".npz":
        table = _read_npz(path, rows)
    elif suffix == ".npy":
        table = _read_npy(path)
    elif suffix == ".parquet":
        table = _read_parquet(path)
    else:
        table = _read_csv(path)
    if len(table) == 0:
        raise TableError(f"{path} has no rows.")
    return table


def is_table(path: Any) -> bool:
    """Tell whether a file is called as tables are, or is standard input."""
    return str(path) == "-" or Path(path).suffix.lower() in SUFFIXES


def shortened(names: Sequence[str], most: int = 8) -> str:
    """Return names for a message, the first ones if there are many."""
    shown = ", ".join(repr(str(name)) for name in names[:most])
    return shown + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _read_csv(path: Path) -> Table:
    from pyarrow import ArrowException
    from pyarrow import csv as arrow_csv

    delimiter, header = _first_line(path)
    numbered = is_row_of_numbers(header)
    notes = []
    if numbered:
        names = [str(i) for i in range(len(header))]
        notes.append(f"{path} starts with numbers, not names: its columns are called 0, 1, ...")
    else:
        names = [name.strip() or f"column {i}" for i, name in enumerate(header, start=1)]
    unnamed = frozenset(
        name for name, given in zip(names, header, strict=True) if not given.strip()
    )
    _refuse_twins(path, names)
    try:
        arrow = arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(
                column_names=names, skip_rows=0 if numbered else 1, block_size=_BLOCK_BYTES
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                null_values=MISSING_WORDS, strings_can_be_null=True
            ),
        )
    except (ArrowException, ValueError, OSError) as error:
        if "empty" in str(error).lower():
            raise TableError(f"{path} has a line of names but no rows.") from error
        raise TableError(
            f"{path} cannot be read as a table: {_first_sentence(error)}. Every line needs as many "
            f"fields as the first one ({len(names)}); text needs the encoding UTF-8."
        ) from error
    for name, kind in zip(arrow.column_names, arrow.schema.types, strict=True):
        if str(kind) == "binary":
            raise TableError(f"{path}: the column {name!r} is no text in the encoding UTF-8.")
    return Table(path, **_from_arrow(path, arrow), named=not numbered, notes=notes, unnamed=unnamed)


def _read_parquet(path: Path) -> Table:
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(path) as file:
            # Repeated values take next to no room in the file, and eight bytes each here.
            check_expansion(path, 8 * file.metadata.num_rows * file.metadata.num_columns)
            arrow = file.read()
            arrow.validate(full=True)  # text that is no UTF-8, say
    except (ArrowException, ValueError, OSError) as error:
        raise TableError(
            f"{path} cannot be read as a Parquet file (damaged, cut short or of another kind): "
            f"{_first_sentence(error)}."
        ) from error
    _refuse_twins(path, arrow.column_names)
    noted = (arrow.schema.pandas_metadata or {}).get("index_columns", [])
    # An index that only counts the rows is noted as a dictionary, and is no column of the file.
    index = frozenset(name for name in noted if isinstance(name, str))
    return Table(path, **_from_arrow(path, arrow), named=True, index=index)


def _from_arrow(path: Path, arrow: Any) -> dict[str, Any]:
    """Part columns of numbers from columns of words."""
    import pyarrow

    types = pyarrow.types
    columns, series = [], []
    words: dict[str, Array] = {}
    mixed: dict[str, str] = {}
    for name, column in zip(arrow.column_names, arrow.columns, strict=True):
        kind = column.type
        if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
            columns.append(name)
            series.append(column)
        elif types.is_decimal(kind):
            columns.append(name)
            series.append(column.cast(pyarrow.float64()))
        else:
            # An all-empty column has no type; it is left to whoever asks for it.
            words[name] = _objects(column)
            if types.is_string(kind) or types.is_large_string(kind):
                trouble = _mixture(path, name, words[name])
                mixed |= {name: trouble} if trouble else {}
    numbers = np.empty((arrow.num_rows, len(columns)))
    exact: dict[str, Array] = {}
    for i, column in enumerate(series):
        if types.is_integer(column.type) and _is_long(column):
            exact[columns[i]] = _objects(column)
        if types.is_boolean(column.type):
            column = column.cast(pyarrow.int8())
        numbers[:, i] = column.cast(pyarrow.float64(), safe=False).to_numpy()
    return {
        "columns": columns, "numbers": numbers, "words": words, "mixed": mixed, "exact": exact,
    }  # fmt: skip


def _objects(column: Any) -> Array:
    """Return one Python object a row, lists too."""
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return values


def _is_long(column: Any) -> bool:
    """Tell whether whole numbers are too long for float64."""
    from pyarrow import compute

    ends = compute.min_max(column).as_py()
    return any(end is not None and abs(end) > 2**53 for end in ends.values())


def _mixture(path: Path, name: str, values: Array) -> str:
    """Describe a column that is numbers here and words there: only its owner can mend it."""
    present = [(i, value) for i, value in enumerate(values) if value is not None]
    numeric = [_is_number(value) for _, value in present]
    if present and all(_is_number(value.replace(",", ".", 1)) for _, value in present):
        return f"{path}: the column {name!r} uses decimal commas ({present[0][1]!r}); write points."
    if any(numeric) and not all(numeric):
        row, value = present[numeric.index(False)]
        return (
            f"{path}: the column {name!r} holds numbers and words: {value!r} in row {row + 1}. "
            f"Correct it, leave it empty if it is missing, or leave the column out with --ignore "
            f"{name!r}."
        )
    return ""


def _read_npy(path: Path) -> Table:
    return _from_array(path, _load(read_npy, path), {})


def _read_npz(path: Path, rows: str | None) -> Table:
    arrays = _load(read_npz, path)
    if rows is None:
        rows = _guess_rows(path, arrays)
    if rows not in arrays:
        raise TableError(f"{path} has no key {rows!r}; it has {shortened(list(arrays))}.")
    chosen = np.asarray(arrays[rows])
    beside = {
        key: np.asarray(array)
        for key, array in arrays.items()
        if key != rows and np.shape(array) == chosen.shape[:1]
    }
    return _from_array(path, chosen, beside)


def _guess_rows(path: Path, arrays: dict[str, Any]) -> str:
    if "X" in arrays:
        return "X"
    matrices = [key for key, array in arrays.items() if np.ndim(array) >= 2]
    if len(matrices) != 1:
        raise TableError(
            f"{path} holds {shortened(list(arrays))}; say which key holds the rows with --rows KEY."
        )
    return matrices[0]


def _load(read: Callable[[Path], Any], path: Path) -> Any:
    try:
        return read(path)
    except UnreadableError as error:
        raise TableError(
            f"{path} cannot be read as a NumPy file (damaged, cut short, of another kind, or made "
            f"of Python objects): {error}."
        ) from error


def _from_array(path: Path, array: Array, beside: dict[str, Array]) -> Table:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "buif":
        raise TableError(f"{path} must hold numbers, but its rows have dtype {array.dtype}.")
    if array.ndim not in (2, 3):
        raise TableError(
            f"{path} must hold a matrix (rows x columns) or a stack of images (rows x height x "
            f"width), but its shape is {array.shape}."
        )
    if 0 in array.shape[1:]:
        raise TableError(f"{path} has no columns: its shape is {array.shape}.")
    image_shape = (array.shape[1], array.shape[2]) if array.ndim == 3 else None
    flat = array.reshape(len(array), math.prod(array.shape[1:]))
    # float32 holds small whole numbers exactly, and is twice as fast.
    small = flat.dtype.kind in "bui" and flat.dtype.itemsize <= 2
    dtype = np.float32 if small or flat.dtype in (np.float16, np.float32) else np.float64
    columns = [str(i) for i in range(flat.shape[1])]
    return Table(
        path, columns, flat.astype(dtype, copy=False), beside, named=False, image_shape=image_shape
    )


def _first_line(path: Path) -> tuple[str, list[str]]:
    """Return the delimiter and the fields of the first line."""
    with path.open("rb") as file:
        start = file.readline(_BLOCK_BYTES)
    if b"\0" in start:
        raise TableError(f"{path} is a binary file, not a table of text.")
    try:
        text = start.decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path} is no text in the encoding UTF-8 ({error.reason}); is it a binary file?"
        ) from error
    if not text.strip():
        raise TableError(f"the first line of {path} is empty; it must name the columns.")
    outside_quotes = re.sub(r'"[^"]*"', "", text)
    best = max(DELIMITERS, key=outside_quotes.count)
    try:
        return best, next(csv.reader(io.StringIO(text), delimiter=best))
    except csv.Error as error:
        raise TableError(f"the first line of {path} does not name columns ({error}).") from error


def _refuse_twins(path: Path, names: Sequence[str]) -> None:
    seen: set[str] = set()
    twins = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if twins:
        raise TableError(f"{path} has more than one column called {shortened(twins)}; rename them.")


def is_row_of_numbers(cells: Sequence[str]) -> bool:
    """Tell whether a first line holds numbers, some perhaps missing, instead of names.

    pandas writes 0, 1, 2, ... above columns without names, and nothing above their index: with
    an empty cell these are names.
    """
    numbers = [cell for cell in cells if _is_number(cell)]
    missing = [cell for cell in cells if cell.strip() in MISSING_WORDS and cell not in numbers]
    if not numbers or len(numbers) + len(missing) < len(cells):
        return False
    return not missing or [cell.strip() for cell in numbers] != [
        str(i) for i in range(len(numbers))
    ]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first_sentence(error: BaseException) -> str:
    words = str(error).strip().splitlines()
    return words[0].rstrip(".")[:300] if words else type(error).__name__
