"""Rows to norm 1, by what is observed of them."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import Normalizer

from kernelatoms import RowNormalizer


def by_hand(row, offset=None):
    """Return one row over its norm, in plain arithmetic."""
    seen = [value for value in row if not np.isnan(value)]
    if not seen:
        return [np.nan] * (len(row) + (offset is not None))
    square = sum(value**2 for value in seen) * len(row) / len(seen)
    whole = [*row] if offset is None else [*row, offset]
    square += 0 if offset is None else offset**2
    return [value / square**0.5 if square else value for value in whole]


@given(
    n_features=st.integers(1, 6),
    offset=st.sampled_from([None, 0.5, 3.0]),
    seed=st.integers(0, 10**6),
)
def test_the_same_as_by_hand(n_features, offset, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(7, n_features)) * rng.choice([0, 1, 1e3], (7, 1))
    X[rng.random(X.shape) < 0.3] = np.nan
    units = RowNormalizer(offset).fit_transform(X)
    np.testing.assert_allclose(units, [by_hand(row, offset) for row in X], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_complete_rows_are_those_of_the_normalizer(rng, dtype):
    X = rng.normal(size=(50, 8)).astype(dtype)
    X[3] = 0
    units = RowNormalizer().fit_transform(X)
    assert units.dtype == dtype
    np.testing.assert_allclose(units, Normalizer().fit_transform(X), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_squares_may_leave_the_range_of_numbers(size):
    rows = np.array([[3.0, 4.0, 0.0], [3.0, 4.0, np.nan]])
    units = RowNormalizer().fit_transform(rows * size)
    np.testing.assert_allclose(units, RowNormalizer().fit_transform(rows), rtol=1e-14)
    assert np.isfinite(RowNormalizer(offset=1.0).fit_transform(rows * size)[0]).all()


def test_the_length_of_a_row_becomes_an_angle():
    short, long = RowNormalizer(offset=1.0).fit_transform([[0.1, 0.2], [1.0, 2.0]])
    assert short @ long < 0.9
    np.testing.assert_allclose([short @ short, long @ long], 1)


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [2.0, 0.5]})
    assert list(RowNormalizer().fit(frame).get_feature_names_out()) == ["a", "b"]
    scaled = RowNormalizer(offset=1.0).set_output(transform="pandas").fit_transform(frame)
    assert list(scaled) == ["a", "b", "offset"]


@pytest.mark.parametrize("offset", [0, -1.0, np.inf, np.nan, "one", True])
def test_an_offset_is_a_number_above_0(offset):
    with pytest.raises((TypeError, ValueError), match="offset must be"):
        RowNormalizer(offset).fit([[1.0]])


@pytest.mark.parametrize("offset", [None, 0.5])
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.coo_array])
def test_sparse_rows_are_as_dense_ones(kind, offset, rng):
    X = rng.standard_normal((30, 7)) * (rng.random((30, 7)) < 0.4)
    X[3] = 0
    dense = RowNormalizer(offset).fit(X).transform(X)
    found = RowNormalizer(offset).fit(kind(X)).transform(kind(X))
    assert scipy.sparse.issparse(found) == (offset is None)
    np.testing.assert_allclose(found.toarray() if offset is None else found, dense, atol=1e-15)
    X[5, 2] = np.nan
    np.testing.assert_array_equal(
        RowNormalizer(offset).fit(kind(X)).transform(kind(X)),
        RowNormalizer(offset).fit(X).transform(X),
    )
