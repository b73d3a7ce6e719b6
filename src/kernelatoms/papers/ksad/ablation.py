"""What every part of K-SAD adds to the published method, and what it takes from the defaults.

Places are data sets. ORL and Extended Yale B: the splits of Table II, in short rows with the same
inner products. USPS as it is divided: seeds draw landmarks and starts only. MNIST: 5,000 training
digits a seed, the first 2,000 of the test digits.
"""

from typing import Any

from kernelatoms.papers.kcrc.data import Split
from kernelatoms.papers.ksad.data import (
    MNIST,
    N_YALEB,
    ORL,
    USPS,
    YALEB,
    mnist,
    turned,
    usps_digits,
)
from kernelatoms.papers.ksad.methods import DEGREE_2, DEGREE_8, LITERAL, ksad, low_rank_map, measure
from kernelatoms.papers.ksad.reported import FEW_DIGITS, NEAREST
from kernelatoms.papers.study import DataHome, Setting, Size, Study

#: The places, by number.
DATA: dict[float, str] = {0: ORL, 1: YALEB, 2: USPS, 3: MNIST}
N_ATOMS = {ORL: 240, YALEB: 740, USPS: 300, MNIST: 300}
N_TEST = 2000
_N_TRAIN = {ORL: 240, YALEB: N_YALEB, USPS: 7291, MNIST: FEW_DIGITS}

LITERAL_BASE, DEFAULT_BASE = "published", "defaults"
NEAREST_MAPPED = "1-NN on the map"

_WEIGHTS = (0, 0.003, 0.01, 0.03, 0.1, 0.3)
_LINEAR = {"kernel": "linear"}
_RBF = {"kernel": "rbf", "gamma": "spread"}
#: Changes of one part: words, parameters, and whether test codes have a threshold.
_BOTH: dict[str, dict[str, Any]] = {
    "test codes without threshold": {},
    **{f"threshold {weight:g}": {"l1_weight": weight} for weight in _WEIGHTS},
    "no term": {"fisher_weight": 0},
    "no threshold, no term": {"l1_weight": 0, "fisher_weight": 0},
    "1 pass": {"max_iter": 1},
    "no threshold, no term, 1 pass": {"l1_weight": 0, "fisher_weight": 0, "max_iter": 1},
    "k-means landmarks": {"sampling": "kmeans"},
    "linear kernel": _LINEAR,
    "(x'y)^2": DEGREE_2,
    "(x'y)^8": DEGREE_8,
    "RBF, spread": _RBF,
    "1 neighbour": {"n_neighbors": 1},
    "3 neighbours": {"n_neighbors": 3},
    "5 neighbours": {"n_neighbors": 5},
    "100 atoms": {"n_atoms": 100},
    "300 atoms": {"n_atoms": 300},
    "300 atoms, 300 landmarks": {"n_atoms": 300, "n_landmarks": 300},
    "500 atoms": {"n_atoms": 500},
}
_PUBLISHED_ONLY: dict[str, dict[str, Any]] = {
    "within-class metric": {"within_class_metric": True},
    "correlation": {"distance": "correlation"},
    "metric and correlation": {"within_class_metric": True, "distance": "correlation"},
    "no threshold, metric": {"l1_weight": 0, "within_class_metric": True},
}
_DEFAULTS_ONLY: dict[str, dict[str, Any]] = {
    "no within-class metric": {"within_class_metric": False},
    **{f"shrinkage {s:g}": {"shrinkage": s} for s in (0.001, 0.01, 0.1, 1)},
    **{f"term {weight:g}": {"fisher_weight": weight} for weight in (0.001, 0.01)},
    "l2 distance": {"distance": "l2"},
    "the paper's atoms": {},
}
# The paper's own choices stand in the first row.
_ALREADY = {LITERAL_BASE: ("threshold 0.1", "(x'y)^8", "1 neighbour"), DEFAULT_BASE: ()}
_QUICK = (
    NEAREST, LITERAL_BASE, DEFAULT_BASE, "published: test codes without threshold",
    "published: threshold 0", "published: within-class metric",
    "published: no threshold, no term", "published: no threshold, no term, 1 pass", NEAREST_MAPPED,
    "defaults: threshold 0", "defaults: no term", "defaults: 1 neighbour",
    "defaults: no within-class metric",
)  # fmt: skip


def changed(base: str, change: str) -> str:
    """Return the name of a row: one part of the published method, or of the defaults, changed."""
    return f"{base}: {change}"


def rows_of(base: str) -> list[str]:
    """Return the names of all rows that change one of the two."""
    only = _PUBLISHED_ONLY if base == LITERAL_BASE else _DEFAULTS_ONLY
    return [changed(base, c) for c in {**_BOTH, **only} if c not in _ALREADY[base]]


def _settings() -> list[Setting]:
    settings: list[Setting] = []
    for place, data in DATA.items():
        n_atoms, most = N_ATOMS[data], _N_TRAIN[data]
        rows: list[dict[str, Any]] = [{"method": NEAREST, "model": "nearest", "params": {}}]
        bases: dict[str, dict[str, Any]] = {
            LITERAL_BASE: {"n_atoms": n_atoms, **LITERAL}, DEFAULT_BASE: {},
        }  # fmt: skip
        for base, params in bases.items():
            rows.append(ksad(base, **params))
            only = _PUBLISHED_ONLY if base == LITERAL_BASE else _DEFAULTS_ONLY
            for change, other in {**_BOTH, **only}.items():
                new = {**params, **other}
                if change == "the paper's atoms":
                    new["n_atoms"] = n_atoms
                if new.get("n_atoms", 0) > most or change in _ALREADY[base]:
                    continue
                row = ksad(changed(base, change), **new)
                if change == "test codes without threshold":
                    row["threshold_at_test"] = False
                rows.append(row)
        # K-SAD's own landmarks: the same seed draws the same.
        map_ = low_rank_map(n_atoms, min(4 * n_atoms, most))
        rows.append({"method": NEAREST_MAPPED, "model": "nearest", "params": {}, "map": map_})
        settings += [{**row, "data": data, "x": place} for row in rows]
    return settings


def split_of(data: str, seed: int, data_home: DataHome) -> Split:
    """Return a split of a data set."""
    if data in (ORL, YALEB):
        return turned(data, seed, data_home).split
    if data == USPS:
        return usps_digits(data_home)
    split = mnist(FEW_DIGITS, seed, data_home)
    return split._replace(test=split.test[:N_TEST], test_labels=split.test_labels[:N_TEST])


def measure_part(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent and the seconds to learn and to classify."""
    return measure(setting, split_of(setting["data"], seed, data_home), seed)


PARTS = Study(
    name="ksad/ablation",
    dataset="orl",
    quick=Size([s for s in _settings() if s["x"] == 0 and s["method"] in _QUICK], 2, "20 s"),
    full=Size(_settings(), 5, "1 h"),
    measure=measure_part,
)
