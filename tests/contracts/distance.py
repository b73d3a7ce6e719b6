"""What every distance must do."""

import numpy as np


class DistanceContract:
    """Subclasses give ``make()`` and rows it accepts by ``rows(n, rng, dtype)``."""

    def make(self):
        raise NotImplementedError

    def rows(self, n, rng, dtype=np.float64):
        return rng.random((n, 5)).astype(dtype)

    def between(self, X, Y):
        distance = self.make()
        return distance.compare(distance.describe(X), distance.describe(Y))

    def test_gives_one_number_a_pair_from_zero(self, rng):
        D = self.between(self.rows(7, rng), self.rows(4, rng))
        assert D.shape == (7, 4)
        assert (D >= 0).all()
        assert (D > 0).any()

    def test_is_symmetric_and_zero_to_itself(self, rng):
        X = self.rows(7, rng)
        D = self.between(X, X)
        np.testing.assert_allclose(D, D.T, atol=1e-12)
        np.testing.assert_allclose(np.diagonal(D), 0, atol=1e-7)

    def test_rows_are_described_one_by_one(self, rng):
        X, Y = self.rows(7, rng), self.rows(4, rng)
        alone = self.between(X[3:4], Y[2:3])
        np.testing.assert_allclose(alone, self.between(X, Y)[3:4, 2:3], rtol=1e-10)

    def test_descriptors_can_be_chosen_from(self, rng):
        X, Y = self.rows(7, rng), self.rows(4, rng)
        distance = self.make()
        A, B = distance.describe(X), distance.describe(Y)
        assert len(A) == 7
        np.testing.assert_allclose(distance.compare(A[2:5], B), self.between(X, Y)[2:5])

    def test_rows_stay_as_they_were(self, rng):
        X = self.rows(7, rng)
        before = X.copy()
        self.between(X, X)
        np.testing.assert_array_equal(X, before)

    def test_float32_is_near(self, rng):
        X, Y = self.rows(6, rng), self.rows(5, rng)
        single = self.between(X.astype(np.float32), Y.astype(np.float32))
        np.testing.assert_allclose(single, self.between(X, Y), rtol=1e-3, atol=1e-5)
