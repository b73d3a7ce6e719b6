"""Kernels by name, by function and precomputed; what they know of themselves."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.svm import SVC

import oracles.kernels
from contracts.kernel import KernelContract
from kernelatoms.similarity import KERNELS, RBFKernel, make_kernel
from kernelatoms.similarity.factory import names_of_kernels
from kernelatoms.similarity.inner import PolynomialKernel
from kernelatoms.similarity.user_kernels import PrecomputedKernel

INNER = ("linear", "poly", "polynomial", "sigmoid")


@pytest.mark.parametrize("name", KERNELS)
class TestNamed(KernelContract):
    @pytest.fixture(autouse=True)
    def choose(self, name):
        self.name = name

    def make(self):
        return make_kernel(self.name, gamma=0.3, degree=2, coef0=0.5)

    def scale(self, X):
        if self.name == "sigmoid":
            return 1 / np.mean([x @ x for x in X])
        if self.name not in ("laplacian", "chi2"):
            return super().scale(X)
        pairs = [(x, y) for i, x in enumerate(X) for y in X[:i]]
        values = [oracles.kernels.kernel(self.name, x, y, 1, 1, 0) for x, y in pairs]
        return -1 / np.log(values).mean()


class TestDegreeFour(KernelContract):
    def make(self):
        return make_kernel("poly", degree=4, gamma=1, coef0=0)

    def test_is_the_papers_kernel(self, rng):
        X = self.rows(6, rng)
        np.testing.assert_allclose(self.make()(X, X), (X @ X.T) ** 4)


class TestFunction(KernelContract):
    def make(self):
        return make_kernel(lambda X, Y, c: (X @ Y.T + c) ** 2, kernel_params={"c": 3})


@pytest.mark.parametrize("name", KERNELS)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(0, 7),
    m=st.integers(1, 7),
    n_features=st.integers(1, 6),
    gamma=st.sampled_from([0.1, 1.5]),
    degree=st.sampled_from([1, 2, 3, 5, 6, 7, 2.5]),
    coef0=st.sampled_from([0, 0.5]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_one_pair_at_a_time(name, seed, n, m, n_features, gamma, degree, coef0, dtype):
    rng = np.random.default_rng(seed)
    X, Y = (rng.random((count, n_features)).astype(dtype) for count in (n, m))
    X[rng.random(X.shape) < 0.2] = 0  # 0/0 of chi2, and rows of zeros
    kernel = make_kernel(name, gamma=gamma, degree=degree, coef0=coef0)
    naive = [
        [
            oracles.kernels.kernel(name, x.astype(float), y.astype(float), gamma, degree, coef0)
            for y in Y
        ]
        for x in X
    ]
    expected = np.reshape(naive, (n, m))
    rtol = 1e-9 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=rtol, atol=rtol)
    own = np.diagonal(kernel(X, X.copy()))
    np.testing.assert_allclose(kernel.diag(X), own, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_defaults_are_those_of_scikit_learn(name, dtype, rng):
    X, Y = rng.random((9, 5)).astype(dtype), rng.random((4, 5)).astype(dtype)
    expected = pairwise_kernels(X, Y, metric=name)
    np.testing.assert_allclose(make_kernel(name)(X, Y), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stacks_are_many_matrices(name, dtype, rng):
    X, Y = rng.random((6, 1, 5)).astype(dtype), rng.random((6, 4, 5)).astype(dtype)
    kernel = make_kernel(name, gamma=0.4)
    K = kernel(X, Y)
    assert (K.shape, K.dtype) == ((6, 1, 4), dtype)
    one_by_one = np.array([kernel(x, y) for x, y in zip(X, Y, strict=True)])
    np.testing.assert_allclose(K, one_by_one, rtol=1e-5 if dtype == np.float32 else 1e-12)
    np.testing.assert_allclose(kernel(X, Y[0])[:, 0], kernel(X[:, 0], Y[0]), rtol=1e-5)
    assert kernel.diag(Y).shape == (6, 4)
    if kernel.takes_missing:
        X[2, 0, 1] = np.nan
        K = kernel(X, Y)
        one_by_one = np.array([kernel(x, y) for x, y in zip(X, Y, strict=True)])
        np.testing.assert_allclose(K, one_by_one, rtol=1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_what_they_claim(name, rng):
    kernel = make_kernel(name)
    X = rng.random((40, 3))
    if kernel.semidefinite:
        assert np.linalg.eigvalsh(kernel(X, X)).min() > -1e-10
    longer = np.abs(kernel.diag(1e3 * X)).max() > 10 * max(1, np.abs(kernel.diag(X)).max())
    assert kernel.bounded == (not longer) or name == "sigmoid"
    assert kernel.has_gamma == hasattr(kernel, "gamma")
    if kernel.non_negative:
        with pytest.raises(ValueError, match="takes no negative values, and its rows hold -"):
            kernel(X, X - 1)
    else:
        assert np.isfinite(kernel(X, X - 1)).all()
    assert pickle.loads(pickle.dumps(kernel)) == kernel


def test_semidefinite_only_where_it_is_true(rng):
    assert make_kernel("poly", degree=3, coef0=0).semidefinite
    assert not make_kernel("poly", degree=3, coef0=-1).semidefinite
    assert not make_kernel("poly", degree=2.5).semidefinite
    assert not make_kernel("sigmoid").semidefinite
    assert make_kernel("additive_chi2").semidefinite is False
    X = rng.random((20, 3))
    assert np.linalg.eigvalsh(make_kernel("additive_chi2")(X, X)).min() < -0.1


def test_names_come_from_the_table():
    assert names_of_kernels("non_negative") == ("additive_chi2", "chi2")
    assert set(names_of_kernels("has_gradient")) == set(KERNELS) - {"additive_chi2", "chi2"}
    assert set(names_of_kernels("takes_missing")) == set(names_of_kernels("has_gradient"))


class TestGamma:
    @pytest.mark.parametrize("word", ["scale", "auto"])
    def test_words_mean_what_scikit_learn_means(self, word, rng):
        X, y = rng.standard_normal((30, 4)) * 3, np.arange(30) % 2
        kernel = make_kernel("rbf", gamma=word).with_gamma_from(X)
        assert kernel.gamma == pytest.approx(SVC(gamma=word).fit(X, y)._gamma)

    def test_defaults(self, rng):
        X = rng.random((10, 4))
        assert make_kernel("rbf").with_gamma_from(X).gamma == 0.25
        assert make_kernel("chi2").with_gamma_from(X).gamma == 1
        assert make_kernel("chi2", gamma="auto").with_gamma_from(X).gamma == 0.25
        assert make_kernel("rbf", gamma="scale").with_gamma_from(np.ones((3, 2))).gamma == 1
        assert make_kernel("linear", gamma="scale").with_gamma_from(X) == make_kernel("linear")

    @pytest.mark.parametrize("name", ["rbf", "laplacian", "chi2"])
    def test_with_spread_rows_at_the_mean_distance_are_similar_by_a_half(self, name, rng):
        X = rng.random((40, 4)) + 5  # "scale" would depend on where the origin is
        kernel = make_kernel(name, gamma="spread").with_gamma_from(X)
        one, two = np.triu_indices(40, 1)
        sizes = kernel.what_gamma_multiplies(X[one], X[two])
        at_mean = np.exp(-kernel.gamma * sizes.mean())
        assert at_mean == pytest.approx(0.5, rel=0.02)  # each row with 16 others, not with all 39
        few = make_kernel(name, gamma="spread").with_gamma_from(X[:10])
        one, two = np.triu_indices(10, 1)
        sizes = kernel.what_gamma_multiplies(X[one], X[two])
        assert few.gamma == pytest.approx(np.log(2) / sizes.mean(), rel=1e-9)  # all pairs

    def test_spread_of_few_or_equal_rows_and_of_many(self, rng):
        assert RBFKernel("spread").with_gamma_from(np.ones((1, 3))).gamma == 1
        assert RBFKernel("spread").with_gamma_from(np.ones((9, 3))).gamma == 1
        # Evenly spaced rows of a sorted table, near and far: not of its first ones alone.
        X = np.repeat([[0.0], [1.0], [2.0], [3.0]], 1000, axis=0)
        mean = np.mean((X[::100] - X[::100].T) ** 2) * 40 / 39
        assert RBFKernel("spread").with_gamma_from(X).gamma == pytest.approx(
            np.log(2) / mean, rel=0.1
        )
        far = rng.standard_normal((20, 3)).astype(np.float32) * np.float32(1e25)
        gamma = RBFKernel("spread").with_gamma_from(far).gamma
        assert np.isfinite(gamma)
        assert 0 < gamma < 1e-48

    def test_spread_of_inner_products_distances_and_users(self, rng):
        X = rng.standard_normal((30, 4))
        poly = make_kernel("poly", gamma="spread").with_gamma_from(X)
        assert poly.gamma == pytest.approx(np.log(2) / np.mean(np.sum(X**2, axis=1)))
        distance, rbf = (
            make_kernel(name, gamma="spread").with_gamma_from(X).gamma for name in ("l2", "rbf")
        )
        assert distance == pytest.approx(rbf, rel=0.05)

        class Silent:
            gamma = "spread"

            def values(self, X, Y):
                return X @ Y.T

        with pytest.raises(ValueError, match="does not say what its gamma multiplies"):
            make_kernel(Silent()).with_gamma_from(X)

    def test_scale_needs_rows(self, rng):
        with pytest.raises(ValueError, match="gamma='scale' is taken from rows"):
            make_kernel("rbf", gamma="scale")(np.ones((2, 2)), np.ones((2, 2)))

    @pytest.mark.parametrize("gamma", [0, -1, np.nan, np.inf, "wide", True, [1]])
    def test_what_is_none_is_refused(self, gamma):
        with pytest.raises(
            ValueError, match=r"gamma must be above 0.*'scale', 'auto', 'spread'; got"
        ):
            make_kernel("rbf", gamma=gamma)
        with pytest.raises(ValueError, match="gamma must be above 0"):
            RBFKernel(gamma)

    @pytest.mark.parametrize("name", [n for n in KERNELS if make_kernel(n).has_gamma])
    def test_what_it_multiplies_scales_it_away(self, name, rng):
        """k of rows scaled by s is k with gamma scaled as what it multiplies is."""
        X, Y = rng.random((6, 4)), rng.random((6, 4))
        kernel = make_kernel(name)
        factor = kernel.what_gamma_multiplies(3 * X, 3 * Y) / kernel.what_gamma_multiplies(X, Y)
        np.testing.assert_allclose(factor, factor[0])
        wider = kernel.with_gamma(0.2 / factor[0])
        np.testing.assert_allclose(wider(3 * X, 3 * Y), kernel.with_gamma(0.2)(X, Y))


class TestBadKernels:
    @pytest.mark.parametrize("kernel", ["gauss", 3, None, {"values": 1}, object, object()])
    def test_what_is_no_kernel(self, kernel):
        with pytest.raises(ValueError, match=r"kernel must be one of .*'rbf'.*got "):
            make_kernel(kernel)

    def test_unknown_parameter(self):
        with pytest.raises(ValueError, match="kernel_params holds width, which kernel 'rbf'"):
            make_kernel("rbf", kernel_params={"width": 3})
        with pytest.raises(TypeError, match="kernel_params must be a dictionary"):
            make_kernel("rbf", kernel_params=3)

    @pytest.mark.parametrize("name", ["degree", "coef0"])
    def test_bad_numbers(self, name):
        with pytest.raises(ValueError, match=f"{name} must be a finite number, got 'x'"):
            make_kernel("poly", **{name: "x"})
        with pytest.raises(ValueError, match=f"{name} must be a finite number"):
            PolynomialKernel(**{name: np.nan})

    def test_function_of_wrong_shape(self, rng):
        kernel = make_kernel(lambda X, Y: X @ Y[0])
        with pytest.raises(ValueError, match=r"should return shape \(3, 3\).*returned \(3,\)"):
            kernel(np.ones((3, 2)), np.ones((3, 2)))

    def test_function_that_overflows(self):
        kernel = make_kernel(lambda X, Y: np.full((len(X), len(Y)), np.inf))
        with pytest.raises(ValueError, match="NaN or infinity"):
            kernel(np.ones((3, 2)), np.ones((3, 2)))


def test_precomputed_reads_columns(rng):
    X = rng.standard_normal((6, 3))
    K = rbf_kernel(X)
    kernel = make_kernel("precomputed")
    assert isinstance(kernel, PrecomputedKernel)
    np.testing.assert_array_equal(kernel(K, np.array([[4], [1]])), K[:, [4, 1]])
    np.testing.assert_array_equal(kernel.diag(K), np.diagonal(K))
    with pytest.raises(ValueError, match="not known"):
        kernel.diag(K[:2])
