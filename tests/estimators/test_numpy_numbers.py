"""Parameters as numpy's numbers: what Python's mean."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from answers import DATA, answers, attributes, bits, clone_of, fitted, same
from every_estimator import WAYS
from half_blind import half_blind_search
from kernelatoms import KSVD, ClassDictionaryClassifier
from kernelatoms.files import load_model, save_model

FLOAT32 = DATA[5]
INTEGERS = (np.int64, np.int32, np.uint8)
FLOATS = (np.float64, np.float32, np.float16)


# Refused by some choices of others, unless at their defaults: 0.01 of float32 is another number.
EXACT = ("shrinkage", "label_weight")


def as_numpys(value, n, name=""):
    """Return a number as one of numpy's, of the n-th type; others as they are."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return INTEGERS[n](value)
    if isinstance(value, float):
        return FLOATS[0 if name in EXACT else n](value)
    if isinstance(value, BaseEstimator):
        given = value.get_params(deep=False).items()
        return clone(value).set_params(**{name: as_numpys(one, n, name) for name, one in given})
    return value


def as_pythons(value):
    """Return one of numpy's numbers as Python's."""
    if isinstance(value, BaseEstimator):
        given = value.get_params(deep=False).items()
        return clone(value).set_params(**{name: as_pythons(one) for name, one in given})
    return value.item() if isinstance(value, np.generic) else value


def numbers(fitted):
    """Return fitted attributes but for models and kernels, which hold parameters."""
    return {
        name: as_pythons(value) for name, value in fitted.items()
        if name not in ("dictionaries_", "fitted_kernel_")
    }  # fmt: skip


@pytest.mark.parametrize(
    ("estimator", "ways"), WAYS, ids=[type(estimator).__name__ for estimator, _ in WAYS]
)
def test_they_mean_the_same(estimator, ways, monkeypatch, tmp_path):
    half_blind_search(monkeypatch)
    for n, way in enumerate([*ways, ways[0], ways[0]]):
        given = as_numpys(clone(estimator).set_params(**clone_of(way)), n % 3)
        X, y = DATA[1] if n % 4 < 2 else FLOAT32
        found, expected = fitted(clone(given), X, y), fitted(as_pythons(given), X, y)
        said = answers(found, X, y)
        same(numbers(attributes(found)), numbers(attributes(expected)), (way, n))
        same(said, answers(expected, X, y), (way, n))
        if n < 2:
            save_model(found, tmp_path / "model")
            same(answers(load_model(tmp_path / "model")[0], X, y), said, (way, n))


@pytest.mark.parametrize("share", [np.float64(0.5), np.float32(0.5), np.float16(0.5)])
def test_a_share_of_every_class(share):
    X, y = DATA[1]
    found = ClassDictionaryClassifier(KSVD(n_atoms=share), random_state=0).fit(X, y)
    expected = ClassDictionaryClassifier(KSVD(n_atoms=0.5), random_state=0).fit(X, y)
    assert bits(answers(found, X, y)) == bits(answers(expected, X, y))
