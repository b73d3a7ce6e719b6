"""Table 5: neighbours and kernels by distances of images, with the nearest neighbour beside.

A distance chooses the K atoms of a query and makes the kernel exp(-beta d^p): p = 1 is what the
text prints, p = 2 the usual kernel of a length. All distances of a split are computed once and
looked up by the classifiers, whose rows are the numbers of images: that changes no answer. With
K = 1 the neighbour decides, whatever the kernel is. ``folds`` asks training rows instead of test
rows, in so many folds of neighbouring rows: digits of one writer come one after the other.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.model_selection import KFold, cross_val_score

from kernelatoms.similarity import Distance, DistanceKernel, make_distance
from reproduction.kcrc.data import all_faces, digits, divided_faces, unit, usps
from reproduction.kcrc.methods import PARAMETERS, make_classifier, percent_right
from reproduction.kcrc.reported import (
    CORRELATION,
    L2,
    LBP,
    PAPERS_MU,
    SHAPE,
    TANGENT,
    UNIFIED_DIGITS,
    UNIFIED_FACES,
    of_length,
    of_square,
)
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

UNIFIED_SHAPE = "unified: shape context x tangent"
#: mu over the paper's, in decades; None is chosen.
DECADES = (None, PAPERS_MU)
_SHAPE_DECADES = (None, -1.0, PAPERS_MU, 1.0, 2.0, 3.0)

_DISTANCES: dict[str, dict[str, Any]] = {
    L2: {"distance": "l2"},
    CORRELATION: {"distance": "correlation"},
    TANGENT: {"distance": "tangent"},
    LBP: {"distance": "lbp-chi2"},
    SHAPE: {"distance": "shape-context"},
    UNIFIED_DIGITS: {"distance": "unified", "of": ["tangent", "l2"]},
    UNIFIED_FACES: {"distance": "unified", "of": ["lbp-chi2", "l2"]},
    UNIFIED_SHAPE: {"distance": "unified", "of": ["shape-context", "tangent"]},
}
# Squares already: half the squared l2 of unit rows, chi2, products of two lengths.
_SQUARES = (CORRELATION, LBP, SHAPE, UNIFIED_DIGITS, UNIFIED_FACES, UNIFIED_SHAPE)
# Distances of pictures; the others compare any vectors.
_OF_IMAGES = ("tangent", "lbp-chi2", "shape-context")
_IMAGE_SHAPES = {"usps": (16, 16), "mnist": (28, 28), "yaleb": (96, 84)}
#: Atoms in all, and K of them for a query.
N_ATOMS = {"mnist": 200, "yaleb": 1216}
K = {"usps": 40, "mnist": 50, "yaleb": 200}

_ALL_TESTED, _SOME = 10_000, 1000
# Rows that are compared at once.
_BLOCK = 500


def nearest(name: str) -> str:
    """Return the name of the nearest neighbour by a distance."""
    return f"1-NN, {name}"


# Settings -----------------------------------------------------------------------------------------


def _settings(data: str, names: tuple[str, ...], decades: Any, n_test: int) -> list[Setting]:
    """Return both powers of every distance, and its nearest neighbour."""
    settings: list[Setting] = []
    for name in names:
        how = {**_DISTANCES[name], "data": data, "n_test": n_test}
        for row, power in ((of_length(name), 1), (of_square(name), 2)):
            settings += _rows(row, {**how, "power": power}, K[data], decades)
        settings += _rows(nearest(name), {**how, "power": 1}, 1, (PAPERS_MU,))
    return settings


def _shape_settings(names: tuple[str, ...], decades: Any) -> list[Setting]:
    """Return every distance with one power: 2 of lengths, 1 of what is a square already."""
    settings: list[Setting] = []
    for name in names:
        power = 1 if name in _SQUARES else 2
        how = {**_DISTANCES[name], "data": "mnist", "n_test": _SOME, "power": power}
        settings += _rows(name, how, K["mnist"], decades)
        settings += _rows(nearest(name), how, 1, (PAPERS_MU,))
    return settings


def _rows(name: str, how: dict[str, Any], n_neighbors: int, decades: Any) -> list[Setting]:
    own = {"code": "crc", "n_neighbors": n_neighbors}
    return [
        {"method": name, **how, **own, "decades": x, "x": None if n_neighbors == 1 else x}
        for x in decades
    ]


# Distances in tables ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LookedUp(Distance):
    """Distances in a table (n_images, n_images or fewer); a row is the number of an image."""

    table: Array
    takes_stacks = True

    def compare(self, A: Array, B: Array) -> Array:
        """Return the distances of all pairs: (..., n, m)."""
        rows, columns = (each[..., 0].astype(np.intp) for each in (A, B))
        found: Array = self.table[rows[..., :, None], columns[..., None, :]]
        return found


@dataclass(frozen=True, eq=False)
class Numbered:
    """A split by the numbers of its images in tables of distances."""

    train: Array
    test: Array
    labels: Array

    def rows(self, numbers: Array) -> tuple[Array, Array]:
        """Return images as a classifier is given them, and their labels."""
        return numbers[:, None].astype(np.float64), self.labels[numbers]


def measure_distance(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent, on test rows or on training rows left out."""
    split, tables = _split(setting, seed, data_home), _tables(setting, seed, data_home)
    model = make_classifier({**setting, "kernel": kernel_of(setting, tables)}, len(split.train), 0)
    model.set_params(distance=_unified(setting, tables), normalize=False)
    X, y = split.rows(split.train)
    if "folds" in setting:
        right = cross_val_score(model, X, y, cv=KFold(setting["folds"]))
        return {"accuracy": 100 * float(right.mean())}
    return {"accuracy": percent_right(model.fit(X, y), *split.rows(split.test))}


def kernel_of(setting: Setting, distances: list[Distance]) -> DistanceKernel:
    """Return exp(-beta d^p) of the setting's distance and power; of a union, of its first."""
    distance = _unified(setting, distances)
    return DistanceKernel(distance, gamma=setting["beta"], power=setting["power"])


def _unified(setting: Setting, distances: list[Distance]) -> Distance:
    if len(distances) == 1:
        return distances[0]
    form = setting.get("form", "product")
    return make_distance("unified", distances=tuple(distances), form=form)


def _tables(setting: Setting, seed: int, data_home: DataHome) -> list[Distance]:
    """Return the setting's distances, computed for all images of the split."""
    names = setting.get("of", [setting["distance"]])
    if setting["data"] == "yaleb":
        return [LookedUp(_faces_table(name, "of" in setting, data_home)) for name in names]
    widths = setting.get("smoothed", [0.0] * len(names))
    of = (setting["data"], setting["n_test"], seed, data_home)
    return [
        LookedUp(_digits_table(name, width, *of)) for name, width in zip(names, widths, strict=True)
    ]


def _by_name(data: str, name: str, **more: Any) -> Distance:
    shape = {"image_shape": _IMAGE_SHAPES[data]} if name in _OF_IMAGES else {}
    return make_distance(name, **shape, **more)


@lru_cache(maxsize=4)
def _digits_table(
    name: str, smoothed: float, data: str, n_test: int, seed: int, data_home: DataHome
) -> Array:
    """Return the distances of training and then test digits to training digits.

    ``smoothed`` is the width of a Gaussian that the digits themselves are smoothed by, and not
    their tangents alone.
    """
    rows = _digits(data, n_test, seed, data_home)
    if not smoothed:
        return table_of(_by_name(data, name), rows.train, rows.test)
    shape = _IMAGE_SHAPES[data]
    train, test = (smooth(X.reshape(-1, *shape), smoothed) for X in (rows.train, rows.test))
    return table_of(_by_name(data, name, sigma=0.0), train, test)


def smooth(images: Array, width: float) -> Array:
    """Return images (n, height, width) smoothed by a Gaussian, as rows of unit norm."""
    return unit(ndimage.gaussian_filter(images, (0, width, width), mode="nearest"))


def table_of(distance: Distance, train: Array, test: Array) -> Array:
    """Return the distances of training rows, then of test rows, to training rows."""
    distance = distance.fitted_to(train)
    A, B = distance.featurize(train), distance.featurize(test)
    table = np.empty((len(A) + len(B), len(A)))
    for start in range(0, len(A), _BLOCK):  # each pair once
        stop = min(start + _BLOCK, len(A))
        own = A[start:stop]
        table[start:stop, start:stop] = distance.compare(own, own)
        rest = distance.compare(own, A[stop:])
        table[start:stop, stop:], table[stop : len(A), start:stop] = rest, rest.T
    table[len(A) :] = distance.compare(B, A)
    return table


@lru_cache(maxsize=4)
def _faces_table(name: str, beside_pictures: bool, data_home: DataHome) -> Array:
    """Return the distances of all faces, of which every split has its part."""
    of_images = name in _OF_IMAGES or beside_pictures
    rows, _ = all_faces("96x84" if of_images else "randomface504", data_home)
    return table_of(_by_name("yaleb", name), rows, rows[:0])


def _digits(data: str, n_test: int, seed: int, data_home: DataHome) -> Any:
    return usps(data_home) if data == "usps" else digits(N_ATOMS[data], n_test, seed, data_home)


def _split(setting: Setting, seed: int, data_home: DataHome) -> Numbered:
    if setting["data"] == "yaleb":
        _, labels = all_faces("randomface504", data_home)
        return Numbered(*divided_faces(labels, N_ATOMS["yaleb"], seed), labels)
    rows = _digits(setting["data"], setting["n_test"], seed, data_home)
    n = len(rows.train)
    numbers = np.arange(n + len(rows.test))
    labels = np.concatenate([rows.train_labels, rows.test_labels])
    return Numbered(numbers[:n], numbers[n:], labels)


# Which unified measure ----------------------------------------------------------------------------

#: Where training digits are asked, left out in five folds, and where test digits.
LEFT_OUT, TESTED = 0, 1
_FOLDS = 5
#: What is unified; the smoothed tangent distance compares digits that are smoothed themselves.
PARTS: dict[str, dict[str, Any]] = {
    "tangent, l2": {"of": ["tangent", "l2"], "smoothed": [0.0, 0.0]},
    "smoothed tangent, l2": {"of": ["tangent", "l2"], "smoothed": [0.7, 0.0]},
}
# Takes seconds, for a short run.
_FAST = {"correlation, l2": {"of": ["correlation", "l2"], "smoothed": [0.0, 0.0]}}
FORMS = ("product", "sum", "union")
SMOOTHED = "smoothed tangent alone"


def of_narrow(name: str) -> str:
    """Return the name of a distance in a narrower kernel."""
    return f"{name}, exp(-2 d^2)"


def unified(form: str, parts: str) -> str:
    """Return the name of a unified measure."""
    return f"{form} of {parts}"


def unified_settings(parts: dict[str, dict[str, Any]]) -> list[Setting]:
    """Return all forms of these parts, and one of them alone."""
    hows = {
        unified(form, each): {"distance": "unified", **parts[each], "form": form}
        for each in parts
        for form in FORMS
    }
    hows[SMOOTHED] = {"distance": "tangent", "smoothed": [0.7]}
    settings: list[Setting] = []
    for name, how in hows.items():
        own = {**how, "data": "usps", "n_test": _ALL_TESTED, "code": "crc", "decades": None}
        own["n_neighbors"] = K["usps"]
        kernels: dict[str, dict[str, Any]] = {
            of_length(name): {"power": 1},
            of_square(name): {"power": 2},
        }
        if "smoothed" in name:
            kernels[of_narrow(name)] = {"power": 2, "beta": 2.0}
        for row, kernel in kernels.items():
            at = {"method": row, **own, **kernel}
            settings += [{**at, "folds": _FOLDS, "x": LEFT_OUT}, {**at, "x": TESTED}]
    return settings


_ON_DIGITS = (L2, CORRELATION, TANGENT, UNIFIED_DIGITS)
_ON_FACES = (L2, CORRELATION, LBP, UNIFIED_FACES)
_BY_SHAPE = (L2, TANGENT, SHAPE, UNIFIED_SHAPE)
_QUICK = (None, PAPERS_MU)


USPS = Study(
    name="kcrc/distances-usps",
    dataset="usps",
    quick=Size(_settings("usps", _ON_DIGITS[:2], _QUICK, _ALL_TESTED), 1, "1 min"),
    full=Size(_settings("usps", _ON_DIGITS, DECADES, _ALL_TESTED), 1, "5 min"),
    measure=measure_distance,
    parameters=PARAMETERS,
)
UNIFIED = Study(
    name="kcrc/distances-unified",
    dataset="usps",
    quick=Size(unified_settings(_FAST)[:4], 1, "1 min"),
    full=Size([*unified_settings(PARTS), *unified_settings(_FAST)[:4]], 1, "12 min"),
    measure=measure_distance,
    parameters=PARAMETERS,
)
FACES = Study(
    name="kcrc/distances-yaleb",
    dataset="yaleb_96x84",
    quick=Size(_settings("yaleb", _ON_FACES[:2], _QUICK, _ALL_TESTED), 1, "1 min"),
    full=Size(_settings("yaleb", _ON_FACES, DECADES, _ALL_TESTED), 20, "12 min"),
    measure=measure_distance,
    parameters=PARAMETERS,
)
MNIST = Study(
    name="kcrc/distances-mnist",
    dataset="mnist",
    quick=Size(_settings("mnist", _ON_DIGITS[:3], _QUICK, _ALL_TESTED), 1, "1 min"),
    full=Size(_settings("mnist", _ON_DIGITS, DECADES, _ALL_TESTED), 20, "6 min"),
    measure=measure_distance,
    parameters=PARAMETERS,
)
SHAPES = Study(
    name="kcrc/distances-shape",
    dataset="mnist",
    quick=Size(_shape_settings(_BY_SHAPE[:3], _QUICK), 1, "2 min"),
    full=Size(_shape_settings(_BY_SHAPE, _SHAPE_DECADES), 3, "4 min"),
    measure=measure_distance,
    parameters=PARAMETERS,
)
