"""The speed tables: OMP, K-SVD, memory, start-up. Run on an idle machine: python -m benchmarks.run.

Prints Markdown; RESULTS.md keeps what was measured, wins and losses.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable

from benchmarks.harness import Contender, compare, describe_machine

# features, atoms, nonzeros, signals
SHAPES = [(256, 300, 5, 20_000), (784, 700, 11, 10_000), (256, 1024, 10, 10_000),
          (512, 4096, 20, 5_000)]  # fmt: skip
DTYPES = ["float32", "float64"]
PAIRS = [
    ("ours OMP", "SPAMS (OLS)"),
    ("ours OLS", "SPAMS (OLS)"),
    ("ours OMP", "dictlearn"),
    ("ours OMP", "scikit-learn"),
]


def geometric_mean(values: Iterable[float]) -> float:
    return statistics.geometric_mean(list(values))


def omp_table(rounds: int, generations: int) -> None:
    print("\n## OMP, the Gram matrix counted: milliseconds (median) and ours against each\n")
    heads = ["ours OMP", "ours OLS", "SPAMS (OLS)", "dictlearn", "scikit-learn", "GEMM floor"]
    print("| features, atoms, nonzeros, signals | " + " | ".join(heads) +
          " | same supports | OMP/floor |")  # fmt: skip
    print("|---" * (len(heads) + 3) + "|")
    ratios: dict[str, list[float]] = {}
    for dtype in DTYPES:
        for shape in SHAPES:
            case = {"shape": shape, "dtype": dtype}
            results = compare(
                [
                    Contender("ours OMP", "omp_kernelatoms", {**case, "selection": "omp"}),
                    Contender("SPAMS (OLS)", "omp_spams", case),
                    Contender("ours OLS", "omp_kernelatoms", {**case, "selection": "ols"}),
                    Contender("dictlearn", "omp_dictlearn", case),
                    Contender("GEMM floor", "gemm_floor", case),
                    Contender("scikit-learn", "omp_sklearn", case, once=True),
                    Contender("agreement", "support_agreement", case, once=True),
                ],
                rounds,
                generations,
            )
            ms = {head: 1e3 * results[head].seconds for head in heads}
            cells = " | ".join(f"{ms[head]:.1f}" for head in heads)
            print(f"| {shape} {dtype} | {cells} | {100 * results['agreement'].value:.1f}% | "
                  f"{ms['ours OMP'] / ms['GEMM floor']:.2f} |", flush=True)  # fmt: skip
            for ours, peer in PAIRS:
                ratios.setdefault(f"{ours} against {peer}", []).append(ms[peer] / ms[ours])
    print()
    for pair, values in ratios.items():
        print(f"- {pair}: {geometric_mean(values):.2f}x in the geometric mean, "
              f"{min(values):.2f}x to {max(values):.2f}x")  # fmt: skip


def ksvd_table(rounds: int, generations: int) -> None:
    data = "usps" if os.environ.get("KERNELATOMS_DATA") else "stand-in"
    print(f"\n## K-SVD, 300 atoms, 5 nonzeros, 5 passes, same start, 1,194 x 256 ({data})\n")
    results = compare(
        [
            Contender("ours, float32", "ksvd_kernelatoms", {"dtype": "float32", "data": data}),
            Contender("ours, float64", "ksvd_kernelatoms", {"dtype": "float64", "data": data}),
            Contender("ours, float64, OLS", "ksvd_kernelatoms",
                      {"dtype": "float64", "data": data, "selection": "ols"}),
            Contender("dictlearn ksvd", "ksvd_dictlearn", {"algorithm": "ksvd", "data": data}),
            Contender("dictlearn aksvd", "ksvd_dictlearn", {"algorithm": "aksvd", "data": data}),
            Contender("SPAMS trainDL, l0", "ksvd_spams", {"dtype": "float64", "data": data}),
            Contender("scikit-learn mini-batch lasso, OMP codes", "ksvd_sklearn",
                      {"dtype": "float64", "data": data}, once=True),
        ],
        rounds,
        generations,
    )  # fmt: skip
    ours = results["ours, float64"].seconds
    print("| learner | ms | against ours in float64 | final objective |\n|---|---|---|---|")
    for label, result in results.items():
        print(f"| {label} | {1e3 * result.seconds:.1f} | {result.seconds / ours:.1f}x | "
              f"{result.value:.3f} |")  # fmt: skip


def memory_table() -> None:
    print("\n## Memory: coding 1,000,000 x 256 float32 over 1,024 atoms, 10 nonzeros\n")
    result = compare([Contender("ours", "million_rows", {"n_signals": 1_000_000}, once=True)])[
        "ours"
    ]
    print(f"{result.seconds:.1f} s; peak resident memory {result.peak_gib:.2f} GiB, which is "
          f"{result.value:.3f} GiB above input and output.")  # fmt: skip


def startup_table() -> None:
    print("\n## Start-up, seconds (median of 5 processes)\n")
    code = ("import numpy as np; from kernelatoms import sparse_encode; "
            "sparse_encode(np.ones((2, 3)), np.eye(3), n_nonzero_coefs=1)")  # fmt: skip
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "NUMBA_CACHE_DIR": cache}
        first = _seconds(code, env, 1)
        later = _seconds(code, env, 5)
    bare = _seconds("import numpy, numba, sklearn.utils, scipy.sparse, sklearn.metrics", None, 5)
    print(f"- `import kernelatoms`: {_seconds('import kernelatoms', None, 5):.3f} "
          f"(of which Python itself {_seconds('', None, 5):.3f})")  # fmt: skip
    print(f"- first code ever, compiling: {first:.2f}; with the disk cache: {later:.2f}; "
          f"importing numpy, numba and scikit-learn alone: {bare:.2f}")  # fmt: skip


def _seconds(code: str, env: dict[str, str] | None, times: int) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=[],
                        help="omp, ksvd, memory, startup (all by default)")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--generations", type=int, default=3)
    arguments = parser.parse_args()
    wanted = arguments.tables or ["omp", "ksvd", "memory", "startup"]
    print(describe_machine())
    if "omp" in wanted:
        omp_table(arguments.rounds, arguments.generations)
    if "ksvd" in wanted:
        ksvd_table(arguments.rounds, arguments.generations)
    if "memory" in wanted:
        memory_table()
    if "startup" in wanted:
        startup_table()


if __name__ == "__main__":
    main()
