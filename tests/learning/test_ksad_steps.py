"""Steps of K-SAD's codes that are too long are taken back, however small the ridge."""

import numpy as np
import pytest

from kernelatoms import KSADClassifier


@pytest.mark.parametrize("shrinkage", [1e-3, 1e-5, 1e-7])
def test_small_ridges_do_not_end_in_a_singular_matrix(rng, shrinkage):
    """A first step of a huge gradient has a scatter beside which the ridge is rounding."""
    y = np.repeat(np.arange(10), 4)
    X = rng.random((10, 50))[y] + 0.01 * rng.standard_normal((40, 50))
    model = KSADClassifier(shrinkage=shrinkage, random_state=0).fit(X, y)
    falls = -np.diff(model.objective_)
    assert (falls >= -1e-9 * np.abs(model.objective_[:-1])).all()
    assert model.score(X, y) == 1
