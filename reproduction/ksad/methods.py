"""From a setting to a classifier, and what is measured of it; the same for every study.

A setting says ``model`` and its ``params``: those given to the class, all others at their defaults
(so "our defaults" are whatever the library has). ``published`` is the preset
``KSADClassifier.as_published``. ``from_paper`` names parameters of the study, which all settings
share (``PAPER``, and the number of atoms), that the model takes too. ``map``: parameters of a
kernel map before the model, degree and rank of the study where it has none.
"""

import json
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    FDDLClassifier,
    KernelKSVD,
    KSADClassifier,
    SRCClassifier,
    make_lkdl,
)
from reproduction.kcrc.data import Split
from reproduction.store import key_of
from reproduction.study import Setting

#: A polynomial without constant: with the paper's degree its kernel, (x'y)^8.
POLYNOMIAL: dict[str, Any] = {"kernel": "poly", "gamma": 1, "coef0": 0}
#: Section IV: degree of the kernel, beta_1, beta_2 and passes.
PAPER: dict[str, Any] = {"degree": 8, "l1_weight": 0.1, "fisher_weight": 0.01, "max_iter": 20}
_ALL = ("n_atoms", *PAPER)
# What a classifier depends on.
_HOW = ("model", "params", "from_paper", "map", *_ALL)

_MODELS: dict[str, Callable[[dict[str, Any], int], Any]] = {
    "ksad": lambda params, seed: KSADClassifier(**params, random_state=seed),
    "published": lambda params, seed: KSADClassifier.as_published(**params, random_state=seed),
    "nearest": lambda params, seed: KNeighborsClassifier(1, algorithm="brute", **params),
    "src": lambda params, seed: SRCClassifier(**params),
    "ksvd": lambda params, seed: ClassDictionaryClassifier(KSVD(**params), random_state=seed),
    "kernel-ksvd": lambda params, seed: ClassDictionaryClassifier(
        KernelKSVD(**params), random_state=seed
    ),
    "fddl": lambda params, seed: FDDLClassifier(**params, random_state=seed),
    "svm": lambda params, seed: SVC(**params),
}


def ksad(method: str, from_paper: Sequence[str] = (), **params: Any) -> dict[str, Any]:
    """Return a row of K-SAD with these parameters, the others at their defaults."""
    return {"method": method, "model": "ksad", "params": params, "from_paper": list(from_paper)}


def published(method: str, **params: Any) -> dict[str, Any]:
    """Return a row of K-SAD as published, but for these parameters."""
    names = [name for name in _ALL if name not in params]
    return {"method": method, "model": "published", "params": params, "from_paper": names}


def low_rank_map(n_landmarks: int) -> dict[str, Any]:
    """Return the map of K-SAD as published; the study has degree and rank."""
    choices = {"sampling": "uniform", "solver": "randomized"}
    return {**POLYNOMIAL, "n_landmarks": n_landmarks, **choices}


def make_classifier(setting: Setting, seed: int) -> Any:
    """Return the classifier of a setting that has the study's parameters too."""
    taken = {name: setting[name] for name in setting.get("from_paper", ())}
    model = _MODELS[setting["model"]]({**taken, **setting["params"]}, seed)
    if "map" in setting:
        sizes = {"degree": setting["degree"], "n_components": setting["n_atoms"]}
        return make_lkdl(model, **{**sizes, **setting["map"]}, random_state=seed)
    return model


def measure(setting: Setting, split: Split, seed: int) -> dict[str, float]:
    """Return the accuracy in percent, and the seconds to learn and to classify all test rows."""
    how = {key: setting[key] for key in _HOW if key in setting}
    _warm_up(key_of(how), split.train.dtype.str)
    started = time.perf_counter()
    model = make_classifier(setting, seed).fit(split.train, split.train_labels)
    fitted = time.perf_counter()
    accuracy = model.score(split.test, split.test_labels)
    return {
        "accuracy": 100 * float(accuracy),
        "fit": fitted - started,
        "predict": time.perf_counter() - fitted,
    }


@cache
def _warm_up(how: str, dtype: str) -> None:
    """Load the inner loops (compile them, on a new machine) before the clock starts."""
    X = np.random.default_rng(0).random((60, 12)).astype(dtype)
    labels = np.arange(len(X)) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few rows allow few atoms
        make_classifier(json.loads(how), 0).fit(X, labels).predict(X)
