"""Tangent distance, local binary patterns, shape contexts: naive versions, published properties."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from kernelatoms.engine import cpu
from kernelatoms.similarity import make_distance
from kernelatoms.similarity.images import LBPChi2, ShapeContext, Tangent
from oracles import image_distances as naive

seeds = st.integers(0, 2**31)
dtypes = st.sampled_from([np.float32, np.float64])


def between(distance, X, Y):
    return distance.compare(distance.featurize(X), distance.featurize(Y))


def flat(images):
    return np.reshape(images, (len(images), -1))


def digit(angle=0.0, down=0.0, across=0.0, size=1.0, width=1.0, n=20):
    """A seven drawn on a grid of pixels, turned by an angle in degrees, moved and stretched."""
    i, j = np.mgrid[:n, :n] - (n - 1) / 2
    turn = np.radians(angle)
    y = (np.cos(turn) * (i - down) + np.sin(turn) * (j - across)) / size
    x = (-np.sin(turn) * (i - down) + np.cos(turn) * (j - across)) / size
    far = np.minimum(to_segment(y, x, (-5, -4), (-5, 4)), to_segment(y, x, (-5, 4), (6, -1)))
    return np.exp(-((far / (1.8 * width)) ** 2))


def to_segment(y, x, start, stop):
    (a, b), (c, d) = start, stop
    t = np.clip(((y - a) * (c - a) + (x - b) * (d - b)) / ((c - a) ** 2 + (d - b) ** 2), 0, 1)
    return np.hypot(y - a - t * (c - a), x - b - t * (d - b))


class TestTangent:
    @given(
        seed=seeds,
        shape=st.tuples(st.integers(1, 7), st.integers(1, 7)),
        sides=st.sampled_from([1, 2]),
        sigma=st.sampled_from([0, 0.5, 0.9]),
        dtype=dtypes,
    )
    def test_is_least_squares(self, seed, shape, sides, sigma, dtype):
        rng = np.random.default_rng(seed)
        X, Y = (rng.standard_normal((n, *shape)).astype(dtype) for n in (3, 4))
        X[0] = 0.3  # nothing to move along
        Y[1] = X[1]
        Y[2] = X[1] + 0.01 * Y[2]
        D = between(Tangent(shape, sides=sides, sigma=sigma), flat(X), flat(Y))
        eps = np.finfo(dtype).eps
        for i, j in np.ndindex(3, 4):
            a, b = X[i].astype(float), Y[j].astype(float)
            moves = np.concatenate([naive.tangents(image, sigma) for image in (a, b)])
            sizes = np.linalg.svd(moves, compute_uv=False)
            assume(not ((sizes > 1e-7) & (sizes < 1e-3)).any())  # is it one direction, or two?
            expected = naive.tangent_distance(a, b, sigma, sides)
            # Rounding of tangents turns what depends on two that are nearly one.
            rounding = 10 * eps / sizes[sizes > 1e-3].min(initial=1) + 10 * eps**0.75
            tol = rounding * (np.linalg.norm(a) + np.linalg.norm(b))
            assert D[i, j] == pytest.approx(expected, abs=tol)

    @pytest.mark.parametrize("sides", [1, 2])
    def test_many_tiles_are_one_pair_at_a_time(self, sides, rng):
        X, Y = rng.random((70, 30)), rng.random((131, 30))
        distance = Tangent((6, 5), sides=sides)
        A, B = distance.featurize(X), distance.featurize(Y)
        D = distance.compare(A, B)
        np.testing.assert_allclose(distance.compare(B, A), D.T, atol=1e-12)
        for i, j in rng.integers(70, size=(20, 2)):
            alone = distance.compare(A[i : i + 1], B[j : j + 1])
            np.testing.assert_allclose(alone, D[i : i + 1, j : j + 1], rtol=1e-10)

    @pytest.mark.parametrize(
        "change", [{"angle": 5}, {"down": 0.5}, {"across": -0.5}, {"size": 1.06}, {"width": 1.15}]
    )
    def test_small_changes_cost_little(self, change):
        """Simard et al. (1998): each change is along one of the tangents."""
        rows = flat([digit(), digit(**change)])
        l2 = between(make_distance("l2"), rows[:1], rows[1:])[0, 0]
        for sides in (1, 2):
            far = between(Tangent((20, 20), sides=sides), rows[:1], rows[1:])[0, 0]
            assert far < 0.3 * l2
        other = flat([np.rot90(digit())])
        assert between(Tangent((20, 20)), rows[:1], other)[0, 0] > 5 * far

    def test_two_sided_is_nearer_than_one_sided_than_l2(self, rng):
        X = rng.random((12, 49))
        two, one = (between(Tangent((7, 7), sides=s), X, X) for s in (2, 1))
        off = ~np.eye(12, dtype=bool)
        assert (two[off] < one[off]).all()
        assert (one[off] < between(make_distance("l2"), X, X)[off]).all()

    def test_an_image_and_itself_are_one(self, rng):
        """By differences: squares would leave 1e-8 of the norm."""
        X = 100 * rng.random((9, 64))
        for sides in (1, 2):
            same = np.diagonal(between(Tangent((8, 8), sides=sides), X, X.copy()))
            assert same.max() < 1e-11

    @pytest.mark.parametrize("sides", [1, 2])
    def test_size_and_background_change_nothing(self, sides, rng):
        X = rng.random((6, 64))
        D = between(Tangent((8, 8), sides=sides), X, X)
        off = ~np.eye(6, dtype=bool)
        for size in (1e-120, 1e120):
            scaled = between(Tangent((8, 8), sides=sides), size * X, size * X)
            np.testing.assert_allclose(scaled[off], size * D[off], rtol=1e-9)
        moved = between(Tangent((8, 8), sides=sides), X + 4, X + 4)
        np.testing.assert_allclose(moved[off], D[off], rtol=1e-9)

    def test_what_is_rounding_is_no_slope(self, rng):
        A = Tangent((5, 5)).featurize(1 + 1e-13 * rng.random((3, 25)))
        assert not A[:, 25:].any()
        assert Tangent((5, 5)).featurize(1 + 1e-6 * rng.random((3, 25)))[:, 25:].any()

    @pytest.mark.parametrize("common", [0, 100])
    def test_tangents_of_one_direction_do_not_leave_it(self, common):
        """Steps along their difference could go anywhere; with 100 in common, rows are near."""
        for angle, expected in ((1e-6, 0.005), (1e-3, 0)):
            a = [[0, 0, common], [1, 0, 0]]
            b = [[0, 0.005, common], [np.cos(angle), np.sin(angle), 0]]
            A, B = np.reshape(a, (1, 6)).astype(float), np.reshape(b, (1, 6))
            assert cpu.tangent_distances(A, B, 1)[0, 0] == pytest.approx(expected, abs=1e-7)

    def test_bad_parameters(self):
        for bad in (0, 3, True, 1.0):
            with pytest.raises(ValueError, match="sides must be"):
                Tangent((2, 2), sides=bad)
        with pytest.raises(ValueError, match="sigma must be from 0, got -1"):
            Tangent((2, 2), sigma=-1)
        with pytest.raises(ValueError, match="squared norms of rows overflow"):
            between(Tangent((2, 2)), np.full((1, 4), 1e200), np.full((1, 4), 1e200))


class TestLBP:
    @given(
        seed=seeds,
        shape=st.tuples(st.integers(5, 11), st.integers(5, 11)),
        windows=st.tuples(st.integers(1, 8), st.integers(1, 8)),
        dtype=dtypes,
    )
    def test_is_pixel_by_pixel(self, seed, shape, windows, dtype):
        rng = np.random.default_rng(seed)
        X, Y = (rng.random((n, *shape)).astype(dtype) for n in (3, 2))
        wide = X.astype(float), Y.astype(float)
        distance = LBPChi2(shape, windows)
        histograms = [naive.lbp_histograms(x, windows) for x in wide[0]]
        A = distance.featurize(flat(X))
        assert A.dtype == dtype
        n_windows = histograms[0].size // 59
        np.testing.assert_allclose(n_windows * A, flat(histograms), rtol=1e-5)
        expected = [[naive.lbp_distance(x, y, windows) for y in wide[1]] for x in wide[0]]
        np.testing.assert_allclose(between(distance, flat(X), flat(Y)), expected, atol=1e-5)

    def test_light_and_contrast_change_no_pattern(self, rng):
        """On few grey values, where many neighbours are equal."""
        X = rng.integers(0, 5, size=(4, 20 * 20)).astype(float)
        distance = LBPChi2((20, 20))
        A = distance.featurize(X)
        np.testing.assert_array_equal(distance.featurize(4 * X + 32), A)
        dark = distance.featurize(-X)
        assert np.abs(dark - A).max() > 0

    def test_flat_areas_have_one_pattern(self):
        for value in (0, 0.1, 0.7):
            A = LBPChi2((9, 9), (1, 1)).featurize(np.full((1, 81), value))
            assert A[0, 57] == 1  # all at least as bright: the last uniform one

    def test_bad_parameters(self):
        with pytest.raises(ValueError, match=r"at least 5 x 5 pixels, got image_shape=\(4, 9\)"):
            LBPChi2((4, 9))
        with pytest.raises(ValueError, match=r"windows must be \(rows, columns\), two whole"):
            LBPChi2((9, 9), 7)


class TestShapeContext:
    @given(
        seed=seeds,
        shape=st.tuples(st.integers(1, 6), st.integers(1, 6)),
        n_points=st.integers(2, 5),
        dtype=dtypes,
    )
    def test_is_point_by_point(self, seed, shape, n_points, dtype):
        rng = np.random.default_rng(seed)
        X, Y = (rng.random((n, *shape)).astype(dtype) for n in (3, 2))
        X[0] = 1  # no contour
        wide = X.astype(float), Y.astype(float)
        distance = ShapeContext(shape, n_points)
        contexts = [naive.shape_contexts(x, n_points) for x in wide[0]]
        np.testing.assert_allclose(distance.featurize(flat(X)), flat(contexts), rtol=1e-6)
        expected = [[naive.shape_distance(x, y, n_points) for y in wide[1]] for x in wide[0]]
        np.testing.assert_allclose(between(distance, flat(X), flat(Y)), expected, atol=1e-6)

    @given(seed=seeds, n=st.integers(1, 30), coarse=st.booleans())
    def test_the_assignment_is_scipys(self, seed, n, coarse):
        rng = np.random.default_rng(seed)
        A, B = rng.random((2, n, 7))
        if coarse:  # many equal costs
            A, B = np.round(A), np.round(B)
        cost = np.array([[naive.chi2(a, b) for b in B] for a in A])
        best = cost[linear_sum_assignment(cost)].mean()
        mine = cpu.assignment_distances(A.reshape(1, -1), B.reshape(1, -1), n)
        np.testing.assert_allclose(mine, [[best]], atol=1e-12)

    @pytest.mark.parametrize("n_points", [10, 50])
    def test_place_and_light_change_nothing(self, n_points):
        there = np.roll(digit(n=28), (4, -3), (0, 1))
        rows = flat([digit(n=28), there, 5 + 2 * digit(n=28), 1 - there])
        D = between(ShapeContext((28, 28), n_points), rows, rows)
        np.testing.assert_allclose(D, 0, atol=1e-9)
        other = flat([np.rot90(digit(n=28))])
        assert between(ShapeContext((28, 28), n_points), rows[:1], other)[0, 0] > 0.2

    def test_size_changes_little(self):
        rows = flat([digit(n=40), digit(n=40, size=1.5, width=1.0), np.rot90(digit(n=40))])
        near, far = between(ShapeContext((40, 40)), rows[:1], rows[1:])[0]
        assert near < 0.4 * far

    def test_without_a_contour(self):
        rows = flat([np.zeros((20, 20)), np.ones((20, 20)), digit()])
        D = between(ShapeContext((20, 20)), rows, rows)
        np.testing.assert_allclose(D, [[0, 0, 0.5], [0, 0, 0.5], [0.5, 0.5, 0]], atol=1e-12)

    def test_bad_parameters(self):
        for bad in (1, 2.5, True):
            with pytest.raises(ValueError, match="n_points must be a whole number from 2"):
                ShapeContext((5, 5), bad)


@pytest.mark.parametrize("name", ["lbp-chi2", "shape-context", "tangent"])
class TestShapes:
    def test_is_asked_for(self, name, rng):
        with pytest.raises(ValueError, match=rf"{name}' compares images: give image_shape.* = 30"):
            make_distance(name).featurize(rng.random((2, 30)))

    def test_must_fit(self, name, rng):
        with pytest.raises(ValueError, match=r"n_features=30, got \(5, 7\), which has 35 pixels"):
            make_distance(name, image_shape=(5, 7)).featurize(rng.random((2, 30)))

    @pytest.mark.parametrize("bad", [30, (30,), (5, 0), (5.0, 6), (True, 6), "56"])
    def test_is_two_numbers(self, name, bad):
        with pytest.raises(ValueError, match=r"image_shape must be \(height, width\), two whole"):
            make_distance(name, image_shape=bad)

    def test_may_come_as_a_list(self, name):
        distance = make_distance(name, image_shape=[np.int64(5), 6])
        assert distance == make_distance(name, image_shape=(5, 6))
        assert hash(distance) == hash(make_distance(name, image_shape=(5, 6)))
