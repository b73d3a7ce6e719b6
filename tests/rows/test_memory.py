"""Files larger than what may be held: the peak memory of a process that reads them."""

import os
import subprocess
import sys

import numpy as np
import pytest

# Rows in the files; columns of float32: 300 MB.
N, P = 750_000, 100

PASS = r"""
import pathlib, re, resource, sys
import numpy as np
from kernelatoms import open_rows
from kernelatoms.engine.cpu import threads
if sys.argv[1].endswith("parquet"):
    import pyarrow.parquet
def peak():
    status = pathlib.Path("/proc/self/status")  # ru_maxrss begins with the peak of the parent
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = open_rows(np.load(sys.argv[1], mmap_mode="r") if sys.argv[2] == "map" else sys.argv[1])
add_up = lambda block, start: block.sum(axis=0, dtype=np.float64)
open_rows(np.ones((4, 3))).reduce(add_up, block_rows=2)
before = peak()
total = rows.reduce(add_up, block_rows=rows.default_block_rows)
rows.sample(1000, np.random.RandomState(0))
print((peak() - before) / 1024, total[0])
"""


def peak_of_a_pass(path, how="file"):
    """Return the MiB by which a pass and a sample raise the peak of a process."""
    command = [sys.executable, "-c", PASS, str(path), how]
    # Blocks in memory are as many as threads and two more.
    env = {**os.environ, "KERNELATOMS_NUM_THREADS": "2"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    peak, total = map(float, done.stdout.split())
    assert total == N * (N - 1) / 2
    return peak


def chunk(start, stop):
    rows = np.zeros((stop - start, P), np.float32)
    rows[:, 0] = np.arange(start, stop)
    rows[:, 1:] = 0.5
    return rows


@pytest.fixture(scope="module")
def npy(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "x.npy"
    file = np.lib.format.open_memmap(path, "w+", np.float32, (N, P))
    for start in range(0, N, 50_000):
        file[start : start + 50_000] = chunk(start, start + 50_000)
    file.flush()
    return path


@pytest.mark.parametrize("how", ["file", "map"])
def test_numpy_files_and_memory_maps(npy, how):
    assert peak_of_a_pass(npy, how) < 60


def test_parquet(tmp_path):
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "x.parquet"
    names = [f"x{j}" for j in range(P)]
    schema = pyarrow.schema([(name, pyarrow.float32()) for name in names])
    # Without dictionaries the file is as large as the rows.
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, N, 50_000):
            columns = list(chunk(start, start + 50_000).T.copy())
            writer.write_table(pyarrow.table(columns, schema=schema), row_group_size=50_000)
    assert path.stat().st_size > 290e6
    assert peak_of_a_pass(path) < 200
