"""Which defaults: form, mu and alpha, on every data set at hand.

Not in the paper, whose mu of 0.001 n / 700 is a constant of one data set. Splits are those of the
paper's experiments where it has some; the others draw rows of every class, or are given (AR).
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms import CRCClassifier, SRCClassifier
from kernelatoms.datasets import load_ar, load_orl
from reproduction.kcrc.data import (
    Split,
    digits,
    faces,
    first_of_every_class,
    of_every_class,
    unit,
    usps,
)
from reproduction.kcrc.methods import BETA, papers_mu, percent_right
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

#: Data sets, and how many of their test rows are coded by l1.
DATA = ("Yale B", "ORL", "AR", "MNIST 500", "MNIST 2000", "USPS 500")
FORMS: dict[str, dict[str, Any]] = {
    "CRC, feature space": {"kernel": "linear", "projection": None},
    "CRC, columns": {"kernel": "linear", "projection": "identity"},
    "KCRC, feature space": {"kernel": "rbf", "projection": None},
    "KCRC, columns": {"kernel": "rbf", "projection": "identity"},
}
DECADES = (-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0)
ALPHAS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
# Of the test rows of every data set so many are coded where that takes long.
_SOME = 300


def name(method: str, data: str) -> str:
    """Return a row of a table: what is done to which rows."""
    return f"{data}: {method}"


@lru_cache(maxsize=2)
def rows(data: str, seed: int, data_home: DataHome) -> Split:
    """Return a split of a data set."""
    if data == "Yale B":
        return faces(1216, "randomface504", seed, data_home)
    if data.startswith("MNIST"):
        return digits(int(data.split()[1]), 2000, seed, data_home)
    if data == "AR":
        bunch = load_ar(data_home=data_home)
        train, test = (_every(X, bunch.image_shape, 2) for X in (bunch.X_train, bunch.X_test))
        return Split(train, bunch.y_train, test, bunch.y_test)
    if data == "ORL":
        bunch = load_orl(data_home=data_home)
        X, y = _every(bunch.X, bunch.image_shape, 4), bunch.y
        train = of_every_class(y, 6, seed)
        test = np.setdiff1d(np.arange(len(y)), train)
        return Split(X[train], y[train], X[test], y[test])
    whole = usps(data_home)
    drawn = of_every_class(whole.train_labels, 50, seed)
    some = drawn[first_of_every_class(whole.train_labels[drawn], 50)]
    return Split(whole.train[some], whole.train_labels[some], whole.test, whole.test_labels)


def _every(rows: Array, shape: tuple[int, int], step: int) -> Array:
    """Return images with every second, third, ... pixel of each side, at unit norm."""
    return unit(rows.reshape(-1, *shape)[:, ::step, ::step])


def measure_mu(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent, and the mu that was used."""
    split = rows(setting["data"], seed, data_home)
    decades = setting["decades"]
    mu = "search" if decades is None else papers_mu(len(split.train)) * 10**decades
    model = CRCClassifier(setting["kernel"], mu=mu, projection=setting["projection"], gamma=BETA)
    model.fit(split.train, split.train_labels)
    return {"accuracy": percent_right(model, split.test, split.test_labels), "mu": model.mu_}


def measure_alpha(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent on some test rows."""
    split = rows(setting["data"], seed, data_home)
    some = np.random.default_rng([seed, 5]).permutation(len(split.test))[:_SOME]
    model = SRCClassifier(setting["kernel"], alpha=setting["alpha"], gamma=BETA)
    model.fit(split.train, split.train_labels)
    return {"accuracy": percent_right(model, split.test[some], split.test_labels[some])}


def _mu_settings(data: tuple[str, ...], decades: tuple[float, ...]) -> list[Setting]:
    return [
        {"method": name(method, one), **how, "data": one, "decades": x, "x": x}
        for one in data
        for method, how in FORMS.items()
        for x in (None, *decades)
    ]


def _alpha_settings(data: tuple[str, ...], alphas: tuple[float, ...]) -> list[Setting]:
    return [
        {"method": name(method, one), "kernel": kernel, "data": one, "alpha": alpha, "x": alpha}
        for one in data
        for method, kernel in (("SRC", "linear"), ("KSRC", "rbf"))
        for alpha in alphas
    ]


MU = Study(
    name="kcrc/choice-of-mu",
    dataset="mnist",
    quick=Size(_mu_settings(("MNIST 500",), (-2.0, 0.0, 2.0)), 1, "20 s"),
    full=Size(_mu_settings(DATA, DECADES), 5, "10 min"),
    measure=measure_mu,
)
ALPHA = Study(
    name="kcrc/choice-of-alpha",
    dataset="mnist",
    quick=Size(_alpha_settings(("MNIST 500",), (0.003, 0.03)), 1, "20 s"),
    full=Size(_alpha_settings(DATA, ALPHAS), 3, "20 min"),
    measure=measure_alpha,
)
