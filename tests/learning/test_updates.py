"""Moments, MOD and K-SVD against the textbook."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.learning
from kernelatoms.coding import Lasso, LinearProblem, omp
from kernelatoms.engine.cpu.ksvd import residuals, sweep_atoms, sweep_atoms_exactly
from kernelatoms.learning.ksvd import KSVDSums, KSVDUpdate, sums_of_uses
from kernelatoms.learning.mod import BlockDescent, LeastSquares, best_dictionaries
from kernelatoms.learning.moments import Moments
from kernelatoms.learning.state import LearnerState, atoms_from_rows, unit_rows, worst_represented


def coded(seed, n=60, n_features=10, n_atoms=15, n_nonzero=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features)).astype(dtype)
    D = atoms_from_rows(X, n_atoms, np.random.RandomState(rng.integers(2**31)))
    return X, D, omp(LinearProblem(X, D), n_nonzero)


def error(X, D, codes):
    return float(((X - codes.to_dense() @ D) ** 2).sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_residuals_are_those_of_the_codes(dtype, rng):
    X, D, codes = coded(rng, n=5000, dtype=dtype)
    R = residuals(X, D, codes.indices, codes.values)
    np.testing.assert_allclose(R, X - codes.to_dense() @ D, atol=1e-5)
    assert R.dtype == dtype


@given(seed=st.integers(0, 2**31), n_alternations=st.integers(1, 4))
def test_sweep_is_the_textbooks(seed, n_alternations):
    X, D, codes = coded(seed)
    new_D, new_W = oracles.learning.alternating_sweep(X, D, codes.to_dense(), n_alternations)
    values = codes.values.copy()
    R = residuals(X, D, codes.indices, values)
    sweep_atoms(R, D, codes.indices, values, n_alternations)
    np.testing.assert_allclose(D, new_D, atol=1e-8)
    W = dataclasses.replace(codes, values=values).to_dense()
    np.testing.assert_allclose(W, new_W, atol=1e-7)
    np.testing.assert_allclose(R, X - W @ D, atol=1e-8)


def test_two_sweeps_are_a_sweep_after_another(rng):
    X, D, codes = coded(rng)
    values = codes.values.copy()
    R = residuals(X, D, codes.indices, values)
    once = [R.copy(), D.copy(), codes.indices, values.copy()]
    sweep_atoms(*once, 3)
    sweep_atoms(*once, 3)
    sweep_atoms(R, D, codes.indices, values, 3, 2)
    for array, other in zip((R, D, values), (once[0], once[1], once[3]), strict=True):
        np.testing.assert_array_equal(array, other)


def test_many_alternations_are_the_svd(rng):
    X, D, codes = coded(rng)
    new_D, new_W = oracles.learning.ksvd_sweep(X, D, codes.to_dense())
    values = codes.values.copy()
    R = residuals(X, D, codes.indices, values)
    sweep_atoms(R, D, codes.indices, values, 2000)
    W = dataclasses.replace(codes, values=values).to_dense()
    np.testing.assert_allclose(W @ D, new_W @ new_D, atol=1e-4)
    np.testing.assert_allclose(np.abs((D * new_D).sum(axis=1)), 1, atol=1e-6)


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 90),
    n_features=st.integers(1, 30),
    n_atoms=st.integers(1, 12),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_the_exact_sweep_is_the_svd_of_every_atom(seed, n, n_features, n_atoms, dtype):
    """Also where an atom has more users than features, or fewer, or many."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features)).astype(dtype)
    D = unit_rows(rng.standard_normal((n_atoms, n_features)).astype(dtype))
    codes = omp(LinearProblem(X, D), min(3, n_atoms, n_features))
    new_D, new_W = oracles.learning.ksvd_sweep(
        X.astype(float), D.astype(float), codes.to_dense().astype(float)
    )
    start, values = D.copy(), codes.values.copy()
    R = residuals(X, D, codes.indices, values)
    sweep_atoms_exactly(R, D, codes.indices, values)
    W = dataclasses.replace(codes, values=values).to_dense()
    assert D.dtype == W.dtype == R.dtype == dtype
    rounding = 1e3 * float(np.finfo(dtype).eps) * float(np.linalg.norm(X))
    np.testing.assert_allclose(R, X - W @ D, atol=rounding)
    if dtype == np.float64:  # in float32 two singular values are soon as good as equal
        left, book = ((X - W @ D) ** 2).sum(), ((X - new_W @ new_D) ** 2).sum()
        assert left == pytest.approx(book, rel=1e-6, abs=rounding)
    used = np.flatnonzero((codes.to_dense() != 0).any(axis=0))
    np.testing.assert_allclose(np.linalg.norm(D[used], axis=1), 1, atol=1e-5)
    unused = np.setdiff1d(np.arange(n_atoms), used)
    np.testing.assert_array_equal(D[unused], start[unused])


@pytest.mark.parametrize("sizes", [{}, {"n": 400, "n_features": 40, "n_atoms": 9}])
def test_singular_vectors_have_the_sign_of_the_atom(sizes, rng):
    """Also where an atom has so many users that one vector is looked for alone."""
    X, D, codes = coded(rng, **sizes)
    new_D, new_W = oracles.learning.ksvd_sweep(X, D, codes.to_dense())
    signs = np.sign((new_D * D).sum(axis=1))
    values = codes.values.copy()
    R = residuals(X, D, codes.indices, values)
    sweep_atoms_exactly(R, D, codes.indices, values)
    np.testing.assert_allclose(D, new_D * signs[:, None], atol=1e-9)
    W = dataclasses.replace(codes, values=values).to_dense()
    np.testing.assert_allclose(W, new_W * signs, atol=1e-8)


def test_an_atom_that_is_not_needed_gets_no_coefficients():
    """Without the atom nothing is left of its user: its error is a zero matrix."""
    D, R, values = np.eye(2), np.array([[-2.0, 0.0]]), np.array([[2.0]])
    sweep_atoms_exactly(R, D, np.array([[0]], np.int32), values)
    assert not values.any()
    assert not R.any()
    np.testing.assert_array_equal(D, np.eye(2))


def improved(update, X, codes, D):
    """Improve a dictionary by all rows."""
    if hasattr(update, "solve"):
        return update.solve(update.sums(X, codes, D), D)
    return update.apply(X, codes, D)


@pytest.mark.parametrize(
    "update", [LeastSquares(), KSVDSums(), KSVDUpdate(), KSVDUpdate(exact=True)]
)
@given(seed=st.integers(0, 2**31), dtype=st.sampled_from([np.float32, np.float64]))
def test_a_dictionary_step_never_raises_the_error(update, seed, dtype):
    X, D, codes = coded(seed, dtype=dtype)
    before = error(X, D, codes)
    updated = improved(update, X, codes, D)
    assert updated.objective <= before * (1 + 20 * np.finfo(dtype).eps)
    if type(update) is LeastSquares:
        best = oracles.learning.mod(X, codes.to_dense())
        assert updated.objective == pytest.approx(error(X, best, codes), rel=1e-3)
    elif updated.codes is not None:
        after = error(X, updated.dictionary, updated.codes)
        assert updated.objective == pytest.approx(after, rel=1e-4)


@given(
    seed=st.integers(0, 2**31),
    alpha=st.sampled_from([0.01, 0.3, 1.0]),
    positive=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_block_descent_never_raises_the_l1_objective(seed, alpha, positive, dtype):
    """Mairal et al. (2010), Algorithm 2: half the squares plus the penalty, atoms in the ball."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6)).astype(dtype)
    D = unit_rows(rng.standard_normal((9, 6)).astype(dtype))
    codes = Lasso(alpha, positive)(LinearProblem(X, D))
    W = codes.to_dense().astype(np.float64)

    def objective(D):
        return 0.5 * ((X - W @ D) ** 2).sum() + alpha * np.abs(W).sum()

    updated = improved(BlockDescent(alpha), X, codes, D)
    assert updated.objective == pytest.approx(objective(updated.dictionary.astype(float)), rel=1e-5)
    assert updated.objective <= objective(D.astype(float)) * (1 + 20 * np.finfo(dtype).eps)
    assert np.linalg.norm(updated.dictionary, axis=1).max() <= 1 + 10 * np.finfo(dtype).eps


def test_mod_is_least_squares(rng):
    X, D, codes = coded(rng)
    W = codes.to_dense()
    expected = oracles.learning.mod(X, W)
    new, norms, _ = best_dictionaries([LeastSquares().sums(X, codes, D)], [D])[0]
    np.testing.assert_allclose((W * norms) @ new, W @ expected, atol=1e-9)


@given(seed=st.integers(0, 2**31), dtype=st.sampled_from([np.float32, np.float64]))
def test_ksvd_from_sums_goes_past_least_squares(seed, dtype):
    X, D, codes = coded(seed, dtype=dtype)
    W = codes.to_dense().astype(np.float64)
    result = improved(KSVDSums(), X, codes, D)
    used = np.flatnonzero(W.any(axis=0))
    book = oracles.learning.overstep(X, D[used], W[:, used])
    tolerance = 1e-8 if dtype == np.float64 else 1e-2
    np.testing.assert_allclose(result.dictionary[used], book, atol=tolerance)
    unused = np.setdiff1d(np.arange(len(D)), used)
    np.testing.assert_allclose(result.dictionary[unused], D[unused], rtol=1e-6)
    assert result.dictionary.dtype == dtype
    # A quarter of what least squares gains is lost again, and no more.
    before, best = error(X, D, codes), error(X, oracles.learning.mod(X, W), codes)
    assert result.objective == pytest.approx(best + (before - best) / 4, rel=1e-3)
    assert result.sums.objective(result.dictionary) == result.objective


def test_ksvd_takes_batches_as_least_squares_does(rng):
    X, D, codes = coded(rng)
    past = Moments.of(X[:30], codes.take(np.arange(30)))
    rest = X[30:], codes.take(np.arange(30, 60)), D, past, 0.5
    ours, plain = KSVDSums().take_batch(*rest), LeastSquares().take_batch(*rest)
    np.testing.assert_array_equal(ours.dictionary, plain.dictionary)
    np.testing.assert_array_equal(ours.sums.cross, plain.sums.cross)


def test_an_atom_that_a_longer_step_would_take_to_zero_goes_to_the_best_one():
    """The best atom is a third of the old one: half as far again is nothing."""
    sums = Moments(np.eye(1), np.array([[1.0, 0.0]]) / 3, 1.0)
    with np.errstate(invalid="raise"):
        result = KSVDSums().solve(sums, np.array([[1.0, 0.0]]))
    np.testing.assert_array_equal(result.dictionary, [[1.0, 0.0]])


def test_sums_of_uses_are_those_of_atoms_that_need_no_change(rng):
    _, D, codes = coded(rng)
    state = LearnerState.start(D)
    state.record_pass(D, 7.0, codes.uses())
    sums = sums_of_uses(state, 2.0)
    np.testing.assert_allclose(LeastSquares().solve(sums, D).dictionary, D, atol=1e-12)
    assert sums.objective(D) == pytest.approx(7.0)
    np.testing.assert_allclose(np.diagonal(sums.gram), 2.0 * codes.uses())


def test_moments_add_up_over_blocks_and_know_the_objective(rng):
    X, D, codes = coded(rng)
    whole = Moments.of(X, codes)
    parts = [Moments.of(X[i::3], codes.take(np.arange(i, len(X), 3))) for i in range(3)]
    total = parts[0] + parts[1] + parts[2]
    np.testing.assert_allclose(total.gram, whole.gram, atol=1e-12)
    np.testing.assert_allclose(total.cross, whole.cross, atol=1e-12)
    assert total.energy == pytest.approx(whole.energy)
    assert total.l1_norm == pytest.approx(np.abs(codes.to_dense()).sum())
    assert whole.objective(D) == pytest.approx(error(X, D, codes))
    assert whole.scaled(0.5).objective(D) == pytest.approx(0.5 * error(X, D, codes))


def test_rescaled_moments_belong_to_the_rescaled_dictionary(rng):
    X, D, codes = coded(rng)
    new, norms, moments = best_dictionaries([Moments.of(X, codes)], [D])[0]
    np.testing.assert_allclose(np.linalg.norm(new, axis=1), 1)
    scaled = codes.to_dense() * norms
    assert moments.objective(new) == pytest.approx(((X - scaled @ new) ** 2).sum())


def test_codes_know_their_error(rng):
    X, D, _ = coded(rng)
    codes = omp(LinearProblem(X, D), 3)
    np.testing.assert_allclose(
        codes.error, ((X - codes.to_dense() @ D) ** 2).sum(axis=1), atol=1e-12
    )


def test_moments_forget_and_grow(rng):
    X, D, codes = coded(rng)
    moments = Moments.of(X, codes)
    some = np.array([2, 7])
    W = codes.to_dense()
    W[:, some] = 0
    left = moments.without(some)
    np.testing.assert_allclose(left.gram, W.T @ W)
    np.testing.assert_allclose(left.cross, W.T @ X)
    grown = moments.padded(2)
    assert grown.objective(np.concatenate([D, D[:2]])) == pytest.approx(moments.objective(D))


def test_the_worst_represented_come_first_and_those_without_error_never():
    assert worst_represented(np.array([0.0, 4.0, 9.0]), 2).tolist() == [2, 1]
    assert worst_represented(np.array([0.0, 4.0, 9.0]), 3).tolist() == [2, 1]
    assert worst_represented(np.zeros(3), 2).tolist() == []


def test_zero_rows_start_no_atoms_while_others_are_left():
    X = np.concatenate([np.zeros((50, 3)), np.eye(3)])
    assert atoms_from_rows(X, 3, np.random.RandomState(0)).any(axis=1).all()
