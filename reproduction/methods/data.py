"""Labelled data: tables of scikit-learn, synthetic ones, images; splits and corruption."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as known
from sklearn.model_selection import train_test_split

from kernelatoms.datasets import load_ar, load_mnist, load_orl, load_usps, load_yaleb
from reproduction.study import DataHome, NotAvailable

Array = NDArray[Any]

#: Rows of a made-up table; rows to learn from and to judge by at most.
N_MADE, MOST_TRAIN, MOST_TEST = 900, 600, 300
#: Noise in standard deviations of each column, the share of values that are missing, and that of
#: training labels that are wrong.
NOISE, MISSING, WRONG = 0.5, 0.2, 0.1

CLEAN, TUNED = "clean", "tuned"
CONDITIONS = (CLEAN, "noise", "missing", "wrong labels", TUNED)


class Split(NamedTuple):
    """Rows to learn from and rows to judge by."""

    train: Array
    labels: Array
    test: Array
    test_labels: Array


def _bundled(load: Callable[..., Any], seed: int) -> tuple[Array, Array]:
    X, y = load(return_X_y=True)
    return X, y


def _made(make: Callable[..., Any], seed: int, **how: Any) -> tuple[Array, Array]:
    X, y = make(n_samples=N_MADE, random_state=seed, **how)
    return X, y


def _checkerboard(seed: int) -> tuple[Array, Array]:
    """Draw points of a board of 4 x 4 fields, white or black."""
    X = np.random.default_rng(seed).uniform(0, 4, size=(N_MADE, 2))
    return X, X.astype(int).sum(axis=1) % 2


_classes = partial(_made, known.make_classification)

#: Tables that come with scikit-learn.
BUNDLED: dict[str, Callable[[int], tuple[Array, Array]]] = {
    "iris": partial(_bundled, known.load_iris),
    "wine": partial(_bundled, known.load_wine),
    "breast cancer": partial(_bundled, known.load_breast_cancer),
    "digits": partial(_bundled, known.load_digits),
}
#: Tables drawn by the program, each seed its own.
MADE: dict[str, Callable[[int], tuple[Array, Array]]] = {
    "moons": partial(_made, known.make_moons, noise=0.25),
    "circles": partial(_made, known.make_circles, noise=0.15, factor=0.5),
    "quantiles": partial(_made, known.make_gaussian_quantiles, n_features=5, n_classes=3),
    "easy": partial(_classes, n_features=10, n_informative=5, n_classes=3, class_sep=1.5),
    "hard": partial(
        _classes, n_features=20, n_informative=6, n_classes=4, class_sep=0.7, flip_y=0.1
    ),
    "checkerboard": _checkerboard,
    "imbalanced": partial(_classes, n_features=10, n_informative=5, weights=[0.93]),
}
#: Images, where the files are at hand.
IMAGES: dict[str, Callable[..., Any]] = {
    "USPS": load_usps, "MNIST": load_mnist, "ORL": load_orl, "Yale B": load_yaleb, "AR": load_ar,
}  # fmt: skip
DATA = (*BUNDLED, *MADE, *IMAGES)


@lru_cache(maxsize=2)
def _rows(name: str, seed: int, data_home: DataHome) -> tuple[Array, Array]:
    made = BUNDLED.get(name) or MADE.get(name)
    if made is not None:
        return made(seed)
    how: dict[str, Any] = {"data_home": data_home}
    how |= {"size": "32x32"} if name == "Yale B" else {}
    how |= {"download_if_missing": False} if name in ("USPS", "MNIST", "ORL") else {}
    try:
        found = IMAGES[name](**how)
    except FileNotFoundError as error:
        raise NotAvailable(str(error)) from error
    X, y = (found.X, found.y) if "X" in found else (found.X_train, found.y_train)
    X = X.reshape(len(X), -1).astype(np.float64)
    if name == "ORL":  # 10,304 pixels, every other one in both directions is enough
        height, width = found.image_shape
        X = X.reshape(-1, height, width)[:, ::2, ::2].reshape(len(X), -1)
    return X, y


def split_of(name: str, condition: str, seed: int, data_home: DataHome = None) -> Split:
    """Return one division of a data set's rows, corrupted as the condition says.

    Noise and missing values are in all rows, as users have them; wrong labels in those to learn
    from. "clean" and "tuned" are the same rows.
    """
    X, y = _rows(name, seed, data_home)
    n_test = min(len(y) // 3, MOST_TEST)
    parts = train_test_split(
        X, y, test_size=n_test, train_size=min(len(y) - n_test, MOST_TRAIN), stratify=y,
        random_state=seed,
    )  # fmt: skip
    train, test, labels, test_labels = parts
    rng = np.random.default_rng([seed, DATA.index(name), CONDITIONS.index(condition)])
    if condition == "noise":
        sizes = NOISE * train.std(axis=0)
        train = train + sizes * rng.normal(size=train.shape)
        test = test + sizes * rng.normal(size=test.shape)
    elif condition == "missing":
        train, test = (
            np.where(rng.random(rows.shape) < MISSING, np.nan, rows) for rows in (train, test)
        )
    elif condition == "wrong labels":
        labels = _mislabelled(labels, rng)
    return Split(train, labels, test, test_labels)


def _mislabelled(labels: Array, rng: np.random.Generator) -> Array:
    """Return labels of which a share is another class's, drawn evenly."""
    classes, numbers = np.unique(labels, return_inverse=True)
    wrong = rng.permutation(len(labels))[: round(WRONG * len(labels))]
    numbers[wrong] += rng.integers(1, len(classes), size=len(wrong))
    return classes[numbers % len(classes)]
