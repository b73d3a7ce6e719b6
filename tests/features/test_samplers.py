"""Samplers: sizes, no replacement, and the right odds."""

import numpy as np
import pytest
from scipy.stats import chisquare

import oracles.linearize
from draws import some
from kernelatoms.features.samplers import SAMPLERS
from kernelatoms.similarity import make_kernel

POLY = make_kernel("poly", degree=2, gamma=1, coef0=0)


@pytest.mark.parametrize("name", SAMPLERS)
def test_gives_the_number_asked_for_and_is_seeded(name, rng):
    X = rng.standard_normal((60, 4))
    one, two = (SAMPLERS[name](X, POLY, 17, np.random.RandomState(3)) for _ in range(2))
    assert one.shape == (17, 4)
    np.testing.assert_array_equal(one, two)
    other = SAMPLERS[name](X, POLY, 17, np.random.RandomState(4))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name != "kmeans"])
def test_landmarks_are_different_rows(name, rng):
    X = rng.standard_normal((60, 4))
    landmarks = SAMPLERS[name](X, POLY, 60, np.random.RandomState(0))
    assert len(np.unique(landmarks, axis=0)) == 60
    assert {tuple(row) for row in landmarks} == {tuple(row) for row in X}


WEIGHTS = {
    "uniform": lambda X: np.ones(len(X)),
    "diagonal": lambda X: (X**2).sum(axis=1) ** 4,
    "column-norm": lambda X: (((X @ X.T) ** 2) ** 2).sum(axis=1),
    "coreset": oracles.linearize.coreset_weights,
    "rpcholesky": lambda X: (X**2).sum(axis=1) ** 2,
}


@pytest.mark.parametrize("name", some(WEIGHTS, set(WEIGHTS) - {"rpcholesky"}))
def test_one_landmark_is_drawn_in_proportion_to_the_papers_weights(name, rng):
    X = rng.random((8, 3)) + 0.2
    weights = WEIGHTS[name](X)
    state = np.random.RandomState(0)
    counts = np.zeros(8)
    for _ in range(4000):
        row = SAMPLERS[name](X, POLY, 1, state)[0]
        counts[np.flatnonzero((row == X).all(axis=1))] += 1
    assert chisquare(counts, 4000 * weights / weights.sum()).pvalue > 1e-3


def test_rows_without_weight_come_last(rng):
    X = rng.random((10, 3))
    X[:4] = 0
    landmarks = SAMPLERS["coreset"](X, POLY, 6, np.random.RandomState(0))
    assert landmarks.any(axis=1).all()


def test_rpcholesky_takes_no_row_that_others_stand_for(rng):
    X = np.repeat(rng.standard_normal((6, 3)), 20, axis=0)
    kernel = make_kernel("rbf", gamma=0.5)
    for seed in range(10):
        landmarks = SAMPLERS["rpcholesky"](X, kernel, 6, np.random.RandomState(seed))
        assert len(np.unique(landmarks, axis=0)) == 6


@pytest.mark.parametrize("name", ["kmeans", "coreset"])
def test_rows_are_needed(name):
    with pytest.raises(ValueError, match=f"sampling='{name}' needs the rows"):
        SAMPLERS[name](np.eye(4), make_kernel("precomputed"), 2, np.random.RandomState(0))
