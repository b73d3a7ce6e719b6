"""Missing values (NaN): linear learners learn from what is observed, kernel ones leave rows out."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import oracles.missing
import oracles.pursuits
from kernelatoms import (
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    nystrom_error,
    sparse_encode,
)
from kernelatoms.similarity import make_kernel
from oracles import kernel_learning as book

POLY = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 0.0}
LINEAR = [KSVD(12, n_nonzero_coefs=3, random_state=0), MOD(12, n_nonzero_coefs=3, random_state=0)]
KERNEL = [
    KernelKSVD(12, n_nonzero_coefs=3, random_state=0, **POLY),
    KernelMOD(12, n_nonzero_coefs=3, random_state=0, kernel="rbf", gamma=0.2),
    KernelKSVD(12, n_nonzero_coefs=3, random_state=0, kernel="cosine"),
]
LINEARIZERS = [KernelLinearizer("rbf", gamma=0.2), KernelLinearizer(**POLY)]
CLASSIFIERS = [
    ClassDictionaryClassifier(learner, scheme=scheme, random_state=0)
    for learner in (LINEAR[0], KERNEL[0], KERNEL[1])
    for scheme in ("distributive", "collective")
]
ALL = [*LINEAR, *KERNEL, *LINEARIZERS, *CLASSIFIERS]


def name(estimator):
    return f"{type(estimator).__name__}-{getattr(estimator, 'scheme', '')}"


@pytest.fixture
def train(rng):
    return rng.standard_normal((60, 8))


@pytest.fixture
def labels():
    return np.arange(60) % 3


@pytest.fixture
def holed(rng):
    """New rows: some complete, some with one value missing, some with many."""
    X = rng.standard_normal((30, 8))
    X[10:20, 3] = np.nan
    gone = rng.random((10, 8)) < 0.6
    gone[:, [2, 5]] = False  # on a single value all atoms of unit norm are alike
    X[20:][gone] = np.nan
    return X


def outputs(model, X):
    """Everything that a fitted model says about new rows."""
    calls = [getattr(model, c, None) for c in ("transform", "decision_function", "predict")]
    results = [call(X) for call in calls if call is not None]
    return [r.toarray() if hasattr(r, "toarray") else r for r in results]


@pytest.mark.parametrize("estimator", ALL, ids=name)
class TestEveryEstimator:
    def test_complete_rows_are_treated_as_ever(self, estimator, train, labels, holed):
        model = clone(estimator).fit(train, labels)
        for mixed, alone in zip(outputs(model, holed), outputs(model, holed[:10]), strict=True):
            # Not to the last bit: how a product rounds may depend on how many rows it has.
            np.testing.assert_allclose(mixed[:10], alone, rtol=1e-11, atol=1e-13)
            assert np.isfinite(mixed).all()

    def test_company_does_not_matter(self, estimator, train, labels, holed):
        model = clone(estimator).fit(train, labels)
        together = outputs(model, holed)
        for s in (12, 25):
            for mixed, alone in zip(together, outputs(model, holed[s : s + 1]), strict=True):
                np.testing.assert_allclose(mixed[s : s + 1], alone, atol=1e-10)

    def test_float32_is_near_float64(self, estimator, train, labels, holed):
        model = clone(estimator).fit(train, labels)
        single = outputs(model, holed.astype(np.float32))[0]
        # Residuals are float64: squares of float32 numbers need not be float32 numbers.
        residuals = isinstance(estimator, ClassDictionaryClassifier)
        assert single.dtype == (np.float64 if residuals else np.float32)
        double = outputs(model, holed)[0]
        near = np.abs(single - double) < 1e-2 * max(1, np.abs(double).max())
        assert near.all(axis=-1).mean() > 0.9

    def test_fit_leaves_rows_out_of_which_it_cannot_learn(self, estimator, train, labels, holed):
        """Incomplete ones under a kernel, those without any value else; with one warning."""
        if estimator._learns_missing:
            model = clone(estimator).fit(train[2:], labels[2:])
            train[:2] = np.nan
            with pytest.warns(UserWarning, match="nothing but NaN in 2 of 60 rows; fit learns"):
                other = clone(estimator).fit(train, labels)
            for one, two in zip(outputs(other, holed), outputs(model, holed), strict=True):
                np.testing.assert_array_equal(one, two)
            train[:] = np.nan
            with pytest.raises(ValueError, match="nothing but NaN"):
                clone(estimator).fit(train, labels)
            return
        keep = ~np.isin(np.arange(60), [3, 7])
        expected = outputs(clone(estimator).fit(train[keep], labels[keep]), holed)
        train[[3, 7], 2] = np.nan
        with pytest.warns(UserWarning, match="NaN in 2 of 60 rows; fit learns from the other 58"):
            model = clone(estimator).fit(train, labels)
        for one, other in zip(outputs(model, holed), expected, strict=True):
            np.testing.assert_array_equal(one, other)
        train[:, 1] = np.nan
        with pytest.raises(ValueError, match="NaN in every row"):
            clone(estimator).fit(train, labels)

    def test_infinity_is_refused(self, estimator, train, labels, holed):
        model = clone(estimator).fit(train, labels)
        holed[4, 4] = np.inf
        for call in ("transform", "decision_function", "predict"):
            if hasattr(model, call):
                with pytest.raises(ValueError, match="Input X contains infinity"):
                    getattr(model, call)(holed)
        train[0, 0] = -np.inf
        with pytest.raises(ValueError, match="Input X contains infinity"):
            clone(estimator).fit(train, labels)

    def test_rows_without_any_value_are_named(self, estimator, train, labels, holed):
        model = clone(estimator).fit(train, labels)
        holed[[11, 21]] = np.nan
        with pytest.raises(ValueError, match="NaN only in row 11 and 1 more: a row can be coded"):
            outputs(model, holed)

    def test_tag(self, estimator):
        assert get_tags(estimator).input_tags.allow_nan


@pytest.mark.parametrize("selection", ["omp", "ols"])
@pytest.mark.parametrize("learner", LINEAR, ids=name)
def test_linear_codes_are_the_textbooks(learner, selection, train, holed):
    model = clone(learner).set_params(selection=selection).fit(train)
    codes = model.transform(holed).toarray()
    encoded = sparse_encode(
        holed, model.components_, n_nonzero_coefs=3, selection=selection, sparse_output=False
    )
    np.testing.assert_array_equal(codes, encoded)
    for x, code in zip(holed, codes, strict=True):
        support, w = oracles.pursuits.omp_of_observed(
            x, model.components_, 3, ols=selection == "ols"
        )
        if len(support) < (~np.isnan(x)).sum():  # else the last atoms tie
            expected = np.zeros(12)
            expected[support] = w
            np.testing.assert_allclose(code, expected, atol=1e-8)


def test_inpainting_by_a_learned_dictionary(rng):
    """Codes of a part stand for the whole."""
    atoms = rng.standard_normal((20, 40))
    W = np.zeros((300, 20))
    for w in W:
        w[rng.permutation(20)[:2]] = rng.standard_normal(2)
    X = W @ atoms
    # From the atoms that made the signals: from elsewhere it may end in a local minimum.
    model = KSVD(20, n_nonzero_coefs=4, max_iter=3, dict_init=atoms).fit(X)
    holed = np.where(rng.random(X.shape) < 0.4, np.nan, X)
    masked = model.inverse_transform(model.transform(holed))
    zeros = model.inverse_transform(model.transform(np.nan_to_num(holed)))
    gone = np.isnan(holed)
    assert np.sum((masked - X)[gone] ** 2) < 0.1 * np.sum((zeros - X)[gone] ** 2)


@pytest.mark.parametrize("learner", KERNEL, ids=name)
def test_kernel_codes_are_komps_on_estimates(learner, train, holed):
    model = clone(learner).fit(train)
    codes = model.transform(holed).toarray()
    given = {k: v for k, v in learner.get_params().items() if k in ("gamma", "degree", "coef0")}
    K = pairwise_kernels(model.anchors_, metric=learner.kernel, filter_params=True, **given)
    for x, code in zip(holed, codes, strict=True):
        k_x = np.array(
            [oracles.missing.partial_kernel(learner.kernel, x, a, **given) for a in model.anchors_]
        )
        if np.isnan(x).any():
            k_x = oracles.missing.consistent(K, k_x, model._kernel().diag(x[None])[0])
        expected = book.komp(K, k_x, model.dual_coef_, 3)
        np.testing.assert_allclose(code, expected, atol=1e-6 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("scheme", ["distributive", "collective"])
@pytest.mark.parametrize(("kernel_learner", "learner"), [(KernelKSVD, KSVD), (KernelMOD, MOD)])
def test_a_linear_kernel_is_the_linear_method(kernel_learner, learner, scheme, train, holed):
    same = {"n_nonzero_coefs": 3, "max_iter": 4, "tol": 0, "random_state": 3}
    ours, linear = kernel_learner(12, kernel="linear", **same), learner(12, **same)
    codes = [m.fit(train).transform(holed).toarray() for m in (ours, linear)]
    np.testing.assert_allclose(*codes, atol=1e-6)
    scores = [
        ClassDictionaryClassifier(m, scheme=scheme, random_state=0)
        .fit(train, np.arange(60) % 3)
        .decision_function(holed)
        for m in (ours, linear)
    ]
    np.testing.assert_allclose(*scores, atol=1e-6)


@pytest.mark.parametrize("linearizer", LINEARIZERS, ids=lambda m: m.kernel)
def test_virtual_samples_of_estimates(linearizer, train, holed):
    model = clone(linearizer).fit(train)
    given = {k: v for k, v in model.get_params().items() if k in ("gamma", "degree", "coef0")}
    K = [
        [oracles.missing.partial_kernel(model.kernel, x, r, **given) for r in model.landmarks_]
        for x in holed
    ]
    expected = np.array(K) @ model.dual_coef_
    for i in range(10, 30):  # complete rows are left alone
        energy = model._kernel().diag(holed[i : i + 1])[0]
        expected[i] = oracles.missing.shrink(expected[i], model.eigenvalues_, energy)
    np.testing.assert_allclose(model.transform(holed), expected, atol=1e-6 * np.abs(expected).max())
    with pytest.raises(ValueError, match="but complete rows are needed here"):
        nystrom_error(model, holed)


def waves(rng, n):
    """Smooth curves of four classes: any part tells the class; features nearly depend."""
    t, y = np.linspace(0, 1, 64), np.arange(n) % 4
    X = np.zeros((n, 64))
    for h in range(1, 6):
        a, b = np.random.default_rng(h).standard_normal((2, 4))
        X += (a[y] + 0.15 * rng.standard_normal(n))[:, None] * np.sin(2 * np.pi * h * t)
        X += (b[y] + 0.15 * rng.standard_normal(n))[:, None] * np.cos(2 * np.pi * h * t)
    X += 6 + 0.02 * rng.standard_normal(X.shape)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


WAVE_KERNELS = [
    {"kernel": "poly", "degree": 2, "gamma": 1, "coef0": 0},
    {"kernel": "poly", "degree": 4, "gamma": 1, "coef0": 0},
    {"kernel": "rbf", "gamma": 2.0},
]


class TestMissingBlocks:
    """Half of every signal is missing: estimates from the rest contradict each other."""

    @pytest.mark.parametrize(
        "kernel", WAVE_KERNELS, ids=lambda k: f"{k['kernel']}{k.get('degree')}"
    )
    def test_virtual_samples_fit_their_norm_are_told_of_and_still_tell_the_class(self, kernel, rng):
        (X, y), (test, y_test) = waves(rng, 400), waves(rng, 200)
        linearizer = KernelLinearizer(**kernel, n_landmarks=300, random_state=0).fit(X)
        model = ClassDictionaryClassifier(KSVD(30, n_nonzero_coefs=4, max_iter=5), random_state=0)
        model.fit(linearizer.transform(X), y)
        test[:, 32:] = np.nan
        with pytest.warns(UserWarning, match="have estimates that contradict each other") as told:
            F = linearizer.transform(test)
        assert len(told) == 1
        energy = linearizer._kernel().diag(test)
        assert (np.vecdot(F, F) <= energy * (1 + 1e-9)).all()
        assert model.score(F, y_test) > 0.95

    @pytest.mark.parametrize("coordinates", ["exact", 1e-3])
    @pytest.mark.parametrize("scheme", ["distributive", "collective"])
    @pytest.mark.parametrize("kernel", WAVE_KERNELS, ids=["degree 2", "degree 4", "rbf"])
    @pytest.mark.filterwarnings("ignore:Many rows with missing values")
    def test_kernel_dictionaries_still_tell_the_class(self, kernel, scheme, coordinates, rng):
        (X, y), (test, y_test) = waves(rng, 400), waves(rng, 200)
        learner = KernelKSVD(30, **kernel, n_nonzero_coefs=4, max_iter=5, coordinates=coordinates)
        model = ClassDictionaryClassifier(learner, scheme=scheme, random_state=0).fit(X, y)
        test[:, 32:] = np.nan
        assert model.score(test, y_test) > 0.95

    def test_kernel_learners_tell_of_contradictions(self, rng):
        (X, _), (test, _) = waves(rng, 400), waves(rng, 50)
        model = KernelMOD(30, **WAVE_KERNELS[0], n_nonzero_coefs=4, max_iter=3, random_state=0)
        model.fit(X)
        test[:, 32:] = np.nan
        with pytest.warns(UserWarning, match="have estimates that contradict each other") as told:
            model.transform(test)
        assert len(told) == 1


class TestClassifier:
    def test_distributive_residuals_are_those_of_observed_entries(self, train, labels, holed):
        model = ClassDictionaryClassifier(LINEAR[0], random_state=0).fit(train, labels)
        scores = model.decision_function(holed)
        for c, learner in enumerate(model.dictionaries_):
            back = learner.inverse_transform(learner.transform(holed))
            left = np.nansum((holed - back) ** 2, axis=1)
            np.testing.assert_allclose(-scores[:, c], left, atol=1e-9)
        np.testing.assert_array_equal(model.predict(holed), scores.argmax(axis=1))

    def test_collective_residuals_are_those_of_observed_entries(self, train, labels, holed):
        model = ClassDictionaryClassifier(LINEAR[0], scheme="collective", random_state=0)
        scores = model.fit(train, labels).decision_function(holed)
        parts = [learner.components_ for learner in model.dictionaries_]
        codes = sparse_encode(holed, np.concatenate(parts), n_nonzero_coefs=3, sparse_output=False)
        for c, atoms in enumerate(parts):
            back = codes[:, 12 * c : 12 * c + 12] @ atoms
            left = np.nansum((holed - back) ** 2, axis=1)
            np.testing.assert_allclose(-scores[:, c], left, atol=1e-9)

    @pytest.mark.parametrize("scheme", ["distributive", "collective"])
    def test_digits_with_holes(self, scheme, rng):
        X, y = load_digits(return_X_y=True)
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
        model = ClassDictionaryClassifier(
            KSVD(30, n_nonzero_coefs=3), scheme=scheme, random_state=0
        ).fit(X[:1000], y[:1000])
        test = X[1000:].copy()
        test[rng.random(test.shape) < 0.5] = np.nan
        masked = model.score(test, y[1000:])
        assert masked > model.score(np.nan_to_num(test), y[1000:]) + 0.05
        # Over masks 0.88 (distributive) and 0.855 on average, with a standard deviation of 0.012.
        assert masked > 0.78

    @pytest.mark.parametrize("scheme", ["distributive", "collective"])
    def test_no_class_explains_more_than_there_is(self, scheme, train, labels, holed):
        """Estimates did, and errors ended at 0 in several classes at once."""
        model = ClassDictionaryClassifier(KERNEL[0], scheme=scheme, random_state=0)
        scores = model.fit(train, labels).decision_function(holed)
        energy = model.dictionaries_[0]._kernel().diag(holed)
        assert (scores <= 1e-9 * energy[:, None]).all()
        if scheme == "distributive":
            assert ((scores < -1e-9 * energy[:, None]).sum(axis=1) >= 2).all()

    def test_the_scale_of_a_signal_changes_no_decision_of_a_homogeneous_kernel(
        self, train, labels, holed
    ):
        model = ClassDictionaryClassifier(KERNEL[0], random_state=0).fit(train, labels)
        np.testing.assert_array_equal(model.predict(holed), model.predict(3 * holed))

    def test_in_a_pipeline_with_a_linearizer(self, train, labels, holed):
        lkdl = make_pipeline(*clone([LINEARIZERS[0], CLASSIFIERS[0]])).fit(train, labels)
        assert np.isfinite(lkdl.decision_function(holed)).all()


class TestKernelsThatNeedCompleteRows:
    @pytest.mark.parametrize("kernel", ["chi2", lambda X, Y: X @ Y.T], ids=["chi2", "function"])
    @pytest.mark.parametrize("Estimator", [KernelKSVD, KernelLinearizer])
    def test_they_refuse(self, Estimator, kernel, train, holed):
        model = Estimator(kernel=kernel).fit(np.abs(train))
        assert not get_tags(model).input_tags.allow_nan
        with pytest.raises(ValueError, match=r"X contains NaN, but .* needs complete rows"):
            model.transform(np.abs(holed))

    @pytest.mark.parametrize("Estimator", [KernelKSVD, KernelLinearizer])
    def test_precomputed(self, Estimator, train, holed):
        K = pairwise_kernels(train, metric="rbf")
        model = Estimator(kernel="precomputed").fit(K)
        assert not get_tags(model).input_tags.allow_nan
        with pytest.raises(ValueError, match="but a precomputed kernel needs complete rows"):
            model.transform(np.where(K > 0.9, np.nan, K))

    def test_the_classifier_says_so_too(self, train, labels, holed):
        model = ClassDictionaryClassifier(KernelKSVD(5, kernel="chi2")).fit(np.abs(train), labels)
        assert not get_tags(model).input_tags.allow_nan
        with pytest.raises(ValueError, match="kernel 'chi2' needs complete rows"):
            model.predict(np.abs(holed))


class TestSparseEncode:
    def test_kernels(self, train, holed):
        for kernel, given in (
            ("rbf", {"gamma": 0.3}),
            ("poly", {"gamma": 0.125, "degree": 2, "coef0": 1}),
        ):
            codes = sparse_encode(
                holed, train, n_nonzero_coefs=2, kernel=kernel, kernel_params=given,
                sparse_output=False,
            )  # fmt: skip
            K = pairwise_kernels(train, metric=kernel, **given)
            for x, code in zip(holed, codes, strict=True):
                k_x = np.array(
                    [oracles.missing.partial_kernel(kernel, x, d, **given) for d in train]
                )
                energy = make_kernel(kernel, **given).diag(x[None])[0]
                k_x = oracles.missing.consistent(K, k_x, energy)
                expected = book.komp(K, k_x, np.eye(60), 2)
                np.testing.assert_allclose(code, expected, atol=1e-6)

    def test_residual_stop_counts_observed_entries(self, train, holed):
        codes = sparse_encode(holed, train, max_residual=0.3)
        share = np.nansum((holed - codes @ train) ** 2, axis=1) / np.nansum(holed**2, axis=1)
        assert (share <= 0.09 * (1 + 1e-9)).all()

    def test_refusals(self, train, holed):
        with pytest.raises(ValueError, match="dictionary contains NaN"):
            sparse_encode(train, holed)
        with pytest.raises(ValueError, match="X contains NaN only in row 2:"):
            sparse_encode(np.where(np.arange(4)[:, None] == 2, np.nan, train[:4]), train)
        with pytest.raises(ValueError, match="but a precomputed kernel needs complete rows"):
            sparse_encode(holed, np.eye(8), kernel="precomputed")
        with pytest.raises(ValueError, match="kernel 'chi2' needs complete rows"):
            sparse_encode(np.abs(holed), np.abs(train), kernel="chi2")


@pytest.mark.parametrize("estimator", LINEAR, ids=name)
def test_learning_from_observed_values_beats_leaving_rows_out(estimator):
    X = load_digits().data[:600] / 16
    gone = np.random.default_rng(0).random(X.shape) < 0.2  # no row is complete
    gone[:80] = False
    learner = clone(estimator).set_params(n_atoms=40)
    whole = clone(learner).fit(X).score(X)
    partly = clone(learner).fit(np.where(gone, np.nan, X)).score(X)
    few = clone(learner).fit(X[:80]).score(X)
    assert whole - 0.02 < partly < whole
    assert few < partly


@pytest.mark.parametrize("after_fit", [False, True])
@pytest.mark.parametrize("kind", [KSVD, MOD])
def test_partial_fit_learns_from_observed_values(kind, after_fit, train, rng):
    holes = np.where(rng.random(train.shape) < 0.2, np.nan, train)
    learner = kind(12, n_nonzero_coefs=2, max_iter=3, random_state=0)
    if after_fit:
        learner.fit(holes)
    for _ in range(8):
        before = learner.components_ if hasattr(learner, "components_") else None
        learner.partial_fit(holes)
    assert np.isfinite(learner.components_).all()
    assert before is not None
    assert learner.score(train) > 0.5
    assert np.isnan(holes).any()


def test_a_class_without_a_value_is_named(train, labels):
    train[labels == labels[0]] = np.nan
    with (
        pytest.raises(ValueError, match="nothing but NaN in the rows of class 0"),
        pytest.warns(UserWarning, match="learns from the other"),
    ):
        ClassDictionaryClassifier(LINEAR[0]).fit(train, labels)


def test_a_class_without_complete_rows_is_named_under_a_kernel(train, labels):
    train[labels == labels[0], 0] = np.nan
    with (
        pytest.raises(ValueError, match="NaN in every row of class"),
        pytest.warns(UserWarning, match="learns from the other"),
    ):
        ClassDictionaryClassifier(KERNEL[0]).fit(train, labels)


def test_classes_are_learned_from_rows_that_all_miss_values():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    gone = np.random.default_rng(0).random(X.shape) < 0.3
    model = ClassDictionaryClassifier(
        KSVD(20, n_nonzero_coefs=4, max_iter=8, random_state=0), random_state=0
    )
    assert model.fit(np.where(gone, np.nan, X)[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.9


@pytest.mark.parametrize("scheme", ["distributive", "collective"])
def test_l1_codes_are_of_complete_rows(scheme, train, labels):
    learner = MOD(12, alpha=0.1, max_iter=2, random_state=0)
    model = ClassDictionaryClassifier(clone(learner), scheme=scheme, random_state=0)
    learner.fit(train)
    model.fit(train, labels)
    assert not get_tags(learner).input_tags.allow_nan
    assert not get_tags(model).input_tags.allow_nan
    train[0, 0] = np.nan
    for ask in (learner.transform, learner.score, model.predict, model.decision_function):
        with pytest.raises(ValueError, match="X contains NaN in 1 of 60 rows"):
            ask(train)
    for fit in (learner.fit, learner.partial_fit, lambda rows: model.fit(rows, labels)):
        with pytest.raises(ValueError, match="X contains NaN"):
            fit(train)
