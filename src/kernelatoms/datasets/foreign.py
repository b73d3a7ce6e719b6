"""Files that others write: Matlab's ``.mat``, tables as ``.csv``. Arrays by name, unchecked."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def read_mat(path: Path, keys: tuple[str, ...]) -> tuple[Arrays, set[str]]:
    """Return the variables named, as far as they are there, and the names of all.

    Raises NotImplementedError for files of version 7.3, which are HDF5.
    """
    from scipy.io import loadmat, whosmat

    with path.open("rb") as file:
        if file.read(8) == b"\x89HDF\r\n\x1a\n":
            raise NotImplementedError
    try:
        members = {name for name, _, _ in whosmat(path)}
        loaded = loadmat(path, variable_names=keys)
    except (NotImplementedError, OSError, MemoryError):
        raise
    except Exception as error:  # its reader has no list of what it raises on damaged files
        raise ValueError(f"{type(error).__name__}: {error}") from error
    found = {key: loaded[key] for key in keys if key in members}
    # Matlab keeps labels in sparse matrices too.
    dense = {k: v.toarray() if hasattr(v, "toarray") else v for k, v in found.items()}
    return {key: np.asarray(value) for key, value in dense.items()}, members


def read_csv(path: Path, keys: tuple[str, ...]) -> tuple[Arrays, set[str]]:
    """Return the columns named, the last as numbers, none where one is missing; and all names.

    What is empty or NULL among the numbers is NaN.
    """
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
