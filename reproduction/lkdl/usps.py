"""USPS: how good the map is (Fig. 1a), how well it classifies (1b), under noise (2a) and with
missing pixels (2b).

Pixels lie in [0, 1], rows have unit l2 norm after corruption, missing pixels are 0; 300 atoms per
class, 5 nonzeros, 5 passes, rank 256, the published split. The kernel is (x'y)^2, as in the
authors' result files, and (x'y)^4, as in the text. Kernel K-SVD is exact: all rows of a class, no
landmarks.
"""  # noqa: D205

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.utils import Bunch

from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelLinearizer,
    nystrom_error,
)
from kernelatoms.datasets import load_usps
from reproduction.corruption import add_noise, kept_pixels
from reproduction.lkdl.chosen import DIGITS, is_search, measure_lkdl
from reproduction.lkdl.reported import (
    BEST,
    COLUMN_NORM,
    CORESET,
    DIAGONAL,
    KERNEL,
    KMEANS,
    LINEAR,
    MISSING,
    NOISE,
    SHARES,
    UNIFORM,
    chosen,
)
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

SAMPLING_OF = {
    KMEANS: "kmeans",
    UNIFORM: "uniform",
    CORESET: "coreset",
    DIAGONAL: "diagonal",
    COLUMN_NORM: "column-norm",
}
LINEAR_3 = "linear K-SVD, 3 nonzeros"
OURS = chosen("LKDL")
#: Places of Fig. 1 under (x'y)^4, where there are no numbers of the authors' to compare with.
SHARES_4 = (0.05, 0.1, 0.2, 0.3, 0.5)

_N_APPROXIMATED = 2000
_OURS: Setting = {"method": OURS, **DIGITS, "x": None}
_DICTIONARY = {"n_atoms": 300, "n_nonzero": 5, "passes": 5}


def to_the_fourth(method: str) -> str:
    """Return the name of a method under (x'y)^4, where (x'y)^2 is shown too."""
    return f"{method}, (x'y)^4"


def _map_settings(methods: list[str], shares: tuple[float, ...], degree: int) -> list[Setting]:
    return [
        {"method": method, "x": share, "degree": degree, "n_rows": _N_APPROXIMATED}
        for method in methods
        for share in shares
    ]


def _linear(method: str = LINEAR, n_nonzero: int = 5) -> dict[str, Any]:
    return {"method": method, **_DICTIONARY, "n_nonzero": n_nonzero}


def _kernel(method: str = KERNEL, degree: int = 2) -> dict[str, Any]:
    return {"method": method, **_DICTIONARY, "degree": degree}


def _lkdl(method: str, share: float, degree: int = 2) -> dict[str, Any]:
    sampling = SAMPLING_OF.get(method, "coreset")
    mapped = {"sampling": sampling, "landmarks": share, "degree": degree, "rank": 256}
    return {"method": method, **_DICTIONARY, **mapped}


def _landmark_settings(methods: list[str], shares: tuple[float, ...], degree: int) -> list[Setting]:
    without: list[Setting] = [
        {**_linear(), "x": None},
        {**_linear(LINEAR_3, n_nonzero=3), "x": None},
        {**_kernel(degree=degree), "x": None},
    ]
    return without + [{**_lkdl(m, share, degree), "x": share} for m in methods for share in shares]


def _corruption_settings(levels: tuple[float, ...], full: bool) -> list[Setting]:
    methods = [_linear(), _lkdl(CORESET, 0.2)]
    if full:
        methods += [_linear(LINEAR_3, n_nonzero=3), _lkdl(KMEANS, 0.2), _lkdl(UNIFORM, 0.2)]
        methods += [_lkdl(to_the_fourth(CORESET), 0.2, degree=4), _kernel()]
        methods += [_kernel(to_the_fourth(KERNEL), degree=4)]
    return [{**method, "x": level} for method in methods for level in levels]


def measure_map(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return eq. (30) of one map of 2000 random rows, with k = c, and the best rank-c error."""
    rows, energies = _some_rows(seed, setting["n_rows"], setting["degree"], data_home)
    n_landmarks = round(setting["x"] * len(rows))
    best = float(np.sqrt(energies[n_landmarks:].sum() / energies.sum()))
    if setting["method"] == BEST:
        return {"error": best, "ratio": 1.0}
    linearizer = KernelLinearizer(
        "poly", degree=setting["degree"], gamma=1, coef0=0, n_landmarks=n_landmarks,
        sampling=SAMPLING_OF[setting["method"]], random_state=seed,
    )  # fmt: skip
    error = nystrom_error(linearizer.fit(rows), rows)
    return {"error": error, "ratio": error / best}


def measure_clean(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy on the test set, in percent."""
    if is_search(setting):
        return measure_lkdl(setting, seed, data_home)
    return _accuracy(setting, seed, data_home, _data(data_home).X_test)


def measure_noise(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy under Gaussian noise; all methods see the same noise."""
    pixels = _data(data_home).X_test
    return _accuracy(setting, seed, data_home, add_noise(pixels, setting["x"], seed))


def measure_missing(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy with a share of every image's pixels set to 0; the same for all."""
    pixels = _data(data_home).X_test
    kept = kept_pixels(pixels.shape, setting["x"], seed)
    return _accuracy(setting, seed, data_home, pixels * kept)


APPROXIMATION = Study(
    name="lkdl/usps-approximation",
    dataset="usps",
    quick=Size(_map_settings([BEST, KMEANS, UNIFORM], (0.05, 0.1, 0.2), 2), 3, "20 s"),
    full=Size(_map_settings([BEST, *SAMPLING_OF], SHARES, 2), 10, "4 min"),
    measure=measure_map,
)
APPROXIMATION_4 = Study(
    name="lkdl/usps-approximation-4",
    dataset="usps",
    quick=Size(_map_settings([BEST, KMEANS, UNIFORM], (0.05, 0.1, 0.2), 4), 3, "20 s"),
    full=Size(_map_settings([BEST, *SAMPLING_OF], SHARES_4, 4), 10, "2 min"),
    measure=measure_map,
)
LANDMARKS = Study(
    name="lkdl/usps-landmarks",
    dataset="usps",
    quick=Size(_landmark_settings([KMEANS, UNIFORM, CORESET], (0.05, 0.2), 2), 3, "30 s"),
    full=Size([*_landmark_settings(list(SAMPLING_OF), SHARES, 2), _OURS], 10, "15 min"),
    measure=measure_clean,
)
LANDMARKS_4 = Study(
    name="lkdl/usps-landmarks-4",
    dataset="usps",
    quick=Size(_landmark_settings([KMEANS, UNIFORM, CORESET], (0.05, 0.2), 4), 3, "30 s"),
    full=Size(_landmark_settings(list(SAMPLING_OF), SHARES_4, 4), 10, "5 min"),
    measure=measure_clean,
)
NOISY = Study(
    name="lkdl/usps-noise",
    dataset="usps",
    quick=Size(_corruption_settings((0.0, 0.6, 1.2), full=False), 3, "20 s"),
    full=Size(_corruption_settings(NOISE, full=True), 10, "9 min"),
    measure=measure_noise,
)
INCOMPLETE = Study(
    name="lkdl/usps-missing",
    dataset="usps",
    quick=Size(_corruption_settings((0.0, 0.4, 0.8), full=False), 3, "20 s"),
    full=Size(_corruption_settings(MISSING, full=True), 10, "9 min"),
    measure=measure_missing,
)


@lru_cache(maxsize=1)
def _data(data_home: DataHome) -> Bunch:
    usps = load_usps(data_home=data_home)
    # From [-1, 1]: background is 0, which is also what a missing pixel is.
    usps.X_train, usps.X_test = (usps.X_train + 1) / 2, (usps.X_test + 1) / 2
    return usps


@lru_cache(maxsize=1)
def _some_rows(seed: int, n_rows: int, degree: int, data_home: DataHome) -> tuple[Array, Array]:
    """Return random rows, and the squared eigenvalues of their kernel matrix, largest first."""
    pixels = _data(data_home).X_train
    picked = np.random.default_rng(seed).permutation(len(pixels))[:n_rows]
    rows = normalize(pixels[picked].astype(np.float64))
    eigenvalues = np.linalg.eigvalsh((rows @ rows.T) ** degree)
    return rows, eigenvalues[::-1] ** 2


def _accuracy(setting: Setting, seed: int, data_home: DataHome, pixels: Array) -> dict[str, float]:
    method = tuple((key, value) for key, value in setting.items() if key not in ("x", "method"))
    model = _fitted(method, seed, data_home)
    labels = _data(data_home).y_test
    return {"accuracy": 100 * float(model.score(normalize(pixels).astype(np.float32), labels))}


@lru_cache(maxsize=1)
def _fitted(method: tuple[tuple[str, Any], ...], seed: int, data_home: DataHome) -> Any:
    """Learn once for all levels of corruption: they only touch the test set."""
    picked, usps = dict(method), _data(data_home)
    loop = {"n_nonzero_coefs": picked["n_nonzero"], "max_iter": picked["passes"], "tol": 0}
    learner = KSVD(picked["n_atoms"], **loop)
    if "degree" in picked and "sampling" not in picked:
        learner = KernelKSVD(
            picked["n_atoms"], kernel="poly", degree=picked["degree"], gamma=1, coef0=0, **loop
        )
    model = ClassDictionaryClassifier(learner, random_state=seed)
    if "sampling" in picked:
        linearizer = KernelLinearizer(
            "poly", degree=picked["degree"], gamma=1, coef0=0, n_landmarks=picked["landmarks"],
            n_components=picked["rank"], sampling=picked["sampling"], random_state=seed,
        )  # fmt: skip
        model = make_pipeline(linearizer, model)
    return model.fit(normalize(usps.X_train).astype(np.float32), usps.y_train)
