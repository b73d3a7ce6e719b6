"""Read Matlab's ``.mat`` files and tables in ``.csv`` files: arrays by name, not yet checked."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

_HDF5 = (
    "it has version 7.3 (HDF5), and versions up to 7 can be read: load it in Matlab and write it "
    "with save(..., '-v7')"
)


def read_mat(path: Path, keys: tuple[str, ...]) -> tuple[Arrays, set[str]]:
    """Return the named variables that the file has, and the names of all its variables."""
    from scipy.io import loadmat, whosmat

    with path.open("rb") as file:
        if file.read(8) == b"\x89HDF\r\n\x1a\n":
            raise ValueError(_HDF5)
    try:
        members = {name for name, _, _ in whosmat(path)}
        loaded = loadmat(path, variable_names=keys)
    except NotImplementedError as error:
        raise ValueError(_HDF5) from error
    except (OSError, MemoryError):
        raise
    except Exception as error:  # scipy does not document what it raises for damaged files
        raise ValueError(f"{type(error).__name__}: {error}") from error
    found = {key: loaded[key] for key in keys if key in members}
    # Labels may be sparse matrices.
    dense = {k: v.toarray() if hasattr(v, "toarray") else v for k, v in found.items()}
    return {key: np.asarray(value) for key, value in dense.items()}, members


def read_csv(path: Path, keys: tuple[str, ...]) -> tuple[Arrays, set[str]]:
    """Return the named columns, and the names of all columns; no column where one is missing.

    The last of ``keys`` is a column of numbers, where an empty field and NULL become NaN.
    """
    try:
        return _read_columns(path, keys)
    except csv.Error as error:
        raise ValueError(str(error)) from error


def _read_columns(path: Path, keys: tuple[str, ...]) -> tuple[Arrays, set[str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = csv.reader(file)
        header = [name.strip() for name in next(lines, [])]
        if not set(keys) <= set(header):
            return {}, set(header)
        places = [header.index(key) for key in keys]
        columns: list[list[str]] = [[] for _ in keys]
        for line in lines:
            if line:
                if len(line) != len(header):
                    raise ValueError(
                        f"line {lines.line_num} has {len(line)} fields, the header {len(header)}"
                    )
                for column, place in zip(columns, places, strict=True):
                    column.append(line[place].strip())
    numbers = ["nan" if text in ("", "NULL") else text for text in columns[-1]]
    arrays = {key: np.array(column, str) for key, column in zip(keys, columns, strict=True)}
    return {**arrays, keys[-1]: np.array(numbers, np.float32)}, set(header)
