"""Fig. 4: class dictionaries of two circles, and atoms of a parabola.

1500 points per class, 30 atoms, 3 nonzeros, (x'y + 1)^2, at most 80 passes. Circles of radius 1 and
2, and of 2 and 4; the parabola y2 = y1^2 for y1 in [-1, 1]. Linear K-SVD has 2 nonzeros: the plane
has no more dimensions. "As printed" has the update and the start of the paper's Fig. 3.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms import KSVD, ClassDictionaryClassifier, KernelKSVD
from reproduction.kdl.reported import (
    KERNEL,
    KERNEL_PUBLISHED,
    LINEAR,
    LINEAR_1,
)
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

HOMOGENEOUS = "kernel K-SVD, (x'y)^2"
WIDE = "kernel K-SVD, radii 2 and 4"

#: Places on the axis of the circles: the share of points whose margin is no larger.
SHARES = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
#: Places on the axis of the parabola: atoms, the one with the largest coefficients first.
ATOMS = (1, 2, 3)

_PARAMETERS = {"radii": (1.0, 2.0)}
_SIZES = {"n_points": 1500, "n_atoms": 30, "passes": 80}
_METHODS: dict[str, dict[str, Any]] = {
    LINEAR: {"method": LINEAR, **_SIZES, "n_nonzero": 2},
    LINEAR_1: {"method": LINEAR_1, **_SIZES, "n_nonzero": 1},
    KERNEL: {"method": KERNEL, **_SIZES, "n_nonzero": 3, "degree": 2, "coef0": 1},
    HOMOGENEOUS: {"method": HOMOGENEOUS, **_SIZES, "n_nonzero": 3, "degree": 2, "coef0": 0},
}
_METHODS[WIDE] = {**_METHODS[KERNEL], "method": WIDE, "radii": (2.0, 4.0)}
_METHODS[KERNEL_PUBLISHED] = {
    **_METHODS[KERNEL], "method": KERNEL_PUBLISHED, "update": "exact", "init": "sums",
}  # fmt: skip
_N_ON_CIRCLE = 720
_STEP = 1e-5


def setting_of(method: str) -> Setting:
    """Return a method's parameters."""
    return {**_PARAMETERS, **_METHODS[method]}


def on_circle(radius: float, angles: Array) -> Array:
    """Return points of a circle around the origin."""
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


def on_parabola(places: Array) -> Array:
    """Return the points (y1, y1^2)."""
    return np.column_stack([places, places**2])


def measure_circles(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the margin that a share of the points does not pass, and what it rests on.

    The margin of a point of a circle is log10 of the other class's error over its own class's:
    above 0 it is on the right side.
    """
    angles = np.linspace(0, 2 * np.pi, _N_ON_CIRCLE, endpoint=False)
    points = np.concatenate([on_circle(radius, angles) for radius in setting["radii"]])
    first = np.arange(len(points)) < _N_ON_CIRCLE
    errors = errors_of_circles(setting, seed, points)
    ratio = log_ratio(setting, errors, points)
    margin = np.where(first, ratio, 0.0 - ratio)
    return {
        "margin": float(np.quantile(margin, setting["x"])),
        "smallest": float(margin.min()),
        "right": 100 * float(np.mean(margin > 0)),
        "own_error": float(np.median(np.where(first, errors[:, 0], errors[:, 1]))),
        "other_error": float(np.median(np.where(first, errors[:, 1], errors[:, 0]))),
    }


def errors_of_circles(setting: Setting, seed: int, points: Array) -> Array:
    """Return what the dictionaries of the two circles leave of points of the plane."""
    classes = _circle_dictionaries(_parameters(setting), seed)
    return np.column_stack([learner._encode(points).error for learner in classes])


def log_ratio(setting: Setting, errors: Array, points: Array) -> Array:
    """Return log10 of the second class's error over the first's.

    An error at rounding level is no error (``omp`` returns 0), and two of them have ratio 1.
    """
    energy = (np.vecdot(points, points) + setting.get("coef0", 0)) ** setting.get("degree", 1)
    rounding = np.maximum(10 * np.finfo(np.float64).eps * energy, np.finfo(np.float64).tiny)
    return np.diff(np.log10(np.maximum(errors, rounding[:, None])), axis=1)[:, 0]


def measure_parabola(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return how much of an atom's change on the parabola is change along it, in percent.

    The projection on an atom is a function of the plane. What counts is the square of its
    derivative along the tangent, as a share of its squared gradient, both summed over the points
    learned from: 50 in no direction more than in another. ``direction`` is the mean of the
    points' own shares instead, which forgets where the projection changes most.
    """
    learner, places = parabola_dictionary(setting, seed)
    points = on_parabola(places)
    tangent = np.column_stack([np.ones_like(places), 2 * places])
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    along, across = (
        _derivative(setting, learner, points, direction) ** 2
        for direction in (tangent, tangent[:, ::-1] * [-1, 1])
    )
    shares = 100 * along.sum(axis=0) / (along + across).sum(axis=0)
    atom = atoms_by_use(learner, points)[setting["x"] - 1]
    own = along[:, atom] / (along + across)[:, atom]
    return {
        "along": float(shares[atom]),
        "all_atoms": float(shares.mean()),
        "direction": 100 * float(own.mean()),
    }


def projections(setting: Setting, learner: Any, points: Array) -> Array:
    """Return the inner products of mapped points with all atoms."""
    if "degree" not in setting:
        return points @ learner.components_.T
    kernel = (points @ learner.anchors_.T + setting["coef0"]) ** setting["degree"]
    return kernel @ learner.dual_coef_


def atoms_by_use(learner: Any, points: Array) -> Array:
    """Return the atoms' numbers, largest sum of squared coefficients first."""
    use = learner.transform(points).power(2).sum(axis=0)
    return np.argsort(-use, kind="stable")


@lru_cache(maxsize=2)
def _fit_parabola(method: tuple[tuple[str, Any], ...], seed: int) -> tuple[Any, Array]:
    setting = dict(method)
    places = np.random.default_rng(seed).uniform(-1, 1, setting["n_points"])
    learner = _learner(setting).set_params(random_state=seed)
    return learner.fit(on_parabola(places)), places


def parabola_dictionary(setting: Setting, seed: int) -> tuple[Any, Array]:
    """Return the dictionary learned on the parabola, and the places y1 of its points."""
    return _fit_parabola(_parameters(setting), seed)


@lru_cache(maxsize=1)
def _circle_dictionaries(method: tuple[tuple[str, Any], ...], seed: int) -> list[Any]:
    setting = dict(method)
    n, radii = setting["n_points"], setting["radii"]
    angles = np.random.default_rng(seed).uniform(0, 2 * np.pi, (len(radii), n))
    rows = np.concatenate([on_circle(r, a) for r, a in zip(radii, angles, strict=True)])
    labels = np.repeat(np.arange(len(radii)), n)
    model = ClassDictionaryClassifier(_learner(setting), random_state=seed).fit(rows, labels)
    return list(model.dictionaries_)


def _learner(setting: Setting) -> Any:
    loop = {"n_nonzero_coefs": setting["n_nonzero"], "max_iter": setting["passes"], "tol": 0}
    loop |= {key: setting[key] for key in ("update", "init") if key in setting}
    if "degree" not in setting:
        return KSVD(setting["n_atoms"], **loop)
    return KernelKSVD(
        setting["n_atoms"], kernel="poly", degree=setting["degree"], gamma=1,
        coef0=setting["coef0"], **loop,
    )  # fmt: skip


def _parameters(setting: Setting) -> tuple[tuple[str, Any], ...]:
    """Return what the dictionaries depend on, in a form that can be a key."""
    named = {**setting, "radii": tuple(setting.get("radii", ()))}
    return tuple((key, value) for key, value in named.items() if key not in ("method", "x"))


def _derivative(setting: Setting, learner: Any, points: Array, direction: Array) -> Array:
    ahead, behind = (
        projections(setting, learner, points + sign * _STEP * direction) for sign in (1, -1)
    )
    return (ahead - behind) / (2 * _STEP)


def _settings(methods: tuple[str, ...], places: tuple[float, ...]) -> list[Setting]:
    return [{**_METHODS[method], "x": x} for method in methods for x in places]


CIRCLES = Study(
    name="kdl/circles",
    dataset="none",
    quick=Size(_settings(tuple(_METHODS), SHARES), 3, "5 s"),
    full=Size(_settings(tuple(_METHODS), SHARES), 10, "20 s"),
    measure=measure_circles,
    parameters=_PARAMETERS,
)
PARABOLA = Study(
    name="kdl/parabola",
    dataset="none",
    quick=Size(_settings((LINEAR, KERNEL), ATOMS), 3, "5 s"),
    full=Size(_settings((LINEAR, KERNEL), ATOMS), 10, "10 s"),
    measure=measure_parabola,
)
