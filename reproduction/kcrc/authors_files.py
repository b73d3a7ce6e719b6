"""15 scenes (Table 2) and Caltech 101 (Table 5) on the LC-KSVD authors' spatial pyramid features.

Scenes: 100 images per category to draw from, the others to test. Global dictionaries have 30 of
them per category (450 atoms); local ones have the 450 nearest of all 1,500; learned ones 450 atoms
from all 1,500. Caltech 101: 30 images per class (3,060 atoms), the 500 nearest of them.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.authors_data import load_authors
from reproduction.figure import Claim, Curves, PaperFigure
from reproduction.kcrc.data import Split, first_of_every_class, of_every_class, unit
from reproduction.kcrc.methods import METHODS, chosen, make_classifier, percent_right
from reproduction.kcrc.reported import (
    CRC,
    CRC_LCD,
    DKSVD,
    KCRC,
    LCD,
    LCKSVD,
    PAPERS_MU,
    SOURCE,
    SRC,
)
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]
Numbers = dict[str, dict[float | None, float]]

#: Table 2.
SCENES: Numbers = {
    LCD: {PAPERS_MU: 98.05}, KCRC: {PAPERS_MU: 97.21}, CRC_LCD: {PAPERS_MU: 92.13},
    CRC: {PAPERS_MU: 90.92}, SRC: {None: 91.80}, LCKSVD: {None: 92.94}, DKSVD: {None: 89.16},
}  # fmt: skip
#: Table 5, the Euclidean distance.
CALTECH: Numbers = {LCD: {PAPERS_MU: 72.83}}

_CLOSE = 1.0


def _settings(n_each: int, n_global: int, n_neighbors: int, learned: bool) -> list[Setting]:
    """Return all methods; those that have a mu at the paper's, and at one that is chosen."""
    settings: list[Setting] = [{"method": SRC, **METHODS[SRC], "n_each": n_global, "x": None}]
    for method in (CRC, KCRC, CRC_LCD, LCD):
        local = {"n_each": n_each, "n_neighbors": n_neighbors}
        how = {**METHODS[method], **(local if method in (CRC_LCD, LCD) else {"n_each": n_global})}
        settings.append({"method": method, **how, "decades": PAPERS_MU, "x": PAPERS_MU})
        settings.append({"method": chosen(method), **how, "decades": None, "x": None})
    if learned:
        settings += [
            {"method": m, **METHODS[m], "n_each": n_each, "n_learned": n_neighbors, "x": None}
            for m in (DKSVD, LCKSVD)
        ]
    return settings


def measure_scenes(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent; rows to test are the same for every method."""
    split = _split(setting["data"], setting["n_drawn"], setting["n_each"], seed, data_home)
    model = make_classifier(setting, len(split.train), seed).fit(split.train, split.train_labels)
    return {"accuracy": percent_right(model, split.test, split.test_labels)}


@lru_cache(maxsize=2)
def _split(data: str, n_drawn: int, n_each: int, seed: int, data_home: DataHome) -> Split:
    X, y = _features(data, data_home)
    drawn = of_every_class(y, n_drawn, seed)
    train = drawn[first_of_every_class(y[drawn], n_each)]
    test = np.setdiff1d(np.arange(len(y)), drawn)
    return Split(X[train], y[train], X[test], y[test])


@lru_cache(maxsize=1)
def _features(data: str, data_home: DataHome) -> tuple[Array, Array]:
    file = load_authors(data, data_home)
    return unit(file.X), file.y


def _study(data: str, n_drawn: int, settings: list[Setting], full: str) -> Study:
    quick = [s for s in settings if s["method"] in (CRC, KCRC, LCD)]
    return Study(
        name=f"kcrc/{data}",
        dataset=data,
        quick=Size(quick, 1, "1 min"),
        full=Size(settings, 5, full),
        measure=measure_scenes,
        parameters={"data": data, "n_drawn": n_drawn},
    )


AUTHORS_SCENES = _study("scene15", 100, _settings(100, 30, 450, learned=True), "1 hour")
AUTHORS_CALTECH = _study("caltech101", 30, _settings(30, 30, 500, learned=False), "2 hours")


def claims_scenes(curves: Curves, theirs: Numbers) -> list[Claim]:
    """Say whether accuracies are the paper's, and whether local and kernel codes gain."""
    claims = []
    for method, numbers in theirs.items():
        for place, reported in numbers.items():
            if len(curves.at(method, place)):
                found = curves.mean(method, place)
                claims.append(
                    Claim(
                        f"{method} is within {_CLOSE:g} point of the paper's {reported:.2f}",
                        abs(found - reported) <= _CLOSE,
                        f"{found:.2f}",
                    )
                )
    for better, worse in ((LCD, KCRC), (KCRC, CRC), (LCD, CRC_LCD)):
        if PAPERS_MU in curves.shared(better, worse):
            gain = curves.mean(better, PAPERS_MU) - curves.mean(worse, PAPERS_MU)
            claims.append(Claim(f"{better} is above {worse}", gain > 0, f"{gain:+.2f} points"))
    return claims


_TEXT = (
    "The LC-KSVD authors' spatial pyramid features, reduced to 3000 by PCA, which are not at hand "
    "here: this table is for those who have the file. Unit rows, exp(-d^2 / 2), one draw per seed. "
)
_AXIS: dict[str, Any] = {
    "measured": lambda measures: measures["accuracy"], "ylabel": "accuracy, %", "source": SOURCE,
    "xlabel": "log10(mu / paper's)", "nowhere": "chosen, or no mu",
}  # fmt: skip

FIGURES = (
    PaperFigure(
        name="kcrc/table2",
        title="Table 2: 15 scene categories",
        text=_TEXT + "Global dictionaries have 30 images per category, local ones the 450 nearest "
        "of 100 per category, learned ones 450 atoms from those; all others are tested.",
        study=AUTHORS_SCENES,
        reported=SCENES,
        claims=lambda curves: claims_scenes(curves, SCENES),
        **_AXIS,
    ),
    PaperFigure(
        name="kcrc/table5-caltech101",
        title="Table 5: Caltech 101, Euclidean distance",
        text=_TEXT + "30 images per class, 3,060 in all, all others are tested; the 500 nearest "
        "for local dictionaries.",
        study=AUTHORS_CALTECH,
        reported=CALTECH,
        claims=lambda curves: claims_scenes(curves, CALTECH),
        **_AXIS,
    ),
)
