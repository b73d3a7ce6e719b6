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

from benchmarks import many_atoms
from benchmarks.codec import codec_tables
from benchmarks.denoise import denoise_tables
from benchmarks.eigen import eigen_tables
from benchmarks.gamma import gamma_tables
from benchmarks.gpu import gpu_tables
from benchmarks.harness import Contender, compare, describe_machine
from benchmarks.ksad import ksad_tables
from benchmarks.l1 import l1_table, threads_table
from benchmarks.local import local_tables
from benchmarks.representation import representation_tables
from benchmarks.supervised import supervised_tables

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


def kernel_table(sizes: tuple[int, ...] = (500, 1194, 2000, 4000)) -> None:
    """Kernel K-SVD, (x'y)^4: 300 atoms, 5 nonzeros, 5 passes, growing n."""
    data = "usps" if os.environ.get("KERNELATOMS_DATA") else "stand-in"
    print(f"\n## Kernel K-SVD ({data} rows), 300 atoms, 5 nonzeros, 5 passes: seconds, objective\n")
    heads = ["ours", "ours, float32", "dictlearn aksvd", "dictlearn ksvd", "textbook"]
    print("| n | " + " | ".join(heads) + " | ours, peak GiB |\n" + "|---" * (len(heads) + 2) + "|")
    for n in sizes:
        case = {"n": n, "data": data}
        contenders = [
            Contender("ours", "kernel_ksvd_kernelatoms", case),
            Contender("ours, float32", "kernel_ksvd_kernelatoms", {**case, "dtype": "float32"}),
            Contender("dictlearn aksvd", "kernel_ksvd_dictlearn", {**case, "algorithm": "aksvd"},
                      once=True),
        ]  # fmt: skip
        if n <= 1194:
            contenders += [
                Contender("dictlearn ksvd", "kernel_ksvd_dictlearn",
                          {**case, "algorithm": "ksvd"}, once=True),
                Contender("textbook", "kernel_ksvd_textbook", case, once=True),
            ]  # fmt: skip
        results = compare(contenders, 3, 1)
        ours = results["ours"].seconds
        cells = [
            f"{results[h].seconds:.2f} ({results[h].seconds / ours:.1f}x), {results[h].value:.2f}"
            if h in results
            else "-"
            for h in heads
        ]
        print(f"| {n} | {' | '.join(cells)} | {results['ours'].peak_gib:.2f} |", flush=True)


def lasso_table() -> None:
    """Print l1 coding at a tenth of the largest correlation: time, and the mean objective."""
    print("\n## Lasso, alpha a tenth of the largest correlation, float64: ms, mean objective\n")
    heads = ["ours", "SPAMS (LARS)", "scikit-learn lasso_lars", "scikit-learn lasso_cd"]
    print("| features, atoms, signals | " + " | ".join(heads) + " |\n" + "|---" * 5 + "|")
    for kind in ("plain", "alike"):
        for shape in ((256, 300, 2000), (256, 1024, 500), (784, 700, 500)):
            case = {"shape": shape, "kind": kind}
            results = compare(
                [
                    Contender("ours", "lasso_kernelatoms", case),
                    Contender("SPAMS (LARS)", "lasso_spams", case),
                    Contender("scikit-learn lasso_lars", "lasso_sklearn",
                              {**case, "algorithm": "lasso_lars"}, once=True),
                    Contender("scikit-learn lasso_cd", "lasso_sklearn",
                              {**case, "algorithm": "lasso_cd"}, once=True),
                ],
                3,
                1,
            )  # fmt: skip
            ours = results["ours"].seconds
            cells = [
                f"{1e3 * results[h].seconds:.0f} ({results[h].seconds / ours:.1f}x), "
                f"{results[h].value:.4f}"
                for h in heads
            ]
            print(f"| {shape} {kind} | {' | '.join(cells)} |", flush=True)


def memory_table() -> None:
    print("\n## Memory: coding 1,000,000 x 256 float32 over 1,024 atoms, 10 nonzeros\n")
    result = compare([Contender("ours", "million_rows", {"n_signals": 1_000_000}, once=True)])[
        "ours"
    ]
    print(f"{result.seconds:.1f} s; peak resident memory {result.peak_gib:.2f} GiB, which is "
          f"{result.value:.3f} GiB above input and output.")  # fmt: skip


FIRST_CODE = """
import time
import numpy as np
from kernelatoms import sparse_encode
start = time.perf_counter()
sparse_encode(np.ones((2, 3)), np.eye(3), n_nonzero_coefs=1)
print(time.perf_counter() - start)
"""


def startup_table() -> None:
    print("\n## Start-up, seconds (medians of 5 processes)\n")
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "NUMBA_CACHE_DIR": cache}
        compiling = float(_run(FIRST_CODE, env)[0])
        cached = statistics.median(float(_run(FIRST_CODE, env)[0]) for _ in range(5))
    ours, bare = (
        statistics.median(_run(code)[1] for _ in range(5)) for code in ("import kernelatoms", "")
    )
    print(f"- `import kernelatoms`: {ours:.3f}, of which Python itself {bare:.3f}")
    print(
        f"- the first code of the first process, which compiles: {compiling:.2f}; "
        f"of every later process, from the disk cache: {cached:.2f}"
    )


def _run(code: str, env: dict[str, str] | None = None) -> tuple[str, float]:
    """Run Python code in a process; return what it printed and how long it took."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True
    )
    return done.stdout, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = (
        "omp, ksvd, kernel, lasso, l1, l1-threads, local, representation, supervised, eigen, ksad, "
        "codec, denoise, gamma, memory, many-atoms, startup"
    )
    parser.add_argument("tables", nargs="*", default=[], help=f"{names} (all by default), gpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument(
        "--data", default="", help="l1, denoise, gamma: only data whose names hold this"
    )
    arguments = parser.parse_args()
    wanted = arguments.tables or names.split(", ")
    print(describe_machine())
    if "omp" in wanted:
        omp_table(arguments.rounds, arguments.generations)
    if "ksvd" in wanted:
        ksvd_table(arguments.rounds, arguments.generations)
    if "kernel" in wanted:
        kernel_table()
    if "lasso" in wanted:
        lasso_table()
    if "l1" in wanted:
        l1_table(arguments.data)
    if "l1-threads" in wanted:
        threads_table(arguments.data)
    if "local" in wanted:
        local_tables(arguments.rounds)
    if "representation" in wanted:
        representation_tables(arguments.rounds)
    if "supervised" in wanted:
        supervised_tables(arguments.rounds)
    if "eigen" in wanted:
        eigen_tables(arguments.rounds)
    if "ksad" in wanted:
        ksad_tables(arguments.rounds)
    if "codec" in wanted:
        codec_tables(arguments.rounds)
    if "denoise" in wanted:
        denoise_tables(arguments.data)
    if "gamma" in wanted:
        gamma_tables(arguments.data)
    if "memory" in wanted:
        memory_table()
    if "many-atoms" in wanted:
        many_atoms.memory_table(quick=False)
        many_atoms.positive_table(False, arguments.rounds, arguments.generations)
    if "startup" in wanted:
        startup_table()
    if "gpu" in wanted:  # where there is a card
        gpu_tables(arguments.rounds)


if __name__ == "__main__":
    main()
