"""What a pass over Dask chunks costs: a model, its constants, and how well it foretells runs.

python -m benchmarks.dask_model --measure          # constants of scheduling, on this machine
python -m benchmarks.dask_model --runs FILE [...]  # beside runs of benchmarks.dask_workers --json
python -m benchmarks.dask_model                    # a curve to 1,000 workers and 10^9 x 256 rows

    seconds per pass = max(coding, scheduling) + depth of the tree * (sums / bandwidth) + client
    coding = chunks of the busiest worker * (rows per chunk * seconds per row + sums / bandwidth)
    scheduling = chunks * seconds per chunk of the scheduler, which is one process

Larger machines are simulated by these lines, not measured.
"""

import argparse
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_FAN_IN = 4  # sums that one task adds: kernelatoms.rows.dask.source


@dataclass(frozen=True)
class Costs:
    """Seconds and bytes per second: 512 atoms, 8 nonzeros, 256 features in float32, MOD.

    Measured on a 16-core machine: one worker's pass, ``--measure``, and what sums took to go from
    process to process; a network of 10 Gbit per second has about the same bandwidth.
    """

    row: float = 7.3e-6
    chunk_of_scheduler: float = 1.07e-3
    bandwidth: float = 8.0e8
    client: float = 0.06


def seconds_per_pass(
    rows: float, n_workers: int, chunk_mib: float, costs: Costs, *, busiest: int | None = None
) -> float:
    """Return what the model foretells; ``busiest`` is how many chunks a worker has at most."""
    n_atoms, p = 512, 256
    rows_per_chunk = chunk_mib * 2**20 / (4 * p)
    chunks = math.ceil(rows / rows_per_chunk)
    sums = 8 * n_atoms * (n_atoms + p) / costs.bandwidth
    busiest = math.ceil(chunks / n_workers) if busiest is None else busiest
    moved = 0.0 if n_workers == 1 else sums
    coding = busiest * (min(rows_per_chunk, rows / chunks) * costs.row + moved)
    depth = math.ceil(math.log(max(chunks, 2), _FAN_IN))
    return max(coding, chunks * costs.chunk_of_scheduler) + depth * moved + costs.client


def measure(n_chunks: int = 2000) -> float:
    """Return seconds per chunk of scheduling: a pass that does nothing with tiny chunks."""
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    from kernelatoms import open_rows

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        rows = open_rows(da.ones((4 * n_chunks, 8), chunks=(4, 8), dtype="f4").persist())
        found = []
        for _ in range(3):
            start = time.perf_counter()
            rows.reduce(_nothing, block_rows=4)
            found.append((time.perf_counter() - start) / n_chunks)
    return float(np.median(found))


def _nothing(block: Any, start: int) -> int:
    return 0


def beside_runs(path: str, costs: Costs) -> None:
    """Print measured and foretold seconds per pass."""
    run = json.loads(Path(path).read_text())
    rows, chunk = run["arguments"]["rows"], run["arguments"]["chunk_mib"]
    print(f"\n{path}: {rows:,} rows in chunks of {chunk:g} MiB\n")
    print("| workers | chunks of the busiest | measured, s | model, s | model / measured |")
    print("|---|---|---|---|---|")
    for name, found in run["found"].items():
        if name.startswith("dask "):
            n_workers = int(name.split()[1])
            seconds = float(np.median([s for one in found for s in one["passes"]]))
            most = max(chunks for one in found for chunks in one["chunks_per_worker"])
            told = seconds_per_pass(rows, n_workers, chunk, costs, busiest=most)
            print(f"| {n_workers} | {most} | {seconds:.3f} | {told:.3f} | {told / seconds:.2f} |")


def curve(costs: Costs) -> None:
    """Print the simulated curve."""
    sizes = (32, 256)
    print("\n10^9 x 256 float32 (954 GiB), 512 atoms, seconds per pass by the model:\n")
    print("| workers | " + " | ".join(f"chunks of {s} MiB | times as fast" for s in sizes) + " |")
    print("|---|" + "---|---|" * len(sizes))
    for n_workers in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000):
        cells = []
        for size in sizes:
            seconds = seconds_per_pass(1e9, n_workers, size, costs)
            alone = seconds_per_pass(1e9, 1, size, costs)
            cells.append(f"{seconds:,.1f} | {alone / seconds:,.0f}")
        print(f"| {n_workers:,} | " + " | ".join(cells) + " |")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--runs", nargs="*", default=[])
    given = parser.parse_args()
    if given.measure:
        print(f"{1e3 * measure():.2f} ms per chunk and pass for the scheduler and its workers.")
    for path in given.runs:
        beside_runs(path, Costs())
    if not given.measure and not given.runs:
        print(Costs())
        curve(Costs())


if __name__ == "__main__":
    main()
