"""Answers over sources of rows are lazy, and those that arrays have."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from kernelatoms import (
    KSAD,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    KernelLinearizer,
    NearestImputer,
    RowNormalizer,
    SparseCoder,
    TrainingImputer,
    make_lkdl,
    open_rows,
    residual_norms,
    sparse_encode,
)
from kernelatoms.rows import ArrayRows, RowSource
from source_cases import ALL, signals


@pytest.mark.parametrize("learner", ALL)
def test_answers_are_those_of_arrays(learner):
    X, _ = signals()
    source = ArrayRows(X).map(np.asarray, 8)
    model = clone(learner).fit(X)
    codes = model.transform(source)
    assert isinstance(codes, RowSource)
    assert codes.shape == (600, 12)
    np.testing.assert_allclose(codes.collect().toarray(), model.transform(X).toarray(), atol=1e-9)
    back = model.inverse_transform(codes).collect()
    np.testing.assert_allclose(back, model.inverse_transform(model.transform(X)), atol=1e-6)
    assert model.score(source) == pytest.approx(model.score(X), rel=1e-9)
    coded = sparse_encode(source, model, n_nonzero_coefs=2, max_residual=0.01)
    here = sparse_encode(X, model, n_nonzero_coefs=2, max_residual=0.01)
    np.testing.assert_allclose(coded.collect().toarray(), here.toarray(), atol=1e-9)
    norms = residual_norms(X, model, here)
    for codes in (coded, here, here.toarray()):
        found = residual_norms(source, model, codes)
        assert isinstance(found, RowSource)
        np.testing.assert_allclose(found.collect(), norms, atol=1e-7)
        np.testing.assert_allclose(found.take([5, 3]), norms[[5, 3]], atol=1e-7)


def test_answers_are_those_of_the_model_as_it_was():
    X, _ = signals()
    model = MOD(12, max_iter=2, random_state=0).fit(X)
    codes, before = model.transform(ArrayRows(X)), model.transform(X)
    model.fit(X[::2])
    np.testing.assert_array_equal(codes.collect().toarray(), before.toarray())


def test_pipelines_of_sources(tmp_path):
    X, labels = signals()
    source = ArrayRows(X, labels)
    for first in (RowNormalizer(), RowNormalizer(0.5), None):
        steps = [] if first is None else [first]
        model = make_pipeline(
            *steps,
            KernelLinearizer(n_landmarks=50, random_state=0),
            ClassDictionaryClassifier(MOD(4, n_nonzero_coefs=2, max_iter=3), random_state=0),
        )
        memory = model.fit(X, labels).predict(X)
        assert np.mean(model.fit(source).predict(source).collect() == memory) > 0.99
    model = make_lkdl(
        ClassDictionaryClassifier(KSVD(4, max_iter=3), random_state=0), n_landmarks=50,
        unit_rows=True, random_state=0,
    )  # fmt: skip
    memory = model.fit(X, labels).score(X, labels)
    assert model.fit(source).score(source, labels) > memory - 0.03


def test_holes_of_a_source_are_filled():
    X, labels = signals()
    holed = X.copy()
    holed[::5, 2] = np.nan
    source = ArrayRows(holed, labels)
    with pytest.raises(ValueError, match="NaN"):
        MOD(6, alpha=0.1).fit(source)
    assert MOD(6).fit(source).n_atoms_ == 6  # learns from what is observed
    for imputer in (NearestImputer(random_state=0), TrainingImputer()):
        memory = imputer.fit(holed).transform(holed)
        np.testing.assert_array_equal(imputer.fit(source).transform(source).collect(), memory)
        filled = imputer.fit_transform(source).collect()
        np.testing.assert_array_equal(filled, imputer.fit_transform(holed))
        assert np.isfinite(filled).all()
        model = make_pipeline(imputer, KSVD(6, max_iter=2, random_state=0)).fit(source)
        assert model[-1].score(ArrayRows(filled)) > 0.3


def test_names_of_columns(tmp_path):
    import pyarrow.parquet

    X, labels = signals()
    names = [f"x{j}" for j in range(8)]
    table = pyarrow.table(dict(zip(names, X.T.copy(), strict=True)))
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    pyarrow.parquet.write_table(table.select(names[::-1]), tmp_path / "turned.parquet")
    source, turned = open_rows(tmp_path / "x.parquet"), open_rows(tmp_path / "turned.parquet")
    models = [
        MOD(6, max_iter=2), KSAD(6, max_iter=2), KernelLinearizer(n_landmarks=20), RowNormalizer(),
        NearestImputer(), SparseCoder(X[:6]),
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in models:
            assert model.fit(source).feature_names_in_.tolist() == names
            model.transform(source).collect()
        assert models[0].score(source) > 0
        classifier = ClassDictionaryClassifier(MOD(4, max_iter=2)).fit(source, labels)
        assert classifier.predict_proba(source).collect().shape == (600, 3)
    for model in models:
        with pytest.raises(ValueError, match="order"):
            model.transform(turned)
    with pytest.raises(ValueError, match="order"):
        models[0].score(turned)
    with pytest.raises(ValueError, match="7 features"):
        models[0].transform(ArrayRows(X[:, :7]))
    with pytest.raises(ValueError, match="7 features"):
        classifier.predict(ArrayRows(X[:, :7]))
