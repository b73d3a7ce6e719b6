"""What every part of K-SAD adds to the published method, and what it takes from the defaults.

Places are data sets. ORL and Extended Yale B: the splits of Table II, in short rows with the same
inner products. USPS as it is divided: seeds draw landmarks and starts only. MNIST: 5,000 training
digits per seed, the first 2,000 of the test digits.
"""

from typing import Any

from reproduction.kcrc.data import Split
from reproduction.ksad.data import (
    MNIST,
    N_YALEB,
    ORL,
    USPS,
    YALEB,
    mnist,
    turned,
    usps_digits,
)
from reproduction.ksad.methods import (
    PAPER,
    POLYNOMIAL,
    ksad,
    low_rank_map,
    measure,
    published,
)
from reproduction.ksad.reported import FEW_DIGITS, NEAREST
from reproduction.study import DataHome, Setting, Size, Study

#: The places, by number.
DATA: dict[float, str] = {0: ORL, 1: YALEB, 2: USPS, 3: MNIST}
N_ATOMS = {ORL: 240, YALEB: 740, USPS: 300, MNIST: 300}
N_TEST = 2000
_N_TRAIN = {ORL: 240, YALEB: N_YALEB, USPS: 7291, MNIST: FEW_DIGITS}

LITERAL_BASE, DEFAULT_BASE = "published", "defaults"
NEAREST_MAPPED = "1-NN on the map"

# Without the term its scatter has no use, and is left at its default.
_NO_TERM = {"fisher_weight": 0, "scatter": "full"}
#: Changes of one part, by base: words and parameters.
_CHANGES: dict[str, dict[str, dict[str, Any]]] = {
    LITERAL_BASE: {
        "threshold on new rows": {"threshold_new": True},
        "scatter matrices": {"scatter": "full"},
        "scatter matrices, threshold on new rows": {"scatter": "full", "threshold_new": True},
        "no term": _NO_TERM,
        "threshold 0": {"l1_weight": 0},
        "no threshold, no term": {"l1_weight": 0, **_NO_TERM},
        "1 pass": {"max_iter": 1},
        "k-means landmarks": {"sampling": "kmeans"},
        "full eigensolver": {"solver": "full"},
        "(x'y)^2": {"degree": 2},
        "correlation": {"distance": "correlation"},
        "within-class metric": {"within_class_metric": True},
    },
    DEFAULT_BASE: {
        "no within-class metric": {"within_class_metric": False},
        "no threshold on new rows": {"threshold_new": False},
        "threshold 0": {"l1_weight": 0},
        "threshold 0.1": {"l1_weight": 0.1},
        "no threshold, 1 pass": {"l1_weight": 0, "max_iter": 1},
        "term 0.01": {"fisher_weight": 0.01},
        "shrinkage 0.1": {"shrinkage": 0.1},
        "linear kernel": {"kernel": "linear"},
        "(x'y)^2": {**POLYNOMIAL, "degree": 2},
        "k-means landmarks": {"sampling": "kmeans"},
        "1 neighbour": {"n_neighbors": 1},
        "5 neighbours": {"n_neighbors": 5},
        "l2 distance": {"distance": "l2"},
        "100 atoms": {"n_atoms": 100},
        "300 atoms": {"n_atoms": 300},
        "300 atoms, 300 landmarks": {"n_atoms": 300, "n_landmarks": 300},
    },
}
# All rows are landmarks there: these changes are none.
_ALL_LANDMARKS, _OF_LANDMARKS = (ORL, YALEB), ("full eigensolver", "k-means landmarks")
_QUICK = (
    NEAREST, LITERAL_BASE, DEFAULT_BASE, "published: threshold on new rows",
    "published: scatter matrices", "published: threshold 0", "published: within-class metric",
    "published: no threshold, no term", NEAREST_MAPPED, "defaults: threshold 0",
    "defaults: 1 neighbour", "defaults: no within-class metric",
)  # fmt: skip


def changed(base: str, change: str) -> str:
    """Return the name of a row: one part of the published method, or of the defaults, changed."""
    return f"{base}: {change}"


def rows_of(base: str) -> list[str]:
    """Return the names of all rows that change one of the two."""
    return [changed(base, change) for change in _CHANGES[base]]


def _settings() -> list[Setting]:
    settings: list[Setting] = []
    for place, data in DATA.items():
        n_atoms, most = N_ATOMS[data], _N_TRAIN[data]
        rows = [{"method": NEAREST, "model": "nearest", "params": {}}]
        for base, row_of in ((LITERAL_BASE, published), (DEFAULT_BASE, ksad)):
            rows.append(row_of(base))
            rows += [
                row_of(changed(base, change), **other)
                for change, other in _CHANGES[base].items()
                if other.get("n_atoms", 0) <= most
                and not (data in _ALL_LANDMARKS and change in _OF_LANDMARKS)
            ]
        # K-SAD's own landmarks: the same seed draws the same.
        map_ = low_rank_map(min(4 * n_atoms, most))
        rows.append({"method": NEAREST_MAPPED, "model": "nearest", "params": {}, "map": map_})
        settings += [{**row, "data": data, "n_atoms": n_atoms, "x": place} for row in rows]
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
    full=Size(_settings(), 5, "28 min"),
    measure=measure_part,
    parameters=PAPER,
)
