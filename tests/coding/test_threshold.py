"""Codes by thresholding: a closed form over orthonormal atoms, scikit-learn's over others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import sparse_encode as rival_encode

import oracles.ksad
from kernelatoms import SparseCoder, sparse_encode
from kernelatoms.coding import Expansion, GivenProblem, KernelProblem, Lasso, LinearProblem
from kernelatoms.coding.pursuits import Threshold
from kernelatoms.coding.threshold import is_orthonormal, soft_threshold, threshold
from kernelatoms.similarity import RBFKernel


def orthonormal(rng, n_atoms, n_features, dtype=np.float64):
    return np.linalg.qr(rng.standard_normal((n_features, n_atoms)))[0].T.astype(dtype)


@given(seed=st.integers(0, 2**31), alpha=st.sampled_from([0.0, 0.2, 1.5]))
def test_over_orthonormal_atoms_it_is_the_lasso(seed, alpha):
    rng = np.random.default_rng(seed)
    D = orthonormal(rng, 5, 8)
    problem = LinearProblem(rng.standard_normal((30, 8)), D)
    codes = Threshold(alpha)(problem)
    if alpha:
        best = Lasso(alpha, gap_tol=1e-12)(problem)
        np.testing.assert_allclose(codes.to_dense(), best.to_dense(), atol=1e-7)
    left = problem.signals - codes.to_dense() @ D
    np.testing.assert_allclose(codes.error, np.sum(left**2, axis=1), atol=1e-12)


@given(
    seed=st.integers(0, 2**31),
    alpha=st.sampled_from([0.1, 0.7]),
    positive=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_codes_are_scikit_learns(seed, alpha, positive, dtype):
    rng = np.random.default_rng(seed)
    X, D = (rng.standard_normal((n, 6)).astype(dtype) for n in (20, 9))
    ours = sparse_encode(X, D, method="threshold", alpha=alpha, positive=positive)
    theirs = rival_encode(X, D, algorithm="threshold", alpha=alpha, positive=positive)
    assert ours.dtype == dtype
    np.testing.assert_allclose(ours.toarray(), theirs, atol=1e-5)
    coder = SparseCoder(D, method="threshold", alpha=alpha, positive=positive).fit(X)
    np.testing.assert_array_equal(coder.transform(X).toarray(), ours.toarray())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_errors_are_those_of_the_codes(dtype, rng):
    X, D = (rng.standard_normal((n, 6)).astype(dtype) for n in (700, 9))
    codes = threshold(LinearProblem(X, D), 0.5)
    np.testing.assert_array_equal(
        codes.to_dense() == 0, np.abs(oracles.ksad.soft(X @ D.T, 0.5)) == 0
    )
    left = X.astype(float) - codes.to_dense().astype(float) @ D
    np.testing.assert_allclose(codes.error, np.sum(left**2, axis=1), rtol=1e-3)


def test_over_candidates_others_stay_out(rng):
    X, D = rng.standard_normal((40, 6)), rng.standard_normal((9, 6))
    candidates = np.array([rng.permutation(9)[:4] for _ in X], np.int32)
    candidates[0, 2:] = -1
    codes = threshold(LinearProblem(X, D), 0.3, candidates=candidates)
    allowed = np.zeros((40, 9), bool)
    for s, own in enumerate(candidates):
        allowed[s, own[own >= 0]] = True
    expected = np.where(allowed, oracles.ksad.soft(X @ D.T, 0.3), 0)
    np.testing.assert_allclose(codes.to_dense(), expected, atol=1e-12)
    left = X - expected @ D
    np.testing.assert_allclose(codes.error, np.sum(left**2, axis=1), atol=1e-10)


def test_under_kernels_and_where_energies_are_not_known(rng):
    X, D = rng.standard_normal((40, 3)), rng.standard_normal((6, 3))
    kernel = RBFKernel(0.5)
    under = threshold(KernelProblem(X, Expansion(kernel, D)), 0.1)
    given_ = threshold(GivenProblem(kernel(D, D), kernel(X, D)), 0.1)
    np.testing.assert_allclose(under.to_dense(), oracles.ksad.soft(kernel(X, D), 0.1), atol=1e-12)
    np.testing.assert_allclose(under.to_dense(), given_.to_dense(), atol=1e-12)
    np.testing.assert_allclose(under.error, given_.error + 1, atol=1e-12)


def test_soft_threshold_and_its_edges():
    values = np.array([-2.0, -1.0, -0.5, 0.0, 1.0, 3.0])
    np.testing.assert_array_equal(soft_threshold(values, 1.0), [-1, 0, 0, 0, 0, 2])
    np.testing.assert_array_equal(soft_threshold(values, 0.0), values)
    np.testing.assert_array_equal(soft_threshold(values, 1.0, positive=True), [0, 0, 0, 0, 0, 2])
    assert soft_threshold(np.float32([1, 2]), 0.1).dtype == np.float32
    with pytest.raises(TypeError, match="positive must be True or False, got 'no'"):
        soft_threshold(values, 1.0, positive="no")


def test_orthonormal_is_told_from_nearly_so():
    assert is_orthonormal(np.eye(4))
    assert is_orthonormal(np.eye(4) + 1e-15)
    assert not is_orthonormal(np.eye(4) + 1e-13)
    assert not is_orthonormal(2 * np.eye(4))


@pytest.mark.parametrize(
    ("alpha", "message"),
    [(-0.1, "alpha must be at least 0, got -0.1"), (np.nan, "alpha must be a finite number")],
)
def test_what_is_no_threshold_is_refused(alpha, message):
    with pytest.raises(ValueError, match=message):
        threshold(LinearProblem(np.eye(2), np.eye(2)), alpha)


def test_arguments_are_checked(rng):
    X, D = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    with pytest.raises(ValueError, match="method='threshold' needs alpha"):
        sparse_encode(X, D, method="threshold")
    with pytest.raises(ValueError, match="mu belongs to method='ridge'"):
        sparse_encode(X, D, method="threshold", alpha=0.1, mu=1.0)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        sparse_encode(X, D, method="threshold", alpha=0.1)
