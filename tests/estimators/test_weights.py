"""Weights of rows: integer ones are repetitions, 0 is absence, and their scale does not matter."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

from kernelatoms import (
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
)

RBF = {"kernel": "rbf", "gamma": 0.05}
GREEDY = {"n_nonzero_coefs": 2, "max_iter": 4, "tol": 0}
LEARNERS = [
    KSVD(**GREEDY), KSVD(update="exact", **GREEDY), MOD(**GREEDY),
    MOD(alpha=0.3, max_iter=4, tol=0), KernelKSVD(**GREEDY, **RBF), KernelMOD(**GREEDY, **RBF),
]  # fmt: skip


def name(learner):
    return repr(learner).split("(")[0] + ("-l1" if getattr(learner, "alpha", None) else "")


@pytest.fixture(name="X")
def rows(rng):
    return rng.standard_normal((80, 6))


@pytest.fixture
def weights(rng):
    return rng.integers(0, 4, 80)


def fitted(learner, X, start, weights=None):
    """A learner that starts from these rows."""
    return clone(learner).set_params(dict_init=start).fit(X, sample_weight=weights)


def same(one, other, X, factor=1.0):
    """Whether two learners represent rows alike, and have lowered the same objective."""
    np.testing.assert_allclose(one.objective_ * factor, other.objective_, rtol=1e-8)
    codes = [model.transform(X).toarray() for model in (one, other)]
    np.testing.assert_allclose(*codes, atol=1e-6)


@pytest.mark.parametrize("learner", LEARNERS, ids=name)
class TestLearners:
    def test_whole_weights_are_repetitions(self, learner, X, weights):
        start = X[:8]
        weighted = fitted(learner, X, start, weights)
        repeated = fitted(learner, np.repeat(X, weights, axis=0), start)
        same(weighted, repeated, X)
        assert not np.allclose(weighted.objective_, fitted(learner, X, start).objective_)

    def test_weight_0_is_absence(self, learner, X):
        weights = np.ones(80)
        weights[10:30] = 0
        start = X[:8]
        same(fitted(learner, X, start, weights), fitted(learner, X[weights > 0], start), X)

    def test_scale_matters_for_the_objective_alone(self, learner, X, weights):
        start = X[:8]
        one, other = (fitted(learner, X, start, w) for w in (weights, 10.0 * weights))
        same(one, other, X, factor=10)

    def test_weights_of_one_change_no_bit(self, learner, X):
        start = X[:8]
        one, other = fitted(learner, X, start), fitted(learner, X, start, np.ones(80))
        np.testing.assert_array_equal(one.objective_, other.objective_)
        np.testing.assert_array_equal(one.transform(X).toarray(), other.transform(X).toarray())

    @pytest.mark.parametrize(
        ("weights", "words"),
        [
            (np.ones(79), r"sample_weight.shape == \(79,\), expected \(80,\)"),
            (np.zeros(80), "sample_weight is zero for every row"),
            (np.full(80, -1.0), "sample_weight must be at least 0, got -1.0"),
            (np.full(80, np.nan), "sample_weight contains NaN"),
            (np.ones((80, 1)), "must be 1D array or scalar"),
        ],
    )
    def test_what_is_no_weight_is_refused(self, learner, X, weights, words):
        with pytest.raises(ValueError, match=words):
            clone(learner).set_params(n_atoms=8).fit(X, sample_weight=weights)


@pytest.mark.parametrize("learner", [KSVD(**GREEDY), MOD(**GREEDY)], ids=name)
def test_weights_of_rows_with_missing_values(learner, X, weights, rng):
    start = X[:8].copy()
    X[np.arange(80), rng.integers(0, 6, 80)] = np.nan  # on single values all atoms are alike
    weighted = fitted(learner, X, start, weights)
    repeated = fitted(learner, np.repeat(X, weights, axis=0), start)
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-8)
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-8)


def test_weight_0_under_a_precomputed_kernel_is_absence(X, weights):
    """Its columns are all rows; atoms are made of, and learned from, those of weight above 0."""
    K = np.exp(-0.05 * np.square(X[:, None] - X).sum(axis=2))
    some = np.flatnonzero(weights)
    learner = KernelMOD(8, kernel="precomputed", n_nonzero_coefs=2, max_iter=4, tol=0)
    learner.set_params(dict_init=some[:8], base=some)
    one = clone(learner).fit(K, sample_weight=weights)
    start = {"dict_init": np.arange(8), "base": np.arange(len(some))}
    two = learner.set_params(**start).fit(K[some][:, some], sample_weight=weights[some])
    np.testing.assert_allclose(one.objective_, two.objective_, rtol=1e-8)
    codes = one.transform(K).toarray(), two.transform(K[:, some]).toarray()
    np.testing.assert_allclose(*codes, atol=1e-6)


def test_float32_that_overflows_is_refused(X):
    with pytest.raises(ValueError, match="sample_weight is so large that X overflows float32"):
        KSVD(8).fit(X.astype(np.float32), sample_weight=np.full(80, 1e80))


class TestClassDictionaries:
    def test_whole_weights_are_repetitions(self, X, weights):
        y = np.arange(80) % 2
        model = ClassDictionaryClassifier(KSVD(dict_init=X[:6], **GREEDY), random_state=0)
        weighted = clone(model).fit(X, y, sample_weight=weights)
        repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
        scores = [fit.decision_function(X) for fit in (weighted, repeated)]
        np.testing.assert_allclose(*scores, atol=1e-8)
        assert not np.allclose(scores[0], clone(model).fit(X, y).decision_function(X))

    def test_a_class_of_weight_0_is_absent(self, X):
        y = np.arange(80) % 3
        model = ClassDictionaryClassifier(KSVD(6, **GREEDY), random_state=0)
        assert model.fit(X, y, sample_weight=y < 2).classes_.tolist() == [0, 1]

    def test_what_takes_no_weights_is_named(self, X):
        y, ones = np.arange(80) % 2, np.ones(80)
        with pytest.raises(ValueError, match=r"dictionary=KSCDL\(\) takes no sample_weight"):
            ClassDictionaryClassifier(KSCDL()).fit(X, y, sample_weight=ones)
        with pytest.raises(ValueError, match="calibrate=True"):
            ClassDictionaryClassifier(calibrate=True).fit(X, y, sample_weight=ones)


def test_pipelines_pass_weights_on():
    X, y = load_digits(return_X_y=True)
    X, y, weights = X[:300], y[:300], np.arange(300) % 3
    head = KernelLinearizer("poly", degree=2, gamma=1e-3, n_components=40, random_state=0)
    tail = ClassDictionaryClassifier(KSVD(8, **GREEDY), random_state=0)
    expected = (
        clone(tail).fit(head.fit_transform(X), y, weights).decision_function(head.transform(X))
    )
    plain = make_pipeline(clone(head), clone(tail))
    plain.fit(X, y, classdictionaryclassifier__sample_weight=weights)
    np.testing.assert_array_equal(plain.decision_function(X), expected)
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(clone(head), clone(tail).set_fit_request(sample_weight=True))
        routed.fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(routed.decision_function(X), expected)
