"""The OMP engine against the textbook, over shapes, dtypes, selections and candidate lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.pursuits
from kernelatoms.pursuit import omp
from kernelatoms.space.problem import GivenProblem, LinearProblem


def random_problem(seed, n_signals, n_features, n_atoms, dtype, unit=True):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((n_atoms, n_features))
    if unit:
        D /= np.linalg.norm(D, axis=1, keepdims=True)
    return rng.standard_normal((n_signals, n_features)).astype(dtype), D.astype(dtype)


shapes = {
    "seed": st.integers(0, 2**32 - 1),
    "n_signals": st.integers(1, 30),
    "n_features": st.integers(1, 40),
    "n_atoms": st.integers(1, 150),
    "n_nonzero": st.integers(1, 12),
    "unit": st.booleans(),
}


@given(**shapes, selection=st.sampled_from(["omp", "ols"]))
def test_agrees_with_the_textbook(seed, n_signals, n_features, n_atoms, n_nonzero, unit, selection):
    X, D = random_problem(seed, n_signals, n_features, n_atoms, np.float64, unit)
    codes = omp(LinearProblem(X, D), n_nonzero, selection=selection)
    for s, x in enumerate(X):
        support, w = oracles.pursuits.omp(x, D, n_nonzero, ols=selection == "ols")
        order = np.argsort(support)
        support, w = [support[i] for i in order], w[order]
        n = len(support)
        found = codes.indices[s][codes.indices[s] >= 0]
        residual = x - codes.values[s, : len(found)] @ D[found]
        expected = x - w @ D[support]
        if selection == "omp" or np.array_equal(found, support):
            assert found.tolist() == support
            np.testing.assert_allclose(codes.values[s, :n], w, rtol=1e-6, atol=1e-8)
        # Where OLS breaks a tie differently, it must do as well.
        np.testing.assert_allclose(residual @ residual, expected @ expected, atol=1e-8 * (x @ x))
        np.testing.assert_allclose(codes.error[s], expected @ expected, atol=1e-8 * (x @ x))


@given(**shapes)
def test_float32_is_near_float64(seed, n_signals, n_features, n_atoms, n_nonzero, unit):
    X, D = random_problem(seed, n_signals, n_features, n_atoms, np.float32, unit)
    single = omp(LinearProblem(X, D), n_nonzero)
    double = omp(LinearProblem(X.astype(np.float64), D.astype(np.float64)), n_nonzero)
    assert single.values.dtype == np.float32
    energy = np.vecdot(X, X)
    # A near tie may pick another atom of the same use, so the errors agree and not the supports.
    np.testing.assert_allclose(single.error, double.error, atol=0.05 * energy.max())
    same = (single.indices == double.indices).all(axis=1)
    assert same.mean() > 0.9 or n_signals < 10
    np.testing.assert_allclose(
        single.error[same], double.error[same], atol=2e-5 * energy.max(), rtol=1e-4
    )


@given(
    seed=st.integers(0, 2**32 - 1),
    max_residual=st.floats(0.05, 0.95),
    selection=st.sampled_from(["omp", "ols"]),
)
def test_stops_at_the_residual_asked_for(seed, max_residual, selection):
    X, D = random_problem(seed, 20, 15, 40, np.float64)
    codes = omp(LinearProblem(X, D), 15, max_residual=max_residual, selection=selection)
    W = codes.to_dense()
    share = np.linalg.norm(X - W @ D, axis=1) / np.linalg.norm(X, axis=1)
    assert (share <= max_residual * (1 + 1e-9)).all()
    for s, x in enumerate(X):
        n = int((codes.indices[s] >= 0).sum())
        # One atom fewer would not have been enough.
        shorter = omp(LinearProblem(X[s : s + 1], D), max(n - 1, 1), selection=selection)
        assert n == 1 or np.sqrt(shorter.error[0]) > max_residual * np.linalg.norm(x)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_candidates=st.integers(1, 90),
    selection=st.sampled_from(["omp", "ols"]),
)
def test_candidate_lists_are_local_dictionaries(seed, n_candidates, selection):
    X, D = random_problem(seed, 12, 20, 90, np.float64)
    rng = np.random.default_rng(seed)
    lists = np.array([rng.permutation(90)[:n_candidates] for _ in X], dtype=np.int32)
    lists[rng.random(lists.shape) < 0.2] = -1
    codes = omp(LinearProblem(X, D), 5, candidates=lists, selection=selection)
    for s in range(len(X)):
        mine = lists[s][lists[s] >= 0]
        if len(mine) == 0:
            assert (codes.indices[s] == -1).all()
            continue
        local = omp(LinearProblem(X[s : s + 1], D[mine]), 5, selection=selection)
        expected = np.zeros(90)
        expected[mine] = local.to_dense()[0]
        np.testing.assert_allclose(codes.to_dense()[s], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("selection", ["omp", "ols"])
def test_batch_is_one_by_one(dtype, selection):
    X, D = random_problem(0, 200, 30, 130, dtype)
    together = omp(LinearProblem(X, D), 6, selection=selection)
    for s in range(0, 200, 7):
        alone = omp(LinearProblem(X[s : s + 1], D), 6, selection=selection)
        assert alone.indices[0].tolist() == together.indices[s].tolist()
        np.testing.assert_allclose(alone.values[0], together.values[s], rtol=1e-3, atol=1e-5)


def test_supports_are_scikit_learns(rng):
    from sklearn.linear_model import orthogonal_mp_gram

    X, D = random_problem(1, 300, 64, 200, np.float64)
    theirs = orthogonal_mp_gram(D @ D.T, D @ X.T, n_nonzero_coefs=8).T
    ours = omp(LinearProblem(X, D), 8).to_dense()
    assert ((ours != 0) == (theirs != 0)).all()
    np.testing.assert_allclose(ours, theirs, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("selection", ["omp", "ols"])
class TestDegenerateProblems:
    def test_zero_signals_use_no_atoms(self, dtype, selection):
        _, D = random_problem(0, 1, 5, 9, dtype)
        codes = omp(LinearProblem(np.zeros((3, 5), dtype), D), 4, selection=selection)
        assert (codes.indices == -1).all()
        assert not codes.values.any()
        assert not codes.error.any()

    def test_zero_and_duplicate_atoms_are_never_picked_twice(self, dtype, selection):
        X, D = random_problem(0, 40, 6, 8, dtype)
        D = np.concatenate([np.zeros((2, 6), dtype), D, D, 2 * D[:3]])
        codes = omp(LinearProblem(X, D), 6, selection=selection)
        used = [set(row[row >= 0].tolist()) for row in codes.indices]
        assert all(not {0, 1} & atoms for atoms in used)
        classes = [{(i - 2) % 8 for i in atoms} for atoms in used]
        assert all(len(c) == len(a) for c, a in zip(classes, used, strict=True))
        assert np.isfinite(codes.values).all()

    def test_more_nonzeros_than_rank_stop_at_an_exact_code(self, dtype, selection):
        rng = np.random.default_rng(0)
        basis = rng.standard_normal((3, 20))
        D = (rng.standard_normal((30, 3)) @ basis).astype(dtype)
        X = (rng.standard_normal((50, 3)) @ basis).astype(dtype)
        codes = omp(LinearProblem(X, D), 12, selection=selection)
        assert (codes.indices >= 0).sum(axis=1).max() <= 3
        error = np.linalg.norm(X - codes.to_dense() @ D) / np.linalg.norm(X)
        assert error < 1e3 * np.finfo(dtype).eps

    def test_a_sparse_signal_is_recovered_and_the_pursuit_stops(self, dtype, selection):
        _, D = random_problem(3, 1, 100, 120, dtype)
        W = np.zeros((1, 120), dtype)
        W[0, [7, 50]] = 2, -3
        codes = omp(LinearProblem(W @ D, D), 10, selection=selection)
        assert sorted(codes.indices[0][codes.indices[0] >= 0].tolist()) == [7, 50]
        np.testing.assert_allclose(codes.to_dense(), W, atol=1e-4)

    def test_scale_does_not_matter(self, dtype, selection):
        X, D = random_problem(4, 30, 20, 50, dtype)
        codes = omp(LinearProblem(X, D), 5, selection=selection)
        for factor in (1e-12, 1e12):
            scaled = omp(LinearProblem((X * factor).astype(dtype), D), 5, selection=selection)
            assert (scaled.indices == codes.indices).all()

    def test_one_atom(self, dtype, selection):
        X = np.array([[3.0, 4.0]], dtype)
        codes = omp(LinearProblem(X, np.array([[0.0, 2.0]], dtype)), 1, selection=selection)
        assert codes.to_dense() == [[2.0]]
        assert codes.error[0] == pytest.approx(9.0)


def test_given_inner_products_code_like_rows():
    X, D = random_problem(5, 30, 20, 50, np.float64)
    rows = omp(LinearProblem(X, D), 4)
    given = omp(GivenProblem(D @ D.T, X @ D.T, np.vecdot(X, X)), 4)
    unknown = omp(GivenProblem(D @ D.T, X @ D.T), 4)
    assert (given.indices == rows.indices).all()
    np.testing.assert_allclose(given.error, rows.error)
    np.testing.assert_allclose(unknown.error + np.vecdot(X, X), rows.error)


def test_residual_stop_needs_energies():
    X, D = random_problem(5, 3, 20, 50, np.float64)
    with pytest.raises(ValueError, match="max_residual needs k"):
        omp(GivenProblem(D @ D.T, X @ D.T), 4, max_residual=0.1)


@pytest.mark.parametrize("factor", [1e-18, 1e17])
def test_float32_codes_signals_far_from_one(factor):
    X, D = random_problem(6, 20, 20, 50, np.float32)
    plain = omp(LinearProblem(X, D), 4)
    scaled = omp(LinearProblem((X * factor).astype(np.float32), D), 4)
    assert (scaled.indices == plain.indices).all()
    np.testing.assert_allclose(scaled.values / factor, plain.values, rtol=1e-3, atol=1e-5)


def test_overflowing_signals_are_refused():
    X, D = random_problem(6, 20, 20, 50, np.float32)
    with pytest.raises(ValueError, match="squared norm overflows float32; scale X down"):
        omp(LinearProblem((X * 1e25).astype(np.float32), D), 4)
