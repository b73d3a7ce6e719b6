"""l1 coding: the textbook, optimality, certificates, identities, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelatoms import sparse_encode
from kernelatoms.pursuit import lasso
from kernelatoms.similarity import make_kernel
from kernelatoms.space.expansion import Expansion
from kernelatoms.space.problem import GivenProblem, KernelProblem, LinearProblem
from oracles import lasso as book


def draw(seed, n_features, n_atoms, kind):
    rng = np.random.default_rng(seed)
    X, D = rng.standard_normal((6, n_features)), rng.standard_normal((n_atoms, n_features))
    if kind == "unit":
        D /= np.linalg.norm(D, axis=1, keepdims=True)
    elif kind == "alike":  # nearly parallel atoms, as under a wide kernel
        D = 5 + np.abs(D)
    elif kind == "twins":
        D[n_atoms // 2] = D[0]
        D[-1] = 0
    return X, D


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**31),
    n_features=st.integers(2, 30),
    n_atoms=st.integers(2, 50),
    kind=st.sampled_from(["plain", "unit", "alike", "twins"]),
    share=st.sampled_from([0.9, 0.5, 0.1, 0.01, 0.001]),
    positive=st.booleans(),
)
def test_codes_are_optimal_and_certified(seed, n_features, n_atoms, kind, share, positive):
    X, D = draw(seed, n_features, n_atoms, kind)
    alpha = share * np.abs(X @ D.T).max()
    codes = lasso(LinearProblem(X, D), alpha, positive=positive)
    W, energy = codes.to_dense(), (X**2).sum(axis=1)
    assert (codes.gap <= 1e-6 * energy).all()
    gaps = [book.duality_gap(x, D, w, alpha, positive) for x, w in zip(X, W, strict=True)]
    np.testing.assert_allclose(codes.gap, gaps, atol=1e-8 * energy.max())
    np.testing.assert_allclose(
        codes.error, ((X - W @ D) ** 2).sum(axis=1), atol=1e-8 * energy.max()
    )
    c = (X - W @ D) @ D.T
    slack = 2e-3 * alpha + np.sqrt(2e-6 * energy.max()) * np.linalg.norm(D, axis=1).max()
    assert (c if positive else np.abs(c)).max() <= alpha + slack
    if positive:
        assert (W >= 0).all()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.05, 0.005])
def test_the_textbooks_objective(share, positive):
    for seed, kind in enumerate(["plain", "unit", "twins"]):
        X, D = draw(seed, 12, 20, kind)
        alpha = share * np.abs(X @ D.T).max()
        W = lasso(LinearProblem(X, D), alpha, positive=positive).to_dense()
        for x, w in zip(X, W, strict=True):
            theirs = book.objective(x, D, book.coordinate_descent(x, D, alpha, positive), alpha)
            assert book.objective(x, D, w, alpha) <= theirs + 1e-6 * (x @ x)


def test_orthonormal_atoms_are_soft_thresholds(rng):
    D = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    X = rng.standard_normal((20, 8))
    b = X @ D.T
    expected = np.sign(b) * np.maximum(np.abs(b) - 0.3, 0)
    np.testing.assert_allclose(
        sparse_encode(X, D, method="lasso", alpha=0.3).toarray(), expected, atol=1e-9
    )


def test_alpha_from_the_largest_correlation_on_gives_nothing(rng):
    X, D = draw(0, 10, 15, "plain")
    largest = np.abs(X @ D.T).max()
    assert sparse_encode(X, D, method="lasso", alpha=largest).nnz == 0
    assert sparse_encode(X, D, method="lasso", alpha=0.99 * largest).nnz == 1


def test_one_by_one_is_the_batch_and_kernels_are_their_products(rng):
    X, D = draw(3, 10, 30, "unit")
    batch = lasso(LinearProblem(X, D), 0.2).to_dense()
    alone = np.vstack([lasso(LinearProblem(X[i : i + 1], D), 0.2).to_dense() for i in range(6)])
    np.testing.assert_allclose(alone, batch, atol=1e-12)
    kernel = lasso(KernelProblem(X, Expansion(make_kernel("linear"), D)), 0.2).to_dense()
    np.testing.assert_allclose(kernel, batch, atol=1e-9)
    given_ = lasso(GivenProblem(D @ D.T, X @ D.T, (X**2).sum(axis=1)), 0.2).to_dense()
    np.testing.assert_allclose(given_, batch, atol=1e-9)


def test_wide_kernels_need_no_thousands_of_passes(rng):
    """All kernel values near 1: coordinate descent crawls, the path takes a few steps."""
    X, D = rng.random((40, 30)), rng.random((100, 30))
    problem = KernelProblem(X, Expansion(make_kernel("rbf", gamma=1e-3), D))
    codes = lasso(problem, 1e-4)
    assert (codes.gap <= 1e-6).all()
    assert 0 < (codes.indices >= 0).sum(axis=1).max() < 60


def test_float32_is_near_float64(rng):
    X, D = draw(5, 20, 40, "unit")
    double = sparse_encode(X, D, method="lasso", alpha=0.1)
    single = sparse_encode(X.astype("f4"), D.astype("f4"), method="lasso", alpha=0.1)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.toarray(), double.toarray(), atol=1e-4)


def test_large_supports_go_over_to_coordinate_descent(rng, monkeypatch):
    import sys

    X, D = draw(7, 60, 80, "unit")
    expected = lasso(LinearProblem(X, D), 0.01)
    monkeypatch.setattr(sys.modules["kernelatoms.pursuit.lasso"], "_MOST_ACTIVE", 10)
    codes = lasso(LinearProblem(X, D), 0.01)
    assert (codes.gap <= 1e-6 * (X**2).sum(axis=1)).all()
    np.testing.assert_allclose(codes.error, expected.error, atol=1e-3)
    assert ((codes.indices >= 0).sum(axis=1) > 10).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs alpha"),
        ({"alpha": 0}, "alpha must be above 0"),
        ({"alpha": 0.1, "n_nonzero_coefs": 3}, "n_nonzero_coefs belongs to method='omp'"),
        ({"alpha": 0.1, "candidates": [[0]] * 6}, "candidates belongs to method='omp'"),
        ({"alpha": 0.1, "kernel": "precomputed"}, "needs k\\(x, x\\)"),
    ],
)
def test_bad_arguments_are_named(options, message):
    X, D = draw(0, 5, 5, "plain")
    D = D @ D.T if "kernel" in options else D
    with pytest.raises(ValueError, match=message):
        sparse_encode(X, D, method="lasso", **options)
    with pytest.raises(ValueError, match="belong to method='lasso'"):
        sparse_encode(X, D, alpha=0.1)
    X[2, 1] = np.nan
    if options == {}:
        with pytest.raises(ValueError, match="complete rows are needed"):
            sparse_encode(X, D, method="lasso", alpha=0.1)
