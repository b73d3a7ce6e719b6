"""MNIST 60,000 by the LKDL paper: map, learn, classify, in one process.

700 atoms per class, 11 nonzeros, 2 passes, degree 2, 15% of the rows as landmarks (coreset), rank
784; unit l2 rows. KERNELATOMS_DATA=folder python -m benchmarks.lkdl_mnist
"""

import argparse
import resource
import time

import numpy as np
from sklearn.preprocessing import normalize

from kernelatoms import KSVD, ClassDictionaryClassifier, KernelLinearizer
from kernelatoms.datasets import load_mnist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    n_seeds = parser.parse_args().seeds
    mnist = load_mnist(download_if_missing=False)
    train, test = (normalize(X.astype(np.float32)) for X in (mnist.X_train, mnist.X_test))
    print("| seed | accuracy | fit the map | map train | map test | learn | classify | total s |")
    print("|---" * 8 + "|")
    accuracies = []
    for seed in range(n_seeds):
        clock = [time.perf_counter()]
        linearizer = KernelLinearizer(
            "poly", degree=2, gamma=1, coef0=0, n_landmarks=0.15, n_components=784,
            sampling="coreset", random_state=seed,
        ).fit(train)  # fmt: skip
        clock.append(time.perf_counter())
        virtual_train = linearizer.transform(train)
        clock.append(time.perf_counter())
        virtual_test = linearizer.transform(test)
        clock.append(time.perf_counter())
        model = ClassDictionaryClassifier(
            KSVD(700, n_nonzero_coefs=11, max_iter=2, tol=0), random_state=seed
        ).fit(virtual_train, mnist.y_train)
        clock.append(time.perf_counter())
        accuracies.append(100 * model.score(virtual_test, mnist.y_test))
        clock.append(time.perf_counter())
        parts = " | ".join(f"{seconds:.1f}" for seconds in np.diff(clock))
        print(
            f"| {seed} | {accuracies[-1]:.2f} | {parts} | {clock[-1] - clock[0]:.1f} |", flush=True
        )
    error = np.std(accuracies, ddof=1) / np.sqrt(n_seeds) if n_seeds > 1 else float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\nLKDL {np.mean(accuracies):.2f} +- {error:.2f} over {n_seeds} seeds; "
          f"peak resident memory {peak:.2f} GiB.")  # fmt: skip
    linear = ClassDictionaryClassifier(
        KSVD(700, n_nonzero_coefs=11, max_iter=2, tol=0), random_state=0
    ).fit(train, mnist.y_train)
    print(f"Linear K-SVD, seed 0: {100 * linear.score(test, mnist.y_test):.2f}")


if __name__ == "__main__":
    main()
