"""Us before and after: every speed table, paired. python -m benchmarks.paired --before TREE.

TREE is a checkout of the older state (``git worktree add TREE COMMIT``). Both trees run in children
of their own, with the same threads and the same calls, asked in turn; fresh children in every
generation, which gives one ratio new/old a cell: the median of the new calls over the median of
the old ones. Below 1 is faster. Cells have fewer signals than the tables of RESULTS.md where those
would take long, as stated.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks.harness import Contender, compare, describe_machine

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = "usps" if os.environ.get("KERNELATOMS_DATA") else "stand-in"
#: A cell: its name, the module and function of its contender, and the arguments.
Cell = tuple[str, str, str, dict[str, Any]]
OURS, ANY = "benchmarks.contenders", "public_calls"

# features, atoms, nonzeros, signals
SHAPES = [
    (256, 300, 5, 10_000),
    (784, 700, 11, 3_000),
    (256, 1024, 10, 3_000),
    (512, 4096, 20, 500),
]
FIRST_CODE = (
    "import numpy as np; from kernelatoms import sparse_encode; "
    "sparse_encode(np.ones((2, 3)), np.eye(3), n_nonzero_coefs=1)"
)


def greedy_cells(selection: str) -> list[Cell]:
    return [
        (f"{shape} {dtype}", OURS, "omp_kernelatoms",
         {"shape": shape, "dtype": dtype, "selection": selection})
        for dtype in ("float32", "float64") for shape in SHAPES
    ]  # fmt: skip


def lasso_cells() -> list[Cell]:
    shapes = {
        "plain": ((256, 300, 200), (256, 1024, 60), (784, 700, 60)),
        "alike": ((256, 300, 1000), (256, 1024, 500), (784, 700, 500)),
    }
    return [
        (f"{shape} {kind}", ANY, "lasso", {"shape": shape, "kind": kind})
        for kind, sizes in shapes.items() for shape in sizes
    ]  # fmt: skip


def l1_cells() -> list[Cell]:
    """Return the default solver, and at the smallest size KSC and FKSC, under an RBF kernel."""
    cases = [("syn600", "raw", 0.01, 20.0), ("syn1400", "raw", 0.01, 20.0),
             ("syn1400", "raw", 0.05, 17.0), ("syn600", "unit", 0.05, 17.0)]  # fmt: skip
    if DATA == "usps":
        cases.append(("planetlab", "unit", 0.01, 10.0))
    cells: list[Cell] = []
    for data, scale, alpha, sigma in cases:
        case = {"data": data, "scale": scale, "sigma": sigma, "n_signals": 490}
        arguments = {"method": "lasso", "alpha": alpha, "case": case, "times": 3}
        cells.append((f"{data} {scale}, {alpha}, {sigma:g}: lasso, 1,470 signals, one thread",
                      "benchmarks.l1", "kernelatoms", arguments))  # fmt: skip
    case = {"data": "syn600", "scale": "raw", "sigma": 17.0, "n_signals": 100}
    for method in ("fksc", "ksc"):
        arguments = {"method": method, "alpha": 0.05, "case": case}
        cells.append((f"syn600 raw, 0.05, 17: {method.upper()}, 100 signals, one thread",
                      "benchmarks.l1", "kernelatoms", arguments))  # fmt: skip
    return cells


def l1_threads_cells() -> list[Cell]:
    case = {"data": "syn1400", "scale": "raw", "sigma": 20.0, "n_signals": 600}
    arguments = {"method": "lasso", "alpha": 0.01, "case": case, "threads": 2, "times": 5}
    name = "syn1400 raw, 0.01, 20: lasso, 3,000 signals, two threads"
    return [(name, "benchmarks.l1", "kernelatoms", arguments)]


def ksvd_cells() -> list[Cell]:
    options = [("float32", "omp"), ("float64", "omp"), ("float64", "ols")]
    return [
        (f"{dtype}, {selection.upper()} ({DATA})", OURS, "ksvd_kernelatoms",
         {"dtype": dtype, "data": DATA, "selection": selection})
        for dtype, selection in options
    ]  # fmt: skip


def kernel_cells() -> list[Cell]:
    return [
        (f"{n} rows, {dtype} ({DATA})", OURS, "kernel_ksvd_kernelatoms",
         {"n": n, "data": DATA, "dtype": dtype})
        for n, dtype in ((500, "float64"), (1194, "float32"), (1194, "float64"))
    ]  # fmt: skip


def lkdl_cells() -> list[Cell]:
    data = "USPS" if DATA == "usps" else "scikit-learn's digits"
    return [(f"{step} ({data})", ANY, "lkdl", {"step": step})
            for step in ("fit map", "map", "learn", "classify")]  # fmt: skip


def gpu_cells() -> list[Cell]:
    from benchmarks.gpu import SHAPES

    kinds: dict[str, dict[str, Any]] = {
        "": {}, ", non-negative": {"positive": True}, ", clustered": {"clustered": True},
    }  # fmt: skip
    cells: list[Cell] = [
        (f"OMP {shape[:3]}{kind}", ANY, "pursuit_on_card", {"shape": shape[:4], **arguments})
        for shape in SHAPES for kind, arguments in kinds.items()
    ]  # fmt: skip
    for learner in ("KSVD", "MOD"):
        name = f"{learner}, 1,000,000 x 256, 1,024 atoms, 10 nonzeros, two passes"
        cells.append((name, ANY, "learn_on_card", {"learner": learner, "n_signals": 1_000_000}))
    return cells


#: Headings and cells; the cells of a table share their two children.
TABLES: dict[str, tuple[str, Any]] = {
    "omp": ("OMP: features, atoms, nonzeros, signals", lambda: greedy_cells("omp")),
    "ols": ("OLS: features, atoms, nonzeros, signals", lambda: greedy_cells("ols")),
    "lasso": ("Lasso, float64: features, atoms, signals", lasso_cells),
    "l1": ("l1 under an RBF kernel: data, lambda, sigma", l1_cells),
    "l1-threads": ("l1 under an RBF kernel, two threads", l1_threads_cells),
    "ksvd": ("K-SVD, 300 atoms, 5 nonzeros, 5 passes", ksvd_cells),
    "kernel": ("Kernel K-SVD, (x'y)^4, 300 atoms, 5 nonzeros, 5 passes", kernel_cells),
    "memory": (
        "Coding very many rows of 256 float32 over 1,024 atoms, 10 nonzeros",
        lambda: [("30,000 rows", OURS, "million_rows", {"n_signals": 30_000})],
    ),
    "lkdl": ("LKDL, degree 2, a tenth of the rows as landmarks", lkdl_cells),
    "masked": (
        "OMP with a fifth of the values missing: 64 features, 256 atoms, 5 nonzeros, 1,000 signals",
        lambda: [(dtype, ANY, "masked", {"dtype": dtype}) for dtype in ("float32", "float64")],
    ),
    "startup": (
        "Start-up: a whole process, from the disk cache",
        lambda: [("import kernelatoms", ANY, "process", {"code": "import kernelatoms"}),
                 ("its first code", ANY, "process", {"code": FIRST_CODE})],
    ),
    "gpu": ("On a card, rows and codes there", gpu_cells),
}  # fmt: skip
#: What needs a card runs when it is named.
DEFAULT = [name for name in TABLES if name != "gpu"]


def run_table(name: str, before: str, rounds: int, generations: int) -> list[tuple[str, float]]:
    """Print the cells of a table; return their names and median ratios."""
    heading, make = TABLES[name]
    cells: list[Cell] = make()
    print(f"\n## {heading}\n")
    print("| cell | before, ms | now, ms | now / before | quartiles |\n|---|---|---|---|---|")
    arguments = {"cells": [cell[1:] for cell in cells]}
    results = compare(
        [Contender("before", "in_turn", arguments, tree=before),
         Contender("now", "in_turn", arguments, tree=HERE)],
        rounds * len(cells), generations, module=ANY,
        # What these cells say of threads themselves stands in their arguments.
        **({"threads": 1} if name.startswith("l1") else {}),
    )  # fmt: skip
    answer = []
    for place, cell in enumerate(cells):
        old, new = (
            [statistics.median(run[place :: len(cells)]) for run in results[side].runs]
            for side in ("before", "now")
        )
        ratios = [b / a for a, b in zip(old, new, strict=True)]
        ratio = statistics.median(ratios)
        low, high = (
            (ratio, ratio)
            if len(ratios) < 2
            else statistics.quantiles(ratios, method="inclusive")[::2]
        )
        print(f"| {cell[0]} | {1e3 * statistics.median(old):.1f} | "
              f"{1e3 * statistics.median(new):.1f} | {ratio:.3f} | {low:.3f} to {high:.3f} |",
              flush=True)  # fmt: skip
        answer.append((f"{name}, {cell[0]}", ratio))
    return answer


def check_tree(tree: str) -> str:
    """Return a tree's commit; refuse one whose children would not run its own code."""
    env = {**os.environ, "PYTHONPATH": os.path.join(tree, "src")}
    command = [sys.executable, "-c", "import kernelatoms; print(kernelatoms.__file__)"]
    found = subprocess.run(command, env=env, cwd=tree, capture_output=True, text=True, check=True)
    if not os.path.realpath(found.stdout.strip()).startswith(os.path.realpath(tree)):
        sys.exit(f"A child in {tree} imports {found.stdout.strip()}: that is another tree.")
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(asked, cwd=tree, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--before", required=True, metavar="TREE", help="a checkout to compare with"
    )
    parser.add_argument(
        "--tables", default=",".join(DEFAULT), help="some of the default, by commas, or gpu"
    )
    parser.add_argument(
        "--rounds", type=int, default=2, help="calls per cell, child and generation"
    )
    parser.add_argument("--generations", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="one generation: does it run?")
    arguments = parser.parse_args()
    wanted = arguments.tables.split(",")
    unknown = set(wanted) - set(TABLES)
    if unknown:
        parser.error(f"no tables of these names: {', '.join(unknown)}; there are {list(TABLES)}")
    rounds, generations = arguments.rounds, arguments.generations
    if arguments.quick:
        rounds, generations = 1, 1
    before = os.path.abspath(arguments.before)
    print(describe_machine())
    print(f"Before: {check_tree(before)}; now: {check_tree(HERE)}. {generations} generations of "
          f"{rounds} rounds; --tables {','.join(wanted)}.")  # fmt: skip
    start, ratios = time.perf_counter(), []
    for name in wanted:
        ratios += run_table(name, before, rounds, generations)
    worst = max(ratios, key=lambda cell: cell[1])
    mean = statistics.geometric_mean(ratio for _, ratio in ratios)
    print(f"\n{len(ratios)} cells: now / before {mean:.3f} in the geometric mean; the worst cell "
          f"is {worst[0]}: {worst[1]:.3f}. Load at the end {os.getloadavg()[0]:.2f}, "
          f"{(time.perf_counter() - start) / 60:.0f} minutes.")  # fmt: skip


if __name__ == "__main__":
    main()
