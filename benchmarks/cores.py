"""The same calls on 1, 2, 4, 8 and 16 threads, as far as there are cores, and the bandwidth.

python -m benchmarks.cores [--cases omp mod ...] [--threads 1 16] [--rounds 3] [--quick] prints one
row per case: seconds by number of threads, and how many times as fast as one thread each is. Every
number of threads has a child process of its own (KERNELATOMS_NUM_THREADS and OMP_NUM_THREADS) that
makes its data and warms up; calls alternate, medians count. Calls that take long (``mod``,
``ksvd``) are timed once, without a call before.

What bounds a step that only reads memory is its bandwidth: ``copy`` and ``triad`` (a = b + s c)
move 1 GiB per array, split among as many threads, and are given in GB/s, two and three arrays
counted (without what the processor reads before it writes).
"""

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numba
import numpy as np

from benchmarks.harness import Contender, compare, describe_machine
from kernelatoms import (
    KSVD,
    MOD,
    CRCClassifier,
    KernelLinearizer,
    n_threads,
    sparse_encode,
)

N_FEATURES, N_ATOMS, N_NONZERO, N_PASSES = 256, 512, 8, 5
N_TRAINING_ROWS, N_CLASSES = 2000, 10


def dictionary() -> Any:
    atoms = np.random.default_rng(0).standard_normal((N_ATOMS, N_FEATURES), dtype=np.float32)
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def rows(n: int) -> Any:
    """Return combinations of atoms with noise: 20,000 drawn, and these again at other sizes."""
    rng = np.random.default_rng(1)
    some = min(n, 20_000)
    weights = np.zeros((some, N_ATOMS), np.float32)
    used = rng.integers(0, N_ATOMS, (some, N_NONZERO))
    np.put_along_axis(weights, used, rng.standard_normal(used.shape, dtype=np.float32), axis=1)
    noise = rng.standard_normal((some, N_FEATURES), dtype=np.float32)
    drawn = weights @ dictionary() + np.float32(0.05) * noise
    X = np.empty((n, N_FEATURES), np.float32)
    for i, start in enumerate(range(0, n, some)):
        part = X[start : start + some]
        np.multiply(drawn[: len(part)], np.float32(1 + i / 100), out=part)
    return X


# Contenders: each returns what is timed.


def omp(n: int) -> Callable[[], None]:
    X, atoms = rows(n), dictionary()
    sparse_encode(X[:2000], atoms, n_nonzero_coefs=N_NONZERO)

    def call() -> None:
        sparse_encode(X, atoms, n_nonzero_coefs=N_NONZERO)

    return call


def learner(n: int, name: str) -> Callable[[], float]:
    X, learners = rows(n), {"mod": MOD, "ksvd": KSVD}

    def fit(X: Any, n_atoms: int, n_passes: int) -> Any:
        made = learners[name](
            n_atoms, n_nonzero_coefs=N_NONZERO, max_iter=n_passes, tol=0, random_state=0
        )
        return made.fit(X)

    fit(X[:2000], 64, 2)
    return lambda: float(fit(X, N_ATOMS, N_PASSES).objective_[-1])


def linear_map(n: int, kernel: str, sampling: str, step: str) -> Callable[[], None]:
    X = rows(n)
    linearizer = KernelLinearizer(kernel, n_landmarks=500, sampling=sampling, random_state=0)
    linearizer.fit(X[:20_000]).transform(X[:2000])

    def call() -> None:
        getattr(linearizer, step)(X)

    return call


def crc(n: int, **parameters: Any) -> Callable[[], None]:
    X = rows(n + N_TRAINING_ROWS)
    labels = np.arange(N_TRAINING_ROWS) % N_CLASSES
    model = CRCClassifier(mu=0.1, **parameters).fit(X[:N_TRAINING_ROWS], labels)
    new = X[N_TRAINING_ROWS:]
    model.predict(new)  # what is computed once

    def call() -> None:
        model.predict(new)

    return call


@numba.njit(nogil=True)
def _copy(a: Any, b: Any, c: Any) -> None:
    for i in range(len(a)):
        a[i] = b[i]


@numba.njit(nogil=True)
def _triad(a: Any, b: Any, c: Any) -> None:
    for i in range(len(a)):
        a[i] = b[i] + 3.0 * c[i]


def bandwidth(n_bytes: int, move: str) -> Callable[[], float]:
    loop, n_arrays = {"copy": (_copy, 2), "triad": (_triad, 3)}[move]
    threads, n = n_threads(), n_bytes // 8
    pool = ThreadPoolExecutor(threads)
    edges = [n * i // threads for i in range(threads + 1)]
    # Each part is written first by a thread, which may bring it near to its core.
    whole = [np.empty(n) for _ in range(3)]
    parts = [[x[i:j] for x in whole] for i, j in pairwise(edges)]
    list(pool.map(lambda part: [x.fill(1.0) for x in part], parts))
    loop(*parts[0])

    def call() -> float:
        start = time.perf_counter()
        for _ in range(3):
            list(pool.map(lambda part: loop(*part), parts))
        return 3e-9 * n_arrays * n_bytes / (time.perf_counter() - start)

    return call


#: What is said, function, arguments, those of ``--quick``, and whether it is called once.
Case = tuple[str, str, dict[str, Any], dict[str, Any], bool]
_SHAPE = f"x {N_FEATURES}, {N_ATOMS} atoms, {N_NONZERO} nonzeros"
CASES: dict[str, Case] = {
    "omp": (f"OMP, {{n}} {_SHAPE}", "omp", {"n": 512_000}, {"n": 64_000}, False),
    "mod": (
        f"MOD fit, {{n}} {_SHAPE}, 5 passes", "learner",
        {"n": 512_000, "name": "mod"}, {"n": 64_000}, True,
    ),
    "ksvd": (
        f"K-SVD fit, {{n}} {_SHAPE}, 5 passes", "learner",
        {"n": 512_000, "name": "ksvd"}, {"n": 64_000}, True,
    ),
    "ksvd-20k": (
        f"K-SVD fit, {{n}} {_SHAPE}, 5 passes", "learner",
        {"n": 20_000, "name": "ksvd"}, {}, False,
    ),
    **{
        f"map-{kernel}": (
            f"Nystroem map of {{n}} x {N_FEATURES}, {kernel}, 500 landmarks", "linear_map",
            {"n": 512_000, "kernel": kernel, "sampling": "uniform", "step": "transform"},
            {"n": 64_000}, False,
        )
        for kernel in ("rbf", "poly")
    },
    **{
        f"fit-{sampling}": (
            f"its fit to {{n}} rows, rbf, sampling {sampling!r}", "linear_map",
            {"n": 512_000, "kernel": "rbf", "sampling": sampling, "step": "fit"},
            {"n": 64_000}, sampling == "kmeans",
        )
        for sampling in ("uniform", "rpcholesky", "kmeans")
    },
    "crc": ("CRC predictions, {n} rows, 2,000 training rows", "crc", {"n": 50_000}, {"n": 4000},
            False),
    "kcrc": ("KCRC predictions (rbf), {n} rows", "crc", {"n": 50_000, "kernel": "rbf"},
             {"n": 4000}, False),
    "lcd": ("KCRC-LCD predictions (rbf, 40 neighbours), {n} rows", "crc",
            {"n": 100_000, "kernel": "rbf", "n_neighbors": 40}, {"n": 8000}, False),
}  # fmt: skip
MOVES = ("copy", "triad")


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def print_case(name: str, threads: list[int], rounds: int, quick: bool) -> None:
    """Print the row of a case."""
    label, function, arguments, fewer, once = CASES[name]
    if quick:
        arguments = {**arguments, **fewer}
    results = compare(
        [
            Contender(f"{n} threads", function, arguments, once=once, threads=n)
            for n in threads
        ],
        rounds, module="benchmarks.cores",
    )  # fmt: skip
    seconds = [results[f"{n} threads"].seconds for n in threads]
    cells = [f"{s:.3f}" + f" ({seconds[0] / s:.2f}x)" * (s is not seconds[0]) for s in seconds]
    print(f"| {name}: {label.format(n=format(arguments['n'], ','))} | {' | '.join(cells)} |",
          flush=True)  # fmt: skip


def print_bandwidth(move: str, threads: list[int], rounds: int, quick: bool) -> None:
    """Print the row of a movement of memory."""
    arguments = {"n_bytes": 1 << (27 if quick else 30), "move": move}
    results = compare(
        [Contender(f"{n} threads", "bandwidth", arguments, threads=n) for n in threads],
        rounds, module="benchmarks.cores",
    )  # fmt: skip
    values = [results[f"{n} threads"].value for n in threads]
    cells = [f"{v:.1f}" + f" ({v / values[0]:.2f}x)" * (v is not values[0]) for v in values]
    print(f"| {move}, GB/s | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    names = [*CASES, *MOVES]
    parser.add_argument("--cases", nargs="+", choices=names, default=names)
    parser.add_argument("--threads", nargs="+", type=int, help="by default 1, 2, 4, 8, 16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="fewer rows: for two cores")
    arguments = parser.parse_args()
    threads = arguments.threads or [n for n in (1, 2, 4, 8, 16) if n == 1 or n <= cores()]
    print(describe_machine())
    print(f"\nSeconds, medians of {arguments.rounds}, by threads (times as fast as the first).\n")
    heads = " | ".join(f"{n} threads" if n > 1 else "1 thread" for n in threads)
    print(f"| case | {heads} |\n{'|---' * (1 + len(threads))}|", flush=True)
    for name in arguments.cases:
        show = print_case if name in CASES else print_bandwidth
        show(name, threads, arguments.rounds, arguments.quick)
    print(f"\nLoad at the end {os.getloadavg()[0]:.2f}.")


if __name__ == "__main__":
    main()
