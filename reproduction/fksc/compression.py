"""Table 2: what comes back of columns that were stored as a few numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.fksc.coders import (
    CHANGE,
    Coded,
    Task,
    code_as_published,
    code_chosen,
    code_constant,
    code_l1,
    code_mean,
    code_nearest,
    code_pca,
    code_rival,
    code_slice_before,
    dictionary,
)
from reproduction.fksc.reported import CD, FKSC, KFMC, KSC, KSR, LPM, RATIOS, SIGMA
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

EXACT, CHOSEN = "kernelatoms, the paper's sigma", "kernelatoms, chosen sigma"
CD_UNIT = "CD (linear), back to unit norm"
PCA, NEAREST = "PCA, as many stored numbers", "nearest training column, 1 number"
CONSTANT, BEFORE = "constant column, 1 number", "the slice before, nothing stored"
MEAN = "mean training column, nothing stored"

#: Weights of the penalty in the paper's range, at which dictionaries are learned.
PENALTIES = (0.001, 0.01, 0.1)
# The most passes over a dictionary as printed, and with FKSC inside: such a pass is a slow one.
_PRINTED_PASSES, _INSIDE_PASSES = 100, 4


def inside(penalty: float) -> str:
    """Return the name of FKSC over atoms learned with FKSC inside."""
    return f"FKSC, FKSC inside KSCDL, lambda {penalty:g}"


def printed(penalty: float) -> str:
    """Return the name of FKSC over atoms learned as printed."""
    return f"FKSC, KSCDL as printed, lambda {penalty:g}"


#: Below this an element counts as correctly reconstructed (NECR).
CORRECT = 1e-3


def errors(original: Array, returned: Array) -> dict[str, float]:
    """Return the metrics of A.5.3."""
    missed = np.abs(original - returned)
    return {
        "nrmse": float(np.linalg.norm(missed) / np.linalg.norm(original)),
        "nmae": float(missed.sum() / np.abs(original).sum()),
        "necr": float((missed < CORRECT).sum()),
    }


def measure_compression(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the errors of test columns coded at the ratio x, and what was stored."""
    task = Task.of({**setting, "ratio": setting["x"]}, seed, data_home)
    more = {}
    if setting["coder"] == "chosen":
        coded, more["sigma"] = code_chosen(task)
    else:
        coded = code(task, setting["coder"])
    if task.learned != "ours":
        more["passes"] = float(dictionary(task, task.sigma).learner.n_iter_)
    test = task.columns.test
    return {
        **errors(test, coded.rows),
        "ratio": test.size / max(coded.n_nonzero, 1),
        "nonzeros": coded.n_nonzero / len(test),
        "stored": coded.n_stored / len(test),
        **more,
    }


def code(task: Task, coder: str) -> Coded:
    """Code the test columns by the coder of this name."""
    if coder in ("ksc", "fksc"):
        return code_as_published(task, coder)
    if coder in ("kfmc", "ksr", "lpm"):
        return code_rival(task, coder)
    if coder.startswith("linear"):
        return code_l1(task, None, unit=coder == "linear, unit")
    if coder == "exact":
        return code_l1(task, task.sigma)
    baselines = {"pca": code_pca, "nearest": code_nearest, "constant": code_constant}
    return {**baselines, "mean": code_mean, "before": code_slice_before}[coder](task)


#: The coders of a table, in its order; quick sizes leave the slow ones out.
_CODERS = {
    CD: "linear", FKSC: "fksc", KSC: "ksc", KFMC: "kfmc", KSR: "ksr", LPM: "lpm",
    EXACT: "exact", CHOSEN: "chosen", PCA: "pca", CD_UNIT: "linear, unit",
}  # fmt: skip
_SLOW = (KSC, KSR, LPM)
_BASELINES = {NEAREST: "nearest", CONSTANT: "constant", MEAN: "mean", BEFORE: "before"}


def _settings(data: str, scale: str, full: bool) -> list[Setting]:
    coders = {method: c for method, c in _CODERS.items() if full or method not in _SLOW}
    if scale == "raw":
        del coders[CD_UNIT]  # raw columns have norms of their own
    ratios = RATIOS[data] if full else RATIOS[data][1::2]
    common = {"data": data, "scale": scale}
    settings: list[Setting] = [
        {**common, "method": method, "coder": coder, "x": ratio}
        for method, coder in coders.items()
        for ratio in ratios
    ]
    if scale != "raw":
        published = _published_settings(common, RATIOS[data])
        settings += published if full else [s for s in published if _is_quick(s, ratios)]
    baselines = [m for m in _BASELINES if m != BEFORE or data == "planetlab"]
    settings += [{**common, "method": m, "coder": _BASELINES[m], "x": None} for m in baselines]
    return settings


def _published_settings(common: Setting, ratios: tuple[float, ...]) -> list[Setting]:
    """Return FKSC over dictionaries that the paper's solver and stops learn, and by Algorithm 1.

    As printed, at two penalties and at the smallest and the largest ratio: these take longest.
    """
    ways = [("inside", inside(p), p, _INSIDE_PASSES, ratios) for p in PENALTIES]
    ways += [("printed", printed(p), p, _PRINTED_PASSES, ratios[::3]) for p in PENALTIES[1:]]
    return [
        {
            **common, "method": name, "coder": "fksc", "learned": learned, "penalty": penalty,
            "passes": passes, "x": ratio,
        }
        for learned, name, penalty, passes, places in ways
        for ratio in places
    ]  # fmt: skip


def _is_quick(setting: Setting, ratios: tuple[float, ...]) -> bool:
    chosen = setting["learned"], setting["penalty"], setting["x"]
    return chosen == ("inside", PENALTIES[1], ratios[0])


def _study(data: str, scale: str, name: str, times: tuple[str, str]) -> Study:
    return Study(
        name=f"fksc/compression-{name}",
        dataset="none" if data.startswith("syn") else data,
        quick=Size(_settings(data, scale, full=False), 1, times[0]),
        full=Size(_settings(data, scale, full=True), 3, times[1]),
        measure=measure_compression,
        parameters={
            "sigma": SIGMA[data], "penalty": 0.1, "passes": 20, "trial_passes": 8,
            "change_tol": CHANGE,
        },
    )  # fmt: skip


PLANETLAB = _study("planetlab", "unit", "planetlab", ("1 min", "20 min"))
SYN360 = _study("syn360", "minmax", "syn360", ("20 s", "10 min"))
SYN360_RAW = _study("syn360", "raw", "syn360-raw", ("20 s", "1 min"))
TRAFFIC = _study("traffic", "unit", "traffic", ("10 s", "1 min"))
PM25 = _study("pm25", "unit", "pm25", ("10 s", "3 min"))
