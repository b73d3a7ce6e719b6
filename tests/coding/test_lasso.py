"""l1 coding: the textbook, optimality, certificates, identities, bad input."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from draws import later
from kernelatoms import lasso_path, sparse_encode
from kernelatoms.coding import lasso
from kernelatoms.coding.lasso import fksc, ksc
from kernelatoms.coding.problem import GivenProblem, KernelProblem, LinearProblem
from kernelatoms.engine.cpu import l1
from kernelatoms.features.expansion import Expansion
from kernelatoms.similarity import make_kernel
from oracles import lasso as book

KINDS = ["plain", "unit", "alike", "twins"]


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


def objectives(X, D, W, alpha):
    return np.array([book.objective(x, D, w, alpha) for x, w in zip(X, W, strict=True)])


def check_optimal(X, D, codes, alpha, positive=False):
    """The gap is small, true, and agrees with the errors; the conditions of a minimum hold."""
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


shapes = {
    "seed": st.integers(0, 2**31),
    "n_features": st.integers(2, 30),
    "n_atoms": st.integers(2, 50),
    "kind": st.sampled_from(KINDS),
    "share": st.sampled_from([0.9, 0.5, 0.1, 0.01, 0.001]),
    "positive": st.booleans(),
}


@given(**shapes)
def test_codes_are_optimal_and_certified(seed, n_features, n_atoms, kind, share, positive):
    X, D = draw(seed, n_features, n_atoms, kind)
    alpha = share * np.abs(X @ D.T).max()
    check_optimal(X, D, lasso(LinearProblem(X, D), alpha, positive=positive), alpha, positive)


@given(**shapes, scale=st.sampled_from([0.0, 1e-3, 1.0, 1e3]))
def test_any_start_leads_to_the_same_minimum(
    seed, n_features, n_atoms, kind, share, positive, scale
):
    X, D = draw(seed, n_features, n_atoms, kind)
    alpha = share * np.abs(X @ D.T).max()
    problem = LinearProblem(X, D)
    cold = lasso(problem, alpha, positive=positive)
    start = scale * np.random.default_rng(seed).standard_normal((6, n_atoms))
    warm = lasso(problem, alpha, positive=positive, start=start)
    check_optimal(X, D, warm, alpha, positive)
    again = lasso(problem, alpha, positive=positive, start=cold.to_dense())
    np.testing.assert_array_equal(again.to_dense(), cold.to_dense())


@given(**shapes, n_candidates=st.integers(1, 12))
def test_candidates_are_a_smaller_dictionary(
    seed, n_features, n_atoms, kind, share, positive, n_candidates
):
    X, D = draw(seed, n_features, n_atoms, kind)
    alpha = share * np.abs(X @ D.T).max()
    lists = np.random.default_rng(seed).integers(-1, n_atoms, (6, n_candidates)).astype(np.int32)
    codes = lasso(LinearProblem(X, D), alpha, positive=positive, candidates=lists)
    W = codes.to_dense()
    for s in range(6):
        mine = np.unique(lists[s][lists[s] >= 0])
        assert not np.delete(W[s], mine).any()
        if len(mine):
            own = lasso(LinearProblem(X[[s]], D[mine]), alpha, positive=positive)
            np.testing.assert_allclose(codes.gap[s], own.gap[0], atol=1e-9 * (X[s] @ X[s]))
            np.testing.assert_allclose(
                book.objective(X[s], D, W[s], alpha),
                book.objective(X[s], D[mine], own.to_dense()[0], alpha),
                rtol=0,
                atol=2e-6 * (X[s] @ X[s]),
            )


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("share", [later(0.5), 0.05, later(0.005)])
def test_the_textbooks_objective(share, positive):
    for seed, kind in enumerate(["plain", "unit", "twins"]):
        X, D = draw(seed, 12, 20, kind)
        alpha = share * np.abs(X @ D.T).max()
        X = X[:2]  # the textbook takes its time
        W = lasso(LinearProblem(X, D), alpha, positive=positive).to_dense()
        for x, w in zip(X, W, strict=True):
            passes = book.coordinate_descent(x, D, alpha, positive, n_passes=1000)
            theirs = book.objective(x, D, passes, alpha)
            assert book.objective(x, D, w, alpha) <= theirs + 1e-6 * (x @ x)


def test_orthonormal_atoms_are_soft_thresholds(rng):
    D = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    X = rng.standard_normal((20, 8))
    b = X @ D.T
    expected = np.sign(b) * np.maximum(np.abs(b) - 0.3, 0)
    for method in ("lasso", "ksc", "fksc"):
        np.testing.assert_allclose(
            sparse_encode(X, D, method=method, alpha=0.3).toarray(), expected, atol=1e-9
        )


def test_alpha_from_the_largest_correlation_on_gives_nothing(rng):
    X, D = draw(0, 10, 15, "plain")
    largest = np.abs(X @ D.T).max()
    for method in ("lasso", "ksc", "fksc"):
        codes, gap = sparse_encode(X, D, method=method, alpha=largest, return_gap=True)
        assert codes.nnz == 0
        assert codes.shape == (6, 15)
        np.testing.assert_allclose(gap, 0, atol=1e-12)
        assert sparse_encode(X, D, method=method, alpha=0.99 * largest).nnz == 1


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
    """All kernel values near 1: coordinate descent crawls, the active set takes a few steps."""
    X, D = rng.random((40, 30)), rng.random((100, 30))
    problem = KernelProblem(X, Expansion(make_kernel("rbf", gamma=1e-3), D))
    codes = lasso(problem, 1e-4)
    assert (codes.gap <= 1e-6).all()
    assert 0 < np.diff(codes.indptr).max() < 60
    assert ksc(problem, 1e-4, max_passes=300).gap.max() > 1e-5


def test_small_supports_need_no_coordinate_descent_from_any_start(rng, monkeypatch):
    monkeypatch.setattr(l1, "MOST_PASSES", 0)
    X, D = rng.random((40, 30)), rng.random((100, 30))
    kernel = make_kernel("rbf", gamma=1e-3)
    before = lasso(KernelProblem(X, Expansion(kernel, D + 0.01)), 0.1).to_dense()
    problem = KernelProblem(X, Expansion(kernel, D))
    for alpha in (0.1, 1e-3):
        for start in (None, before, np.ones(before.shape), 100 * before):
            assert (lasso(problem, alpha, start=start).gap <= 1e-6).all()


def test_float32_is_near_float64(rng):
    X, D = draw(5, 20, 40, "unit")
    double = sparse_encode(X, D, method="lasso", alpha=0.1)
    single = sparse_encode(X.astype("f4"), D.astype("f4"), method="lasso", alpha=0.1)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.toarray(), double.toarray(), atol=1e-4)


@pytest.mark.parametrize("positive", [False, True])
def test_large_supports_go_over_to_coordinate_descent(monkeypatch, positive):
    X, D = draw(7, 60, 80, "unit")
    expected = lasso(LinearProblem(X, D), 0.01, positive=positive)
    monkeypatch.setattr(l1, "MOST_ACTIVE", 10)
    codes = lasso(LinearProblem(X, D), 0.01, positive=positive)
    check_optimal(X, D, codes, 0.01, positive)
    np.testing.assert_allclose(codes.error, expected.error, atol=1e-3)
    assert (np.diff(codes.indptr) > 10).any()


def test_where_coordinate_descent_crawls_the_active_set_goes_on(rng, monkeypatch):
    """Many nonzeros over nearly dependent atoms: 300 passes are far from enough."""
    monkeypatch.setattr(l1, "MOST_ACTIVE", 5)
    X, D = rng.standard_normal((4, 20)), rng.standard_normal((60, 20))
    problem = KernelProblem(X, Expansion(make_kernel("laplacian", gamma=1e-3), D))
    alone = pytest.MonkeyPatch()
    with alone.context() as patch:
        patch.setattr(l1, "MOST_ACTIVE_AT_ALL", 5)
        patch.setattr(l1, "MOST_PASSES", 300)
        assert (lasso(problem, 1e-5).gap > 1e-6).any()
    assert (lasso(problem, 1e-5).gap <= 1e-6).all()


@given(
    seed=st.integers(0, 2**31),
    n_features=st.integers(5, 30),
    n_atoms=st.integers(2, 40),
    kind=st.sampled_from(["plain", "unit", "twins"]),
    share=st.sampled_from([0.9, 0.5, 0.1]),
)
def test_published_methods_reach_the_same_minimum(seed, n_features, n_atoms, kind, share):
    X, D = draw(seed, n_features, n_atoms, kind)
    alpha, energy = share * np.abs(X @ D.T).max(), (X**2).sum(axis=1)
    problem = LinearProblem(X, D)
    ours = objectives(X, D, lasso(problem, alpha).to_dense(), alpha)
    plain, fast = ksc(problem, alpha), fksc(problem, alpha)
    for codes in (plain, fast):
        check_optimal(X, D, codes, alpha)
        np.testing.assert_allclose(
            objectives(X, D, codes.to_dense(), alpha), ours, rtol=0, atol=1e-6 * energy.max()
        )
    n_real = np.count_nonzero((D**2).sum(axis=1))
    np.testing.assert_array_equal(plain.n_updates, n_real * plain.n_passes)


def test_a_pass_of_ksc_is_the_textbooks(rng):
    X, D = draw(1, 12, 20, "plain")
    codes = ksc(LinearProblem(X, D), 0.5, max_passes=3).to_dense()
    expected = [book.coordinate_descent(x, D, 0.5, n_passes=3) for x in X]
    np.testing.assert_allclose(codes, expected, atol=1e-9)


def test_safe_bounds_skip_evaluations_and_change_nothing(rng):
    """Skipped coefficients are those that (9) would leave at 0: pass for pass the same codes."""
    D = rng.standard_normal((120, 60))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.standard_normal((10, 60))
    alpha = 0.6 * np.abs(X @ D.T).max()
    problem = LinearProblem(X, D)
    plain, fast = ksc(problem, alpha), fksc(problem, alpha)
    assert fast.n_updates.sum() < 0.5 * plain.n_updates.sum()
    # From codes near the minimum stage 1 settles at once; stage 2 then does KSC's own steps.
    near = plain.to_dense() + 1e-4 * (plain.to_dense() != 0)
    some = fksc(problem, alpha, start=near, change_tol=1e-12, max_passes=500)
    all_ = ksc(problem, alpha, start=near, change_tol=1e-12, max_passes=500)
    np.testing.assert_allclose(some.to_dense(), all_.to_dense(), atol=1e-10)


def test_the_papers_stop_is_the_relative_change(rng):
    X, D = draw(2, 20, 30, "unit")
    loose = ksc(LinearProblem(X, D), 0.05, change_tol=1e-1)
    tight = ksc(LinearProblem(X, D), 0.05, change_tol=1e-6)
    assert (loose.n_passes < tight.n_passes).all()
    assert (loose.gap >= tight.gap).all()


def test_paths_are_codes_at_each_alpha(rng):
    X, D = draw(4, 15, 40, "unit")
    path = lasso_path(X, D, n_alphas=12, smallest=1e-3)
    assert path.alphas[0] == pytest.approx(np.abs(X @ D.T).max())
    assert (np.diff(path.alphas) < 0).all()
    assert path.alphas[-1] / path.alphas[0] == pytest.approx(1e-3)
    assert path.codes[0].nnz == 0
    assert path.codes[-1].nnz > path.codes[4].nnz
    for alpha, codes, gap in zip(path.alphas, path.codes, path.gaps, strict=True):
        alone, own_gap = sparse_encode(X, D, method="lasso", alpha=alpha, return_gap=True)
        np.testing.assert_allclose(
            objectives(X, D, codes.toarray(), alpha), objectives(X, D, alone.toarray(), alpha)
        )
        assert (gap <= 1e-6 * (X**2).sum(axis=1)).all()
        assert (own_gap >= -1e-12).all()
    chosen = lasso_path(X, D, alphas=[0.1, 0.5, 0.1])
    np.testing.assert_array_equal(chosen.alphas, [0.5, 0.1])
    np.testing.assert_allclose(
        chosen.codes[1].toarray(), sparse_encode(X, D, method="lasso", alpha=0.1).toarray()
    )


def test_kernels_of_any_size_and_twin_atoms(rng):
    """k(x, x) != 1, and a Gram matrix without full rank."""
    X, D = rng.standard_normal((5, 3)), rng.standard_normal((30, 3))
    D[3] = D[7]
    kernel = make_kernel("poly", degree=2, gamma=1, coef0=1)  # features of rank 10
    energy, gram, corr = kernel.diag(X), kernel(D, D), kernel(X, D)
    for method in (lasso, ksc, fksc):
        codes = method(KernelProblem(X, Expansion(kernel, D)), 0.5)
        W = codes.to_dense()
        left = energy - 2 * (W * corr).sum(axis=1) + np.einsum("ij,jk,ik->i", W, gram, W)
        np.testing.assert_allclose(codes.error, left, atol=1e-9 * energy.max())
        assert (codes.gap <= 1e-6 * energy).all()
        c = corr - W @ gram
        assert (np.abs(c) <= 0.5 + 1e-2 * np.sqrt(energy[:, None] * np.diagonal(gram))).all()


@pytest.mark.parametrize("method", ["lasso", "ksc", "fksc"])
def test_grams_that_are_none_are_refused(rng, method):
    X, D = rng.standard_normal((5, 2)), rng.standard_normal((12, 2))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        sparse_encode(
            X, D, method=method, alpha=0.1, kernel=lambda A, B: np.tanh(A @ B.T) * (A @ B.T > -9)
        )
    with pytest.raises(ValueError, match="overflow"):
        sparse_encode(1e200 * X, D, method=method, alpha=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs alpha"),
        ({"alpha": 0}, "alpha must be above 0"),
        ({"alpha": float("nan")}, "alpha must be above 0"),
        ({"alpha": 0.1, "n_nonzero_coefs": 3}, "n_nonzero_coefs belongs to method='omp'"),
        ({"alpha": 0.1, "candidates": [[9]] * 6}, "candidates must be atoms 0..4"),
        ({"alpha": 0.1, "gap_tol": 0}, "gap_tol must be above 0"),
        ({"alpha": 0.1, "start": np.zeros((6, 4))}, r"start must have shape \(6, 5\)"),
        ({"alpha": 0.1, "start": np.full((6, 5), np.nan)}, "start contains NaN"),
        ({"alpha": 0.1, "kernel": "precomputed"}, "needs k\\(x, x\\)"),
    ],
)
def test_bad_arguments_are_named(options, message):
    X, D = draw(0, 5, 5, "plain")
    D = D @ D.T if "kernel" in options else D
    with pytest.raises(ValueError, match=message):
        sparse_encode(X, D, method="lasso", **options)


def test_arguments_of_other_methods_and_missing_values_are_refused():
    X, D = draw(0, 5, 5, "plain")
    with pytest.raises(ValueError, match="alpha belongs to method='lasso' or 'ksc' or 'fksc'"):
        sparse_encode(X, D, alpha=0.1)
    with pytest.raises(ValueError, match="return_gap belongs to method='lasso'"):
        sparse_encode(X, D, return_gap=True)
    with pytest.raises(
        ValueError, match="positive belongs to method='omp' or 'lasso' or 'threshold', not"
    ):
        sparse_encode(X, D, method="ksc", alpha=0.1, positive=True)
    with pytest.raises(ValueError, match="alphas must all be above 0, got 0"):
        lasso_path(X, D, alphas=[1.0, 0.0])
    with pytest.raises(ValueError, match="every code is 0"):
        lasso_path(0 * X, D)
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="complete rows are needed"):
        sparse_encode(X, D, method="lasso", alpha=0.1)
    with pytest.raises(ValueError, match="complete rows are needed"):
        lasso_path(X, D)


def test_sparse_starts_are_taken(rng):
    X, D = draw(0, 8, 12, "plain")
    codes = sparse_encode(X, D, method="lasso", alpha=0.2)
    assert scipy.sparse.issparse(codes)
    again = sparse_encode(X, D, method="lasso", alpha=0.2, start=codes)
    np.testing.assert_array_equal(again.toarray(), codes.toarray())
