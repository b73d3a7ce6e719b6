"""Blocks of rows: small enough for the cache, and shared evenly."""

import pytest

from kernelatoms.engine.cpu.products import block_rows


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
    assert block_rows(10**6, 1, 8) == 1024
