"""MNIST: accuracy (Fig. 3a) and time (3b) against the number of training rows.

Random parts of the 60,000 training rows, all 10,000 test rows, unit l2 rows; 700 atoms per class,
11 nonzeros, 2 passes; LKDL with (x'y)^2, 15% of the rows as landmarks (coreset), rank 784; kernel
K-SVD exact, with all rows of a class. All in float32.
"""

import time
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.utils import Bunch

from kernelatoms import KSVD, ClassDictionaryClassifier, KernelKSVD, KernelLinearizer
from kernelatoms.datasets import load_mnist
from reproduction.lkdl.reported import CORESET, KERNEL, LINEAR, N_TRAIN
from reproduction.study import DataHome, Setting, Size, Study


def _settings(sizes: tuple[int, ...], full: bool) -> list[Setting]:
    dictionary = {"n_atoms": 700, "n_nonzero": 11, "passes": 2}
    mapped = {"sampling": "coreset", "landmarks": 0.15, "degree": 2, "rank": 784}
    methods: list[dict[str, Any]] = [
        {"method": LINEAR, **dictionary},
        {"method": CORESET, **dictionary, **mapped},
    ]
    if full:
        methods += [{"method": KERNEL, **dictionary, "degree": 2}]
    return [{**method, "x": n_train} for method in methods for n_train in sizes]


def measure_growth(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent and the seconds of every step."""
    mnist, clock = _data(data_home), _Clock()
    chosen = np.random.default_rng(seed).permutation(len(mnist.X_train))[: setting["x"]]
    train, labels, test = mnist.X_train[chosen], mnist.y_train[chosen], mnist.X_test
    _warm_up("degree" in setting, "sampling" in setting)
    clock.start()
    if "sampling" in setting:
        linearizer = KernelLinearizer(
            "poly", degree=setting["degree"], gamma=1, coef0=0, n_landmarks=setting["landmarks"],
            n_components=setting["rank"], sampling=setting["sampling"], random_state=seed,
        ).fit(train)  # fmt: skip
        clock.lap("fit_map")
        train = linearizer.transform(train)
        clock.lap("map_train")
        test = linearizer.transform(test)
        clock.lap("map_test")
    loop = {"n_nonzero_coefs": setting["n_nonzero"], "max_iter": setting["passes"], "tol": 0}
    learner = KSVD(setting["n_atoms"], **loop)
    if "degree" in setting and "sampling" not in setting:
        learner = KernelKSVD(
            setting["n_atoms"], kernel="poly", degree=setting["degree"], gamma=1, coef0=0, **loop
        )
    model = ClassDictionaryClassifier(learner, random_state=seed).fit(train, labels)
    clock.lap("learn")
    accuracy = model.score(test, mnist.y_test)
    clock.lap("classify")
    return {"accuracy": 100 * float(accuracy), **clock.seconds}


def training_seconds(measures: Any) -> float:
    """Return what Fig. 3b counts: both maps and learning, without classification."""
    return sum(measures.get(step, 0.0) for step in ("fit_map", "map_train", "map_test", "learn"))


GROWTH = Study(
    name="lkdl/mnist",
    dataset="mnist",
    quick=Size(_settings((10_000, 20_000), full=False), 2, "1 min"),
    full=Size(_settings(N_TRAIN, full=True), 5, "25 min"),
    measure=measure_growth,
)


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def start(self) -> None:
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step], self._last = now - self._last, now


@lru_cache(maxsize=1)
def _data(data_home: DataHome) -> Bunch:
    mnist = load_mnist(data_home=data_home)
    mnist.X_train, mnist.X_test = (
        normalize(X.astype(np.float32)) for X in (mnist.X_train, mnist.X_test)
    )
    return mnist


@lru_cache(maxsize=3)
def _warm_up(kernel: bool, mapped: bool) -> None:
    """Load the inner loops (compile them, on a new machine) before the clock starts."""
    X = np.random.default_rng(0).random((200, 20), np.float32)
    if mapped:
        X = KernelLinearizer("poly", n_landmarks=50, random_state=0).fit_transform(X)
    learner = KernelKSVD if kernel and not mapped else KSVD
    labels = np.arange(len(X)) % 2
    ClassDictionaryClassifier(learner(8, n_nonzero_coefs=2, max_iter=1), random_state=0).fit(
        X, labels
    ).predict(X)
