"""NumPy files: arrays read within bounds, and the tables that they hold.

``np.load`` allocates what a header promises before it checks that the file holds as much, and its
parser raises exceptions of many kinds. ``read_npy`` and ``read_npz`` compare sizes first.
``read_arrays`` makes a table of a matrix, a stack of images, arrays by key or a sparse matrix.
"""

import io
import math
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.features.memory import check_fits
from kernelatoms.files.tables.table import (
    ReadOptions,
    Table,
    TableError,
    TableFile,
    first_sentence,
    shortened,
)
from kernelatoms.limits import Budget, TooLargeError

_MOST_EMPTY = 1 << 20


class UnreadableError(ValueError):
    """A file does not hold what its header says; the message omits the file's name."""


def read_npy(source: Path | bytes) -> Array:
    """Return the array of an ``.npy`` file, or of the bytes of one."""
    if isinstance(source, bytes):
        held = io.BytesIO(source)
        return _array(
            held, len(source),
            lambda count, dtype: np.frombuffer(source, dtype, count, held.tell()).copy(),
        )  # fmt: skip
    with source.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return _array(file, size, lambda count, dtype: np.fromfile(file, dtype, count))


def read_npz(source: Path | bytes, max_size: int | None = None) -> dict[str, Array]:
    """Return the arrays of an ``.npz`` file, or of the bytes of one, by key, up to ``max_size``."""
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            Budget(size, max_size).check(sum(member.file_size for member in members))
            return {member.filename.removesuffix(".npy"): _member(archive, member)
                    for member in members}  # fmt: skip
    except (UnreadableError, TooLargeError, MemoryError):
        raise
    except Exception as error:
        # Broken archives make zipfile raise exceptions of all kinds.
        raise UnreadableError(first_sentence(error)) from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    # A member never gives more bytes than it declares.
    with archive.open(member) as file:

        def fill(count: int, dtype: np.dtype[Any]) -> Array:
            array = np.empty(count, dtype)
            buffer, filled = array.view(np.uint8), 0
            while filled < len(buffer):
                part = file.read(min(len(buffer) - filled, 1 << 24))
                if not part:
                    raise UnreadableError("it is cut short")
                buffer[filled : filled + len(part)] = np.frombuffer(part, np.uint8)
                filled += len(part)
            return array

        return _array(file, member.file_size, fill)


def read_header(file: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether columns come first, and dtype of the array that fills a file's rest."""
    try:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError("it holds no plain numbers")
        shape, columns_first, dtype = _HEADERS[version](file)
    except Exception as error:
        # The header is a Python expression, parsed in ways that fail in many ways.
        raise UnreadableError(first_sentence(error)) from error
    if dtype.hasobject or dtype.itemsize == 0:
        raise UnreadableError(f"it is made of {dtype}, and not of numbers")
    follow = size - file.tell()
    # Dimensions beside one of 0 take no bytes; no honest file has large ones.
    empty = math.prod(max(side, 1) for side in shape) if 0 in shape else 0
    right = math.prod(shape) * dtype.itemsize == follow and empty <= _MOST_EMPTY
    if not right or min(shape, default=0) < 0:
        raise UnreadableError(
            f"it promises an array of shape {shape} and dtype {dtype}, but {follow:,} bytes follow"
        )
    return shape, columns_first, dtype


def _array(file: IO[bytes], size: int, fill: Callable[[int, np.dtype[Any]], Array]) -> Array:
    """Read a header and the numbers that it declares."""
    shape, columns_first, dtype = read_header(file, size)
    if 0 in shape:
        return np.empty(shape, dtype)
    return fill(math.prod(shape), dtype).reshape(shape, order="F" if columns_first else "C")


_HEADERS: dict[tuple[int, int], Callable[[Any], tuple[tuple[int, ...], bool, np.dtype[Any]]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_arrays(file: TableFile, options: ReadOptions) -> Table:
    """Read an ``.npy`` or ``.npz`` file; ``options.rows`` is the key of the rows."""
    path, rows = file.path, options.rows
    source = path if file.data is None else file.data
    try:
        if file.kind == "npy":
            return table_of_array(path, read_npy(source), {})
        arrays = read_npz(source, file.budget.max_size)
    except UnreadableError as error:
        raise TableError(
            f"{path} cannot be read as a NumPy file (damaged, cut short, of another kind, or made "
            f"of Python objects): {error}."
        ) from error
    if rows is None and {"format", "shape", "data"} <= set(arrays):
        return table_of_array(path, _dense(path, arrays, file.budget), {})
    rows = rows if rows is not None else _guess_rows(path, arrays)
    if rows not in arrays:
        raise TableError(f"{path} has no key {rows!r}; it has {shortened(list(arrays))}.")
    length = arrays[rows].shape[:1]
    beside = {key: array for key, array in arrays.items() if key != rows and array.shape == length}
    return table_of_array(path, arrays[rows], beside)


def _guess_rows(path: Path, arrays: dict[str, Array]) -> str:
    if "X" in arrays:
        return "X"
    matrices = [key for key, array in arrays.items() if array.ndim >= 2]
    if len(matrices) != 1:
        raise TableError(
            f"{path} holds {shortened(list(arrays))}; choose the key of the rows by rows='KEY'."
        )
    return matrices[0]


def _dense(path: Path, arrays: dict[str, Array], budget: Budget) -> Array:
    """Return a sparse matrix of ``scipy.sparse.save_npz`` as a dense one."""
    try:
        form, values = bytes(arrays["format"].item()).decode(), arrays["data"]
        sides = [int(side) for side in arrays["shape"]]
        if len(sides) != 2 or min(sides) < 0 or values.dtype.kind not in "buif":
            raise ValueError(f"shape {sides}, values of dtype {values.dtype}")
        if form not in ("csr", "csc", "bsr", "coo", "dia"):
            raise ValueError(f"format {form!r}")
    except (ValueError, TypeError, OverflowError) as error:
        raise TableError(f"{path} is no sparse matrix of numbers ({error}).") from error
    n_rows, n_columns = sides
    budget.check(8 * n_rows * n_columns)
    check_fits(
        8.0 * n_rows * n_columns,
        f"the {n_rows:,} x {n_columns:,} values of the sparse matrix {path} with its zeros",
        "Keep fewer rows or columns.",
    )
    dense = np.zeros((n_rows, n_columns), values.dtype)
    try:
        if form == "coo":
            held = arrays["coords"] if "coords" in arrays else (arrays["row"], arrays["col"])
            rows, columns = held
            _add(dense, rows, columns, values)
        elif form == "dia":
            for offset, diagonal in zip(arrays["offsets"].tolist(), values, strict=True):
                columns = np.arange(max(offset, 0), min(n_columns, n_rows + offset, len(diagonal)))
                dense[columns - offset, columns] += diagonal[columns]
        elif form == "csc":
            _add(dense.T, *_lines(arrays, n_columns), values)
        elif form == "csr":
            _add(dense, *_lines(arrays, n_rows), values)
        else:
            _, height, width = values.shape
            blocks = dense.reshape(n_rows // height, height, n_columns // width, width)
            _add(blocks.transpose(0, 2, 1, 3), *_lines(arrays, n_rows // height), values)
    except (ValueError, TypeError, LookupError, ZeroDivisionError) as error:
        raise TableError(f"{path} is no sparse matrix that can be read ({error}).") from error
    return dense


def _lines(arrays: dict[str, Array], n_lines: int) -> tuple[Array, Array]:
    """Return line and place of each value, checked: scipy believes what files say."""
    starts = arrays["indptr"]
    lengths = np.diff(starts)
    if starts.shape != (n_lines + 1,) or starts.dtype.kind not in "ui" or starts[0] != 0:
        raise ValueError(f"lines begin at {starts}")
    if (starts[1:] < starts[:-1]).any() or starts[-1] != len(arrays["data"]):
        raise ValueError(f"{len(arrays['data'])} values, lines that end at {starts[-1]}")
    return np.repeat(np.arange(n_lines), lengths), arrays["indices"]


def _add(dense: Array, rows: Array, columns: Array, values: Array) -> None:
    for places, side in ((rows, dense.shape[0]), (columns, dense.shape[1])):
        if places.shape != values.shape[:1] or places.dtype.kind not in "ui":
            raise ValueError(f"{len(values)} values, places of shape {places.shape}")
        if len(places) and not 0 <= places.min() <= places.max() < side:
            raise ValueError(f"a place beyond {side}")
    np.add.at(dense, (rows, columns), values)


def table_of_array(path: Path, array: Array, beside: dict[str, Array] | None = None) -> Table:
    """Return the table of a matrix or a stack of images, and of what is beside it by key."""
    if array.dtype.kind not in "buif":
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
        path, columns, flat.astype(dtype, copy=False), beside or {}, named=False,
        image_shape=image_shape, exact=_exact_columns(flat),
    )  # fmt: skip


def _exact_columns(flat: Array) -> dict[str, Array]:
    """Return the columns of integers too long for float64; truth values are 0 and 1."""
    if flat.dtype.kind not in "ui" or flat.dtype.itemsize < 8 or not flat.size:
        return {}
    most, least = flat.max(axis=0), flat.min(axis=0)
    long = np.flatnonzero((most > 2**53) | (least < -(2**53)))
    return {str(i): flat[:, i].astype(object) for i in long.tolist()}
