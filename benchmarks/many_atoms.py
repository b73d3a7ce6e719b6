"""Very many atoms: time, and memory beyond input and output. python -m benchmarks.many_atoms.

1,000 signals over 65,536 atoms of 128 features, whose Gram matrix alone would take 16 GiB; 1,000
signals over 60,000 atoms of 784 features with 50 candidates each; one signal; and what it costs
that coefficients may not be negative, over as many atoms as the OMP table has.
"""

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contenders import coding_data
from benchmarks.harness import Contender, compare, describe_machine

N_NONZERO, N_CANDIDATES = 10, 50
# The lasso's penalty: this share of the median signal's largest correlation.
ALPHA_SHARE = 0.5
# Enough atoms for the code that needs no Gram matrix to be what is warmed up.
FEW_ATOMS = 4200


def encode(
    shape: list[int],
    dtype: str,
    method: str = "omp",
    selection: str = "omp",
    positive: bool = False,
    n_candidates: int = 0,
) -> Callable[[], Any]:
    """Code ``shape = (features, atoms, signals)``; report GiB beyond input and output, nonzeros."""
    from kernelatoms import sparse_encode

    n_features, n_atoms, n_signals = shape
    X, D = coding_data(n_features, n_atoms, n_signals, dtype)
    rng = np.random.default_rng(1)
    candidates = None
    if n_candidates:
        # The atoms most alike the signal are not the point here: any of them take as long.
        candidates = rng.integers(0, n_atoms // n_candidates, (n_signals, n_candidates))
        candidates += np.arange(n_candidates) * (n_atoms // n_candidates)
    options: dict[str, Any] = {"method": method, "positive": positive}
    if method == "omp":
        options |= {"n_nonzero_coefs": N_NONZERO, "selection": selection}
    else:
        corr = np.abs(X[:50] @ D.T)  # a few signals tell
        if candidates is not None:
            corr = np.take_along_axis(corr, candidates[:50], axis=1)
        options["alpha"] = ALPHA_SHARE * float(np.median(corr.max(axis=1)))

    def code(X: Any, D: Any, rows: Any) -> Any:
        return sparse_encode(X, D, **options, candidates=rows)

    few = None if candidates is None else np.tile(np.arange(n_candidates), (len(X[:2]), 1))
    code(X[:2], D[:FEW_ATOMS], few)

    def call() -> Any:
        with open("/proc/self/clear_refs", "w") as switch:
            switch.write("5")  # the peak is from now on
        before = _status("VmRSS")
        codes = code(X, D, candidates)
        beyond = _status("VmHWM") - before - _gib(codes)
        return lambda: [beyond, codes.nnz / n_signals]

    return call


def _gib(codes: Any) -> float:
    return (codes.data.nbytes + codes.indices.nbytes + codes.indptr.nbytes) / 2**30


def _status(field: str) -> float:
    """Return a number of /proc/self/status in GiB."""
    with open("/proc/self/status") as lines:
        line = next(line for line in lines if line.startswith(field + ":"))
    return int(line.split()[1]) / 2**20


def memory_table(quick: bool) -> None:
    many, local = (65_536, 60_000) if not quick else (8192, 8192)
    n = 1000 if not quick else 50
    wide, pixels, one = (128, many, n), (784, local, n), (128, many, 1)
    rows: list[tuple[str, dict[str, Any]]] = []
    for name, options in (
        ("OMP", {}), ("OLS", {"selection": "ols"}), ("OMP, non-negative", {"positive": True}),
        ("OLS, non-negative", {"selection": "ols", "positive": True}),
        ("lasso", {"method": "lasso"}),
        ("lasso, non-negative", {"method": "lasso", "positive": True}),
    ):  # fmt: skip
        rows.append((name, {"shape": wide, "dtype": "float32", **options}))
    for dtype in ("float32", "float64"):
        for name, method in (("OMP", "omp"), ("lasso", "lasso")):
            case = {"shape": pixels, "dtype": dtype, "method": method}
            rows.append((f"{name}, {N_CANDIDATES} candidates", case | {"n_candidates": 50}))
    for name, method in (("OMP", "omp"), ("lasso", "lasso")):
        rows.append((name, {"shape": one, "dtype": "float32", "method": method}))
    print(f"\n## Very many atoms: {N_NONZERO} nonzeros, or alpha = {ALPHA_SHARE} of the median "
          "signal's largest correlation with the atoms it may use\n")  # fmt: skip
    print("| features, atoms, signals | type | pursuit | s | GiB beyond input and output "
          "| nonzeros per signal |\n|---|---|---|---|---|---|")  # fmt: skip
    for name, case in rows:
        contender = Contender(name, "encode", case, once=True)
        result = compare([contender], 1, 1, module="benchmarks.many_atoms")[name]
        beyond, nonzeros = result.value
        sizes = ", ".join(f"{size:,}" for size in case["shape"])
        print(f"| {sizes} | {case['dtype']} | {name} | {result.seconds:.2f} | {beyond:.3f} | "
              f"{nonzeros:.1f} |", flush=True)  # fmt: skip


def positive_table(quick: bool, rounds: int, generations: int) -> None:
    """Print the time of non-negative pursuits over that of the others, on Gaussian signals."""
    print("\n## Non-negative OMP and OLS over OMP and OLS, Gaussian signals: ms and ratio\n")
    print("| features, atoms, nonzeros, signals | OMP | non-negative | ratio "
          "| OLS | non-negative | ratio |\n|---|---|---|---|---|---|---|")  # fmt: skip
    shapes = [(256, 300, 5, 20_000), (784, 700, 11, 10_000), (256, 1024, 10, 10_000),
              (512, 4096, 20, 2_000)]  # fmt: skip
    ratios: dict[str, list[float]] = {"omp": [], "ols": []}
    for dtype in ("float32", "float64"):
        for shape in [(64, 100, 5, 500)] if quick else shapes:
            results = compare(
                [
                    Contender(f"{selection} {positive}", "omp_kernelatoms",
                              {"shape": shape, "dtype": dtype, "selection": selection,
                               "positive": positive})
                    for selection in ("omp", "ols") for positive in (False, True)
                ],
                rounds,
                generations,
            )  # fmt: skip
            cells = []
            for selection in ("omp", "ols"):
                plain, positive = (
                    1e3 * results[f"{selection} {sign}"].seconds for sign in (False, True)
                )
                ratios[selection].append(positive / plain)
                cells += [f"{plain:.1f}", f"{positive:.1f}", f"{positive / plain:.2f}"]
            print(f"| {shape} {dtype} | {' | '.join(cells)} |", flush=True)
    for selection, values in ratios.items():
        print(f"\nNon-negative {selection.upper()}: {statistics.geometric_mean(values):.2f}x in "
              f"the geometric mean, at most {max(values):.2f}x.")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", help="memory, positive (both by default)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run?")
    arguments = parser.parse_args()
    wanted = arguments.tables or ["memory", "positive"]
    print(describe_machine())
    if "memory" in wanted:
        memory_table(arguments.quick)
    if "positive" in wanted:
        positive_table(arguments.quick, arguments.rounds, arguments.generations)


if __name__ == "__main__":
    main()
