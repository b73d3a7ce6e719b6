"""Extended Yale B: projections (Table 1), one face (Fig. 2), dictionary sizes (Figs. 5a and 5b).

504 random projections of the images, 32 images per person to train (1,216 atoms), 1,198 to test.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from reproduction.kcrc.data import FACES_A_PERSON, faces
from reproduction.kcrc.methods import (
    METHODS,
    PARAMETERS,
    chosen,
    make_classifier,
    percent_right,
)
from reproduction.kcrc.reported import (
    CRC,
    DKSVD,
    GRAPH,
    IDENTITY,
    KCRC,
    KFDA,
    KPCA,
    LCD,
    LCKSVD,
    OF_LENGTH,
    PAPERS_MU,
    RANDOM,
    SPACE,
    SRC,
    UNIT,
    as_printed,
    of_80,
)
from reproduction.study import DataHome, Setting, Size, Study

N_PEOPLE = 38
N_ATOMS = N_PEOPLE * FACES_A_PERSON
PEOPLE = tuple(range(1, N_PEOPLE + 1))
#: Whose face is coded in Fig. 2.
SHOWN = 1
#: Dictionary sizes, and K, of Fig. 5.
SIZES = (380, 570, 760, 950, 1216)
OWN_ATOMS = (20, 50, 100, 200, 380, 570, 1216)
GLOBAL = (380, 760, 1216)
DECADES = (-3.0, -2.0, -1.0, PAPERS_MU)
#: Unit columns want a smaller mu.
UNIT_DECADES = (-6.0, -4.0, -2.0, PAPERS_MU)

# A local dictionary of so many faces costs as much as a global one for every query: some are asked.
_LARGE, _SOME = 570, 300
_FEATURES = "randomface504"
# Choosing mu decomposes 300 small Gram matrices: a matter of seconds up to here.
_CHOSEN_UP_TO = 200

# Table 1 and Fig. 2 -------------------------------------------------------------------------------

_LINEAR = {"code": "crc", "kernel": "linear"}
_KERNEL = {"code": "crc", "kernel": "rbf"}
_SEEN: dict[str, dict[str, Any]] = {
    CRC: _LINEAR,
    IDENTITY: {**_KERNEL, "projection": "identity"},
    KPCA: {**_KERNEL, "projection": "kpca"},
    RANDOM: {**_KERNEL, "projection": "random"},
    GRAPH: {**_KERNEL, "projection": "graph"},
    KFDA: {**_KERNEL, "projection": "kfda"},
    SPACE: {**_KERNEL, "projection": None},
}
# Psi' G at unit norm, the kernel exp(-beta d), 80 dimensions: each by itself, and all together.
_PRINTED = {"code": "crc", "kernel": "l2", "power": 1}
_READ: dict[str, dict[str, Any]] = {
    UNIT: {**_SEEN[IDENTITY], "unit_columns": True},
    OF_LENGTH: {**_PRINTED, "projection": "identity"},
    **{of_80(method): {**_SEEN[method], "n_components": 80} for method in (KPCA, RANDOM, GRAPH)},
    as_printed(IDENTITY): {**_PRINTED, "projection": "identity", "unit_columns": True},
    **{
        as_printed(method): {
            **_PRINTED, "projection": _SEEN[method]["projection"], "n_components": 80,
            "unit_columns": True,
        }
        for method in (KPCA, RANDOM, GRAPH)
    },
}  # fmt: skip
#: The six of Fig. 2.
SIX = (SRC, CRC, IDENTITY, KPCA, RANDOM, GRAPH)


def _projection_settings(methods: tuple[str, ...], decades: tuple[float, ...]) -> list[Setting]:
    settings: list[Setting] = [{"method": SRC, **METHODS[SRC], "x": None}]
    for method in methods:
        for x in (None, *decades):
            settings.append({"method": method, **_SEEN[method], "decades": x, "x": x})
    return settings


def _reading_settings() -> list[Setting]:
    """Return other readings of the text: with a chosen mu too, unless it is all as printed."""
    literal = [as_printed(method) for method in (IDENTITY, KPCA, RANDOM, GRAPH)]
    settings: list[Setting] = []
    for method, how in _READ.items():
        places = UNIT_DECADES if method == UNIT else (PAPERS_MU,)
        for x in places if method in literal else (None, *places):
            settings.append({"method": method, **how, "decades": x, "x": x})
    return settings


def measure_projection(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent, and the mu that was used."""
    split = faces(setting["n_atoms"], _FEATURES, seed, data_home)
    model = make_classifier(setting, len(split.train), seed).fit(split.train, split.train_labels)
    measures = {"accuracy": percent_right(model, split.test, split.test_labels)}
    if hasattr(model, "mu_"):
        measures["mu"] = model.mu_
    return measures


def _face_settings(methods: tuple[str, ...]) -> list[Setting]:
    settings: list[Setting] = []
    for method in methods:
        how = METHODS[SRC] if method == SRC else {**_SEEN[method], "decades": PAPERS_MU}
        settings += [{"method": method, **how, "x": person} for person in PEOPLE]
    return settings


def measure_face(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return how one person (x) fits a face of the first: residual and coefficients.

    ``residual`` is over the smallest of all people; ``share`` is the person's part of all
    coefficients, in percent of the sum of magnitudes; ``w1`` to ``w32`` are the coefficients
    themselves, over the largest magnitude of all.
    """
    how = tuple((key, value) for key, value in setting.items() if key not in ("method", "x"))
    residuals, weights = _coded_face(how, seed, data_home)
    person = setting["x"] - 1
    own = weights[person]
    measures = {
        "residual": float(residuals[person] / residuals.min()),
        "share": float(100 * np.abs(own).sum() / np.abs(weights).sum()),
    }
    largest = np.abs(weights).max()
    for i, weight in enumerate(own, start=1):
        measures[f"w{i}"] = round(float(weight / largest), 4)
    return measures


@lru_cache(maxsize=1)
def _coded_face(how: tuple[tuple[str, Any], ...], seed: int, data_home: DataHome) -> Any:
    """Return the residuals of all people, and their coefficients (people, images per person)."""
    setting = dict(how)
    split = faces(setting["n_atoms"], _FEATURES, seed, data_home)
    model = make_classifier(setting, len(split.train), seed).fit(split.train, split.train_labels)
    face = split.test[split.test_labels == SHOWN][:1]
    codes = model.codes(face).toarray()[0]
    # A class without a part in the code is as far from the face as any can be.
    residuals = model.residuals(face)[0]
    residuals = np.where(np.isinf(residuals), residuals[np.isfinite(residuals)].max(), residuals)
    return residuals, codes.reshape(len(model.classes_), -1)


PROJECTIONS = Study(
    name="kcrc/projections",
    dataset="yaleb_randomface504",
    quick=Size(_projection_settings((CRC, IDENTITY, GRAPH), (PAPERS_MU,)), 2, "1 min"),
    full=Size(_projection_settings(tuple(_SEEN), DECADES) + _reading_settings(), 20, "30 min"),
    measure=measure_projection,
    parameters={**PARAMETERS, "n_atoms": N_ATOMS},
)
ONE_FACE = Study(
    name="kcrc/one-face",
    dataset="yaleb_randomface504",
    quick=Size(_face_settings((SRC, CRC, IDENTITY)), 1, "10 s"),
    full=Size(_face_settings(SIX), 1, "20 s"),
    measure=measure_face,
    parameters={**PARAMETERS, "n_atoms": N_ATOMS},
)

# Fig. 5 -------------------------------------------------------------------------------------------


def global_lcd(n_atoms: int) -> str:
    """Return the name of KCRC-LCD over neighbours among so many atoms."""
    return f"{LCD} of {n_atoms}"


def _size_settings(sizes: tuple[int, ...], full: bool) -> list[Setting]:
    settings: list[Setting] = []
    for n in sizes:
        own = {"n_atoms": n, "x": n}
        settings.append({"method": SRC, **METHODS[SRC], **own})
        for method in (CRC, KCRC):
            settings.append({"method": method, **METHODS[method], "decades": PAPERS_MU, **own})
            if full:
                name = chosen(method)
                settings.append({"method": name, **METHODS[method], "decades": None, **own})
    for setting in _local_settings(LCD, N_ATOMS, sizes):
        large = _LARGE <= setting["n_neighbors"] < N_ATOMS
        settings.append({**setting, "n_test": _SOME} if large else setting)
    return settings + _learned_settings(sizes)


def _learned_settings(sizes: tuple[int, ...]) -> list[Setting]:
    """Return dictionaries learned from all training images of the split."""
    return [
        {"method": method, **METHODS[method], "n_atoms": N_ATOMS, "n_learned": n, "x": n}
        for method in (DKSVD, LCKSVD)
        for n in sizes
    ]


def _local_settings(method: str, n_atoms: int, own: tuple[int, ...]) -> list[Setting]:
    return [
        {
            "method": method, **METHODS[LCD], "decades": PAPERS_MU, "n_atoms": n_atoms,
            "n_neighbors": k, "x": k,
        }
        for k in own if k <= n_atoms
    ]  # fmt: skip


def _own_settings(sizes: tuple[int, ...], own: tuple[int, ...], full: bool) -> list[Setting]:
    settings = [s for n in sizes for s in _local_settings(global_lcd(n), n, own)]
    if full:
        settings += [
            {**s, "method": chosen(global_lcd(N_ATOMS)), "decades": None}
            for s in _local_settings(LCD, N_ATOMS, own) if s["x"] <= _CHOSEN_UP_TO
        ]  # fmt: skip
    return settings


def measure_faces(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent, on ``n_test`` drawn test faces where the setting has that."""
    split = faces(setting["n_atoms"], _FEATURES, seed, data_home)
    model = make_classifier(setting, len(split.train), seed).fit(split.train, split.train_labels)
    order = np.random.default_rng([seed, 3]).permutation(len(split.test))
    asked = order[: setting.get("n_test")]
    return {"accuracy": percent_right(model, split.test[asked], split.test_labels[asked])}


DICTIONARIES = Study(
    name="kcrc/faces",
    dataset="yaleb_randomface504",
    quick=Size(_size_settings((380,), full=False), 1, "1 min"),
    full=Size(_size_settings(SIZES, full=True), 20, "25 min"),
    measure=measure_faces,
    parameters=PARAMETERS,
)
NEIGHBOURS = Study(
    name="kcrc/faces-neighbours",
    dataset="yaleb_randomface504",
    quick=Size(_own_settings((380,), (20, 100), full=False), 2, "20 s"),
    full=Size(_own_settings(GLOBAL, OWN_ATOMS, full=True), 20, "10 min"),
    measure=measure_faces,
    parameters=PARAMETERS,
)
