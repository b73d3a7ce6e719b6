"""The smallest values of rows: those of a stable sort, whole or in blocks of columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import local as book


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(0, 7),
    m=st.integers(1, 300),
    K=st.integers(1, 300),
    n_values=st.sampled_from([1, 3, 40, 10**6]),
    dtype=st.sampled_from([np.float32, np.float64]),
    block=st.integers(1, 150),
)
def test_smallest_are_those_of_a_stable_sort(machine, seed, n, m, K, n_values, dtype, block):
    """Few different values make ties, which go to the lower column."""
    K = min(K, m)
    values = np.random.default_rng(seed).integers(-n_values, n_values, (n, m)).astype(dtype)
    expected = book.nearest(values, K)
    indices, kept = machine.run("smallest", values, K)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(kept, np.take_along_axis(values, expected, axis=1))
    assert (indices.dtype, kept.dtype) == (np.int32, dtype)
    nearest = machine.TopK.empty(n, K, dtype, like=machine.array(values))
    for first in range(0, m, block):
        nearest.push(machine.array(values[:, first : first + block]), first)
    np.testing.assert_array_equal(machine.numpy(nearest.sorted()[0]), expected)


def test_offsets_and_a_factor_are_applied(machine, rng):
    products, norms2 = rng.standard_normal((5, 200)), rng.standard_normal(200)
    products[:, 3], products[0, 1:] = np.nan, np.nan
    nearest = machine.TopK.empty(5, 9, np.float64, like=machine.array(products))
    nearest.push(machine.array(products), 0, offsets=machine.array(norms2), factor=-2.0)
    indices = machine.numpy(nearest.sorted()[0])
    assert indices[0].tolist() == [0, *[-1] * 8]
    known = np.where(np.isnan(products), np.inf, norms2 - 2 * products)
    np.testing.assert_array_equal(indices[1:], book.nearest(known, 9)[1:])


def test_undefined_values_are_never_kept(machine):
    indices, values = machine.run("smallest", np.array([[np.nan, 2.0, 1.0]]), 3)
    assert indices.tolist() == [[2, 1, -1]]
    assert values.tolist() == [[1.0, 2.0, np.inf]]


@pytest.mark.parametrize("n_kept", [0, 4])
def test_as_many_as_there_are(machine, n_kept):
    with pytest.raises(ValueError, match="n_kept must be from 1 to 3"):
        machine.run("smallest", np.zeros((2, 3)), n_kept)
