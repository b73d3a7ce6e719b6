"""Results are the same to the last bit, however many threads there are."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from draws import later


def outputs(threads, blas_threads, *what):
    """Return digests of outputs by name: of rows of these types, of all kinds or those named."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("public_outputs.py")), *what],
        env={**os.environ, "KERNELATOMS_NUM_THREADS": str(threads),
             "OMP_NUM_THREADS": str(blas_threads), "OPENBLAS_NUM_THREADS": str(blas_threads)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def differences(one, other):
    assert one.keys() == other.keys()
    return [name for name in one if one[name] != other[name]]


@pytest.mark.parametrize(
    ("what", "n"),
    [(["float32", "code", "compress"], 50), later(["float32"], 300), later(["float64"], 300)],
)
def test_results_do_not_depend_on_the_number_of_threads(what, n):
    one = outputs(1, 1, *what)
    assert len(one) > n
    assert differences(one, outputs(3, 1, *what)) == []


@pytest.mark.slow
def test_nor_on_threads_of_blas_but_where_stated():
    both = ("float32", "float64")
    one = outputs(1, 1, *both)
    assert len(one) > 600
    for threads, blas_threads in [(2, 2), (5, 2), (1, 2)]:
        found = differences(one, outputs(threads, blas_threads, *both))
        # scikit-learn adds up clusters in whatever order its threads end.
        assert [name for name in found if "kmeans" not in name] == []
