"""Arrays of a data set: read and checked from its file, or downloaded through scikit-learn."""

import http.client
import importlib.util
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.datasets.registry import ArraySpec, Dataset

ENVIRONMENT_VARIABLE = "KERNELATOMS_DATA"

# What readers raise for damaged files; OSError where an offset points out of the file.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)

Arrays = dict[str, NDArray[Any]]
DataHome = str | os.PathLike[str] | None


class DatasetNotFoundError(FileNotFoundError):
    """A data set's file is not there; the message says which file to put where."""


def data_folder(data_home: DataHome) -> Path | None:
    """Return the folder to look in: ``data_home``, else ``KERNELATOMS_DATA``, else none.

    Parameters
    ----------
    data_home : str, path or None
        A folder, which need not exist.

    Returns
    -------
    Path or None
    """
    if data_home is None:
        data_home = os.environ.get(ENVIRONMENT_VARIABLE) or None
    elif not isinstance(data_home, str | os.PathLike):
        raise TypeError(f"data_home must be the path of a folder or None, got {data_home!r}.")
    elif not os.fspath(data_home):
        # Path("") is the working folder: never what an empty setting meant.
        raise ValueError("data_home must be the path of a folder or None, got an empty string.")
    return None if data_home is None else Path(data_home).expanduser()


def read_arrays(dataset: Dataset, path: Path) -> Arrays:
    """Read and check the arrays that the table names; the file's other arrays are ignored."""
    read = dataset.read or _read_npz
    try:
        arrays, members = read(path, tuple(dataset.arrays))
    except PermissionError:
        raise
    except MemoryError as error:
        raise MemoryError(
            f"{path} claims arrays that do not fit into memory: {error}. {_expected(dataset)}"
        ) from error
    except _DAMAGED as error:
        raise ValueError(
            f"{path} cannot be read as {'an' * (path.suffix == '.npz') or 'a'} {path.suffix} file "
            f"(damaged, cut short or of another kind): {error}. {_expected(dataset)}"
        ) from error
    missing = [key for key in dataset.arrays if key not in members]
    if missing:
        raise ValueError(
            f"{path} lacks the arrays {missing}; it holds {sorted(members)}. {_expected(dataset)}"
        )
    problem = _first_problem(dataset.arrays, arrays)
    if problem:
        raise ValueError(f"{path}: {problem}. {_expected(dataset)}")
    if dataset.convert is None:
        return arrays
    try:
        return dataset.convert(arrays)
    except ValueError as error:
        raise ValueError(f"{path}: {error}. {_expected(dataset)}") from error


def _read_npz(path: Path, keys: tuple[str, ...]) -> tuple[Arrays, set[str]]:
    """Return the arrays named, none where one of them is missing, and the names of all."""
    with zipfile.ZipFile(path) as archive:
        members = {name.removesuffix(".npy") for name in archive.namelist()}
    if not set(keys) <= members:
        return {}, members
    with np.load(path, allow_pickle=False) as archive:
        # A member that is no array comes as bytes: asarray leaves it to the dtype check.
        return {key: np.asarray(archive[key]) for key in keys}, members


def _has_dtype(array: NDArray[Any], name: str) -> bool:
    if name == "number":
        return array.dtype.kind in "biuf"
    return array.dtype.kind == "U" if name == "str" else array.dtype == np.dtype(name)


def _first_problem(specs: Mapping[str, ArraySpec], arrays: Arrays) -> str | None:
    """Say what is wrong with the first array that is not as the table has it."""
    lengths: dict[str, int] = {}
    for key, spec in specs.items():
        array = arrays[key]
        if not _has_dtype(array, spec.dtype):
            return f"{key} has dtype {array.dtype}, expected {spec.dtype}"
        # Named axes that an earlier array has settled are shown with their length.
        expected = ", ".join(
            f"{axis} = {lengths[axis]}" if axis in lengths else str(axis) for axis in spec.axes
        )
        fits = array.ndim == len(spec.axes) and all(
            length == (axis if isinstance(axis, int) else lengths.setdefault(axis, length)) > 0
            for axis, length in zip(spec.axes, array.shape, strict=True)
        )
        if not fits:
            return f"{key} has shape {array.shape}, expected ({expected}), none of them 0"
    return None


def _expected(dataset: Dataset) -> str:
    how = "" if dataset.read else " (numpy.savez)"
    rows = (f"\n  {k}: {dataset.published_shape(k)} {v.dtype}" for k, v in dataset.arrays.items())
    return f"{dataset.file}{how} must hold these arrays:" + "".join(rows)


def not_found(dataset: Dataset, data_home: DataHome, online_hint: str) -> DatasetNotFoundError:
    """Make the error that says which file is missing, where it goes and what it must hold."""
    folder = data_folder(data_home)
    if folder is None:
        searched = f"no folder was searched (data_home is None, {ENVIRONMENT_VARIABLE} is not set)"
    else:
        origin = ENVIRONMENT_VARIABLE if data_home is None else "data_home"
        state = "" if folder.is_dir() else "; there is no such folder"
        searched = f"searched {folder} (from {origin}{state})"
    return DatasetNotFoundError(
        f"{dataset.file} of the data set {dataset.name!r} was not found: {searched}.\n"
        f"Put {dataset.file} into a folder and either pass data_home='that folder' or set the "
        f"environment variable: export {ENVIRONMENT_VARIABLE}='that folder'.\n"
        f"{_expected(dataset)}" + (f"\n{online_hint}" if online_hint else "")
    )


# What a fetcher raises without a network, on a bad answer, or when it cannot write its cache.
DOWNLOAD_ERRORS = (OSError, ValueError, EOFError, http.client.HTTPException)

# Training digits 0, ..., 9 of the split of Hastie, Tibshirani and Friedman (their zip.info.txt).
USPS_TRAIN_COUNTS = (1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644)


def sklearn_fetcher(name: str) -> Any:
    """Import one of scikit-learn's fetchers when it is needed; tests put a stub here."""
    from sklearn import datasets

    return getattr(datasets, name)


def fetch_usps(cache: Path | None) -> Arrays:
    """OpenML's copy: 7291 training rows, then 2007 test rows; label 1 is digit 0."""
    X, y = _fetch_openml("USPS", 2, cache, shape=(9298, 16, 16))
    arrays = _split(X.astype(np.float32), y - 1, n_train=7291)
    # The split is by position only: had the rows another order, nothing else would tell.
    counts = tuple(np.bincount(arrays["y_train"], minlength=10).tolist())
    if counts != USPS_TRAIN_COUNTS:
        raise ValueError(
            f"The first 7291 rows of OpenML's USPS have {counts} digits 0, ..., 9; the training "
            f"set has {USPS_TRAIN_COUNTS}."
        )
    return arrays


def fetch_mnist(cache: Path | None) -> Arrays:
    """OpenML's copy: 60000 training rows, then 10000 test rows, in the original order."""
    X, y = _fetch_openml("mnist_784", 1, cache, shape=(70000, 28, 28))
    return _split(X.astype(np.uint8), y, n_train=60000)


def fetch_orl(cache: Path | None) -> Arrays:
    """scikit-learn's Olivetti faces: 64x64, rescaled to [0, 1]; people counted from 1."""
    faces = sklearn_fetcher("fetch_olivetti_faces")(data_home=cache and str(cache))
    return {"X": faces.images, "y": faces.target + 1}


def _fetch_openml(name: str, version: int, cache: Path | None, shape: tuple[int, ...]) -> Any:
    # The pandas parser takes seconds, the other about a minute; pandas is not required here.
    parser = "pandas" if importlib.util.find_spec("pandas") else "liac-arff"
    fetched = sklearn_fetcher("fetch_openml")(
        name, version=version, data_home=cache and str(cache), as_frame=False, parser=parser
    )
    X = np.asarray(fetched.data)
    if X.shape != (shape[0], shape[1] * shape[2]):
        raise ValueError(
            f"OpenML's {name} version {version} has shape {X.shape}, expected "
            f"{(shape[0], shape[1] * shape[2])}."
        )
    # Labels come as text; through float, because '5.0' is an integer too.
    y = np.asarray(fetched.target).astype(np.float64).astype(np.int64)
    return X.reshape(shape), y


def _split(X: Any, y: Any, *, n_train: int) -> Arrays:
    train, test = slice(n_train), slice(n_train, None)
    return {"X_train": X[train], "y_train": y[train], "X_test": X[test], "y_test": y[test]}


#: Downloads of sets, by their names.
FETCHERS = {"usps": fetch_usps, "mnist": fetch_mnist, "orl": fetch_orl}
