"""MOD from a file that is larger than memory may be: seconds per pass, and peak memory.

python -m benchmarks.from_disk --folder FOLDER --rows 100000 1000000 10000000

Writes files of float32 rows of 784 features into the folder, one after another, and removes them.
A pass over the file is compared with what it cannot do without: reading the file, and coding as
many rows in memory (times the rows of a sample). The file's pages are dropped from the cache before
each pass where the system allows it.
"""

import argparse
import os
import pathlib
import time
from typing import Any

import numpy as np

from benchmarks.harness import Contender, Result, compare, describe_machine

N_FEATURES, N_ATOMS, N_NONZERO = 784, 512, 10
PASSES = 2
MODULE = "benchmarks.from_disk"
_WRITTEN, _SAMPLE = 50_000, 1_000_000


def write_rows(path: str, n_rows: int) -> None:
    """Write rows near a few of 64 patterns each, which are not negative, as images are."""
    rng = np.random.default_rng(0)
    patterns = np.maximum(rng.standard_normal((64, N_FEATURES), dtype=np.float32), 0)
    weights = rng.exponential(size=(_WRITTEN, 64)).astype(np.float32)
    weights *= rng.random((_WRITTEN, 64)) < 0.1
    block = weights @ patterns
    block += 0.1 * rng.standard_normal(block.shape, dtype=np.float32)
    head = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, N_FEATURES))
    offset = head.offset
    del head
    with open(path, "r+b") as file:
        file.seek(offset)
        for start in range(0, n_rows, _WRITTEN):
            # Other rows every time: each scaled by a number of its own.
            scales = rng.uniform(0.5, 2, (_WRITTEN, 1)).astype(np.float32)
            (scales * block)[: n_rows - start].tofile(file)


def forget(path: str) -> None:
    """Drop the pages of a file from the cache."""
    if hasattr(os, "posix_fadvise"):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _learner(n_passes: int) -> Any:
    from kernelatoms import MOD

    return MOD(N_ATOMS, n_nonzero_coefs=N_NONZERO, max_iter=n_passes, tol=0, random_state=0)


def _warm_up() -> None:
    rng = np.random.default_rng(1)
    _learner(1).fit(rng.random((2 * N_ATOMS, N_FEATURES), dtype=np.float32))


def passes_over_file(path: str) -> Any:
    """Return what learns from the file and returns seconds per pass."""
    from kernelatoms import open_rows

    _warm_up()

    def call() -> float:
        forget(path)
        start = time.perf_counter()
        _learner(1).fit(open_rows(path))
        first = time.perf_counter() - start
        start = time.perf_counter()
        _learner(1 + PASSES).fit(open_rows(path))
        return (time.perf_counter() - start - first) / PASSES

    return call


def read_file(path: str) -> Any:
    """Return what reads the file once and returns the seconds."""
    from kernelatoms import open_rows

    def call() -> float:
        forget(path)
        start = time.perf_counter()
        for _ in open_rows(path).blocks(4096):
            pass
        return time.perf_counter() - start

    return call


def passes_in_memory(path: str) -> Any:
    """Return what learns from a sample in memory and returns seconds per pass of all rows."""
    X = np.load(path, mmap_mode="r")
    some = np.array(X[:_SAMPLE])
    share = len(X) / len(some)
    _warm_up()

    def call() -> float:
        start = time.perf_counter()
        _learner(1).fit(some)
        first = time.perf_counter() - start
        start = time.perf_counter()
        _learner(1 + 5 * PASSES).fit(some)
        return share * (time.perf_counter() - start - first) / (5 * PASSES)

    return call


def measure(path: str, threads: int) -> dict[str, Result]:
    """Return seconds (as values) and peaks of the three."""
    functions = ("passes_over_file", "read_file", "passes_in_memory")
    contenders = [Contender(name, name, {"path": path}, once=True) for name in functions]
    return compare(contenders, 1, 1, threads=threads, module=MODULE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    print(describe_machine(), f"\n\n{given.threads} threads.\n")
    print("| rows | GiB | s per pass | reading s | in memory s | pass / larger | peak GiB |")
    print("|---" * 7 + "|")
    for n_rows in given.rows:
        path = str(pathlib.Path(given.folder) / f"rows-{n_rows}.npy")
        try:
            write_rows(path, n_rows)
            found = measure(path, given.threads)
            size = os.path.getsize(path) / 2**30
        finally:
            pathlib.Path(path).unlink(missing_ok=True)
        a_pass, read, memory = (
            found[name].value for name in ("passes_over_file", "read_file", "passes_in_memory")
        )
        print(f"| {n_rows:,} | {size:.2f} | {a_pass:.2f} | {read:.2f} | {memory:.2f} | "
              f"{a_pass / max(read, memory):.2f} | {found['passes_over_file'].peak_gib:.2f} |",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
