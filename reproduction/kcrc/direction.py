"""Two classes in one direction through the origin (Fig. 3): what CRC cannot tell apart.

Features of one class are uniform in [1, 3], of the other in [-3, -1], with Gaussian noise of
variance 0.15 (section 6.3). CRC writes a signal in both classes alike: -y is as good an atom for y
as y is. Not stated by the paper, and chosen here: 100 training and 200 test rows per class, K = 40.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.kcrc.methods import METHODS, PARAMETERS, make_classifier, percent_right
from reproduction.kcrc.reported import CRC, KCRC, LCD, PAPERS_MU
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

DIMENSIONS = tuple(2**i for i in range(1, 9))
DTYPES = ("float32", "float64")
CLASSIFIERS = (CRC, KCRC, LCD)

_N_TRAIN, _N_TEST, _N_OWN = 100, 200, 40
_NOISE = 0.15


def in_type(method: str, dtype: str) -> str:
    """Return the name of a method on rows of a type."""
    return f"{method}, {dtype}"


def one_direction(
    n_each: int, n_features: int, rng: np.random.Generator, noise: float = _NOISE
) -> tuple[Array, Array]:
    """Return rows of both classes, with noise of this variance, and their labels 0 and 1."""
    rows = rng.uniform(1, 3, (2 * n_each, n_features))
    labels = np.repeat([0, 1], n_each)
    rows[labels == 0] *= -1
    return rows + rng.normal(0, np.sqrt(noise), rows.shape), labels


def _settings(dimensions: tuple[int, ...], dtypes: tuple[str, ...]) -> list[Setting]:
    return [
        {"method": in_type(method, dtype), **how_of(method), "dtype": dtype, "x": n_features}
        for method in CLASSIFIERS
        for dtype in dtypes
        for n_features in dimensions
    ]


def how_of(method: str) -> dict[str, Any]:
    """Return the classifier's part of a setting."""
    own = {"n_neighbors": _N_OWN} if method == LCD else {}
    return {**METHODS[method], "decades": PAPERS_MU, **own}


def measure_direction(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent on rows of both classes with x features."""
    model = fitted(tuple(setting.items()), seed)
    # Another stream than that of the training rows.
    rng = np.random.default_rng([seed, 1])
    rows, labels = one_direction(_N_TEST, setting["x"], rng, setting.get("noise", _NOISE))
    return {"accuracy": percent_right(model, rows.astype(setting["dtype"]), labels)}


@lru_cache(maxsize=1)
def fitted(how: tuple[tuple[str, Any], ...], seed: int) -> Any:
    """Return the classifier of a setting, as a tuple of its items, fitted to one draw."""
    setting = dict(how)
    rng = np.random.default_rng(seed)
    rows, labels = one_direction(_N_TRAIN, setting["x"], rng, setting.get("noise", _NOISE))
    model = make_classifier(setting, len(rows), seed)
    return model.fit(rows.astype(setting["dtype"]), labels)


ONE_DIRECTION = Study(
    name="kcrc/one-direction",
    dataset="none",
    quick=Size(_settings((2, 16, 256), DTYPES), 3, "10 s"),
    full=Size(_settings(DIMENSIONS, DTYPES), 20, "1 min"),
    measure=measure_direction,
    parameters={**PARAMETERS, "noise": _NOISE},
)
