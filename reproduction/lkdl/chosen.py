"""Rows of ours: what the paper leaves open is chosen on training rows, inside every run.

A run's seed draws the folds, so that each seed chooses by itself, and test rows have no part in
it. The setting has what is tried (``blurs``, ``gammas``, ...), the record what was chosen.

- USPS: LKDL under exp(-gamma d^2) of unit rows. ``blur`` is the standard deviation, in pixels, of a
  Gaussian that smooths the images first (0: none), which makes strokes moved by a part of a pixel
  alike. ``shrinkage`` (0: none) brings virtual samples to the metric within classes: times
  (S + shrinkage * mean eigenvalue of S)^(-1/2), S their scatter within classes, then unit norm.
  FDDL takes what LKDL has chosen of these, and chooses lambda_1.
- Extended Yale B: LC-KSVD with LKDL, gamma and nonzeros.
"""

import itertools
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import normalize

from kernelatoms import KSVD, ClassDictionaryClassifier, FDDLClassifier, KernelLinearizer
from kernelatoms.datasets import load_usps
from reproduction.kcrc.data import Split
from reproduction.lkdl.supervised import learned, rows_of
from reproduction.study import DataHome, Setting

Array = NDArray[Any]
Cell = tuple[float, ...]

#: What LKDL tries on USPS; the rest is the paper's.
DIGITS = {
    "blurs": [0.0, 0.75, 1.0], "gammas": [0.5, 1.0], "shrinkages": [0.0, 0.03, 0.1],
    "atoms": [450], "nonzeros": [8], "folds": 3, "passes": 5, "landmarks": 0.2, "rank": 256,
}  # fmt: skip
#: What FDDL tries beside the rows that LKDL has chosen.
FISHERS = {**DIGITS, "weights": [0.1, 0.2, 0.3], "n_atoms": 300, "fisher_weight": 0.001}
#: What LC-KSVD with LKDL tries on Extended Yale B; the rest is the table's.
FACES = {"gammas": [0.25, 0.5, 1.0], "nonzeros": [30, 60], "folds": 3, "rank": None}


def is_search(setting: Setting) -> bool:
    """Whether a run chooses by itself."""
    return "gammas" in setting


# USPS ---------------------------------------------------------------------------------------------


def measure_lkdl(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy on the test set in percent, and what was chosen."""
    scores = _lkdl_scores(_key(setting, DIGITS), seed, data_home)
    blur, gamma, shrinkage, n_atoms, n_nonzero = best = best_of(scores)
    rows = _mapped(_digits(blur, data_home), gamma, shrinkage, setting, seed)
    model = _dictionaries(setting, int(n_atoms), int(n_nonzero), seed)
    accuracy = model.fit(rows.train, rows.train_labels).score(rows.test, rows.test_labels)
    names = ("blur", "gamma", "shrinkage", "atoms", "nonzeros")
    taken = dict(zip(names, best, strict=True)) | {"validation": scores[best]}
    return {"accuracy": 100 * float(accuracy), **taken}


def measure_fddl(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracies of both decisions on the test set, and what was chosen."""
    blur, gamma, shrinkage, *_ = best_of(_lkdl_scores(_key(setting, DIGITS), seed, data_home))
    rows = _digits(blur, data_home)
    train, held_out = next(_folds(setting, rows, seed))
    part = _mapped(_part(rows, train, held_out), gamma, shrinkage, setting, seed)
    scores: dict[Cell, float] = {}
    for weight in setting["weights"]:
        model = _fisher(setting, weight, seed).fit(part.train, part.train_labels)
        scores[(weight,)] = model.score(part.test, part.test_labels)
    (weight,) = best_of(scores)
    whole = _mapped(rows, gamma, shrinkage, setting, seed)
    model = _fisher(setting, weight, seed).fit(whole.train, whole.train_labels)
    accuracy = {}
    for name, decision in (("accuracy", "local"), ("accuracy_global", "global")):
        model.set_params(decision=decision)
        accuracy[name] = 100 * float(model.score(whole.test, whole.test_labels))
    taken = {"blur": blur, "gamma": gamma, "shrinkage": shrinkage, "weight": weight}
    return {**accuracy, **taken}


@lru_cache(maxsize=1)
def _lkdl_scores(
    key: tuple[tuple[str, Any], ...], seed: int, data_home: DataHome
) -> Mapping[Cell, float]:
    """Return the share of training rows, left out in turn, that every choice labels rightly."""
    setting = dict(key)
    right: dict[Cell, float] = {}
    of_rows = itertools.product(setting["blurs"], setting["gammas"], setting["shrinkages"])
    for blur, gamma, shrinkage in of_rows:
        rows = _digits(blur, data_home)
        for train, left_out in _folds(setting, rows, seed):
            part = _mapped(_part(rows, train, left_out), gamma, shrinkage, setting, seed)
            for n_atoms, n_nonzero in itertools.product(setting["atoms"], setting["nonzeros"]):
                model = _dictionaries(setting, n_atoms, n_nonzero, seed)
                with warnings.catch_warnings():  # small classes use all of their rows
                    warnings.filterwarnings("ignore", "n_atoms=")
                    model.fit(part.train, part.train_labels)
                labels = model.predict(part.test)
                cell = (blur, gamma, shrinkage, n_atoms, n_nonzero)
                right[cell] = right.get(cell, 0) + float(np.sum(labels == part.test_labels))
    return {cell: count / len(rows.train) for cell, count in right.items()}


def _dictionaries(
    setting: Setting, n_atoms: int, n_nonzero: int, seed: int
) -> ClassDictionaryClassifier:
    learner = KSVD(n_atoms, n_nonzero_coefs=n_nonzero, max_iter=setting["passes"], tol=0)
    return ClassDictionaryClassifier(learner, random_state=seed)


def _fisher(setting: Setting, weight: float, seed: int) -> FDDLClassifier:
    return FDDLClassifier(
        setting["n_atoms"], l1_weight=weight, fisher_weight=setting["fisher_weight"],
        init_max_iter=0, max_iter=setting["passes"], tol=0, random_state=seed,
    )  # fmt: skip


def _mapped(rows: Split, gamma: float, shrinkage: float, setting: Setting, seed: int) -> Split:
    linearizer = KernelLinearizer(
        "rbf", gamma=gamma, n_landmarks=setting["landmarks"], n_components=setting["rank"],
        random_state=seed,
    ).fit(rows.train)  # fmt: skip
    train, test = linearizer.transform(rows.train), linearizer.transform(rows.test)
    if shrinkage:
        metric = _within_classes(train, rows.train_labels, shrinkage)
        train, test = (normalize(F @ metric).astype(F.dtype) for F in (train, test))
    return rows._replace(train=train, test=test)


def _within_classes(F: Array, labels: Array, shrinkage: float) -> Array:
    """Return (S + shrinkage * mean eigenvalue)^(-1/2) of the scatter S within classes."""
    centred = F.astype(np.float64)
    for label in np.unique(labels):
        centred[labels == label] -= centred[labels == label].mean(axis=0)
    eigenvalues, vectors = np.linalg.eigh(centred.T @ centred / len(F))
    return (vectors / np.sqrt(eigenvalues + shrinkage * eigenvalues.mean())) @ vectors.T


@lru_cache(maxsize=4)
def _digits(blur: float, data_home: DataHome) -> Split:
    """Return USPS, pixels in [0, 1], smoothed, at unit norm."""
    usps = load_usps(data_home=data_home)
    train, test = (_smoothed((X + 1) / 2, blur) for X in (usps.X_train, usps.X_test))
    return Split(train, usps.y_train, test, usps.y_test)


def _smoothed(pixels: Array, blur: float) -> Array:
    images = pixels.reshape(-1, 16, 16)
    if blur:
        images = gaussian_filter(images, (0, blur, blur), mode="constant")
    return normalize(images.reshape(len(images), -1)).astype(np.float32)


# Extended Yale B ----------------------------------------------------------------------------------


def measure_faces(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy on the test images in percent, and what was chosen."""
    rows = rows_of(setting, seed, data_home).split
    right: dict[Cell, float] = {}
    for train, left_out in _folds(setting, rows, seed):
        for gamma in setting["gammas"]:
            part = _exactly_mapped(_part(rows, train, left_out), gamma, setting["rank"], seed)
            for n_nonzero in setting["nonzeros"]:
                model = learned({**setting, "n_nonzero": n_nonzero}, part, seed)
                labels, cell = model.predict(part.test), (gamma, n_nonzero)
                right[cell] = right.get(cell, 0) + float(np.sum(labels == part.test_labels))
    gamma, n_nonzero = best = best_of(right)
    whole = _exactly_mapped(rows, gamma, setting["rank"], seed)
    model = learned({**setting, "n_nonzero": int(n_nonzero)}, whole, seed)
    accuracy = model.score(whole.test, whole.test_labels)
    taken = {"gamma": gamma, "nonzeros": n_nonzero, "validation": right[best] / len(rows.train)}
    return {"accuracy": 100 * float(accuracy), **taken}


def _exactly_mapped(rows: Split, gamma: float, rank: int | None, seed: int) -> Split:
    """Return virtual samples with all training rows as landmarks."""
    linearizer = KernelLinearizer(
        "rbf", gamma=gamma, n_landmarks=len(rows.train), n_components=rank, random_state=seed
    ).fit(rows.train)
    return rows._replace(
        train=linearizer.transform(rows.train), test=linearizer.transform(rows.test)
    )


# Both ---------------------------------------------------------------------------------------------


def best_of(scores: Mapping[Cell, float]) -> Cell:
    """Return the choice of the highest score, the first of equals."""
    return max(scores, key=lambda cell: scores[cell])


def _folds(setting: Setting, rows: Split, seed: int) -> Iterator[tuple[Array, Array]]:
    folds = StratifiedKFold(setting["folds"], shuffle=True, random_state=seed)
    yield from folds.split(rows.train, rows.train_labels)


def _part(rows: Split, train: Array, left_out: Array) -> Split:
    """Return training rows divided into some to learn from and some to judge by."""
    X, y = rows.train, rows.train_labels
    return Split(X[train], y[train], X[left_out], y[left_out])


def _key(setting: Setting, names: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the part of a setting that a search depends on, as a key."""
    parts = ((name, setting[name]) for name in names)
    return tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in parts)
