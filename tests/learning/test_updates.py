"""Moments, MOD and K-SVD against the textbook."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.learning
from kernelatoms.engine.cpu.ksvd import residuals, sweep_atoms
from kernelatoms.learning.atoms import atoms_from_rows, replace_unused
from kernelatoms.learning.ksvd import ksvd_update
from kernelatoms.learning.loop import learn
from kernelatoms.learning.mod import best_dictionary, mod_update
from kernelatoms.learning.moments import Moments
from kernelatoms.pursuit import omp
from kernelatoms.space.codes import Codes
from kernelatoms.space.problem import LinearProblem


def coded(seed=0, n=60, n_features=10, n_atoms=15, n_nonzero=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features)).astype(dtype)
    D = atoms_from_rows(X, n_atoms, np.random.RandomState(seed))
    return X, D, omp(LinearProblem(X, D), n_nonzero)


def error(X, D, codes):
    return float(((X - codes.to_dense() @ D) ** 2).sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_residuals_are_those_of_the_codes(dtype):
    X, D, codes = coded(n=5000, dtype=dtype)
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
    W = Codes(codes.indices, values, codes.n_atoms, codes.error).to_dense()
    np.testing.assert_allclose(W, new_W, atol=1e-7)
    np.testing.assert_allclose(R, X - W @ D, atol=1e-8)


def test_many_alternations_are_the_svd():
    X, D, codes = coded()
    new_D, new_W = oracles.learning.ksvd_sweep(X, D, codes.to_dense())
    values = codes.values.copy()
    R = residuals(X, D, codes.indices, values)
    sweep_atoms(R, D, codes.indices, values, 2000)
    W = Codes(codes.indices, values, codes.n_atoms, codes.error).to_dense()
    np.testing.assert_allclose(W @ D, new_W @ new_D, atol=1e-4)
    np.testing.assert_allclose(np.abs((D * new_D).sum(axis=1)), 1, atol=1e-6)


@pytest.mark.parametrize("update", [mod_update, ksvd_update])
@given(seed=st.integers(0, 2**31), dtype=st.sampled_from([np.float32, np.float64]))
def test_a_dictionary_step_never_raises_the_error(update, seed, dtype):
    X, D, codes = coded(seed, dtype=dtype)
    before = error(X, D, codes)
    new, codes = update(X, D, codes)
    after = error(X, new, codes)
    assert after <= before * (1 + 20 * np.finfo(dtype).eps)
    assert codes.error.sum() == pytest.approx(after, rel=1e-4)


def test_mod_is_least_squares():
    X, D, codes = coded()
    W = codes.to_dense()
    expected = oracles.learning.mod(X, W)
    new, codes = mod_update(X, D, codes)
    np.testing.assert_allclose(codes.to_dense() @ new, W @ expected, atol=1e-9)


def test_moments_add_up_over_blocks_and_know_the_objective():
    X, D, codes = coded()
    whole = Moments.of(X, codes)
    parts = [
        Moments.of(X[i::3], Codes(codes.indices[i::3], codes.values[i::3], 15, codes.error[i::3]))
        for i in range(3)
    ]
    total = parts[0] + parts[1] + parts[2]
    np.testing.assert_allclose(total.gram, whole.gram, atol=1e-12)
    np.testing.assert_allclose(total.cross, whole.cross, atol=1e-12)
    assert total.energy == pytest.approx(whole.energy)
    assert whole.objective(D) == pytest.approx(error(X, D, codes))
    assert whole.scaled(0.5).objective(D) == pytest.approx(0.5 * error(X, D, codes))


def test_rescaled_moments_belong_to_the_rescaled_dictionary():
    X, D, codes = coded()
    new, norms, moments = best_dictionary(Moments.of(X, codes), D)
    np.testing.assert_allclose(np.linalg.norm(new, axis=1), 1)
    scaled = codes.to_dense() * norms
    assert moments.objective(new) == pytest.approx(((X - scaled @ new) ** 2).sum())


def test_codes_know_their_error():
    X, D, _ = coded()
    codes = omp(LinearProblem(X, D), 3)
    np.testing.assert_allclose(
        codes.error, ((X - codes.to_dense() @ D) ** 2).sum(axis=1), atol=1e-12
    )


def test_the_best_pass_counts():
    """An update that goes astray after two passes: the objective stays, the best atoms return."""
    X, start, _ = coded()
    met = []

    def update(X, D, codes):
        new, codes = ksvd_update(X, D, codes)
        if len(met) >= 2:
            new = start
            codes = omp(LinearProblem(X, new), 3)
        met.append((new, codes.error.sum()))
        return new, codes

    learned = learn(X, start, 3, update, selection="omp", max_iter=20, tol=0)
    values = [value for _, value in met]
    np.testing.assert_allclose(learned.objective, np.minimum.accumulate(values))
    np.testing.assert_array_equal(learned.dictionary, met[int(np.argmin(values))][0])
    assert len(values) == 5  # two good passes, then three in vain


def test_unused_atoms_become_the_worst_signals():
    X = np.diag([1.0, 2.0, 3.0])
    D = np.eye(3)[[0, 0, 0]].copy()
    replace_unused(D, np.array([True, False, False]), X, np.array([0.0, 4.0, 9.0]))
    np.testing.assert_array_equal(D, np.eye(3)[[0, 2, 1]])
    D = np.eye(3)[[0, 0, 0]].copy()
    replace_unused(D, np.array([True, False, False]), X, np.zeros(3))
    np.testing.assert_array_equal(D, np.eye(3)[[0, 0, 0]])


def test_zero_rows_start_no_atoms_while_others_are_left():
    X = np.concatenate([np.zeros((50, 3)), np.eye(3)])
    assert atoms_from_rows(X, 3, np.random.RandomState(0)).any(axis=1).all()
