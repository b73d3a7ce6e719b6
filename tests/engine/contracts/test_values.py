"""All values looked at once: finite or not, range, mean and variance, how often each is there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.engine.cpu import values
from oracles.values import counts, spread


@pytest.fixture(params=[values._AT_ONCE, 100], ids=["one block", "many blocks"], autouse=True)
def block_bytes(request):
    """Whole arrays, and a few rows at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "_AT_ONCE", request.param)
        yield


shapes = st.tuples(st.integers(1, 40), st.integers(1, 7))
dtypes = st.sampled_from([np.float32, np.float64])


@given(shape=shapes, dtype=dtypes, seed=st.integers(0, 2**31), far=st.sampled_from([0.0, 1e4]))
def test_spread(machine, shape, dtype, seed, far):
    X = (np.random.default_rng(seed).standard_normal(shape) + far).astype(dtype)
    found = machine.spread(machine.array(X))
    lowest, highest, mean, variance = spread(X)
    assert (found.lowest, found.highest) == (lowest, highest)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-9, atol=1e-20)


@given(shape=shapes, dtype=dtypes, seed=st.integers(0, 2**31))
@pytest.mark.parametrize("bad", [None, np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(machine, shape, dtype, seed, bad):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape).astype(dtype)
    if bad is not None:
        X[rng.integers(shape[0]), rng.integers(shape[1])] = bad
    assert machine.all_finite(machine.array(X)) is (bad is None)
    assert values.holds_nan(X) is bool(np.isnan(X).any())


def test_infinities_of_both_signs_are_no_nan():
    assert not values.holds_nan(np.array([[np.inf], [-np.inf]]))


def test_a_sum_that_overflows_is_not_called_finite():
    X = np.full((3, 2), np.finfo(np.float32).max, np.float32)
    assert not values.all_finite(X)  # whoever asks looks again


@given(
    seed=st.integers(0, 2**31), n=st.integers(0, 60), k=st.integers(1, 5), most=st.integers(1, 9)
)
def test_counts(machine, seed, n, k, most):
    numbers = np.random.default_rng(seed).integers(-1, most, (n, k)).astype(np.int32)
    found = machine.run("count_values", numbers, most)
    assert found.dtype == np.intp
    np.testing.assert_array_equal(found, counts(numbers, most))


@given(shape=shapes, seed=st.integers(0, 2**31))
def test_rows_are_mapped_in_their_order(machine, shape, seed):
    X = np.random.default_rng(seed).integers(-1, 2, shape).astype(float)
    found = machine.numpy(machine.map_rows(lambda rows: rows.any(axis=1), machine.array(X)))
    np.testing.assert_array_equal(found, X.any(axis=1))


def test_no_rows():
    X = np.empty((0, 3))
    assert values.map_rows(lambda rows: rows.any(axis=1), X).shape == (0,)
    assert values.all_finite(X)
    assert not values.holds_nan(X)
    assert values.count_values(np.empty(0, np.int32), 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["spread", "all_finite", "holds_nan"])
def test_the_same_bits_on_any_number_of_threads(name, rng, monkeypatch):
    X = rng.standard_normal((500, 3)).astype(np.float32)
    found = []
    for threads in ("1", "2", "5", "16"):
        monkeypatch.setenv("KERNELATOMS_NUM_THREADS", threads)
        found.append(getattr(values, name)(X))
    assert len(set(found)) == 1
