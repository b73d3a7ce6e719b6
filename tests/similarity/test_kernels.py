"""Kernels by name, by function and precomputed."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from contracts.kernel import KernelContract
from kernelatoms.similarity import PrecomputedKernel, make_kernel


class TestLinear(KernelContract):
    def make(self):
        return make_kernel("linear")

    def test_is_the_inner_product(self, rng):
        X = self.rows(6, rng)
        np.testing.assert_allclose(self.make()(X, X), X @ X.T)


class TestPoly(KernelContract):
    def make(self):
        return make_kernel("poly", degree=4, gamma=1, coef0=0)

    def test_is_the_papers_kernel(self, rng):
        X = self.rows(6, rng)
        np.testing.assert_allclose(self.make()(X, X), (X @ X.T) ** 4)


class TestRBF(KernelContract):
    def make(self):
        return make_kernel("rbf", gamma=0.7)


class TestLaplacian(KernelContract):
    def make(self):
        return make_kernel("laplacian")


class TestCosine(KernelContract):
    def make(self):
        return make_kernel("cosine")


class TestSigmoid(KernelContract):
    def make(self):
        return make_kernel("sigmoid", gamma=0.1, coef0=0)


class TestChi2(KernelContract):
    def make(self):
        return make_kernel("chi2", gamma=0.5)


class TestCallable(KernelContract):
    def make(self):
        return make_kernel(lambda X, Y, c: (X @ Y.T + c) ** 2, kernel_params={"c": 3})


class TestBadKernels:
    def test_unknown_name(self):
        with pytest.raises(ValueError, match=r"kernel must be one of .*'rbf'.*got 'gauss'"):
            make_kernel("gauss")

    def test_unknown_parameter(self):
        with pytest.raises(ValueError, match="kernel_params holds width, which kernel 'rbf'"):
            make_kernel("rbf", kernel_params={"width": 3})

    def test_callable_of_wrong_shape(self, rng):
        kernel = make_kernel(lambda X, Y: X @ Y[0])
        with pytest.raises(ValueError, match=r"should return shape \(3, 3\).*returned \(3,\)"):
            kernel(np.ones((3, 2)), np.ones((3, 2)))

    def test_callable_that_overflows(self):
        kernel = make_kernel(lambda X, Y: np.full((len(X), len(Y)), np.inf))
        with pytest.raises(ValueError, match="NaN or infinity"):
            kernel(np.ones((3, 2)), np.ones((3, 2)))


def test_precomputed_reads_columns(rng):
    X = rng.standard_normal((6, 3))
    K = rbf_kernel(X)
    kernel = make_kernel("precomputed")
    assert isinstance(kernel, PrecomputedKernel)
    np.testing.assert_array_equal(kernel(K, np.array([[4], [1]])), K[:, [4, 1]])
    np.testing.assert_array_equal(kernel.diag(K), np.diagonal(K))
    with pytest.raises(ValueError, match="not known"):
        kernel.diag(K[:2])
