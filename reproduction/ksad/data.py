"""The splits: unit rows, one division of the images per seed.

Nothing here depends on more than inner products of rows with training rows, and on norms. So rows
may be turned to the span of the training rows without any change: as many coordinates as there are
training rows, and one more for what lies outside of it. ``short`` says where that was done.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from kernelatoms.datasets import load_mnist, load_orl
from reproduction.kcrc.data import Split, faces, of_every_class, unit, usps
from reproduction.study import DataHome

Array = NDArray[Any]

ORL, YALEB, USPS, MNIST = "ORL", "Yale B", "USPS", "MNIST"
#: Training images per person; the others are tested.
ORL_A_PERSON, N_YALEB = 6, 1216
IMAGE_SHAPES = {ORL: (112, 92), YALEB: (96, 84)}


class Turned(NamedTuple):
    """A split in short rows, and what turns training rows back: ``train @ basis``."""

    split: Split
    basis: Array


def pixels(data: str, seed: int, data_home: DataHome) -> Split:
    """Return faces in all their pixels, float64."""
    if data == YALEB:
        return faces(N_YALEB, "96x84", seed, data_home)
    return _orl(seed, data_home)


@lru_cache(maxsize=2)
def turned(data: str, seed: int, data_home: DataHome) -> Turned:
    """Return faces in short rows with the inner products of the pixels."""
    return short_rows(pixels(data, seed, data_home))


def short_rows(split: Split) -> Turned:
    """Return rows in coordinates of the training rows' span, the last for what is outside."""
    Q, R = np.linalg.qr(split.train.T)
    test = split.test @ Q
    energy = np.vecdot(split.test, split.test) - np.vecdot(test, test)
    outside = np.sqrt(np.maximum(energy, 0))[:, None]
    train = np.hstack([R.T, np.zeros((R.shape[1], 1))])
    basis = np.vstack([Q.T, np.zeros((1, len(Q)))])
    return Turned(split._replace(train=train, test=np.hstack([test, outside])), basis)


@lru_cache(maxsize=1)
def mnist(n_train: int, seed: int, data_home: DataHome) -> Split:
    """Return so many drawn training digits and all test digits, float32."""
    train, labels, test, test_labels = _mnist(data_home)
    if n_train < len(train):
        some = np.sort(np.random.default_rng(seed).permutation(len(train))[:n_train])
        train, labels = train[some], labels[some]
    return Split(train, labels, test, test_labels)


@lru_cache(maxsize=1)
def usps_digits(data_home: DataHome) -> Split:
    """Return USPS as it is divided, float32."""
    split = usps(data_home)
    return split._replace(train=split.train.astype(np.float32), test=split.test.astype(np.float32))


@lru_cache(maxsize=2)
def _orl(seed: int, data_home: DataHome) -> Split:
    data = load_orl(data_home=data_home, download_if_missing=False)
    X, y = unit(data.X), data.y
    train = of_every_class(y, ORL_A_PERSON, seed)
    test = np.setdiff1d(np.arange(len(y)), train)
    return Split(X[train], y[train], X[test], y[test])


@lru_cache(maxsize=1)
def _mnist(data_home: DataHome) -> Split:
    data = load_mnist(data_home=data_home)
    train, test = (normalize(X.astype(np.float32)) for X in (data.X_train, data.X_test))
    return Split(train, data.y_train, test, data.y_test)
