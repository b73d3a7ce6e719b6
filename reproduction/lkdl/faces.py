"""Faces: LC-KSVD with and without LKDL on Extended Yale B (Table III, Figs. 4 and 5) and AR (IV).

504 random features of a face, 32 images per person to train, the others to test, one split per
seed; on AR 540 random features, which a seed draws. 15 atoms per person (AR: 5), 30 nonzeros.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.lkdl.chosen import FACES as SEARCHED
from reproduction.lkdl.chosen import is_search, measure_faces
from reproduction.lkdl.reported import LC1, LC2, PAPERS_RANK, chosen, with_map
from reproduction.lkdl.supervised import (
    AR,
    GAMMA,
    YALEB,
    learned,
    measure_labels,
    ours,
    published,
    raw,
    rows_of,
    table_settings,
)
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

#: The methods of Figs. 4 and 5.
FOUR = (LC1, with_map(LC1), LC2, with_map(LC2))
ATOMS_EACH = (1, 2, 5, 7, 10, 15)
NONZEROS = (5, 10, 15, 20, 25, 30, 40)
#: Where raw rows are learned from too: 50 passes take most of the time.
RAW_ATOMS_EACH, RAW_NONZEROS = (1, 7, 15), (15, 30)
#: Whose test images Fig. 4 codes: class '10' of the paper, our tenth person (yaleB10).
SHOWN = 10

_EACH_YALEB, _EACH_AR, _N_NONZERO = 15, 5, 30
_RAW = table_settings(raw(), (), _EACH_YALEB)
_AS_PUBLISHED = table_settings(published(YALEB), (PAPERS_RANK,), _EACH_YALEB)
_CHOSEN = table_settings(ours(YALEB), (PAPERS_RANK, None), _EACH_YALEB)
_AR_AS_PUBLISHED = table_settings(published(AR), (PAPERS_RANK,), _EACH_AR)
_SEARCHED: list[Setting] = [
    {"method": chosen(with_map(m)), **how, "atoms_each": _EACH_YALEB, **SEARCHED, "x": None}
    for m, how in ours(YALEB).items() if m in (LC1, LC2)
]  # fmt: skip
_AR_CHOSEN = table_settings(ours(AR), (PAPERS_RANK, None), _EACH_AR)


def of_variant(settings: list[Setting], variant: int) -> list[Setting]:
    """Return the settings of LC-KSVD1 or LC-KSVD2."""
    return [setting for setting in settings if setting.get("variant") == variant]


def our_weights(method: str) -> str:
    """Return the name of a method with our weights, where the published ones are shown too."""
    return f"{method}, our weights"


def measure_table(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return what ``measure_labels`` does, or the result of its own search."""
    measure = measure_faces if is_search(setting) else measure_labels
    return measure(setting, seed, data_home)


# Tables III and IV --------------------------------------------------------------------------------

YALEB_PUBLISHED = Study(
    name="lkdl/yaleb-published",
    dataset="yaleb_randomface504",
    quick=Size(of_variant(_RAW + _AS_PUBLISHED, 2), 1, "30 s"),
    full=Size(_RAW + _AS_PUBLISHED, 10, "6 min"),
    measure=measure_labels,
)
YALEB_CHOSEN = Study(
    name="lkdl/yaleb-chosen",
    dataset="yaleb_randomface504",
    quick=Size(of_variant(_RAW + _CHOSEN, 2), 1, "30 s"),
    full=Size(_RAW + _CHOSEN + _SEARCHED, 10, "20 min"),
    measure=measure_table,
)
AR_PUBLISHED = Study(
    name="lkdl/ar-published",
    dataset="ar",
    quick=Size(of_variant(_AR_AS_PUBLISHED, 2), 1, "20 s"),
    full=Size(_AR_AS_PUBLISHED, 5, "2 min"),
    measure=measure_labels,
)
AR_CHOSEN = Study(
    name="lkdl/ar-chosen",
    dataset="ar",
    quick=Size(of_variant(_AR_CHOSEN, 2), 1, "10 s"),
    full=Size(_AR_CHOSEN, 5, "2 min"),
    measure=measure_labels,
)

# Fig. 5 -------------------------------------------------------------------------------------------


def _settings_at(atoms_each: int, n_nonzero: int, x: int, with_raw: bool) -> list[Setting]:
    """Return LC-KSVD1 and LC-KSVD2: our weights without and with a map; raw rows as published."""
    sizes = {"atoms_each": atoms_each, "n_nonzero": n_nonzero, "x": x}
    methods = {method: how for method, how in ours(YALEB).items() if method in (LC1, LC2)}
    first = [{"method": method, **how, **sizes} for method, how in raw().items() if with_raw]
    linear = [{"method": method, **how, **sizes} for method, how in methods.items()]
    return (
        first
        + linear
        + [
            {**setting, "method": with_map(setting["method"]), "gamma": GAMMA, "rank": None}
            for setting in linear
        ]
    )


def _by_atoms(places: tuple[int, ...]) -> list[Setting]:
    return [
        setting for each in places
        for setting in _settings_at(each, _N_NONZERO, each, each in RAW_ATOMS_EACH)
    ]  # fmt: skip


def _by_nonzeros(places: tuple[int, ...]) -> list[Setting]:
    return [
        setting for n in places for setting in _settings_at(_EACH_YALEB, n, n, n in RAW_NONZEROS)
    ]


ATOMS = Study(
    name="lkdl/yaleb-atoms",
    dataset="yaleb_randomface504",
    quick=Size(_by_atoms((1, 7, 15)), 1, "1 min"),
    full=Size(_by_atoms(ATOMS_EACH), 10, "15 min"),
    measure=measure_labels,
)
SPARSITY = Study(
    name="lkdl/yaleb-sparsity",
    dataset="yaleb_randomface504",
    quick=Size(_by_nonzeros((15, 30)), 1, "40 s"),
    full=Size(_by_nonzeros(NONZEROS), 10, "12 min"),
    measure=measure_labels,
)

# Fig. 4 -------------------------------------------------------------------------------------------


def _code_settings(full: bool) -> list[Setting]:
    """Return Table III's settings, published and ours; of all people (x is None) and of one."""
    with_ours: list[Setting] = [
        {**setting, "method": our_weights(setting["method"])}
        for setting in _CHOSEN
        if setting["method"] in FOUR and setting.get("rank") is None  # no map, or all of it
    ]
    settings = _AS_PUBLISHED + with_ours if full else of_variant(with_ours, 2)
    return [{**setting, "x": x} for setting in settings for x in (None, SHOWN)]


def measure_codes(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return how much of the test rows' |coefficients| is on atoms of their own class, in percent.

    Of one person (x), or the mean over all people where x is None. The first split's records of a
    person also have what is drawn: ``a1``, ``a2``, ... are the sums of |coefficients| by atom.
    """
    how = tuple((key, value) for key, value in setting.items() if key not in ("method", "x"))
    people, owners, sums = _sums_of_people(how, seed, data_home)
    own = owners[None, :] == np.arange(len(people))[:, None]
    shares = 100 * (sums * own).sum(axis=1) / sums.sum(axis=1)
    if setting["x"] is None:
        return {"share": float(shares.mean())}
    person = int(np.flatnonzero(people == setting["x"])[0])
    measures = {"share": float(shares[person])}
    if seed == 0:
        for i, value in enumerate(sums[person].tolist(), start=1):
            measures[f"a{i}"] = round(value, 4)
    return measures


@lru_cache(maxsize=1)
def _sums_of_people(
    how: tuple[tuple[str, Any], ...], seed: int, data_home: DataHome
) -> tuple[Array, Array, Array]:
    """Return the people, the atoms' owners, and sums of |coefficients|: (people, atoms)."""
    split = rows_of(dict(how), seed, data_home).split
    model = learned(dict(how), split, seed)
    sizes = abs(model.transform(split.test))
    sums = [sizes[split.test_labels == c].sum(axis=0) for c in model.classes_]
    return model.classes_, model.atom_classes_, np.stack([np.asarray(s).ravel() for s in sums])


CODES = Study(
    name="lkdl/yaleb-codes",
    dataset="yaleb_randomface504",
    quick=Size(_code_settings(full=False), 1, "30 s"),
    full=Size(_code_settings(full=True), 10, "6 min"),
    measure=measure_codes,
)
