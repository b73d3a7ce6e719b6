"""Filled signals and observed residuals against the textbook."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.observed
from kernelatoms.coding.codes import PaddedCodes
from kernelatoms.engine import cpu


def random_codes(rng, n, n_atoms, k, dtype):
    indices = np.full((n, k), -1, np.int32)
    values = np.zeros((n, k), dtype)
    for s in range(n):
        count = rng.integers(0, min(k, n_atoms) + 1)
        indices[s, :count] = np.sort(rng.permutation(n_atoms)[:count])
        values[s, :count] = rng.standard_normal(count)
    return PaddedCodes(n_atoms=n_atoms, error=np.zeros(n), indices=indices, values=values)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 60),
    n_features=st.integers(1, 30),
    n_atoms=st.integers(1, 20),
    k=st.integers(1, 5),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_by_the_book(seed, n, n_features, n_atoms, k, missing, dtype):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features)).astype(dtype)
    X[rng.random(X.shape) < missing] = np.nan
    D = rng.standard_normal((n_atoms, n_features)).astype(dtype)
    codes = random_codes(rng, n, n_atoms, k, dtype)
    W, tolerance = codes.to_dense().astype(float), 1e-4 if dtype == np.float32 else 1e-12
    filled, lost = cpu.fill_missing(X, D, codes.indices, codes.values)
    assert filled.dtype == dtype
    np.testing.assert_allclose(filled, oracles.observed.filled(X, W, D), atol=tolerance)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    np.testing.assert_allclose(lost, (W**2).sum(axis=1) @ np.isnan(X), atol=tolerance * n)
    left = cpu.observed_residuals(X, D, codes.indices, codes.values)
    np.testing.assert_allclose(left, oracles.observed.residuals(X, W, D), atol=tolerance)
    factors = rng.random(n_features)
    longer = cpu.observed_residuals(X, D, codes.indices, codes.values, factors)
    np.testing.assert_allclose(longer, factors * left, atol=tolerance)


def test_strange_shapes_are_refused(rng):
    X, D = rng.standard_normal((5, 4)), rng.standard_normal((3, 4))
    codes = random_codes(rng, 5, 3, 2, X.dtype)
    with pytest.raises(ValueError, match="dictionary"):
        cpu.fill_missing(X, D[:, :3], codes.indices, codes.values)
    with pytest.raises(ValueError, match="factors"):
        cpu.observed_residuals(X, D, codes.indices, codes.values, np.ones(3))
