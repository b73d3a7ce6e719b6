"""Gradients of kernels, by finite differences and by the paper's formula."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.similarity import make_kernel
from kernelatoms.similarity.factory import check_gradient, names_of_kernels

GRADIENT_KERNELS = names_of_kernels("has_gradient")


def by_differences(kernel, M, X, Y, h=1e-6):
    gradient = np.empty_like(Y)
    for j, f in np.ndindex(*Y.shape):
        step = np.zeros_like(Y[j : j + 1])
        step[0, f] = h
        up, down = (kernel(X, Y[j : j + 1] + s * step)[:, 0] for s in (1, -1))
        gradient[j, f] = M[:, j] @ (up - down) / (2 * h)
    return gradient


@given(
    seed=st.integers(0, 2**31),
    name=st.sampled_from(GRADIENT_KERNELS),
    n=st.integers(1, 12),
    m=st.integers(1, 8),
    n_features=st.integers(1, 6),
    gamma=st.sampled_from([None, 0.3, 1.5]),
    dtype=st.sampled_from([np.float32, np.float64]),
    density=st.sampled_from([0.0, 0.4, 1.0]),
)
def test_gradients_are_slopes(seed, name, n, m, n_features, gamma, dtype, density):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, n_features)), rng.standard_normal((m, n_features)) + 0.1
    M = rng.standard_normal((n, m)) * (rng.random((n, m)) < density)
    kernel = make_kernel(name, gamma=gamma, degree=3, coef0=0.5)
    expected = by_differences(kernel, M, X, Y)
    scale = 1e-6 if dtype == np.float64 else 1e-3
    size = scale * (1 + np.abs(expected).max())
    X, Y, M = X.astype(dtype), Y.astype(dtype), M.astype(dtype)
    gradient = kernel.weighted_gradient(M, X, Y)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient, expected, atol=size * 10)
    sparse = kernel.weighted_gradient(scipy.sparse.csr_array(M), X, Y)
    np.testing.assert_allclose(sparse, gradient, atol=size)
    np.testing.assert_allclose(kernel.slopes(X, Y).values, kernel(X, Y), atol=size)


def test_rbf_is_the_papers_formula(rng):
    X, Y, M = rng.standard_normal((9, 4)), rng.standard_normal((5, 4)), rng.standard_normal((9, 5))
    Q = M * np.exp(-0.7 * ((X[:, None] - Y) ** 2).sum(axis=2))  # eq. (11): (Y Q - X G) / sigma^2
    expected = 2 * 0.7 * (X.T @ Q - Y.T @ np.diag(Q.sum(axis=0))).T
    np.testing.assert_allclose(make_kernel("rbf", gamma=0.7).weighted_gradient(M, X, Y), expected)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "cosine", "linear"])
def test_rows_upon_each_other_and_zero_rows(name, rng):
    X = np.vstack([np.zeros(3), rng.standard_normal((3, 3))])
    gradient = make_kernel(name).weighted_gradient(np.eye(4), X, X)
    assert np.isfinite(gradient).all()
    if name != "linear":  # k(x, y) is largest at y = x
        np.testing.assert_allclose(gradient, 0, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        ("chi2", "'chi2', which takes no negative values"),
        ("additive_chi2", "no negative values"),
        ("precomputed", "'precomputed', whose gradient is not known"),
        (lambda X, Y: X @ Y.T, "'<lambda>', whose gradient is not known"),
    ],
)
def test_kernels_without_gradient_are_refused(kernel, why, rng):
    made = make_kernel(kernel)
    with pytest.raises(ValueError, match=f"kernel must be one that .*'rbf'.*{why}"):
        check_gradient(made)
    with pytest.raises(ValueError, match="has no gradient"):
        made.weighted_gradient(np.eye(3), rng.random((3, 2)), rng.random((3, 2)))
