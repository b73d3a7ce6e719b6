"""MOD and dask-ml's ``Incremental(MiniBatchDictionaryLearning)`` on the same Dask array.

python -m benchmarks.dask_peers [--data mnist|patches] [--workers 2] [--rows N] [--chunk-rows 5000]

The time until the same held-out objective is reached, 1/2 |x - D w|^2 + alpha |w|_1 over atoms of
at most unit norm, from the same start atoms. Rows are held by the workers, in chunks. Every learner
has a cluster and a process of its own. The parent codes held-out rows over every dictionary, by one
exact coder and outside of the clock.

- ``MOD(alpha)``: ``fit`` of 1, 2, 4, ... passes, each from the start; this is its objective.
- ``MOD, greedy``: likewise, but for another objective (8 nonzeros).
- ``MOD(alpha), a batch per chunk``: ``partial_fit`` with one chunk after another.
- ``dask-ml``: ``Incremental.partial_fit`` with 1, 2, 4, ... chunks, in order. Every chunk
  is a batch, one after another; ``dask-ml, small chunks`` has chunks of 512 rows.

Needs dask-ml (``pip install dask-ml``), in an environment of its own if need be. Where it cannot be
imported, a chain of ``partial_fit`` tasks stands in for it, as dask-ml makes it (``_Chain``); the
table says so. KERNELATOMS_DATA is the folder of MNIST; patches are of a photograph of scikit-learn.
"""

import argparse
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from dask.distributed import wait

from benchmarks import dask_cluster as shared
from benchmarks.harness import Contender, compare
from benchmarks.online import N_ATOMS, TARGETS, Curve, curve, patches, time_to

try:
    from dask_ml.wrappers import Incremental

    PEER = "dask-ml"
except ImportError:
    Incremental = None
    PEER = "dask-ml as a chain of tasks"
MODULE = "benchmarks.dask_peers"
N_NONZERO, SMALL_CHUNK = 8, 512
ALPHAS = {"mnist": 0.1, "patches": 1.2}
Case = dict[str, Any]
Step = Callable[[], Any]


def load(case: Case) -> tuple[Any, Any, Any]:
    """Return rows to learn from, held out ones and start atoms, in float32."""
    if case["data"] == "mnist":
        found = patches("mnist", 28, min(case["n_rows"], 58_000))
    else:
        found = patches("china.jpg", 12, min(case["n_rows"], 200_000))
    train, held_out, start = (np.ascontiguousarray(rows, np.float32) for rows in found)
    return train, held_out, start


class _Chain:
    """What ``Incremental`` does: ``partial_fit`` with one chunk after another, each a task."""

    def __init__(self, estimator: Any, **options: Any) -> None:
        self.estimator_ = estimator

    def partial_fit(self, X: Any) -> "_Chain":
        """Take in all chunks."""
        model = delayed(self.estimator_)
        for chunk in X.to_delayed()[:, 0]:
            model = delayed(_partial_fit)(model, chunk)
        self.estimator_ = model.compute()
        return self


def _partial_fit(model: Any, rows: Any) -> Any:
    return model.partial_fit(rows)


def _atoms_of(fit: Callable[[Any], Any], X: Any) -> Any:
    learner = fit(X)
    return getattr(learner, "estimator_", learner).components_


# Steps of learners: each takes up some more rows and returns atoms.


def mod_steps(X: Any, start: Any, **options: Any) -> Iterator[tuple[int, Step, bool]]:
    """Yield fits of 1, 2, 4, ... passes, each from the start."""
    from kernelatoms import MOD

    n_passes = 1
    while True:
        learner = MOD(max_iter=n_passes, tol=0, dict_init=start, **options)
        yield n_passes, partial(_atoms_of, learner.fit, X), True
        n_passes *= 2


def batch_steps(X: Any, start: Any, **options: Any) -> Iterator[tuple[int, Step, bool]]:
    """Yield batches of a chunk each."""
    from kernelatoms import MOD

    learner, number = MOD(len(start), dict_init=start, **options), 0
    while True:
        chunk = X.blocks[number % X.numblocks[0]]
        number += 1
        yield number, partial(_atoms_of, learner.partial_fit, chunk), False


def peer_steps(X: Any, start: Any, *, alpha: float) -> Iterator[tuple[int, Step, bool]]:
    """Yield 1, 2, 4, ... chunks more for ``Incremental``, all chunks at most at once."""
    from sklearn.decomposition import MiniBatchDictionaryLearning

    made = MiniBatchDictionaryLearning(
        len(start), alpha=alpha, fit_algorithm="cd", dict_init=start, random_state=0
    )
    # It has no score, without which Incremental wants to know how it is scored.
    learner = (Incremental or _Chain)(made, scoring=_no_score, shuffle_blocks=False)
    n_seen, n_chunks = 0, X.numblocks[0]
    while True:
        first = n_seen % n_chunks
        some = X.blocks[first : min(first + max(1, n_seen), n_chunks)]
        n_seen += some.numblocks[0]
        yield n_seen, partial(_atoms_of, learner.partial_fit, some), False


def _no_score(estimator: Any, X: Any, y: Any = None) -> float:
    return 0.0


STEPS: dict[str, Any] = {"mod": mod_steps, "batches": batch_steps, "peer": peer_steps}


def learn(
    case: Case, steps: str, options: dict[str, Any], chunk_rows: int, n_workers: int,
    budget: float, path: str,
) -> Callable[[], Callable[[], int]]:  # fmt: skip
    """Return what learns on a cluster for so many seconds, and keeps dictionaries."""
    warnings.simplefilter("ignore")
    train, _, start = load(case)

    def call() -> Callable[[], int]:
        with shared.local_cluster(n_workers) as client:
            client.run(warnings.simplefilter, "ignore")
            few = da.from_array(train[: 4 * N_ATOMS], chunks=(N_ATOMS, -1)).persist()
            for _, step, _ in _first(STEPS[steps](few, start, **options), 2):
                step()
            X = da.from_array(train, chunks=(chunk_rows, -1)).persist()
            wait(X)
            kept = follow(STEPS[steps](X, start, **options), budget)
            del X, few
        seconds, counts, atoms = zip(*kept, strict=True)
        np.savez(path, seconds=seconds, n_batches=counts, dictionaries=atoms)
        return lambda: len(kept)

    return call


def _first(steps: Iterator[Any], n: int) -> Iterator[Any]:
    for _ in range(n):
        yield next(steps)


def follow(steps: Iterator[tuple[int, Step, bool]], budget: float) -> list[tuple[float, int, Any]]:
    """Take steps for so many seconds; return seconds, counts and dictionaries."""
    spent, in_all, wanted, kept = 0.0, 0.0, 1, []
    while in_all < budget:
        count, step, afresh = next(steps)
        began = time.perf_counter()
        atoms = step()
        seconds = time.perf_counter() - began
        in_all += seconds
        spent = seconds if afresh else spent + seconds
        if count >= wanted or in_all >= budget:
            kept.append((spent, count, np.array(atoms)))
            wanted = count + max(1, count // 4)
    return kept


# The parent.


def contenders(given: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the arguments of every learner by its label."""
    alpha, own = {"alpha": given.alpha}, {"chunk_rows": given.chunk_rows}
    ours = own | {"budget": given.seconds}
    peer = {"steps": "peer", "options": alpha, "budget": given.peer_seconds}
    return {
        "MOD(alpha)": ours | {"steps": "mod", "options": alpha},
        "MOD, greedy": ours | {"steps": "mod", "options": {"n_nonzero_coefs": N_NONZERO}},
        "MOD(alpha), a batch per chunk": ours | {"steps": "batches", "options": alpha},
        PEER: own | peer,
        f"{PEER}, small chunks": peer | {"chunk_rows": SMALL_CHUNK},
    }


def measure(given: argparse.Namespace, case: Case, held_out: Any) -> dict[str, list[Curve]]:
    """Return the curves of all rounds by learner."""
    found: dict[str, list[Curve]] = {}
    for _ in range(given.rounds):
        for label, arguments in contenders(given).items():
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "kept.npz")
                more = {"case": case, "n_workers": given.workers, "path": path}
                one = Contender(label, "learn", arguments | more, once=True, threads=1)
                compare([one], 1, module=MODULE)
                found.setdefault(label, []).append(curve(path, held_out, given.alpha))
    return found


def print_times(found: dict[str, list[Curve]]) -> None:
    """Print the times to what both MOD(alpha) and the peer reach, and a little more."""
    for label, curves in found.items():
        shown = ", ".join(f"{v:.4f} after {s:.3g} s ({n})" for s, n, v in curves[0])
        print(f"- {label}: {shown}")
    lowest = {
        label: statistics.median(min(value for _, _, value in one) for one in curves)
        for label, curves in found.items()
    }
    base = max(lowest["MOD(alpha)"], min(lowest[PEER], lowest[f"{PEER}, small chunks"]))
    print(f"\nSeconds to {base:.4f}, which MOD(alpha) and the peer both reach, and a little more; "
          "times MOD(alpha)'s. Between snapshots times are interpolated.\n")  # fmt: skip
    print("| learner | lowest | " + " | ".join(f"+{100 * t:g}%" for t in (0.0, *TARGETS)) + " |")
    print("|---" * (len(TARGETS) + 3) + "|")
    first: list[float] = []
    for label, curves in found.items():
        times = [
            statistics.median(time_to(base * (1 + t), steps) for steps in curves)
            for t in (0.0, *TARGETS)
        ]
        first = first or times
        cells = [
            f"{t:.3g} ({t / ours:.1f}x)" if np.isfinite(t) else "not reached"
            for t, ours in zip(times, first, strict=True)
        ]
        print(f"| {label} | {lowest[label]:.4f} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    default = "mnist" if os.environ.get("KERNELATOMS_DATA") else "patches"
    parser.add_argument("--data", choices=tuple(ALPHAS), default=default)
    parser.add_argument("--alpha", type=float)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--chunk-rows", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10, help="of learning, for us")
    parser.add_argument("--peer-seconds", type=float, default=40, help="of learning, for dask-ml")
    given = parser.parse_args()
    given.alpha = given.alpha or ALPHAS[given.data]
    case = {"data": given.data, "n_rows": given.rows}
    train, held_out, start = load(case)
    names = ["dask_ml"] if Incremental is not None else []
    print(shared.versions(*names))
    print(f"\n{given.data}: {len(train):,} x {train.shape[1]} float32 in chunks of "
          f"{given.chunk_rows:,} rows, {len(start)} atoms, alpha {given.alpha:g}, {given.workers} "
          f"workers of one thread, {given.rounds} rounds; the peer is {PEER}.\n"
          "Held-out objective after so many s (and passes, or chunks):\n", flush=True)  # fmt: skip
    print_times(measure(given, case, held_out.astype(np.float64)))
    print(f"\nLoad at the end {os.getloadavg()[0]:.2f}.")


if __name__ == "__main__":
    main()
