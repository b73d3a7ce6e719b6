"""What every distance must do."""

import numpy as np
import pytest


class DistanceContract:
    """Subclasses give ``make()``, fitted, and rows it accepts by ``rows(n, rng, dtype)``."""

    def make(self):
        raise NotImplementedError

    def rows(self, n, rng, dtype=np.float64):
        return rng.random((n, 5)).astype(dtype)

    def between(self, X, Y):
        distance = self.make()
        return distance.compare(distance.featurize(X), distance.featurize(Y))

    def test_gives_one_number_a_pair_from_zero(self, rng):
        D = self.between(self.rows(7, rng), self.rows(4, rng))
        assert D.shape == (7, 4)
        assert (D >= 0).all()
        assert (D > 0).any()

    def test_is_symmetric_and_zero_to_itself(self, rng):
        X = self.rows(7, rng)
        D = self.between(X, X)
        np.testing.assert_allclose(D, D.T, atol=1e-12)
        # Roots of the rounding of squares, which grows with the distances.
        np.testing.assert_allclose(np.diagonal(D), 0, atol=1e-7 * max(1, D.max()))

    def test_rows_are_described_one_by_one(self, rng):
        X, Y = self.rows(7, rng), self.rows(4, rng)
        alone = self.between(X[3:4], Y[2:3])
        np.testing.assert_allclose(alone, self.between(X, Y)[3:4, 2:3], rtol=1e-10)

    def test_descriptors_can_be_chosen_from(self, rng):
        X, Y = self.rows(7, rng), self.rows(4, rng)
        distance = self.make()
        A, B = distance.featurize(X), distance.featurize(Y)
        assert len(A) == 7
        np.testing.assert_allclose(distance.compare(A[2:5], B), self.between(X, Y)[2:5])

    def test_rows_stay_as_they_were(self, rng):
        X = self.rows(7, rng)
        before = X.copy()
        self.between(X, X)
        np.testing.assert_array_equal(X, before)

    def test_float32_is_near(self, rng):
        X, Y = (self.rows(n, rng, np.float32).astype(np.float64) for n in (6, 5))
        single = self.between(X.astype(np.float32), Y.astype(np.float32))
        np.testing.assert_allclose(single, self.between(X, Y), rtol=1e-3, atol=1e-5)

    def test_if_it_takes_stacks_they_are_many_matrices(self, rng):
        distance = self.make()
        if not getattr(distance, "takes_stacks", False):
            pytest.skip("takes none")
        A = distance.featurize(self.rows(12, rng))
        B = distance.featurize(self.rows(24, rng)).reshape(2, 3, 4, -1)
        D = distance.compare(A.reshape(2, 3, 2, -1), B)
        assert D.shape == (2, 3, 2, 4)
        expected = [distance.compare(A[2 * i : 2 * i + 2], B[i // 3, i % 3]) for i in range(6)]
        np.testing.assert_allclose(D.reshape(6, 2, 4), expected, rtol=1e-10, atol=1e-7)
        one_each = distance.compare(A[:3, None], B[0])[:, 0]  # each row and its own candidates
        expected = [distance.compare(A[i : i + 1], B[0, i])[0] for i in range(3)]
        np.testing.assert_allclose(one_each, expected, rtol=1e-10, atol=1e-7)

    def test_there_may_be_no_rows(self, rng):
        distance = self.make()
        if not getattr(distance, "takes_stacks", False):
            pytest.skip("promised of the library's only")
        A, B = distance.featurize(self.rows(5, rng)), distance.featurize(self.rows(3, rng))
        assert distance.compare(A[:0], B).shape == (0, 3)
        assert distance.compare(A, B[:0]).shape == (5, 0)
        assert distance.compare(A[:0, None], B[None, :0].repeat(0, 0)).shape == (0, 1, 0)
        assert distance.featurize(self.rows(5, rng)[:0]).shape == (0, A.shape[1])
