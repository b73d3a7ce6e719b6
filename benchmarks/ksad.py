"""K-SAD on MNIST against a low-rank map with textbook kernel K-SVD, and against our own LKDL.

python -m benchmarks.run ksad, with the data sets in KERNELATOMS_DATA. 60,000 rows of unit norm in
float32 to learn from, 10,000 to classify; 300 atoms and 20 passes, the paper's. A time is that of
fit and predict together. The textbook keeps a matrix of all pairs of rows of a class, so it is
timed on a class of fewer rows for one pass, at growing numbers, and extrapolated: the last power
law it shows, ten classes of 6,000 rows, 20 passes. Its predictions are not counted.
"""

import math
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.harness import Contender, compare

Call = Callable[[], Any]
MODULE = "benchmarks.ksad"
ATOMS, PASSES, NONZEROS = 300, 20, 5
PUBLISHED = {"kernel": "poly", "degree": 8, "gamma": 1, "coef0": 0}
TEXTBOOK_ROWS = (500, 1000, 2000)


@lru_cache(maxsize=1)
def digits() -> tuple[Any, Any, Any, Any]:
    """Return rows to learn from, their labels, rows to classify and theirs."""
    from kernelatoms.datasets import load_mnist

    mnist = load_mnist()
    rows = [X.reshape(len(X), -1).astype(np.float32) for X in (mnist.X_train, mnist.X_test)]
    rows = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in rows]
    return rows[0], mnist.y_train, rows[1], mnist.y_test


def _timed(model: Any) -> Call:
    from sklearn.base import clone

    X, y, new, truth = digits()
    clone(model).fit(X[::60], y[::60]).predict(new[:100])  # compiles

    def call() -> Any:
        answers = model.fit(X, y).predict(new)
        return lambda: 100 * float(np.mean(answers == truth))

    return call


def ksad(kind: str) -> Call:
    """Return the method as published, or our defaults with its number of atoms and passes."""
    from kernelatoms import KSADClassifier

    literal = {
        **PUBLISHED, "l1_weight": 0.1, "fisher_weight": 0.01, "within_class_metric": False,
        "n_neighbors": 1, "distance": "l2",
    }  # fmt: skip
    options = literal if kind == "published" else {}
    return _timed(KSADClassifier(ATOMS, max_iter=PASSES, tol=0, random_state=0, **options))


def lkdl() -> Call:
    """Return our own LKDL: the same map, one K-SVD dictionary a class."""
    from sklearn.pipeline import make_pipeline

    from kernelatoms import KSVD, ClassDictionaryClassifier, KernelLinearizer

    learner = KSVD(ATOMS // 10, n_nonzero_coefs=NONZEROS, max_iter=PASSES, tol=0)
    return _timed(
        make_pipeline(
            KernelLinearizer(
                n_landmarks=4 * ATOMS, n_components=ATOMS, random_state=0, **PUBLISHED
            ),
            ClassDictionaryClassifier(learner, random_state=0),
        )
    )


def textbook(n: int) -> Call:
    """One pass of Figs. 2 and 3 of Nguyen et al. on n rows of a class, K = F F' of a map."""
    from kernelatoms import KernelLinearizer

    sys.path.insert(0, "tests")
    from oracles import kernel_learning as book

    X, y, *_ = digits()
    mapper = KernelLinearizer(
        n_landmarks=4 * ATOMS, n_components=ATOMS, random_state=0, **PUBLISHED
    ).fit(X)
    F = mapper.transform(X[y == 0][:n]).astype(np.float64)
    n_atoms = ATOMS // 10

    def call() -> float:
        K = F @ F.T
        A = np.zeros((n, n_atoms))
        start = np.random.default_rng(0).permutation(n)[:n_atoms]
        A[start, range(n_atoms)] = 1 / np.sqrt(np.diagonal(K)[start])
        W = book.code_all(K, A, NONZEROS)
        A, W = book.kernel_ksvd_pass(K, A, W)
        return book.objective(K, A, W)

    return call


def ksad_tables(rounds: int) -> None:
    """Print times, accuracies and ratios."""
    print(f"\n## K-SAD on MNIST: {ATOMS} atoms, {PASSES} passes, fit and predict\n")
    got = compare(
        [
            Contender("K-SAD, our defaults", "ksad", {"kind": "defaults"}, once=True),
            Contender("K-SAD as published", "ksad", {"kind": "published"}, once=True),
            Contender("our LKDL", "lkdl", {}, once=True),
        ],
        min(rounds, 3), 1, module=MODULE,
    )  # fmt: skip
    ours = got["K-SAD as published"].seconds
    print("| method | seconds | against K-SAD as published | % right | peak GiB |")
    print("|---|---|---|---|---|")
    for label, result in got.items():
        print(f"| {label} | {result.seconds:.1f} | {result.seconds / ours:.2f}x | "
              f"{result.value:.2f} | {result.peak_gib:.2f} |", flush=True)  # fmt: skip
    print("\nLow-rank map and textbook kernel K-SVD, one pass over rows of one class:\n")
    print("| rows | seconds | objective |\n|---|---|---|")
    seconds = []
    for n in TEXTBOOK_ROWS:
        result = compare(
            [Contender("textbook", "textbook", {"n": n}, once=True)], 1, 1, module=MODULE
        )["textbook"]
        seconds.append(result.seconds)
        print(f"| {n} | {result.seconds:.2f} | {result.value:.2f} |", flush=True)
    power = math.log(seconds[-1] / seconds[-2]) / math.log(TEXTBOOK_ROWS[-1] / TEXTBOOK_ROWS[-2])
    whole = 10 * PASSES * seconds[-1] * (6000 / TEXTBOOK_ROWS[-1]) ** power
    print(f"\nThe last two grow as n^{power:.2f}: ten classes of 6,000 rows, {PASSES} passes, "
          f"would take {whole:,.0f} s, {whole / ours:,.0f}x K-SAD as published and "
          f"{whole / got['K-SAD, our defaults'].seconds:,.0f}x ours; at n^2, "
          f"{10 * PASSES * seconds[-1] * 9:,.0f} s.")  # fmt: skip
