"""l1 coding under a kernel, as the FKSC paper does it: who reaches a gap of 1e-6, and when.

Everybody gets the same Gram matrix and correlations, and codes one signal after another; one
thread each. The dictionary is square, of training columns. On unit-norm columns coordinate
descents crawl: they code 20 signals instead of hundreds, run into their limit of passes, and the
gap that they reached is part of the result.
"""

import os
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.harness import Contender, Result, compare

Call = Callable[[], Any]
GAP = 1e-6
#: Passes that coordinate descents may take where they crawl.
MOST_PASSES = 2000


@lru_cache(maxsize=1)
def problem(data: str, scale: str, sigma: float, n_signals: int) -> tuple[Any, Any, Any]:
    """Return Gram matrix, correlations, and the energies, which are 1."""
    from kernelatoms.similarity import make_kernel
    from reproduction.fksc.data import load_columns

    columns = load_columns(data, scale, 0, os.environ.get("KERNELATOMS_DATA"))
    atoms, signals = columns.train[: columns.train.shape[1]], columns.test[:n_signals]
    kernel = make_kernel("rbf", gamma=1 / (2 * sigma**2))
    return kernel(atoms, atoms), kernel(signals, atoms), np.ones(len(signals))


def certified(gram: Any, corr: Any, energy: Any, codes: Any, alpha: float) -> list[float]:
    """Return the largest gap, the mean objective and the mean number of nonzeros."""
    from kernelatoms.engine.cpu import certify

    gaps, errors = np.empty(len(corr)), np.empty(len(corr))
    codes = np.ascontiguousarray(codes)
    certify(gram, corr, energy, alpha, False, codes, gaps, errors)
    objective = 0.5 * errors + alpha * np.abs(codes).sum(axis=1)
    return [float(gaps.max()), float(objective.mean()), float((codes != 0).sum(axis=1).mean())]


def kernelatoms(
    method: str,
    alpha: float,
    case: dict[str, Any],
    threads: int = 1,
    most_active: int = 256,
    times: int = 1,
) -> Call:
    """Run one of ours, on the signals so many times over.

    ``most_active=0`` leaves coordinate descent with screening alone.
    """
    from kernelatoms import coding
    from kernelatoms.engine.cpu import l1 as settings

    warnings.simplefilter("ignore")  # what stops short of the gap says so in the table
    os.environ["KERNELATOMS_NUM_THREADS"] = str(threads)
    gram, corr, energy = problem(**case)
    corr, energy = np.tile(corr, (times, 1)), np.tile(energy, times)
    settings.MOST_ACTIVE = most_active
    if most_active == 0:
        settings.MOST_ACTIVE_AT_ALL = 0
    settings.MOST_PASSES = MOST_PASSES
    # A kernel known to be positive semi-definite is not factored to find out.
    coding.GivenProblem.check_semidefinite = lambda _: None
    options: dict[str, Any] = {} if method == "lasso" else {"max_passes": MOST_PASSES}
    if method == "fksc":
        options["two_stages"] = True
    solve, given = (
        coding.lasso if method == "lasso" else coding.ksc,
        coding.GivenProblem(gram, corr, energy),
    )
    solve(coding.GivenProblem(gram, corr[:2], energy[:2]), alpha, **({**options, "gap_tol": 1e-1}))

    def call() -> Any:
        codes = solve(given, alpha, gap_tol=GAP, **options)
        updates = codes.n_updates.mean() if codes.n_updates is not None else 0
        return codes, float(updates)

    def answer() -> Any:
        codes, updates = call()
        return lambda: [*certified(gram, corr, energy, codes.to_dense(), alpha), updates]

    return answer


def sklearn_lars(alpha: float, case: dict[str, Any]) -> Call:
    """Run scikit-learn's LARS on the Gram matrix, one signal after another."""
    from sklearn.linear_model import lars_path_gram

    gram, corr, energy = problem(**case)
    warnings.simplefilter("ignore")

    def answer() -> Any:
        options = {"n_samples": 1, "method": "lasso", "alpha_min": alpha, "return_path": False}
        codes = [lars_path_gram(b, gram, **options)[2] for b in corr]
        return lambda: [*certified(gram, corr, energy, np.array(codes), alpha), 0.0]

    return answer


def sklearn_cd(alpha: float, case: dict[str, Any]) -> Call:
    """Run scikit-learn's coordinate descent on the Gram matrix, one signal after another.

    It asks for rows beside the Gram matrix: exact coordinates of atoms and signals, and one more
    for what of a signal lies outside of their span.
    """
    from sklearn.linear_model import lasso_path

    gram, corr, energy = problem(**case)
    s, V = np.linalg.eigh(gram)
    keep = s > 1e-12 * s[-1]
    design = np.zeros((keep.sum() + 1, len(gram)), order="F")
    design[:-1] = np.sqrt(s[keep])[:, None] * V[:, keep].T
    inside = (corr @ V[:, keep]) / np.sqrt(s[keep])
    outside = np.sqrt(np.maximum(energy - (inside**2).sum(axis=1), 0))
    targets = np.column_stack([inside, outside])
    warnings.simplefilter("ignore")
    gram = np.asfortranarray(gram)
    options = {"precompute": gram, "tol": GAP, "max_iter": MOST_PASSES}

    def solve(x: Any, b: Any) -> Any:
        weight = [alpha / len(design)]
        return lasso_path(design, x, alphas=weight, Xy=b, **options)[1][:, 0]

    def answer() -> Any:
        codes = [solve(x, b) for x, b in zip(targets, corr, strict=True)]
        return lambda: [
            *certified(np.ascontiguousarray(gram), corr, energy, np.array(codes), alpha), 0.0
        ]  # fmt: skip

    return answer


def _cases() -> list[tuple[str, str, float, float]]:
    synthetic = [
        (f"syn{n}", scale, alpha, sigma)
        for scale in ("raw", "unit")
        for alpha, sigma in ((0.01, 20.0), (0.05, 17.0))
        for n in (600, 800, 1000, 1200, 1400)
    ]
    return [("planetlab", "unit", 0.01, 10.0), ("planetlab", "unit", 0.1, 0.5), *synthetic]


def threads_table(sizes: str) -> None:
    """Print what the second thread does, on enough signals to keep it busy."""
    print("\n## l1 under an RBF kernel, gap 1e-6: ms per signal, one thread and two\n")
    print("| data, lambda, sigma | one | two | ratio |\n|---|---|---|---|")
    for data, scale, alpha, sigma in _cases():
        if sizes not in data:
            continue
        many, times = 490 if data == "planetlab" else 600, 10
        case = {"data": data, "scale": scale, "sigma": sigma, "n_signals": many}
        own = {"alpha": alpha, "case": case, "method": "lasso", "times": times}
        results = compare(
            [Contender(str(n), "kernelatoms", {**own, "threads": n}) for n in (1, 2)],
            5, 1, threads=1, module="benchmarks.l1",
        )  # fmt: skip
        one, two = (1e3 * results[n].seconds / (many * times) for n in ("1", "2"))
        name = f"{data} {scale}, {alpha}, {sigma:g}"
        print(f"| {name} | {one:.4f} | {two:.4f} | {one / two:.2f} |", flush=True)


def l1_table(sizes: str) -> None:
    """Print milliseconds per signal, ratios to ours, and gaps that are not reached."""
    cases = [case for case in _cases() if sizes in case[0]]
    heads = ["ours", "scikit-learn LARS", "scikit-learn CD", "our CD alone", "FKSC", "KSC"]
    print("\n## l1 under an RBF kernel, one thread, gap 1e-6: ms per signal (ratio to ours)\n")
    print("| data, lambda, sigma | nonzeros | " + " | ".join(heads) + " | objectives apart |")
    print("|---" * (len(heads) + 3) + "|")
    for data, scale, alpha, sigma in cases:
        crawls = scale == "unit"
        results, n_signals = {}, {}
        many = 490 if data == "planetlab" else 600
        for heads_now, n in ((heads[:2], many), (heads[2:], 20 if crawls else 200)):
            case = {"data": data, "scale": scale, "sigma": sigma, "n_signals": n}
            own = {"alpha": alpha, "case": case}
            ours = {**own, "method": "lasso"}
            contenders = [
                Contender("ours", "kernelatoms", ours),
                Contender("scikit-learn LARS", "sklearn_lars", own),
                Contender("scikit-learn CD", "sklearn_cd", own, once=crawls),
                Contender("our CD alone", "kernelatoms", {**ours, "most_active": 0}, once=crawls),
                Contender("FKSC", "kernelatoms", {**own, "method": "fksc"}, once=crawls),
                Contender("KSC", "kernelatoms", {**own, "method": "ksc"}, once=crawls),
            ]
            now = [c for c in contenders if c.label in heads_now]
            results |= compare(now, 3, 1, threads=1, module="benchmarks.l1")
            n_signals |= dict.fromkeys(heads_now, n)
        print(_row(f"{data} {scale}, {alpha}, {sigma:g}", results, n_signals), flush=True)


def _row(name: str, results: dict[str, Result], n_signals: dict[str, int]) -> str:
    """Return a line of the table."""
    each = {head: result.seconds / n_signals[head] for head, result in results.items()}
    cells = []
    for head, result in results.items():
        gap, _, _, updates = result.value
        cell = f"{1e3 * each[head]:.3f} ({each[head] / each['ours']:.1f}x)"
        cell += f", {updates:.0f} evaluations" if updates else ""
        cell += f", **gap {gap:.0e}**" if gap > 1.5 * GAP else ""
        cells.append(cell)
    alike = [r.value[1] for head, r in results.items() if head in ("our CD alone", "FKSC", "KSC")]
    return (
        f"| {name} | {results['ours'].value[2]:.1f} | {' | '.join(cells)} | {np.ptp(alike):.0e} |"
    )
