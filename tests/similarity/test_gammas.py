"""gamma="scale" fits a kernel to rows: scikit-learn's number, or 1 over what gamma multiplies."""

import numpy as np
import pytest
from sklearn.svm import SVC

from kernelatoms.similarity import (
    DISTANCES,
    KERNELS,
    ProductKernel,
    RBFKernel,
    SumKernel,
    make_kernel,
)
from kernelatoms.similarity.gammas import gamma_by_variance

SQUARES = ("rbf", "poly", "sigmoid")  # whose gamma multiplies squares of values
DISTANT = {"laplacian": 1, "chi2": 1, "l1": 2, "l2": 2, "linf": 2}  # the power of a distance


def scaled(name, X):
    return make_kernel(name, gamma="scale").with_gamma_from(X)


def naive_distance(name, x, y):
    if name in ("laplacian", "l1"):
        return sum(abs(x - y))
    if name == "chi2":
        return sum((a - b) ** 2 / (a + b) for a, b in zip(x, y, strict=True) if a + b > 0)
    return max(abs(x - y)) if name == "linf" else np.sqrt(sum((x - y) ** 2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_it_is_the_number_of_svc(name, dtype, rng):
    for offset, width in ((0, 1), (3, 100), (-50, 1e-3), (1e3, 1)):
        X = (offset + width * rng.standard_normal((30, 7))).astype(dtype)
        expected = SVC(gamma="scale").fit(X, np.arange(30) % 2)._gamma
        rounding = 1e-5 if dtype == np.float32 else 1e-12  # SVC's variance is one of float32
        assert scaled(name, X).gamma == pytest.approx(expected, rel=rounding)


def test_of_sigmoids_it_is_one_over_the_mean_squared_norm(rng):
    """By the variance all values are 1 where rows are far from 0."""
    for offset in (0, 7, 1e4):
        X = offset + rng.standard_normal((30, 7))
        assert scaled("sigmoid", X).gamma == pytest.approx(1 / np.mean([x @ x for x in X]))
        values = make_kernel("sigmoid", gamma="scale", coef0=0).with_gamma_from(X)(X, X)
        assert np.diagonal(values).max() < 0.999
    centred = X - X.mean()
    assert scaled("sigmoid", centred).gamma == pytest.approx(scaled("rbf", centred).gamma)


@pytest.mark.parametrize("name", DISTANT)
def test_of_distances_it_is_one_over_their_mean(name, rng):
    X = 40 * rng.random((12, 5))
    X[rng.random(X.shape) < 0.3] = 0
    pairs = [(x, y) for i, x in enumerate(X) for y in X[:i]]
    mean = np.mean([naive_distance(name, x, y) ** DISTANT[name] for x, y in pairs])
    assert scaled(name, X).gamma == pytest.approx(1 / mean, rel=1e-9)


def test_every_kernel_with_a_gamma_is_looked_at_here():
    named = {name for name, kind in KERNELS.items() if kind().has_gamma}
    assert named == {*SQUARES, "polynomial", "laplacian", "chi2"}


@pytest.mark.parametrize("unit", [1e-140, 1e-30, 255.0, 1e130])
@pytest.mark.parametrize("name", [*SQUARES, *DISTANT])
def test_values_do_not_depend_on_the_unit(name, unit, rng):
    X, Y = 3 * rng.random((20, 6)), 3 * rng.random((9, 6))
    expected = scaled(name, X)(X, Y)
    with np.errstate(over="raise"):
        np.testing.assert_allclose(scaled(name, unit * X)(unit * X, unit * Y), expected, rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-18, 1e18])
@pytest.mark.parametrize("name", [*SQUARES, "laplacian", "chi2"])
def test_nor_in_float32(name, unit, rng):
    X = 3 * rng.random((20, 6)).astype(np.float32)
    other = X * np.float32(unit)
    expected, found = scaled(name, X)(X, X), scaled(name, other)(other, other)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=2e-5)


@pytest.mark.parametrize("name", [*SQUARES, *DISTANT])
@pytest.mark.parametrize("value", [0.0, 0.1, 7.0])
def test_rows_that_are_all_the_same(name, value):
    """The variance of 0.1 is not 0, since the mean is rounded."""
    expected = 1 / (3 * value**2) if name == "sigmoid" and value else 1.0
    for n in (1, 9, 1000):
        assert scaled(name, np.full((n, 3), value)).gamma == pytest.approx(expected)


@pytest.mark.parametrize("name", SQUARES)
def test_holes_are_left_out_of_the_variance(name, rng):
    X = 5 + rng.standard_normal((40, 6))
    X[rng.random(X.shape) < 0.2] = np.nan
    seen = X[~np.isnan(X)]
    square = np.mean(seen**2) if name == "sigmoid" else seen.var()
    assert scaled(name, X).gamma == pytest.approx(1 / (6 * square), rel=1e-12)
    assert scaled(name, np.full((3, 2), np.nan)).gamma == 1.0


def test_rows_with_holes_are_left_out_of_means(rng):
    X = rng.random((12, 4))
    holed = np.concatenate([X, [[np.nan, 1, 1, 1]]])
    assert scaled("laplacian", holed).gamma == scaled("laplacian", X).gamma


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e200, 1e300])
def test_values_without_squares(unit, rng):
    X = unit * rng.random((20, 4))
    for name in SQUARES:
        size = "small" if unit < 1 else "large"
        with pytest.raises(ValueError, match=f"gamma.*too {size} .*scale the rows"):
            scaled(name, X)
    values = scaled("laplacian", X)(X, X)
    np.testing.assert_allclose(values, scaled("laplacian", X / unit)(X / unit, X / unit), rtol=1e-9)


def test_variances_whose_squares_are_at_the_edge(rng):
    X = rng.random((30, 3))
    for power in (-510, -500, 500, 509):
        gamma = gamma_by_variance(X * 2.0**power)
        assert gamma * 4.0**power == pytest.approx(gamma_by_variance(X), rel=1e-9)


@pytest.mark.parametrize("combine", [SumKernel, ProductKernel])
def test_names_in_combined_kernels_are_scaled_by_their_columns(combine, rng):
    X = rng.standard_normal((30, 5)) * [1, 1, 100, 100, 100]
    fitted = combine([("rbf", [0, 1]), ("laplacian", [2, 3, 4]), ("linear", [0])]).fitted_to(X)
    gammas = [getattr(kernel, "gamma", None) for kernel, _ in fitted.parts]
    assert gammas[0] == pytest.approx(1 / (2 * X[:, :2].var()))
    assert gammas[1] == pytest.approx(scaled("laplacian", X[:, 2:]).gamma)
    assert gammas[2] is None
    assert fitted.fitted_to(10 * X) is fitted
    # An object brings its own, and a kernel called by itself has scikit-learn's default.
    assert combine([(RBFKernel(), [0, 1])]).fitted_to(X).parts[0][0].gamma == 0.5
    # One array twice, as the part sees it: of two equal arrays BLAS may round products otherwise.
    rows = X[:, :2]
    np.testing.assert_array_equal(combine([("rbf", [0, 1])])(X, X), RBFKernel(0.5)(rows, rows))


def test_users_kernels_may_know_better(rng):
    class Cauchy:
        gamma = "scale"

        def values(self, X, Y):
            return 1 / (1 + self.gamma * np.square(X[:, None] - Y).sum(axis=2))

    class Own(Cauchy):
        def scale_gamma(self, X):
            return 0.25 * len(X)

    X = rng.standard_normal((10, 3))
    assert make_kernel(Cauchy).with_gamma_from(X).gamma == pytest.approx(1 / (3 * X.var()))
    assert make_kernel(Own).with_gamma_from(X).gamma == 2.5


def test_distances_are_all_scaled(rng):
    X = rng.random((12, 64)) * 255
    for name in DISTANCES:
        shape = (
            {"image_shape": (8, 8)} if "image_shape" in DISTANCES[name].__dataclass_fields__ else {}
        )
        if name == "unified":
            continue  # made of others
        kernel = make_kernel(name, gamma="scale", kernel_params=shape).with_gamma_from(X)
        K = kernel(X, X)[~np.eye(12, dtype=bool)]
        assert -np.log(K).mean() == pytest.approx(1, rel=1e-6)


def test_spread_makes_rows_at_the_mean_distance_similar_by_a_half(rng):
    X = rng.random((9, 4))
    pairs = [naive_distance("laplacian", x, y) for i, x in enumerate(X) for y in X[:i]]
    gamma = make_kernel("laplacian", gamma="spread").with_gamma_from(X).gamma
    assert np.exp(-gamma * np.mean(pairs)) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("gamma", ["scale", "spread"])
def test_one_row_and_two(gamma, rng):
    X = rng.random((2, 4))
    kernel = make_kernel("laplacian", gamma=gamma)
    at_mean = 1 if gamma == "scale" else np.log(2)
    assert kernel.with_gamma_from(X).gamma == pytest.approx(at_mean / np.abs(X[0] - X[1]).sum())
    assert kernel.with_gamma_from(X[:1]).gamma == 1


def test_many_rows_are_met_by_few(rng):
    """256 rows from the first to the last, each with 16 others from the next to the one before."""
    X = np.sort(rng.random((1000, 3)), axis=0)
    rows = [X[int(999 * i / 255)] for i in range(256)]
    others = [int(1 + 254 * i / 15) for i in range(16)]
    far = [np.abs(x - rows[(i + s) % 256]).sum() for i, x in enumerate(rows) for s in others]
    assert scaled("laplacian", X).gamma == pytest.approx(1 / np.mean(far), rel=1e-12)
