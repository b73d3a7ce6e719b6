"""Residuals of classes, and shares of the classes that follow from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.residuals
from kernelatoms.coding import omp
from kernelatoms.coding.class_residuals import ClassParts, class_residuals
from kernelatoms.coding.codes import DenseCodes, ragged
from kernelatoms.coding.problem import GivenProblem, KernelProblem, LinearProblem
from kernelatoms.features.expansion import Expansion
from kernelatoms.similarity import make_kernel


def random_case(seed, n_signals, n_features, n_atoms, n_classes, share, missing, dtype):
    """Signals, atoms, dense codes and owners; classes are in no order and some own nothing."""
    rng = np.random.default_rng(seed)
    X, D = rng.standard_normal((n_signals, n_features)), rng.standard_normal((n_atoms, n_features))
    W = np.where(rng.random((n_signals, n_atoms)) < share, 1, 0) * rng.standard_normal(
        (n_signals, n_atoms)
    )
    X[rng.random(X.shape) < missing] = np.nan
    return X.astype(dtype), D.astype(dtype), W.astype(dtype), rng.integers(0, n_classes, n_atoms)


def as_codes(W, dense=False):
    codes = DenseCodes(n_atoms=W.shape[1], error=np.zeros(len(W), W.dtype), weights=W)
    return codes if dense else ragged(codes.to_csr(), codes.error)


def tolerance(X, D, W):
    """Rounding of what is summed: the energy of a signal and of all that its code adds up."""
    sizes = np.nansum(X**2, axis=1) + (np.abs(W) @ np.linalg.norm(D, axis=1)) ** 2
    return 30 * float(np.finfo(X.dtype).eps) * (1 + float(sizes.max()))


@given(
    seed=st.integers(0, 2**32 - 1),
    n_signals=st.integers(1, 30),
    n_features=st.integers(1, 20),
    n_atoms=st.integers(1, 80),
    n_classes=st.integers(1, 12),
    share=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    missing=st.sampled_from([0.0, 0.02, 0.5]),
    dtype=st.sampled_from([np.float32, np.float64]),
    in_order=st.booleans(),
    dense=st.booleans(),
)
def test_agrees_with_the_textbook(
    seed, n_signals, n_features, n_atoms, n_classes, share, missing, dtype, in_order, dense
):
    X, D, W, owner = random_case(
        seed, n_signals, n_features, n_atoms, n_classes, share, missing, dtype
    )
    if in_order:
        owner.sort()
    expected = oracles.residuals.class_residuals(
        X.astype(float), D.astype(float), W.astype(float), owner, n_classes
    )
    found = class_residuals(LinearProblem(X, D), as_codes(W, dense), owner, n_classes)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=tolerance(X, D, W))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("given_energy", [True, False])
def test_given_inner_products(given_energy, dense, rng):
    """Without energies, less the signal's own."""
    X, D, W, owner = random_case(rng, 300, 8, 40, 5, 0.2, 0.0, np.float64)
    energy = np.vecdot(X, X)
    problem = GivenProblem(D @ D.T, X @ D.T, energy if given_energy else None)
    found = class_residuals(problem, as_codes(W, dense), owner, 5)
    expected = oracles.residuals.class_residuals(X, D, W, owner, 5)
    known = 0 if given_energy else energy[:, None]
    np.testing.assert_allclose(found, expected - known, atol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("dense", [False, True])
def test_a_linear_kernel_is_the_linear_method(dense, missing, rng):
    X, D, W, owner = random_case(rng, 200, 9, 30, 4, 0.2, missing, np.float64)
    anchors = np.linalg.qr(rng.standard_normal((9, 9)))[0]
    problem = KernelProblem(X, Expansion(make_kernel("linear"), anchors, anchors @ D.T))
    found = class_residuals(problem, as_codes(W, dense), owner, 4)
    np.testing.assert_allclose(found, oracles.residuals.class_residuals(X, D, W, owner, 4))


def test_kernel_residuals_are_distances_in_feature_space(rng):
    """Feature space of (x'y)^2 written out: phi(x) = x x'."""
    X, D, W, owner = random_case(rng, 50, 4, 20, 3, 0.3, 0.0, np.float64)
    problem = KernelProblem(X, Expansion(make_kernel("poly", gamma=1.0, degree=2, coef0=0.0), D))
    phi = [np.einsum("si,sj->sij", rows, rows).reshape(len(rows), -1) for rows in (X, D)]
    expected = oracles.residuals.class_residuals(*phi, W, owner, 3)
    np.testing.assert_allclose(class_residuals(problem, as_codes(W), owner, 3), expected)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_codes_of_a_pursuit_with_candidates(missing, rng):
    """One class of all atoms leaves what the pursuit says it leaves."""
    X, D, _, owner = random_case(rng, 120, 12, 60, 6, 0, missing, np.float64)
    lists = np.array([rng.permutation(60)[:10] for _ in X], np.int32)
    lists[rng.random(lists.shape) < 0.3] = -1
    problem = LinearProblem(X, D)
    codes = omp(problem, 4, candidates=lists)
    one = class_residuals(problem, codes, np.zeros(60, int), 1)[:, 0]
    np.testing.assert_allclose(one, codes.error, atol=1e-10)
    expected = oracles.residuals.class_residuals(X, D, codes.to_dense(), owner, 6)
    np.testing.assert_allclose(class_residuals(problem, codes, owner, 6), expected, atol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("dense", [False, True])
def test_zero_codes_and_classes_without_atoms_leave_everything(dense, missing, rng):
    X, D, W, _ = random_case(rng, 20, 6, 10, 1, 0.4, missing, np.float64)
    owner = np.repeat([1, 3], 5)  # classes 0, 2 and 4 own nothing
    W[::3] = 0
    found = class_residuals(LinearProblem(X, D), as_codes(W, dense), owner, 5)
    energy = np.nansum(X**2, axis=1)
    np.testing.assert_allclose(found[:, [0, 2, 4]], np.repeat(energy[:, None], 3, axis=1))
    np.testing.assert_allclose(found[::3], np.repeat(energy[::3, None], 5, axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_rounding_counts_as_zero_and_less_is_kept(dense, missing, dtype, rng):
    D = rng.standard_normal((6, 6)).astype(dtype)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    W = (np.eye(6) * rng.uniform(0.1, 9, 6)).astype(dtype)
    X = W @ D
    if missing:
        X[:, 0] = np.nan
    codes = as_codes(W, dense)
    assert (class_residuals(LinearProblem(X, D), codes, np.zeros(6, int), 1) == 0).all()
    if not missing:
        # Energies that are estimates may be less than what a code explains: told, not hidden.
        short = GivenProblem(D @ D.T, X @ D.T, dtype(0.5) * np.vecdot(X, X))
        below = class_residuals(short, codes, np.zeros(6, int), 1)[:, 0]
        np.testing.assert_allclose(below, -0.5 * np.vecdot(X, X), rtol=1e-4)


def test_float32_codes_over_a_float64_problem(rng):
    X, D, W, owner = random_case(rng, 30, 6, 20, 3, 0.3, 0.0, np.float64)
    found = class_residuals(LinearProblem(X, D), as_codes(W.astype(np.float32)), owner, 3)
    assert found.dtype == np.float64
    expected = oracles.residuals.class_residuals(X, D, W, owner, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_codes_of_many_blocks(rng):
    X, D, _, owner = random_case(rng, 3000, 10, 300, 7, 0, 0.0, np.float64)
    codes = omp(LinearProblem(X, D), 5)
    expected = oracles.residuals.class_residuals(X, D, codes.to_dense(), owner, 7)
    np.testing.assert_allclose(class_residuals(LinearProblem(X, D), codes, owner, 7), expected)


def test_what_does_not_fit_is_refused(rng):
    X, D, W, owner = random_case(rng, 10, 4, 6, 3, 0.5, 0.0, np.float64)
    problem = LinearProblem(X, D)
    with pytest.raises(ValueError, match=r"codes must be 10 signals over 6 atoms, got \(10, 5\)"):
        class_residuals(problem, as_codes(W[:, :5]), owner, 3)
    with pytest.raises(ValueError, match=r"codes must be 10 signals over 6 atoms, got \(9, 6\)"):
        class_residuals(problem, as_codes(W[:9]), owner, 3)
    with pytest.raises(ValueError, match="owner must hold a class for each of the 6 atoms"):
        class_residuals(problem, as_codes(W), owner[:5], 3)
    with pytest.raises(ValueError, match="as a whole number, got float64"):
        class_residuals(problem, as_codes(W), owner.astype(float), 3)
    for bad in (-1, 3):
        owner[2] = bad
        with pytest.raises(ValueError, match="owner must lie between 0 and n_classes - 1 = 2"):
            class_residuals(problem, as_codes(W), owner, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_residuals_within_rounding_are_not_told_apart(dtype):
    eps = np.finfo(dtype).eps
    # Of a signal of energy 4: rounding, less of it, and more than rounding.
    parts = ClassParts(
        np.array([[30 * eps, 1e-3 * eps, 80 * eps]]), np.ones((1, 3)), np.array([4.0])
    )
    np.testing.assert_allclose(parts.shares(np.dtype(dtype)), [[0.4, 0.4, 0.2]])


def test_parts_of_any_size_have_shares():
    for size in (1e-300, 1.0, 1e300):
        parts = ClassParts(np.array([[1.0, 4.0]]), size * np.array([[1.0, 2.0]]), np.array([9.0]))
        np.testing.assert_allclose(parts.shares(np.dtype(np.float64)), [[2 / 3, 1 / 3]])
        np.testing.assert_allclose(parts.residuals() * np.sqrt(size), [[1, np.sqrt(2)]])


def test_no_part_is_no_share_and_no_parts_are_alike():
    parts = ClassParts(np.ones((2, 2)), np.array([[1.0, 0.0], [0.0, 0.0]]), np.ones(2))
    np.testing.assert_array_equal(parts.shares(np.dtype(np.float64)), [[1, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(parts.residuals(), [[1, np.inf], [np.inf, np.inf]])
