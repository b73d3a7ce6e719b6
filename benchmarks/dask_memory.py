"""MOD of more rows than the workers have memory: their peak, by Dask and by the system.

python -m benchmarks.dask_memory [--rows 10000000] [--workers 2] [--limit "1 GiB"]

Rows are made on the workers, chunk by chunk, anew in every pass; nothing is held. A worker is a
process of one thread with a limit, at which Dask writes to disk (60%), waits (80%) and ends it
(95%). The peak is VmHWM, with all that Python has loaded; what a worker has before the first pass
is printed, too.
"""

import argparse
import os
import time
from typing import Any

import distributed

from benchmarks import dask_cluster as shared
from benchmarks.dask_workers import fit_from

N_FEATURES, N_ATOMS, N_NONZERO = 128, 128, 8


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Learn; return peaks before and after, seconds, and how the fit ended."""
    per_chunk = shared.rows_per_chunk(N_FEATURES, given.chunk_mib)
    start = shared.start_atoms(N_ATOMS, N_FEATURES)
    with shared.local_cluster(given.workers, given.limit) as client:
        few = shared.rows_on_workers(2048 * given.workers, N_FEATURES, 1024)
        fit_from(start, few, 1, N_NONZERO)
        before = client.run(shared.peak_bytes)
        client.run(shared.forget_peak)
        X = shared.rows_on_workers(given.rows, N_FEATURES, per_chunk)
        began = time.perf_counter()
        try:
            fit_from(start, X, given.passes, N_NONZERO)
            ended = "yes"
        except (RuntimeError, OSError, distributed.scheduler.KilledWorker) as error:
            ended = f"no: {type(error).__name__}: {error}"
        seconds = time.perf_counter() - began
        after = client.run(shared.peak_bytes)
    return {
        "before": sorted(before.values()), "after": sorted(after.values()),
        "restarted": len(set(after) - set(before)), "seconds": seconds, "ended": ended,
    }  # fmt: skip


def in_mib(sizes: list[int]) -> str:
    return ", ".join(f"{size / shared.MIB:,.0f}" for size in sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--chunk-mib", type=float, default=32)
    parser.add_argument("--limit", default="1 GiB", help="memory of a worker")
    given = parser.parse_args()
    # As in dask_workers: tasks are of one thread.
    os.environ.update(KERNELATOMS_NUM_THREADS="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    size = 4 * given.rows * N_FEATURES / 2**30
    n_chunks = -(-given.rows // shared.rows_per_chunk(N_FEATURES, given.chunk_mib))
    print(shared.versions())
    print(f"\nMOD, {given.rows:,} x {N_FEATURES} float32 ({size:.1f} GiB in {n_chunks} chunks of "
          f"{given.chunk_mib:g} MiB), {N_ATOMS} atoms, {N_NONZERO} nonzeros, {given.passes} "
          f"passes, {given.workers} workers of {given.limit}.\n", flush=True)  # fmt: skip
    found = measure(given)
    print(
        "| ended | seconds | peak of each worker, MiB | before the fit, MiB | workers restarted |"
    )
    print("|---" * 5 + "|")
    print(f"| {found['ended']} | {found['seconds']:.1f} | {in_mib(found['after'])} | "
          f"{in_mib(found['before'])} | {found['restarted']} |")  # fmt: skip
    print(f"\nLoad at the end {os.getloadavg()[0]:.2f}.")


if __name__ == "__main__":
    main()
