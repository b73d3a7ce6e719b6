"""Learning from rows with missing values: what is explained of complete rows, and the time.

[KERNELATOMS_DATA=folder] python -m benchmarks.observed [ROWS [PASSES]] prints, for KSVD and MOD on
digits and on the first ROWS images of MNIST (20,000, if the data are there), by how many points a
fit to rows with missing values explains less of the energy of the complete rows (``score``) than a
fit to these, and how many times its CPU time it takes. Contenders alternate; times are medians of
three fits. Values are missing at random, as a band of the image (``band``), or of every second
feature (``features``).
"""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits

from kernelatoms import KSVD, MOD

CASES = [("random", 0.1), ("random", 0.5), ("random", 0.8), ("band", 0.5), ("features", 0.25)]


def data(n_rows: int) -> Iterator[tuple[str, np.ndarray, int, int]]:
    """Yield names, rows, and numbers of atoms and of nonzeros."""
    yield "digits", (load_digits().data / 16).astype(np.float32), 128, 6
    yield "digits", (load_digits().data / 16).astype(np.float32), 64, 6
    file = Path(os.environ.get("KERNELATOMS_DATA", "")) / "mnist.npz"
    if file.exists():
        with np.load(file) as arrays:
            images = arrays["X_train"][:n_rows]
        yield "MNIST", (images.reshape(len(images), -1) / 255).astype(np.float32), 256, 8


def missing(X: np.ndarray, kind: str, share: float) -> np.ndarray:
    """Return which values are missing; every row keeps one."""
    rng, (n, p) = np.random.default_rng(1), X.shape
    side = round(p**0.5)
    if kind == "random":
        gone = rng.random(X.shape) < share
    elif kind == "features":
        gone = rng.random(X.shape) < np.where(np.arange(p) % 2, 2 * share, 0)
    else:
        height = round(side * share)
        first = rng.integers(0, side - height + 1, n)[:, None]
        rows, columns = np.divmod(np.arange(p), side)
        along = np.where(rng.random(n)[:, None] < 0.5, rows, columns)
        gone = (along >= first) & (along < first + height)
    gone[gone.all(axis=1), 0] = False
    return gone


def timed(learner: Any, X: np.ndarray) -> tuple[float, Any]:
    """Return the CPU time of a fit, and the fitted learner."""
    start = time.process_time()
    learner = clone(learner).fit(X)
    return time.process_time() - start, learner


def main(n_rows: int = 20_000, passes: int = 20) -> None:
    """Print a table."""
    print(
        "data, atoms | learner | missing | explained, complete | points less | times the CPU time"
    )
    for name, X, n_atoms, k in data(n_rows):
        for kind in (KSVD, MOD):
            learner = kind(n_atoms, n_nonzero_coefs=k, max_iter=passes, tol=0, random_state=0)
            for how, share in CASES if name == "digits" or kind is KSVD else CASES[1:2]:
                partly = np.where(missing(X, how, share), np.nan, X)
                both = [(timed(learner, X), timed(learner, partly)) for _ in range(3)]
                whole, holed = (both[0][i][1].score(X) for i in range(2))
                ratio = np.median([b[0] for _, b in both]) / np.median([a[0] for a, _ in both])
                print(
                    f"{name}, {n_atoms} | {kind.__name__} | {share:.0%} {how} | {whole:.2%} | "
                    f"{100 * (whole - holed):.2f} | {ratio:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
