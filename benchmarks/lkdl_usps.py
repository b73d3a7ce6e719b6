"""USPS by the LKDL paper: linear K-SVD and LKDL class dictionaries, ten seeds.

Raw pixels in [0, 1], unit l2 rows, the published split; 300 atoms per class, 5 nonzeros, 5 passes.
KERNELATOMS_DATA=folder python -m benchmarks.lkdl_usps
"""

import argparse
import time

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from kernelatoms import KSVD, ClassDictionaryClassifier, KernelLinearizer
from kernelatoms.datasets import load_usps

ROWS = [  # degree (None: linear), sampling, landmarks as a share of the rows, rank
    (None, None, None, None),
    (2, "uniform", 0.2, 256),
    (2, "kmeans", 0.2, 256),
    (2, "coreset", 0.2, 256),
    (2, "kmeans", 0.2, None),
    (4, "uniform", 0.2, 256),
    (4, "kmeans", 0.2, 256),
    (4, "coreset", 0.2, 256),
    (4, "uniform", 0.2, None),
    (4, "kmeans", 0.2, None),
    (4, "kmeans", 0.5, None),
]


def make_model(degree, sampling, share, rank, seed):
    learner = ClassDictionaryClassifier(
        KSVD(300, n_nonzero_coefs=5, max_iter=5, tol=0), random_state=seed
    )
    if degree is None:
        return learner
    linearizer = KernelLinearizer(
        "poly", degree=degree, gamma=1, coef0=0, n_landmarks=share, n_components=rank,
        sampling=sampling, random_state=seed,
    )  # fmt: skip
    return make_pipeline(linearizer, learner)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    n_seeds = parser.parse_args().seeds
    usps = load_usps(download_if_missing=False)
    train, test = (normalize((X + 1) / 2).astype(np.float32) for X in (usps.X_train, usps.X_test))
    print(f"Test accuracy in % over {n_seeds} seeds, seconds for fit and score of one seed\n")
    print("| model | mean | standard error | s |\n|---|---|---|---|")
    for degree, sampling, share, rank in ROWS:
        start, accuracy = time.perf_counter(), []
        for seed in range(n_seeds):
            model = make_model(degree, sampling, share, rank, seed).fit(train, usps.y_train)
            accuracy.append(100 * model.score(test, usps.y_test))
        seconds = (time.perf_counter() - start) / n_seeds
        name = "linear K-SVD"
        if degree is not None:
            name = f"LKDL, degree {degree}, {sampling}, {share:.0%} landmarks, rank {rank or 'all'}"
        error = np.std(accuracy, ddof=1) / np.sqrt(n_seeds)
        print(f"| {name} | {np.mean(accuracy):.2f} | {error:.2f} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
