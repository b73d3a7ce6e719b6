"""Table 5: neighbours and kernels by distances of images, with the nearest neighbour beside.

A distance chooses the K atoms of a query and makes the kernel exp(-d^p / 2): p is 2 for lengths
(l2, tangent) and 1 for what is a square already (correlation, which is half the squared l2 of unit
rows, chi2, products of two lengths). All kernel values of a split are computed once and given to
the classifiers, which changes no answer: the nearest rows in feature space are those by the
distance. With K = 1 the neighbour decides, whatever the kernel is. Only where the distance of the
kernel is not that of the neighbours (a union of two dictionaries) are the rows themselves given.
"""

from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.papers.kcrc.data import Split, all_faces, digits, divided_faces, usps
from kernelatoms.papers.kcrc.methods import BETA, make_classifier, percent_right
from kernelatoms.papers.kcrc.reported import (
    CORRELATION,
    L2,
    LBP,
    PAPERS_MU,
    SHAPE,
    TANGENT,
    UNIFIED_DIGITS,
    UNIFIED_FACES,
)
from kernelatoms.papers.study import DataHome, Setting, Size, Study
from kernelatoms.similarity import DistanceKernel, make_distance

Array = NDArray[Any]

UNIFIED_SHAPE = "unified: shape context x tangent"
#: Other readings of the paper's tangent distance and of what it is unified with.
PRINTED, SMOOTHER = "tangent, exp(-d / 2)", "tangent of sigma 0.8, exp(-d / 2)"
TWO_WIDTHS = "unified: tangents of sigma 0.5 x 0.8"
UNION = "unified: 40 nearest by tangent and 40 by l2"
#: mu over the paper's, in decades; None is chosen.
DECADES = (None, -1.0, PAPERS_MU, 1.0, 2.0, 3.0)

_DISTANCES: dict[str, dict[str, Any]] = {
    L2: {"distance": "l2", "power": 2},
    CORRELATION: {"distance": "correlation", "power": 1},
    TANGENT: {"distance": "tangent", "power": 2},
    LBP: {"distance": "lbp-chi2", "power": 1},
    SHAPE: {"distance": "shape-context", "power": 1},
    UNIFIED_DIGITS: {"distance": "unified", "of": ["tangent", "l2"], "power": 1},
    UNIFIED_FACES: {"distance": "unified", "of": ["lbp-chi2", "l2"], "power": 1},
    UNIFIED_SHAPE: {"distance": "unified", "of": ["shape-context", "tangent"], "power": 1},
    PRINTED: {"distance": "tangent", "power": 1},
    SMOOTHER: {"distance": "tangent", "sigma": 0.8, "power": 1},
    TWO_WIDTHS: {"distance": "unified", "of": ["tangent", "tangent"], "sigma": [0.5, 0.8],
                 "power": 1},
    UNION: {"distance": "tangent", "power": 1, "or": "l2"},
}  # fmt: skip
# Distances of pictures; the others compare any vectors.
_OF_IMAGES = ("tangent", "lbp-chi2", "shape-context")
_IMAGE_SHAPES = {"usps": (16, 16), "mnist": (28, 28), "yaleb": (96, 84)}
#: Atoms in all, and K of them for a query.
N_ATOMS = {"mnist": 200, "yaleb": 1216}
K = {"usps": 40, "mnist": 50, "yaleb": 200}

_ALL_TESTED, _SOME = 10_000, 1000


def nearest(name: str) -> str:
    """Return the name of the nearest neighbour by a distance."""
    return f"1-NN, {name}"


def _settings(data: str, names: tuple[str, ...], decades: Any, n_test: int) -> list[Setting]:
    settings: list[Setting] = []
    for name in names:
        how = {**_DISTANCES[name], "data": data, "n_test": n_test}
        for x in decades:
            own = {"code": "crc", "n_neighbors": K[data], "decades": x}
            settings.append({"method": name, **how, **own, "x": x})
        if name == UNION:
            continue  # its nearest is that of the tangent distance
        one = {"code": "crc", "n_neighbors": 1, "decades": PAPERS_MU}
        settings.append({"method": nearest(name), **how, **one, "x": None})
    return settings


def measure_distance(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent."""
    other = ("method", "x", "code", "n_neighbors", "decades")
    # JSON has lists, a cache needs tuples.
    how = tuple(
        (key, tuple(value) if isinstance(value, list) else value)
        for key, value in setting.items() if key not in other
    )  # fmt: skip
    if "or" in setting:
        return _measure_union(setting, data_home)
    given = _given(how, seed, data_home)
    model = make_classifier({**setting, "kernel": "precomputed"}, len(given.train), seed)
    model.fit(given.train, given.train_labels)
    return {"accuracy": percent_right(model, given.test, given.test_labels)}


def _measure_union(setting: Setting, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy over the K nearest by one distance and the K by another together."""
    split, kernel = usps(data_home), kernel_of(setting)
    both = make_distance("unified", distances=(kernel.distance, setting["or"]), form="union")
    model = make_classifier({**setting, "kernel": kernel}, len(split.train), seed=0)
    model.set_params(distance=both, gamma=None)
    model.fit(split.train, split.train_labels)
    return {"accuracy": percent_right(model, split.test, split.test_labels)}


def kernel_of(setting: Setting) -> Any:
    """Return exp(-d^p / 2) of the setting's distance and power."""
    return DistanceKernel(_distance_of(setting), gamma=BETA, power=setting["power"])


def _distance_of(setting: Setting) -> Any:
    """Return the setting's distance: one by name, or several unified."""
    names, data = setting.get("of", [setting["distance"]]), setting["data"]
    widths = setting.get("sigma", [None] * len(names))
    parts = tuple(map(partial(_by_name, data), names, np.atleast_1d(widths).tolist()))
    return make_distance("unified", distances=parts) if "of" in setting else parts[0]


def _by_name(data: str, name: str, width: float | None) -> Any:
    more: dict[str, Any] = {"image_shape": _IMAGE_SHAPES[data]} if name in _OF_IMAGES else {}
    return make_distance(name, **more, **({} if width is None else {"sigma": width}))


@lru_cache(maxsize=1)
def _given(how: tuple[tuple[str, Any], ...], seed: int, data_home: DataHome) -> Split:
    """Return kernel values of a split in the place of its rows."""
    setting = dict(how)
    if setting["data"] == "yaleb":
        values, labels = _kernel_of_faces(how, data_home)
        train, test = divided_faces(labels, N_ATOMS["yaleb"], seed)
        return Split(
            values[np.ix_(train, train)], labels[train], values[np.ix_(test, train)], labels[test]
        )
    if setting["data"] == "usps":
        split = usps(data_home)
    else:
        split = digits(N_ATOMS["mnist"], setting["n_test"], seed, data_home)
    kernel = kernel_of(setting)
    return split._replace(
        train=kernel(split.train, split.train), test=kernel(split.test, split.train)
    )


@lru_cache(maxsize=len(_DISTANCES))
def _kernel_of_faces(how: tuple[tuple[str, Any], ...], data_home: DataHome) -> tuple[Array, Array]:
    """Return the kernel values of all images, of which every split has its part."""
    setting = dict(how)
    of_images = setting["distance"] in (*_OF_IMAGES, "unified")
    features = "96x84" if of_images else "randomface504"
    rows, labels = all_faces(features, data_home)
    return kernel_of(setting)(rows, rows), labels


_ON_DIGITS = (L2, CORRELATION, TANGENT, UNIFIED_DIGITS)
_ON_FACES = (L2, CORRELATION, LBP, UNIFIED_FACES)
_OTHER_READINGS = (PRINTED, SMOOTHER, TWO_WIDTHS, UNION)
_BY_SHAPE = (L2, TANGENT, SHAPE, UNIFIED_SHAPE)
_QUICK = (None, PAPERS_MU)


USPS = Study(
    name="kcrc/distances-usps",
    dataset="usps",
    quick=Size(_settings("usps", _ON_DIGITS[:2], _QUICK, _ALL_TESTED), 1, "1 min"),
    full=Size(_settings("usps", _ON_DIGITS + _OTHER_READINGS, DECADES, _ALL_TESTED), 1, "10 min"),
    measure=measure_distance,
)
FACES = Study(
    name="kcrc/distances-yaleb",
    dataset="yaleb_96x84",
    quick=Size(_settings("yaleb", _ON_FACES[:2], _QUICK, _ALL_TESTED), 1, "1 min"),
    full=Size(_settings("yaleb", _ON_FACES, DECADES, _ALL_TESTED), 20, "12 min"),
    measure=measure_distance,
)
MNIST = Study(
    name="kcrc/distances-mnist",
    dataset="mnist",
    quick=Size(_settings("mnist", _ON_DIGITS[:3], _QUICK, _ALL_TESTED), 1, "1 min"),
    full=Size(_settings("mnist", _ON_DIGITS, DECADES, _ALL_TESTED), 20, "8 min"),
    measure=measure_distance,
)
SHAPES = Study(
    name="kcrc/distances-shape",
    dataset="mnist",
    quick=Size(_settings("mnist", _BY_SHAPE[:3], _QUICK, _SOME), 1, "2 min"),
    full=Size(_settings("mnist", _BY_SHAPE, DECADES, _SOME), 3, "4 min"),
    measure=measure_distance,
)
