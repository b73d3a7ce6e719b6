"""Files beside tables and models: predictions and rows as columns, sparse codes, images."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import scipy.sparse

from kernelatoms.engine import Array
from kernelatoms.features.memory import check_fits
from kernelatoms.files.tables.arrays import read_npy, read_npz
from kernelatoms.files.tables.table import TableError, read_table
from kernelatoms.files.writing import write_whole
from kernelatoms.limits import TooLargeError

RESULT_SUFFIXES = (".csv", ".parquet", ".npy", ".npz")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
CODE_SUFFIXES = (".npz", ".npy", ".csv", ".parquet")

TRIPLES = ["row", "atom", "coefficient"]
_CSR = {"data", "indices", "indptr", "shape", "format"}


def check_codes_fit(path: Path, n_rows: int, n_atoms: int) -> None:
    """Refuse codes that do not fit in memory in the form that the suffix asks for."""
    if path.suffix.lower() == ".npy":
        check_fits(
            16.0 * n_rows * n_atoms,  # the array and the file, in double precision
            f"dense codes of {n_rows} rows over {n_atoms} atoms",
            "Write them sparse, to an .npz file, or code fewer rows at a time.",
        )


def write_columns(target: Path | TextIO, columns: Mapping[str, Any]) -> None:
    """Write columns of equal length, to a stream as CSV; to ``.npy`` the predictions only."""
    if not isinstance(target, Path):
        write_csv(target, columns)
        return
    suffix = target.suffix.lower()
    if suffix == ".csv":
        text = io.StringIO()
        write_csv(text, columns)
        write_whole(target, text.getvalue().encode())
    elif suffix == ".parquet":
        write_whole(target, _parquet(columns))
    else:
        plain = {name: without_objects(np.asarray(values)) for name, values in columns.items()}
        write_whole(target, _numpy_bytes(plain["prediction"] if suffix == ".npy" else plain))


def write_codes(path: Path | TextIO, codes: Any) -> None:
    """Write codes as an array or as a table of (row, atom, coefficient); to a stream as CSV."""
    suffix = path.suffix.lower() if isinstance(path, Path) else ".csv"
    if not scipy.sparse.issparse(codes):
        write_rows(path, codes, [f"component {i}" for i in range(codes.shape[1])], {})
    elif suffix == ".npy":
        write_whole(path, _numpy_bytes(codes.toarray()))
    elif suffix == ".npz":
        data = io.BytesIO()
        scipy.sparse.save_npz(data, scipy.sparse.csr_array(codes))
        write_whole(path, data.getvalue())
    else:
        triples = codes.tocoo()
        write_columns(
            path, dict(zip(TRIPLES, (triples.row, triples.col, triples.data), strict=True))
        )


def write_rows(
    target: Path | TextIO, rows: Any, names: Sequence[str], beside: Mapping[str, Any]
) -> None:
    """Write rows of numbers and, to tables, the columns ``beside`` them; to a stream as CSV."""
    suffix = target.suffix.lower() if isinstance(target, Path) else ".csv"
    if suffix in (".npy", ".npz"):
        write_whole(target, _numpy_bytes(rows if suffix == ".npy" else {"X": rows}))
    else:
        write_columns(target, {**beside, **dict(zip(names, rows.T, strict=True))})


def write_csv(stream: TextIO, columns: Mapping[str, Any], *, names: bool = True) -> None:
    """Write columns of equal length as CSV, with or without a line of their names."""
    writer = csv.writer(stream, lineterminator="\n")
    if names:
        writer.writerow(columns)
    lists = [_tidy(np.asarray(values)) for values in columns.values()]
    writer.writerows(zip(*lists, strict=True))


def _tidy(values: Any) -> list[Any]:
    """Return values for reading: 7 for 7.0 in columns of integers, nothing for missing ones."""
    if values.dtype.kind == "f" and values.dtype.itemsize == 4:
        # The shortest text that gives the same float32 back.
        return ["" if np.isnan(v) else str(v) for v in values]
    return ["" if v is None else repr(v) if isinstance(v, float) else v for v in _whole(values)]


def _whole(values: Any) -> list[Any]:
    """Return Python values: integers for floats if all are integers, None where missing."""
    if values.dtype.kind != "f":
        return list(values.tolist())
    missing = np.isnan(values)
    present = values[~missing]
    is_whole = np.all(present == np.round(present)) and np.all(np.abs(present) < 2**53)
    plain = int if is_whole else float
    return [None if gone else plain(v) for v, gone in zip(values.tolist(), missing, strict=True)]


def _parquet(columns: Mapping[str, Any]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    data = io.BytesIO()
    parquet.write_table(pyarrow.table(arrow_columns(columns)), data)
    return data.getvalue()


def arrow_columns(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns of Arrow's."""
    return {name: _arrow(np.asarray(values)) for name, values in columns.items()}


def _arrow(values: Any) -> Any:
    """Return a column of Arrow's; of texts, if its values have no common type."""
    import pyarrow

    if values.dtype.kind == "f" and values.dtype.itemsize == 4:
        return pyarrow.array(values, from_pandas=True)
    plain = _whole(values)
    try:
        return pyarrow.array(plain)
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array([None if v is None else str(v) for v in plain])


def without_objects(values: Any) -> Any:
    """Return texts instead of objects, which NumPy files hold as pickles only."""
    texts = values.dtype.kind == "O"
    return np.array(["" if v is None else str(v) for v in values]) if texts else values


def _numpy_bytes(content: Any) -> bytes:
    data = io.BytesIO()
    if isinstance(content, dict):
        np.savez_compressed(data, allow_pickle=False, **content)
    else:
        np.save(data, content, allow_pickle=False)
    return data.getvalue()


def read_codes(path: Path, n_atoms: int, *, max_size: int | None = None) -> Any:
    """Read codes over ``n_atoms`` atoms, in any form that ``write_codes`` writes.

    ``.npz``: a CSR matrix of scipy's, or a dense array "X"; ``.npy``: a dense array; ``.csv`` and
    ``.parquet``: columns row, atom and coefficient (without trailing rows that use no atom), or a
    column per component. Raises ``TableError`` if the file holds no such codes.
    """
    suffix = path.suffix.lower()
    if suffix not in CODE_SUFFIXES:
        raise TableError(f"{path}: codes are in {', '.join(CODE_SUFFIXES)} files.")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        if suffix == ".npz":
            codes = _from_archive(read_npz(path, max_size))
        elif suffix == ".npy":
            codes = read_npy(path)
        else:
            codes = _from_table(path, n_atoms, max_size)
    except TableError:
        raise
    except TooLargeError as error:
        raise TableError(f"{path} was not read: {error}.") from error
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise TableError(f"{path} does not hold codes: {error}") from error
    if codes.ndim != 2 or codes.dtype.kind not in "fiu" or codes.shape[1] != n_atoms:
        raise TableError(
            f"{path} holds {'x'.join(map(str, codes.shape))} {codes.dtype} numbers, and codes of "
            f"this model have {n_atoms:,} columns, one per atom; were they made with another model?"
        )
    return codes


def _from_archive(arrays: dict[str, Array]) -> Any:
    if not set(arrays) >= _CSR:
        if set(arrays) == {"X"}:
            return arrays["X"]
        raise ValueError("it has no sparse matrix, nor an array X.")
    kind = arrays["format"].item()
    if (kind.decode() if isinstance(kind, bytes) else str(kind)) != "csr":
        raise ValueError("its sparse matrix is not in CSR form.")
    shape = tuple(int(side) for side in arrays["shape"].ravel())
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    codes = scipy.sparse.csr_array(parts, shape=shape)
    codes.check_format(full_check=True)
    return codes


def _from_table(path: Path, n_atoms: int, max_size: int | None) -> Any:
    table = read_table(path, max_size=max_size)
    if table.columns != TRIPLES:
        if table.words:
            raise ValueError("it has columns of words.")
        return table.numbers
    rows, atoms, values = table.numbers.T
    whole = np.array_equal(table.numbers[:, :2], np.rint(table.numbers[:, :2]))
    if not (whole and np.isfinite(table.numbers).all() and rows.min() >= 0):
        raise ValueError("rows and atoms must be whole numbers from 0 on, coefficients finite.")
    if atoms.min() < 0 or atoms.max() >= n_atoms:
        odd = int(atoms.max() if atoms.max() >= n_atoms else atoms.min())
        raise ValueError(f"it names atom {odd}, and the model has {n_atoms:,}, counted from 0.")
    if rows.max() >= 2**31:
        raise ValueError(f"row {rows.max():.0f} is beyond what can be held.")
    shape = (int(rows.max()) + 1, n_atoms)
    places = (rows.astype(np.intp), atoms.astype(np.intp))
    return scipy.sparse.coo_array((values, places), shape=shape).tocsr()


@dataclass(frozen=True)
class Picture:
    """Pixels: uint8, or uint16 of deeper grey images."""

    pixels: Array  # (height, width), or (height, width, 3) in colour
    alpha: Array | None = None  # (height, width), the opacity if the file has it


def read_image(path: Path) -> Picture:
    """Read an image, the right way up; ValueError if the file holds none."""
    from PIL import Image, ImageOps

    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        with Image.open(path) as opened:
            image = ImageOps.exif_transpose(opened)
            if image.mode in ("I;16", "I;16B", "I;16L", "I"):
                values = np.asarray(image)
                if values.min(initial=0) < 0 or values.max(initial=0) > np.iinfo(np.uint16).max:
                    raise ValueError("its grey values do not fit into 16 bits")
                return Picture(values.astype(np.uint16))
            colours = "L" if image.mode in ("1", "L", "LA") else "RGB"
            see_through = image.mode in ("LA", "RGBA", "PA") or "transparency" in image.info
            values = np.asarray(image.convert(colours + "A" * see_through))
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} cannot be read as an image: {error}.") from error
    if not see_through:
        return Picture(values)
    pixels = values[..., 0] if colours == "L" else values[..., :-1]
    return Picture(np.ascontiguousarray(pixels), values[..., -1])


def read_array(path: Path, rows: str | None, *, max_size: int | None = None) -> Array:
    """Return the one array of an ``.npy`` or ``.npz`` file, or that of the key ``rows``."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    if path.suffix.lower() == ".npy":
        if rows is not None:
            raise ValueError(f"rows: {path} is no .npz file, so it has no keys.")
        return read_npy(path)
    try:
        arrays = read_npz(path, max_size)
    except TooLargeError as error:
        raise ValueError(f"{path} was not read: {error}.") from error
    if rows is None and len(arrays) == 1:
        return next(iter(arrays.values()))
    if rows not in arrays:
        names = ", ".join(map(repr, arrays)) or "nothing"
        raise ValueError(f"{path} holds {names}; choose the image by rows='KEY'.")
    return arrays[rows]


def write_image(path: Path, picture: Picture) -> None:
    """Write an image, transparent where the format allows; ValueError for impossible pixels."""
    from PIL import Image

    values = picture.pixels
    if picture.alpha is not None and path.suffix.lower() not in (".jpg", ".jpeg", ".bmp"):
        values = np.dstack([values, picture.alpha])
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[..., 0]
    data = io.BytesIO()
    kind = Image.registered_extensions()[path.suffix.lower()]
    options = {"quality": 95} if kind == "JPEG" else {}
    try:
        Image.fromarray(values).save(data, format=kind, **options)
    except (OSError, TypeError, KeyError) as error:
        raise ValueError(
            f"path: {path} cannot hold pixels of {values.dtype} in {values.ndim} dimensions "
            f"({error}); .png or .npy can."
        ) from error
    write_whole(path, data.getvalue())
