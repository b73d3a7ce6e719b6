"""What every coding problem must do: one linear dictionary, seen through it, codes the same."""

import numpy as np

from kernelatoms.coding import LinearProblem, omp
from kernelatoms.coding.closed_form import ridge
from kernelatoms.coding.neighbors import ascending, nearest_in_space


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
        np.testing.assert_allclose(problem.gram_rows(np.array([3, 5])), D[[3, 5]] @ D.T, atol=1e-10)
        np.testing.assert_allclose(problem.norms2, (D**2).sum(axis=1), atol=1e-10)
        assert problem.gram.shape == (70, 70)
        assert problem.gram_is_known
        np.testing.assert_allclose(problem.gram, D @ D.T, atol=1e-10)
        np.testing.assert_allclose(problem.gram_rows(np.array([3, 5])), D[[3, 5]] @ D.T, atol=1e-10)
        corr, _ = problem.products(5, 9)
        np.testing.assert_allclose(corr, X[5:9] @ D.T, atol=1e-10)

    def test_products_with_the_atoms_of_codes(self, rng):
        X, D = self.data(rng)
        problem = self.make(X, D)
        for counts in ([2, 0, 1, 3], [70, 1, 0, 70]):  # few, and nearly all
            indptr = 4 + np.concatenate([[0], np.cumsum(counts)])
            own = [np.sort(rng.permutation(70)[:n]) for n in (4, *counts, 2)]
            indices = np.concatenate(own).astype(np.int32)
            corr, energy = problem.products_at(5, 9, indptr, indices)
            naive = [D[atoms] @ x for atoms, x in zip(own[1:-1], X[5:9], strict=True)]
            np.testing.assert_allclose(corr, np.concatenate(naive), atol=1e-10)
            assert (energy is not None) == self.knows_energy
            if self.knows_energy:
                np.testing.assert_allclose(energy, (X[5:9] ** 2).sum(axis=1))

    def test_products_of_signals_of_any_size(self, rng):
        X, D = self.data(rng)
        X *= np.array([[1.0], [1e-170], [1e155]])[np.arange(23) % 3]
        try:
            with np.errstate(over="ignore"):
                problem = self.make(X, D)
            corr, _ = problem.products(5, 9)
        except ValueError:  # a kernel may refuse them
            return
        indptr, indices = np.array([0, 2, 3, 3, 5]), np.array([7, 60, 1, 0, 69], np.int32)
        rows = np.repeat(np.arange(4), np.diff(indptr))
        own, _ = problem.products_at(5, 9, indptr, indices)
        np.testing.assert_allclose(own, corr[rows, indices], rtol=1e-12)

    def test_energy(self, rng):
        X, D = self.data(rng)
        problem = self.make(X, D)
        assert problem.knows_energy == self.knows_energy
        for energy in (problem.energy(5, 9), problem.products(5, 9)[1]):
            if self.knows_energy:
                np.testing.assert_allclose(energy, (X[5:9] ** 2).sum(axis=1))
            else:
                assert energy is None

    def test_local_products_are_those_of_the_candidates(self, rng):
        X, D = self.data(rng)
        candidates = np.array([[3, 60, -1], [0, 1, 2], [-1, -1, -1], [69, 5, 4]], np.int32)
        problem = self.make(X, D)
        for _ in range(2):
            grams, corrs = problem.local(5, 9, candidates)
            own = np.where((candidates >= 0)[:, :, None], D[candidates], 0)
            np.testing.assert_allclose(grams, own @ own.mT, atol=1e-10)
            np.testing.assert_allclose(corrs, np.einsum("skf,sf->sk", own, X[5:9]), atol=1e-10)
            _ = problem.gram  # and from it, once it is known

    def test_neighbours_are_those_of_the_rows(self, rng):
        X, D = self.data(rng)
        far = ((X[:, None] - D) ** 2).sum(axis=2)
        for n_neighbors in (1, 7, 70):
            found = nearest_in_space(self.make(X, D), n_neighbors)
            np.testing.assert_array_equal(found, np.argsort(far, axis=1)[:, :n_neighbors])

    def test_codes_over_neighbours_are_those_of_the_rows(self, rng):
        for dtype, tolerance in ((np.float64, 1e-10), (np.float32, 1e-4)):
            X, D = self.data(rng, dtype)
            near = nearest_in_space(LinearProblem(X, D), 6)
            near[::2, 4:] = -1
            ours = ridge(self.make(X, D), 0.5, candidates=near)
            rows = ridge(LinearProblem(X, D), 0.5, candidates=near)
            np.testing.assert_array_equal(ours.indices, ascending(near))
            np.testing.assert_allclose(ours.values, rows.values, atol=tolerance)

    def test_combined_atoms_have_combined_products(self, rng):
        X, D = self.data(rng)
        candidates = np.array([[3, 60, -1], [0, 3, 2]], np.int32)
        weights = np.array([[1.0, -2.0, 0.0], [0.0, 0.5, 3.0]])
        expected = np.array([D[3] - 2 * D[60], 0.5 * D[3] + 3 * D[2]]) @ D.T
        products = self.make(X, D).gram_times(weights, candidates)
        np.testing.assert_allclose(products, expected, atol=1e-10)

    def test_some_signals_in_float64(self, rng):
        X, D = self.data(rng, np.float32)
        problem = self.make(X, D)
        assert not self.make(*self.data(rng)).gains_digits
        some, tolerance = np.array([2, 7, 22]), 1e-12 if problem.gains_digits else 1e-5
        wide = problem.in_float64(some)
        assert wide.dtype == wide.gram.dtype == np.float64
        X, D = X.astype(np.float64), self.atoms(problem, D.astype(np.float64))
        corr, energy = wide.products(0, 3)
        np.testing.assert_allclose(wide.gram, D @ D.T, atol=tolerance * 100)
        np.testing.assert_allclose(corr, X[some] @ D.T, atol=tolerance * 100)
        assert (energy is not None) == self.knows_energy

    def atoms(self, problem, D):
        """Return the atoms that a problem stands for, as rows: those that it was made of."""
        return D

    def test_codes_are_those_of_the_rows(self, rng):
        for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 1e-3)):
            X, D = self.data(rng, dtype)
            ours, linear = omp(self.make(X, D), 4), omp(LinearProblem(X, D), 4)
            assert ours.dtype == dtype
            np.testing.assert_allclose(ours.to_dense(), linear.to_dense(), atol=tolerance)
