"""Online dictionary learning on patches of photographs and on MNIST. python -m benchmarks.online.

All learners minimise the same, 1/2 |x - D w|^2 + alpha |w|_1 over atoms of at most unit norm, from
the same start: ``MOD(alpha=...).partial_fit``, SPAMS' ``trainDL`` and scikit-learn's mini-batch
learner. Each learns in a child of its own and keeps its dictionary after 1, 2, 4, ... batches, with
the seconds it took to get there. The parent codes held-out patches over every dictionary, by one
exact coder and outside of the clock; what counts is the time to the same objective.

SPAMS tells nothing along the way: it starts afresh for every number of batches, twice, and the
shorter time counts. Times between two snapshots are interpolated in log time.

``--clock cpu`` with ``BENCH_THREADS=1`` takes CPU seconds of one thread each: where other processes
share the machine, SPAMS' waiting threads make its wall times many times too long.
"""

import argparse
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.harness import N_THREADS, Contender, compare, describe_machine

Call = Callable[[], Any]
MODULE = "benchmarks.online"
N_ATOMS, N_HELD_OUT = 256, 2000
TARGETS = (0.01, 0.005, 0.001)
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def patches(photo: str, side: int, n_train: int) -> tuple[Any, Any, Any]:
    """Return patches to learn from, held out ones, and atoms to start from, in float64.

    Grey values, each patch's mean removed, unit variance on the whole; of MNIST, unit-norm images.
    """
    if photo == "mnist":
        return _digits(n_train)
    from sklearn.datasets import load_sample_image

    grey = load_sample_image(photo).mean(axis=2)
    windows = np.lib.stride_tricks.sliding_window_view(grey, (side, side))
    n_rows, n_columns = windows.shape[:2]
    rng = np.random.default_rng(0)
    places = rng.permutation(n_rows * n_columns)[: n_train + N_HELD_OUT]
    X = windows[places // n_columns, places % n_columns].reshape(len(places), -1)
    X -= X.mean(axis=1, keepdims=True)
    X /= X.std()
    train, held_out = X[:-N_HELD_OUT], X[-N_HELD_OUT:]
    start = train[rng.permutation(len(train))[:N_ATOMS]]
    return train, held_out, start / np.linalg.norm(start, axis=1, keepdims=True)


def _digits(n_train: int) -> tuple[Any, Any, Any]:
    from kernelatoms.datasets import load_mnist

    X = load_mnist(download_if_missing=False).X_train.reshape(60_000, -1).astype(np.float64)
    rng = np.random.default_rng(0)
    X = X[rng.permutation(len(X))[: n_train + N_HELD_OUT]]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    train, held_out = X[:-N_HELD_OUT], X[-N_HELD_OUT:]
    return train, held_out, train[rng.permutation(len(train))[:N_ATOMS]].copy()


def batches(X: Any, size: int, seed: int) -> Iterator[Any]:
    """Yield rows in random order, again and again."""
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(len(X))
        for first in range(0, len(X) - size + 1, size):
            yield X[order[first : first + size]]


def follow(
    learn: Callable[[Any], Any], stream: Iterator[Any], budget: float, path: str, clock: str
) -> Callable[[], int]:
    """Learn for so many seconds; keep the dictionary after 1, 2, 4, ... batches."""
    spent, n_batches, wanted, kept, now = 0.0, 0, 1, [], CLOCKS[clock]
    while spent < budget:
        rows = next(stream)
        start = now()
        D = learn(rows)
        spent += now() - start
        n_batches += 1
        if n_batches >= wanted or spent >= budget:
            kept.append((spent, n_batches, D.copy()))
            wanted *= 2
    return lambda: _save(path, kept)


def _save(path: str, kept: list[tuple[float, int, Any]]) -> int:
    seconds, n_batches, dictionaries = zip(*kept, strict=True)
    np.savez(path, seconds=seconds, n_batches=n_batches, dictionaries=dictionaries)
    return len(kept)


def kernelatoms(
    case: dict[str, Any], dtype: str, alpha: float, batch: int, budget: float, clock: str,
    seed: int, path: str,
) -> Call:  # fmt: skip
    from kernelatoms import MOD

    train, _, start = (rows.astype(dtype) for rows in patches(**case))
    MOD(N_ATOMS, alpha=alpha, dict_init=start).partial_fit(train[:64]).partial_fit(train[:64])
    learner = MOD(N_ATOMS, alpha=alpha, dict_init=start)

    def learn(rows: Any) -> Any:
        return learner.partial_fit(rows).components_

    return lambda: follow(learn, batches(train, batch, seed), budget, path, clock)


def sklearn(
    case: dict[str, Any], fit_algorithm: str, alpha: float, batch: int, budget: float, clock: str,
    seed: int, path: str,
) -> Call:  # fmt: skip
    """Time ``partial_fit`` with a job a thread, which is faster than one here."""
    from sklearn.decomposition import MiniBatchDictionaryLearning

    warnings.simplefilter("ignore")
    train, _, start = patches(**case)

    def make() -> Any:
        return MiniBatchDictionaryLearning(
            N_ATOMS, alpha=alpha, fit_algorithm=fit_algorithm, batch_size=batch, dict_init=start,
            n_jobs=N_THREADS, random_state=seed,
        )  # fmt: skip

    make().partial_fit(train[:64])
    learner = make()

    def learn(rows: Any) -> Any:
        return learner.partial_fit(rows).components_

    return lambda: follow(learn, batches(train, batch, seed), budget, path, clock)


def spams(
    case: dict[str, Any], dtype: str, alpha: float, batch: int, budget: float, clock: str,
    seed: int, path: str,
) -> Call:  # fmt: skip
    """Run ``trainDL`` afresh for 1, 2, 4, ... batches, of rows in an order drawn before."""
    import spams

    train, _, start = patches(**case)
    train = train[np.random.default_rng(seed).permutation(len(train))]
    X, D = (np.asfortranarray(rows.T, dtype=dtype) for rows in (train, start))
    options = {
        "K": N_ATOMS,
        "D": D,
        "mode": 2,  # min 1/2 |x - D w|^2 + lambda1 |w|_1
        "modeD": 0,  # |d_k| <= 1
        "lambda1": alpha,
        "batchsize": batch,
        "numThreads": N_THREADS,
        "verbose": False,
    }
    spams.trainDL(X[:, :1000], **options, iter=1)

    def call() -> Call:
        spent, n_batches, kept, now = 0.0, 1, [], CLOCKS[clock]
        while spent < budget:
            runs = []
            for _ in range(2):
                begin = now()
                learned = spams.trainDL(X, **options, iter=n_batches)
                runs.append(now() - begin)
            spent = min(runs)  # its threads wait for one another: another process delays all
            kept.append((spent, n_batches, np.array(learned).T))
            n_batches *= 2
        return lambda: _save(path, kept)

    return call


def objective(held_out: Any, D: Any, alpha: float) -> float:
    """Return the mean of 1/2 |x - D w|^2 + alpha |w|_1 at its minimum over w."""
    from kernelatoms import sparse_encode

    D = np.ascontiguousarray(D, np.float64)
    norms = np.linalg.norm(D, axis=1)
    assert norms.max() <= 1 + 1e-5, "an atom longer than 1 would cheat"
    W = sparse_encode(held_out, D, method="lasso", alpha=alpha)
    R = held_out - W @ D
    return float(0.5 * np.vdot(R, R) + alpha * np.abs(W.data).sum()) / len(held_out)


Curve = list[tuple[float, int, float]]  # seconds, batches, held-out objective


def curve(path: str, held_out: Any, alpha: float) -> Curve:
    kept = np.load(path)
    values = [objective(held_out, D, alpha) for D in kept["dictionaries"]]
    return list(zip(kept["seconds"], kept["n_batches"], values, strict=True))


def time_to(target: float, steps: Curve) -> float:
    """Return the seconds until an objective is reached, infinite where it is not."""
    before: tuple[float, float] | None = None
    for seconds, _, value in steps:
        if value <= target:
            if before is None:
                return seconds
            share = (before[1] - target) / (before[1] - value)
            return float(np.exp(np.log(before[0]) * (1 - share) + np.log(seconds) * share))
        before = seconds, value
    return float("inf")


def contenders(case: dict[str, Any], alpha: float, options: argparse.Namespace) -> list[Contender]:
    ours = {"case": case, "alpha": alpha, "batch": options.batch, "clock": options.clock}
    slowly = ours | {"budget": options.slow_seconds}
    ours |= {"budget": options.seconds}
    return [
        Contender("MOD", "kernelatoms", ours | {"dtype": "float64"}, once=True),
        Contender("MOD, float32", "kernelatoms", ours | {"dtype": "float32"}, once=True),
        Contender("SPAMS", "spams", ours | {"dtype": "float64"}, once=True),
        Contender("SPAMS, float32", "spams", ours | {"dtype": "float32"}, once=True),
        Contender("scikit-learn, lars", "sklearn", slowly | {"fit_algorithm": "lars"}, once=True),
        Contender("scikit-learn, cd", "sklearn", slowly | {"fit_algorithm": "cd"}, once=True),
    ]


def run_case(case: dict[str, Any], alpha: float, options: argparse.Namespace) -> None:
    """Print the curves of all contenders, and the times to common objectives."""
    _, held_out, _ = patches(**case)
    found: dict[str, list[Curve]] = {}
    memory: dict[str, float] = {}
    for generation in range(options.generations):
        for c in contenders(case, alpha, options):
            if options.only and not any(name in c.label for name in options.only.split(",")):
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "kept.npz")
                c.arguments |= {"seed": generation, "path": path}
                memory[c.label] = compare([c], 1, 1, module=MODULE)[c.label].peak_gib
                found.setdefault(c.label, []).append(curve(path, held_out, alpha))
    side = case["side"]
    print(f"\n## {case['photo']}, {side} x {side}, {case['n_train']:,} patches, {N_ATOMS} atoms, "
          f"alpha {alpha:g}, batches of {options.batch}: held-out objective after so many s "
          "(and batches)\n")  # fmt: skip
    for label, curves in found.items():
        shown = ", ".join(f"{v:.4f} after {s:.3g} s ({n})" for s, n, v in curves[0])
        print(f"- {label} (peak {memory[label]:.2f} GiB): {shown}")
    base = max(statistics.median(c[-1][2] for c in curves) for curves in found.values())
    print(f"\nSeconds to {base:.4f} (where the slowest ends) and a little more, the median of "
          f"{options.generations}, and the ratio to MOD:\n")  # fmt: skip
    print("| learner | " + " | ".join(f"+{100 * t:g}%" for t in TARGETS) + " |")
    print("|---" * (len(TARGETS) + 1) + "|")
    first: list[float] = []
    for label, curves in found.items():
        times = [
            statistics.median(time_to(base * (1 + t), steps) for steps in curves) for t in TARGETS
        ]
        first = first or times
        cells = [f"{t:.3g} ({t / ours:.1f}x)" for t, ours in zip(times, first, strict=True)]
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", default="china.jpg,flower.jpg", help="or mnist")
    parser.add_argument("--sides", default="8,12", help="of the patches, by commas")
    # 1.2 is 0.15 of the norm of a typical patch of 8 x 8, as SPAMS' examples take it.
    parser.add_argument("--alphas", default="1.2", help="weights of |w|_1, by commas")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="wall")
    parser.add_argument("--patches", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=5, help="of learning, for us and SPAMS")
    parser.add_argument("--slow-seconds", type=float, default=40, help="for scikit-learn")
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--only", default="", help="learners whose names hold one of these")
    parser.add_argument("--quick", action="store_true", help="a second each: does it run?")
    options = parser.parse_args()
    if options.quick:
        options.photos, options.sides, options.patches = "china.jpg", "8", 5000
        options.seconds, options.slow_seconds, options.generations = 1, 2, 1
    print(describe_machine())
    print(f"Options: {vars(options)}.")
    for photo in options.photos.split(","):
        for side in ["28"] if photo == "mnist" else options.sides.split(","):
            case = {"photo": photo, "side": int(side), "n_train": options.patches}
            for alpha in options.alphas.split(","):
                run_case(case, float(alpha), options)


if __name__ == "__main__":
    main()
