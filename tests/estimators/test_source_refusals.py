"""What cannot learn from a source of rows names what can; bad sources change nothing."""

import re
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits

from every_estimator import WAYS
from kernelatoms import (
    KSAD,
    KSCDL,
    MOD,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelMOD,
    residual_norms,
    sparse_encode,
)
from kernelatoms.rows import ArrayRows, RowSource
from source_cases import ALL, Uncounted, fitted, signals


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        (KernelMOD(), r"coordinates='exact' .* \(2\.68e-05 GiB for all 60 rows\).*KernelLinear"),
        (KernelKSVD(coordinates=0.1), "coordinates=0.1 .*KernelLinearizer"),
        (KernelMOD(kernel="precomputed"), "precomputed.*source of rows"),
        (KSAD(kernel="precomputed"), "precomputed.*source of rows"),
    ],
)
def test_what_cannot_learn_from_a_source_says_what_can(learner, words):
    class Unread(Uncounted):
        def _read(self, block_rows):
            raise AssertionError("no row is read")

    X, labels = signals(n=60)
    source = Unread(X)
    source.n_rows = 60
    for model in (learner, ClassDictionaryClassifier(learner)):
        with pytest.raises(ValueError, match=words):
            model.fit(source, labels)
        assert not hasattr(model, "n_features_in_")


CASES = [
    (estimator, way)
    for estimator, ways in WAYS
    for way in ways
    if way.get("search") != "approximate" or find_spec("pynndescent")
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "way"), CASES, ids=lambda given: type(given).__name__)
def test_every_estimator_learns_from_a_source_or_names_what_does(estimator, way):
    digits, y = load_digits(return_X_y=True)
    X, y = digits[y < 3][:90, 10:15] + 1.0, y[y < 3][:90]
    model, in_memory = (clone(estimator).set_params(**way) for _ in range(2))
    before, refused = dict(vars(model)), ""
    try:
        model.fit(ArrayRows(X), y)
    except (TypeError, ValueError) as error:
        refused = str(error)
    in_memory.fit(X, y)
    if refused:
        advice = r"source of rows.*(ClassDictionary|KernelLinearizer|compress|calibrate=False)"
        assert re.search(advice, refused)
        assert vars(model) == before
        model = in_memory
    for name in ("transform", "predict", "decision_function", "predict_proba"):
        if hasattr(model, name):
            lazy, here = getattr(model, name)(ArrayRows(X)), getattr(model, name)(X)
            assert isinstance(lazy, RowSource)
            lazy = lazy.collect()
            if sparse.issparse(here):
                here, lazy = here.toarray(), lazy.toarray()
            np.testing.assert_allclose(lazy, here, rtol=1e-6, atol=1e-7 * np.abs(here).max())
    for name in ("explain", "encode"):
        if hasattr(model, name):
            with pytest.raises(TypeError, match="rows in memory"):
                getattr(model, name)(ArrayRows(X))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "way"),
    [case for case in CASES if hasattr(clone(case[0]).set_params(**case[1]), "partial_fit")],
    ids=lambda given: type(given).__name__,
)
def test_all_rows_of_a_source_are_one_batch(estimator, way):
    digits, y = load_digits(return_X_y=True)
    X, y = digits[y < 3][:90, 10:15] + 1.0, y[y < 3][:90]
    model, in_memory = (clone(estimator).set_params(**way) for _ in range(2))
    if isinstance(estimator, KSCDL) and not has_failed(in_memory.partial_fit, X):
        with pytest.raises(TypeError, match=r"KSCDL\.partial_fit needs rows in memory"):
            model.partial_fit(ArrayRows(X))
        return
    failed = has_failed(in_memory.partial_fit, X, y)
    assert has_failed(model.partial_fit, ArrayRows(X), y) == failed
    if not failed:
        for here, there in zip(codes_of(in_memory, X), codes_of(model, X), strict=True):
            np.testing.assert_allclose(there, here, rtol=1e-6, atol=1e-7 * np.abs(here).max())


def has_failed(function, *given):
    try:
        function(*given)
    except ValueError:
        return True
    return False


def codes_of(model, X):
    learners = getattr(model, "dictionaries_", [model])
    return [learner.transform(X).toarray() for learner in learners]


LEARN = {"KSVD", "MOD", "KSAD", "KSCDL", "KernelLinearizer", "ClassDictionaryClassifier"}
LEARN |= {"SparseCoder", "NearestImputer", "TrainingImputer", "RowNormalizer"}


def test_these_learn_as_they_come():
    digits, y = load_digits(return_X_y=True)
    learned = set()
    for estimator, _ in WAYS:
        try:
            model = clone(estimator).fit(ArrayRows(digits[:90, 10:15] + 1.0), y[:90])
        except (TypeError, ValueError):
            continue
        learned.add(type(model).__name__)
    assert learned == LEARN


@pytest.mark.parametrize("learner", ALL)
def test_a_source_that_changes_leaves_the_learner_as_it_was(learner):
    X, labels = signals()
    model = clone(learner).fit(X)
    before = fitted(model)
    with pytest.raises(ValueError, match="rows have changed since they were counted"):
        model.fit(Uncounted(X, later=X[:-1]))
    after = fitted(model)
    assert before.keys() == after.keys()
    assert all(after[name] is value for name, value in before.items())
    classifier = ClassDictionaryClassifier(clone(learner).set_params(n_atoms=3))
    with pytest.raises(ValueError, match="rows have changed"):
        classifier.fit(Uncounted(X, later=np.concatenate([X, X[:1]])), labels)
    assert not hasattr(classifier, "dictionaries_")


def test_bad_labels_and_rows_are_refused():
    X, labels = signals()
    model = ClassDictionaryClassifier(MOD(4))
    for y, words in ((None, "label"), (labels[:-1], "599"), (np.zeros(600), "two classes")):
        with pytest.raises(ValueError, match=words):
            model.fit(ArrayRows(X), y)
    for bad in (np.nan, np.inf):
        spoilt = X.copy()
        spoilt[-1, 3] = bad
        for learner in ALL:
            if bad is np.nan and clone(learner)._learns_missing:
                assert clone(learner).fit(ArrayRows(spoilt)).n_atoms_ > 0
                continue
            with pytest.raises(ValueError, match=r"NaN|infinity"):
                clone(learner).fit(ArrayRows(spoilt))
    with pytest.raises(ValueError, match="data frames"):
        MOD(4).fit(X).set_output(transform="pandas").transform(ArrayRows(X))
    with pytest.raises(ValueError, match="max_residual has an entry per row"):
        sparse_encode(ArrayRows(X), X[:5], max_residual=np.ones(600))
    with pytest.raises(ValueError, match="return_gap"):
        sparse_encode(ArrayRows(X), X[:5], method="lasso", alpha=1.0, return_gap=True)
    with pytest.raises(ValueError, match="more rows than the other"):
        residual_norms(ArrayRows(X), X[:5], np.zeros((599, 5))).collect()
