"""The rivals of the FKSC paper: textbook versions, closed forms, singular Grams, bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from oracles import lasso as lasso_book
from oracles import rivals as book
from reproduction.fksc.rivals import (
    keep_largest,
    keep_on_average,
    kfmc,
    ksr_l21,
    linear_cd,
    lpm,
)

seeds = st.integers(0, 2**31)
sizes = st.tuples(st.integers(1, 8), st.integers(1, 12), st.integers(1, 6))
KINDS = ["random", "wide", "twins"]


def draw(seed, shape, kind="random"):
    """Gram and correlations of RBF kernels; atoms in twins, or all nearly alike, are singular."""
    n_signals, n_atoms, n_features = shape
    rng = np.random.default_rng(seed)
    X, D = rng.standard_normal((n_signals, n_features)), rng.standard_normal((n_atoms, n_features))
    if kind == "twins":
        D[n_atoms // 2 :] = D[: n_atoms - n_atoms // 2]
    gamma = 1e-4 if kind == "wide" else 0.3
    return rbf_kernel(D, D, gamma=gamma), rbf_kernel(X, D, gamma=gamma)


# CD


@given(seed=seeds, n_atoms=st.integers(1, 10), alpha=st.sampled_from([0.01, 0.3, 2.0]))
@pytest.mark.slow
def test_linear_cd_is_the_lasso_of_rows(seed, n_atoms, alpha):
    rng = np.random.default_rng(seed)
    X, D = rng.standard_normal((3, 6)), rng.standard_normal((n_atoms, 6))
    codes = linear_cd(D @ D.T, X @ D.T, (X**2).sum(axis=1), alpha)
    for x, w in zip(X, codes, strict=True):
        expected = lasso_book.coordinate_descent(x, D, alpha, n_passes=1000)
        ours, books = (lasso_book.objective(x, D, v, alpha) for v in (w, expected))
        assert ours <= books + 1e-5 * (x @ x)


def test_linear_cd_over_orthonormal_atoms_is_a_soft_threshold(rng):
    X = rng.standard_normal((4, 5))
    codes = linear_cd(np.eye(5), X, (X**2).sum(axis=1), 0.4)
    np.testing.assert_allclose(codes, np.sign(X) * np.maximum(np.abs(X) - 0.4, 0), atol=1e-9)


# KFMC


@given(seed=seeds, shape=sizes, kind=st.sampled_from(KINDS), beta=st.sampled_from([1e-3, 0.1, 5]))
def test_kfmc_is_the_textbooks(seed, shape, kind, beta):
    K, corr = draw(seed, shape, kind)
    codes = kfmc(K, corr, beta)
    np.testing.assert_allclose(codes, book.kfmc(K, corr.T, beta).T, atol=1e-8)
    np.testing.assert_allclose(codes @ K + beta * codes, corr, atol=1e-9)  # where it is flat


def test_kfmc_over_orthonormal_atoms_shrinks(rng):
    corr = rng.standard_normal((3, 4))
    np.testing.assert_allclose(kfmc(np.eye(4), corr, 0.25), corr / 1.25)
    np.testing.assert_allclose(kfmc(np.array([[2.0]]), corr[:, :1], 0.5), corr[:, :1] / 2.5)


@pytest.mark.parametrize("kind", ["wide", "twins"])
@pytest.mark.parametrize("beta", [1e-6, 1e-12, 1e-18, 1e-300])
def test_kfmc_of_singular_grams_still_explains_the_signals(kind, beta):
    K, _ = draw(3, (5, 40, 3), kind)
    corr = K[:6]  # signals that are atoms
    codes = kfmc(K, corr, beta)
    np.testing.assert_allclose(codes @ K, corr, atol=2e-6)
    assert np.abs(codes).max() < 10
    if kind == "twins":
        np.testing.assert_allclose(codes[:, :20], codes[:, 20:], atol=1e-2)


# KSR-L2,1


@given(
    seed=seeds,
    shape=sizes,
    kind=st.sampled_from(["random", "twins"]),
    alpha=st.sampled_from([0.1, 0.5, 2.0]),
)
def test_ksr_is_as_good_as_the_minimum_row_by_row(seed, shape, kind, alpha):
    K, corr = draw(seed, shape, kind)
    # Atoms nearly alike trade their weights for any number of passes; noise of their own ends that.
    K[np.diag_indices_from(K)] += 0.1
    codes = ksr_l21(K, corr, alpha, max_iter=2000, tol=1e-12)
    minimum = book.l21_by_rows(K, corr.T, alpha, 500)
    ours, books = (book.l21_objective(K, corr.T, W, alpha) for W in (codes.T, minimum))
    assert ours <= books + 1e-4 * max(1, abs(books))


@given(
    seed=seeds,
    shape=sizes,
    kind=st.sampled_from(KINDS),
    alpha=st.sampled_from([1e-3, 0.1, 1.0, 10.0]),
)
@pytest.mark.slow
def test_no_closed_form_of_ksr_raises_the_objective(seed, shape, kind, alpha):
    K, corr = draw(seed, shape, kind)
    eps = 1e-6 * np.linalg.norm(ksr_l21(K, corr, alpha, max_iter=1), axis=0).max()
    values = [
        book.l21_objective(K, corr.T, ksr_l21(K, corr, alpha, max_iter=n, tol=-1).T, alpha, eps)
        for n in range(1, 15)
    ]
    # The last bits: rounding, and rows that are cut to 0 at the size of eps.
    assert (np.diff(values) <= 1e-9 * abs(values[0]) + 20 * eps * alpha * len(K)).all()


def test_ksr_over_orthonormal_atoms_shrinks_whole_rows(rng):
    """Each row alone: |w|^2 - 2 w'b + alpha |w|, least at w = b (1 - alpha / 2 |b|), or 0."""
    corr = rng.standard_normal((5, 6)) * [3, 2, 1, 0.5, 0.1, 0.01]
    norms = np.linalg.norm(corr, axis=0)
    alpha = 2 * np.sort(norms)[2:4].mean()  # between the third and the fourth
    codes = ksr_l21(np.eye(6), corr, alpha, max_iter=5000, tol=0)
    np.testing.assert_allclose(codes, corr * np.maximum(1 - alpha / 2 / norms, 0), atol=1e-4)
    assert not codes[:, norms <= alpha / 2].any()
    assert codes[:, norms > alpha / 2].all()


def test_ksr_shares_few_atoms_among_all_signals(rng):
    """Signals made of three of thirty atoms: those and no others."""
    D = rng.standard_normal((30, 40))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.standard_normal((50, 3)) @ D[[4, 11, 25]]
    codes = ksr_l21(D @ D.T, X @ D.T, 0.5, tol=1e-9)
    assert set(np.flatnonzero(codes.any(axis=0))) == {4, 11, 25}
    np.testing.assert_allclose(codes @ D, X, atol=0.15)


def test_ksr_with_a_heavy_penalty_is_zero(rng):
    K, corr = draw(1, (6, 8, 3))
    assert not ksr_l21(K, corr, 1000.0).any()
    assert not ksr_l21(K, np.zeros((6, 8)), 0.1).any()


@pytest.mark.parametrize("kind", ["wide", "twins"])
@pytest.mark.parametrize("alpha", [1e-2, 1e-8, 1e-20])
def test_ksr_of_singular_grams(kind, alpha):
    K, _ = draw(3, (5, 40, 3), kind)
    codes = ksr_l21(K, K[:6], alpha, max_iter=30)
    assert np.isfinite(codes).all()
    np.testing.assert_allclose(codes @ K, K[:6], atol=max(1e-3, 2 * alpha))


# LPM


@given(seed=seeds, shape=sizes, kind=st.sampled_from(KINDS), k=st.integers(1, 5))
def test_lpm_is_the_textbooks(seed, shape, kind, k):
    K, corr = draw(seed, shape, "random" if kind == "wide" else kind)
    codes = lpm(K, corr, k, max_iter=20, tol=0)
    for w, b in zip(codes, corr, strict=True):
        values = [book.l0_objective(K, b, v) for v in (w, book.lpm(K, b, k, 20))]
        np.testing.assert_allclose(*values, atol=1e-9)


@given(seed=seeds, shape=sizes, kind=st.sampled_from(KINDS), k=st.integers(1, 5))
@pytest.mark.slow
def test_no_step_of_lpm_raises_the_error(seed, shape, kind, k):
    K, corr = draw(seed, shape, kind)
    steps = [lpm(K, corr, k, max_iter=n, tol=0) for n in range(1, 15)]
    for i, b in enumerate(corr):
        values = [0.0, *(book.l0_objective(K, b, codes[i]) for codes in steps)]
        assert (np.diff(values) <= 1e-12).all()
        assert np.count_nonzero(steps[-1][i]) <= k


def test_lpm_over_orthonormal_atoms_keeps_the_largest(rng):
    corr = rng.standard_normal((5, 8))
    np.testing.assert_allclose(lpm(np.eye(8), corr, 3), keep_largest(corr, 3))


def test_lpm_with_all_atoms_is_least_squares(rng):
    D, X = rng.standard_normal((4, 9)), rng.standard_normal((3, 9))
    codes = lpm(D @ D.T, X @ D.T, 4, max_iter=5000, tol=1e-15)
    np.testing.assert_allclose(codes, np.linalg.lstsq(D.T, X.T)[0].T, atol=1e-5)


def test_lpm_of_a_single_atom_and_of_none():
    np.testing.assert_allclose(
        lpm(np.array([[2.0]]), np.array([[3.0], [-1.0]]), 1), [[1.5], [-0.5]]
    )
    assert not lpm(np.zeros((3, 3)), np.zeros((2, 3)), 1).any()


# The cut


@given(seed=seeds, shape=sizes, k=st.integers(1, 14))
def test_keep_largest_is_the_textbooks(seed, shape, k):
    codes = np.random.default_rng(seed).integers(-3, 4, shape[:2]).astype(float)  # with ties
    before = codes.copy()
    np.testing.assert_array_equal(keep_largest(codes, k), [book.largest(w, k) for w in codes])
    np.testing.assert_array_equal(codes, before)


@given(seed=seeds, shape=sizes, mean=st.floats(0.05, 14))
def test_keep_on_average_keeps_so_many(seed, shape, mean):
    codes = np.random.default_rng(seed).standard_normal(shape[:2])
    kept = keep_on_average(codes, mean)
    counts = np.count_nonzero(kept, axis=1)
    # The nearest whole number, at a half either one.
    assert abs(counts.sum() - min(mean, shape[1]) * shape[0]) <= 0.5 + 1e-12
    assert np.ptp(counts) <= 1
    for w, v, count in zip(codes, kept, counts, strict=True):
        np.testing.assert_array_equal(v, book.largest(w, count))


def test_keep_on_average_of_whole_numbers_is_keep_largest(rng):
    codes = rng.standard_normal((6, 9))
    np.testing.assert_array_equal(keep_on_average(codes, 3), keep_largest(codes, 3))
    # The fourth goes to the signals whose fourth is largest.
    fourth = np.sort(np.abs(codes), axis=1)[:, -4]
    more = np.count_nonzero(keep_on_average(codes, 3.5), axis=1) == 4
    assert fourth[more].min() > fourth[~more].max()


# All of them


@pytest.mark.parametrize(
    "rival",
    [
        lambda K, corr: linear_cd(K, corr, np.ones(len(corr), corr.dtype), 0.1),
        lambda K, corr: kfmc(K, corr, 0.1),
        lambda K, corr: ksr_l21(K, corr, 0.1),
        lambda K, corr: lpm(K, corr, 3),
    ],
)
def test_float32_in_float32_out(rival):
    K, corr = draw(2, (6, 9, 4))
    low, high = rival(K.astype("f"), corr.astype("f")), rival(K, corr)
    assert (low.dtype, high.dtype) == (np.float32, np.float64)
    assert low.shape == high.shape == (6, 9)
    np.testing.assert_allclose(low, high, atol=2e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda K, b: kfmc(K, b, 0), "beta must be above 0"),
        (lambda K, b: kfmc(K, b, np.nan), "beta must be above 0"),
        (lambda K, b: ksr_l21(K, b, -1.0), "alpha must be above 0"),
        (lambda K, b: ksr_l21(K, b, 1.0, max_iter=0), "max_iter must be a whole number from 1"),
        (lambda K, b: linear_cd(K, b, np.ones(2), 0.0), "alpha must be above 0"),
        (lambda K, b: lpm(K, b, 0), "n_nonzero must be a whole number from 1"),
        (lambda K, b: lpm(K, b, 1.5), "n_nonzero must be a whole number from 1"),
        (lambda K, b: keep_largest(b, 0), "n_nonzero must be a whole number from 1"),
        (lambda K, b: keep_on_average(b, 0), "n_nonzero must be above 0"),
        (lambda K, b: kfmc(K[:2], b, 1), "gram must be square"),
        (lambda K, b: kfmc(K, b.T, 1), "one column for each of the 3 atoms"),
        (lambda K, b: lpm(-K, b, 1), "not positive semi-definite"),
        (lambda K, b: lpm(K, b * np.nan, 1), "corr contains NaN"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.eye(3), np.ones((2, 3)))
