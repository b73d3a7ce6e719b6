"""K-SVD from sums over rows, beside K-SVD and MOD: python -m benchmarks.ksvd_sums.

All begin with the same rows as atoms and make the same number of passes. What counts is the
objective of fresh codes over the last dictionary, of the rows learned from and of held-out ones,
beside K-SVD's. ``--batches`` learns by ``partial_fit`` from batches in place of passes, beside MOD.

KERNELATOMS_DATA=folder python -m benchmarks.ksvd_sums --data mnist --n-rows 60000 --n-atoms 512
"""

import argparse
from typing import Any

import numpy as np

from kernelatoms import KSVD, MOD, sparse_encode
from kernelatoms.coding.problem import linear_problems
from kernelatoms.coding.pursuits import OMP
from kernelatoms.datasets import load_mnist
from kernelatoms.learning.ksvd import KSVDSums, KSVDUpdate
from kernelatoms.learning.loop import learn
from kernelatoms.learning.mod import LeastSquares
from kernelatoms.learning.state import LearnerState, atoms_from_rows

UPDATES = {"K-SVD": KSVDUpdate, "MOD": LeastSquares, "K-SVD from sums": KSVDSums}
N_HELD_OUT = 5000


def photographs(n_rows: int) -> tuple[Any, Any]:
    """Return patches of 8 x 8 of two photographs, grey values less each patch's mean."""
    from sklearn.datasets import load_sample_images

    rng, parts = np.random.default_rng(0), []
    for image in load_sample_images().images:
        windows = np.lib.stride_tricks.sliding_window_view(image.mean(axis=2), (8, 8))
        windows = windows.reshape(-1, *windows.shape[-2:])
        parts.append(windows[rng.permutation(len(windows))[: (n_rows + N_HELD_OUT) // 2]])
    X = rng.permutation(np.concatenate(parts).reshape(-1, 64)).astype(np.float32)
    X -= X.mean(axis=1, keepdims=True)
    return X[:n_rows], X[n_rows:]


def mnist(n_rows: int) -> tuple[Any, Any]:
    """Return random training digits, and held-out ones, pixels in [0, 1]."""
    digits = load_mnist(download_if_missing=False)
    chosen = np.sort(np.random.default_rng(0).permutation(60000)[:n_rows])
    X, held_out = digits.X_train[chosen], digits.X_test[:N_HELD_OUT]
    return X.astype(np.float32) / 255, held_out.astype(np.float32) / 255


def objective(X: Any, D: Any, q: int) -> float:
    """Return |X - W D|^2 of fresh codes."""
    return float(((X - sparse_encode(X, D, n_nonzero_coefs=q) @ D) ** 2).sum())


def by_passes(X: Any, p: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Return the dictionaries of all updates after as many passes."""
    found = {}
    for name, update in UPDATES.items():
        start = atoms_from_rows(X, p.n_atoms, np.random.RandomState(seed))
        state = LearnerState.start(start)
        learn(linear_problems, X, OMP(p.n_nonzero), update(), state, max_iter=p.passes, tol=0.0)
        found[name] = state.best
    return found


def by_batches(X: Any, p: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Return the dictionaries after passes in random order, batch by batch."""
    learners = [MOD, KSVD]
    made = [c(p.n_atoms, n_nonzero_coefs=p.n_nonzero, random_state=seed) for c in learners]
    rng = np.random.default_rng(seed)
    for _ in range(p.passes):
        order = rng.permutation(len(X))
        for first in range(0, len(X) - p.batches + 1, p.batches):
            for learner in made:
                learner.partial_fit(X[order[first : first + p.batches]])
    return {type(learner).__name__: learner.components_ for learner in made}


def main() -> None:
    """Print the mean difference from the first learner, in per cent, and the range over seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=("mnist", "photographs"), default="photographs")
    for name, value in [("n-rows", 20000), ("n-atoms", 256), ("n-nonzero", 5), ("passes", 10),
                        ("batches", 0), ("seeds", 3)]:  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    p = parser.parse_args()
    X, held_out = {"mnist": mnist, "photographs": photographs}[p.data](p.n_rows)
    differences: dict[str, list[Any]] = {}
    for seed in range(p.seeds):
        found = (by_batches if p.batches else by_passes)(X, p, seed)
        reached = {
            name: [objective(rows, D, p.n_nonzero) for rows in (X, held_out)]
            for name, D in found.items()
        }
        first = next(iter(reached.values()))
        for name, values in reached.items():
            differences.setdefault(name, []).append(100 * (np.divide(values, first) - 1))
    print(vars(p))
    for name, values in differences.items():
        ranges = zip(np.mean(values, 0), np.min(values, 0), np.max(values, 0), strict=True)
        learned, new = (f"{mean:+.2f}% ({low:+.2f} to {high:+.2f})" for mean, low, high in ranges)
        print(f"| {name} | learned from {learned} | held out {new} |", flush=True)


if __name__ == "__main__":
    main()
