"""Sums of codes, and block coordinate descent on atoms: the textbook, and what holds always."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import oracles.learning
from kernelatoms.engine.cpu.atoms import _SPARSE_SHARE
from machines import NUMPY, assert_near
from padded_codes import random_codes


def random_sums(seed, n_atoms, n_features, share, n_signals=60, scale=1.0):
    """W'W, W'X and atoms in the unit ball; ``share`` of the coefficients are nonzero."""
    rng = np.random.default_rng(seed)
    W = np.where(rng.random((n_signals, n_atoms)) < share, 1, 0) * rng.standard_normal(
        (n_signals, n_atoms)
    )
    X = scale * rng.standard_normal((n_signals, n_features))
    D = rng.standard_normal((n_atoms, n_features))
    return W.T @ W, W.T @ X, D / np.maximum(np.linalg.norm(D, axis=1, keepdims=True), 1)


def descend(machine, A, B, D, n_sweeps):
    """Return improved atoms, and how many sweeps were made."""
    ours = machine.array(D.copy())
    n_made = machine.descend_atoms(machine.array(A), machine.array(B), ours, n_sweeps)
    return machine.numpy(ours), n_made


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
def test_agrees_with_the_textbook(machine, seed, n_atoms, n_features, share, scale, n_sweeps):
    A, B, D = random_sums(seed, n_atoms, n_features, share, scale=scale)
    ours, n_made = descend(machine, A, B, D, n_sweeps)
    np.testing.assert_allclose(
        ours, oracles.learning.descend_atoms(A, B, D, n_made), rtol=1e-7, atol=1e-9
    )


@given(**shapes)
def test_the_objective_never_rises_and_atoms_stay_in_the_unit_ball(
    machine, seed, n_atoms, n_features, share, scale
):
    A, B, D = random_sums(seed, n_atoms, n_features, share, scale=scale)
    floor = 1e-12 * (np.abs(B).sum() + np.abs(A).sum())
    before = objective(A, B, D)
    for _ in range(4):
        D, _ = descend(machine, A, B, D, 1)
        after = objective(A, B, D)
        assert after <= before + floor
        before = after
        assert (np.linalg.norm(D, axis=1) <= 1 + 1e-12).all()


@given(**shapes)
def test_atoms_without_users_keep_their_place(machine, seed, n_atoms, n_features, share, scale):
    A, B, D = random_sums(seed, n_atoms, n_features, share, scale=scale)
    unused = np.random.default_rng(seed).random(n_atoms) < 0.3
    A[unused] = A[:, unused] = B[unused] = 0
    before = D.copy()
    D, _ = descend(machine, A, B, D, 2)
    np.testing.assert_array_equal(D[unused], before[unused])
    assert np.isfinite(D).all()


@given(**shapes)
def test_float32_is_the_rounded_float64(machine, seed, n_atoms, n_features, share, scale):
    A, B, D = random_sums(seed, n_atoms, n_features, share, scale=scale)
    single = D.astype(np.float32)
    double = single.astype(np.float64)
    single, double = (descend(machine, A, B, atoms, 2)[0] for atoms in (single, double))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, double.astype(np.float32))


@pytest.mark.parametrize(("share", "scale"), [(0.01, 0.7), (0.5, 4.0)])
def test_sweeps_reach_the_minimum_and_stop_there(machine, share, scale, rng):
    """At the minimum the gradient of every atom is 0 inside the ball, along the atom on it."""
    A, B, D = random_sums(rng, 40, 8, share, n_signals=400, scale=scale)
    assert ((A != 0).mean() < _SPARSE_SHARE) == (share == 0.01)
    D, n_made = descend(machine, A, B, D, 10_000)
    assert n_made < 10_000
    gradient = A @ D - B
    on_sphere = np.linalg.norm(D, axis=1) > 1 - 1e-9
    pull = -np.vecdot(gradient, D)
    assert (pull[on_sphere] >= 0).all()
    gradient[on_sphere] += pull[on_sphere, None] * D[on_sphere]
    used = np.diagonal(A) > 0
    assert 0 < on_sphere[used].sum() < used.sum()
    assert np.abs(gradient[used]).max() < 1e-4 * np.diagonal(A).max()
    assert descend(machine, A, B, D, 5)[1] == 1


def test_one_sweep_of_orthogonal_codes_is_least_squares(machine, rng):
    """Codes that never share a signal: every atom is the mean of its own signals."""
    X = 0.2 * rng.standard_normal((30, 5))
    W = np.eye(3).repeat(10, axis=0)
    D = np.zeros((3, 5))
    D, _ = descend(machine, W.T @ W, W.T @ X, D, 1)
    np.testing.assert_allclose(D, X.reshape(3, 10, 5).mean(axis=1), atol=1e-12)


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_sizes_whose_squares_do_not_exist(machine, factor, rng):
    A, B, D = random_sums(rng, 20, 6, 0.5)
    plain, _ = descend(machine, A, B, D, 2)
    scaled, _ = descend(machine, A * factor, B * factor, D, 2)
    np.testing.assert_allclose(scaled, plain, rtol=1e-9)
    # A coefficient of 1e-160 beside signals of size 1 points the atom at them and no more.
    A, B, D = np.array([[1e-320]]), np.array([[3e-160, 4e-160]]), np.zeros((1, 2))
    D, _ = descend(machine, A, B, D, 1)
    np.testing.assert_allclose(D, [[0.6, 0.8]])


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
    machine, seed, n_signals, n_atoms, n_features, share, dtype, order
):
    rng = np.random.default_rng(seed)
    W = np.where(
        rng.random((n_signals, n_atoms)) < share, rng.standard_normal((n_signals, n_atoms)), 0
    ).astype(dtype)
    X = np.asarray(rng.standard_normal((n_signals, n_features)), dtype, order=order)
    codes = scipy.sparse.csr_array(W)
    parts = codes.indptr.astype(np.int64), codes.indices, codes.data
    gram, cross = machine.run("sum_products", *parts, X, n_atoms)
    # float32 products are exact in float64, in which both add up.
    W, X = W.astype(np.float64), X.astype(np.float64)
    np.testing.assert_allclose(gram, W.T @ W, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(cross, W.T @ X, rtol=1e-12, atol=1e-12)
    assert gram.dtype == cross.dtype == np.float64


@given(seed=shapes["seed"], dtype=st.sampled_from([np.float32, np.float64]))
def test_sums_and_descent_are_numpys(machine, seed, dtype):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 5)).astype(dtype)
    indices, values = random_codes(rng, 30, 40, 3, dtype)
    used = indices >= 0
    indptr = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    codes = indptr, indices[used], values[used], X, 40
    sums = NUMPY.sum_products(*codes)
    for found, expected in zip(machine.run("sum_products", *codes), sums, strict=True):
        assert_near(found, expected, 1e-13)
    D = NUMPY.unit_rows(rng.standard_normal((40, 5)).astype(dtype))
    (ours, n_made), (expected, n_expected) = (descend(m, *sums, D, 3) for m in (machine, NUMPY))
    assert n_made == n_expected
    assert_near(ours, expected, 1e3 * float(np.finfo(dtype).eps))
