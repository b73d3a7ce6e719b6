"""MNIST: dictionary sizes (Fig. 4a), neighbours (4b), and which digit is taken for which (Fig. 8).

Raw pixels. K of 500 and more atoms cost as much as a global dictionary for every query: fewer
queries are asked there, the first of the same drawn ones.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from reproduction.kcrc.data import Split, digits
from reproduction.kcrc.faces import global_lcd
from reproduction.kcrc.methods import (
    METHODS,
    PARAMETERS,
    chosen,
    make_classifier,
    percent_right,
)
from reproduction.kcrc.reported import CRC, CRC_LCD, KCRC, LCD, PAPERS_MU
from reproduction.study import DataHome, Setting, Size, Study

N_GLOBAL = 2000
SIZES = (100, 200, 500, 700, 1000, 1500)
GLOBAL = (500, 1000, 2000)
OWN_ATOMS = (10, 20, 50, 100, 200, 500)
#: All 2,000 atoms, which the local dictionaries are drawn from, coded over at once.
ALL = f"{KCRC}, all {N_GLOBAL:,} atoms"
#: In the place of Fig. 8: atoms for a query, and in all.
N_OWN, N_FIXED = 100, 500

_ALL_TESTED, _SOME = 10_000, 1000
_CHOSEN_UP_TO = 200
_SHOWN_DIGITS = tuple(range(10))


def _size_settings(sizes: tuple[int, ...], full: bool) -> list[Setting]:
    settings: list[Setting] = []
    for n in sizes:
        for method in (CRC, KCRC):
            own = {**METHODS[method], "n_atoms": n, "n_test": _SOME, "x": n}
            settings.append({"method": method, **own, "decades": PAPERS_MU})
            if full:
                settings.append({"method": chosen(method), **own, "decades": None})
        for method in (CRC_LCD, LCD):
            local = _local(method, method, N_GLOBAL, n, PAPERS_MU)
            settings.append({**local, "n_test": queries_of(n)})
            if full and n <= _CHOSEN_UP_TO:
                settings.append(_local(chosen(method), method, N_GLOBAL, n, None))
    if full:
        of_all = {**METHODS[KCRC], "n_atoms": N_GLOBAL, "n_test": _SOME, "x": None}
        settings.append({"method": ALL, **of_all, "decades": PAPERS_MU})
        settings.append({"method": chosen(ALL), **of_all, "decades": None})
    return settings


def _own_settings(sizes: tuple[int, ...], own: tuple[int, ...], full: bool) -> list[Setting]:
    settings = [_local(global_lcd(n), LCD, n, k, PAPERS_MU) for n in sizes for k in own if k <= n]
    if full:
        settings += [
            _local(chosen(global_lcd(n)), LCD, n, k, None)
            for n in sizes for k in own if k <= min(n, _CHOSEN_UP_TO)
        ]  # fmt: skip
    return settings


def _local(name: str, method: str, n_atoms: int, k: int, decades: float | None) -> Setting:
    return {
        "method": name, **METHODS[method], "decades": decades, "n_atoms": n_atoms,
        "n_neighbors": k, "n_test": _SOME, "x": k,
    }  # fmt: skip


def queries_of(k: int) -> int:
    """Return how many queries are asked of local dictionaries of so many atoms in Fig. 4a."""
    return _SOME if k < 500 else 200 if k < 1000 else 100


def measure_digits(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent."""
    split = _split(setting, seed, data_home)
    model = make_classifier(setting, len(split.train), seed).fit(split.train, split.train_labels)
    return {"accuracy": percent_right(model, split.test, split.test_labels)}


def _split(setting: Setting, seed: int, data_home: DataHome) -> Split:
    return digits(setting["n_atoms"], setting["n_test"], seed, data_home)


# Fig. 8 -------------------------------------------------------------------------------------------


def _confusion_settings() -> list[Setting]:
    fixed = {**METHODS[CRC], "n_atoms": N_FIXED}
    local = {**METHODS[LCD], "n_atoms": N_GLOBAL, "n_neighbors": N_OWN}
    return [
        {"method": method, **how, "decades": None, "n_test": _ALL_TESTED, "x": digit}
        for method, how in ((CRC, fixed), (LCD, local))
        for digit in _SHOWN_DIGITS
    ]


def measure_confusion(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the share of one digit (x) that was recognised, and as what all were read.

    ``as0`` to ``as9`` count the digits taken for each.
    """
    how = tuple((key, value) for key, value in setting.items() if key not in ("method", "x"))
    row = _confusion(how, seed, data_home)[setting["x"]]
    measures = {"accuracy": float(100 * row[setting["x"]] / max(row.sum(), 1))}
    return measures | {f"as{digit}": int(count) for digit, count in enumerate(row)}


@lru_cache(maxsize=1)
def _confusion(how: tuple[tuple[str, Any], ...], seed: int, data_home: DataHome) -> Any:
    setting = dict(how)
    split = _split(setting, seed, data_home)
    model = make_classifier(setting, len(split.train), seed).fit(split.train, split.train_labels)
    found = model.predict(split.test)
    return np.asarray(confusion_matrix(split.test_labels, found, labels=_SHOWN_DIGITS))


DICTIONARIES = Study(
    name="kcrc/digits",
    dataset="mnist",
    quick=Size(_size_settings((100, 200), full=False), 2, "30 s"),
    full=Size(_size_settings(SIZES, full=True), 20, "30 min"),
    measure=measure_digits,
    parameters=PARAMETERS,
)
NEIGHBOURS = Study(
    name="kcrc/digits-neighbours",
    dataset="mnist",
    quick=Size(_own_settings((500,), (10, 50, 100), full=False), 2, "20 s"),
    full=Size(_own_settings(GLOBAL, OWN_ATOMS, full=True), 20, "12 min"),
    measure=measure_digits,
    parameters=PARAMETERS,
)
CONFUSION = Study(
    name="kcrc/digits-confused",
    dataset="mnist",
    quick=Size(_confusion_settings(), 1, "30 s"),
    full=Size(_confusion_settings(), 20, "3 min"),
    measure=measure_confusion,
    parameters=PARAMETERS,
)
