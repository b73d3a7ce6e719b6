"""Pre-images: textbook versions, identities, limits, bad input."""

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, pairwise_kernels

from kernelatoms import KernelKSVD, KernelMOD, preimage
from kernelatoms.features.preimage_methods import (
    Vectors,
    distance_rows,
    fixed_point_rows,
    fixed_point_starts,
    regress_rows,
    ridge_rows,
    rows_to_regress,
)
from kernelatoms.similarity import make_kernel
from kernelatoms.similarity.gradients import GaussianInversion as Gaussian
from kernelatoms.similarity.gradients import PolynomialInversion as Polynomial
from oracles import preimages as book

RBF = {"kernel": "rbf", "gamma": 0.3}
CUBIC = {"kernel": "poly", "gamma": 0.5, "degree": 3, "coef0": 1.0}
PURE_CUBIC = {"kernel": "poly", "gamma": 1.0, "degree": 3, "coef0": 0.0}
SQUARE = {"kernel": "poly", "gamma": 1.0, "degree": 2, "coef0": 0.0}
LINEAR = {"kernel": "linear"}
KERNELS = [RBF, CUBIC, PURE_CUBIC, SQUARE, LINEAR]
METHODS = ["auto", "fixed-point", "distance", "ridge"]

seeds = st.integers(0, 2**31)
sizes = st.tuples(st.integers(1, 12), st.integers(1, 6), st.integers(1, 4))


def kernel_matrix(kernel, X, Y):
    parameters = {name: value for name, value in kernel.items() if name != "kernel"}
    return pairwise_kernels(X, Y, metric=kernel["kernel"], **parameters)


def errors_of(kernel, rows, A, C):
    """|phi(x) - v|^2 / |v|^2 from whole kernel matrices."""
    energy = np.diagonal(C.T @ kernel_matrix(kernel, A, A) @ C)
    own = np.diagonal(kernel_matrix(kernel, rows, rows))
    return (own + energy - 2 * np.diagonal(kernel_matrix(kernel, rows, A) @ C)) / energy


def random_vectors(seed, shape, signed=True):
    n, d, m = shape
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((n, m)) if signed else rng.uniform(0.1, 1, (n, m))
    return rng.standard_normal((n, d)), C


def vectors(A, C, K=None):
    K = kernel_matrix(RBF, A, A) if K is None else K
    energy = np.diagonal(C.T @ K @ C)
    return Vectors(A, C, K @ C, np.sqrt(np.diagonal(K)), energy, energy > 0)


# Against the textbook


@given(seed=seeds, shape=sizes, n_steps=st.integers(1, 30))
def test_fixed_point_is_the_textbooks_where_that_converges(seed, shape, n_steps):
    """With positive coefficients every step of eq. (10) is uphill, so none is shortened."""
    A, C = random_vectors(seed, shape, signed=False)
    starts = np.random.default_rng(seed + 1).standard_normal((shape[2], 1, shape[1]))
    rows = fixed_point_rows(Gaussian(0.3), vectors(A, C), starts, n_steps, 0.0)
    for j, row in enumerate(rows):
        expected = book.rbf_fixed_point(starts[j, 0], A, C[:, j], 0.3, n_steps)
        np.testing.assert_allclose(row, expected, atol=1e-6)


@given(seed=seeds, shape=sizes, kernel=st.sampled_from([RBF, CUBIC, PURE_CUBIC, SQUARE]))
def test_where_fixed_point_stops_the_textbook_stays(seed, shape, kernel):
    A, C = random_vectors(seed, shape)
    result = preimage(C, A, **kernel, method="fixed-point", max_iter=5000, tol=1e-14)
    for row, error, c in zip(result.rows, result.error, C.T, strict=True):
        if error > 0.99:  # running off to infinity (RBF) or down to 0 (polynomial)
            continue
        if kernel is RBF:
            then = book.rbf_fixed_point(row, A, c, 0.3, 1)
        else:
            parameters = {name: kernel[name] for name in ("gamma", "degree", "coef0")}
            then = book.poly_fixed_point(row, A, c, **parameters, n_steps=1)
        np.testing.assert_allclose(then, row, atol=1e-4 * max(1, np.abs(row).max()))


@given(seed=seeds, shape=sizes, k=st.integers(1, 12))
def test_distances_are_the_textbooks(seed, shape, k):
    A, C = random_vectors(seed, shape, signed=False)
    k = min(k, len(A))
    K = kernel_matrix(RBF, A, A)
    C = C / np.sqrt(np.diagonal(C.T @ K @ C))
    singular = np.linalg.svd(A - A.mean(axis=0), compute_uv=False)
    assume(singular[min(k, len(singular)) - 1] > 1e-3 or k <= 2)
    rows = distance_rows(Gaussian(0.3), vectors(A, C, K), k)
    for row, c in zip(rows, C.T, strict=True):
        np.testing.assert_allclose(row, book.rbf_distances(A, c, 0.3, k), rtol=1e-5, atol=1e-5)


@given(seed=seeds, shape=sizes, k=st.integers(1, 12), kernel=st.sampled_from([CUBIC, PURE_CUBIC]))
def test_inner_products_are_the_textbooks(seed, shape, k, kernel):
    A, C = random_vectors(seed, shape)
    rows = preimage(C, A, **kernel, method="distance", n_neighbors=k).rows
    parameters = {name: kernel[name] for name in ("gamma", "degree", "coef0")}
    for row, c in zip(rows, C.T, strict=True):
        expected = book.poly_products(A, c, **parameters, n_neighbors=k)
        np.testing.assert_allclose(row, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@given(seed=seeds, shape=sizes, kernel=st.sampled_from(KERNELS))
def test_ridge_is_the_textbooks(seed, shape, kernel):
    A, C = random_vectors(seed, shape)
    K = kernel_matrix(kernel, A, A)
    rows = preimage(C, A, **kernel, method="ridge").rows
    tried = book.ridge(K, A, C.T @ K)
    least = min(gcv for gcv, _ in tried)
    # The smallest ridge makes the condition 1e8: GCV errors nearer than 1e-6 are a tie.
    best = [expected for gcv, expected in tried if gcv <= least * (1 + 1e-6)]
    assert any(np.allclose(rows, e, rtol=1e-4, atol=1e-4 * np.abs(e).max()) for e in best)


def test_where_every_ridge_is_as_good_the_smallest_is_taken(rng):
    """One row, or rows that the kernel sees far apart: K = I, and the GCV error is constant."""
    for n in (1, 2, 7, 50):
        A = rng.standard_normal((n, 3))
        rows = preimage(np.eye(n), A, gamma=1e5, method="ridge").rows
        np.testing.assert_allclose(rows, A, rtol=1e-7)


@given(seed=seeds, shape=sizes)
def test_ridge_from_inner_products_is_ridge_from_coordinates(seed, shape):
    A, V = random_vectors(seed, shape)
    V = V[: shape[1]].T if shape[0] >= shape[1] else np.ones((shape[2], shape[1]))
    np.testing.assert_allclose(
        ridge_rows(make_kernel("linear"), A, A @ V.T), regress_rows(A, A, V), atol=1e-9
    )


# The error


@given(seed=seeds, shape=sizes, kernel=st.sampled_from(KERNELS), method=st.sampled_from(METHODS))
def test_the_error_is_the_distance_in_feature_space(seed, shape, kernel, method):
    A, C = random_vectors(seed, shape)
    result = preimage(C, A, **kernel, method=method)
    assert result.rows.shape == (shape[2], shape[1])
    assert result.error.shape == (shape[2],)
    np.testing.assert_allclose(
        result.error, errors_of(kernel, result.rows, A, C), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("method", METHODS)
def test_the_error_in_words_of_the_textbook(method, rng):
    A, c = rng.standard_normal((5, 3)), rng.standard_normal(5)
    for kernel, k in [
        (RBF, partial(book.rbf, gamma=0.3)),
        (CUBIC, partial(book.poly, gamma=0.5, degree=3, coef0=1.0)),
    ]:
        rows, error = preimage(c, A, **kernel, method=method)
        assert error == pytest.approx(book.relative_error(k, rows[0], A, c))


@pytest.mark.parametrize("method", METHODS)
def test_the_error_in_a_feature_space_written_out(method, rng):
    """(x'y)^2 is the inner product of xx' and yy'."""
    A, C = rng.standard_normal((9, 3)), rng.uniform(0, 1, (9, 4))
    rows, error = preimage(C, A, **SQUARE, method=method)
    vectors = np.einsum("im,ij,ik->mjk", C, A, A)
    found = np.einsum("mj,mk->mjk", rows, rows)
    expected = ((found - vectors) ** 2).sum((1, 2)) / (vectors**2).sum((1, 2))
    np.testing.assert_allclose(error, expected, rtol=1e-9)


# Identities


@pytest.mark.parametrize(("max_iter", "tolerance"), [(20, 1e-2), (100, 1e-6)])
def test_fixed_point_goes_on_where_its_denominator_vanishes(max_iter, tolerance):
    """Halfway between phi(a) and -phi(b), <phi(x), v> is 0: the plain iteration divides by it."""
    A, c = np.array([[0.0], [1.0]]), np.array([[1.0], [-1.0 + 1e-9]])
    c = c / np.sqrt(c.T @ kernel_matrix(RBF, A, A) @ c)
    start = np.full((1, 1, 1), 0.5)
    rows = fixed_point_rows(Gaussian(0.3), vectors(A, c), start, max_iter, 1e-9)
    line = np.linspace(-3, 3, 10001)[:, None]
    best = 2 - 2 * (kernel_matrix(RBF, line, A) @ c).max()
    assert errors_of(RBF, rows, A, c) == pytest.approx(best, abs=tolerance)


@given(
    seed=seeds,
    shape=st.tuples(st.integers(1, 12), st.integers(1, 6)),
    kernel=st.sampled_from([RBF, CUBIC, PURE_CUBIC, LINEAR]),
    method=st.sampled_from(["auto", "fixed-point", "distance"]),
)
def test_phi_of_an_anchor_gives_the_anchor(seed, shape, kernel, method):
    A, _ = random_vectors(seed, (*shape, 1))
    rows, error = preimage(np.eye(len(A)), A, **kernel, method=method)
    np.testing.assert_allclose(rows, A, atol=1e-5)
    np.testing.assert_allclose(error, 0, atol=1e-9)


@pytest.mark.parametrize("method", ["auto", "fixed-point", "distance"])
def test_even_degrees_give_anchors_without_negative_values(method, rng):
    A = rng.uniform(0, 1, (8, 5))
    rows, error = preimage(np.eye(8), A, **SQUARE, method=method)
    np.testing.assert_allclose(rows, A, atol=1e-6)
    np.testing.assert_allclose(error, 0, atol=1e-12)


def test_even_degrees_take_the_root_from_zero_up():
    """On orthonormal anchors every equation stands alone: x_i^2 = c_i, or x_i = 0."""
    c = np.array([4.0, 0.0, -1.0, 9.0])
    rows = preimage(c, np.eye(4), **SQUARE, method="distance").rows
    np.testing.assert_allclose(rows, [[2, 0, 0, 3]], atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_single_anchor_is_its_own_preimage(method, kernel):
    rows, error = preimage([1.0], [[0.3, 0.2]], **kernel, method=method)
    np.testing.assert_allclose(rows, [[0.3, 0.2]], rtol=1e-6)
    np.testing.assert_allclose(error, 0, atol=1e-12)


@given(seed=seeds, shape=sizes, kernel=st.sampled_from(KERNELS))
def test_auto_is_never_worse_than_the_others(seed, shape, kernel):
    A, C = random_vectors(seed, shape)
    best = preimage(C, A, **kernel).error
    for method in METHODS[1:]:
        assert (best <= preimage(C, A, **kernel, method=method).error + 1e-9).all(), method


@given(seed=seeds, shape=sizes, kernel=st.sampled_from(KERNELS), max_iter=st.integers(1, 50))
def test_fixed_point_is_never_worse_than_where_it_started(seed, shape, kernel, max_iter):
    A, C = random_vectors(seed, shape)
    K = kernel_matrix(kernel, A, A)
    if kernel is RBF:
        form, C = Gaussian(0.3), C / np.sqrt(np.diagonal(C.T @ K @ C))
    else:
        form = Polynomial(*(kernel.get(*p) for p in [("gamma", 1), ("degree", 1), ("coef0", 0)]))
    starts = fixed_point_starts(form, vectors(A, C, K), 3)
    before = [errors_of(kernel, starts[:, s], A, C) for s in range(starts.shape[1])]
    rows = fixed_point_rows(form, vectors(A, C, K), starts, max_iter, 1e-6)
    after = errors_of(kernel, rows, A, C)
    best = np.min(before, axis=0)
    assert (after <= best + 1e-9 * np.maximum(best, 1)).all()


@given(seed=seeds, shape=sizes, method=st.sampled_from(["auto", "fixed-point", "distance"]))
def test_under_a_linear_kernel_the_vector_is_the_row(seed, shape, method):
    A, C = random_vectors(seed, shape)
    for kernel in (LINEAR, {"kernel": "poly", "degree": 1, "gamma": 2.0, "coef0": 0.0}):
        own = {} if method == "fixed-point" else {"n_neighbors": len(A)}
        rows, error = preimage(C, A, **kernel, method=method, **own)
        np.testing.assert_allclose(rows, C.T @ A, atol=1e-6 * np.abs(C.T @ A).max())
        np.testing.assert_allclose(error, 0, atol=1e-9)


def test_the_length_of_v_under_rbf(rng):
    """Its rows do not depend on it; its error has a floor, for |phi(x)| = 1."""
    A, C = rng.standard_normal((10, 3)), rng.uniform(0, 1, (10, 4))
    norm = np.sqrt(np.diagonal(C.T @ kernel_matrix(RBF, A, A) @ C))
    for method in ("fixed-point", "distance"):
        unit = preimage(C / norm, A, **RBF, method=method)
        long = preimage(7 * C / norm, A, **RBF, method=method)
        np.testing.assert_allclose(long.rows, unit.rows, atol=1e-9)
        cosine = 1 - unit.error / 2
        np.testing.assert_allclose(long.error, (1 + 49 - 14 * cosine) / 49)
        assert (long.error >= (1 - 1 / 7) ** 2).all()


def test_the_length_of_v_under_pure_polynomials(rng):
    """phi(t x) = t^3 phi(x): no scaling is needed, rows take it."""
    A, C = rng.standard_normal((10, 3)), rng.standard_normal((10, 4))
    for method in ("fixed-point", "distance", "auto"):
        own = {} if method == "distance" else {"max_iter": 5000, "tol": 1e-14}
        unit, long = (preimage(t**3 * C, A, **PURE_CUBIC, method=method, **own) for t in (1, -7))
        np.testing.assert_allclose(long.rows, -7 * unit.rows, atol=1e-3 * np.abs(long.rows).max())
        np.testing.assert_allclose(long.error, unit.error, atol=1e-5)


def test_many_at_once_is_one_by_one(rng):
    A, C = rng.standard_normal((40, 5)), rng.standard_normal((40, 300))
    for kernel in (RBF, CUBIC):
        together = preimage(C, A, **kernel)
        for j in (0, 150, 299):
            alone = preimage(C[:, j], A, **kernel)
            np.testing.assert_allclose(alone.rows[0], together.rows[j], atol=1e-5)
            np.testing.assert_allclose(alone.error[0], together.error[j], atol=1e-6)


def test_float32_in_float32_out(rng):
    A, C = rng.standard_normal((20, 5)), rng.uniform(0, 1, (20, 6))
    for kernel in KERNELS:
        for method in METHODS:
            low = preimage(C.astype("f"), A.astype("f"), **kernel, method=method)
            high = preimage(C, A, **kernel, method=method)
            assert low.rows.dtype == low.error.dtype == np.float32
            assert high.rows.dtype == high.error.dtype == np.float64
            # A share of |v|^2, of which 1 + error bounds what is added up.
            np.testing.assert_allclose(low.error, high.error, rtol=2e-3, atol=2e-3)


def test_more_anchors_than_a_regression_needs(rng):
    A = rng.uniform(-1, 1, (1300, 2))
    C = np.zeros((1300, 2))
    C[[3, 900], [0, 1]] = 1
    rows, error = preimage(C, A, gamma=0.5, method="ridge")
    np.testing.assert_allclose(rows, A[[3, 900]], atol=1e-2)
    assert (error < 1e-3).all()


# Corners


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_no_vector_no_row(method, kernel, rng):
    A = rng.standard_normal((6, 3))
    A[5] = A[4]
    C = np.zeros((6, 3))
    C[0, 0] = 1.0
    C[[4, 5], 2] = 1.0, -1.0  # cancels
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows, error = preimage(C, A, **kernel, method=method)
    assert not rows[1:].any()
    expected = 0.0 if kernel in (PURE_CUBIC, SQUARE, LINEAR) else np.inf  # phi(0) = 0, or not
    assert list(error[1:]) == [expected] * 2
    assert np.isfinite(error[0])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_vectors_that_no_row_comes_near(method, kernel, rng):
    """-phi(a) under a kernel without negative values: rows are finite, the error says it."""
    A = rng.uniform(0, 1, (6, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows, error = preimage(-np.ones(6), A, **kernel, method=method)
    assert np.isfinite(rows).all()
    assert np.isfinite(error).all()
    if kernel is RBF:
        assert error > 1
    if kernel is SQUARE:
        assert error >= 1 - 1e-12
    if kernel in (PURE_CUBIC, LINEAR) and method in ("fixed-point", "auto"):
        # phi(-x) = -phi(x): as near as the best multiple of an anchor, 1 - cos^2.
        K = kernel_matrix(kernel, A, A)
        cosines = K.sum(axis=1) / np.sqrt(np.diagonal(K) * K.sum())
        assert error <= 1 - cosines.max() ** 2 + 1e-9


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_anchors_of_zeros(method, kernel):
    rows, error = preimage([[1.0], [1.0]], np.zeros((2, 3)), **kernel, method=method)
    np.testing.assert_allclose(rows, 0, atol=1e-12)
    assert np.isfinite(error).all()


def test_narrow_kernels_return_the_heaviest_anchor(rng):
    A = rng.standard_normal((10, 4))
    c = rng.uniform(0.1, 0.5, 10)
    c[7] = 1.0
    for method in ("auto", "fixed-point"):
        rows, error = preimage(c, A, gamma=1e4, method=method)
        np.testing.assert_allclose(rows, A[7:8], atol=1e-6)
    # "distance" believes that all anchors are near v, and ends up between them.
    assert preimage(c, A, gamma=1e4, method="distance").error > error


@pytest.mark.parametrize("kernel", [laplacian_kernel, "laplacian", "cosine", "chi2", chi2_kernel])
def test_other_kernels_have_ridge_and_nearest_anchor(kernel, rng):
    A, C = rng.uniform(0.5, 1, (20, 4)), rng.uniform(0, 1, (20, 5))
    C[:, 0] = np.eye(20)[3]
    options = {"kernel": kernel, "gamma": None}  # as scikit-learn compares pairs
    learned, best = (preimage(C, A, method=m, **options) for m in ("ridge", "auto"))
    assert (best.error <= learned.error).all()
    assert best.error[0] == pytest.approx(0, abs=1e-9)
    metric = kernel if isinstance(kernel, str) else lambda x, y: kernel(x[None], y[None])[0, 0]
    np.testing.assert_allclose(
        best.error, errors_of({"kernel": metric}, best.rows, A, C), atol=1e-9
    )
    for method in ("fixed-point", "distance"):
        with pytest.raises(ValueError, match=r"'rbf', 'linear' and 'poly'.*'ridge' works"):
            preimage(C, A, kernel=kernel, method=method)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "precomputed"}, "anchors as rows"),
        ({"kernel": "unknown"}, "kernel must be one of"),
        ({"kernel": "poly", "degree": 2.5, "method": "distance"}, "whole degree"),
        ({"kernel": "poly", "coef0": -1, "method": "fixed-point"}, "coef0 from 0"),
        ({"kernel": "poly", "coef0": -5, "gamma": 1}, "positive semi-definite"),
        ({"kernel": lambda X, Y: -(X @ Y.T), "method": "ridge"}, "positive semi-definite"),
        ({"kernel": "poly", "degree": 300, "gamma": 100}, "overflow"),
        ({"method": "newton"}, "method must be one of 'auto', 'fixed-point'"),
        ({"n_neighbors": 0}, "n_neighbors must be at least 1"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"tol": -1.0}, "tol must be at least 0"),
        ({"coef": np.ones((5, 4))}, r"one row for each of the 4 anchors.*Transpose it\?"),
        ({"coef": np.ones(5)}, "one row for each of the 4 anchors"),
        ({"coef": [1, 2, np.nan, 0]}, "coef contains NaN"),
        ({"coef": np.ones((4, 1, 1))}, "dim"),
        ({"anchors": [[1, 2], [3, np.inf], [0, 0], [1, 1]]}, "anchors contains infinity"),
        ({"anchors": np.ones(4)}, "2D"),
    ],
)
def test_bad_input(arguments, message, rng):
    given_ = {"coef": np.ones((4, 2)), "anchors": rng.standard_normal((4, 3))} | arguments
    with pytest.raises(ValueError, match=message):
        preimage(given_.pop("coef"), given_.pop("anchors"), **given_)


# Atoms


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:400] / 16


@pytest.mark.parametrize("learner", [KernelKSVD, KernelMOD])
@pytest.mark.parametrize(
    "kernel",
    [{"kernel": "rbf", "gamma": 0.05}, {"kernel": "poly", "gamma": 1.0, "degree": 3, "coef0": 0.0}],
)
def test_atoms_of_digits(learner, kernel, digits):
    X = digits / np.linalg.norm(digits, axis=1, keepdims=True) if "degree" in kernel else digits
    model = learner(20, **kernel, n_nonzero_coefs=4, max_iter=5, random_state=0).fit(X)
    vectors = model.dual_coef_, model.anchors_
    reached = {method: preimage(*vectors, **kernel, method=method) for method in METHODS}
    error = {method: result.error.mean() for method, result in reached.items()}
    # The fixed point is where descent ends, so it beats those that do not look at the error.
    assert error["fixed-point"] < 0.75 * min(error["ridge"], error["distance"])
    assert error["auto"] <= error["fixed-point"] + 1e-6
    assert error["auto"] < 0.2
    np.testing.assert_allclose(reached["ridge"].rows, model.components_, atol=1e-6)
    # Atoms of digits look like digits: next to no ink outside of 0 to 1, in the rows' own scale.
    ink = reached["auto"].rows / X.max()
    assert ((ink > -0.25) & (ink < 1.25)).mean() > 0.99


def test_fits_regress_few_rows_from_first_to_last():
    assert rows_to_regress(3).tolist() == [0, 1, 2]
    many = rows_to_regress(10_000)
    assert (len(many), many[0], many[-1]) == (500, 0, 9_999)
    assert set(np.diff(many)) == {20, 21}
