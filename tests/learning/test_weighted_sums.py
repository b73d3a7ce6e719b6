"""Sums over rows with weights are those over repeated rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.coding.problem import LinearProblem
from kernelatoms.coding.pursuits import OMP, Lasso
from kernelatoms.learning.mod import BlockDescent, LeastSquares
from kernelatoms.learning.state import unit_rows
from kernelatoms.learning.weights import scaled_rows, weighted_sums


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(
    ("pursuit", "update"), [(OMP(3), LeastSquares()), (Lasso(0.2), BlockDescent(0.2))]
)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30))
def test_whole_weights_are_repetitions(pursuit, update, missing, seed, n):
    rng = np.random.default_rng(seed)
    X, D = rng.standard_normal((n, 7)), unit_rows(rng.standard_normal((9, 7)))
    if isinstance(pursuit, OMP):
        X[rng.random(X.shape) < missing] = np.nan
        X[:, 0] = rng.standard_normal(n)
    weights = rng.integers(1, 5, n)
    codes = pursuit(LinearProblem(X, D))
    again = np.repeat(np.arange(n), weights)
    expected = update.sums(X[again], codes.take(again), D)
    sums, scaled = weighted_sums(update, X, codes, D, weights.astype(float))
    for name in ("gram", "cross", "energy", "l1_norm"):
        np.testing.assert_allclose(getattr(sums, name), getattr(expected, name), atol=1e-10)
    if sums.missing is None:
        assert expected.missing is None
    else:
        np.testing.assert_allclose(sums.missing, expected.missing, atol=1e-10)
    np.testing.assert_allclose(scaled.error, weights * codes.error)
    np.testing.assert_array_equal(scaled.uses(), codes.uses())


def test_overflow_is_refused():
    X = np.full((2, 3), 1e30, np.float32)
    with pytest.raises(ValueError, match="sample_weight is so large that X overflows float32"):
        scaled_rows(X, np.array([1.0, 1e20]))
