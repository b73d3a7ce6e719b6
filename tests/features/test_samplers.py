"""Samplers of landmarks, and randomly pivoted Cholesky."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from sklearn.metrics.pairwise import pairwise_kernels

import oracles.linearize
import oracles.rpcholesky as book
from draws import later, some
from kernelatoms.features.samplers import SAMPLERS, randomly_pivoted_cholesky
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


GIVEN = make_kernel("precomputed")
KERNELS = {
    "linear": {},
    "poly": {"degree": 2, "gamma": 1.0, "coef0": 0.5},
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.2},
}


def of_matrix(K, n_pivots, seed, accuracy=0.0, relative=False):
    numbers = np.arange(len(K))[:, None]
    rng = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
    return randomly_pivoted_cholesky(GIVEN, K, numbers, n_pivots, rng, accuracy, relative)


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 300),
    n_features=st.integers(1, 6),
    n_pivots=st.integers(1, 200),
    name=st.sampled_from(sorted(KERNELS)),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_the_factor_is_the_textbooks_for_these_pivots(seed, n, n_features, n_pivots, name, dtype):
    X = np.random.default_rng(seed).standard_normal((n, n_features)).astype(dtype)
    kernel = make_kernel(name, **KERNELS[name])
    F, pivots = randomly_pivoted_cholesky(
        kernel, X, X, n_pivots, np.random.RandomState(seed), accuracy=1e-4
    )
    K = pairwise_kernels(X.astype(np.float64), metric=name, **KERNELS[name])
    assert F.dtype == dtype
    assert F.shape == (n, len(pivots))
    assert len(set(pivots)) == len(pivots) <= min(n, n_pivots)
    # Pivots leave at least 1e-4 / n of the trace, which bounds what rounding grows to.
    tolerance = 1e-9 if dtype == np.float64 else 2e-2
    scale = np.sqrt(K.diagonal().max())
    np.testing.assert_allclose(F, book.factor(K, pivots), atol=tolerance * scale)
    assert np.array_equal(F[pivots], np.tril(F[pivots]))
    assert (F[pivots].diagonal() > 0).all()


@given(seed=st.integers(0, 2**31), n=st.integers(1, 200), accuracy=st.floats(0.001, 0.9))
def test_stops_as_soon_as_little_enough_is_left(seed, n, accuracy):
    X = np.random.default_rng(seed).standard_normal((n, 2))
    K = pairwise_kernels(X, metric="rbf", gamma=0.5)
    F, pivots = of_matrix(K, n, seed, accuracy)
    left = n - np.concatenate([[0], np.cumsum((F**2).sum(axis=0))])
    assert (np.diff(left) < 0).all()
    assert left[-1] <= accuracy * n * (1 + 1e-9)
    assert left[-2] > accuracy * n * (1 - 1e-9)
    assert 1 <= len(pivots) <= n


@given(seed=st.integers(0, 2**31), n=st.integers(1, 100), accuracy=st.sampled_from([0.01, 0.2]))
def test_relative_is_the_method_on_the_kernel_of_unit_diagonal(seed, n, accuracy):
    X = np.random.default_rng(seed).standard_normal((n, 3))
    K = (X @ X.T + 0.1) ** 2
    roots = np.sqrt(K.diagonal())
    F, pivots = of_matrix(K, n, seed, accuracy, relative=True)
    scaled, same = of_matrix(K / np.outer(roots, roots), n, seed, accuracy)
    assert pivots.tolist() == same.tolist()
    np.testing.assert_allclose(F, roots[:, None] * scaled, atol=1e-7 * roots.max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=st.integers(0, 2**31), n=st.integers(2, 200), rank=st.integers(1, 20))
def test_as_many_pivots_as_the_rank_are_exact(dtype, seed, n, rank):
    """Rounding of K may look like directions of its own: nothing is left for them to explain."""
    B = np.random.default_rng(seed).standard_normal((n, rank)).astype(dtype)
    K = B @ B.T
    F, pivots = of_matrix(K, n, seed)
    first = pivots[:rank]
    # Rows as sums of pivots: by these weights, squared, the rounding of the pivots' block grows.
    weights = np.linalg.lstsq(B[first].astype(float).T, B.astype(float).T)[0]
    growth = (1 + np.abs(weights).sum(axis=0).max()) ** 2
    tolerance = (10 + rank) * np.finfo(dtype).eps * K.diagonal().max() * growth
    np.testing.assert_allclose(F[:, :rank] @ F[:, :rank].T, K, atol=tolerance)
    np.testing.assert_allclose(F @ F.T, K, atol=tolerance)


@pytest.mark.parametrize("n_proposed", [2, later(128)])
@pytest.mark.slow
def test_sequences_of_pivots_have_the_textbooks_odds(n_proposed, rng, monkeypatch):
    """4,000 draws of three pivots out of five: chi-squared against the exact probabilities."""
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "1")
    monkeypatch.setattr("kernelatoms.features.samplers._N_PROPOSED", n_proposed)
    B = rng.standard_normal((5, 4)) * [3, 1, 1, 0.5]
    K = B @ B.T
    expected = book.probabilities(K, 3)
    assert sum(expected.values()) == pytest.approx(1)
    state = np.random.RandomState(1)
    n_draws = 4000
    counts = dict.fromkeys(expected, 0)
    for _ in range(n_draws):
        counts[tuple(of_matrix(K, 3, state)[1].tolist())] += 1
    likely = [s for s, p in expected.items() if p * n_draws >= 5]
    observed = np.array([counts[s] for s in likely] + [0])
    means = n_draws * np.array([expected[s] for s in likely] + [0])
    observed[-1], means[-1] = n_draws - observed.sum(), n_draws - means.sum()
    assert chisquare(observed, means).pvalue > 1e-3


def test_the_oracle_has_these_odds_too(rng):
    B = rng.standard_normal((4, 3))
    K = B @ B.T
    expected = book.probabilities(K, 1)
    counts = np.zeros(4)
    for _ in range(2000):
        counts[book.rpcholesky(K, 1, rng)[1]] += 1
    assert chisquare(counts, [2000 * expected[(s,)] for s in range(4)]).pvalue > 1e-3


def test_the_same_seed_gives_the_same_pivots_on_any_number_of_threads(rng, monkeypatch):
    X = rng.standard_normal((3000, 5))
    kernel = make_kernel("rbf", gamma=0.1)
    found = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("KERNELATOMS_NUM_THREADS", threads)
        state = np.random.RandomState(5)
        found.append(randomly_pivoted_cholesky(kernel, X, X, 300, state, 0.01)[1].tolist())
    assert found[0] == found[1] == found[2]
    other = randomly_pivoted_cholesky(kernel, X, X, 300, np.random.RandomState(6), 0.01)[1]
    assert other.tolist() != found[0]


def test_no_kernel_matrix_is_computed(rng):
    """Every block of kernel values is narrow, whatever the number of rows."""
    X = rng.standard_normal((2000, 3))
    shapes = []

    def kernel(A, B):
        shapes.append((len(A), len(B)))
        return np.exp(-0.2 * ((A[:, None] - B) ** 2).sum(axis=2))

    F, pivots = randomly_pivoted_cholesky(
        make_kernel(kernel), X, X, 2000, np.random.RandomState(0), 0.01
    )
    assert max(width for _, width in shapes) <= 128
    assert sum(a * b for a, b in shapes) < 2000 * 64 + 2000 * len(pivots) + 20 * 128**2
    assert 2000 - np.vdot(F, F) <= 0.01 * 2000


def test_outliers_are_met_as_often_as_they_are_worth(rng):
    """5% outliers: the largest remainders are all of them, random draws their share."""
    X = np.concatenate([0.3 * rng.standard_normal((950, 4)), 30 * rng.standard_normal((50, 4))])
    kernel = make_kernel("rbf", gamma=0.5)
    shares = [
        np.mean(randomly_pivoted_cholesky(kernel, X, X, 40, np.random.RandomState(s))[1] >= 950)
        for s in range(20)
    ]
    assert 0.05 < np.mean(shares) < 0.7


def test_zero_kernels_have_no_pivots():
    F, pivots = of_matrix(np.zeros((4, 4)), 3, 0)
    assert F.shape == (4, 0)
    assert len(pivots) == 0


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.eye(6) - 0.4, "not positive semi-definite"),
        (np.diag([1.0, -1.0]), "not positive semi-definite"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "not positive semi-definite"),
        (np.array([[1.0, 0.5], [0.1, 1.0]]), "not symmetric"),
        (np.array([[1.0, np.inf], [np.inf, 1.0]]), "overflows"),
        (np.diag([1.0, np.inf]), "overflows"),
    ],
)
def test_bad_kernels_are_refused(K, message):
    with pytest.raises(ValueError, match=message):
        of_matrix(K, len(K), 0)
