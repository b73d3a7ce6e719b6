"""MOD on one-thread workers of a local Dask cluster, and by threads of one process.

python -m benchmarks.dask_workers [--workers 1 2] [--rows N] [--passes 3] [--chunk-mib 32]
[--rounds 1] [--profile] [--cost-model] [--json FILE]

Per number of workers: seconds per pass, rows per second, times as fast as the first number, the
checksum of the atoms (must be the same for all), the peak memory of a worker without the chunks
that it holds, and the same rows learned from in memory with as many threads. CPU seconds tell the
work of all processes; they stay about the same where others share the machine. Rows are made on the
workers and stay there; start atoms are given, so that nothing is drawn. Every contender has a
process of its own, one after another, and warms up.

Dask's nannies let workers give freed memory back at once (MALLOC_TRIM_THRESHOLD_ is 64 KiB): the
arrays of every block are of new pages. ``--keep-memory`` starts workers that reuse it.

``--profile`` says where the time of a pass goes, by the scheduler's record of tasks.
``--cost-model`` measures chunks of an eighth, too, and prints the constants of
``seconds per pass = seconds per row * rows / workers + seconds per chunk * chunks / workers
+ seconds per pass`` and the bandwidth of sums between two workers, as a line of JSON.
"""

import argparse
import hashlib
import json
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from dask.distributed import Client, wait

from benchmarks import dask_cluster as shared
from benchmarks.harness import Contender, compare

N_FEATURES, N_ATOMS, N_NONZERO = 256, 512, 8
MODULE = "benchmarks.dask_workers"
Found = dict[str, Any]


def _fit(X: Any, n_passes: int, clock: shared.Clock | None = None) -> Any:
    return fit_from(shared.start_atoms(N_ATOMS, N_FEATURES), X, n_passes, N_NONZERO, clock)


def fit_from(
    start: Any, X: Any, n_passes: int, n_nonzero: int, clock: shared.Clock | None = None
) -> Any:
    """Return a learner after so many passes from start atoms."""
    from kernelatoms import MOD

    learner = MOD(n_nonzero_coefs=n_nonzero, max_iter=n_passes, tol=0, dict_init=start)
    if clock is not None:
        learner.set_callbacks(clock)
    return learner.fit(X)


def warm_up() -> None:
    """Load or compile the loops that a task calls."""
    _fit(shared.rows_of_seed(2**31, 4 * N_ATOMS, N_FEATURES), 1)


# Contenders: each returns what the harness calls once.


def on_workers(
    n_workers: int,
    n_rows: int,
    n_passes: int,
    chunk_mib: float,
    bandwidth: bool,
    keep_memory: bool,
) -> Callable[[], Callable[[], Found]]:
    """Learn on a cluster."""
    per_chunk = shared.rows_per_chunk(N_FEATURES, chunk_mib)

    def call() -> Callable[[], Found]:
        with shared.local_cluster(n_workers, keep_memory=keep_memory) as client:
            shared.submit_everywhere(client, warm_up)
            _fit(shared.rows_on_workers(4096 * n_workers, N_FEATURES, 2048), 2)
            X = shared.rows_on_workers(n_rows, N_FEATURES, per_chunk).persist()
            wait(X)
            client.run(shared.forget_peak)
            client.get_task_stream()  # from now on
            clock, before = shared.Clock(), client.run(time.process_time)
            own = time.process_time()
            learner = _fit(X, n_passes, clock)
            own = time.process_time() - own
            cpu = sum(client.run(time.process_time).values()) - sum(before.values())
            memory = list(client.run(shared.worker_memory).values())
            found = {
                **_answer(learner, clock),
                "cpu": cpu / n_passes,
                "cpu_of_scheduler": own / n_passes,
                "chunks_per_worker": sorted(one["chunks"] for one in memory),
                "peak_beside_chunks": max(one["peak"] - one["held"] for one in memory),
                "profile": _profile(client, clock, n_workers),
            }
            if bandwidth and n_workers > 1:
                found["sums_mib_per_second"] = _bandwidth(client)
            del X
        return lambda: found

    return call


def in_process(n_rows: int, n_passes: int, chunk_mib: float) -> Callable[[], Callable[[], Found]]:
    """Learn by threads of this process."""
    X = shared.rows_in_memory(n_rows, N_FEATURES, shared.rows_per_chunk(N_FEATURES, chunk_mib))
    warm_up()

    def call() -> Callable[[], Found]:
        clock, began = shared.Clock(), time.process_time()
        learner = _fit(X, n_passes, clock)
        cpu = (time.process_time() - began) / n_passes
        found = {**_answer(learner, clock), "cpu": cpu}
        return lambda: found

    return call


def _answer(learner: Any, clock: shared.Clock) -> Found:
    atoms = np.ascontiguousarray(learner.components_)
    return {
        "passes": clock.seconds(),
        "sha256": hashlib.sha256(atoms.tobytes()).hexdigest(),
        "objective": float(learner.objective_[-1]),
    }


def _profile(client: Client, clock: shared.Clock, n_workers: int) -> dict[str, float]:
    """Return seconds of workers by what they did in all passes, per worker and pass.

    ``client`` is the time of a pass in which no worker had begun or all had ended: the graph, the
    update, and messages. ``idle`` is the rest. Transfers go on beside tasks, or in idle time.
    """
    spent: dict[str, float] = defaultdict(float)
    edges: dict[int, list[float]] = defaultdict(list)
    for task in client.get_task_stream(start=clock.began[0]):
        for part in task["startstops"]:
            number = int(np.searchsorted(clock.began, part["start"], "right")) - 1
            if number >= 0:
                edges[number] += [part["start"], part["stop"]]
                spent[_name(task["key"], part["action"])] += part["stop"] - part["start"]
    spent = {name: seconds / n_workers for name, seconds in spent.items()}
    worked = sum(max(times) - min(times) for times in edges.values())
    waited = sum(seconds for name, seconds in spent.items() if "transfer" not in name)
    spent["idle"] = worked - waited
    spent["client"] = sum(clock.seconds()) - worked
    n_passes = len(clock.began)
    worked = sum(max(times) - min(times) for times in edges.values())
    spent["idle"] = worked - sum(spent.values())
    spent["client"] = sum(clock.seconds()) - worked
    return {name: seconds / n_passes for name, seconds in sorted(spent.items())}


def _name(key: Any, action: str) -> str:
    """Return the kind of a task, and what it did where that is not its own work."""
    kind = str(key[0] if isinstance(key, tuple) else key).lstrip("('").rpartition("-")[0]
    return kind if action == "compute" else f"{action} for {kind}"


def _sums(seed: int) -> Any:
    """Return an array of the size of the sums over a chunk."""
    return np.full(N_ATOMS * (N_ATOMS + N_FEATURES), float(seed))


def _touch(sums: Any) -> float:
    return float(sums[-1])


def _bandwidth(client: Client, times: int = 20) -> float:
    """Return MiB per second at which sums go from one worker to another, one after another."""
    first, second = sorted(client.scheduler_info(n_workers=-1)["workers"])[:2]
    made = [client.submit(_sums, i, workers=[first], pure=False) for i in range(times)]
    wait(made)
    seconds = []
    for sums in made:
        began = time.perf_counter()
        client.submit(_touch, sums, workers=[second], pure=False).result()
        moved = time.perf_counter() - began
        began = time.perf_counter()
        client.submit(_touch, sums, workers=[second], pure=False).result()
        seconds.append(max(moved - (time.perf_counter() - began), 1e-9))
    return _sums(0).nbytes / shared.MIB / statistics.median(seconds)


# The parent.


def ask(function: str, threads: int, **arguments: Any) -> Found:
    """Return what a contender finds in a child process."""
    one = Contender(function, function, arguments, once=True, threads=threads)
    found: Found = compare([one], 1, module=MODULE)[function].value
    return found


def measure(given: argparse.Namespace) -> dict[str, list[Found]]:
    """Return what was found by contender, a list of rounds."""
    found: dict[str, list[Found]] = defaultdict(list)
    common = {"n_rows": given.rows, "n_passes": given.passes}
    threads = given.workers if given.in_process is None else given.in_process
    for number in range(given.rounds):
        for n in given.workers[:: -1 if number % 2 else 1]:
            contenders = {
                f"dask {n}": {"chunk_mib": given.chunk_mib, "bandwidth": given.cost_model},
                **({f"small {n}": {"chunk_mib": given.chunk_mib / 8, "bandwidth": False}}
                   if given.cost_model else {}),
            }  # fmt: skip
            for label, more in contenders.items():
                found[label].append(
                    ask(
                        "on_workers",
                        1,
                        n_workers=n,
                        keep_memory=given.keep_memory,
                        **common,
                        **more,
                    )
                )
            if n in threads:
                found[f"threads {n}"].append(
                    ask("in_process", n, chunk_mib=given.chunk_mib, **common)
                )
    return dict(found)


def seconds_per_pass(rounds: list[Found]) -> float:
    return statistics.median(s for found in rounds for s in found["passes"])


def _median(rounds: list[Found], name: str) -> float:
    return statistics.median(found[name] for found in rounds)


def print_table(found: dict[str, list[Found]], given: argparse.Namespace) -> None:
    """Print a row per number of workers."""
    print("| workers | s per pass | rows/s | times as fast | chunks each | peak beside chunks, MiB "
          "| CPU s per pass: workers, scheduler | threads of one process, s (CPU s) "
          "| Dask over it (CPU) |")  # fmt: skip
    print("|---" * 9 + "|")
    first = seconds_per_pass(found[f"dask {given.workers[0]}"])
    for n in given.workers:
        rounds = found[f"dask {n}"]
        seconds = seconds_per_pass(rounds)
        cpu, scheduler = (_median(rounds, name) for name in ("cpu", "cpu_of_scheduler"))
        peak = max(one["peak_beside_chunks"] for one in rounds) / shared.MIB
        chunks = [c for one in rounds for c in one["chunks_per_worker"]]
        beside = "- | -"
        if f"threads {n}" in found:
            threads = found[f"threads {n}"]
            alone, of_alone = seconds_per_pass(threads), _median(threads, "cpu")
            beside = (f"{alone:.3f} ({of_alone:.2f}) | {100 * (seconds / alone - 1):+.1f}% "
                      f"({100 * ((cpu + scheduler) / of_alone - 1):+.1f}%)")  # fmt: skip
        print(f"| {n} | {seconds:.3f} | {given.rows / seconds:,.0f} | {first / seconds:.2f} | "
              f"{min(chunks)} to {max(chunks)} | {peak:,.0f} | {cpu:.2f}, {scheduler:.2f} "
              f"| {beside} |")  # fmt: skip
    sums = {one["sha256"] for n in given.workers for one in found[f"dask {n}"]}
    same = "the same" if len(sums) == 1 else "NOT THE SAME"
    said = ", ".join(sorted(one[:16] for one in sums))
    print(f"\nSHA-256 of the atoms: {same} for all numbers of workers ({said}).")


def print_profile(found: dict[str, list[Found]], workers: list[int]) -> None:
    """Print where the time of a pass goes, in milliseconds."""
    names = sorted({name for n in workers for one in found[f"dask {n}"] for name in one["profile"]})
    print("\nMilliseconds per worker and pass, medians of the rounds:\n")
    print(f"| workers | {' | '.join(names)} |\n{'|---' * (1 + len(names))}|")
    for n in workers:
        rounds = found[f"dask {n}"]
        cells = [
            f"{1000 * statistics.median(one['profile'].get(name, 0.0) for one in rounds):.1f}"
            for name in names
        ]
        print(f"| {n} | {' | '.join(cells)} |")


def cost_model(found: dict[str, list[Found]], given: argparse.Namespace) -> Found:
    """Return the constants of the model in the docstring, by least squares of relative errors."""
    rows, seconds = [], []
    for label, rounds in found.items():
        kind, n = label.split()
        if kind != "threads":
            chunk_mib = given.chunk_mib / (8 if kind == "small" else 1)
            n_chunks = -(-given.rows // shared.rows_per_chunk(N_FEATURES, chunk_mib))
            rows.append([given.rows / int(n), n_chunks / int(n), 1.0])
            seconds.append(seconds_per_pass(rounds))
    y = np.array(seconds)
    design = np.array(rows) / y[:, None]
    if len(y) < 3:
        design = design[:, :2]
    scale = np.linalg.norm(design, axis=0)
    constants = np.linalg.lstsq(design / scale, np.ones(len(y)), rcond=None)[0] / scale
    names = ("seconds_per_row_per_worker", "seconds_per_chunk_task", "seconds_per_pass")
    speeds = [one["sums_mib_per_second"] for rounds in found.values() for one in rounds
              if "sums_mib_per_second" in one]  # fmt: skip
    return {
        **{name: float(f"{value:.4g}") for name, value in zip(names, constants, strict=False)},
        "sums_mib_per_second": round(statistics.median(speeds), 1) if speeds else None,
        "sums_mib": round(_sums(0).nbytes / shared.MIB, 3),
        "largest_relative_error": round(float(np.abs(design @ constants - 1).max()), 4),
    }


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.replace(",", " ").split()]


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--workers", type=_numbers, default=[1, 2], help="1,2,4,8,16")
    parser.add_argument("--in-process", type=_numbers, help="threads; by default as --workers")
    parser.add_argument("--rows", type=int, default=1 << 20)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--chunk-mib", type=float, default=32)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--cost-model", "--cluster-bytes", action="store_true")
    parser.add_argument(
        "--keep-memory",
        action="store_true",
        help="let workers reuse freed memory (dask_cluster.KEEP_MEMORY)",
    )
    parser.add_argument("--json", help="a file for all that was found")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    n_chunks = -(-given.rows // shared.rows_per_chunk(N_FEATURES, given.chunk_mib))
    print(shared.versions())
    print(f"\nMOD, {given.rows:,} x {N_FEATURES} float32 in {n_chunks} chunks of "
          f"{given.chunk_mib:g} MiB, {N_ATOMS} atoms, {N_NONZERO} nonzeros; medians of "
          f"{given.rounds} x {given.passes} passes"
          f"{', workers reuse memory' if given.keep_memory else ''}.\n", flush=True)  # fmt: skip
    found = measure(given)
    print_table(found, given)
    if given.profile:
        print_profile(found, given.workers)
    if given.cost_model:
        print(f"\n{json.dumps({'cost_model': cost_model(found, given)})}")
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"arguments": vars(given), "found": found}, file, indent=1)
    print(f"\nLoad at the end {os.getloadavg()[0]:.2f}.")


if __name__ == "__main__":
    main()
