"""Block coordinate descent on the moments of codes: the textbook, and what it may never do."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import oracles.learning
from kernelatoms.engine import machine
from kernelatoms.engine.cpu import atoms, descend_atoms, sum_products


def random_sums(seed, n_atoms, n_features, share, n_signals=60, scale=1.0):
    """W'W, W'X and atoms in the unit ball; ``share`` of the coefficients are nonzero."""
    rng = np.random.default_rng(seed)
    W = np.where(rng.random((n_signals, n_atoms)) < share, 1, 0) * rng.standard_normal(
        (n_signals, n_atoms)
    )
    X = scale * rng.standard_normal((n_signals, n_features))
    D = rng.standard_normal((n_atoms, n_features))
    return W.T @ W, W.T @ X, D / np.maximum(np.linalg.norm(D, axis=1, keepdims=True), 1)


def objective(A, B, D):
    D = D.astype(np.float64)
    return 0.5 * np.vdot(A @ D, D) - np.vdot(B, D)


shapes = {
    "seed": st.integers(0, 2**32 - 1),
    "n_atoms": st.integers(1, 70),
    "n_features": st.integers(1, 30),
    # Few nonzeros leave A sparse, which is another way through the code.
    "share": st.sampled_from([0.005, 0.02, 0.3, 1.0]),
    "scale": st.sampled_from([1e-6, 1.0, 1e6]),
}


@given(**shapes, n_sweeps=st.integers(1, 3))
def test_agrees_with_the_textbook(seed, n_atoms, n_features, share, scale, n_sweeps):
    A, B, D = random_sums(seed, n_atoms, n_features, share, scale=scale)
    ours = D.copy()
    n_made = descend_atoms(A, B, ours, n_sweeps)
    np.testing.assert_allclose(
        ours, oracles.learning.descend_atoms(A, B, D, n_made), rtol=1e-7, atol=1e-9
    )


@given(**shapes)
def test_the_objective_never_rises_and_atoms_stay_in_the_unit_ball(
    seed, n_atoms, n_features, share, scale
):
    A, B, D = random_sums(seed, n_atoms, n_features, share, scale=scale)
    floor = 1e-12 * (np.abs(B).sum() + np.abs(A).sum())
    before = objective(A, B, D)
    for _ in range(4):
        descend_atoms(A, B, D, 1)
        after = objective(A, B, D)
        assert after <= before + floor
        before = after
        assert (np.linalg.norm(D, axis=1) <= 1 + 1e-12).all()


@given(**shapes)
def test_atoms_without_users_keep_their_place(seed, n_atoms, n_features, share, scale):
    A, B, D = random_sums(seed, n_atoms, n_features, share, scale=scale)
    unused = np.random.default_rng(seed).random(n_atoms) < 0.3
    A[unused] = A[:, unused] = B[unused] = 0
    before = D.copy()
    descend_atoms(A, B, D, 2)
    np.testing.assert_array_equal(D[unused], before[unused])
    assert np.isfinite(D).all()


@given(**shapes)
def test_float32_is_the_rounded_float64(seed, n_atoms, n_features, share, scale):
    A, B, D = random_sums(seed, n_atoms, n_features, share, scale=scale)
    single = D.astype(np.float32)
    double = single.astype(np.float64)
    descend_atoms(A, B, single, 2)
    descend_atoms(A, B, double, 2)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, double.astype(np.float32))


@pytest.mark.parametrize(("share", "scale"), [(0.01, 0.7), (0.5, 4.0)])
def test_sweeps_reach_the_minimum_and_stop_there(share, scale, rng):
    """At the minimum the gradient of every atom is 0 inside the ball, along the atom on it."""
    A, B, D = random_sums(rng, 40, 8, share, n_signals=400, scale=scale)
    assert ((A != 0).mean() < atoms._SPARSE_SHARE) == (share == 0.01)
    n_made = descend_atoms(A, B, D, 10_000)
    assert n_made < 10_000
    gradient = A @ D - B
    on_sphere = np.linalg.norm(D, axis=1) > 1 - 1e-9
    pull = -np.vecdot(gradient, D)
    assert (pull[on_sphere] >= 0).all()
    gradient[on_sphere] += pull[on_sphere, None] * D[on_sphere]
    used = np.diagonal(A) > 0
    assert 0 < on_sphere[used].sum() < used.sum()
    assert np.abs(gradient[used]).max() < 1e-4 * np.diagonal(A).max()
    assert descend_atoms(A, B, D, 5) == 1


def test_one_sweep_of_orthogonal_codes_is_least_squares(rng):
    """Codes that never share a signal: every atom is the mean of its own signals."""
    X = 0.2 * rng.standard_normal((30, 5))
    W = np.eye(3).repeat(10, axis=0)
    D = np.zeros((3, 5))
    descend_atoms(W.T @ W, W.T @ X, D, 1)
    np.testing.assert_allclose(D, X.reshape(3, 10, 5).mean(axis=1), atol=1e-12)


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_sizes_whose_squares_do_not_exist(factor, rng):
    A, B, D = random_sums(rng, 20, 6, 0.5)
    plain, scaled = D.copy(), D.copy()
    descend_atoms(A, B, plain, 2)
    descend_atoms(A * factor, B * factor, scaled, 2)
    np.testing.assert_allclose(scaled, plain, rtol=1e-9)
    # A coefficient of 1e-160 beside signals of size 1 points the atom at them and no more.
    A, B, D = np.array([[1e-320]]), np.array([[3e-160, 4e-160]]), np.zeros((1, 2))
    descend_atoms(A, B, D, 1)
    np.testing.assert_allclose(D, [[0.6, 0.8]])


def test_any_memory_layout_and_no_sweeps(rng):
    A, B, D = random_sums(rng, 30, 7, 0.5)
    expected, fortran = D.copy(), np.asfortranarray(D)
    descend_atoms(A, B, expected, 3)
    descend_atoms(np.asfortranarray(A), np.asfortranarray(B), fortran, 3)
    np.testing.assert_allclose(fortran, expected, rtol=1e-12)
    same = D.copy()
    assert descend_atoms(A, B, same, 0) == 0
    np.testing.assert_array_equal(same, D)


def test_shapes_that_do_not_fit_are_refused(rng):
    A, B, D = random_sums(rng, 30, 7, 0.5)
    for gram, cross in ((A[:29], B), (A[:29, :29], B), (A, B[:, :6]), (A, B[:29])):
        with pytest.raises(ValueError, match=r"needs gram of shape \(30, 30\) and cross of the"):
            descend_atoms(gram, cross, D, 1)


def test_the_machine_has_it():
    assert machine(np.empty(0)).descend_atoms is descend_atoms


@given(
    seed=shapes["seed"],
    n_signals=st.integers(1, 40),
    n_atoms=st.integers(1, 30),
    n_features=st.integers(1, 20),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
    order=st.sampled_from("CF"),
)
def test_sums_of_codes_are_products_of_matrices(
    seed, n_signals, n_atoms, n_features, share, dtype, order
):
    rng = np.random.default_rng(seed)
    W = np.where(
        rng.random((n_signals, n_atoms)) < share, rng.standard_normal((n_signals, n_atoms)), 0
    ).astype(dtype)
    X = np.asarray(rng.standard_normal((n_signals, n_features)), dtype, order=order)
    codes = scipy.sparse.csr_array(W)
    gram, cross = sum_products(codes.indptr, codes.indices, codes.data, X, n_atoms)
    # float32 products are exact in float64, in which both add up.
    W, X = W.astype(np.float64), X.astype(np.float64)
    np.testing.assert_allclose(gram, W.T @ W, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(cross, W.T @ X, rtol=1e-12, atol=1e-12)
    assert gram.dtype == cross.dtype == np.float64
