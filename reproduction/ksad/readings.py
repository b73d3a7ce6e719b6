"""What the paper leaves open, read in every way, and what each reading gives.

The text says neither how pixels are scaled, nor which images train and which test, nor in which
unit beta_1 and beta_2 are; and its Algorithm 1 contradicts itself. A reading is a choice of each:

- pixels: 0 to 255; 0 to 1; unit norm per row; mean 0 and variance 1 per pixel.
- beta_1 and beta_2: relative to the energy of the virtual samples, as everywhere in this library,
  or as printed, in their own unit. On unit rows these are nearly the same; under (x'y)^8 any other
  pixels have energies of 10^20 and more, beside which the printed weights are nothing.
- the kernel: (x'y)^8 as printed, (x'y)^2, or (x'y + 1)^8 (on unit rows; large x'y drown the 1).
- scatter: numbers, as printed, or matrices (on unit rows).
- the threshold: beta_1 / 2, which minimises eq. (5), or beta_1, as its T_beta_1 is printed (on unit
  rows).
- the decision: the nearest training code, test codes without threshold (step 15) or with it; or, as
  lines 16 to 19 have it, by the atoms Z: the class of the atom with the largest coefficient.
- the split: so many images per person or digits to train, the others to test.
"""

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler, normalize

from kernelatoms import KSADClassifier
from kernelatoms.datasets import load_mnist, load_orl, load_yaleb
from reproduction.kcrc.data import Split, of_every_class
from reproduction.ksad.data import MNIST, ORL, YALEB, short_rows
from reproduction.ksad.methods import measure
from reproduction.ksad.reported import DEFAULTS, NEAREST
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

RAW, ZERO_ONE, UNIT, STANDARD = "0 to 255", "0 to 1", "unit rows", "standardised"
STEP_15, THRESHOLD, BY_ATOMS = "step 15", "threshold at test", "by atoms"
DECISIONS = (STEP_15, THRESHOLD, BY_ATOMS)
N_ATOMS = {ORL: 240, YALEB: 740, MNIST: 300}
BETA_1 = 0.1
PRINTED, RELATIVE = "weights as printed", "relative"
#: The columns: data set, training rows (per person, for faces), with the images marked as bad.
SPLITS: dict[float, tuple[str, int, bool]] = {
    0: (ORL, 5, False),
    1: (ORL, 6, False),
    2: (ORL, 8, False),
    3: (YALEB, 32, False),
    4: (YALEB, 32, True),
    5: (YALEB, 48, False),
    6: (MNIST, 5_000, False),
    7: (MNIST, 60_000, False),
}
PLACES: dict[float, str] = {
    0: "ORL 5/5", 1: "ORL 6/4", 2: "ORL 8/2", 3: "Yale B 32/32", 4: "Yale B 32/32, all 2,432",
    5: "Yale B 48/16", 6: "MNIST 5,000", 7: "MNIST 60,000",
}  # fmt: skip
ALL_DIGITS_PLACE = 7
_N_TEST = {6: 2000, 7: 10_000}  # of the test digits, the first
# In these columns unit rows only, all else but the degree as printed.
_FEW = (4, 5, ALL_DIGITS_PLACE)

# Pixels, weights, kernel and scatter; the decisions share what they learned.
_LEARNED: list[dict[str, Any]] = [
    *({"pixels": pixels, "degree": degree, "weights": PRINTED}
      for pixels in (RAW, STANDARD) for degree in (8, 2)),
    *({"pixels": pixels, "degree": degree}
      for pixels in (ZERO_ONE, UNIT, STANDARD) for degree in (8, 2)),
    *({"pixels": UNIT, "degree": degree, "scatter": "full"} for degree in (8, 2)),
    {"pixels": UNIT, "coef0": 1},
    {"pixels": UNIT, "l1_weight": 2 * BETA_1},
]  # fmt: skip
_BASE: dict[str, Any] = {
    "weights": RELATIVE, "degree": 8, "coef0": 0, "scatter": "scalar", "l1_weight": BETA_1,
}  # fmt: skip


def name_of(reading: Setting) -> str:
    """Return the words of a reading."""
    constant = " + 1" if reading["coef0"] else ""
    words = [
        reading["pixels"], f"(x'y{constant})^{reading['degree']}",
        "numbers" if reading["scatter"] == "scalar" else "matrices",
    ]  # fmt: skip
    if reading["weights"] == PRINTED:
        words.append(PRINTED)
    if reading["l1_weight"] != BETA_1:
        words.append("threshold beta_1")
    return ", ".join([*words, reading["decision"]])


def _readings() -> list[dict[str, Any]]:
    found = []
    for learned in _LEARNED:
        for decision in DECISIONS:
            reading = {**_BASE, **learned, "decision": decision}
            found.append({"method": name_of(reading), **reading})
    return found


def _settings(data: str) -> list[Setting]:
    settings: list[Setting] = []
    for place, (name, n_train, corrupt) in SPLITS.items():
        if name != data:
            continue
        split = {"data": data, "n_train": n_train, "corrupt": corrupt, "x": place}
        for model, method in (("nearest", NEAREST), ("ksad", DEFAULTS)):
            if place != ALL_DIGITS_PLACE:  # these are in Table III
                row = {"method": method, "model": model, "params": {}, "pixels": UNIT}
                settings.append({**row, **split})
        for reading in _readings():
            others = {name for name in _BASE if reading[name] != _BASE[name]} - {"degree"}
            if place not in _FEW or (reading["pixels"] == UNIT and not others):
                settings.append({**reading, "n_atoms": N_ATOMS[data], **split})
    return settings


# Data ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def split_of(place: float, pixels: str, seed: int, data_home: DataHome) -> Split:
    """Return a split in short rows with the inner products of its pixels.

    In float64, which (x'y)^8 of pixels up to 255 needs; unit rows of digits in float32, as in Table
    III. Digits have fewer pixels than training rows, and are short already.
    """
    split = scaled(_divided(place, seed, data_home), pixels)
    if SPLITS[place][0] != MNIST:
        return short_rows(split).split
    if pixels != UNIT:
        return split
    return split._replace(train=split.train.astype(np.float32), test=split.test.astype(np.float32))


@lru_cache(maxsize=1)
def _divided(place: float, seed: int, data_home: DataHome) -> Split:
    """Return pixels as they are, 0 to 255."""
    data, n_train, corrupt = SPLITS[place]
    if data == MNIST:
        return _digits(n_train, _N_TEST[int(place)], seed, data_home)
    faces = _orl(data_home) if data == ORL else load_yaleb(size="96x84", data_home=data_home)
    X, y = faces.X, faces.y
    if corrupt:
        X, y = np.concatenate([X, faces.X_corrupt]), np.concatenate([y, faces.y_corrupt])
    X = _rows(X)
    train = of_every_class(y, n_train, seed)
    test = np.setdiff1d(np.arange(len(y)), train)
    return Split(X[train], y[train], X[test], y[test])


def _digits(n_train: int, n_test: int, seed: int, data_home: DataHome) -> Split:
    data = load_mnist(data_home=data_home)
    some = np.sort(np.random.default_rng(seed).permutation(len(data.X_train))[:n_train])
    test, labels = data.X_test[:n_test], data.y_test[:n_test]
    return Split(_rows(data.X_train[some]), data.y_train[some], _rows(test), labels)


def _rows(images: Array) -> Array:
    return images.reshape(len(images), -1).astype(np.float64)


def _orl(data_home: DataHome) -> Any:
    return load_orl(data_home=data_home, download_if_missing=False)


def scaled(split: Split, pixels: str) -> Split:
    """Return rows of pixels in one of the four ways."""
    train, test = split.train, split.test
    if pixels == ZERO_ONE:
        train, test = train / 255, test / 255
    elif pixels == UNIT:
        train, test = normalize(train), normalize(test)
    elif pixels == STANDARD:
        scaler = StandardScaler().fit(train)
        train, test = scaler.transform(train), scaler.transform(test)
    return split._replace(train=train, test=test)


# What the classifier takes of a setting.
_TAKEN = ("n_atoms", "degree", "coef0", "l1_weight", "fisher_weight", "scatter", "max_iter")

# Measures -----------------------------------------------------------------------------------------


def measure_reading(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent."""
    split = split_of(setting["x"], setting["pixels"], seed, data_home)
    if "model" in setting:
        return {"accuracy": measure(setting, split, seed)["accuracy"]}
    learned = tuple((name, setting[name]) for name in _TAKEN)
    printed = setting["weights"] == PRINTED
    model = _learned(setting["x"], setting["pixels"], printed, learned, seed, data_home)
    model.set_params(threshold_new=setting["decision"] == THRESHOLD)
    if setting["decision"] == BY_ATOMS:
        codes = np.asarray(model.transform(split.test))
        found = model.classes_[model.atom_classes_[codes.argmax(axis=1)]]
    else:
        found = model.predict(split.test)
    return {"accuracy": 100 * float(np.mean(found == split.test_labels))}


@lru_cache(maxsize=1)
def _learned(
    place: float,
    pixels: str,
    printed: bool,
    learned: tuple[tuple[str, Any], ...],
    seed: int,
    data_home: DataHome,
) -> KSADClassifier:
    split, params = split_of(place, pixels, seed, data_home), dict(learned)
    if printed:  # in the unit of virtual samples, whose energy is about k(x, x)
        norms2 = np.vecdot(split.train, split.train)
        energy = float(np.mean((norms2 + params["coef0"]) ** params["degree"]))
        params["l1_weight"] /= np.sqrt(energy)
        params["fisher_weight"] /= energy
    model = KSADClassifier.as_published(**params, sparse_output=False, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # 240 atoms of 200 images
        return model.fit(split.train, split.train_labels)


def _study(data: str, name: str, dataset: str, n_seeds: int, full: str) -> Study:
    settings = _settings(data)
    few = [s for s in settings if s["x"] not in _FEW and "weights" in s]
    quick = [s for s in few if s["pixels"] in (RAW, UNIT) and s["scatter"] == "scalar"]
    return Study(
        name=f"ksad/readings-{name}",
        dataset=dataset,
        quick=Size(quick[:6], 1, "30 s"),
        full=Size(settings, n_seeds, full),
        measure=measure_reading,
        parameters={"fisher_weight": 0.01, "max_iter": 20},
    )


READINGS_ORL = _study(ORL, "orl", "orl", 10, "3 min")
READINGS_YALEB = _study(YALEB, "yaleb", "yaleb_96x84", 3, "8 min")
READINGS_MNIST = _study(MNIST, "mnist", "mnist", 3, "5 min")
