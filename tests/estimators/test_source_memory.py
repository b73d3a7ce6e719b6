"""Fits to files that are larger than what may be held: the peak memory of a process."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

FIT = r"""
import pathlib, re, sys
import numpy as np
from kernelatoms import KSVD, MOD, ClassDictionaryClassifier, open_rows
def peak():
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1])
make = {
    "MOD": lambda: MOD(32, n_nonzero_coefs=3, max_iter=2, random_state=0),
    "KSVD": lambda: KSVD(32, n_nonzero_coefs=3, max_iter=2, random_state=0),
    "classes": lambda: ClassDictionaryClassifier(
        MOD(16, n_nonzero_coefs=2, max_iter=2), random_state=0),
}[sys.argv[2]]
def fit(rows, n):
    model = make()
    if sys.argv[2] == "classes":
        return model.fit(rows, np.arange(n) % 3)
    return model.fit(rows)
fit(np.random.default_rng(0).random((3000, 98), dtype=np.float32), 3000)  # compiles
rows = open_rows(sys.argv[1])
before = peak()
model = fit(rows, rows.count())
for block in model.transform(rows) if hasattr(model, "transform") else model.predict(rows):
    pass
print((peak() - before) / 1024)
"""


def write(path, n_rows, n_features=98):
    file = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, n_features))
    some = np.random.default_rng(1).random((50_000, n_features), dtype=np.float32)
    for start in range(0, n_rows, len(some)):
        part = some[: n_rows - start]
        file[start : start + len(part)] = part * np.float32(1 + start / n_rows)
    file.flush()


def peak_of_fit(path, what):
    """Return the MiB by which a fit and its answers raise the peak of a process."""
    env = {**os.environ, "KERNELATOMS_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "ignore", "-c", FIT, str(path), what]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return float(done.stdout)


pytestmark = pytest.mark.skipif(
    not pathlib.Path("/proc/self/status").exists(), reason="peaks are read from /proc"
)


def test_a_fit_holds_a_few_blocks(tmp_path):
    write(tmp_path / "x.npy", 400_000)  # 157 MB
    assert peak_of_fit(tmp_path / "x.npy", "MOD") < 110


@pytest.mark.slow
@pytest.mark.parametrize("what", ["MOD", "KSVD", "classes"])
def test_ten_times_as_many_rows_hold_no_more(what, tmp_path):
    write(tmp_path / "x.npy", 5_000_000)  # 2 GB
    # A class is found by the labels of all rows, 8 bytes each.
    assert peak_of_fit(tmp_path / "x.npy", what) < (300 if what == "classes" else 150)
