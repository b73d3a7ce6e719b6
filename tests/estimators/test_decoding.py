"""``decode``: back through every step that has a way back, and words about those that have none."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler

from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    CRCClassifier,
    KernelKSVD,
    KernelLinearizer,
    NearestImputer,
    TrainingImputer,
    decode,
)

FULL = {"n_atoms": 10, "n_nonzero_coefs": 4, "max_iter": 2, "random_state": 0}


@pytest.fixture(name="X")
def some_rows():
    return np.random.default_rng(0).normal(5, 2, (80, 4))


def test_pipelines_in_pipelines(X):
    inner = make_pipeline(SimpleImputer(), MinMaxScaler())
    model = make_pipeline(inner, "passthrough", StandardScaler(), KSVD(**FULL)).fit(X)
    rows, unit_norm = decode(model, model.transform(X))
    np.testing.assert_allclose(rows, X)
    assert not unit_norm
    np.testing.assert_allclose(decode(model[-1], model.transform(X)).rows, model[:-1].transform(X))


@pytest.mark.parametrize("fill", [NearestImputer(3), TrainingImputer()])
def test_filling_stays(X, fill):
    model = make_pipeline(fill, StandardScaler(), KSVD(**FULL)).fit(X)
    np.testing.assert_allclose(decode(model, model.transform(X)).rows, X)


def test_columns_without_a_value_come_back_as_missing(X):
    X[:, 1] = np.nan
    model = make_pipeline(SimpleImputer(), KSVD(**{**FULL, "n_nonzero_coefs": 3}))
    with pytest.warns(UserWarning, match="Skipping features without any observed values"):
        codes = model.fit_transform(X)
    rows = decode(model, codes).rows
    np.testing.assert_allclose(rows, X)
    assert np.isnan(rows[:, 1]).all()


def test_norms_are_those_of_the_step_that_lost_them(X):
    model = make_pipeline(StandardScaler(), Normalizer(), KSVD(**FULL)).fit(X)
    codes = model.transform(X)
    assert decode(model, codes).unit_norm
    rows, unit_norm = decode(model, codes, like=X)
    np.testing.assert_allclose(rows, X)
    assert not unit_norm


class RowNormalizer(TransformerMixin, BaseEstimator):
    """Rows over their norms, a constant column appended before."""

    def __init__(self, offset=None):
        self.offset = offset

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        wide = np.hstack([X, np.full((len(X), 1), self.offset)])
        return wide / np.linalg.norm(wide, axis=1, keepdims=True)


def test_a_constant_column_tells_how_long_rows_were(X):
    model = make_pipeline(RowNormalizer(3.0), KSVD(**{**FULL, "n_nonzero_coefs": 5})).fit(X)
    rows, unit_norm = decode(model, model.transform(X))
    np.testing.assert_allclose(rows, X)
    assert not unit_norm


def test_virtual_samples_come_back_dense_or_sparse(X):
    model = make_pipeline(StandardScaler(), KernelLinearizer(gamma=0.05)).fit(X)
    rows = decode(model, model.transform(X)).rows
    assert np.abs(rows - X).max() < 0.1
    small = make_pipeline(model, KSVD(40, n_nonzero_coefs=20, max_iter=2, random_state=0)).fit(X)
    assert np.abs(decode(small, small.transform(X)).rows - X).max() < 1


@pytest.mark.parametrize("learner", [KSVD(**FULL), KernelKSVD(kernel="linear", **FULL)])
def test_classes_are_put_together_from_their_own_atoms(X, learner):
    y = np.arange(80) % 2
    model = make_pipeline(StandardScaler(), ClassDictionaryClassifier(learner)).fit(X, y)
    a, b = model[-1].dictionaries_
    codes = np.zeros((2, a.n_atoms_ + b.n_atoms_))
    codes[0, 3], codes[1, a.n_atoms_ + 2] = 2, -1
    expected = np.stack([2 * a.components_[3], -b.components_[2]])
    expected = model[0].inverse_transform(expected)
    np.testing.assert_allclose(decode(model, codes).rows, expected)
    with pytest.raises(ValueError, match="one column for each of the 20 atoms, got 19"):
        decode(model, codes[:, 1:])


def test_what_has_no_way_back_is_named(X):
    codes = np.zeros((1, 10))
    bent = make_pipeline(FunctionTransformer(np.abs), KSVD(**FULL)).fit(X)
    with pytest.raises(ValueError, match="step FunctionTransformer has no inverse_transform"):
        decode(bent, codes)
    X[0, 0] = np.nan
    holed = make_pipeline(SimpleImputer(add_indicator=True), KSVD(**FULL)).fit(X)
    with pytest.raises(ValueError, match="adds columns that say what was missing"):
        decode(holed, codes)
    crc = CRCClassifier().fit(X[1:], np.arange(79) % 2)
    with pytest.raises(ValueError, match="codes of a CRCClassifier cannot be decoded"):
        decode(crc, codes)
