"""What every kernel must do, and what it must be able to do if it says that it can."""

import numpy as np
import pytest
import scipy.sparse


class KernelContract:
    """Subclasses give ``make()`` and rows it accepts by ``rows(n, rng, dtype)``."""

    def make(self):
        raise NotImplementedError

    def rows(self, n, rng, dtype=np.float64):
        return rng.random((n, 5)).astype(dtype)

    def scale(self, X):
        """What gamma="scale" is on rows X."""
        return 1 / (X.shape[1] * X.var())

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
        X = self.rows(6, rng, np.float32).astype(np.float64)
        single = self.make()(X.astype(np.float32), X.astype(np.float32))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, self.make()(X, X), rtol=1e-3, atol=1e-4)

    def test_descriptors_serve_instead_of_rows(self, rng):
        kernel, X, Y = self.make(), self.rows(7, rng), self.rows(4, rng)
        A, B, described = kernel.featurize(X), kernel.featurize(Y), kernel.for_features(X.shape[1])
        assert len(A) == 7
        np.testing.assert_allclose(described(A, B), kernel(X, Y), rtol=1e-12)
        np.testing.assert_allclose(described.diag(A), kernel.diag(X), rtol=1e-12)

    def test_if_it_takes_stacks_they_are_many_matrices(self, rng):
        kernel = self.make()
        if not kernel.takes_stacks:
            pytest.skip("takes none")
        X, Y = self.rows(6, rng).reshape(2, 3, -1), self.rows(8, rng).reshape(2, 4, -1)
        expected = [kernel(x, y) for x, y in zip(X, Y, strict=True)]
        np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-10, atol=1e-12)

    def test_if_it_claims_to_be_semidefinite_it_is(self, rng):
        if not self.make().semidefinite:
            pytest.skip("claims nothing")
        X = self.rows(40, rng)
        K = self.make()(X, X)
        assert np.linalg.eigvalsh(K).min() > -1e-10 * np.trace(K)

    def test_its_gradient_is_its_slope(self, rng):
        kernel, h = self.make(), 1e-6
        if not kernel.has_gradient:
            pytest.skip("has none")
        X, Y = self.rows(7, rng), self.rows(4, rng) + 0.1
        W = rng.standard_normal((7, 4))
        expected = np.empty_like(Y)
        for j, f in np.ndindex(*Y.shape):
            step = h * np.eye(Y.shape[1])[f]
            up, down = (kernel(X, (Y[j] + s * step)[None])[:, 0] for s in (1, -1))
            expected[j, f] = W[:, j] @ (up - down) / (2 * h)
        size = 1e-5 * (1 + np.abs(expected).max())
        np.testing.assert_allclose(kernel.weighted_gradient(W, X, Y), expected, atol=size)
        sparse = kernel.weighted_gradient(scipy.sparse.csr_array(W), X, Y)
        np.testing.assert_allclose(sparse, expected, atol=size)
        np.testing.assert_allclose(kernel.slopes(X, Y).values, kernel(X, Y), rtol=1e-7)

    def test_parts_of_rows(self, rng):
        """Complete rows among others keep their values; estimates of whole rows are exact."""
        kernel, X, Y = self.make(), self.rows(9, rng), self.rows(4, rng)
        holed = X.copy()
        holed[::3, 1] = np.nan
        if not kernel.takes_missing:
            with pytest.raises(ValueError, match="NaN"):
                kernel(holed, Y)
            return
        K, whole = kernel(holed, Y), np.arange(9) % 3 > 0
        assert np.isfinite(K).all()
        np.testing.assert_allclose(K[whole], kernel(X, Y)[whole], rtol=1e-12)
        np.testing.assert_allclose(kernel.values_from_parts(X, Y), kernel(X, Y), rtol=1e-7)
        np.testing.assert_allclose(kernel.diag_from_parts(X), kernel.diag(X), rtol=1e-7)
        assert np.isfinite(kernel.diag(holed)).all()

    def test_gamma_can_be_changed(self, rng):
        kernel, X = self.make(), self.rows(6, rng)
        if not kernel.has_gamma:
            pytest.skip("has none")
        before = kernel(X, X)
        other = kernel.with_gamma(2 * kernel.gamma_for(X.shape[1]))
        assert np.abs(other(X, X) - before).max() > 0
        np.testing.assert_array_equal(kernel(X, X), before)
        scale = kernel.with_gamma("scale").with_gamma_from(X).gamma_for(X.shape[1])
        assert scale == pytest.approx(self.scale(X))
