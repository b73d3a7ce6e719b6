"""gamma= means the same everywhere: "scale" or "spread" by default, a number, None or "auto"."""

import inspect

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

import kernelatoms
from kernelatoms import (
    KSAD,
    KSCDL,
    KSVD,
    ClassDictionaryClassifier,
    CRCClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    KSADClassifier,
    SRCClassifier,
    lasso_path,
    load_model,
    make_lkdl,
    preimage,
    residual_norms,
    save_model,
    sparse_encode,
)

ESTIMATORS = [
    KernelLinearizer(n_landmarks=20, random_state=0),
    KernelKSVD(6, n_nonzero_coefs=2, max_iter=2, random_state=0),
    KernelMOD(6, n_nonzero_coefs=2, max_iter=2, random_state=0),
    KSCDL(6, max_iter=2, random_state=0),
]


@pytest.fixture(name="X")
def some_rows(rng):
    return 3 + 5 * rng.standard_normal((40, 4))


def scale(X):
    return 1 / (X.shape[1] * X.var())


def test_words_that_fit_the_rows_are_the_default_of_all_that_take_gamma():
    takers = {
        name: inspect.signature(taker).parameters["gamma"].default
        for name in kernelatoms.__all__
        if callable(taker := getattr(kernelatoms, name)) and _takes_gamma(taker)
    }
    # By evidence: docs/guide/representation.md, and the records of K-SAD.
    wide = {name for name, default in takers.items() if default == "spread"}
    assert wide == {"KSAD", "KSADClassifier", "CRCClassifier", "SRCClassifier"}
    narrow = {name for name, default in takers.items() if default == "scale"}
    assert wide | narrow == set(takers)
    assert {"KernelLinearizer", "KernelKSVD", "SparseCoder", "sparse_encode"} <= narrow


def _takes_gamma(taker):
    try:
        return "gamma" in inspect.signature(taker).parameters
    except ValueError:  # of what is written in C
        return False


CLASSIFIERS = [
    make_lkdl(
        ClassDictionaryClassifier(KSVD(20, n_nonzero_coefs=5, max_iter=3), random_state=0),
        n_landmarks=200, random_state=0,
    ),
    ClassDictionaryClassifier(KernelKSVD(20, n_nonzero_coefs=5, max_iter=3), random_state=0),
    ClassDictionaryClassifier(KernelMOD(20, n_nonzero_coefs=5, max_iter=3), random_state=0),
    CRCClassifier("rbf", normalize=False),
    SRCClassifier("rbf", n_nonzero_coefs=5, normalize=False),
    KSADClassifier(100, random_state=0),
]  # fmt: skip


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_classifiers_take_pixels_as_they_are(model):
    """As scikit-learn's SVC() does; under gamma=1/64 all of them answer one class for most."""
    X, y = load_digits(return_X_y=True)
    X = 16 * X  # 0 to 256
    train, test = slice(0, 400), slice(400, 700)
    peer = SVC().fit(X[train], y[train]).score(X[test], y[test])
    assert clone(model).fit(X[train], y[train]).score(X[test], y[test]) > peer - 0.04


@pytest.mark.parametrize("model", [KSCDL(5, max_iter=2), KSAD(5)], ids=lambda m: type(m).__name__)
def test_the_first_batch_settles_it(model, X):
    fitted = clone(model).set_params(gamma="scale", random_state=0).partial_fit(X)
    fitted.partial_fit(100 * X)
    assert fitted.gamma_ == pytest.approx(scale(X), rel=1e-12)


def test_landmarks_that_are_given_do_not_settle_it(X):
    assert KernelLinearizer(sampling=X[:5] / 7).fit(X).gamma_ == pytest.approx(scale(X), rel=1e-12)
    base = KernelKSVD(3, base=X[:5] / 7, n_nonzero_coefs=2, max_iter=1, random_state=0)
    assert base.fit(X).gamma_ == pytest.approx(scale(X), rel=1e-12)


def test_rows_with_holes_do_not_count(X):
    holed = np.concatenate([X, np.where(np.eye(4), np.nan, 1e6)])
    with pytest.warns(UserWarning, match="NaN in 4 of 44 rows"):
        model = KernelLinearizer().fit(holed)
    assert model.gamma_ == pytest.approx(scale(X), rel=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_sparse_rows_are_rows(kernel, X, rng):
    X = np.where(rng.random(X.shape) < 0.6, 0, X)
    dense, thin = (KernelLinearizer(kernel, n_landmarks=9, sampling="uniform", random_state=0)
                   .fit(rows).gamma_ for rows in (X, scipy.sparse.csr_array(X)))  # fmt: skip
    assert dense == thin


def test_given_kernel_values_have_none(X):
    K = rbf_kernel(X, gamma=0.1)
    assert KernelLinearizer("precomputed").fit(K).gamma_ is None
    assert KernelKSVD(3, kernel="precomputed", n_nonzero_coefs=2, max_iter=1).fit(K).gamma_ is None
    assert CRCClassifier("precomputed").fit(K, np.arange(40) % 2).gamma_ is None


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
class TestEstimators:
    def test_words_are_numbers_after_fit(self, model, dtype, X):
        X = X.astype(dtype)
        for gamma, number in ((0.3, 0.3), (None, 0.25), ("auto", 0.25), ("scale", scale(X))):
            fitted = clone(model).set_params(gamma=gamma).fit(X)
            assert fitted.gamma_ == pytest.approx(number, rel=1e-5)
            same = clone(model).set_params(gamma=fitted.gamma_).fit(X)
            new = X[:7] + 1
            one, two = (np.asarray(_dense(m.transform(new))) for m in (fitted, same))
            np.testing.assert_array_equal(one, two)
        assert isinstance(fitted.gamma_, float)
        assert clone(model).set_params(kernel="linear", gamma="scale").fit(X).gamma_ is None

    def test_the_fitted_gamma_is_used_and_kept_in_files(self, model, dtype, X, tmp_path):
        X = X.astype(dtype)
        fitted = clone(model).set_params(gamma="scale").fit(X)
        expected = _dense(fitted.transform(X))
        save_model(fitted, tmp_path / "m.skops")
        again, _ = load_model(tmp_path / "m.skops")
        np.testing.assert_array_equal(_dense(again.transform(X)), expected)
        alone = _dense(again.transform(X[:1]))
        np.testing.assert_allclose(alone, expected[:1], rtol=1e-3, atol=1e-5)
        fitted.gamma = 7.0  # of the next fit
        np.testing.assert_array_equal(_dense(fitted.transform(X)), expected)

    def test_words_that_mean_nothing(self, model, dtype, X):
        with pytest.raises(ValueError, match=r"gamma must be above 0.*got 'wide'"):
            clone(model).set_params(gamma="wide").fit(X.astype(dtype))


def _dense(codes):
    return codes if isinstance(codes, np.ndarray) else codes.toarray()


def test_functions_take_scale_from_the_dictionary(X):
    atoms, signals = X[:20], X[20:]
    options = {"n_nonzero_coefs": 3, "kernel": "rbf", "sparse_output": False}
    codes = sparse_encode(signals, atoms, gamma="scale", **options)
    expected = sparse_encode(signals, atoms, gamma=scale(atoms), **options)
    np.testing.assert_array_equal(codes, expected)
    alone = [sparse_encode(x[None], atoms, gamma="scale", **options)[0] for x in signals]
    np.testing.assert_allclose(alone, codes, atol=1e-12)
    auto, number = (
        sparse_encode(signals, atoms, gamma=gamma, **options) for gamma in ("auto", 0.25)
    )
    np.testing.assert_array_equal(auto, number)


def test_residuals_are_those_of_the_codes_by_default(X):
    """Codes and residuals are under one gamma, that of the dictionary."""
    atoms, signals = X[:20], X[20:]
    codes = sparse_encode(signals, atoms, n_nonzero_coefs=3, kernel="rbf", sparse_output=False)
    K, c = (rbf_kernel(rows, atoms, gamma=scale(atoms)) for rows in (atoms, signals))
    squares = 1 - 2 * (codes * c).sum(axis=1) + np.einsum("ij,jk,ik->i", codes, K, codes)
    found = residual_norms(signals, atoms, codes, kernel="rbf")
    np.testing.assert_allclose(found, np.sqrt(squares), rtol=1e-9)


def test_paths_take_the_kernels_arguments(X):
    options = {"alphas": [0.1], "kernel": "poly", "degree": 2, "coef0": 0.5}
    one = lasso_path(X, X[:9], gamma="scale", **options)
    two = lasso_path(X, X[:9], kernel="poly", alphas=[0.1],
                     kernel_params={"gamma": scale(X[:9]), "degree": 2, "coef0": 0.5})  # fmt: skip
    np.testing.assert_array_equal(one.codes[0].toarray(), two.codes[0].toarray())


def test_preimages_take_scale_from_the_anchors(X):
    coef = np.eye(40)[:, :3] + 0.1
    one, two = (preimage(coef, X, gamma=gamma) for gamma in ("scale", scale(X)))
    np.testing.assert_array_equal(one.rows, two.rows)


@pytest.mark.parametrize("scheme", ["distributive", "collective"])
@pytest.mark.parametrize("learner", ESTIMATORS[1:], ids=lambda model: type(model).__name__)
def test_classes_share_one_feature_space(learner, scheme, X):
    """The variance of a class is not that of all rows."""
    y = np.arange(40) % 2
    X = np.where(y[:, None] == 0, X, 10 * X)
    model = ClassDictionaryClassifier(
        clone(learner).set_params(gamma="scale"), scheme=scheme, random_state=0
    ).fit(X, y)
    assert [one.gamma_ for one in model.dictionaries_] == pytest.approx([scale(X)] * 2)


def test_a_fitted_learner_brings_its_own_gamma(X):
    learner = KSCDL(6, max_iter=2, random_state=0).fit(X)
    for given in ({"gamma": 0.1}, {"degree": 2}, {"coef0": 0}, {"kernel_params": {}}):
        with pytest.raises(ValueError, match="a fitted learner has its own"):
            sparse_encode(X, learner, **given)
