"""What the Dask benchmarks share: a local cluster, rows made on its workers, times and peaks.

A worker is a process of one thread. Rows are near a subspace of 32 dimensions, with noise; each
chunk has a seed of its own, so that workers of any number make the same rows.
"""

import gc
import importlib
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

#: For glibc: give freed memory back in large pieces alone. Of the nannies of Dask it is 64 KiB, and
#: every array of a block is then of new pages.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": 256 << 20, "MALLOC_MMAP_THRESHOLD_": 32 << 20}
RANK, NOISE = 32, np.float32(0.1)
MIB = 2**20


@contextmanager
def local_cluster(
    n_workers: int, memory_limit: Any = 0, keep_memory: bool = False
) -> Iterator[Client]:
    """Connect to a cluster of processes of this machine, with one thread each."""
    environment = KEEP_MEMORY if keep_memory else {}
    warnings.filterwarnings("ignore", "Port .* is already in use")
    with (
        dask.config.set({f"distributed.nanny.pre-spawn-environ.{k}": v
                         for k, v in environment.items()}),
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, memory_limit=memory_limit,
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        client.wait_for_workers(n_workers)
        yield client


def rows_of_seed(seed: int, n_rows: int, n_features: int) -> Any:
    """Return the rows of a chunk."""
    basis = np.random.default_rng(0).standard_normal((RANK, n_features), dtype=np.float32)
    rng = np.random.default_rng([1, seed])
    rows = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    rows *= NOISE
    rows += rng.standard_normal((n_rows, RANK), dtype=np.float32) @ basis
    return rows


def rows_per_chunk(n_features: int, chunk_mib: float) -> int:
    return int(chunk_mib * MIB) // (4 * n_features)


def chunk_sizes(n_rows: int, per_chunk: int) -> list[int]:
    return [min(per_chunk, n_rows - start) for start in range(0, n_rows, per_chunk)]


def rows_on_workers(n_rows: int, n_features: int, per_chunk: int) -> Any:
    """Return a Dask array of rows that workers make when they are needed."""
    parts = [
        da.from_delayed(
            dask.delayed(rows_of_seed)(seed, size, n_features), (size, n_features), np.float32
        )
        for seed, size in enumerate(chunk_sizes(n_rows, per_chunk))
    ]
    return da.concatenate(parts)


def rows_in_memory(n_rows: int, n_features: int, per_chunk: int) -> Any:
    """Return the same rows as an array of this process."""
    X = np.empty((n_rows, n_features), np.float32)
    for seed, size in enumerate(chunk_sizes(n_rows, per_chunk)):
        X[seed * per_chunk :][:size] = rows_of_seed(seed, size, n_features)
    return X


def start_atoms(n_atoms: int, n_features: int) -> Any:
    """Return rows that no chunk has."""
    return rows_of_seed(2**32 - 1, n_atoms, n_features)


class Clock:
    """A callback of scikit-learn that notes when passes begin and end."""

    def __init__(self) -> None:
        self.began: list[float] = []
        self.ended: list[float] = []

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    teardown = setup

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Note when a pass begins."""
        if context.task_name == "pass":
            self.began.append(time.time())

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Note when a pass has ended."""
        if context.task_name == "pass":
            self.ended.append(time.time())
        return False

    def seconds(self) -> list[float]:
        """Return the seconds of each pass, until the next one begins."""
        edges = [*self.began, self.ended[-1]]
        return np.diff(edges).tolist()


def submit_everywhere(client: Client, function: Any, *arguments: Any) -> list[Any]:
    """Return a function's results on all workers, each in the thread in which tasks run."""
    addresses = sorted(client.scheduler_info(n_workers=-1)["workers"])
    futures = [
        client.submit(function, *arguments, workers=[one], allow_other_workers=False, pure=False)
        for one in addresses
    ]
    found: list[Any] = client.gather(futures)
    return found


def peak_bytes() -> int:
    """Return the largest resident memory that this process has had (VmHWM); 0 if unknown."""
    try:
        with open("/proc/self/status") as lines:
            line = next(line for line in lines if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    except OSError:
        return 0


def forget_peak() -> None:
    """Let the largest resident memory be that of now, where the system allows it."""
    gc.collect()
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def worker_memory(dask_worker: Any) -> dict[str, int]:
    """Return the peak of a worker, and the bytes of the arrays that it holds."""
    held = sum(value.nbytes for value in dask_worker.data.values() if hasattr(value, "nbytes"))
    chunks = sum(hasattr(value, "nbytes") for value in dask_worker.data.values())
    return {"peak": peak_bytes(), "held": held, "chunks": chunks}


def versions(*more: str) -> str:
    """Return versions, cores and load in a line."""
    names = ("kernelatoms", "numpy", "numba", "sklearn", "dask", "distributed", *more)
    said = ", ".join(f"{name} {importlib.import_module(name).__version__}" for name in names)
    return f"{os.cpu_count()} cores, load before the run {os.getloadavg()[0]:.2f}; {said}."
