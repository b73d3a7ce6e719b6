"""Contenders that need public names only, so that a child of any checkout can run them.

Found on the children's path (see ``Contender.tree``), not as a part of a package: an older tree has
``benchmarks`` of its own.
"""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[[], Any]


def in_turn(cells: list[tuple[str, str, dict[str, Any]]]) -> Call:
    """Return one call for several contenders (module, function, arguments), two calls for each.

    The harness calls twice whenever it asks, to wake up and to time: the first question is about
    the first cell, the second about the second, and so on, round and round.
    """
    calls = [getattr(importlib.import_module(m), f)(**arguments) for m, f, arguments in cells]
    n_calls = 0

    def call() -> None:
        nonlocal n_calls
        calls[n_calls // 2 % len(calls)]()
        n_calls += 1

    return call


def digits() -> tuple[Any, Any, Any]:
    """Return unit rows to learn from, their labels and test rows: USPS if it is there."""
    if os.environ.get("KERNELATOMS_DATA"):
        from kernelatoms.datasets import load_usps

        usps = load_usps(download_if_missing=False)
        train, test, y = (usps.X_train + 1) / 2, (usps.X_test + 1) / 2, usps.y_train
    else:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        train, test, y = X[:1200], X[1200:], y[:1200]
    train, test = (
        (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        for rows in (train, test)
    )
    return train, y, test


def lkdl(step: str) -> Call:
    """Time one step of LKDL: degree 2, a tenth of the rows as landmarks, rank 256."""
    from kernelatoms import KSVD, ClassDictionaryClassifier, KernelLinearizer

    train, y, test = digits()
    rank = min(256, len(train) // 10)
    linearizer = KernelLinearizer(
        "poly", degree=2, gamma=1, coef0=0, n_landmarks=0.1, n_components=rank, sampling="uniform",
        random_state=0,
    )  # fmt: skip
    if step == "fit map":
        return lambda: linearizer.fit(train)
    linearizer.fit(train)
    if step == "map":
        return lambda: linearizer.transform(test)
    virtual = linearizer.transform(train)
    n_atoms = min(300, int(np.bincount(y.astype(int)).min()))
    learner = ClassDictionaryClassifier(
        KSVD(n_atoms, n_nonzero_coefs=5, max_iter=5, tol=0), random_state=0
    )
    if step == "learn":
        return lambda: learner.fit(virtual, y)
    learner.fit(virtual, y)
    mapped = linearizer.transform(test)
    return lambda: learner.predict(mapped)


def lasso(shape: list[int], kind: str) -> Call:
    """Time l1 coding alone, on the data of the lasso table."""
    from benchmarks.contenders import lasso_data
    from kernelatoms import sparse_encode

    X, D, alpha = lasso_data(shape, kind)
    sparse_encode(X[:20], D, method="lasso", alpha=alpha)
    return lambda: sparse_encode(X, D, method="lasso", alpha=alpha)


def masked(dtype: str) -> Call:
    """Time OMP of 1,000 signals with a fifth of their values missing over 256 x 64 atoms."""
    from kernelatoms import sparse_encode

    rng = np.random.default_rng(0)
    D = rng.standard_normal((256, 64)).astype(dtype)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.standard_normal((1000, 64)).astype(dtype)
    X[rng.random(X.shape) < 0.2] = np.nan
    sparse_encode(X[:10], D, n_nonzero_coefs=5)
    return lambda: sparse_encode(X, D, n_nonzero_coefs=5)


def process(code: str) -> Call:
    """Time a Python process that runs this code, from its start to its end."""
    command = [sys.executable, "-c", code]
    subprocess.run(command, check=True)
    return lambda: subprocess.run(command, check=True) and None


def pursuit_on_card(shape: list[int], positive: bool = False, clustered: bool = False) -> Call:
    """Time OMP of tensors on a card, idle before and after."""
    from benchmarks.gpu import ours

    return ours(tuple(shape), positive, clustered)


def learn_on_card(learner: str, n_signals: int) -> Call:
    """Time two passes of a learner over rows on a card: 256 features, 1,024 atoms, 10 nonzeros."""
    import torch

    import kernelatoms

    torch.manual_seed(0)
    X = torch.randn(n_signals, 256, device="cuda")
    model = getattr(kernelatoms, learner)(
        1024, n_nonzero_coefs=10, max_iter=2, tol=0, random_state=0
    )

    def call() -> None:
        model.fit(X)
        torch.cuda.synchronize()

    return call
