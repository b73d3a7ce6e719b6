"""ClassDictionaryClassifier: the smallest residual decides."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_circles
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from kernelatoms import (
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelLinearizer,
    sparse_encode,
)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(normalize(X), y, test_size=0.3, random_state=0, stratify=y)


@pytest.mark.parametrize("learner", [KSVD, MOD])
def test_digits(digits, learner):
    train, test, y_train, y_test = digits
    model = ClassDictionaryClassifier(learner(30, n_nonzero_coefs=4), random_state=0)
    assert model.fit(train, y_train).score(test, y_test) > 0.95


def test_residuals_are_those_of_the_codes(digits):
    train, test, y_train, _ = digits
    model = ClassDictionaryClassifier(KSVD(20, n_nonzero_coefs=3), random_state=0)
    model.fit(train, y_train)
    residuals = np.stack(
        [
            ((test - learner.inverse_transform(learner.transform(test))) ** 2).sum(axis=1)
            for learner in model.dictionaries_
        ],
        axis=1,
    )
    np.testing.assert_allclose(-model.decision_function(test), residuals, atol=1e-9)
    np.testing.assert_array_equal(model.predict(test), residuals.argmin(axis=1))


def test_two_classes_have_one_score(rng):
    X = np.concatenate([rng.random((30, 1)) * [1, 0, 0], rng.random((30, 1)) * [0, 1, 0]]) + 1e-3
    y = np.repeat(["a", "b"], 30)
    model = ClassDictionaryClassifier(KSVD(1, n_nonzero_coefs=1), random_state=0).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (60,)
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "b", "a"))
    assert model.score(X, y) == 1


def test_ties_go_to_the_first_class():
    X = np.eye(4)[[0, 1, 0, 1]]
    model = ClassDictionaryClassifier(KSVD(2, n_nonzero_coefs=2)).fit(X, [7, 7, 3, 3])
    np.testing.assert_array_equal(model.predict(X), 3)


def test_a_kernel_tells_circles_apart_where_lines_cannot():
    X, y = make_circles(400, noise=0.05, factor=0.5, random_state=0)
    learner = ClassDictionaryClassifier(KSVD(10, n_nonzero_coefs=2), random_state=0)
    linear = learner.fit(X[:200], y[:200]).score(X[200:], y[200:])
    lkdl = make_pipeline(
        KernelLinearizer("poly", degree=2, gamma=1, coef0=1, random_state=0), learner
    )
    assert linear < 0.8
    assert lkdl.fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.95


def test_seeds_reach_the_learners(digits):
    train, test, y_train, _ = digits
    scores = [
        ClassDictionaryClassifier(KSVD(10, max_iter=2), random_state=seed)
        .fit(train, y_train)
        .decision_function(test)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])


def test_in_a_grid_search(digits):
    train, test, y_train, y_test = digits
    search = GridSearchCV(
        make_pipeline(KernelLinearizer("poly", degree=2), ClassDictionaryClassifier(KSVD(15))),
        {"classdictionaryclassifier__dictionary__n_nonzero_coefs": [1, 4]},
        cv=2,
    )
    assert search.fit(train[:400], y_train[:400]).score(test, y_test) > 0.85


def test_progress_reaches_classes_and_passes(digits):
    train, _, y_train, _ = digits
    seen = []

    class Recorder:
        max_propagation_depth = None

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            seen.append((type(estimator).__name__, context.task_name))

    model = ClassDictionaryClassifier(KSVD(5, max_iter=2, tol=0), random_state=0)
    model.set_callbacks(Recorder()).fit(train, y_train)
    assert seen.count(("KSVD", "pass")) == 20
    assert seen.count(("ClassDictionaryClassifier", "fit")) == 1


class TestBadInput:
    def test_one_class(self):
        with pytest.raises(ValueError, match="at least two classes"):
            ClassDictionaryClassifier().fit(np.eye(4), [1, 1, 1, 1])

    def test_not_a_learner(self):
        with pytest.raises(TypeError, match=r"dictionary must be a learner such as KSVD\(\)"):
            ClassDictionaryClassifier("ksvd").fit(np.eye(4), [1, 1, 2, 2])
        with pytest.raises(TypeError, match=r"dictionary must be a learner such as KSVD\(\)"):
            ClassDictionaryClassifier(KSVD).fit(np.eye(4), [1, 1, 2, 2])
        with pytest.raises(TypeError, match="n_atoms must be a whole number, got 'many'"):
            ClassDictionaryClassifier(KSVD("many")).fit(np.eye(4), [1, 1, 2, 2])

    def test_regression_targets(self):
        with pytest.raises(ValueError, match="continuous"):
            ClassDictionaryClassifier().fit(np.eye(4), [0.1, 0.2, 0.3, 0.4])

    def test_nan_and_shapes(self):
        model = ClassDictionaryClassifier().fit(np.eye(4), [1, 1, 2, 2])
        with pytest.raises(ValueError, match="NaN"):
            model.predict(np.full((2, 4), np.nan))
        with pytest.raises(ValueError, match="3 features"):
            model.predict(np.ones((2, 3)))
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            ClassDictionaryClassifier().fit(np.eye(4), [1, 2])

    def test_nonzeros_are_clipped_with_one_warning(self, rng):
        X = rng.standard_normal((30, 5))
        with pytest.warns(UserWarning, match="n_nonzero_coefs=50 is more than") as warned:
            ClassDictionaryClassifier(KSVD(8, n_nonzero_coefs=50)).fit(X, np.arange(30) % 3)
        assert len(warned) == 1

    def test_small_classes_are_clipped_with_one_warning(self, rng):
        X = rng.standard_normal((30, 5))
        y = np.repeat([0, 1, 2], [4, 6, 20])
        with pytest.warns(UserWarning, match="n_atoms=15 .* every class uses as many") as warned:
            model = ClassDictionaryClassifier(KSVD(15, n_nonzero_coefs=1)).fit(X, y)
        assert len(warned) == 1
        assert [learner.n_atoms_ for learner in model.dictionaries_] == [4, 6, 15]


def _left_by_nearest(test, atoms, n_neighbors, **how):
    """Return what is left of rows that are coded over the nearest atoms alone, and the codes."""
    far = ((test[:, None] - atoms[None]) ** 2).sum(axis=2)
    near = np.sort(far.argsort(axis=1, kind="stable")[:, :n_neighbors], axis=1)
    codes = sparse_encode(test, atoms, candidates=near, sparse_output=False, **how)
    return ((test - codes @ atoms) ** 2).sum(axis=1), codes


@pytest.mark.parametrize("n_neighbors", [1, 5, 12])
def test_neighbours_of_every_class(digits, n_neighbors):
    train, test, y_train, _ = digits
    model = ClassDictionaryClassifier(
        KSVD(20, n_nonzero_coefs=3), n_neighbors=n_neighbors, random_state=0
    ).fit(train, y_train)
    naive = [
        _left_by_nearest(test, learner.components_, n_neighbors, n_nonzero_coefs=3)[0]
        for learner in model.dictionaries_
    ]
    np.testing.assert_allclose(-model.decision_function(test), np.stack(naive, 1), atol=1e-9)
    free = ClassDictionaryClassifier(KSVD(20, n_nonzero_coefs=3), random_state=0)
    # Fewer atoms to choose from leave more.
    left = model.decision_function(test).sum()
    assert left < free.fit(train, y_train).decision_function(test).sum()


def test_neighbours_among_all_classes(digits):
    train, test, y_train, _ = digits
    learner = KSVD(20, n_nonzero_coefs=3)
    model = ClassDictionaryClassifier(
        learner, scheme="collective", n_neighbors=15, random_state=0
    ).fit(train, y_train)
    atoms = np.concatenate([learner.components_ for learner in model.dictionaries_])
    codes = _left_by_nearest(test, atoms, 15, n_nonzero_coefs=3)[1]
    left = [
        ((test - codes[:, part] @ atoms[part]) ** 2).sum(axis=1)
        for part in (slice(20 * c, 20 * c + 20) for c in range(10))
    ]
    np.testing.assert_allclose(-model.decision_function(test), np.stack(left, 1), atol=1e-9)


@pytest.mark.parametrize("scheme", ["distributive", "collective"])
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_all_atoms_are_near_where_there_are_no_more(digits, scheme, kernel):
    train, test, y_train, _ = digits
    learner = (
        KSVD(6, n_nonzero_coefs=2) if kernel is None else KernelKSVD(6, kernel="rbf", gamma=1.0)
    )
    model = ClassDictionaryClassifier(learner, scheme=scheme, random_state=0).fit(train, y_train)
    free = model.decision_function(test)
    few = model.set_params(n_neighbors=3).decision_function(test)
    all_near = model.set_params(n_neighbors=60).decision_function(test)
    np.testing.assert_array_equal(all_near, free)
    assert np.abs(few - free).max() > 1e-3


def test_neighbours_need_a_number_and_complete_rows(digits):
    train, test, y_train, _ = digits
    model = ClassDictionaryClassifier(KSVD(5, n_nonzero_coefs=2), n_neighbors=0)
    with pytest.raises(ValueError, match="n_neighbors"):
        model.fit(train, y_train)
    model.set_params(n_neighbors=3).fit(train, y_train)
    test = test.copy()
    test[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(test)


def test_scores_of_two_classes_do_not_depend_on_lengths(rng):
    """They are (r_1 - r_2) / (r_1 + r_2)."""
    X = rng.standard_normal((40, 6))
    model = ClassDictionaryClassifier(KSVD(5, n_nonzero_coefs=2), random_state=0)
    model.fit(X, np.arange(40) % 2)
    left = np.array([1 - why.scores for why in model.explain(X)]) - 1
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, (left[:, 0] - left[:, 1]) / left.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(model.decision_function(7 * X), scores, atol=1e-12)
