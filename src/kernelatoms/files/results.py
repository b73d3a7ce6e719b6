"""Results to files: predictions as columns, codes as sparse matrices or as triples."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import scipy.sparse

from kernelatoms.features.memory import check_fits
from kernelatoms.files.writing import write_whole

RESULT_SUFFIXES = (".csv", ".parquet", ".npy", ".npz")
CODE_SUFFIXES = (".npz", ".npy", ".csv", ".parquet")


def check_codes_fit(path: Path, n_rows: int, n_atoms: int) -> None:
    """Refuse codes that do not fit into memory in the form that the file's ending asks for."""
    if path.suffix.lower() == ".npy":
        check_fits(
            16.0 * n_rows * n_atoms,  # the array and the file, in double precision
            f"dense codes of {n_rows} rows over {n_atoms} atoms",
            "Write them sparse (--output codes.npz), or code fewer rows at a time.",
        )


def write_columns(target: Path | TextIO, columns: Mapping[str, Any]) -> None:
    """Write columns of equal length; to a stream as CSV, ``.npy`` takes the predictions only."""
    if not isinstance(target, Path):
        _write_csv(target, columns)
        return
    suffix = target.suffix.lower()
    if suffix == ".csv":
        text = io.StringIO()
        _write_csv(text, columns)
        data = text.getvalue().encode()
    elif suffix == ".parquet":
        data = _parquet(columns)
    else:
        plain = {name: _without_objects(np.asarray(values)) for name, values in columns.items()}
        data = _numpy_bytes(plain["prediction"] if suffix == ".npy" else plain)
    write_whole(target, data)


def write_codes(path: Path | TextIO, codes: Any) -> None:
    """Write codes, to a stream as CSV; see ``kernelatoms encode --help`` for the forms."""
    suffix = path.suffix.lower() if isinstance(path, Path) else ".csv"
    sparse = scipy.sparse.issparse(codes)
    if suffix == ".npy":
        write_whole(path, _numpy_bytes(codes.toarray() if sparse else codes))
    elif suffix == ".npz" and sparse:
        data = io.BytesIO()
        scipy.sparse.save_npz(data, scipy.sparse.csr_array(codes))
        write_whole(path, data.getvalue())
    elif suffix == ".npz":
        write_whole(path, _numpy_bytes({"X": codes}))
    elif sparse:
        triples = codes.tocoo()
        columns = {"row": triples.row, "atom": triples.col, "coefficient": triples.data}
        write_columns(path, columns)
    else:
        names = (f"component {i}" for i in range(codes.shape[1]))
        write_columns(path, dict(zip(names, codes.T, strict=True)))


def write_rows(
    target: Path | TextIO, rows: Any, names: Sequence[str], beside: Mapping[str, Any]
) -> None:
    """Write rows of numbers, to a stream as CSV; columns beside them to tables only.

    Parameters
    ----------
    target : Path or text stream
        ``.csv``, ``.parquet``, ``.npy`` or ``.npz`` (key X).
    rows : array of shape (n_rows, n_columns)
        The numbers.
    names : sequence of str
        Their columns' names.
    beside : dict of str to array of shape (n_rows,)
        What names the rows.
    """
    suffix = target.suffix.lower() if isinstance(target, Path) else ".csv"
    if isinstance(target, Path) and suffix in (".npy", ".npz"):
        write_whole(target, _numpy_bytes(rows if suffix == ".npy" else {"X": rows}))
        return
    write_columns(target, {**beside, **dict(zip(names, rows.T, strict=True))})


def _write_csv(stream: TextIO, columns: Mapping[str, Any]) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    lists = [_tidy(np.asarray(values)) for values in columns.values()]
    writer.writerows(zip(*lists, strict=True))


def _tidy(values: Any) -> list[Any]:
    """Return values as they are best read: 7 for an identifier 7.0, nothing for a missing one."""
    if values.dtype.kind == "f" and values.dtype.itemsize == 4:
        # The shortest text that gives the same float32 back.
        return ["" if np.isnan(v) else str(v) for v in values]
    return ["" if v is None else repr(v) if isinstance(v, float) else v for v in _whole(values)]


def _whole(values: Any) -> list[Any]:
    """Return values as Python's own: 7 for 7.0 where all are whole, None where missing."""
    if values.dtype.kind != "f":
        return list(values.tolist())
    missing = np.isnan(values)
    present = values[~missing]
    is_whole = np.all(present == np.round(present)) and np.all(np.abs(present) < 2**53)
    plain = values.tolist()
    if is_whole:
        return [None if gone else int(v) for v, gone in zip(plain, missing, strict=True)]
    return [None if gone else v for v, gone in zip(plain, missing, strict=True)]


def _parquet(columns: Mapping[str, Any]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    data = io.BytesIO()
    arrays = {name: _arrow(np.asarray(values)) for name, values in columns.items()}
    parquet.write_table(pyarrow.table(arrays), data)
    return data.getvalue()


def _arrow(values: Any) -> Any:
    """Return a column as Arrow's; as texts, where its values are of no one type of Arrow's."""
    import pyarrow

    if values.dtype.kind == "f" and values.dtype.itemsize == 4:
        return pyarrow.array(values, from_pandas=True)
    plain = _whole(values)
    try:
        return pyarrow.array(plain)
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array([None if v is None else str(v) for v in plain])


def _without_objects(values: Any) -> Any:
    """Return text instead of objects, which a NumPy file could hold as pickles only."""
    if values.dtype.kind != "O":
        return values
    return np.array(["" if value is None else str(value) for value in values])


def _numpy_bytes(content: Any) -> bytes:
    data = io.BytesIO()
    if isinstance(content, dict):
        np.savez_compressed(data, allow_pickle=False, **content)
    else:
        np.save(data, content, allow_pickle=False)
    return data.getvalue()
