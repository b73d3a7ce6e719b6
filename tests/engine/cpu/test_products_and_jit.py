"""Products in padded layout, and the compiler's manners."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from kernelatoms.engine.cpu.products import LANES, block_rows, gram_matrix, padded, padded_memory
from kernelatoms.engine.cpu.threads import fair_share

# A loop that is compiled in a second.
RUN_A_LOOP = """
import numpy as np
from kernelatoms.engine import machine
machine(np.zeros(1)).gather(np.eye(2), np.zeros((1, 1), np.int32))
"""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_atoms", [1, 63, 64, 65, 511, 512, 700, 1100])
def test_gram_matrix_is_square_with_padded_rows(n_atoms, dtype, rng):
    D = rng.standard_normal((n_atoms, 7)).astype(dtype)
    G = gram_matrix(D)
    assert G.shape == (n_atoms, n_atoms)
    np.testing.assert_allclose(G, D @ D.T, atol=1e-12 if dtype == np.float64 else 1e-4)
    whole = padded_memory(G)
    assert whole.shape == (n_atoms, padded(n_atoms))
    assert padded(n_atoms) % LANES == 0
    assert not whole[:, n_atoms:].any()
    assert np.shares_memory(whole, G)


@pytest.mark.parametrize("n_atoms", [5, 64, 70])
def test_other_matrices_are_copied_to_padded_rows(n_atoms, rng):
    G = rng.standard_normal((n_atoms, n_atoms))
    frozen = G.copy()
    frozen.flags.writeable = False
    dirty = np.ones((n_atoms, padded(n_atoms)))
    inside = rng.standard_normal((n_atoms + 3, padded(n_atoms)))
    views = [G.T, frozen, np.asfortranarray(G), G[::-1], inside[3:, :n_atoms]]
    if n_atoms != padded(n_atoms):
        clean = np.zeros((n_atoms, padded(n_atoms)))
        clean[:, :n_atoms] = G
        views += [G, dirty[:, :n_atoms], inside[3:, 1 : n_atoms + 1], clean[::-1, :n_atoms]]
        views.append(clean[:, 1 : n_atoms + 1])
    if 2 * n_atoms <= padded(n_atoms):
        views.append(clean[:, : 2 * n_atoms : 2])
    for view in views:
        before = view.copy()
        whole = padded_memory(view)
        assert whole.shape == (n_atoms, padded(n_atoms))
        assert whole.flags.c_contiguous
        assert whole.flags.writeable
        assert not whole[:, n_atoms:].any()
        np.testing.assert_array_equal(whole[:, :n_atoms], before)


def test_blocks_stay_within_memory():
    for width in (64, 4096, 1_000_000):
        rows = block_rows(10_000_000, width, 8)
        assert rows * width * 8 <= max(4 << 20, 128 * width * 8)


@pytest.mark.parametrize(
    ("n_rows", "fewest", "expected"),
    [(0, 64, 1), (1, 64, 1), (10, 64, 5), (127, 64, 64), (128, 64, 32), (511, 64, 64),
     (512, 64, 32), (1024, 64, 64), (2047, 64, 128), (2048, 64, 64), (4096, 64, 64),
     (16_000, 64, 250), (64_000, 512, 1000), (60, 4, 4), (63, 4, 4), (256, 4, 4), (5, 1, 1)],
)  # fmt: skip
def test_blocks_are_shared_by_many_threads(n_rows, fewest, expected):
    assert fair_share(n_rows, fewest) == expected


def run_python(code, cache):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )


def test_second_process_compiles_nothing(tmp_path):
    first = run_python(RUN_A_LOOP, tmp_path)
    assert "compiles its inner loops" in first.stderr
    assert "compiles" not in run_python(RUN_A_LOOP, tmp_path).stderr


def test_import_is_light():
    code = (
        "import sys, kernelatoms; heavy = {'numpy', 'numba', 'sklearn', 'matplotlib', 'rich'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_functions_of_others_without_a_module_compile_beside_ours():
    """Other packages make functions of text, which belong to no module."""
    made = {}
    exec("def twice(x):\n    return 2 * x", made)
    made["twice"].__module__ = None
    assert numba.njit(made["twice"])(4) == 8


@pytest.mark.parametrize("n_rows", [600, 1198, 3000, 5000])
def test_a_few_blocks_are_shared_evenly_by_two_or_four_threads(n_rows):
    rows = block_rows(n_rows, 1216, 8)  # 431 rows of 1,216 numbers fill 4 MiB
    n_blocks = -(-n_rows // rows)
    assert rows <= 431
    assert n_blocks in (2, 4, 8, 16)
    assert n_blocks * rows - n_rows < n_blocks


def test_blocks_are_neither_tiny_nor_larger_than_asked():
    assert block_rows(100, 1, 8) == 50
    assert block_rows(10**6, 10**6, 8) == 128
    assert block_rows(10**6, 1, 8) == 1009  # 992 blocks; with 1,024 rows there would be 977


@pytest.mark.parametrize("n_rows", [20_000, 70_001, 512_000, 10**6])
@pytest.mark.parametrize("width", [1, 500, 5000])
def test_sixteen_threads_have_as_many_blocks_each(n_rows, width):
    rows = block_rows(n_rows, width, 8)
    n_blocks = -(-n_rows // rows)
    rounds = -(-n_blocks // 16)
    assert rows <= 1024
    assert 16 * rounds * rows - n_rows < 16 * rounds  # a row too many per block at most
