"""Coding problems of every kind, expansions, codes."""

import numpy as np

from contracts.problem import ProblemContract
from kernelatoms.similarity import make_kernel
from kernelatoms.space.codes import Codes
from kernelatoms.space.expansion import Expansion
from kernelatoms.space.problem import GivenProblem, KernelProblem, LinearProblem


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


def make_codes():
    indices = np.array([[0, 2, -1], [-1, -1, -1], [0, 1, 2]], np.int32)
    values = np.array([[2.0, 1, 0], [0, 0, 0], [5, 3, 4]])
    return Codes(indices, values, 4, np.array([0.1, 0.2, 0.3]))


def test_codes_to_csr_and_dense():
    expected = [[2, 0, 1, 0], [0, 0, 0, 0], [5, 3, 4, 0]]
    csr = make_codes().to_csr()
    assert csr.copy().has_canonical_format
    assert csr.nnz == 5
    np.testing.assert_array_equal(csr.toarray(), expected)
    np.testing.assert_array_equal(make_codes().to_dense(), expected)
