"""Kernels of rows with missing values: estimates from the observed entries."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.missing
from kernelatoms.similarity import make_kernel
from kernelatoms.similarity.factory import names_of_kernels
from kernelatoms.similarity.missing import rows_with_missing

PARTIAL_KERNELS = names_of_kernels("takes_missing")
PARAMETERS = {
    "linear": {},
    "poly": {"gamma": 0.7, "degree": 2, "coef0": 0.5},
    "polynomial": {"degree": 4, "coef0": 0.0},
    "sigmoid": {"gamma": 0.1, "coef0": -0.2},
    "rbf": {"gamma": 0.3},
    "laplacian": {},
    "cosine": {},
}


def rows(rng, n, n_features, dtype=np.float64, missing=0.5):
    """Random rows with missing values, at least one value each."""
    X = rng.standard_normal((n, n_features)).astype(dtype)
    gone = rng.random(X.shape) < missing
    gone[np.arange(n), rng.integers(0, n_features, n)] = False
    X[gone] = np.nan
    return X


def test_every_kernel_is_tried():
    assert set(PARAMETERS) == set(PARTIAL_KERNELS)


@pytest.mark.parametrize("name", PARTIAL_KERNELS)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 12),
    m=st.integers(1, 12),
    n_features=st.integers(1, 20),
    missing=st.floats(0, 1),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_one_pair_at_a_time(name, seed, n, m, n_features, missing, dtype):
    rng = np.random.default_rng(seed)
    X = rows(rng, n, n_features, dtype, missing)
    Y = rng.standard_normal((m, n_features)).astype(dtype)
    kernel = make_kernel(name, **PARAMETERS[name])
    given = PARAMETERS[name]
    expected = [[oracles.missing.partial_kernel(name, x, y, **given) for y in Y] for x in X]
    K = kernel(X, Y)
    assert K.dtype == dtype
    tolerance = 1e-10 if dtype == np.float64 else 2e-4
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(K, expected, atol=tolerance * scale)
    filled = [np.where(np.isnan(x), 0, x) for x in X]
    # k(x, x) compares x with itself, scaled up to its estimated norm.
    scales = [
        1 if name in ("rbf", "laplacian") else np.sqrt(n_features / (~np.isnan(x)).sum()) for x in X
    ]
    own = [
        oracles.missing.partial_kernel(name, x, c * z, **given)
        for x, z, c in zip(X, filled, scales, strict=True)
    ]
    scale = max(1.0, float(np.abs(own).max()))
    np.testing.assert_allclose(kernel.diag(X), own, atol=tolerance * scale)


@pytest.mark.parametrize("name", PARTIAL_KERNELS)
def test_complete_rows_keep_their_values_to_the_bit(name, rng):
    X, Y = rows(rng, 40, 9, missing=0.02), rng.standard_normal((15, 9))
    complete = np.setdiff1d(np.arange(40), rows_with_missing(X))
    assert 0 < len(complete) < 40
    kernel = make_kernel(name, **PARAMETERS[name])
    np.testing.assert_array_equal(kernel(X, Y)[complete], kernel(X[complete], Y))
    np.testing.assert_array_equal(kernel.diag(X)[complete], kernel.diag(X[complete]))


@pytest.mark.parametrize("n_observed", [1, 3, 5])
def test_norms_and_distances_are_right_on_average(n_observed, rng):
    """Over all masks of one size, exactly."""
    x, Y = rng.standard_normal(6), rng.standard_normal((4, 6))
    masks = list(combinations(range(6), n_observed))
    X = np.full((len(masks), 6), np.nan)
    for row, seen in zip(X, masks, strict=True):
        row[list(seen)] = x[list(seen)]
    np.testing.assert_allclose(make_kernel("linear").diag(X).mean(), x @ x)
    squares = -np.log(make_kernel("rbf", gamma=1e-3)(X, Y)) / 1e-3
    np.testing.assert_allclose(squares.mean(axis=0), ((x - Y) ** 2).sum(axis=1))
    sums = -np.log(make_kernel("laplacian", gamma=1e-3)(X, Y)) / 1e-3
    np.testing.assert_allclose(sums.mean(axis=0), np.abs(x - Y).sum(axis=1))


def test_inner_products_are_nearly_right_on_average_and_less_scattered_than_sums(rng):
    """Of rows alike: their cosine is then nearly the same on any part of them."""
    x = rng.standard_normal(100) + 1
    y = x + 0.5 * rng.standard_normal(100)
    X = np.tile(x, (4000, 1))
    X[rng.random(X.shape).argsort(axis=1) < 60] = np.nan
    inner = make_kernel("linear")(X, y[None])[:, 0]
    sums = np.nansum(X * y, axis=1) * 100 / 40
    assert abs(inner.mean() - x @ y) < 0.02 * (x @ y)
    assert inner.std() < 0.8 * sums.std()


@given(seed=st.integers(0, 2**31), n_features=st.integers(1, 12))
def test_cauchy_and_schwarz_hold(seed, n_features):
    """No estimate of <x, y> exceeds the estimated norms: of parallel rows it is their product."""
    rng = np.random.default_rng(seed)
    X, Y = rows(rng, 8, n_features), rng.standard_normal((9, n_features))
    kernel = make_kernel("linear")
    bound = np.sqrt(kernel.diag(X)[:, None] * kernel.diag(Y))
    assert (np.abs(kernel(X, Y)) <= bound * (1 + 1e-12)).all()
    own = np.where(np.isnan(X), rng.standard_normal(X.shape), X)
    norms = np.sqrt(kernel.diag(X) * kernel.diag(own))
    np.testing.assert_allclose(np.diagonal(kernel(X, own)), norms)


def test_cosine_of_the_observed_direction_is_one(rng):
    x = rng.standard_normal(8)
    seen = np.where(np.arange(8) % 2, x, np.nan)
    kernel = make_kernel("cosine")
    np.testing.assert_allclose(kernel(seen[None], np.array([x, -3 * x])), [[1, -1]])
    assert kernel(np.array([[0, np.nan]]), np.ones((1, 2))) == 0
    assert kernel.diag(np.array([[0, np.nan]])) == 0


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (make_kernel("chi2"), "kernel 'chi2' needs complete rows"),
        (make_kernel("additive_chi2"), "kernel 'additive_chi2' needs complete rows"),
        (make_kernel(lambda X, Y: X @ Y.T), "a kernel given as a function needs complete rows"),
    ],
)
def test_kernels_that_need_complete_rows_say_so(kernel, message):
    X, Y = np.array([[1, np.nan], [2, 3]]), np.ones((3, 2))
    with pytest.raises(ValueError, match=f"X contains NaN, but {message}.*'rbf'"):
        kernel(X, Y)
    with pytest.raises(ValueError, match="X contains NaN"):
        kernel.diag(X)


def test_precomputed_needs_all_values():
    K = np.array([[1, np.nan], [np.nan, 1]])
    with pytest.raises(ValueError, match="but a precomputed kernel needs complete rows"):
        make_kernel("precomputed")(K, np.array([[0]]))


def test_nothing_can_be_said_of_nothing():
    with pytest.raises(ValueError, match="a row without any value"):
        make_kernel("rbf")(np.full((1, 2), np.nan), np.ones((3, 2)))
    with pytest.raises(ValueError, match="compared with contain NaN"):
        make_kernel("rbf")(np.array([[1, np.nan]]), np.array([[1, np.nan]]))


def test_rows_with_missing():
    X = np.ones((4, 3), np.float32)
    assert len(rows_with_missing(X)) == 0
    X[:2] = np.finfo(np.float32).max  # sums overflow
    X[1] *= -1
    assert len(rows_with_missing(X)) == 0
    X[2, 1] = np.nan
    assert rows_with_missing(X).tolist() == [2]
