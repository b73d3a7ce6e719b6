"""Coding problems of every kind, expansions, codes."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from contracts.problem import ProblemContract
from kernelatoms.coding.codes import DenseCodes, PaddedCodes, dense_as_csr, stack_rows
from kernelatoms.coding.problem import GivenProblem, KernelProblem, LinearProblem
from kernelatoms.features.expansion import Expansion
from kernelatoms.similarity import make_kernel


class TestLinearProblem(ProblemContract):
    def make(self, X, D):
        return LinearProblem(X, D)


class TestKernelProblem(ProblemContract):
    """The linear kernel is the linear method."""

    def make(self, X, D):
        return KernelProblem(X, Expansion(make_kernel("linear"), D))


class TestKernelProblemWithCoefficients(ProblemContract):
    """Atoms written in other rows: D = M A with anchors A."""

    def make(self, X, D):
        anchors = np.linalg.qr(np.random.default_rng(5).standard_normal((9, 9)))[0]
        coef = anchors @ D.T
        anchors = anchors.astype(X.dtype)
        return KernelProblem(X, Expansion(make_kernel("linear"), anchors, coef.astype(X.dtype)))

    def atoms(self, problem, D):
        expansion = problem.atoms.expansion
        return expansion.coef.astype(D.dtype).T @ expansion.anchors.astype(D.dtype)


class TestGivenProblem(ProblemContract):
    def make(self, X, D):
        return GivenProblem(D @ D.T, X @ D.T, np.vecdot(X, X))


class TestGivenProblemWithoutEnergy(ProblemContract):
    knows_energy = False

    def make(self, X, D):
        return GivenProblem(D @ D.T, X @ D.T)


def test_expansion_projects_in_blocks_what_inner_gives_at_once(rng):
    X = rng.standard_normal((3000, 4))
    expansion = Expansion(make_kernel("rbf"), X[:50], rng.standard_normal((50, 7)))
    assert expansion.n_vectors == 7
    np.testing.assert_allclose(expansion.project(X), expansion.inner(X), atol=1e-12)
    np.testing.assert_allclose(
        expansion.gram(), expansion.coef.T @ expansion.inner(X[:50]), atol=1e-10
    )


EXPECTED = np.array([[2.0, 0, 1, 0], [0, 0, 0, 0], [5, 3, 4, 0]])


def padded():
    indices = np.array([[0, 2, -1], [-1, -1, -1], [0, 1, 2]], np.int32)
    values = np.array([[2.0, 1, 0], [0, 0, 0], [5, 3, 4]])
    return PaddedCodes(n_atoms=4, error=np.array([0.1, 0.2, 0.3]), indices=indices, values=values)


def ragged():
    return padded().to_ragged()


def dense():
    return DenseCodes(n_atoms=4, error=np.array([0.1, 0.2, 0.3]), weights=EXPECTED.copy())


@pytest.mark.parametrize("make", [padded, ragged, dense])
def test_codes_of_every_kind_are_the_same_matrix(make):
    codes = make()
    csr = codes.to_csr()
    assert csr.copy().has_canonical_format
    assert csr.nnz == 5
    np.testing.assert_array_equal(csr.toarray(), EXPECTED)
    np.testing.assert_array_equal(codes.to_dense(), EXPECTED)
    assert codes.n_signals == 3
    np.testing.assert_array_equal(codes.uses(), [2, 1, 2, 0])
    assert codes.l1_norm() == 15
    some = codes.take(np.array([2, 0]))
    np.testing.assert_array_equal(some.to_dense(), EXPECTED[[2, 0]])
    np.testing.assert_array_equal(some.error, [0.3, 0.1])
    single = codes.astype(np.float32)
    assert single.to_dense().dtype == np.float32
    assert single.error.dtype == np.float64
    assert codes.astype(np.float64) is codes


def scaled(codes, factors):
    """Return codes whose signals are these times as long; one factor, or one per signal."""
    csr = codes.to_csr()
    if isinstance(codes, DenseCodes):
        return dataclasses.replace(codes, weights=codes.weights * factors)
    if isinstance(codes, PaddedCodes):
        return dataclasses.replace(codes, values=codes.values * factors)
    each = np.repeat(np.broadcast_to(factors, (3, 1))[:, 0], np.diff(csr.indptr))
    return dataclasses.replace(codes, values=codes.values * each)


@pytest.mark.parametrize("make", [padded, ragged, dense])
def test_codes_that_another_type_has_no_numbers_for_are_refused(make):
    for factor, word in ((1e38, "overflow"), (1e-40, "underflow"), (1e-60, "underflow")):
        with pytest.raises(ValueError, match=f"The codes {word} float32"):
            scaled(make(), factor).astype(np.float32)
    with pytest.raises(ValueError, match="those of some rows"):
        scaled(make(), np.array([[1.0], [1.0], [1e-45]])).astype(np.float32)
    for factor in (1e-37, 1e36):
        single = scaled(make(), factor).astype(np.float32)
        np.testing.assert_allclose(single.to_dense(), EXPECTED * factor, rtol=1e-6)


def test_coefficients_that_are_nothing_beside_others_may_vanish():
    codes = DenseCodes(n_atoms=2, error=np.zeros(1), weights=np.array([[1.0, 1e-60]]))
    np.testing.assert_array_equal(codes.astype(np.float32).to_dense(), [[1, 0]])


@pytest.mark.parametrize("make", [padded, ragged])
def test_codes_of_some_signals_and_of_the_others_make_all(make):
    first, others = np.array([2]), np.array([0, 1])
    both = stack_rows([(first, make().take(first)), (others, make().take(others))])
    np.testing.assert_array_equal(both.to_dense(), EXPECTED)
    np.testing.assert_array_equal(both.error, [0.1, 0.2, 0.3])


def test_local_gram_matrices_refuse_kernel_values_that_vanish():
    """As the whole Gram matrix does: subnormal k(d, d) hold a few digits, or none."""
    atoms = np.full((3, 2), 1e-20, np.float32)
    problem = KernelProblem(np.ones((1, 2), np.float32), Expansion(make_kernel("linear"), atoms))
    with pytest.raises(ValueError, match="underflows float32"):
        problem.local(0, 1, np.array([[0, 2, -1]], np.int32))


@given(
    seed=st.integers(0, 2**31), n=st.integers(0, 40), n_atoms=st.integers(1, 9),
    dtype=st.sampled_from([np.float32, np.float64]), share=st.sampled_from([0.0, 0.5, 1.0]),
)  # fmt: skip
def test_matrices_of_dense_codes(seed, n, n_atoms, dtype, share):
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((n, n_atoms)) * (rng.random((n, n_atoms)) < share)
    weights = weights.astype(dtype)
    found, expected = dense_as_csr(weights), scipy.sparse.csr_array(weights)
    for name in ("indptr", "indices", "data"):
        one, other = getattr(found, name), getattr(expected, name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    assert found.shape == expected.shape
