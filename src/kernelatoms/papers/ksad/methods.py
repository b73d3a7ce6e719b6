"""From a setting to a classifier, and what is measured of it; the same for every study.

A setting says ``model`` and its ``params``: those given to the class, all others at their defaults
(so "our defaults" are whatever the library has). ``map``: parameters of a kernel map before it.
``threshold_at_test`` False codes test rows without threshold, as the paper's step 15 has it.
"""

import json
import time
import warnings
from collections.abc import Callable
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
from kernelatoms.papers.kcrc.data import Split
from kernelatoms.papers.store import key_of
from kernelatoms.papers.study import Setting

#: The paper's kernel, (x'y)^8.
DEGREE_8: dict[str, Any] = {"kernel": "poly", "degree": 8, "gamma": 1, "coef0": 0}
DEGREE_2 = {**DEGREE_8, "degree": 2}

#: The literal method: beta_1 = 0.1, beta_2 = 0.01, 20 passes, the nearest code by distance. All
#: that it depends on is said here but the number of landmarks, so that no default moves it.
LITERAL: dict[str, Any] = {
    **DEGREE_8, "l1_weight": 0.1, "fisher_weight": 0.01, "within_class_metric": False,
    "distance": "l2", "n_neighbors": 1, "sampling": "uniform", "shrinkage": 0.01, "max_iter": 20,
    "tol": 0,
}  # fmt: skip

_MODELS: dict[str, Callable[[dict[str, Any], int], Any]] = {
    "ksad": lambda params, seed: KSADClassifier(**params, random_state=seed),
    "nearest": lambda params, seed: KNeighborsClassifier(1, algorithm="brute", **params),
    "src": lambda params, seed: SRCClassifier(**params),
    "ksvd": lambda params, seed: ClassDictionaryClassifier(KSVD(**params), random_state=seed),
    "kernel-ksvd": lambda params, seed: ClassDictionaryClassifier(
        KernelKSVD(**params), random_state=seed
    ),
    "fddl": lambda params, seed: FDDLClassifier(**params, random_state=seed),
    "svm": lambda params, seed: SVC(**params),
}


def ksad(method: str, **params: Any) -> dict[str, Any]:
    """Return a row of K-SAD with these parameters, the others at their defaults."""
    return {"method": method, "model": "ksad", "params": params}


def low_rank_map(n_components: int, n_landmarks: int) -> dict[str, Any]:
    """Return the map of (x'y)^8 that K-SAD has too: uniform landmarks."""
    sizes = {"n_components": n_components, "n_landmarks": n_landmarks}
    return {**DEGREE_8, **sizes, "sampling": "uniform"}


def make_classifier(setting: Setting, seed: int) -> Any:
    """Return the setting's classifier."""
    model = _MODELS[setting["model"]](dict(setting["params"]), seed)
    if "map" in setting:
        return make_lkdl(model, **setting["map"], random_state=seed)
    return model


def measure(setting: Setting, split: Split, seed: int) -> dict[str, float]:
    """Return the accuracy in percent, and the seconds to learn and to classify all test rows."""
    how = {key: setting[key] for key in ("model", "params", "map") if key in setting}
    _warm_up(key_of(how), split.train.dtype.str)
    started = time.perf_counter()
    model = make_classifier(setting, seed).fit(split.train, split.train_labels)
    fitted = time.perf_counter()
    if not setting.get("threshold_at_test", True):
        model.l1_weight_ = 0.0
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
