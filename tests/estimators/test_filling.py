"""Medians in learning, what is observed afterwards."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from kernelatoms import KSVD, ClassDictionaryClassifier, FillToLearn, UnitRows


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_learning_sees_medians_and_coding_sees_gaps(rng, dtype):
    X = rng.normal(size=(30, 5)).astype(dtype)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[4], X[:, 2] = np.nan, np.nan
    fill = FillToLearn()
    filled = fill.fit_transform(X)
    medians = SimpleImputer(strategy="median", keep_empty_features=True).fit_transform(X)
    np.testing.assert_array_equal(filled, medians)
    assert filled.dtype == fill.medians_.dtype == dtype
    np.testing.assert_array_equal(fill.transform(X)[4], fill.medians_)  # nothing else is known
    others = np.delete(np.arange(30), 4)
    np.testing.assert_array_equal(fill.transform(X)[others], X[others])
    np.testing.assert_array_equal(FillToLearn().fit(X).medians_, fill.medians_)
    assert np.isnan(X[4]).all()  # the caller's rows are left alone


def test_a_pipeline_classifies_by_what_is_observed():
    X, y = load_digits(n_class=4, return_X_y=True)
    gone = np.random.default_rng(0).random(X.shape) < 0.6
    X[:300:40, 20] = np.nan
    last = ClassDictionaryClassifier(KSVD(20, n_nonzero_coefs=3, max_iter=3), random_state=0)
    holed = np.where(gone, np.nan, X)[300:]
    scores = [
        make_pipeline(first, UnitRows(), last).fit(X[:300], y[:300]).score(holed, y[300:])
        for first in (FillToLearn(), SimpleImputer(strategy="median"))
    ]
    assert scores[0] > 0.9 > scores[1] + 0.1
