"""The smallest values of rows: those of a stable sort, whole or in blocks of columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.engine import cpu
from oracles import local as book

seeds = st.integers(0, 2**31)


@given(
    seed=seeds,
    n=st.integers(0, 7),
    m=st.integers(1, 300),
    K=st.integers(1, 300),
    n_values=st.sampled_from([1, 3, 40, 10**6]),
    dtype=st.sampled_from([np.float32, np.float64]),
    block=st.integers(1, 150),
)
def test_smallest_are_those_of_a_stable_sort(seed, n, m, K, n_values, dtype, block):
    """Few different values make ties, which go to the lower column."""
    K = min(K, m)
    values = np.random.default_rng(seed).integers(-n_values, n_values, (n, m)).astype(dtype)
    expected = book.nearest(values, K)
    indices, kept = cpu.smallest(values, K)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(kept, np.take_along_axis(values, expected, axis=1))
    assert (indices.dtype, kept.dtype) == (np.int32, dtype)
    indices, kept = cpu.none_yet(n, K, dtype)
    for first in range(0, m, block):
        cpu.keep_smallest(values[:, first : first + block], first, indices, kept)
    cpu.in_order(indices, kept)
    np.testing.assert_array_equal(indices, expected)


def test_offsets_and_a_factor_are_applied_on_the_way(rng):
    products, norms2 = rng.standard_normal((5, 200)), rng.standard_normal(200)
    indices, kept = cpu.none_yet(5, 9, float)
    cpu.keep_smallest(products, 0, indices, kept, offsets=norms2, factor=-2.0)
    cpu.in_order(indices, kept)
    np.testing.assert_array_equal(indices, book.nearest(norms2 - 2 * products, 9))


def test_undefined_values_are_never_kept():
    indices, values = cpu.smallest(np.array([[np.nan, 2.0, 1.0]]), 3)
    assert indices.tolist() == [[2, 1, -1]]
    assert values.tolist() == [[1.0, 2.0, np.inf]]


@pytest.mark.parametrize("n_kept", [0, 4])
def test_as_many_as_there_are(n_kept):
    with pytest.raises(ValueError, match="n_kept must be from 1 to 3"):
        cpu.smallest(np.zeros((2, 3)), n_kept)


def test_shapes_are_checked():
    indices, values = cpu.none_yet(2, 3, float)
    with pytest.raises(ValueError, match="offsets must have shape"):
        cpu.keep_smallest(np.zeros((2, 5)), 0, indices, values, offsets=np.zeros(4))
    with pytest.raises(ValueError, match="values must have shape"):
        cpu.keep_smallest(np.zeros((3, 5)), 0, indices, values)
    with pytest.raises(ValueError, match="indices must have shape"):
        cpu.keep_smallest(np.zeros((2, 5)), 0, indices[:1], values)
