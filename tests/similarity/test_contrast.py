"""A kernel that sees nothing in the training rows is warned of; one that sees something is not."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from kernelatoms import (
    KSAD,
    KSCDL,
    ClassDictionaryClassifier,
    CRCClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    KSADClassifier,
    SRCClassifier,
)
from kernelatoms.similarity import ProductKernel, RBFKernel, SumKernel, make_kernel
from kernelatoms.similarity.contrast import Limits, blind_spot, warn_if_blind
from kernelatoms.similarity.decaying import LaplacianKernel
from kernelatoms.similarity.inner import CosineKernel, LinearKernel, PolynomialKernel, SigmoidKernel

SMALL = {"n_atoms": 4, "n_nonzero_coefs": 2, "max_iter": 1}
ESTIMATORS = [
    KernelLinearizer(n_landmarks=10, random_state=0),
    KernelKSVD(**SMALL, random_state=0),
    KernelMOD(**SMALL, coordinates=KernelLinearizer(n_landmarks=10), random_state=0),
    ClassDictionaryClassifier(KernelKSVD(**SMALL), random_state=0),
    ClassDictionaryClassifier(KernelMOD(**SMALL), calibrate=True, random_state=0),
    KSCDL(4, alpha=1e-3, max_iter=1, random_state=0),
    KSAD(4, random_state=0),
    KSADClassifier(4, random_state=0),
    CRCClassifier("rbf", normalize=False),
    SRCClassifier("rbf", normalize=False),
]


def name_of(model):
    return type(model).__name__


def gamma_of(model, gamma):
    inner = "dictionary__gamma" if "dictionary" in model.get_params(deep=False) else "gamma"
    return type(model)(**model.get_params(deep=False)).set_params(**{inner: gamma})


def heard_of(model, X, y):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(one.message) for one in heard if "sees nothing" in str(one.message)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", ESTIMATORS, ids=name_of)
class TestEstimators:
    def test_say_once_that_gamma_is_too_large(self, model, dtype, rng):
        X, y = (255 * rng.random((60, 20))).astype(dtype), np.arange(60) % 3
        (words,) = heard_of(gamma_of(model, 1 / 20), X, y)
        assert "k(x, y) is 0" in words
        assert "gamma=0.05 is too large" in words
        assert "gamma='scale'" in words

    def test_say_once_that_gamma_is_too_small(self, model, dtype, rng):
        X, y = (1e-6 * rng.random((60, 20))).astype(dtype), np.arange(60) % 3
        (words,) = heard_of(gamma_of(model, 1 / 20), X, y)
        assert "gamma=0.05 is too small" in words

    def test_say_nothing_of_scale(self, model, dtype, rng):
        y = np.arange(60) % 3
        for unit in (1e-6, 1, 255, 1e6):
            X = (unit * rng.random((60, 20))).astype(dtype)
            assert heard_of(gamma_of(model, "scale"), X, y) == []


def test_a_search_for_gamma_is_not_warned_of_its_beginning(rng):
    model = KSCDL(4, gamma="search", max_iter=1, random_state=0)
    assert heard_of(model, 255 * rng.random((60, 20)), None) == []


class TestLegitimate:
    """Nothing is wrong with these rows, or with these kernels."""

    def test_one_hot_rows(self):
        for n in (12, 50, 300):
            X = np.eye(n)
            for gamma in ("scale", "auto", "spread", 0.5, 1.0):
                for kernel in (RBFKernel(gamma), LaplacianKernel(gamma), SigmoidKernel(gamma)):
                    assert blind_spot(kernel.with_gamma_from(X), X) is None
            # Orthogonal rows have nothing in common, whatever gamma is.
            for kernel in (PolynomialKernel(gamma, coef0=0), LinearKernel(), CosineKernel()):
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    warn_if_blind(kernel.with_gamma_from(X), X)

    def test_rows_that_come_more_than_once(self, rng):
        few = 3 * rng.standard_normal((15, 4))
        assert blind_spot(RBFKernel(0.1), few[rng.integers(15, size=500)]) is None
        assert blind_spot(RBFKernel(0.1), np.ones((500, 4))) is None
        assert blind_spot(RBFKernel(0.1), np.repeat(few[:2], 100, axis=0)) is None

    def test_few_rows(self, rng):
        assert blind_spot(RBFKernel(1.0), 1e3 * rng.standard_normal((9, 4))) is None
        assert blind_spot(RBFKernel(1.0), 1e3 * rng.standard_normal((10, 4))) == "unrelated"

    def test_lengths_of_parallel_rows(self, rng):
        X = np.abs(rng.standard_normal((50, 1)))
        assert blind_spot(PolynomialKernel(1.0, coef0=0), X) is None

    def test_narrow_kernels_that_see_their_neighbours(self, rng):
        """Of many rows on a curve those that are looked at first are far from each other."""
        angle = 2 * np.pi * np.sort(rng.random(20_000))
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        gamma = 1e7
        assert blind_spot(RBFKernel(gamma), circle[::150]) == "unrelated"
        assert blind_spot(RBFKernel(gamma), circle) is None
        assert blind_spot(RBFKernel(gamma), circle[rng.permutation(20_000)]) is None

    def test_wide_kernels_that_still_tell_rows_apart(self, rng):
        """Class dictionaries of digits are 98% right where k(x, y) is 1 to eight digits."""
        X = rng.standard_normal((50, 3))
        assert blind_spot(RBFKernel(1e-7), X) is None
        assert blind_spot(RBFKernel(1e-10), X) == "alike"
        assert blind_spot(RBFKernel(1e-5), X.astype(np.float32)) is None
        assert blind_spot(RBFKernel(1e-8), X.astype(np.float32)) == "alike"

    def test_tight_groups(self, rng):
        X = np.repeat(1e3 * rng.standard_normal((40, 3)), 2, axis=0) + rng.standard_normal((80, 3))
        assert blind_spot(RBFKernel(1.0), X) is None

    def test_groups_whose_rows_are_all_alike(self, rng):
        """All values are 0 or 1 here, and tell the groups apart: nothing is too large."""
        centres, noise = 10 * rng.standard_normal((6, 5)), 1e-5 * rng.standard_normal((300, 5))
        six = centres[np.arange(300) % 6] + noise
        two = 1e6 * (np.arange(300) % 2)[:, None] + rng.standard_normal((300, 5))
        assert blind_spot(RBFKernel(0.2), six) is None
        assert blind_spot(RBFKernel(1e-10), two) is None
        crc = CRCClassifier("rbf", gamma=0.2, normalize=False).fit(six[:200], np.arange(200) % 6)
        assert crc.score(six[200:], np.arange(200, 300) % 6) == 1

    def test_kernels_without_gamma(self, rng):
        X = 1e9 + rng.standard_normal((50, 3))
        for kernel in ("linear", "cosine", "precomputed", lambda A, B: np.eye(len(A), len(B))):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warn_if_blind(make_kernel(kernel), X)
        assert heard_of(KernelLinearizer("precomputed"), np.eye(50), None) == []

    def test_rows_that_the_kernel_refuses(self):
        assert blind_spot(RBFKernel(1.0), np.diag(np.full(20, 1e200))) is None


class TestBlind:
    def test_rows_far_from_zero(self, rng):
        """scale cannot help here: what differs is beyond the digits."""
        X = 1e9 + rng.standard_normal((50, 3))
        for kernel in (PolynomialKernel("scale"), SigmoidKernel("scale"), SigmoidKernel(1.0)):
            assert blind_spot(kernel.with_gamma_from(X), X) == "alike"

    def test_one_huge_value(self, rng):
        X = rng.standard_normal((500, 3))
        X[7, 1] = 1e12
        with pytest.warns(UserWarning, match=r"sees nothing.*too small.*scale the rows"):
            KernelLinearizer().fit(X)

    def test_rows_that_rounding_parts_from_themselves(self, rng):
        """|x|^2 - 2 x'x + |x|^2 is not 0, and a large gamma makes much of it."""
        X = 100 + rng.standard_normal((300, 64))
        for gamma in (1e2, 1e4, 1e6, 1e9):
            assert blind_spot(RBFKernel(gamma), X) == "unrelated"
            assert blind_spot(RBFKernel(gamma), np.concatenate([X, X])) == "unrelated"

    def test_constants_below_zero(self, rng):
        """tanh(-1) for all pairs, and (-1)^3."""
        X = rng.standard_normal((50, 5))
        for kernel in (SigmoidKernel(1e-12, coef0=-1), PolynomialKernel(1e-12, coef0=-1)):
            assert blind_spot(kernel, X) == "alike"

    def test_saturated_sigmoid(self, rng):
        assert blind_spot(SigmoidKernel(0.05), 255 * rng.random((50, 20))) == "alike"

    def test_no_row_has_a_neighbour_among_thousands(self, rng):
        X = 255 * rng.random((9_000, 20))
        assert blind_spot(RBFKernel(0.05), X) == "unrelated"

    @pytest.mark.parametrize("combine", [SumKernel, ProductKernel])
    def test_a_part_is_named(self, combine, rng):
        X = rng.random((50, 20)) * np.where(np.arange(20) < 10, 1, 255)
        kernel = combine([(RBFKernel(0.1), slice(10)), (RBFKernel(0.1), slice(10, 20))])
        with pytest.warns(UserWarning, match=r"parts\[1\].*'rbf' sees nothing.*too large"):
            warn_if_blind(kernel, X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_if_blind(combine([("rbf", slice(10)), ("rbf", slice(10, 20))]).fitted_to(X), X)

    def test_the_random_state_is_not_touched(self, rng):
        X = 255 * rng.random((60, 20))
        np.random.seed(3)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        blind_spot(RBFKernel(0.05), X)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


class TestEdges:
    """All pairs of one-hot rows are at the squared distance 2."""

    @pytest.mark.parametrize(("dtype", "edge"), [(np.float64, 2.0**-26), (np.float32, 10 * 2**-23)])
    def test_rounding(self, dtype, edge):
        X = np.eye(20, dtype=dtype)
        for share, alike in ((0.99, "alike"), (1.01, None)):  # of |phi(x) - phi(y)|^2 = 4 gamma
            assert blind_spot(RBFKernel(share * edge / 4), X) == alike
        for share, unrelated in ((0.99, "unrelated"), (1.01, None)):
            assert blind_spot(RBFKernel(-np.log(share * edge) / 2), X) == unrelated

    def test_limits(self):
        X, limits = np.eye(20), Limits(alike=1e-3, unrelated=0.01)
        for share, alike, unrelated in ((0.99, "alike", "unrelated"), (1.01, None, None)):
            assert blind_spot(RBFKernel(share * 1e-3 / 2), X, limits) == alike
            assert blind_spot(RBFKernel(-np.log(share * 0.01) / 2), X, limits) == unrelated

    def test_nine_in_ten_pairs(self, rng):
        """38 of 40 rows have 90.1% of the pairs, 37 have 85.4%."""
        for n_alike, found in ((38, "alike"), (37, None)):
            X = np.where(np.arange(40)[:, None] < n_alike, 1e-6, 1) * rng.standard_normal((40, 3))
            assert blind_spot(RBFKernel(1.0), X) == found

    def test_64_rows_from_the_first_to_the_last(self, rng):
        X = rng.standard_normal((1000, 3))
        X[[int(999 * i / 63) for i in range(64)]] *= 1e-6
        assert blind_spot(RBFKernel(1.0), X) == "alike"
        assert blind_spot(RBFKernel(1.0), X[1:]) is None


class TestLimits:
    """Estimators that see less than rounding would let them say so."""

    @pytest.fixture(name="digits")
    def some_digits(self):
        X, y = load_digits(return_X_y=True)
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
        return X[:300], y[:300], X[300:500], y[300:500]

    def test_squares_of_kernel_values(self, digits):
        """Ridge codes in columns of kernel values invert their squares."""
        X, y, new, labels = digits
        blind = CRCClassifier("rbf", gamma=1e-7)
        (words,) = heard_of(blind, X, y)
        assert "k(x, y) is k(x, x), to 1e-06 of it. gamma=1e-07 is too small" in words
        assert blind.score(new, labels) < 0.2
        for unlike in ({"projection": None}, {"n_neighbors": 20}, {"gamma": 1e-4}):
            model = CRCClassifier("rbf", gamma=1e-7).set_params(**unlike)
            assert heard_of(model, X, y) == []
            assert model.score(new, labels) > 0.8

    def test_similarities_below_alpha(self, digits):
        """l1 codes leave out what is similar by less than alpha: nothing is left of any row."""
        X, y, new, labels = digits
        blind = SRCClassifier("rbf", gamma=200)
        (words,) = heard_of(blind, X, y)
        assert "k(x, y) is 0, to 0.01 of k(x, x). gamma=200 is too large" in words
        assert blind.score(new, labels) < 0.2
        assert heard_of(SRCClassifier("rbf", gamma=200, alpha=1e-6), X, y) == []
        for seeing in ({"gamma": 200, "n_nonzero_coefs": 5}, {"gamma": 10}):
            model = SRCClassifier("rbf", **seeing)
            assert heard_of(model, X, y) == []
            assert model.score(new, labels) > 0.8

    @pytest.mark.parametrize("model", [KernelLinearizer(), KSAD(4), KSADClassifier(4)], ids=name_of)
    def test_maps_of_float32(self, model, digits):
        """All but one of their eigenvalues are noise."""
        X, y, _, _ = digits
        model = gamma_of(model, 1e-5)
        assert heard_of(model, X, y) == []
        (words,) = heard_of(model, X.astype(np.float32), y)
        assert "to 3.05e-05 of it. gamma=1e-05 is too small" in words
        assert heard_of(gamma_of(model, 1e-3), X.astype(np.float32), y) == []
