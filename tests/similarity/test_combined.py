"""Sums and products of kernels, each of columns of its own."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.kernel import KernelContract
from kernelatoms.similarity import (
    CentredKernel,
    Channels,
    Distance,
    DistanceKernel,
    ProductKernel,
    RBFKernel,
    SumKernel,
    channel_kernel,
    make_distance,
    make_kernel,
)
from kernelatoms.similarity.distances import Mahalanobis
from kernelatoms.similarity.factory import check_gradient
from kernelatoms.similarity.inner import CosineKernel, LinearKernel, PolynomialKernel
from similarity.users import Gauss, Intersection, inner

POLY = PolynomialKernel(0.4, 3, 0.5)
TANGENT = DistanceKernel(make_distance("tangent", image_shape=(2, 2)), 0.2, 1)
OVERLAPPING = [(RBFKernel(0.6), [0, 2]), ("laplacian", slice(1, 5)), (POLY, [4, 0, 1])]


class TestSum(KernelContract):
    def make(self):
        return SumKernel(OVERLAPPING, weights=[0.5, 2, 0.1])


class TestProduct(KernelContract):
    def make(self):
        return ProductKernel(OVERLAPPING)


class TestOnePart(KernelContract):
    def make(self):
        return SumKernel(["cosine"], weights=[0.3])


class TestNested(KernelContract):
    def make(self):
        lower = ProductKernel([(RBFKernel(0.6), [0, 2]), (SumKernel(["linear", POLY]), [1])])
        return SumKernel([(lower, [4, 0, 1]), ("sigmoid", slice(3, 5))])


class TestOfDescriptors(KernelContract):
    """Images in the first four columns, counts, and a number that nobody looks at."""

    def rows(self, n, rng, dtype=np.float64):
        return rng.random((n, 9)).astype(dtype)

    def make(self):
        both = ProductKernel([(TANGENT, slice(0, 4)), ("chi2", [4, 5])])
        centred = CentredKernel("l1", 1, origin=[0.1, 0.2])
        return SumKernel([(RBFKernel(0.3), [7, 1]), both, (centred, [6, 7])], weights=[1, 2, 3])


class TestOfUsers(KernelContract):
    def make(self):
        return ProductKernel([(Gauss(0.7), [0, 1]), (inner, [2, 3]), (Intersection, [2, 4])])


@pytest.mark.parametrize("by", ["sum", "product"])
class TestChannels(KernelContract):
    @pytest.fixture(autouse=True)
    def choose(self, by):
        self.by = by

    def rows(self, n, rng, dtype=np.float64):
        return rng.random((n, 12)).astype(dtype)

    def make(self):
        return channel_kernel([RBFKernel(0.2), RBFKernel(3), "linear", POLY], 4, by=self.by)


ANY = ("linear", "rbf", "laplacian", "cosine", "poly", "sigmoid", "chi2")


@st.composite
def combinations(draw):
    """Draw a list of parts, weights, and how many features there are."""
    n_features = draw(st.integers(1, 6))
    columns = st.lists(st.integers(0, n_features - 1), min_size=1, unique=True)
    parts = draw(st.lists(st.tuples(st.sampled_from(ANY), columns), min_size=1, max_size=4))
    weight = st.sampled_from([0.0, 0.3, 1.0, 2.5])
    weights = draw(st.lists(weight, min_size=len(parts), max_size=len(parts)).filter(any))
    return parts, weights, n_features


@given(
    drawn=combinations(),
    seed=st.integers(0, 2**31),
    n=st.integers(1, 6),
    m=st.integers(1, 5),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_they_are_sums_and_products_of_matrices(drawn, seed, n, m, dtype):
    parts, weights, n_features = drawn
    rng = np.random.default_rng(seed)
    X, Y = (rng.random((count, n_features)).astype(dtype) for count in (n, m))
    own = [make_kernel(name)(X[:, columns], Y[:, columns]) for name, columns in parts]
    diagonals = [make_kernel(name).diag(X[:, columns]) for name, columns in parts]
    rtol = 1e-12 if dtype == np.float64 else 1e-5
    total, product = SumKernel(parts, weights), ProductKernel(parts)
    expected = np.einsum("i,inm->nm", weights, own)
    np.testing.assert_allclose(total(X, Y), expected, rtol=rtol, atol=rtol)
    expected = np.einsum("i,in->n", weights, diagonals)
    np.testing.assert_allclose(total.diag(X), expected, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(product(X, Y), np.prod(own, axis=0), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(product.diag(X), np.prod(diagonals, axis=0), rtol=rtol, atol=rtol)
    one_by_one = np.concatenate([total(x[None], Y) for x in X])
    np.testing.assert_allclose(total(X, Y), one_by_one, rtol=rtol, atol=rtol)
    if all(name not in ("sigmoid", "chi2") for name, _ in parts):
        check_gradients(total, X, Y, rng)
        check_gradients(product, X, Y, rng)


def check_gradients(kernel, X, Y, rng):
    """Compare with differences, in float64."""
    X, Y = X.astype(np.float64), Y.astype(np.float64) + 0.1
    W, expected = rng.standard_normal((len(X), len(Y))), np.empty(Y.shape)
    for j, f in np.ndindex(*Y.shape):
        step = 1e-6 * np.eye(Y.shape[1])[f]
        up, down = (kernel(X, (Y[j] + sign * step)[None])[:, 0] for sign in (1, -1))
        expected[j, f] = W[:, j] @ (up - down) / 2e-6
    size = 1e-5 * (1 + np.abs(expected).max())
    np.testing.assert_allclose(kernel.weighted_gradient(W, X, Y), expected, atol=size)


class TestIdentities:
    @pytest.mark.parametrize("name", ["linear", "rbf", "chi2", "poly"])
    def test_one_part_of_all_columns_is_that_kernel(self, name, rng):
        X, Y = rng.random((7, 5)), rng.random((4, 5))
        expected = make_kernel(name)(X, Y)
        for columns in (slice(None), range(5), slice(0, 5)):
            np.testing.assert_array_equal(SumKernel([(name, columns)])(X, Y), expected)
            np.testing.assert_array_equal(ProductKernel([(name, columns)])(X, Y), expected)
        np.testing.assert_array_equal(SumKernel([name])(X, X), make_kernel(name)(X, X))

    @pytest.mark.parametrize("channels_first", [False, True])
    def test_linear_kernels_of_all_channels_are_the_linear_kernel(self, channels_first, rng):
        X, Y = rng.standard_normal((7, 12)), rng.standard_normal((4, 12))
        kernel = channel_kernel("linear", 3, channels_first=channels_first)
        np.testing.assert_allclose(kernel(X, Y), X @ Y.T, rtol=1e-12, atol=1e-14)
        weighted = channel_kernel("linear", 3, weights=[4, 9, 0], channels_first=channels_first)
        scales = np.repeat([2, 3, 0], 4) if channels_first else np.tile([2, 3, 0], 4)
        np.testing.assert_allclose(weighted(X, Y), (X * scales) @ (Y * scales).T, atol=1e-13)

    def test_rbf_kernels_of_all_channels_multiply_to_the_rbf_kernel(self, rng):
        X, Y = rng.standard_normal((7, 12)), rng.standard_normal((4, 12))
        product = channel_kernel(RBFKernel(0.1), 3, by="product")
        np.testing.assert_allclose(product(X, Y), RBFKernel(0.1)(X, Y), rtol=1e-12)
        gammas = np.array([0.1, 0.5, 2])
        product = channel_kernel([RBFKernel(gamma) for gamma in gammas], 3, by="product")
        scale = np.sqrt(np.tile(gammas, 4))
        np.testing.assert_allclose(product(X, Y), RBFKernel(1.0)(X * scale, Y * scale), rtol=1e-11)
        slopes, other = product.slopes(X, Y), RBFKernel(1.0).slopes(X * scale, Y * scale)
        sizes = product.column_sizes(X)
        np.testing.assert_allclose(sizes * slopes.along_x[0, 0], other.along_x[0, 0] * scale**2)

    def test_channels_together_and_alone(self, rng):
        """Colour by one kernel and depth by another."""
        images = rng.random((5, 2, 3, 4))
        rows = images.reshape(5, -1)
        kernel = SumKernel([(RBFKernel(0.1), Channels((0, 1, 2), 4)), ("linear", Channels(3, 4))])
        colour, depth = images[..., :3].reshape(5, -1), images[..., 3].reshape(5, -1)
        expected = RBFKernel(0.1)(colour, colour) + depth @ depth.T
        np.testing.assert_allclose(kernel(rows, rows), expected, rtol=1e-12)

    def test_a_part_of_weight_zero_is_not_there(self, rng):
        X = rng.standard_normal((6, 4))  # negative values, too, which chi2 would refuse
        kernel = SumKernel([(RBFKernel(0.3), [0, 1]), ("chi2", [2, 3])], weights=[2, 0])
        np.testing.assert_allclose(kernel(X, X), 2 * RBFKernel(0.3)(X[:, :2], X[:, :2]))
        assert kernel.semidefinite
        assert kernel.has_gradient
        assert not kernel.non_negative


class TestWhatItKnows:
    def test_semidefinite_where_all_parts_are(self):
        for kind in (SumKernel, ProductKernel):
            assert kind(["rbf", "linear", "chi2"]).semidefinite is True
            assert kind(["rbf", "sigmoid"]).semidefinite is None
            assert kind(["rbf", "additive_chi2"]).semidefinite is None
            assert kind(["additive_chi2", "additive_chi2"]).semidefinite is None
            assert kind(["additive_chi2"]).semidefinite is False
            assert kind(["rbf", kind(["linear", "sigmoid"])]).semidefinite is None

    def test_other_flags_come_from_the_parts(self):
        for kind in (SumKernel, ProductKernel):
            assert kind(["rbf", "cosine"]).bounded
            assert not kind(["rbf", "linear"]).bounded
            assert kind(["rbf", "chi2"]).non_negative
            assert not kind(["rbf", "linear"]).non_negative
            assert kind(["rbf", TANGENT]).takes_stacks
            assert not kind(["rbf", inner]).takes_stacks
            assert kind(["rbf", "poly"]).takes_missing
            assert not kind(["rbf", "chi2"]).takes_missing
            assert kind(["rbf", "poly"]).has_gradient
            assert not kind(["rbf", TANGENT]).has_gradient
            assert not kind(["rbf"]).has_gamma
            assert not kind(["rbf"]).featurizes
            assert kind(["rbf", kind([TANGENT])]).featurizes

    def test_its_name_says_what_it_is_made_of(self):
        assert channel_kernel("rbf", 4).name == "SumKernel(rbf)"
        assert ProductKernel(["rbf", inner, "linear"]).name == "ProductKernel(rbf, inner, linear)"

    def test_negative_values_are_refused_where_they_matter(self, rng):
        kernel = SumKernel([("rbf", [0, 1]), ("chi2", [2, 3])])
        X = rng.random((5, 4)) - [1, 1, 0, 0]
        assert np.isfinite(kernel(X, X)).all()
        np.testing.assert_array_equal(kernel.into_domain(X), X)
        np.testing.assert_array_equal(kernel.into_domain(-X)[:, :2], -X[:, :2])
        assert (kernel.into_domain(-X)[:, 2:] == 0).all()
        words = r"parts\[1\]: kernel 'chi2' takes no negative values, and its rows hold -0"
        with pytest.raises(ValueError, match=words):
            kernel(-X, X)
        with pytest.raises(ValueError, match=words):
            kernel.diag(-X)

    def test_equal_ones_pickles_and_copies(self):
        kernel = SumKernel([("rbf", [0, 1, 3]), (inner, Channels(1, 2)), POLY], weights=(1, 2, 3))
        for twin in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel)):
            assert twin == kernel
            assert hash(twin) == hash(kernel)
        assert kernel != SumKernel(kernel.parts, (1, 2, 4))
        assert kernel != SumKernel([("rbf", [0, 1, 4]), *kernel.parts[1:]], (1, 2, 3))
        assert kernel != SumKernel([(RBFKernel(2), [0, 1, 3]), *kernel.parts[1:]], (1, 2, 3))
        assert SumKernel([RBFKernel()]) == SumKernel([RBFKernel()], weights=[1])
        assert SumKernel(["rbf"]) != SumKernel([RBFKernel()])  # whose gamma stays as it is
        assert SumKernel(["rbf"]) != ProductKernel(["rbf"])
        assert SumKernel(["rbf"]) != "rbf"
        assert ProductKernel(["rbf"]) == ProductKernel([("rbf", slice(None))])


class TestGamma:
    def test_every_part_takes_its_own_from_its_own_columns(self, rng):
        X = rng.standard_normal((30, 8)) * np.tile([1, 1000], 4)
        kernel = channel_kernel([RBFKernel("scale"), RBFKernel("auto")], 2)
        for fitted in (kernel.fitted_to(X), kernel.with_gamma_from(X)):
            one, two = (part.gamma for part, _ in fitted.parts)
            assert one == pytest.approx(1 / (4 * X[:, ::2].var()))
            assert two == 0.25
        assert fitted.fitted_to(X[:3]) is fitted
        kernel = SumKernel([("rbf", [0, 1, 2]), ("linear", [3]), (RBFKernel(7), [4])])
        gammas = [getattr(part, "gamma", None) for part, _ in kernel.fitted_to(X).parts]
        assert gammas == [pytest.approx(1 / (3 * X[:, :3].var())), None, 7]
        assert channel_kernel("linear", 2).fitted_to(X) == channel_kernel("linear", 2)

    def test_users_and_nested_kernels_too(self, rng):
        X = rng.random((20, 6))
        lower = ProductKernel([(RBFKernel("scale"), [0]), (Gauss("scale"), [1])])
        fitted = SumKernel([(lower, [4, 5]), (DistanceKernel(Mahalanobis()), [0, 1])]).fitted_to(X)
        first, second = (part for part, _ in fitted.parts[0][0].parts)
        assert first.gamma == pytest.approx(1 / X[:, 4].var())
        assert second.gamma == pytest.approx(1 / X[:, 5].var())
        assert isinstance(second, Gauss)
        assert fitted.parts[1][0].distance == Mahalanobis().fitted_to(X[:, :2])

    def test_it_has_none_itself(self, rng):
        with pytest.raises(ValueError, match=r"SumKernel\(rbf\) has no gamma of its own: give one"):
            channel_kernel("rbf", 4).with_gamma(0.3)
        with pytest.raises(ValueError, match="gamma='scale' is taken from rows"):
            channel_kernel(RBFKernel("scale"), 2)(rng.random((3, 4)), rng.random((3, 4)))


class TestDescriptors:
    def test_every_row_is_described_once(self, rng):
        calls = []

        class Counting(Distance):
            def featurize(self, rows):
                calls.append(len(rows))
                return 2.0 * rows[:, :2]

            def compare(self, A, B):
                return np.abs(A[:, None] - B).sum(axis=2)

        kernel = SumKernel([(DistanceKernel(Counting()), [1, 2, 3]), ("rbf", [0, 1, 4])])
        X, Y = rng.random((6, 5)), rng.random((4, 5))
        expected = kernel(X, Y)
        A, B, described = kernel.featurize(X), kernel.featurize(Y), kernel.for_features(5)
        assert (A.shape, B.shape) == ((6, 5), (4, 5))  # two numbers, and three columns
        np.testing.assert_array_equal(A[:, :2], 2 * X[:, 1:3])
        np.testing.assert_array_equal(A[:, 2:], X[:, [0, 1, 4]])
        calls.clear()
        np.testing.assert_allclose(described(A, B), expected, rtol=1e-12)
        assert calls == []

    def test_others_stay_rows(self, rng):
        X = rng.random((6, 4))
        kernel = SumKernel([("rbf", [0, 1]), ("poly", [2])])
        assert kernel.featurize(X) is X
        assert kernel.for_features(4) is kernel

        class Deep(Distance):
            def featurize(self, rows):
                return rows[:, :, None] * np.ones(2)

            def compare(self, A, B):
                return np.abs(A[:, None] - B).sum(axis=(2, 3))

        deep = SumKernel([(DistanceKernel(Deep()), [0, 3]), (TANGENT, slice(None))])
        A = deep.featurize(X)
        np.testing.assert_array_equal(A[:, :2], X[:, [0, 3]])  # no rows of numbers: not beside
        np.testing.assert_allclose(deep.for_features(4)(A, A), deep(X, X), rtol=1e-12)

    def test_parts_left_out_are_not_described(self, rng):
        X = rng.random((6, 8))
        kernel = SumKernel([TANGENT, (TANGENT, slice(4, 8)), "rbf"], weights=[0, 2, 3])
        described = kernel.for_features(8)
        assert described.weights == (2, 3)
        np.testing.assert_allclose(
            described(kernel.featurize(X), kernel.featurize(X)), kernel(X, X), rtol=1e-12
        )


class TestMissingValues:
    def test_each_part_estimates_from_what_it_sees(self, rng):
        X, Y = rng.random((5, 6)), rng.random((4, 6))
        X[1, 2] = np.nan
        kernel = SumKernel([("rbf", slice(0, 3)), ("linear", slice(3, 6))], weights=[2, 3])
        parts = RBFKernel()(X[:, :3], Y[:, :3]), X[:, 3:] @ Y[:, 3:].T
        np.testing.assert_allclose(kernel(X, Y), 2 * parts[0] + 3 * parts[1], rtol=1e-12)
        product = ProductKernel(kernel.parts)
        np.testing.assert_allclose(product(X, Y), parts[0] * parts[1], rtol=1e-12)
        energies = LinearKernel().diag(X[:, 3:])
        np.testing.assert_allclose(kernel.diag(X), 2 + 3 * energies, rtol=1e-12)

    def test_columns_that_nobody_sees_may_miss(self, rng):
        X, Y = rng.random((5, 4)), rng.random((4, 4))
        kernel = SumKernel([("rbf", [0, 1]), ("linear", [3])])
        holed = X.copy()
        holed[:, 2] = np.nan
        np.testing.assert_allclose(kernel(holed, Y), kernel(X, Y), rtol=1e-12)

    def test_a_part_without_any_value(self, rng):
        X = rng.random((5, 8))
        X[3, 1::2] = np.nan
        words = r"parts\[1\]: X holds a row without any value in the columns of this part"
        with pytest.raises(ValueError, match=words):
            channel_kernel("rbf", 2)(X, rng.random((2, 8)))
        with pytest.raises(ValueError, match=words):
            channel_kernel("rbf", 2).diag(X)


class TestTheWayBack:
    def test_sums_of_linear_parts_have_exact_preimages(self, rng):
        rows, W = rng.standard_normal((6, 5)), rng.standard_normal((3, 6))
        kernel = SumKernel([("linear", [0, 2]), ("linear", [1])], weights=[2, 0.1])
        np.testing.assert_allclose(kernel.exact_preimage(W, rows), W @ rows, rtol=1e-12)
        mixed = SumKernel([("linear", [0, 2]), ("cosine", [1, 3])])
        found = mixed.exact_preimage(W, rows)
        np.testing.assert_allclose(found[:, [0, 2, 4]], (W @ rows)[:, [0, 2, 4]], rtol=1e-12)
        expected = CosineKernel().exact_preimage(W, rows[:, [1, 3]])
        np.testing.assert_allclose(found[:, [1, 3]], expected, rtol=1e-12)
        assert SumKernel([("linear", [0, 2]), ("linear", [1, 2])]).exact_preimage(W, rows) is None
        assert SumKernel([("linear", [0]), ("rbf", [1])]).exact_preimage(W, rows) is None
        assert ProductKernel([("linear", [0]), ("linear", [1])]).exact_preimage(W, rows) is None
        assert ProductKernel(["linear"]).exact_preimage(W, rows) is not None

    def test_one_part_of_all_columns_inverts_as_its_kernel(self):
        rbf = RBFKernel(0.3)
        for kernel in (SumKernel([rbf]), ProductKernel([(rbf, [0, 1, 2])])):
            assert kernel.inversion(3) == rbf.inversion(3)
        assert SumKernel([rbf, "poly"], weights=[1, 0]).inversion(3) == rbf.inversion(3)
        assert SumKernel([rbf], weights=[2]).inversion(3) is None
        assert SumKernel([(rbf, [2, 1, 0])]).inversion(3) is None
        assert SumKernel([(rbf, [0, 1])]).inversion(3) is None
        assert ProductKernel([rbf, "linear"]).inversion(3) is None


class TestSlopes:
    def test_exact_where_all_parts_see_the_same(self, rng):
        X, Y = rng.standard_normal((5, 3)), rng.standard_normal((4, 3))
        own = [make_kernel(k).slopes(X, Y) for k in ("rbf", "poly")]
        slopes = SumKernel(["rbf", "poly"], weights=[2, 3]).slopes(X, Y)
        np.testing.assert_allclose(slopes.along_x, 2 * own[0].along_x + 3 * own[1].along_x)
        np.testing.assert_allclose(slopes.along_y, 2 * own[0].along_y)
        product = ProductKernel(["rbf", "poly"])
        slopes = product.slopes(X, Y)
        expected = own[1].values * own[0].along_x + own[0].values * own[1].along_x
        np.testing.assert_allclose(slopes.along_x, expected)
        assert SumKernel(["linear", "poly"]).slopes(X, Y).along_y is None
        np.testing.assert_allclose(product.column_sizes(Y), 1)

    def test_means_over_groups_of_columns(self, rng):
        X = rng.standard_normal((5, 6))
        kernel = SumKernel([("linear", [0, 1, 2]), ("linear", [2, 3])], weights=[3, 6])
        # Groups: 0 and 1 (slope 3), 2 (9), 3 (6); nobody sees 4 and 5.
        np.testing.assert_allclose(kernel.slopes(X, X).along_x, 6)
        np.testing.assert_allclose(kernel.column_sizes(X), [0.5, 0.5, 1.5, 1, 1, 1])
        nested = SumKernel([(kernel, slice(0, 4)), ("linear", [4, 5])], weights=[1, 2])
        np.testing.assert_allclose(nested.slopes(X, X).along_x, 4)
        np.testing.assert_allclose(nested.column_sizes(X), np.array([3, 3, 9, 6, 2, 2]) / 4)
        flat = SumKernel([("cosine", [0, 1]), ("cosine", [2])])
        np.testing.assert_array_equal(flat.column_sizes(np.zeros((2, 3))), 1)

    def test_parts_without_gradient_are_named(self, rng):
        X = rng.random((3, 4))
        kernel = SumKernel([("rbf", [0]), ("chi2", [1, 2]), (inner, [3])])
        words = r"got 'SumKernel\(rbf, chi2, inner\)', and of it parts\[1\], 'chi2', which takes no"
        with pytest.raises(ValueError, match=words):
            check_gradient(kernel)
        with pytest.raises(ValueError, match=r"parts\[1\], 'inner', whose gradient is not known"):
            check_gradient(ProductKernel(["rbf", inner]))
        for call in (kernel.slopes, lambda *rows: kernel.weighted_gradient(np.eye(3), *rows)):
            with pytest.raises(ValueError, match="has no gradient"):
                call(X, X)


class TestBadInput:
    @pytest.mark.parametrize(
        ("parts", "words"),
        [
            ("rbf", r"parts must be a list of kernels, or of pairs \(kernel, columns\), got 'rbf'"),
            (None, "parts must be a list of kernels"),
            ({"rbf": [0]}, "parts must be a list of kernels"),
            ([], "parts must hold at least one kernel, got none"),
            (["gauss"], r"^parts\[0\]: kernel must be one of .*'rbf'.*got 'gauss'"),
            (["rbf", 3], r"^parts\[1\]: kernel must be one of"),
            ([("rbf", [0], 1)], r"parts\[0\]: a part must be a kernel, or a pair"),
            ([("rbf",)], r"parts\[0\]: a part must be a kernel, or a pair"),
            (("rbf", slice(0, 2)), r"parts\[1\]: columns belong to a kernel: parts=\[\(kernel, sl"),
            (["rbf", ("linear", [])], r"parts\[1\]: columns must be .*at least one"),
            ([("rbf", [0, 0])], r"parts\[0\]: columns must be named once each"),
            (["rbf", "precomputed"], r"parts\[1\]: 'precomputed' values belong to whole rows"),
            ([make_kernel("precomputed")], r"parts\[0\]: 'precomputed' values"),
        ],
    )
    def test_parts(self, parts, words):
        for kind in (SumKernel, ProductKernel):
            with pytest.raises(ValueError, match=words):
                kind(parts)

    def test_a_class_that_cannot_be_made(self):
        class Needing:
            def __init__(self, width):
                self.width = width

            def values(self, X, Y):
                return self.width * X @ Y.T

        with pytest.raises(TypeError, match=r"parts\[0\]: kernel is the class Needing, which"):
            SumKernel([Needing])
        assert SumKernel([Needing(2)])(np.ones((1, 1)), np.ones((1, 1))) == 2

    @pytest.mark.parametrize(
        ("weights", "words"),
        [
            ([1], "weights must be 2 numbers, one per part, or None; got 1 of them"),
            ([1, 2, 3], "got 3 of them"),
            (2, "or None; got 2"),
            ("ab", "or None; got 'ab'"),
            ([1, -0.1], r"weights\[1\] must be a number from 0, got -0.1"),
            ([np.nan, 1], r"weights\[0\] must be a finite number, got nan"),
            ([1, np.inf], r"weights\[1\] must be a finite number, got inf"),
            ([1, "x"], r"weights\[1\] must be a finite number, got 'x'"),
            ([True, 1], r"weights\[0\] must be a finite number, got True"),
            ([0, 0], "weights must not all be 0"),
        ],
    )
    def test_weights(self, weights, words):
        with pytest.raises(ValueError, match=words):
            SumKernel(["rbf", "linear"], weights)
        with pytest.raises(ValueError, match=words):
            channel_kernel("rbf", 2, weights=weights)

    def test_rows_that_do_not_have_the_columns(self, rng):
        X = rng.random((3, 6))
        kernel = SumKernel([("rbf", [0]), ("linear", [2, 6])])
        for ask in (kernel.fitted_to, kernel.diag, kernel.featurize, lambda X: kernel(X, X)):
            with pytest.raises(ValueError, match=r"parts\[1\]: columns must be of rows with n_f"):
                ask(X)
        with pytest.raises(ValueError, match=r"parts\[0\]: .*a multiple of 4 features, got n_fea"):
            channel_kernel("rbf", 4)(X, X)

    def test_channel_kernels(self):
        with pytest.raises(ValueError, match="one kernel, or a list of n_channels=4, got 3"):
            channel_kernel(["rbf"] * 3, 4)
        with pytest.raises(ValueError, match="n_channels must be a whole number from 1, got 0"):
            channel_kernel("rbf", 0)
        with pytest.raises(ValueError, match=r"n_channels must be a whole number from 1, got 2\.5"):
            channel_kernel("rbf", 2.5)
        with pytest.raises(ValueError, match="by must be 'sum' or 'product', got 'mean'"):
            channel_kernel("rbf", 2, by="mean")
        with pytest.raises(ValueError, match="weights are for by='sum'"):
            channel_kernel("rbf", 2, by="product", weights=[1, 2])
        with pytest.raises(TypeError, match="channels_first must be True or False"):
            channel_kernel("rbf", 2, channels_first="yes")
        with pytest.raises(ValueError, match=r"parts\[1\]: kernel must be one of"):
            channel_kernel(["rbf", "gauss"], 2)
