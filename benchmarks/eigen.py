"""Leading eigenpairs of a kernel matrix: our block Krylov solver against scipy and scikit-learn.

python -m benchmarks.run eigen, with the data sets in KERNELATOMS_DATA. RBF kernel matrices of the
first USPS rows in float64, 300 eigenpairs, from slowly to fast falling eigenvalues. The error is
|W - V S V'| in the spectral norm over the 301st eigenvalue, which is the least there is; it comes
from Lanczos steps (ARPACK), and the 301st eigenvalue from scipy.
"""

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.harness import Contender, compare

Call = Callable[[], Any]
MODULE = "benchmarks.eigen"
N_ROWS, RANK = 5000, 300
#: Wide to narrow; 1/256 is the default of these rows.
GAMMAS = (0.0004, 0.0039, 0.01, 0.02)
SEEDS = 3
#: Landmarks of the table for solver="auto", and one over the share that is wanted.
SIZES, SHARES = (500, 1000, 2000, 3000), (20, 10, 7, 5)


@lru_cache(maxsize=1)
def gram(n_rows: int, gamma: float) -> Any:
    from sklearn.metrics.pairwise import rbf_kernel

    from kernelatoms.datasets import load_usps

    X = load_usps().X_train[:n_rows]
    return rbf_kernel(X.reshape(len(X), -1).astype(np.float64), gamma=gamma)


def _norm(W: Any, values: Any, vectors: Any) -> float:
    """Return |W - V S V'| in the spectral norm."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    def times(x: Any) -> Any:
        x = x.ravel()
        return W @ x - vectors @ (values * (vectors.T @ x))

    left = LinearOperator(W.shape, matvec=times, dtype=W.dtype)
    return float(abs(eigsh(left, k=1, tol=1e-6, return_eigenvectors=False)[0]))


def krylov(n: int, gamma: float, rank: int, seed: int = 0, **options: int) -> Call:
    from kernelatoms import KernelLinearizer
    from kernelatoms.features.linear_algebra import leading_eigenpairs

    W = gram(n, gamma)
    defaults = KernelLinearizer().get_params()
    names = ("n_oversamples", "n_passes")
    settings = {name: options.get(name, defaults[name]) for name in names}

    def call() -> Any:
        got = leading_eigenpairs(W, rank, np.random.RandomState(seed), **settings)
        return lambda: _norm(W, *got[:2])

    return call


def scipy_eigh(n: int, gamma: float, rank: int, driver: str | None = None) -> Call:
    """Report the next eigenvalue, which is the least error, untimed."""
    from scipy.linalg import eigh

    W = gram(n, gamma)

    def call() -> Any:
        eigh(W, subset_by_index=[n - rank, n - 1], driver=driver)
        return lambda: float(eigh(W, eigvals_only=True, subset_by_index=[n - rank - 1] * 2)[0])

    return call


def scipy_all(n: int, gamma: float) -> Call:
    """Solve as our "full" does: all eigenpairs."""
    from scipy.linalg import eigh

    W = gram(n, gamma)
    return lambda: eigh(W, check_finite=False)


def sklearn_svd(n: int, gamma: float, rank: int, n_iter: int) -> Call:
    from sklearn.utils.extmath import randomized_svd

    W = gram(n, gamma)

    def call() -> Any:
        U, s, _ = randomized_svd(W, rank, n_iter=n_iter, random_state=0)
        return lambda: _norm(W, s, U)

    return call


def goal_table(rounds: int) -> None:
    print(f"\n## {RANK} leading eigenpairs of {N_ROWS} x {N_ROWS}, RBF, USPS, float64\n")
    print("| gamma | solver | seconds | against ours | error / 301st eigenvalue |")
    print("|---" * 5 + "|")
    for gamma in GAMMAS:
        case = {"n": N_ROWS, "gamma": gamma, "rank": RANK}
        wide = {"n_oversamples": 2 * RANK + 30, "n_passes": 3}
        results = compare([
            Contender("ours", "krylov", case),
            Contender("scipy eigh, subset", "scipy_eigh", case),
            Contender("ours, 10 passes", "krylov", {**case, "n_passes": 10}),
            Contender("ours, blocks of 310, 3 passes", "krylov", {**case, **wide}),
            Contender("scikit-learn randomized_svd, 4 iterations", "sklearn_svd",
                      {**case, "n_iter": 4}),
            *(Contender(f"ours, seed {seed}", "krylov", {**case, "seed": seed}, once=True)
              for seed in range(1, SEEDS)),
        ], min(rounds, 3), 1, module=MODULE)  # fmt: skip
        ours, least = results["ours"].seconds, results["scipy eigh, subset"].value
        for label, result in results.items():
            error = 1.0 if label.startswith("scipy") else result.value / least
            print(f"| {gamma:g} | {label} | {result.seconds:.2f} | {result.seconds / ours:.1f}x | "
                  f"{error:.5f} |", flush=True)  # fmt: skip


def auto_table(rounds: int) -> None:
    print('\n## solver="auto": seconds of "full", and how many times as fast "randomized" is\n')
    heads = [f"1/{share} wanted" for share in SHARES]
    print("| landmarks | full | " + " | ".join(heads) + " |\n" + "|---" * (len(SHARES) + 2) + "|")
    for n in SIZES:
        contenders = [Contender("full", "scipy_all", {"n": n, "gamma": 0.0039})]
        contenders += [
            Contender(head, "krylov", {"n": n, "gamma": 0.0039, "rank": n // share})
            for head, share in zip(heads, SHARES, strict=True)
        ]
        results = compare(contenders, min(rounds, 3), 1, module=MODULE)
        full = results["full"].seconds
        cells = " | ".join(f"{full / results[head].seconds:.1f}x" for head in heads)
        print(f"| {n} | {full:.3f} | {cells} |", flush=True)


def eigen_tables(rounds: int) -> None:
    """Print both tables, or why not."""
    if not os.environ.get("KERNELATOMS_DATA"):
        print("\nEigenpairs: left out, since KERNELATOMS_DATA names no folder with USPS.")
        return
    goal_table(rounds)
    auto_table(rounds)
