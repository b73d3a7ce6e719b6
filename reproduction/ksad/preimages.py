"""Atoms in pixels: Fig. 2 on AT&T (ORL) and Extended Yale B.

The dictionaries of "K-SAD as published". A pre-image is compared with its atom:
|phi(x) - atom|^2 over |atom|^2, 1 or more where the zero vector would be as near. The sign of an
atom is free and images are not negative, so atoms are turned to where their coefficients on the
training images are positive on the whole.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms import KSADClassifier, preimage
from reproduction.ksad.data import ORL, YALEB, turned
from reproduction.ksad.faces import N_ATOMS
from reproduction.ksad.methods import PAPER, POLYNOMIAL
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

PLACES: dict[float, str] = {0: ORL, 1: YALEB}
RIDGE, DISTANCE, FIXED_POINT = "ridge regression", "distances (Kwok and Tsang)", "fixed point"
HOW = {RIDGE: "ridge", DISTANCE: "distance", FIXED_POINT: "fixed-point"}
#: So many atoms, those of most use, are measured and drawn.
N_SHOWN = 40
# The paper's parameters, in a form that caches take.
Parameters = tuple[tuple[str, Any], ...]
_PAPER: Parameters = tuple(PAPER.items())


@lru_cache(maxsize=2)
def shown_atoms(
    data: str, seed: int, data_home: DataHome, parameters: Parameters = _PAPER
) -> tuple[Array, Array]:
    """Return coefficients (n_landmarks, n_atoms) of the atoms of most use, and the landmarks."""
    split = turned(data, seed, data_home).split
    model = KSADClassifier.as_published(N_ATOMS[data][0], **dict(parameters), random_state=seed)
    model.fit(split.train, split.train_labels)
    used = np.argsort(-np.square(model.codes_).sum(axis=0), kind="stable")[:N_SHOWN]
    coef = model.dual_coef_[:, np.sort(used)]
    side = np.sign(model.codes_.sum(axis=0)[np.sort(used)])
    return coef * np.where(side == 0, 1, side), model.anchors_


@lru_cache(maxsize=8)
def in_pixels(
    data: str, method: str, seed: int, data_home: DataHome, parameters: Parameters = _PAPER
) -> tuple[Array, Array]:
    """Return the atoms' pre-images, in pixels, and their errors."""
    coef, anchors = shown_atoms(data, seed, data_home, parameters)
    kernel = {**POLYNOMIAL, "degree": dict(parameters)["degree"]}
    found = preimage(coef, anchors, method=HOW[method], **kernel)
    return found.rows @ turned(data, seed, data_home).basis, found.error


def measure_preimages(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the mean error in percent, and the share of atoms that have some pre-image."""
    parameters = tuple((name, setting[name]) for name in PAPER)
    _, error = in_pixels(setting["data"], setting["how"], seed, data_home, parameters)
    return {"error": 100 * float(error.mean()), "found": 100 * float((error < 1).mean())}


def _settings() -> list[Setting]:
    return [
        {"method": how, "how": how, "data": data, "x": place}
        for place, data in PLACES.items()
        for how in HOW
    ]


PREIMAGES = Study(
    name="ksad/preimages",
    dataset="orl",
    quick=Size([s for s in _settings() if s["x"] == 0], 1, "15 s"),
    full=Size(_settings(), 3, "1 min"),
    measure=measure_preimages,
    parameters=PAPER,
)
