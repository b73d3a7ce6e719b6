"""A user's kernel is first class: in all learners, clones, grids, pickles and model files."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from kernelatoms import (
    KSCDL,
    KSVD,
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
from kernelatoms.files.models.model_file import ModelFileError
from kernelatoms.similarity import KERNELS, RBFKernel, kernel_from_path, make_kernel
from similarity import users

LEARNERS = [
    KernelLinearizer(n_landmarks=15, random_state=0),
    KernelKSVD(6, n_nonzero_coefs=2, max_iter=2, random_state=0),
    KernelMOD(6, n_nonzero_coefs=2, max_iter=2, random_state=0),
    KSCDL(6, max_iter=3, random_state=0),
]
GREEDY = LEARNERS[:3]


@pytest.fixture(name="X")
def some_rows(rng):
    return rng.random((40, 3))


def dense(codes):
    return codes if isinstance(codes, np.ndarray) else codes.toarray()


def ids(model):
    return type(model).__name__


@pytest.mark.parametrize("learner", LEARNERS, ids=ids)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("way", ["object", "class", "ours"])
def test_ones_own_rbf_kernel_is_the_rbf_kernel(learner, dtype, way, X):
    X = X.astype(dtype)
    kernels = {
        "object": {"kernel": users.Gauss(0.7)},
        "class": {"kernel": users.Gauss, "kernel_params": {"gamma": 0.7}},
        "ours": {"kernel": RBFKernel(0.7)},
    }
    mine = clone(learner).set_params(**kernels[way]).fit(X)
    named = clone(learner).set_params(kernel="rbf", gamma=0.7).fit(X)
    assert mine.gamma_ == 0.7
    tolerance = 1e-8 if dtype == np.float64 else 2e-2
    np.testing.assert_allclose(dense(mine.transform(X)), dense(named.transform(X)), atol=tolerance)
    again = pickle.loads(pickle.dumps(mine))
    np.testing.assert_array_equal(dense(again.transform(X)), dense(mine.transform(X)))


@pytest.mark.parametrize("learner", LEARNERS, ids=ids)
def test_its_gamma_may_be_a_word(learner, X):
    fitted = clone(learner).set_params(kernel=users.Gauss("scale")).fit(X)
    assert fitted.gamma_ == pytest.approx(1 / (3 * X.var()))
    assert fitted.kernel == users.Gauss("scale")


@pytest.mark.parametrize("learner", GREEDY, ids=ids)
def test_its_diagonal_is_asked_for(learner, X):
    fitted = clone(learner).set_params(kernel=users.Intersection(2.0)).fit(X)
    before = fitted.kernel.asked
    assert before > 0
    if learner is not GREEDY[0]:
        fitted.transform(X)
        assert fitted.kernel.asked > before


@pytest.mark.parametrize("learner", GREEDY, ids=ids)
def test_missing_values_if_it_can(learner, X):
    fitted = clone(learner).set_params(kernel=users.Gauss(0.7)).fit(X)
    named = clone(learner).set_params(kernel="rbf", gamma=0.7).fit(X)
    X[3:9, 1] = np.nan
    expected = dense(named.transform(X))
    np.testing.assert_allclose(dense(fitted.transform(X)), expected, atol=1e-8)
    other = clone(learner).set_params(kernel=users.Intersection).fit(X[9:])
    with pytest.raises(ValueError, match="NaN"):
        other.transform(X)


def test_gaussian_process_kernels_work(X):
    kernel = 2.0 * gp.RBF(0.5)
    expected = KernelKSVD(6, kernel=lambda X, Y: 2 * np.exp(-2 * np.square(X[:, None] - Y).sum(2)),
                          n_nonzero_coefs=2, random_state=0).fit(X)  # fmt: skip
    model = KernelKSVD(6, kernel=kernel, n_nonzero_coefs=2, random_state=0).fit(X)
    np.testing.assert_allclose(dense(model.transform(X)), dense(expected.transform(X)), atol=1e-7)
    with pytest.raises(ValueError, match="contradicts itself"):  # of other rows it knows nothing
        KernelKSVD(6, kernel=gp.WhiteKernel(), random_state=0).fit(X)


def test_functions_and_classes_in_functions(X):
    options = {"n_nonzero_coefs": 2, "sparse_output": False}
    named = sparse_encode(X, X[:9], kernel="rbf", gamma=0.7, **options)
    mine = sparse_encode(X, X[:9], kernel=users.Gauss, kernel_params={"gamma": 0.7}, **options)
    np.testing.assert_allclose(mine, named, atol=1e-9)
    path = lasso_path(X, X[:9], alphas=[0.1], kernel=users.Gauss(0.7))
    expected = lasso_path(X, X[:9], alphas=[0.1], kernel="rbf", gamma=0.7)
    np.testing.assert_allclose(path.codes[0].toarray(), expected.codes[0].toarray(), atol=1e-6)
    result = preimage(np.eye(40)[:, :2], X, kernel=users.Gauss(0.7))
    np.testing.assert_allclose(result.error, 0, atol=1e-9)


def test_grids_over_kernels(X):
    y = (X[:, 0] > X[:, 1]).astype(int)
    model = make_pipeline(
        KernelLinearizer(n_landmarks=10, random_state=0),
        ClassDictionaryClassifier(KSVD(3, n_nonzero_coefs=1), random_state=0),
    )
    grid = {"kernellinearizer__kernel": ["rbf", users.Gauss(2.0), users.Gauss, users.inner]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, y)
    assert len(search.cv_results_["mean_test_score"]) == 4


def test_classes_share_the_gamma_of_all_rows(X):
    y = np.arange(40) % 2
    learner = KernelKSVD(4, kernel=users.Gauss, kernel_params={"gamma": "scale"}, n_nonzero_coefs=1)
    model = ClassDictionaryClassifier(learner, random_state=0).fit(X, y)
    assert {one.gamma_ for one in model.dictionaries_} == {1 / (3 * X.var())}


class TestSearch:
    def test_it_searches_for_the_gamma_of_an_object(self, X):
        mine = KSCDL(4, kernel=users.Gauss(), gamma="search", max_iter=2, random_state=0).fit(X)
        named = KSCDL(4, gamma="search", max_iter=2, random_state=0).fit(X)
        assert mine.gamma_ == named.gamma_

    def test_what_it_needs_to_know(self, X, monkeypatch):
        monkeypatch.setattr(users.Gauss, "what_gamma_multiplies", lambda self, X, Y: None)
        with pytest.raises(ValueError, match="does not say what its gamma multiplies"):
            KSCDL(4, kernel=users.Gauss(), gamma="search").fit(X)


class TestModelFiles:
    @pytest.mark.parametrize(
        ("kernel", "name"),
        [
            (users.Gauss(0.7), "Gauss"),
            (users.Gauss, "Gauss"),
            (users.Intersection(2.0), "Intersection"),
            (users.inner, "inner"),
        ],
    )
    def test_they_are_loaded_if_they_are_allowed(self, kernel, name, X, tmp_path):
        model = KernelKSVD(6, kernel=kernel, n_nonzero_coefs=2, random_state=0).fit(X)
        path = save_model(model, tmp_path / "m.skops")
        name = f"{users.__name__}.{name}"
        with pytest.raises(ModelFileError, match=rf"holds the type '{name}'.*trusted=\['{name}'\]"):
            load_model(path)
        with pytest.raises(ModelFileError, match="was not opened"):
            load_model(path, trusted=["somebody.Else"])
        for trusted in ([name], [":".join(name.rsplit(".", 1))]):
            again, _ = load_model(path, trusted=trusted)
            np.testing.assert_array_equal(dense(again.transform(X)), dense(model.transform(X)))

    @pytest.mark.parametrize("name", KERNELS)
    def test_objects_of_ours_need_no_leave(self, name, X, tmp_path):
        if name == "additive_chi2":
            return  # has no feature space
        model = KernelLinearizer(make_kernel(name, coef0=0), random_state=0)
        if name == "sigmoid":
            X = X[:1]
        path = save_model(model.fit(X), tmp_path / "m.skops")
        again, _ = load_model(path)
        assert again.kernel == model.kernel
        np.testing.assert_array_equal(again.transform(X), model.transform(X))

    def test_names_are_a_list(self, tmp_path):
        with pytest.raises(TypeError, match=r"trusted must be a list of names .*got 'a.B'"):
            load_model(tmp_path / "m.skops", trusted="a.B")


class TestKernelFromPath:
    def test_it_imports(self):
        assert kernel_from_path("kernelatoms.similarity:RBFKernel") is RBFKernel
        kind = kernel_from_path("sklearn.gaussian_process.kernels:RBF")
        assert make_kernel(kind, kernel_params={"length_scale": 2.0}).given.length_scale == 2.0

    @pytest.mark.parametrize(
        ("path", "words"),
        [
            ("nothing", "as module:Class, or module:name of an object or function, got 'nothing'"),
            (":x", "module:Class"),
            ("no_such_module:K", "'no_such_module' cannot be imported .*PYTHONPATH"),
            ("kernelatoms.similarity:NoKernel", "has no 'NoKernel'"),
            ("math:pi", "function of two matrices, or a class .*got 3.14"),
        ],
    )
    def test_what_cannot_be(self, path, words):
        with pytest.raises(ValueError, match=words):
            kernel_from_path(path)


@pytest.mark.parametrize("learner", LEARNERS, ids=ids)
@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (users.Lying(0.5), r"contradicts itself: its diag gives k\(x, x\) = 2 .* values give 1"),
        (users.Shapeless(0.5), r"should return shape \(8,\), but it returned \(8, 1\)"),
        (users.Undefined(0.5), "NaN or infinity"),
        (users.OneSided(0.5), "not symmetric"),
    ],
)
def test_kernels_that_lie_are_found_out(learner, kernel, words, X):
    with pytest.raises(ValueError, match=words):
        clone(learner).set_params(kernel=kernel).fit(X)
    with pytest.raises(ValueError, match=words):
        sparse_encode(X, X[:9], kernel=kernel)


def test_a_class_needs_its_arguments(X):
    with pytest.raises(TypeError, match=r"class Gauss, which cannot be made with .*'width'"):
        KernelKSVD(kernel=users.Gauss, kernel_params={"width": 3}).fit(X)
    with pytest.raises(ValueError, match="kernel_params are for functions and classes"):
        KernelKSVD(kernel=RBFKernel(), kernel_params={"gamma": 3}).fit(X)


def test_kscdl_needs_a_gradient(X):
    with pytest.raises(ValueError, match="'Intersection', whose gradient is not known"):
        KSCDL(kernel=users.Intersection()).fit(X)
