"""USPS: how compact atoms are (Fig. 1), and digits under noise (5a) and with missing pixels (5b).

500 training and 200 test samples a class, drawn from all 9298 (two sevenths of a class are for
testing where it has less than 700); pixels in [0, 1], rows of unit norm after corruption, missing
pixels 0; 300 atoms a class, 5 nonzeros, (x'y)^4, at most 80 passes (learning stops after three
passes that lower nothing). Kernel principal components are not centred: like atoms, they start at
the origin.
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
    sparse_encode,
)
from kernelatoms.datasets import load_usps
from kernelatoms.papers.corruption import add_noise, kept_pixels
from kernelatoms.papers.kdl.reported import (
    CLASSWISE,
    JOINT,
    KERNEL,
    LINEAR,
    LINEAR_1,
    MISSING,
    MOD,
    NOISE,
    PCA,
)
from kernelatoms.papers.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

LINEAR_OBSERVED = "linear K-SVD, observed pixels"
KERNEL_OBSERVED = "kernel K-SVD, observed pixels"
CLASSWISE_30 = "kernel PCA, class-wise, 30 components"
KERNEL_SEEN, PCA_SEEN = "kernel K-SVD, rows learned from", "kernel PCA, rows learned from"
TERMS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300)

_N_TRAIN, _N_TEST = 500, 200
_DEGREE = 4
_DICTIONARY = {"n_atoms": 300, "n_nonzero": 5, "passes": 80}
_KERNEL_DICTIONARY = {**_DICTIONARY, "degree": _DEGREE}


class Digits(NamedTuple):
    """Clean rows of unit norm to learn from, pixels to corrupt and test on."""

    rows: Array
    labels: Array
    test_pixels: Array
    test_labels: Array


# Fig. 1 -------------------------------------------------------------------------------------------


def _compactness_settings(full: bool) -> list[Setting]:
    methods: list[dict[str, Any]] = [
        {"method": KERNEL, "seen": False, **_KERNEL_DICTIONARY},
        {"method": PCA, "seen": False, "degree": _DEGREE},
    ]
    if full:
        methods += [
            {"method": KERNEL_SEEN, "seen": True, **_KERNEL_DICTIONARY},
            {"method": PCA_SEEN, "seen": True, "degree": _DEGREE},
        ]
    terms = TERMS if full else (1, 5, 20, 50)
    return [{**method, "x": m} for method in methods for m in terms]


def measure_compactness(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return what m terms leave of digits of one class, in percent of k(z, z); m is x.

    Terms are m atoms by KOMP, or the first m kernel principal components. The class is the seed's
    last digit: ten seeds have every class once.
    """
    digit, terms = seed % 10, setting["x"]
    learned, new = _one_class(digit, seed, data_home)
    rows = learned if setting["seen"] else new
    if "n_atoms" in setting:
        model = _dictionary_of(_parameters(setting), digit, seed, data_home)
        correlations = _kernel(rows, model.anchors_, setting["degree"]) @ model.dual_coef_
        codes = sparse_encode(
            correlations, model.atom_gram_, n_nonzero_coefs=min(terms, model.n_atoms_),
            kernel="precomputed", sparse_output=False,
        )  # fmt: skip
        explained = np.vecdot(codes, correlations)
    else:
        virtual = _components_of(setting["degree"], digit, seed, data_home).transform(rows)
        explained = np.sum(virtual[:, :terms] ** 2, axis=1)
    left = 100 * (1 - explained / np.vecdot(rows, rows) ** setting["degree"])
    return {"error": float(left.mean()), "median": float(np.median(left)), "digit": float(digit)}


def _kernel(X: Array, Y: Array, degree: int) -> Array:
    return (X @ Y.T) ** degree


def _one_class(digit: int, seed: int, data_home: DataHome) -> tuple[Array, Array]:
    digits = _split(seed, data_home)
    learned = digits.rows[digits.labels == digit]
    new = normalize(digits.test_pixels[digits.test_labels == digit])
    return learned.astype(np.float64), new.astype(np.float64)


@lru_cache(maxsize=1)
def _dictionary_of(
    method: tuple[tuple[str, Any], ...], digit: int, seed: int, data_home: DataHome
) -> Any:
    rows, _ = _one_class(digit, seed, data_home)
    learner = _learner(dict(method))
    n_atoms = min(learner.n_atoms, len(rows))
    return learner.set_params(n_atoms=n_atoms, random_state=seed).fit(rows)


@lru_cache(maxsize=1)
def _components_of(degree: int, digit: int, seed: int, data_home: DataHome) -> KernelLinearizer:
    """Return the map to the components: all rows as landmarks make it kernel PCA, uncentred."""
    return _components(degree, None).fit(_one_class(digit, seed, data_home)[0])


# Fig. 5 -------------------------------------------------------------------------------------------


def _corrupted_settings(levels: tuple[float, ...], full: bool, **more: Any) -> list[Setting]:
    methods: list[dict[str, Any]] = [
        {"method": LINEAR, **_DICTIONARY},
        {"method": MOD, "update": "mod", **_KERNEL_DICTIONARY},
        {"method": KERNEL, **_KERNEL_DICTIONARY},
        {"method": CLASSWISE, "components": 500, "degree": _DEGREE, "classwise": True},
    ]
    if full:
        methods += [
            {"method": JOINT, "components": 500, "degree": _DEGREE, "classwise": False},
            {"method": LINEAR_1, **_DICTIONARY, "n_nonzero": 1},
            {"method": CLASSWISE_30, "components": 30, "degree": _DEGREE, "classwise": True},
        ]
        if "fill" in more:
            # Beyond the paper: missing pixels are NaN, and coding goes by the observed ones.
            methods += [
                {"method": LINEAR_OBSERVED, **_DICTIONARY, "fill": "nan"},
                {"method": KERNEL_OBSERVED, **_KERNEL_DICTIONARY, "fill": "nan"},
            ]
    return [{**more, **method, "x": level} for method in methods for level in levels]


def measure_noise(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy under Gaussian noise, in percent."""
    digits = _split(seed, data_home)
    return _accuracy(setting, seed, data_home, add_noise(digits.test_pixels, setting["x"], seed))


def measure_missing(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy with a share of every image's pixels missing, in percent."""
    pixels = _split(seed, data_home).test_pixels
    kept = kept_pixels(pixels.shape, setting["x"], seed)
    filled = np.where(kept, pixels, np.float32(setting["fill"]))
    return _accuracy(setting, seed, data_home, filled)


def _accuracy(setting: Setting, seed: int, data_home: DataHome, pixels: Array) -> dict[str, float]:
    model = _fitted(_parameters(setting), seed, data_home)
    labels = _split(seed, data_home).test_labels
    return {"accuracy": 100 * float(np.mean(model.predict(_unit(pixels)) == labels))}


def _unit(pixels: Array) -> Array:
    """Return rows of norm 1 over what is observed of them."""
    norms = np.sqrt(np.nansum(pixels**2, axis=1, keepdims=True))
    return pixels / np.where(norms > 0, norms, 1)


@lru_cache(maxsize=1)
def _fitted(method: tuple[tuple[str, Any], ...], seed: int, data_home: DataHome) -> Any:
    """Learn once for all levels of corruption: they only touch the test samples."""
    chosen, digits = dict(method), _split(seed, data_home)
    model: Any
    if "n_atoms" in chosen:
        model = ClassDictionaryClassifier(_learner(chosen), random_state=seed)
    elif chosen["classwise"]:
        model = ClassComponents(chosen["degree"], chosen["components"])
    else:
        n_components = min(chosen["components"], len(digits.rows))
        model = make_pipeline(
            _components(chosen["degree"], n_components), LinearSVC(random_state=seed)
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
            self.maps_.append(_components(self.degree, n_components).fit(rows))
        return self

    def predict(self, X: Array) -> Array:
        """Return the classes with the smallest residual k(x, x) - |projection|^2."""
        explained = [np.sum(m.transform(X) ** 2, axis=1) for m in self.maps_]
        return self.classes_[np.argmax(explained, axis=0)]


# Both ---------------------------------------------------------------------------------------------


def _learner(chosen: Setting) -> Any:
    loop = {"n_nonzero_coefs": chosen["n_nonzero"], "max_iter": chosen["passes"], "tol": 0}
    if "degree" not in chosen:
        return KSVD(chosen["n_atoms"], **loop)
    learner = KernelMOD if chosen.get("update") == "mod" else KernelKSVD
    return learner(
        chosen["n_atoms"], kernel="poly", degree=chosen["degree"], gamma=1, coef0=0, **loop
    )


def _components(degree: int, n_components: int | None) -> KernelLinearizer:
    return KernelLinearizer(
        "poly", degree=degree, gamma=1, coef0=0, n_landmarks=1.0, n_components=n_components,
        solver="full", random_state=0,
    )  # fmt: skip


def _parameters(setting: Setting) -> tuple[tuple[str, Any], ...]:
    """Return what the fitted model depends on."""
    other = ("method", "x", "fill", "seen")
    return tuple((key, value) for key, value in setting.items() if key not in other)


@lru_cache(maxsize=1)
def _all_digits(data_home: DataHome) -> tuple[Array, Array]:
    usps = load_usps(data_home=data_home)
    pixels = (np.concatenate([usps.X_train, usps.X_test]) + 1) / 2
    return pixels, np.concatenate([usps.y_train, usps.y_test])


@lru_cache(maxsize=1)
def _split(seed: int, data_home: DataHome) -> Digits:
    """Draw training and test samples of every class."""
    pixels, labels = _all_digits(data_home)
    rng = np.random.default_rng(seed)
    train, test = [], []
    for digit in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == digit))
        n_test = min(_N_TEST, len(members) * _N_TEST // (_N_TEST + _N_TRAIN))
        test.append(members[:n_test])
        train.append(members[n_test : n_test + _N_TRAIN])
    learned, tested = np.concatenate(train), np.concatenate(test)
    return Digits(normalize(pixels[learned]), labels[learned], pixels[tested], labels[tested])


COMPACTNESS = Study(
    name="kdl/usps-compactness",
    dataset="usps",
    quick=Size(_compactness_settings(full=False), 3, "10 s"),
    full=Size(_compactness_settings(full=True), 10, "2 min"),
    measure=measure_compactness,
)
NOISY = Study(
    name="kdl/usps-noise",
    dataset="usps",
    quick=Size(_corrupted_settings((0.0, 0.6, 1.2), full=False), 2, "40 s"),
    full=Size(_corrupted_settings(NOISE, full=True), 10, "10 min"),
    measure=measure_noise,
)
INCOMPLETE = Study(
    name="kdl/usps-missing",
    dataset="usps",
    quick=Size(_corrupted_settings((0.0, 0.4, 0.8), full=False, fill=0), 2, "40 s"),
    full=Size(_corrupted_settings(MISSING, full=True, fill=0), 10, "10 min"),
    measure=measure_missing,
)
