"""Edits in place are noticed."""

import numpy as np
import pytest

from kernelatoms.engine import cpu


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("size", [0, 1, 7, 1000, 9_001, 70_003])
def test_every_entry_counts(rng, size, dtype):
    array = rng.integers(-1000, 1000, size).astype(dtype)
    before = cpu.checksum(array)
    assert cpu.checksum(array.copy()) == before
    for place in {0, size // 2, size - 1, *rng.integers(0, max(size, 1), 5).tolist()}:
        if 0 <= place < size:
            array[place] += 1
            assert cpu.checksum(array) != before
            array[place] -= 1
    assert cpu.checksum(array) == before


def test_places_count(rng):
    rows = rng.standard_normal((300, 64))
    others = rows.copy()
    others[[3, 200]] = rows[[200, 3]]
    columns = rows.copy()
    columns[:, [1, 5]] = rows[:, [5, 1]]  # of one sum both
    assert len({cpu.checksum(rows), cpu.checksum(others), cpu.checksum(columns)}) == 3


def test_any_layout(rng):
    rows = rng.standard_normal((300, 64))
    assert cpu.checksum(np.asfortranarray(rows)) == cpu.checksum(rows)
    assert cpu.checksum(rows[::2]) == cpu.checksum(rows[::2].copy())
    fixed = rows.copy()
    fixed.setflags(write=False)
    assert cpu.checksum(fixed) == cpu.checksum(rows)
    odd = np.frombuffer(b"x" + rows.astype(np.float32).tobytes(), np.uint8)[1:]
    assert cpu.checksum(odd) == cpu.checksum(odd)
