"""Ridge codes: the textbook's, where they are flat, singular Gram matrices, bad input."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from kernelatoms.coding import (
    Expansion,
    GivenProblem,
    KernelProblem,
    LinearProblem,
    PaddedCodes,
    solve_ridge,
)
from kernelatoms.coding.closed_form import ridge
from kernelatoms.similarity import make_kernel
from oracles import ridge as book

seeds = st.integers(0, 2**31)


def draw(seed, n_signals, n_atoms, n_features, twins=False):
    rng = np.random.default_rng(seed)
    X, D = rng.standard_normal((n_signals, n_features)), rng.standard_normal((n_atoms, n_features))
    if twins:
        D[n_atoms // 2 :] = D[: n_atoms - n_atoms // 2]
    return X, D


@given(
    seed=seeds,
    n_signals=st.integers(0, 6),
    n_atoms=st.integers(1, 12),
    n_features=st.integers(1, 8),
    twins=st.booleans(),
    mu=st.sampled_from([0.0, 1e-6, 1e-3, 0.3, 20.0]),
)
def test_ridge_is_the_textbooks(seed, n_signals, n_atoms, n_features, twins, mu):
    X, D = draw(seed, n_signals, n_atoms, n_features, twins)
    codes = solve_ridge(D @ D.T, X @ D.T, mu)
    assert codes.shape == (n_signals, n_atoms)
    for x, w in zip(X, codes, strict=True):
        expected = book.ridge(x, D, mu)
        ours, books = (book.objective(x, D, v, mu) for v in (w, expected))
        assert ours <= books + 1e-9 * (x @ x)
        if np.linalg.cond(D @ D.T + mu * np.eye(n_atoms)) < 1e6:
            np.testing.assert_allclose(w, expected, atol=1e-7 * (1 + np.abs(expected).max()))


@given(seed=seeds, n_atoms=st.integers(1, 12), mu=st.sampled_from([1e-3, 0.1, 5.0]))
def test_ridge_is_flat_where_it_stops(seed, n_atoms, mu):
    X, D = draw(seed, 4, n_atoms, 3)
    K, b = rbf_kernel(D, D, gamma=0.3), rbf_kernel(X, D, gamma=0.3)
    codes = solve_ridge(K, b, mu)
    np.testing.assert_allclose(codes @ K + mu * codes, b, atol=1e-11)


def test_ridge_over_orthonormal_atoms_shrinks(rng):
    corr = rng.standard_normal((3, 4))
    np.testing.assert_allclose(solve_ridge(np.eye(4), corr, 0.25), corr / 1.25)
    np.testing.assert_allclose(solve_ridge(np.eye(4), corr, 0.0), corr)
    np.testing.assert_allclose(solve_ridge(np.array([[2.0]]), corr[:, :1], 0.5), corr[:, :1] / 2.5)


@pytest.mark.parametrize("mu", [0.0, 1e-300, 1e-18])
def test_codes_over_singular_grams_are_the_shortest(mu):
    """More atoms than features, in twins: every twin takes the same share."""
    X, D = draw(5, 4, 12, 3, twins=True)
    codes = solve_ridge(D @ D.T, X @ D.T, mu)
    np.testing.assert_allclose(codes, X @ np.linalg.pinv(D), atol=1e-12)
    np.testing.assert_allclose(codes[:, :6], codes[:, 6:], atol=1e-12)


def test_both_factorisations_agree(monkeypatch):
    X, D = draw(6, 5, 9, 20)
    K, b = D @ D.T, X @ D.T
    by_cholesky = solve_ridge(K, b, 0.1)
    monkeypatch.setattr(sys.modules["kernelatoms.coding.closed_form"], "_WELL_CONDITIONED", np.inf)
    monkeypatch.setattr("scipy.linalg.lapack.dtrtri", None)  # not reached
    np.testing.assert_allclose(solve_ridge(K, b, 0.1), by_cholesky, rtol=1e-10)


def test_well_conditioned_problems_need_no_eigenvectors(monkeypatch):
    X, D = draw(6, 5, 9, 20)
    monkeypatch.setattr("scipy.linalg.eigh", None)
    solve_ridge(D @ D.T, X @ D.T, 0.1)


@pytest.mark.parametrize("mu", [1e-6, 1e-5])  # the second one makes it positive definite
def test_rounding_of_float32_grams_is_no_direction(mu):
    """Of rank 3, but float32 holds 40 eigenvalues of 1e-7; dividing by them would explode."""
    X, D = draw(7, 5, 40, 3)
    K, b = (D @ D.T).astype(np.float32), (X @ D.T).astype(np.float32)
    codes = solve_ridge(K, b, mu)
    assert codes.dtype == np.float32
    np.testing.assert_allclose(codes, X @ np.linalg.pinv(D), atol=1e-5)


def test_zero_atoms_have_zero_codes():
    assert not solve_ridge(np.zeros((3, 3)), np.zeros((2, 3)), 0.0).any()


def test_many_signals_are_coded_in_blocks(rng):
    D = rng.standard_normal((30, 40))
    X = rng.standard_normal((5000, 40)).astype(np.float32)
    codes = solve_ridge(D @ D.T, X @ D.T.astype(np.float32), 0.5)
    np.testing.assert_allclose(codes[4321], book.ridge(X[4321], D, 0.5), atol=1e-5)
    assert codes.dtype == np.float32


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda K, b: solve_ridge(K, b, -1), ValueError, "mu must be at least 0"),
        (lambda K, b: solve_ridge(K, b, np.nan), ValueError, "mu must be at least 0"),
        (lambda K, b: solve_ridge(K, b, "1"), TypeError, "mu must be a number"),
        (lambda K, b: solve_ridge(K, b, True), TypeError, "mu must be a number"),
        (lambda K, b: solve_ridge(K[:2], b, 1), ValueError, "gram must be square"),
        (lambda K, b: solve_ridge(K, b.T, 1), ValueError, "one column for each of the 3 atoms"),
        (lambda K, b: solve_ridge(-K, b, 1), ValueError, "not positive semi-definite"),
        (lambda K, b: solve_ridge(K, b * np.inf, 1), ValueError, "corr contains NaN"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call(np.eye(3), np.ones((2, 3)))


@given(
    seed=seeds,
    n_signals=st.integers(0, 6),
    n_atoms=st.integers(1, 12),
    K=st.integers(1, 9),
    mu=st.sampled_from([1e-3, 0.3, 20.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
    kind=st.sampled_from(["rows", "rbf", "given"]),
)
def test_codes_over_candidates_are_those_over_these_alone(
    seed, n_signals, n_atoms, K, mu, dtype, kind
):
    X, D = (part.astype(dtype) for part in draw(seed, n_signals, n_atoms, 5))
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(np.tile(np.arange(n_atoms, dtype=np.int32), (n_signals, 1)), axis=1)
    lists = np.full((n_signals, K), -1, np.int32)
    lists[:, :n_atoms] = shuffled[:, :K]
    lists[rng.random(lists.shape) < 0.3] = -1
    kernel = make_kernel("rbf", gamma=0.1) if kind == "rbf" else make_kernel("linear")
    G, B = kernel(D.astype(float), D.astype(float)), kernel(X.astype(float), D.astype(float))
    energies = kernel.diag(X.astype(float))
    if kind == "given":
        problem = GivenProblem(G.astype(dtype), B.astype(dtype), energies)
    else:
        rows = LinearProblem(X, D) if kind == "rows" else KernelProblem(X, Expansion(kernel, D))
        problem = rows
    codes = ridge(problem, mu, candidates=lists)
    assert isinstance(codes, PaddedCodes)
    assert codes.dtype == dtype
    weights = codes.to_dense()
    tolerance = 3e4 * np.finfo(dtype).eps
    for s in range(n_signals):
        own = np.sort(lists[s][lists[s] >= 0])
        assert codes.indices[s].tolist() == [*own, *[-1] * (K - len(own))]
        assert not weights[s, np.setdiff1d(np.arange(n_atoms), own)].any()
        if not len(own):
            assert codes.error[s] == pytest.approx(energies[s])
            continue
        small = G[np.ix_(own, own)]
        expected = solve_ridge(small, B[s : s + 1, own], mu)[0]
        condition = np.linalg.cond(small + mu * np.eye(len(own)))
        bound = tolerance * condition * (1 + np.abs(expected).max())
        np.testing.assert_allclose(weights[s, own], expected, atol=bound)
        left = energies[s] - 2 * expected @ B[s, own] + expected @ small @ expected
        assert codes.error[s] == pytest.approx(left, abs=bound * (1 + energies[s]))
