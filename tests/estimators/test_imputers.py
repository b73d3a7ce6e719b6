"""Missing values from the nearest rows; medians in learning, what is observed afterwards."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    CRCClassifier,
    NearestImputer,
    RowNormalizer,
    TrainingImputer,
    load_model,
    save_model,
)
from oracles.filling import distance, filled_from_nearest


def with_holes(X, share, rng):
    return np.where(rng.random(X.shape) < share, np.nan, X).astype(X.dtype)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    n_features=st.integers(1, 6),
    n_neighbors=st.integers(1, 12),
    shares=st.tuples(*[st.sampled_from([0.0, 0.2, 0.6, 1.0])] * 2),
)
def test_gaps_hold_what_the_oracle_says(seed, n, n_features, n_neighbors, shares):
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(n_features, n_features)) * 10.0 ** rng.integers(-3, 4, n_features)
    X, new = (rng.normal(3, 1, (count, n_features)) @ mixing for count in (n, 9))
    X, new = with_holes(X, shares[0], rng), with_holes(new, shares[1], rng)
    fill = NearestImputer(n_neighbors).fit(X)
    for rows in (new, X):
        plain = decided(fill, rows)
        np.testing.assert_allclose(
            fill.transform(rows)[plain], filled_from_nearest(X, rows[plain], n_neighbors),
            rtol=1e-9, atol=1e-9,
        )  # fmt: skip


def decided(fill, rows):
    """Tell whose last neighbour is nearer than the next row by more than float32 rounds."""
    scales = fill.scales_
    sizes = [np.nansum(((X - fill.medians_)[:, scales > 0] / scales[scales > 0]) ** 2, axis=1)
             for X in (rows, fill.rows_)]  # fmt: skip
    plain = np.ones(len(rows), bool)
    for i, row in enumerate(rows):
        far = sorted(d for y in fill.rows_ if (d := distance(row, y, scales)) is not None)
        if len(far) > fill.n_neighbors:
            gap = far[fill.n_neighbors] - far[fill.n_neighbors - 1]
            plain[i] = gap > 1e-6 * (sizes[0][i] + sizes[1].max())
    return plain


@pytest.mark.parametrize("n_complete", [0, 1024, 1500, 2100])
def test_many_rows_are_compared_in_blocks(rng, n_complete):
    X = rng.normal(size=(2100, 5))
    lacking = np.sort(rng.choice(2100, 2100 - n_complete, replace=False))
    X[lacking] = with_holes(X[lacking], 0.4, rng)
    rows = with_holes(rng.normal(size=(520, 5)), 0.4, rng)
    chosen = np.r_[:3, 254:258, 510:520]  # about the ends of blocks
    rows[256] = np.nan
    filled = NearestImputer(4).fit(X).transform(rows)
    np.testing.assert_allclose(filled[chosen], filled_from_nearest(X, rows[chosen], 4))


def test_values_beyond_all_bounds_leave_the_rest_to_be_filled(rng):
    X = rng.normal(size=(40, 3))
    rows = np.array([[1e300, np.nan, 0.5], [1e12, 0.1, np.nan]])
    filled = NearestImputer(1).fit(X).transform(rows)
    highest = X[X[:, 0].argmax()]  # the nearest to what is that far off
    np.testing.assert_allclose(filled[0], [1e300, highest[1], 0.5])
    np.testing.assert_allclose(filled[1], [1e12, 0.1, highest[2]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_known_values_stay_and_nothing_known_is_medians(rng, dtype):
    X = with_holes(rng.normal(size=(30, 5)).astype(dtype), 0.3, rng)
    X[4], X[:, 2], X[:, 3] = np.nan, np.nan, 7
    before = X.copy()
    fill = NearestImputer(5).fit(X)
    filled = fill.transform(X)
    np.testing.assert_array_equal(X, before)  # the caller's rows are left alone
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert filled.dtype == fill.rows_.dtype == fill.medians_.dtype == fill.scales_.dtype == dtype
    np.testing.assert_array_equal(filled[:, 2], 0)
    np.testing.assert_allclose(fill.transform(np.full((1, 5), np.nan))[0], fill.medians_)
    np.testing.assert_array_equal(NearestImputer(5).fit_transform(X), filled)
    np.testing.assert_array_equal(fill.scales_[2:4], 0)  # of no value, of one value
    complete = rng.normal(size=(3, 5)).astype(dtype)
    np.testing.assert_array_equal(fill.transform(complete), complete)
    theirs = filled_from_nearest(X.astype(float), X.astype(float), 5)
    np.testing.assert_allclose(filled, theirs, rtol=1e-9 if dtype == np.float64 else 1e-4)


def test_rows_are_drawn_by_the_seed(rng):
    X = np.arange(200.0).reshape(100, 2)
    fills = [NearestImputer(max_rows=20, random_state=seed).fit(X) for seed in (0, 0, 1)]
    assert [len(fill.rows_) for fill in fills] == [20] * 3
    assert len(np.unique(fills[0].rows_[:, 0])) == 20
    np.testing.assert_array_equal(fills[0].rows_, fills[1].rows_)
    assert not np.array_equal(fills[0].rows_, fills[2].rows_)
    np.testing.assert_array_equal(fills[0].medians_, np.median(X, axis=0))  # of all rows
    np.testing.assert_array_equal(NearestImputer(max_rows=100).fit(X).rows_, X)


@pytest.mark.parametrize("size", [1e-150, 1e150, 1e300])
def test_very_large_and_very_small_values(rng, size):
    X = with_holes(rng.normal(size=(40, 3)), 0.3, rng)
    np.testing.assert_allclose(
        NearestImputer(3).fit_transform(size * X), size * NearestImputer(3).fit_transform(X)
    )
    outside = np.array([[size, np.nan, 0.0]])
    filled = NearestImputer(3).fit(X).transform(outside)
    assert np.isfinite(filled).all()


def test_what_it_refuses(rng):
    X = rng.normal(size=(9, 2))
    for name in ("n_neighbors", "max_rows"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            NearestImputer(**{name: 0}).fit(X)
    with pytest.raises(ValueError, match="infinity"):
        NearestImputer().fit(np.where(X > 0, np.inf, X))


def test_a_model_of_complete_rows_classifies_far_better_than_by_medians(tmp_path):
    X, y = load_digits(n_class=5, return_X_y=True)
    holed = with_holes(X, 0.6, np.random.default_rng(0))[300:]
    X[:300:40, 20] = np.nan
    scores = []
    for first in (NearestImputer(), SimpleImputer(strategy="median")):
        model = make_pipeline(first, CRCClassifier("rbf")).fit(X[:300], y[:300])
        scores.append(model.score(holed, y[300:]))
        again, _ = load_model(save_model(model, tmp_path / "m.skops"))
        np.testing.assert_array_equal(again.predict(holed), model.predict(holed))
    assert scores[0] > 0.9 > scores[1] + 0.1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_learning_sees_medians_and_coding_sees_gaps(rng, dtype):
    X = rng.normal(size=(30, 5)).astype(dtype)
    X[:, 1:][rng.random((30, 4)) < 0.3] = np.nan  # something is known of every row
    X[4], X[:, 2] = np.nan, np.nan
    fill = TrainingImputer()
    filled = fill.fit_transform(X)
    medians = SimpleImputer(strategy="median", keep_empty_features=True).fit_transform(X)
    np.testing.assert_array_equal(filled, medians)
    assert filled.dtype == fill.medians_.dtype == dtype
    np.testing.assert_array_equal(fill.transform(X)[4], fill.medians_)  # nothing else is known
    others = np.delete(np.arange(30), 4)
    np.testing.assert_array_equal(fill.transform(X)[others], X[others])
    np.testing.assert_array_equal(TrainingImputer().fit(X).medians_, fill.medians_)
    assert np.isnan(X[4]).all()  # the caller's rows are left alone


def test_a_pipeline_classifies_by_what_is_observed():
    X, y = load_digits(n_class=4, return_X_y=True)
    gone = np.random.default_rng(0).random(X.shape) < 0.6
    X[:300:40, 20] = np.nan
    last = ClassDictionaryClassifier(KSVD(20, n_nonzero_coefs=3, max_iter=3), random_state=0)
    holed = np.where(gone, np.nan, X)[300:]
    scores = [
        make_pipeline(first, RowNormalizer(), last).fit(X[:300], y[:300]).score(holed, y[300:])
        for first in (TrainingImputer(), SimpleImputer(strategy="median"))
    ]
    assert scores[0] > 0.9 > scores[1] + 0.1
