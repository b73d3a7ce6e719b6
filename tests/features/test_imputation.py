"""Estimated coordinates shrunk to a norm that a vector can have."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.missing
from kernelatoms.features.imputation import shrink_to_energy, warn_of_estimates


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 30),
    r=st.integers(1, 40),
    spread=st.floats(0, 14),
    size=st.floats(-3, 6),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_rows_are_the_textbooks_and_fit(seed, n, r, spread, size, dtype):
    rng = np.random.default_rng(seed)
    s = 10 ** -rng.uniform(0, spread, r)
    F = (10**size * rng.standard_normal((n, r)) * s ** -rng.uniform(0, 0.5)).astype(dtype)
    energy = rng.random(n).astype(dtype)
    before = F.copy()
    excess = shrink_to_energy(F, s, energy)
    assert F.dtype == dtype
    rounding = 10 * np.finfo(dtype).eps
    assert (np.vecdot(F, F) <= energy * (1 + rounding)).all()
    norms2 = np.vecdot(before.astype(float), before.astype(float))
    np.testing.assert_allclose(excess, norms2 / energy, rtol=1e-6)
    for row, old, e in zip(F, before, energy, strict=True):
        expected = oracles.missing.shrink(old.astype(float), s, float(e))
        np.testing.assert_allclose(row, expected, atol=(1e-7 + 10 * rounding) * np.sqrt(e))


def test_rows_that_fit_are_left_alone(rng):
    F = rng.standard_normal((5, 4))
    energy = np.vecdot(F, F)
    before = F.copy()
    shrink_to_energy(F, np.ones(4), energy)
    np.testing.assert_array_equal(F, before)


def test_without_energy_nothing_is_left(rng):
    F = rng.standard_normal((3, 4))
    F[0], F[1] = 10, 0  # 400 times no energy is more than a float holds
    excess = shrink_to_energy(F, np.ones(4), np.array([0.0, 0.0, -1.0]))
    assert not F.any()
    assert excess[1] == 0
    assert excess[0] > 1e300


def test_the_least_known_coordinates_shrink_most(rng):
    F = np.ones((1, 6))
    shrink_to_energy(F, 10.0 ** -np.arange(6), np.array([2.0]))
    assert (np.diff(F[0]) < 0).all()
    assert F[0, 0] > 0.9
    assert F[0, -1] < 0.1


def test_many_rows_far_above_are_told():
    excess = np.ones(50)
    excess[:5] = 4.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_estimates(excess)
        warn_of_estimates(np.empty(0))
        warn_of_estimates(np.full(50, 3.9))
    excess[5] = 4.1
    with pytest.warns(UserWarning, match="rows with missing values have estimates that contradict"):
        warn_of_estimates(excess)
