"""Kernel values of candidates alone: those of all rows, at any place and scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.coding import atom_products as module
from kernelatoms.coding.atom_products import falls_with_l2, gaussian_gamma, local_values
from kernelatoms.similarity import DistanceKernel, make_kernel
from kernelatoms.similarity.user_kernels import UserKernel
from oracles import local as book

seeds = st.integers(0, 2**31)


def by_the_book(kernel, X, D, candidates):
    X, D = X.astype(float), D.astype(float)
    corrs = np.where(candidates < 0, 0, np.take_along_axis(kernel(X, D), candidates, axis=1))
    return book.gather(kernel(D, D), candidates), corrs


@given(
    seed=seeds, n=st.integers(0, 6), m=st.integers(1, 20), K=st.integers(1, 9),
    dtype=st.sampled_from([np.float32, np.float64]), gamma=st.sampled_from([1e-3, 0.05, 1.0, 30.0]),
    shift=st.sampled_from([0.0, 3.0, 100.0]), with_grams=st.booleans(),
)  # fmt: skip
def test_gaussian_values_are_those_of_all_rows(seed, n, m, K, dtype, gamma, shift, with_grams):
    """Rows far from the origin, too: the float32 product is one of rows around the signal."""
    rng = np.random.default_rng(seed)
    X = (shift + rng.standard_normal((n, 7))).astype(dtype)
    D = (shift + rng.standard_normal((m, 7))).astype(dtype)
    D[: m // 2] = D[m - m // 2 :]  # twins, whose value is 1
    candidates = rng.integers(-1, m, (n, K)).astype(np.int32)
    for kernel in (make_kernel("rbf", gamma=gamma), DistanceKernel("l2", gamma=gamma)):
        grams, corrs = local_values(kernel, X, D, candidates, with_grams=with_grams)
        expected, their_corrs = by_the_book(kernel, X, D, candidates)
        # What the distances themselves lose at this place, in float64.
        lost = 1e2 * np.finfo(np.float64).eps * gamma * (1 + shift**2) * 7
        tolerance = 16 * np.finfo(dtype).eps + lost
        np.testing.assert_allclose(corrs, their_corrs, atol=tolerance)
        assert corrs.dtype == dtype
        if with_grams:
            np.testing.assert_allclose(grams, expected, atol=tolerance)
            assert grams.dtype == dtype
            assert (np.diagonal(grams, axis1=1, axis2=2)[candidates >= 0] == 1).all()
        else:
            assert grams is None


def test_other_kernels_are_asked_a_few_lists_at_a_time(rng, monkeypatch):
    X, D = rng.standard_normal((11, 3)), rng.standard_normal((20, 3))
    candidates = rng.integers(-1, 20, (11, 4)).astype(np.int32)
    monkeypatch.setattr(module, "_AT_ONCE", 2 * 8 * 4 * 3)  # two lists
    for kernel in (make_kernel("poly", degree=2), UserKernel(lambda X, Y: X @ Y.T + 1)):
        grams, corrs = local_values(kernel, X, D, candidates, with_grams=True)
        expected, their_corrs = by_the_book(kernel, X, D, candidates)
        np.testing.assert_allclose(grams, expected, atol=1e-12)
        np.testing.assert_allclose(corrs, their_corrs, atol=1e-12)


def test_missing_values_are_estimated_as_the_kernel_does(rng):
    X, D = rng.standard_normal((3, 4)), rng.standard_normal((6, 4))
    X[1, 2] = np.nan
    kernel = make_kernel("rbf", gamma=0.3)
    candidates = np.array([[0, 1], [2, 3], [4, 5]], np.int32)
    _, corrs = local_values(kernel, X, D, candidates, with_grams=True)
    np.testing.assert_allclose(corrs, np.take_along_axis(kernel(X, D), candidates, axis=1))


def test_rows_whose_distances_overflow_are_refused():
    X, D = np.array([[-1e200]]), np.array([[1e200]])
    with pytest.raises(ValueError, match="overflow"):
        local_values(make_kernel("rbf", gamma=1.0), X, D, np.array([[0]]), with_grams=True)


def test_which_kernels_are_gaussian():
    assert gaussian_gamma(make_kernel("rbf"), 5) == 0.2
    assert gaussian_gamma(DistanceKernel("l2", gamma=0.7), 5) == 0.7
    assert gaussian_gamma(DistanceKernel("l2", power=1), 5) is None
    assert falls_with_l2(DistanceKernel("l2", power=1))
    for kernel in (make_kernel("laplacian"), DistanceKernel("chi2"), make_kernel("poly")):
        assert not falls_with_l2(kernel)
        assert gaussian_gamma(kernel, 5) is None


@pytest.mark.parametrize("size", [1e25, 1e-28])
def test_float32_rows_whose_products_are_no_numbers_are_multiplied_in_float64(rng, size):
    X, D = (np.float32(size * rng.standard_normal((n, 4))) for n in (3, 6))
    kernel = make_kernel("rbf", gamma=0.1 / size**2)
    candidates = np.array([[0, 1, -1], [2, 3, 5], [4, 5, 0]], np.int32)
    grams, corrs = local_values(kernel, X, D, candidates, with_grams=True)
    expected, their_corrs = by_the_book(kernel, X, D, candidates)
    np.testing.assert_allclose(grams, expected, atol=1e-6)
    np.testing.assert_allclose(corrs, their_corrs, atol=1e-6)
