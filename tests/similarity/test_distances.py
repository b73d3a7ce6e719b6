"""Distances by name and of users, and the kernels made of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.distance import DistanceContract
from contracts.kernel import KernelContract
from kernelatoms import KernelKSVD, KernelLinearizer, load_model, save_model, sparse_encode
from kernelatoms.similarity import DISTANCES, Chi2, Distance, DistanceKernel, make_distance
from oracles.kernels import chi2_sum


@pytest.mark.parametrize("name", DISTANCES)
class TestNamed(DistanceContract):
    @pytest.fixture(autouse=True)
    def choose(self, name):
        self.name = name

    def make(self):
        return make_distance(self.name)


@pytest.mark.parametrize("name", DISTANCES)
class TestKernels(KernelContract):
    @pytest.fixture(autouse=True)
    def choose(self, name):
        self.name = name

    def make(self):
        return DistanceKernel(self.name, gamma=0.8, power=1.5)


class Means:
    """A distance of somebody: of the means of rows, described once."""

    def __init__(self):
        self.described = 0

    def describe(self, rows):
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
    naive = {
        "l2": [[np.sqrt(((x - y) ** 2).sum()) for y in wide[1]] for x in wide[0]],
        "chi2": [[chi2_sum(x, y) / 2 for y in wide[1]] for x in wide[0]],
    }
    for name, expected in naive.items():
        distance = make_distance(name)
        D = distance.compare(distance.describe(X), distance.describe(Y))
        np.testing.assert_allclose(D, expected, rtol=rtol, atol=1e-6)
        kernel = DistanceKernel(name, gamma=gamma, power=power)
        K = np.exp(-gamma * np.array(expected) ** power)
        np.testing.assert_allclose(kernel(X, Y), K, rtol=1e-4, atol=1e-3 if power < 1 else 1e-6)
        assert kernel(X, Y).dtype == dtype


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


@pytest.mark.parametrize("distance", ["l2", "chi2", Chi2()])
def test_model_files_hold_them(distance, rng, tmp_path):
    X = rng.random((30, 4))
    kernel = DistanceKernel(distance, gamma=0.4, power=1)
    model = KernelKSVD(5, kernel=kernel, n_nonzero_coefs=2, random_state=0).fit(X)
    assert model.gamma_ == 0.4
    again, _ = load_model(save_model(model, tmp_path / "m.skops"))
    assert again.kernel == kernel
    np.testing.assert_array_equal(again.transform(X).toarray(), model.transform(X).toarray())


class TestBad:
    @pytest.mark.parametrize("distance", ["l1", 3, None, Chi2, object()])
    def test_what_is_no_distance(self, distance):
        with pytest.raises(ValueError, match=r"distance must be one of 'chi2', 'l2', or an object"):
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
        with pytest.raises(ValueError, match=r"'DistanceKernel\(chi2\)' knows no negative values"):
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
