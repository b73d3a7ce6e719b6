"""USPS: digits under noise (Fig. 5a) and with missing pixels (5b).

500 training and 200 test samples per class, drawn from all 9298 (two sevenths of a class are for
testing where it has less than 700); pixels in [0, 1], rows of unit norm after corruption, missing
pixels 0; 300 atoms per class, 5 nonzeros, (x'y)^4, at most 80 passes (learning stops after three
passes that lower nothing). Kernel principal components are not centred: like atoms, they start at
the origin. Methods "as printed" have the update and the start of the paper's Fig. 3; one of them
has 500 atoms from 300 samples, as the text does.
"""

from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
)
from kernelatoms.datasets import load_usps
from reproduction.corruption import add_noise, kept_pixels
from reproduction.kdl.reported import (
    CLASSWISE,
    JOINT,
    KERNEL,
    KERNEL_PRINTED,
    KERNEL_SWAPPED,
    LINEAR,
    LINEAR_1,
    LINEAR_PRINTED,
    MISSING,
    MOD,
    NOISE,
)
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

LINEAR_OBSERVED = "linear K-SVD, observed pixels"
KERNEL_OBSERVED = "kernel K-SVD, observed pixels"
CLASSWISE_30 = "kernel PCA, class-wise, 30 components"

SPLIT = {"n_train": 500, "n_test": 200}
DEGREE = 4
_DICTIONARY = {"n_atoms": 300, "n_nonzero": 5, "passes": 80}
KERNEL_DICTIONARY = {**_DICTIONARY, "degree": DEGREE}
FIG_3 = {"update": "exact", "init": "sums"}
AS_PRINTED = {**FIG_3, "n_atoms": 500, "n_train": 300}


class Digits(NamedTuple):
    """Clean rows of unit norm to learn from, pixels to corrupt and test on."""

    rows: Array
    labels: Array
    test_pixels: Array
    test_labels: Array


def _corrupted_settings(levels: tuple[float, ...], full: bool, **more: Any) -> list[Setting]:
    methods: list[dict[str, Any]] = [
        {"method": LINEAR, **_DICTIONARY},
        {"method": MOD, "update": "mod", **KERNEL_DICTIONARY},
        {"method": KERNEL, **KERNEL_DICTIONARY},
        {"method": CLASSWISE, "components": 500, "degree": DEGREE, "classwise": True},
    ]
    if full:
        methods += [
            {"method": JOINT, "components": 500, "degree": DEGREE, "classwise": False},
            {"method": LINEAR_1, **_DICTIONARY, "n_nonzero": 1},
            {"method": CLASSWISE_30, "components": 30, "degree": DEGREE, "classwise": True},
            {"method": KERNEL_PRINTED, **KERNEL_DICTIONARY, **AS_PRINTED},
            {"method": KERNEL_SWAPPED, **KERNEL_DICTIONARY, **FIG_3},
            {"method": LINEAR_PRINTED, **_DICTIONARY, **AS_PRINTED},
        ]
        if "fill" in more:
            # Beyond the paper: missing pixels are NaN, and coding goes by the observed ones.
            methods += [
                {"method": LINEAR_OBSERVED, **_DICTIONARY, "fill": "nan"},
                {"method": KERNEL_OBSERVED, **KERNEL_DICTIONARY, "fill": "nan"},
            ]
    return [{**more, **method, "x": level} for method in methods for level in levels]


def measure_noise(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy under Gaussian noise, in percent."""
    digits = split_digits(seed, data_home, *sizes_of(setting))
    return _accuracy(setting, seed, data_home, add_noise(digits.test_pixels, setting["x"], seed))


def measure_missing(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy with a share of every image's pixels missing, in percent."""
    pixels = split_digits(seed, data_home, *sizes_of(setting)).test_pixels
    kept = kept_pixels(pixels.shape, setting["x"], seed)
    filled = np.where(kept, pixels, np.float32(setting["fill"]))
    return _accuracy(setting, seed, data_home, filled)


def _accuracy(setting: Setting, seed: int, data_home: DataHome, pixels: Array) -> dict[str, float]:
    model = _fitted(model_parameters(setting), seed, data_home)
    labels = split_digits(seed, data_home, *sizes_of(setting)).test_labels
    return {"accuracy": 100 * float(np.mean(model.predict(_unit(pixels)) == labels))}


def _unit(pixels: Array) -> Array:
    """Return rows of norm 1 over what is observed of them."""
    norms = np.sqrt(np.nansum(pixels**2, axis=1, keepdims=True))
    return pixels / np.where(norms > 0, norms, 1)


@lru_cache(maxsize=1)
def _fitted(method: tuple[tuple[str, Any], ...], seed: int, data_home: DataHome) -> Any:
    """Learn once for all levels of corruption: they only touch the test samples."""
    chosen = dict(method)
    digits = split_digits(seed, data_home, *sizes_of(chosen))
    model: Any
    if "n_atoms" in chosen:
        model = ClassDictionaryClassifier(make_learner(chosen), random_state=seed)
    elif chosen["classwise"]:
        model = ClassComponents(chosen["degree"], chosen["components"])
    else:
        n_components = min(chosen["components"], len(digits.rows))
        model = make_pipeline(
            components_map(chosen["degree"], n_components), LinearSVC(random_state=seed)
        )
    return model.fit(digits.rows, digits.labels)


class ClassComponents:
    """Kernel PCA in place of dictionaries: the class whose components leave least decides."""

    def __init__(self, degree: int, n_components: int) -> None:
        self.degree, self.n_components = degree, n_components

    def fit(self, X: Array, y: Array) -> Self:
        """Find the components of every class."""
        self.classes_ = np.unique(y)
        self.maps_ = []
        for label in self.classes_:
            rows = X[y == label]
            n_components = min(self.n_components, len(rows))
            self.maps_.append(components_map(self.degree, n_components).fit(rows))
        return self

    def predict(self, X: Array) -> Array:
        """Return the classes with the smallest residual k(x, x) - |projection|^2."""
        explained = [np.sum(m.transform(X) ** 2, axis=1) for m in self.maps_]
        return self.classes_[np.argmax(explained, axis=0)]


# Samples and learners, also of one class ----------------------------------------------------------


def make_learner(chosen: Setting) -> Any:
    """Return the learner of a dictionary that the setting asks for."""
    loop = {"n_nonzero_coefs": chosen["n_nonzero"], "max_iter": chosen["passes"], "tol": 0}
    if chosen.get("update") != "mod":
        loop |= {key: chosen[key] for key in ("update", "init") if key in chosen}
    if "degree" not in chosen:
        return KSVD(chosen["n_atoms"], **loop)
    learner = KernelMOD if chosen.get("update") == "mod" else KernelKSVD
    return learner(
        chosen["n_atoms"], kernel="poly", degree=chosen["degree"], gamma=1, coef0=0, **loop
    )


def sizes_of(setting: Setting) -> tuple[int, int]:
    """Return how many samples per class are learned from and tested on."""
    return setting["n_train"], setting["n_test"]


def components_map(degree: int, n_components: int | None) -> KernelLinearizer:
    """Return a map to kernel principal components, uncentred: all rows are landmarks."""
    return KernelLinearizer(
        "poly", degree=degree, gamma=1, coef0=0, n_landmarks=1.0, n_components=n_components,
        solver="full", random_state=0,
    )  # fmt: skip


def model_parameters(setting: Setting) -> tuple[tuple[str, Any], ...]:
    """Return what the fitted model depends on."""
    other = ("method", "x", "fill", "seen")
    return tuple((key, value) for key, value in setting.items() if key not in other)


@lru_cache(maxsize=1)
def _all_digits(data_home: DataHome) -> tuple[Array, Array]:
    usps = load_usps(data_home=data_home)
    pixels = (np.concatenate([usps.X_train, usps.X_test]) + 1) / 2
    return pixels, np.concatenate([usps.y_train, usps.y_test])


@lru_cache(maxsize=1)
def split_digits(seed: int, data_home: DataHome, n_train: int, n_test: int) -> Digits:
    """Draw training and test samples of every class."""
    pixels, labels = _all_digits(data_home)
    rng = np.random.default_rng(seed)
    train, test = [], []
    for digit in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == digit))
        tested = min(n_test, len(members) * n_test // (n_test + n_train))
        test.append(members[:tested])
        train.append(members[tested : tested + n_train])
    chosen, left = np.concatenate(train), np.concatenate(test)
    return Digits(normalize(pixels[chosen]), labels[chosen], pixels[left], labels[left])


NOISY = Study(
    name="kdl/usps-noise",
    dataset="usps",
    quick=Size(_corrupted_settings((0.0, 0.6, 1.2), full=False), 2, "40 s"),
    full=Size(_corrupted_settings(NOISE, full=True), 10, "20 min"),
    measure=measure_noise,
    parameters=SPLIT,
)
INCOMPLETE = Study(
    name="kdl/usps-missing",
    dataset="usps",
    quick=Size(_corrupted_settings((0.0, 0.4, 0.8), full=False, fill=0), 2, "40 s"),
    full=Size(_corrupted_settings(MISSING, full=True, fill=0), 10, "20 min"),
    measure=measure_missing,
    parameters=SPLIT,
)
