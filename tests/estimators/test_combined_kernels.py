"""Sums and products of kernels in estimators: learners, classifiers, grids, model files."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from kernelatoms import (
    KSCDL,
    KSVD,
    ClassDictionaryClassifier,
    CRCClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    SRCClassifier,
    load_model,
    preimage,
    save_model,
    sparse_encode,
)
from kernelatoms.files.models.soundness import check_model
from kernelatoms.similarity import (
    Channels,
    DistanceKernel,
    ProductKernel,
    RBFKernel,
    SumKernel,
    channel_kernel,
    make_distance,
)
from kernelatoms.similarity.distances import Mahalanobis
from similarity import users

N_CHANNELS = 3
UNITS = np.tile([1.0, 30.0, 1e-3], 4)
SCALED = channel_kernel(RBFKernel("scale"), N_CHANNELS)
KERNELS = [
    SCALED,
    channel_kernel(RBFKernel("scale"), N_CHANNELS, by="product"),
    SumKernel([(RBFKernel("scale"), Channels((0, 1), 3)), ("cosine", [2, 5, 11])], weights=[2, 1]),
]
LEARNERS = [
    KernelLinearizer(n_landmarks=15, random_state=0),
    KernelKSVD(6, n_nonzero_coefs=2, max_iter=3, random_state=0),
    KernelMOD(6, n_nonzero_coefs=2, max_iter=3, random_state=0),
    KSCDL(6, alpha=0.1, max_iter=3, random_state=0),
]
CLASSIFIERS = [
    CRCClassifier(),
    SRCClassifier(n_nonzero_coefs=3),
    CRCClassifier(n_neighbors=10),
    ClassDictionaryClassifier(KernelKSVD(4, n_nonzero_coefs=2, max_iter=3), random_state=0),
    make_pipeline(KernelLinearizer(n_landmarks=15, random_state=0),
                  ClassDictionaryClassifier(KSVD(4, n_nonzero_coefs=2), random_state=0)),
]  # fmt: skip


def named(estimator):
    return type(estimator).__name__


def dense(rows):
    return rows.toarray() if hasattr(rows, "toarray") else rows


def with_kernel(model, kernel):
    """Return a clone with this kernel, wherever the model has one."""
    model = clone(model)
    name = next(key for key in sorted(model.get_params(), key=len) if key.endswith("kernel"))
    return model.set_params(**{name: kernel})


@pytest.fixture
def data(rng):
    """Three blobs in every channel, in units of their own."""
    y = np.arange(60) % 3
    return (rng.standard_normal((3, 12))[y] + 0.2 * rng.standard_normal((60, 12))) * UNITS, y


@pytest.mark.parametrize("kernel", KERNELS, ids=["sum", "product", "groups"])
@pytest.mark.parametrize("learner", LEARNERS, ids=named)
def test_learners_take_clone_pickle_and_save_them(learner, kernel, data, tmp_path):
    X = data[0]
    model = with_kernel(learner, kernel).fit(X)
    codes = dense(model.transform(X))
    assert np.abs(codes).max() > 0
    assert model.gamma_ is None
    assert model.fitted_kernel_ == kernel.fitted_to(X) != kernel
    np.testing.assert_array_equal(dense(clone(model).fit(X).transform(X)), codes)
    np.testing.assert_array_equal(dense(pickle.loads(pickle.dumps(model)).transform(X)), codes)
    again, _ = load_model(save_model(model, tmp_path / "m.skops"))
    assert again.kernel == kernel
    assert again.fitted_kernel_ == model.fitted_kernel_
    np.testing.assert_array_equal(dense(again.transform(X)), codes)


@pytest.mark.parametrize("kernel", KERNELS, ids=["sum", "product", "groups"])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=named)
def test_classifiers_take_and_save_them(model, kernel, data, tmp_path):
    X, y = data
    model = with_kernel(model, kernel).fit(X[:30], y[:30])
    assert model.score(X[30:], y[30:]) >= 0.9
    again, _ = load_model(save_model(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_linear_parts_learn_what_the_linear_kernel_learns(rng):
    X = rng.standard_normal((40, 12))
    linear = channel_kernel("linear", 4)
    for learner in (LEARNERS[0], LEARNERS[1], KSCDL(6, alpha=0.1, max_iter=5, random_state=0)):
        expected = with_kernel(learner, "linear").fit(X).transform(X)
        found = with_kernel(learner, linear).fit(X).transform(X)
        np.testing.assert_allclose(dense(found), dense(expected), atol=1e-6)


def test_atoms_move_as_those_of_scaled_rows(data):
    """A product of Gaussians is a Gaussian of scaled columns: the same steps, whatever the unit."""
    X = data[0] / UNITS
    learner = KSCDL(6, alpha=0.05, max_iter=20, random_state=0)
    plain = clone(learner).set_params(kernel=RBFKernel(0.1)).fit(X)
    gammas = [RBFKernel(0.1 / unit**2) for unit in UNITS[:3]]
    product = channel_kernel(gammas, 3, by="product")
    units = clone(learner).set_params(kernel=product).fit(X * UNITS)
    np.testing.assert_allclose(units.components_ / UNITS, plain.components_, atol=1e-5)
    assert units.objective_[-1] == pytest.approx(plain.objective_[-1])


def test_atoms_stay_in_bounds_and_never_get_worse(data, rng):
    """Kernels that are not bounded bound the norms of atoms, whose columns have other units."""
    X = data[0]
    kernel = SumKernel([("linear", Channels(0, 3)), (RBFKernel("scale"), Channels(1, 3))])
    model = KSCDL(6, alpha=0.05, kernel=kernel, max_iter=15, random_state=0).fit(X)
    assert np.linalg.norm(model.components_, axis=1).max() <= model.max_norm_ * (1 + 1e-9)
    assert model.objective_[-1] < model.objective_[0]
    with pytest.raises(ValueError, match=r"parts\[1\], 'chi2', which takes no negative values"):
        KSCDL(6, kernel=SumKernel(["rbf", "chi2"])).fit(X)
    with pytest.raises(ValueError, match=r"gamma='search': kernel 'SumKernel\(rbf\)' has no gamma"):
        KSCDL(6, kernel=SCALED, gamma="search").fit(X)


def test_classes_share_one_kernel(data):
    X, y = data
    learner = KernelKSVD(4, kernel=SCALED, n_nonzero_coefs=2, max_iter=3)
    model = ClassDictionaryClassifier(learner, random_state=0).fit(X, y)
    for own in model.dictionaries_:
        assert own._kernel() == SCALED.fitted_to(X)


def test_the_gamma_of_an_estimator_is_not_theirs(data):
    X = data[0]
    one, two = (KernelLinearizer(SCALED, gamma=gamma).fit(X) for gamma in (None, 7.0))
    np.testing.assert_array_equal(one.transform(X), two.transform(X))


def test_grids_choose_among_them(data):
    X, y = data
    noisy = X.copy()
    noisy[:, ::3] = np.random.default_rng(0).standard_normal(noisy[:, ::3].shape) * 100
    kernels = [channel_kernel(RBFKernel("scale"), 3, weights=w) for w in ([1, 0, 0], [0, 1, 1])]
    search = GridSearchCV(CRCClassifier(), {"kernel": kernels}, cv=3).fit(noisy, y)
    assert search.best_params_["kernel"] == kernels[1]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_functions_take_scale_from_atoms(data):
    X = data[0]
    found = sparse_encode(X, X[:20], n_nonzero_coefs=2, kernel=SCALED)
    settled = SCALED.fitted_to(X[:20])
    expected = sparse_encode(X, X[:20], n_nonzero_coefs=2, kernel=settled)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())


def test_preimages(data, rng):
    X = data[0] / UNITS
    W = rng.random((60, 3)) / 30
    linear = channel_kernel("linear", 3, weights=[1, 2, 3])
    found = preimage(W, X, kernel=linear)
    np.testing.assert_allclose(found.rows, W.T @ X)
    np.testing.assert_allclose(found.error, 0, atol=1e-12)
    near = np.eye(60)[:, :3]
    for kernel in (SCALED, channel_kernel("chi2", 3)):
        found = preimage(near, np.abs(X), kernel=kernel)
        assert found.error.max() < 1e-6
        np.testing.assert_allclose(found.rows, np.abs(X)[:3], atol=1e-6)
    mixed = SumKernel([("chi2", [0, 1]), ("rbf", slice(2, 12))])
    signed = X.copy()
    signed[:, :2] = np.abs(X[:, :2])
    ridge = preimage(W, signed, kernel=mixed, method="ridge").rows
    assert ridge[:, :2].min() >= 0
    assert ridge[:, 2:].min() < 0  # of columns that chi2 does not see


def test_holes_in_a_channel(data):
    X, y = data
    model = CRCClassifier(SCALED).fit(X, y)
    holed = X.copy()
    holed[:, 4] = np.nan
    codes = KernelKSVD(6, kernel=SCALED, n_nonzero_coefs=2, random_state=0).fit(X).transform(holed)
    assert np.isfinite(codes.data).all()
    with pytest.raises(ValueError, match="NaN"):
        model.predict(holed)  # as with any kernel: training rows are compared whole


def test_rows_are_described_once(data, monkeypatch):
    X, y = data
    distance = make_distance("correlation")
    kernel = channel_kernel([DistanceKernel(distance, "scale", 1)] * 2 + ["rbf"], 3)
    described = []
    original = type(distance).featurize
    monkeypatch.setattr(
        type(distance), "featurize",
        lambda self, rows: described.append(len(rows)) or original(self, rows),
    )  # fmt: skip
    model = CRCClassifier(kernel, mu=0.1).fit(X, y)
    model.predict(X[:20])
    described.clear()
    model.predict(X[:20])
    assert sum(many for many in described if many > 1) == 2 * 20  # of two channels, new rows only


def test_model_files_ask_for_kernels_of_users_by_name(data, tmp_path):
    X = data[0]
    kernel = ProductKernel([(users.Gauss("scale"), [0, 3]), (users.inner, [1, 2])])
    model = KernelKSVD(6, kernel=kernel, n_nonzero_coefs=2, random_state=0).fit(X)
    path = save_model(model, tmp_path / "m.skops")
    with pytest.raises(ValueError, match=r"similarity\.users\.Gauss"):
        load_model(path)
    again, _ = load_model(path, trusted=["similarity.users.Gauss", "similarity.users.inner"])
    np.testing.assert_array_equal(dense(again.transform(X)), dense(model.transform(X)))


def test_files_with_broken_parts_are_refused(data):
    X = data[0]
    model = KernelKSVD(6, kernel=SCALED, n_nonzero_coefs=2, random_state=0).fit(X)

    def broken(**attributes):
        kernel = SCALED.fitted_to(X)
        for name, value in attributes.items():
            object.__setattr__(kernel, name, value)
        model.fitted_kernel_ = kernel
        return model

    with pytest.raises(ValueError, match="weights must be 3 numbers"):
        check_model(broken(weights=(1.0,)))
    with pytest.raises(ValueError, match=r"parts\[0\]: kernel must be one of"):
        check_model(broken(parts=(("gauss", slice(None)),)))
    with pytest.raises(ValueError, match=r"parts\[0\]: columns must be of rows with n_features=12"):
        check_model(broken(parts=((RBFKernel(1), slice(0, 20)),)))
    unsettled = SumKernel([(DistanceKernel(Mahalanobis(), 1.0), [0, 1])])
    with pytest.raises(ValueError, match=r"parts\[0\]: .*takes a covariance from training rows"):
        check_model(broken(parts=unsettled.parts))
    model.fitted_kernel_ = ProductKernel(["rbf"])
    with pytest.raises(ValueError, match="fitted_kernel_ is not the kernel"):
        check_model(model)


@pytest.mark.parametrize("learner", LEARNERS + CLASSIFIERS, ids=named)
def test_columns_outside_are_refused_before_work_starts(learner, data):
    X, y = data
    with pytest.raises(
        ValueError, match=r"parts\[0\]: .*a multiple of 5 features, got n_features=12"
    ):
        with_kernel(learner, channel_kernel("rbf", 5)).fit(X, y)
