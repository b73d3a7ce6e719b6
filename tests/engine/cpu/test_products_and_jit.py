"""Products in padded layout, and the compiler's manners."""

import os
import subprocess
import sys

import numpy as np
import pytest

from kernelatoms.engine.cpu.omp import LANES, padded
from kernelatoms.engine.cpu.products import block_rows, gram_matrix

CODE_ONE_SIGNAL = """
import numpy as np
from kernelatoms import sparse_encode
sparse_encode(np.ones((2, 3), np.{dtype}), np.eye(3, dtype=np.{dtype}), n_nonzero_coefs=1)
"""


@pytest.mark.parametrize("n_atoms", [1, 63, 64, 65, 511, 512, 700, 1100])
def test_gram_matrix_is_symmetric_and_padded(n_atoms, rng):
    D = rng.standard_normal((n_atoms, 7))
    G = gram_matrix(D)
    assert G.shape == (n_atoms, padded(n_atoms))
    assert padded(n_atoms) % LANES == 0
    np.testing.assert_allclose(G[:, :n_atoms], D @ D.T, atol=1e-12)
    assert not G[:, n_atoms:].any()


def test_blocks_stay_within_memory():
    for width in (64, 4096, 1_000_000):
        rows = block_rows(10_000_000, width, 8, 2)
        assert rows * width * 8 <= max(4 << 20, 128 * width * 8)
    assert block_rows(10, 64, 8, 2) == 5


def run_python(code, cache):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )


def test_second_process_compiles_nothing(tmp_path):
    code = CODE_ONE_SIGNAL.format(dtype="float64")
    first = run_python(code, tmp_path)
    assert "compiles its inner loops" in first.stderr
    assert "compiles" not in run_python(code, tmp_path).stderr


def test_import_is_light():
    code = (
        "import sys, kernelatoms; heavy = {'numpy', 'numba', 'sklearn', 'matplotlib', 'rich'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
