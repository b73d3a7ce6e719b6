"""The rows that are classified: unit norm, float64, one split per seed.

Splits are nested: a smaller dictionary is a part of the larger one, and the rows to test stay the
same.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from kernelatoms.datasets import load_mnist, load_usps, load_yaleb
from reproduction.study import DataHome

Array = NDArray[Any]

#: Training images per person; the others are tested (section 6.4.2).
FACES_A_PERSON = 32
#: Training digits per class, of which smaller dictionaries are parts (section 6.4.1).
DIGITS_A_CLASS = 200


class Split(NamedTuple):
    """Rows that make the dictionary, sorted by class, and rows to classify."""

    train: Array
    train_labels: Array
    test: Array
    test_labels: Array


@lru_cache(maxsize=2)
def faces(n_atoms: int, features: str, seed: int, data_home: DataHome) -> Split:
    """Return Extended Yale B: so many of the 1,216 training images, all others to test.

    ``features`` is a size of `load_yaleb`: "randomface504" or "96x84".
    """
    X, y = all_faces(features, data_home)
    train, test = divided_faces(y, n_atoms, seed)
    return Split(X[train], y[train], X[test], y[test])


def divided_faces(labels: Array, n_atoms: int, seed: int) -> tuple[Array, Array]:
    """Return which images make the dictionary and which are tested."""
    drawn = of_every_class(labels, FACES_A_PERSON, seed)
    some = first_of_every_class(labels[drawn], n_atoms // len(np.unique(labels)))
    return drawn[some], np.setdiff1d(np.arange(len(labels)), drawn)


@lru_cache(maxsize=2)
def digits(n_atoms: int, n_test: int, seed: int, data_home: DataHome) -> Split:
    """Return MNIST: so many of 2,000 drawn training digits, so many drawn test digits."""
    data = _mnist(data_home)
    chosen = of_every_class(data.train_labels, DIGITS_A_CLASS, seed)
    labels = data.train_labels[chosen]
    some = chosen[first_of_every_class(labels, n_atoms // len(np.unique(labels)))]
    # Another stream than that of the training digits; all rows in their order, if all are asked.
    tested = np.random.default_rng([seed, 1]).permutation(len(data.test))[:n_test]
    tested.sort()
    train, test = (unit(rows) for rows in (data.train[some], data.test[tested]))
    return Split(train, data.train_labels[some], test, data.test_labels[tested])


@lru_cache(maxsize=2)
def many_digits(n_atoms: int, n_test: int, seed: int, data_home: DataHome) -> Split:
    """Return MNIST with any number of training digits, drawn from all."""
    data = _mnist(data_home)
    rng = np.random.default_rng(seed)
    some = rng.permutation(len(data.train))[:n_atoms]
    tested = rng.permutation(len(data.test))[:n_test]
    train, test = (unit(rows) for rows in (data.train[some], data.test[tested]))
    return Split(train, data.train_labels[some], test, data.test_labels[tested])


@lru_cache(maxsize=1)
def usps(data_home: DataHome) -> Split:
    """Return USPS as it is divided, 7,291 and 2,007 digits; pixels from 0 on."""
    data = load_usps(data_home=data_home)
    train, test = (unit((X + 1) / 2) for X in (data.X_train, data.X_test))
    return Split(train, data.y_train, test, data.y_test)


def of_every_class(labels: Array, n_each: int, seed: int) -> Array:
    """Return the numbers of so many rows of every class, drawn."""
    rng = np.random.default_rng(seed)
    each = [rng.permutation(np.flatnonzero(labels == c))[:n_each] for c in np.unique(labels)]
    return np.concatenate(each)


def first_of_every_class(labels: Array, n_each: int) -> Array:
    """Return the numbers of the first rows of every class."""
    return np.concatenate([np.flatnonzero(labels == c)[:n_each] for c in np.unique(labels)])


def unit(pixels: Array) -> Array:
    """Return images as rows of unit norm."""
    return normalize(pixels.reshape(len(pixels), -1).astype(np.float64))


@lru_cache(maxsize=2)
def all_faces(features: str, data_home: DataHome) -> tuple[Array, Array]:
    """Return all images of Extended Yale B, and the people."""
    data = load_yaleb(size=features, data_home=data_home)
    return unit(data.X), data.y


@lru_cache(maxsize=1)
def _mnist(data_home: DataHome) -> Split:
    data = load_mnist(data_home=data_home)
    return Split(data.X_train, data.y_train, data.X_test, data.y_test)
