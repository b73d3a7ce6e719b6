"""Local dictionaries, Alg. 3 of the KCRC-LCD paper: search, small problems, very many atoms.

python -m benchmarks.run local, with the data sets in KERNELATOMS_DATA. Rows have unit norm, the
kernel is exp(-0.5 d^2), mu = 0.001 K / 700, all as in the paper. We and LAPACK know the Gram matrix
of 500 or 1,216 atoms before anything is timed; the plain loop computes distances where Alg. 3 asks
for them, and a second one looks up those between atoms. Approximate search is shown where
pynndescent is installed (kernelatoms[ann]).
"""

import importlib.util
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.harness import Contender, Result, compare

Call = Callable[[], Any]
BETA = 0.5
MODULE = "benchmarks.local"


@lru_cache(maxsize=1)
def rows(data: str, n_atoms: int, dtype: str) -> tuple[Any, Any, Any]:
    """Return atoms, their classes and test rows, of unit norm."""
    from kernelatoms.datasets import load_mnist, load_yaleb

    rng = np.random.default_rng(0)
    if data == "mnist":
        bunch = load_mnist()
        X, y, Y = bunch.X_train, bunch.y_train, bunch.X_test
        each = np.sort(rng.permutation(len(X))[:n_atoms])
    else:
        bunch = load_yaleb(size="randomface504")
        X, y = bunch.X, bunch.y
        people = np.unique(y)
        each = np.concatenate([
            rng.permutation(np.flatnonzero(y == who))[: n_atoms // len(people)] for who in people
        ])  # fmt: skip
        Y = np.delete(X, each, axis=0)
    D, owner = X[each].astype(dtype), np.unique(y[each], return_inverse=True)[1]
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    Y = Y.astype(dtype)
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    return D, owner, Y


def plain(data: str, n_atoms: int, K: int, n: int, columns: bool, known: bool) -> Call:
    """Run Alg. 3 as one would write it down, query by query.

    Distances between atoms are computed where they are needed, or ``known`` before.
    """
    D, owner, Y = rows(data, n_atoms, "float64")
    mu, n_classes = 0.001 * K / 700, owner.max() + 1
    products = D @ D.T
    norms2 = np.diagonal(products)
    far = np.sqrt(np.maximum(norms2[:, None] + norms2 - 2 * products, 0))

    def label(y: Any) -> int:
        d = np.sqrt(((D - y) ** 2).sum(axis=1))
        near = np.argsort(d)[:K]
        if known:
            between = far[np.ix_(near, near)]
        else:
            between = np.sqrt(((D[near][:, None] - D[near]) ** 2).sum(axis=2))
        G, b = np.exp(-BETA * between**2), np.exp(-BETA * d[near] ** 2)
        if columns:
            w = np.linalg.inv(G.T @ G + mu * np.eye(K)) @ G.T @ b
        else:
            w = np.linalg.inv(G + mu * np.eye(K)) @ b
        scores = np.full(n_classes, np.inf)
        for c in range(n_classes):
            own = owner[near] == c
            part = w[own]
            if part.any():
                if columns:
                    left = np.linalg.norm(b - G[:, own] @ part)
                else:
                    left = 1 - 2 * part @ b[own] + part @ G[np.ix_(own, own)] @ part
                    left = np.sqrt(max(left, 0))
                scores[c] = left / np.linalg.norm(part)
        return int(scores.argmin())

    def call() -> Any:
        labels = [label(y) for y in Y[:n]]
        return lambda: labels

    return call


def _problem(data: str, n_atoms: int, dtype: str, n: int, with_gram: bool) -> Any:
    from kernelatoms.coding import Expansion, KernelProblem
    from kernelatoms.similarity import make_kernel

    D, owner, Y = rows(data, n_atoms, dtype)
    problem = KernelProblem(Y[:n], Expansion(make_kernel("rbf", gamma=BETA), D))
    if with_gram:
        _ = problem.gram
    return problem, owner


def _code(problem: Any, candidates: Any, owner: Any, columns: bool) -> Any:
    """Return labels: small problems, ridge codes and class parts, block by block."""
    from kernelatoms.engine import cpu

    mu, n_classes = 0.001 * candidates.shape[1] / 700, int(owner.max()) + 1
    labels = np.empty(problem.n_signals, np.int64)

    def work(start: int, stop: int) -> None:
        own = candidates[start:stop]
        grams, corrs = problem.local(start, stop, own)
        w = cpu.ridge_local(grams, corrs, mu, columns)
        left, sizes = cpu.class_parts_local(
            grams, corrs, np.ones(stop - start), w, owner[own], n_classes, columns
        )
        with np.errstate(divide="ignore"):
            labels[start:stop] = np.where(sizes > 0, left / sizes, np.inf).argmin(axis=1)

    cpu.for_local_blocks(*candidates.shape, work)
    return labels


def ours(data: str, n_atoms: int, K: int, n: int, columns: bool, dtype: str) -> Call:
    """Search and code."""
    from kernelatoms.coding.neighbors import ascending, nearest_in_space

    problem, owner = _problem(data, n_atoms, dtype, n, with_gram=True)

    def call() -> Any:
        labels = _code(problem, ascending(nearest_in_space(problem, K)), owner, columns)
        return lambda: labels.tolist()

    call()
    return call


def solve(data: str, n_atoms: int, K: int, n: int, columns: bool, who: str) -> Call:
    """Solve the small problems alone, their correlations known: ours, or LAPACK for each."""
    import scipy.linalg

    from kernelatoms.coding.neighbors import ascending, nearest_in_space
    from kernelatoms.engine import cpu

    problem, _ = _problem(data, n_atoms, "float64", n, with_gram=True)
    candidates = ascending(nearest_in_space(problem, K))
    corrs = np.take_along_axis(problem.products(0, n)[0], candidates, axis=1)
    gram, mu = np.ascontiguousarray(problem.gram), 0.001 * K / 700
    weights, places = np.empty((n, K)), np.arange(K)

    def by_lapack() -> Any:
        for s, own in enumerate(candidates):
            G, b = gram[np.ix_(own, own)], corrs[s]
            if columns:
                G, b = G @ G, G @ b
            G[places, places] += mu
            factor = scipy.linalg.cho_factor(G, overwrite_a=True, check_finite=False)
            weights[s] = scipy.linalg.cho_solve(factor, b, check_finite=False)
        return lambda: float(np.abs(weights).sum())

    def work(start: int, stop: int) -> None:
        grams = cpu.gather(gram, candidates[start:stop])
        weights[start:stop] = cpu.ridge_local(grams, corrs[start:stop], mu, columns)

    def by_us() -> Any:
        cpu.for_local_blocks(n, K, work)
        return lambda: float(np.abs(weights).sum())

    call = by_us if who == "ours" else by_lapack
    call()
    return call


def coding(n_atoms: int, K: int, n: int, with_gram: bool) -> Call:
    """Code MNIST rows over known candidates."""
    from kernelatoms.coding.neighbors import ascending, nearest_in_space

    problem, owner = _problem("mnist", n_atoms, "float32", n, with_gram)
    candidates = ascending(nearest_in_space(problem, K))

    def call() -> Any:
        labels = _code(problem, candidates, owner, False)
        return lambda: labels.tolist()

    call()
    return call


def search(n_atoms: int, K: int, n: int, who: str) -> Call:
    """Find neighbours, or multiply only: all inner products, in blocks."""
    from kernelatoms.coding.neighbors import nearest_in_space

    problem, _ = _problem("mnist", n_atoms, "float32", n, with_gram=False)
    Y, D = problem.signals, problem.atoms.expansion.anchors
    out = np.empty((min(n, 1000), n_atoms), np.float32)

    def multiply() -> None:
        for start in range(0, n, len(out)):
            part = Y[start : start + len(out)]
            np.matmul(part, D.T, out=out[: len(part)])

    def find() -> None:
        nearest_in_space(problem, K)

    nearest_in_space(problem, K)
    return find if who == "ours" else multiply


def total(n_atoms: int, K: int, n: int, approximate: bool) -> Call:
    """Search and code MNIST rows, exactly or by pynndescent; report recall and seconds to build."""
    from kernelatoms.coding.neighbors import ApproximateNeighbors, ascending, nearest_in_space

    problem, owner = _problem("mnist", n_atoms, "float32", n, with_gram=n_atoms <= 2000)
    exact, found, built = nearest_in_space(problem, K), None, 0.0
    if approximate:
        start = time.perf_counter()
        index = ApproximateNeighbors(problem.atoms.expansion.anchors, random_state=0)
        built = time.perf_counter() - start
        index.nearest(problem.signals, K)  # compiles

    def call() -> Any:
        nonlocal found
        found = (index.nearest(problem.signals, K) if approximate else
                 nearest_in_space(problem, K))  # fmt: skip
        _code(problem, ascending(found), owner, False)
        return lambda: [_recall(found, exact), built]

    call()
    return call


def _recall(found: Any, exact: Any) -> float:
    both = [len(np.intersect1d(a, b)) for a, b in zip(found, exact, strict=True)]
    return float(np.mean(both)) / exact.shape[1]


# Data, atoms, K, queries, and how many of them a plain loop gets.
CASES = {"MNIST, 500 atoms, K = 50": ("mnist", 500, 50, 1000, 200),
         "Yale B, 1,216 atoms, K = 200": ("yaleb", 1216, 200, 400, 50)}  # fmt: skip


def loops_table(rounds: int) -> None:
    """Print microseconds a query: Alg. 3 in plain numpy, ours; LAPACK for each problem, ours."""
    print("\n## Local ridge codes, one thread: microseconds a query (ratio to ours)\n")
    print("| data | form | plain numpy | plain, distances known | ours | ours, float32 "
          "| same labels | gather + LAPACK | gather + ours |\n" + "|---" * 9 + "|")  # fmt: skip
    for name, (data, n_atoms, K, n, few) in CASES.items():
        for columns in (False, True):
            case = {"data": data, "n_atoms": n_atoms, "K": K, "columns": columns, "n": n}
            slow = {**case, "n": few}
            contenders = [
                Contender("plain", "plain", {**slow, "known": False}, once=True),
                Contender("known", "plain", {**slow, "known": True}),
                Contender("ours", "ours", {**case, "dtype": "float64"}),
                Contender("float32", "ours", {**case, "dtype": "float32"}),
                Contender("LAPACK", "solve", {**case, "who": "LAPACK"}),
                Contender("solve", "solve", {**case, "who": "ours"}),
            ]
            got = compare(contenders, rounds, 1, threads=1, module=MODULE)
            print(_loops_row(name, columns, got, n, few), flush=True)


def _loops_row(name: str, columns: bool, got: dict[str, Result], n: int, few: int) -> str:
    """Return a line of the table; refuse other labels or weights than the loops'."""
    labels = got["ours"].value
    assert got["plain"].value == got["known"].value == labels[:few], "other labels than numpy's"
    assert np.isclose(got["LAPACK"].value, got["solve"].value, rtol=1e-6)
    same = np.mean(np.equal(labels, got["float32"].value))
    us = {who: 1e6 * r.seconds / (few if who in ("plain", "known") else n)
          for who, r in got.items()}  # fmt: skip
    cells = [f"{us[who]:.0f} ({us[who] / us['ours']:.1f}x)" for who in ("plain", "known")]
    cells += [f"{us['ours']:.1f}", f"{us['float32']:.1f}", f"all; float32 {100 * same:.1f}%"]
    cells += [f"{us['LAPACK']:.1f} ({us['LAPACK'] / us['solve']:.2f}x)", f"{us['solve']:.1f}"]
    return f"| {name} | {'columns' if columns else 'feature space'} | {' | '.join(cells)} |"


def atoms_table(rounds: int, sizes: tuple[int, ...] = (500, 2000, 10_000, 60_000)) -> None:
    """Print microseconds a query from 500 to 60,000 atoms of MNIST, and the peak of memory."""
    K, n = 50, 2000
    known = importlib.util.find_spec("pynndescent") is not None
    print(f"\n## MNIST, float32, K = {K}, {n} queries: microseconds a query\n")
    print("| atoms | codes, Gram known | codes, rows only | GEMM | search (ratio) | search + codes "
          "| by pynndescent | recall | build s | peak GiB |\n" + "|---" * 10 + "|")  # fmt: skip
    for n_atoms in sizes:
        case = {"n_atoms": n_atoms, "K": K, "n": n}
        contenders = [
            Contender("rows", "coding", {**case, "with_gram": False}),
            Contender("gemm", "search", {**case, "who": "gemm"}),
            Contender("search", "search", {**case, "who": "ours"}),
            Contender("total", "total", {**case, "approximate": False}),
        ]
        if n_atoms <= 2000:
            contenders.append(Contender("gram", "coding", {**case, "with_gram": True}))
        if known:
            contenders.append(Contender("ann", "total", {**case, "approximate": True}))
        got = compare(contenders, rounds, 1, module=MODULE)
        if "gram" in got:
            same = np.mean(np.equal(got["gram"].value, got["rows"].value))
            assert same > 0.999, f"labels by Gram matrix and by rows agree for {same:.1%} only"
        us = {label: f"{1e6 * result.seconds / n:.1f}" for label, result in got.items()}
        ratio = got["search"].seconds / got["gemm"].seconds
        recall, built = got["ann"].value if known else (0.0, 0.0)
        ann = [us["ann"], f"{recall:.3f}", f"{built:.0f}"] if known else ["-"] * 3
        print(f"| {n_atoms:,} | {us.get('gram', '-')} | {us['rows']} | {us['gemm']} "
              f"| {us['search']} ({ratio:.2f}x) | {us['total']} | {' | '.join(ann)} "
              f"| {got['total'].peak_gib:.2f} |", flush=True)  # fmt: skip


def local_tables(rounds: int) -> None:
    """Print both tables."""
    loops_table(rounds)
    atoms_table(rounds)
