"""Times per query (Tables 3 and 4), and time and memory as the dictionary grows (Figs. 9 and 10).

Codes, residuals and decisions are timed, after a first call that prepares what fit left to do
(Gram matrices, inverses: the paper computes those before, too). All rows are float64, as in Matlab.
"""

import time
from functools import lru_cache
from typing import Any

import numpy as np

from reproduction.kcrc.alone import run_alone
from reproduction.kcrc.data import Split, digits, faces, many_digits
from reproduction.kcrc.methods import METHODS, PARAMETERS, make_classifier
from reproduction.kcrc.reported import CRC, KCRC, LCD, PAPERS_MU, SRC
from reproduction.study import DataHome, Setting, Size, Study

#: Table 3: atoms in all, K, and most queries at once.
TABLE_3 = {"mnist": (500, 50, 10_000), "yaleb": (1216, 200, 1198)}
AT_ONCE = {"mnist": (1, 10, 100, 1000, 10_000), "yaleb": (1, 10, 100, 1198)}
#: Dictionaries of the paper's sizes, and larger ones for local codes alone.
SIZES = (510, 1020, 1530, 2040, 2550, 3060, 10_000, 60_000)
#: Sides of digits: pixels averaged over squares, or repeated.
SIDES = (7, 14, 28, 56)
#: K, and atoms in all: the largest global dictionary, and where the dimension grows.
N_OWN, N_ATOMS = 510, 3060

_N_QUERIES = 50
# Of the slower methods fewer are asked at once; of the faster ones the median of some calls.
_MOST_SRC = 1000
_CALLS = 5


# Table 4 ------------------------------------------------------------------------------------------


def _query_settings(data: str, at_once: tuple[int, ...]) -> list[Setting]:
    n_atoms, own, _ = TABLE_3[data]
    settings: list[Setting] = []
    for method in (LCD, KCRC, CRC, SRC):
        how = {"method": method, **METHODS[method], "data": data, "n_atoms": n_atoms}
        if method != SRC:
            how["decades"] = PAPERS_MU
        if method == LCD:
            how["n_neighbors"] = own
        settings += [
            {**how, "x": n} for n in at_once if method != SRC or n <= min(_MOST_SRC, at_once[-1])
        ]
    return settings


def measure_queries(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the milliseconds a query, x of them at once: the median of some calls."""
    how = tuple((key, value) for key, value in setting.items() if key != "x")
    model, split = _fitted(how, seed, data_home)
    n_at_once = min(setting["x"], len(split.test))
    seconds = []
    for start in range(0, _CALLS * n_at_once, n_at_once):
        rows = np.arange(start, start + n_at_once) % len(split.test)
        seconds.append(_seconds(model, split.test[rows]))
    return {"ms": 1000 * float(np.median(seconds)) / n_at_once}


@lru_cache(maxsize=1)
def _fitted(how: tuple[tuple[str, Any], ...], seed: int, data_home: DataHome) -> tuple[Any, Split]:
    setting = dict(how)
    n_atoms, _, n_test = TABLE_3[setting["data"]]
    if setting["data"] == "mnist":
        split = digits(n_atoms, n_test, seed, data_home)
    else:
        split = faces(n_atoms, "randomface504", seed, data_home)
    model = make_classifier(setting, len(split.train), seed).fit(split.train, split.train_labels)
    for n in (1, 100):  # what is prepared, or compiled, with the first rows
        model.predict(split.test[:n])
    return model, split


def _seconds(model: Any, rows: Any) -> float:
    start = time.perf_counter()
    model.predict(rows)
    return time.perf_counter() - start


# Figs. 9 and 10 -----------------------------------------------------------------------------------


def _growth_settings(sizes: tuple[int, ...]) -> list[Setting]:
    return [
        {**how, "n_atoms": n, "side": 28, "x": n}
        for how in _contenders()
        for n in sizes if "n_neighbors" in how or n <= N_ATOMS
    ]  # fmt: skip


def _dimension_settings(sides: tuple[int, ...]) -> list[Setting]:
    return [
        {**how, "n_atoms": N_ATOMS, "side": side, "x": side**2}
        for how in _contenders()
        for side in sides
    ]


def _contenders() -> list[dict[str, Any]]:
    return [
        {"method": LCD, **METHODS[LCD], "decades": PAPERS_MU, "n_neighbors": N_OWN},
        {"method": KCRC, **METHODS[KCRC], "decades": PAPERS_MU},
        {"method": CRC, **METHODS[CRC], "decades": PAPERS_MU},
    ]


def measure_growth(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return milliseconds a query, asked one by one, and MiB, of a process that does nothing else.

    ``prepare`` is the seconds of fit and of the first call. ``mib`` is how far the process grew
    over what it held with the rows in memory, ``peak`` the most that it held; both are left out
    where the system does not tell.
    """
    split = many_digits(setting["n_atoms"], _N_QUERIES, seed, data_home)
    rows = {"train": _resized(split.train, setting["side"]), "labels": split.train_labels}
    return run_alone(dict(setting), {**rows, "test": _resized(split.test, setting["side"])})


def _resized(rows: Any, side: int) -> Any:
    """Return digits of so many pixels a side, by means over squares or by repeating pixels."""
    images = rows.reshape(-1, 28, 28)
    if side > 28:
        return images.repeat(side // 28, axis=1).repeat(side // 28, axis=2).reshape(len(rows), -1)
    step = 28 // side
    means = images.reshape(-1, side, step, side, step).mean(axis=(2, 4))
    return means.reshape(len(rows), -1)


MNIST = Study(
    name="kcrc/queries-mnist",
    dataset="mnist",
    quick=Size(_query_settings("mnist", (1, 100, 1000)), 1, "30 s"),
    full=Size(_query_settings("mnist", AT_ONCE["mnist"]), 3, "2 min"),
    measure=measure_queries,
    parameters=PARAMETERS,
)
YALEB = Study(
    name="kcrc/queries-yaleb",
    dataset="yaleb_randomface504",
    quick=Size(_query_settings("yaleb", (1, 100)), 1, "1 min"),
    full=Size(_query_settings("yaleb", AT_ONCE["yaleb"]), 3, "2 min"),
    measure=measure_queries,
    parameters=PARAMETERS,
)
GROWTH = Study(
    name="kcrc/growth",
    dataset="mnist",
    quick=Size(_growth_settings((510, 1020)), 1, "30 s"),
    full=Size(_growth_settings(SIZES), 1, "2 min"),
    measure=measure_growth,
    parameters=PARAMETERS,
)
DIMENSION = Study(
    name="kcrc/dimension",
    dataset="mnist",
    quick=Size(_dimension_settings((7, 28)), 1, "1 min"),
    full=Size(_dimension_settings(SIDES), 1, "2 min"),
    measure=measure_growth,
    parameters=PARAMETERS,
)
