"""What every coding problem must do: one linear dictionary, seen through it, codes the same."""

import numpy as np

from kernelatoms.pursuit import omp
from kernelatoms.space.problem import LinearProblem


class ProblemContract:
    """Subclasses give ``make(X, D)``: the problem of rows X over rows D, inner product x'd."""

    knows_energy = True

    def make(self, X, D):
        raise NotImplementedError

    def data(self, rng, dtype=np.float64):
        return rng.standard_normal((23, 9)).astype(dtype), rng.standard_normal((70, 9)).astype(
            dtype
        )

    def test_inner_products(self, rng):
        X, D = self.data(rng)
        problem = self.make(X, D)
        assert (problem.n_signals, problem.n_atoms) == (23, 70)
        assert problem.gram.shape == (70, 70)
        np.testing.assert_allclose(problem.gram, D @ D.T, atol=1e-10)
        out = np.empty((4, 70))
        problem.correlate(5, 9, out)
        np.testing.assert_allclose(out, X[5:9] @ D.T, atol=1e-10)

    def test_energy(self, rng):
        X, D = self.data(rng)
        energy = self.make(X, D).energy(5, 9)
        if self.knows_energy:
            np.testing.assert_allclose(energy, (X[5:9] ** 2).sum(axis=1))
        else:
            assert energy is None

    def test_codes_are_those_of_the_rows(self, rng):
        for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 1e-3)):
            X, D = self.data(rng, dtype)
            ours, linear = omp(self.make(X, D), 4), omp(LinearProblem(X, D), 4)
            assert ours.values.dtype == dtype
            np.testing.assert_allclose(ours.to_dense(), linear.to_dense(), atol=tolerance)
