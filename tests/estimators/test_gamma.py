"""gamma= means the same everywhere: a number, None, "scale" or "auto", as in scikit-learn."""

import numpy as np
import pytest
from sklearn.base import clone

from kernelatoms import (
    KSCDL,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    lasso_path,
    load_model,
    preimage,
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
