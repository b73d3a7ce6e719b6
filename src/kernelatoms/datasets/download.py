"""The sets that scikit-learn can download, brought to the form of the files."""

import http.client
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kernelatoms.datasets.files import Arrays

# What a fetcher raises without a network, on a bad answer, or when it cannot write its cache.
DOWNLOAD_ERRORS = (OSError, ValueError, EOFError, http.client.HTTPException)

# Training digits 0, ..., 9 of the split of Hastie, Tibshirani and Friedman (their zip.info.txt).
USPS_TRAIN_COUNTS = (1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644)


def sklearn_fetcher(name: str) -> Callable[..., Any]:
    """Import one of scikit-learn's fetchers when it is needed; tests put a stub here."""
    from sklearn import datasets

    fetcher: Callable[..., Any] = getattr(datasets, name)
    return fetcher


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


FETCHERS: dict[str, Callable[[Path | None], Arrays]] = {
    "usps": fetch_usps,
    "mnist": fetch_mnist,
    "orl": fetch_orl,
}


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
    return {
        "X_train": X[:n_train],
        "y_train": y[:n_train],
        "X_test": X[n_train:],
        "y_test": y[n_train:],
    }
