"""Codes from files, in all forms that ``write_codes`` gives them."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.files.arrays import read_npy, read_npz
from kernelatoms.files.results import CODE_SUFFIXES
from kernelatoms.files.tables import TableError, read_table
from kernelatoms.limits import TooLargeError

Array = NDArray[Any]

_TRIPLES = ["row", "atom", "coefficient"]
_CSR = {"data", "indices", "indptr", "shape", "format"}


def read_codes(path: Path, n_atoms: int, *, max_size: int | None = None) -> Any:
    """Read codes over so many atoms.

    Parameters
    ----------
    path : Path
        ``.npz``: a CSR matrix as scipy writes it, or a dense array "X"; ``.npy``: a dense array;
        ``.csv`` and ``.parquet``: columns row, atom and coefficient (rows after the last that uses
        an atom are not in them), or a column for every component.
    n_atoms : int
        How many atoms the model has.
    max_size : int, optional
        The bytes that the file may become when it is read, as in ``read_table``.

    Returns
    -------
    codes : CSR array or array of shape (n_rows, n_atoms)

    Raises
    ------
    TableError
        If the file holds no such codes; the message says why.
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
            f"this model have {n_atoms:,} columns, one an atom; were they made with another model?"
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
    if table.columns != _TRIPLES:
        if table.words:
            raise ValueError("it has columns of words.")
        return table.numbers
    rows, atoms, values = table.numbers.T
    if not (np.isfinite(table.numbers).all() and np.all(rows == np.rint(rows))
            and np.all(atoms == np.rint(atoms)) and rows.min() >= 0):  # fmt: skip
        raise ValueError("rows and atoms must be whole numbers from 0 on, coefficients finite.")
    if atoms.min() < 0 or atoms.max() >= n_atoms:
        raise ValueError(
            f"it names atom {int(atoms.max() if atoms.max() >= n_atoms else atoms.min())}, and the "
            f"model has {n_atoms:,}, counted from 0."
        )
    if rows.max() >= 2**31:
        raise ValueError(f"row {rows.max():.0f} is beyond what can be held.")
    shape = (int(rows.max()) + 1, n_atoms)
    places = (rows.astype(np.intp), atoms.astype(np.intp))
    return scipy.sparse.coo_array((values, places), shape=shape).tocsr()
