"""What every kernel must do."""

import numpy as np


class KernelContract:
    """Subclasses give ``make()`` and rows it accepts by ``rows(n, rng, dtype)``."""

    def make(self):
        raise NotImplementedError

    def rows(self, n, rng, dtype=np.float64):
        return rng.random((n, 5)).astype(dtype)

    def test_gives_one_value_a_pair(self, rng):
        X, Y = self.rows(7, rng), self.rows(4, rng)
        assert self.make()(X, Y).shape == (7, 4)

    def test_is_symmetric(self, rng):
        X, Y = self.rows(7, rng), self.rows(4, rng)
        np.testing.assert_allclose(self.make()(X, Y), self.make()(Y, X).T, atol=1e-12)

    def test_diag_is_the_diagonal(self, rng):
        X = self.rows(130, rng)
        np.testing.assert_allclose(
            self.make().diag(X), np.diagonal(self.make()(X, X)), rtol=1e-7, atol=1e-12
        )

    def test_pairs_do_not_depend_on_company(self, rng):
        X, Y = self.rows(7, rng), self.rows(4, rng)
        alone = self.make()(X[3:4], Y[2:3])
        np.testing.assert_allclose(alone, self.make()(X, Y)[3:4, 2:3], atol=1e-12)

    def test_float32_stays_float32_and_near(self, rng):
        X = self.rows(6, rng)
        single = self.make()(X.astype(np.float32), X.astype(np.float32))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, self.make()(X, X), rtol=1e-3, atol=1e-4)
