"""USPS, one class: how compact atoms are (Fig. 1), and what updates and starts of K-SVD reach.

Samples, kernel and sizes are those of ``usps``. The class is the seed's last digit.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from kernelatoms import KernelLinearizer, sparse_encode
from reproduction.kdl.reported import KERNEL, KERNEL_PRINTED, KERNEL_SWAPPED, PCA
from reproduction.kdl.usps import (
    AS_PRINTED,
    DEGREE,
    FIG_3,
    KERNEL_DICTIONARY,
    SPLIT,
    components_map,
    make_learner,
    model_parameters,
    sizes_of,
    split_digits,
)
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

OURS_ROWS, EXACT_ROWS = "two sweeps, from samples", "one exact sweep, from samples"
OURS_SUMS, EXACT_SUMS = "two sweeps, from sums", "one exact sweep, from sums (as printed)"
KERNEL_SEEN, PCA_SEEN = "kernel K-SVD, rows learned from", "kernel PCA, rows learned from"
TERMS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300)

PASSES = (1, 2, 3, 5, 10, 20, 40, 80)


def _compactness_settings(full: bool) -> list[Setting]:
    methods: list[dict[str, Any]] = [
        {"method": KERNEL, "seen": False, **KERNEL_DICTIONARY},
        {"method": PCA, "seen": False, "degree": DEGREE},
    ]
    if full:
        methods += [
            {"method": KERNEL_SEEN, "seen": True, **KERNEL_DICTIONARY},
            {"method": PCA_SEEN, "seen": True, "degree": DEGREE},
            {"method": KERNEL_PRINTED, "seen": False, **KERNEL_DICTIONARY, **AS_PRINTED},
            {"method": KERNEL_SWAPPED, "seen": False, **KERNEL_DICTIONARY, **FIG_3},
        ]
    terms = TERMS if full else (1, 5, 20, 50)
    return [{**method, "x": m} for method in methods for m in terms]


def measure_compactness(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return what m terms leave of digits of one class, in percent of k(z, z); m is x.

    Terms are m atoms by KOMP, or the first m kernel principal components. The class is the seed's
    last digit: ten seeds have every class once.
    """
    digit, terms = seed % 10, setting["x"]
    learned, new = _one_class(digit, seed, data_home, sizes_of(setting))
    rows = learned if setting["seen"] else new
    if "n_atoms" in setting:
        model = _dictionary_of(model_parameters(setting), digit, seed, data_home)
        correlations = _kernel(rows, model.anchors_, setting["degree"]) @ model.dual_coef_
        codes = sparse_encode(
            correlations, model.atom_gram_, n_nonzero_coefs=min(terms, model.n_atoms_),
            kernel="precomputed", sparse_output=False,
        )  # fmt: skip
        explained = np.vecdot(codes, correlations)
    else:
        components = _components_of(setting["degree"], digit, seed, data_home, sizes_of(setting))
        virtual = components.transform(rows)
        explained = np.sum(virtual[:, :terms] ** 2, axis=1)
    left = 100 * (1 - explained / np.vecdot(rows, rows) ** setting["degree"])
    return {"error": float(left.mean()), "median": float(np.median(left)), "digit": float(digit)}


def _kernel(X: Array, Y: Array, degree: int) -> Array:
    return (X @ Y.T) ** degree


def _one_class(
    digit: int, seed: int, data_home: DataHome, sizes: tuple[int, int]
) -> tuple[Array, Array]:
    digits = split_digits(seed, data_home, *sizes)
    learned = digits.rows[digits.labels == digit]
    new = normalize(digits.test_pixels[digits.test_labels == digit])
    return learned.astype(np.float64), new.astype(np.float64)


@lru_cache(maxsize=1)
def _dictionary_of(
    method: tuple[tuple[str, Any], ...], digit: int, seed: int, data_home: DataHome
) -> Any:
    setting = dict(method)
    rows, _ = _one_class(digit, seed, data_home, sizes_of(setting))
    learner = make_learner(setting)
    if learner.init == "rows":
        learner.set_params(n_atoms=min(learner.n_atoms, len(rows)))
    return learner.set_params(random_state=seed).fit(rows)


@lru_cache(maxsize=1)
def _components_of(
    degree: int, digit: int, seed: int, data_home: DataHome, sizes: tuple[int, int]
) -> KernelLinearizer:
    """Return the map to the components: all rows as landmarks make it kernel PCA, uncentred."""
    return components_map(degree, None).fit(_one_class(digit, seed, data_home, sizes)[0])


def measure_sweeps(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the lowest objective of the first x passes, in percent of the samples' k(z, z).

    Of one class, as for Fig. 1; ``passes_run`` tells where learning stopped.
    """
    model = _dictionary_of(model_parameters(setting), seed % 10, seed, data_home)
    rows, _ = _one_class(seed % 10, seed, data_home, sizes_of(setting))
    energy = float(np.sum(np.vecdot(rows, rows) ** setting["degree"]))
    reached = float(model.objective_[: setting["x"]].min())
    return {"objective": 100 * reached / energy, "passes_run": float(model.n_iter_)}


def _sweeps_settings(passes: tuple[int, ...]) -> list[Setting]:
    methods = [
        {"method": OURS_ROWS},
        {"method": EXACT_ROWS, "update": "exact"},
        {"method": OURS_SUMS, "init": "sums"},
        {"method": EXACT_SUMS, **FIG_3},
    ]
    return [{**KERNEL_DICTIONARY, **method, "x": x} for method in methods for x in passes]


COMPACTNESS = Study(
    name="kdl/usps-compactness",
    dataset="usps",
    quick=Size(_compactness_settings(full=False), 3, "10 s"),
    full=Size(_compactness_settings(full=True), 10, "3 min"),
    measure=measure_compactness,
    parameters=SPLIT,
)
SWEEPS = Study(
    name="kdl/usps-sweeps",
    dataset="usps",
    quick=Size(_sweeps_settings((1, 5, 20)), 2, "20 s"),
    full=Size(_sweeps_settings(PASSES), 10, "2 min"),
    measure=measure_sweeps,
    parameters=SPLIT,
)
