"""Distances by name and of users, and the kernels made of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.distance import DistanceContract
from contracts.kernel import KernelContract
from kernelatoms import (
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelLinearizer,
    load_model,
    save_model,
    sparse_encode,
)
from kernelatoms.files.models.soundness import check_model
from kernelatoms.similarity import (
    DISTANCES,
    CentredKernel,
    Distance,
    DistanceKernel,
    make_distance,
    make_kernel,
)
from kernelatoms.similarity.decaying import Chi2Kernel
from kernelatoms.similarity.distances import Chi2, Mahalanobis
from oracles.kernels import chi2_sum

# Rows of 30 features, which are images to those who ask for a shape.
SHAPE = {"image_shape": (6, 5)}
PARAMS = {
    "lbp-chi2": SHAPE,
    "shape-context": SHAPE | {"n_points": 9},
    "tangent": SHAPE,
    "unified": {"distances": ("l1", "tangent", "mahalanobis"), "form": "sum"} | SHAPE,
}
TRAINING = np.random.default_rng(5).random((40, 30))


def make(name):
    return make_distance(name, **PARAMS.get(name, {})).fitted_to(TRAINING)


class Rows:
    """Contracts on rows that are images too."""

    @pytest.fixture(autouse=True)
    def choose(self, name):
        self.name = name

    def rows(self, n, rng, dtype=np.float64):
        return rng.random((n, 30)).astype(dtype)


@pytest.mark.parametrize("name", DISTANCES)
class TestNamed(Rows, DistanceContract):
    def make(self):
        return make(self.name)

    def test_descriptors_are_rows_of_numbers(self, rng):
        for dtype in (np.float32, np.float64):
            A = self.make().featurize(self.rows(7, rng, dtype))
            assert A.shape[0] == 7
            assert A.ndim == 2
            assert A.dtype == dtype

    def test_fitted_once_it_stays(self, rng):
        distance = self.make()
        assert distance.fitted_to(self.rows(9, rng)) is distance
        assert distance == self.make()
        assert hash(distance) == hash(self.make())
        assert distance.parts == (distance,)


@pytest.mark.parametrize("power", [1, 1.5, 2])
@pytest.mark.parametrize("name", DISTANCES)
class TestKernels(Rows, KernelContract):
    @pytest.fixture(autouse=True)
    def choose_power(self, power):
        self.power = power

    def make(self):
        return DistanceKernel(make(self.name), gamma=0.8, power=self.power)

    def scale(self, X):
        return 1 / np.mean([self.power_of(x, y) for x, y in itertools.combinations(X, 2)])

    def power_of(self, x, y):
        distance = make(self.name)
        return (
            distance.compare(distance.featurize(x[None]), distance.featurize(y[None])) ** self.power
        )


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("name", DISTANCES)
class TestCentred(Rows, KernelContract):
    @pytest.fixture(autouse=True)
    def choose_power(self, power):
        self.power = power

    def make(self):
        return CentredKernel(make(self.name), self.power, origin=TRAINING[0])


class Means:
    """A distance of somebody: of the means of rows, described once."""

    def __init__(self):
        self.described = 0

    def featurize(self, rows):
        self.described += 1
        return rows.mean(axis=1)

    def compare(self, A, B):
        return np.abs(A[:, None] - B)


class TestMeans(DistanceContract):
    def make(self):
        return make_distance(Means())


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 6),
    m=st.integers(1, 6),
    n_features=st.integers(1, 5),
    dtype=st.sampled_from([np.float32, np.float64]),
    gamma=st.sampled_from([0.3, 2.0]),
    power=st.sampled_from([1, 2, 0.5]),
)
def test_one_pair_at_a_time(seed, n, m, n_features, dtype, gamma, power):
    rng = np.random.default_rng(seed)
    X, Y = (np.round(rng.random((k, n_features)), 1).astype(dtype) for k in (n, m))  # 0/0 too
    rtol = 1e-7 if dtype == np.float64 else 1e-3
    wide = X.astype(float), Y.astype(float)
    covariance = np.cov(TRAINING[:, :n_features].T, bias=True).reshape(n_features, n_features)
    covariance += 0.3 * np.trace(covariance) / n_features * np.eye(n_features)
    naive = {
        "l2": lambda x, y: np.sqrt(((x - y) ** 2).sum()),
        "l1": lambda x, y: sum(abs(x - y)),
        "linf": lambda x, y: max(abs(x - y)),
        "chi2": lambda x, y: chi2_sum(x, y) / 2,
        "correlation": one_minus_cosine,
        "mahalanobis": lambda x, y: np.sqrt((x - y) @ np.linalg.solve(covariance, x - y)),
    }
    assert set(naive) == set(DISTANCES) - set(PARAMS)
    for name, formula in naive.items():
        expected = [[formula(x, y) for y in wide[1]] for x in wide[0]]
        params = {"ridge": 0.3} if name == "mahalanobis" else {}
        distance = make_distance(name, **params).fitted_to(TRAINING[:, :n_features])
        D = distance.compare(distance.featurize(X), distance.featurize(Y))
        np.testing.assert_allclose(D, expected, rtol=rtol, atol=1e-6)
        kernel = DistanceKernel(distance, gamma=gamma, power=power)
        K = np.exp(-gamma * np.array(expected) ** power)
        np.testing.assert_allclose(kernel(X, Y), K, rtol=1e-4, atol=1e-3 if power < 1 else 1e-6)
        assert kernel(X, Y).dtype == dtype


def one_minus_cosine(x, y):
    if not x.any() or not y.any():
        return float(x.any() or y.any())
    return 1 - x @ y / np.sqrt((x @ x) * (y @ y))


def test_far_from_one_nothing_overflows(rng):
    for size in (1e-300, 1e300):
        X = rng.random((5, 8)) * size
        for name in ("l1", "linf", "chi2", "correlation"):
            near, far = (make_distance(name).featurize(rows) for rows in (X / size, X))
            times = 1 if name == "correlation" else size
            expected = make_distance(name).compare(near, near) * times
            np.testing.assert_allclose(make_distance(name).compare(far, far), expected, rtol=1e-9)


def test_the_centred_form_of_l2_is_the_inner_product(rng):
    X, Y = rng.standard_normal((6, 4)), rng.standard_normal((5, 4))
    np.testing.assert_allclose(CentredKernel("l2")(X, Y), X @ Y.T, atol=1e-12)
    o = rng.standard_normal(4)
    there = CentredKernel("l2", origin=o)
    np.testing.assert_allclose(there(X, Y), (X - o) @ (Y - o).T, atol=1e-12)
    np.testing.assert_allclose(there.diag(X), np.square(X - o).sum(axis=1))
    root = CentredKernel("l2", power=1)
    expected = [[(np.hypot.reduce(x) + np.hypot.reduce(y) - np.hypot.reduce(x - y)) / 2
                 for y in Y] for x in X]  # fmt: skip
    np.testing.assert_allclose(root(X, Y), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "power", "known"),
    [("l2", 2, True), ("l2", 2.1, None), ("l1", 1, True), ("l1", 1.1, None), ("linf", 0.1, None),
     ("chi2", 1, True), ("chi2", 1.1, None), ("correlation", 1, True), ("correlation", 2, None),
     ("mahalanobis", 2, True), ("mahalanobis", 3, None)],
)  # fmt: skip
def test_what_is_known_to_be_semidefinite(name, power, known):
    assert DistanceKernel(name, power=power).semidefinite is known
    assert CentredKernel(name, power=power).semidefinite is known
    assert DistanceKernel(name, power=power).for_features(4).semidefinite is known


def test_l2_is_the_rbf_kernel(rng):
    X = rng.random((30, 4))
    options = {"n_nonzero_coefs": 2, "sparse_output": False}
    mine = sparse_encode(X, X[:9], kernel=DistanceKernel("l2", gamma=0.7), **options)
    named = sparse_encode(X, X[:9], kernel="rbf", gamma=0.7, **options)
    np.testing.assert_allclose(mine, named, atol=1e-9)


def test_chi2_at_half_the_gamma_is_the_chi2_kernel(rng):
    X = rng.random((30, 4))
    one = KernelLinearizer("chi2", gamma=0.4, random_state=0).fit(X)
    two = KernelLinearizer(DistanceKernel(Chi2(), 0.8, 1), random_state=0).fit(X)
    np.testing.assert_allclose(one.transform(X), two.transform(X), atol=1e-8)


def test_words_for_gamma_and_a_search(rng):
    X = rng.random((20, 4))
    assert DistanceKernel("l2", None).with_gamma_from(X).gamma == 0.5
    assert DistanceKernel("l2", "auto").with_gamma_from(X).gamma == 0.25
    sizes = DistanceKernel("l2").what_gamma_multiplies(X, X[::-1])
    np.testing.assert_allclose(sizes, np.square(X - X[::-1]).sum(axis=1))
    sizes = DistanceKernel(Means(), power=1).what_gamma_multiplies(X, X[::-1])
    np.testing.assert_allclose(sizes, np.abs(X.mean(axis=1) - X[::-1].mean(axis=1)))
    assert DistanceKernel("l2", "scale").with_gamma_from(X[:1]).gamma == 1
    many = rng.random((1000, 4))
    some = many[[int(i * 999 / 255) for i in range(256)]]
    mean = np.mean([abs(a - b).max() for a, b in itertools.combinations(some, 2)])
    gamma = DistanceKernel("linf", "scale", 1).with_gamma_from(many).gamma
    assert gamma == pytest.approx(1 / mean)


def test_by_name_as_kernels(rng):
    X = rng.random((9, 30))
    for name in DISTANCES:
        kernel = make_kernel(name, kernel_params=PARAMS.get(name)).with_gamma_from(X)
        if name == "chi2":
            assert isinstance(kernel, Chi2Kernel)  # the kernel of that name, as before
        else:
            own = make_distance(name, **PARAMS.get(name, {})).fitted_to(X)
            assert kernel == DistanceKernel(own, 0.5, 2)
    params = {"power": 1, "ridge": 0.3}
    kernel = make_kernel("mahalanobis", gamma=0.1, kernel_params=params)
    assert kernel == DistanceKernel(Mahalanobis(0.3), 0.1, 1)
    with pytest.raises(ValueError, match=r"rigde, which .* not take; it takes power, ridge, whit"):
        make_kernel("mahalanobis", kernel_params={"rigde": 1})
    with pytest.raises(ValueError, match=r"'rbf', 'sigmoid', .*'l1'.*'mahalanobis'"):
        make_kernel("l7")


@pytest.mark.parametrize("distance", ["l2", "chi2", *map(make, DISTANCES)], ids=str)
def test_model_files_hold_them(distance, rng, tmp_path):
    X = rng.random((30, 30))
    kernel = DistanceKernel(distance, gamma=0.4, power=1)
    model = KernelKSVD(5, kernel=kernel, n_nonzero_coefs=2, random_state=0).fit(X)
    assert model.gamma_ == 0.4
    again, _ = load_model(save_model(model, tmp_path / "m.skops"))
    assert again.kernel == kernel
    np.testing.assert_array_equal(again.transform(X).toarray(), model.transform(X).toarray())


def test_model_files_hold_centred_kernels(rng, tmp_path):
    X = rng.random((30, 4))
    kernel = CentredKernel(Mahalanobis(), origin=X.mean(axis=0))
    model = KernelKSVD(5, kernel=kernel, n_nonzero_coefs=2, random_state=0).fit(X)
    assert model.gamma_ is None
    again, _ = load_model(save_model(model, tmp_path / "m.skops"))
    assert again.kernel == kernel
    assert again.fitted_kernel_ == kernel.fitted_to(X) != kernel
    np.testing.assert_array_equal(again.transform(X).toarray(), model.transform(X).toarray())


def test_files_with_other_kernels_than_asked_for_are_refused(rng):
    X = rng.random((30, 4))
    model = KernelKSVD(5, kernel="mahalanobis", n_nonzero_coefs=2, random_state=0).fit(X)
    model.fitted_kernel_ = CentredKernel("l2")
    with pytest.raises(ValueError, match="fitted_kernel_ is not the kernel"):
        check_model(model)
    model.fitted_kernel_ = DistanceKernel(Mahalanobis().fitted_to(X))
    object.__setattr__(model.fitted_kernel_.distance, "whitening", np.full((4, 4), np.nan))
    with pytest.raises(ValueError, match="whitening must be a square array"):
        check_model(model)
    model.fitted_kernel_ = DistanceKernel(Mahalanobis())
    with pytest.raises(ValueError, match="takes a covariance from training rows"):
        check_model(model)


class TestSettled:
    """What a distance takes from training rows stays with the model."""

    def test_a_learner_keeps_it(self, rng, tmp_path):
        X = rng.random((60, 6)) * [1, 1, 1, 1, 9, 50]
        by_name = {"kernel": "mahalanobis", "gamma": "scale"}
        model = KernelKSVD(5, n_nonzero_coefs=2, random_state=0, **by_name).fit(X)
        fitted = model.fitted_kernel_
        assert fitted.distance == Mahalanobis().fitted_to(X)
        twin = KernelKSVD(
            5, n_nonzero_coefs=2, random_state=0, kernel=DistanceKernel(fitted.distance, "scale")
        ).fit(X)
        assert not hasattr(twin, "fitted_kernel_")
        codes = model.transform(X).toarray()
        np.testing.assert_array_equal(codes, twin.transform(X).toarray())
        again, _ = load_model(save_model(model, tmp_path / "m.skops"))
        np.testing.assert_array_equal(again.transform(X).toarray(), codes)
        model.set_params(kernel="rbf", gamma=0.1).fit(X)
        assert not hasattr(model, "fitted_kernel_")

    def test_classes_share_it(self, rng):
        X, y = rng.random((60, 6)), np.repeat([0, 1], 30)
        learner = KernelKSVD(3, kernel="mahalanobis", n_nonzero_coefs=2)
        model = ClassDictionaryClassifier(learner, random_state=0).fit(X, y)
        for own in model.dictionaries_:
            assert own._kernel().distance == Mahalanobis().fitted_to(X)

    def test_it_is_asked_for(self, rng):
        X = rng.random((9, 3))
        with pytest.raises(ValueError, match=r"takes a covariance from training rows.*fitted_to"):
            DistanceKernel("mahalanobis")(X, X)
        with pytest.raises(ValueError, match="fitted to rows of 3 features, and these have 2"):
            Mahalanobis().fitted_to(X).featurize(X[:, :2])
        with pytest.raises(ValueError, match="needs training rows that differ"):
            Mahalanobis().fitted_to(np.ones((5, 3)))
        with pytest.raises(ValueError, match=r"of 2 training rows of 3 .* a ridge above 0"):
            Mahalanobis(ridge=0).fitted_to(X[:2])

    def test_a_users_distance_may_settle_too(self, rng):
        class Scaled(Means):
            def __init__(self, scale=None):
                super().__init__()
                self.scale = scale

            def fitted_to(self, rows):
                return self if self.scale else Scaled(rows.std())

        X = rng.random((9, 3))
        kernel = DistanceKernel(Scaled()).with_gamma_from(X)
        assert kernel.distance.scale == X.std()
        assert kernel.fitted_to(X + 1) is kernel


class TestBad:
    def test_parameters_of_distances(self):
        with pytest.raises(ValueError, match="'l2' does not take ridge, side; it takes no param"):
            make_distance("l2", side=1, ridge=2)
        with pytest.raises(ValueError, match="'mahalanobis' does not take side; it takes ridge, w"):
            make_distance("mahalanobis", side=1)
        with pytest.raises(ValueError, match="side belong to distances by name"):
            make_distance(Chi2(), side=1)
        with pytest.raises(ValueError, match="ridge must be from 0, got -1"):
            Mahalanobis(-1)
        for bad in ([[1.0]], np.ones((2, 3)), np.full((2, 2), np.nan), np.eye(2, dtype=int)):
            with pytest.raises(ValueError, match="whitening must be a square array"):
                Mahalanobis(0.1, bad)
        for bad in ("zero", np.ones((2, 2)), [np.inf]):
            with pytest.raises(ValueError, match="origin must be a row of finite numbers"):
                CentredKernel("l2", origin=bad)
        with pytest.raises(ValueError, match="origin must have n_features=2 numbers, got 3"):
            CentredKernel("l2", origin=[1, 2, 3])(np.ones((1, 2)), np.ones((1, 2)))
        with pytest.raises(ValueError, match=r"gamma='auto' is taken from rows.*with_gamma_from"):
            DistanceKernel("l2", "auto").for_features(4)
        with pytest.raises(ValueError, match=r"rows must be a matrix .*got shape \(3,\)"):
            make_distance("l1").featurize(np.ones(3))
        with pytest.raises(ValueError, match="as many features"):
            make_distance("l1").compare(np.ones((2, 3)), np.ones((2, 4)))

    def test_negative_rows_are_described_by_no_chi2(self):
        with pytest.raises(ValueError, match="'chi2' takes no negative values, and rows hold -2"):
            make_distance("chi2").featurize(np.array([[1.0, -2.0]]))

    @pytest.mark.parametrize("distance", ["l7", 3, None, Chi2, object()])
    def test_what_is_no_distance(self, distance):
        with pytest.raises(ValueError, match=r"distance must be one of 'chi2', .*, or an object"):
            make_distance(distance)
        with pytest.raises(ValueError, match="distance must be one of"):
            DistanceKernel(distance)

    def test_parameters(self):
        with pytest.raises(ValueError, match="gamma must be above 0"):
            DistanceKernel("l2", gamma=0)
        with pytest.raises(ValueError, match="power must be above 0, got 0"):
            DistanceKernel("l2", power=0)
        with pytest.raises(ValueError, match="power must be a finite number"):
            DistanceKernel("l2", power="two")

    def test_negative_rows_under_chi2(self, rng):
        X = rng.standard_normal((9, 3))
        with pytest.raises(ValueError, match=r"'DistanceKernel\(chi2\)' takes no negative values"):
            KernelLinearizer(DistanceKernel("chi2")).fit(X)

    def test_distances_that_lie(self, rng):
        class Lying(Distance):
            def __init__(self, answer):
                self.answer = answer

            def compare(self, A, B):
                return self.answer(A, B)

        X = rng.random((9, 3))
        for answer, words in (
            (lambda A, B: np.zeros(3), r"should return shape \(8, 8\), but it returned \(3,\)"),
            (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN or infinity"),
            (lambda A, B: A @ B.T - 1, "is negative"),
            (lambda A, B: np.ones((len(A), len(B))), "contradicts itself"),
            (lambda A, B: np.abs(A[:, :1] - 2 * B[:, 0]), "contradicts itself|not symmetric"),
        ):
            with pytest.raises(ValueError, match=words):
                KernelLinearizer(DistanceKernel(Lying(answer))).fit(X)

    def test_no_feature_space(self, rng):
        """exp(-d^2) of chi2 need not be positive semi-definite: it is checked."""
        assert DistanceKernel("chi2").semidefinite is None
        angles = np.linspace(0, np.pi, 12)[:, None]

        class Around(Distance):
            def compare(self, A, B):
                difference = np.abs(A - B.T)
                return np.minimum(difference, 2 * np.pi - difference)

        with pytest.raises(ValueError, match="not positive semi-definite"):
            KernelKSVD(3, kernel=DistanceKernel(Around(), gamma=0.2), n_nonzero_coefs=1).fit(
                2 * angles
            )


def test_a_signal_or_an_atom_may_be_the_origin(rng):
    X = rng.standard_normal((9, 4))
    kernel = CentredKernel("l2", origin=X[3])
    codes = sparse_encode(X, X[2:8], kernel=kernel, n_nonzero_coefs=2, sparse_output=False)
    expected = sparse_encode(X - X[3], X[2:8] - X[3], n_nonzero_coefs=2, sparse_output=False)
    np.testing.assert_allclose(codes, expected, atol=1e-9)
