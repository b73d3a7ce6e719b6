"""Learning from rows with missing values: what is observed counts, and nothing else."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.observed
from kernelatoms.coding.problem import LinearProblem, linear_problems
from kernelatoms.coding.pursuits import OMP
from kernelatoms.learning.ksvd import KSVDSums, KSVDUpdate
from kernelatoms.learning.loop import learn
from kernelatoms.learning.missing import fill_by_codes, fill_by_means, relaxation
from kernelatoms.learning.mod import LeastSquares
from kernelatoms.learning.state import LearnerState, atoms_from_rows, unit_rows


def problem(seed, n=80, n_features=12, n_atoms=10, missing=0.4, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features)).astype(dtype)
    shares = rng.random(n_features) * 2 * missing  # some features are missing more than others
    gone = rng.random(X.shape) < shares
    gone[np.arange(n), rng.integers(0, n_features, n)] = False
    X[gone] = np.nan
    return X, unit_rows(rng.standard_normal((n_atoms, n_features)).astype(dtype))


def repr_of(update):
    return type(update).__name__


cases = {"seed": st.integers(0, 2**32 - 1), "missing": st.sampled_from([0.1, 0.5])}


@pytest.mark.parametrize("update", [LeastSquares(), KSVDSums()], ids=repr_of)
@given(**cases)
def test_sums_lower_what_is_left_of_observed_entries_and_bound_it(update, seed, missing):
    X, D = problem(seed, missing=missing)
    codes = OMP(3)(LinearProblem(X, D))
    W = codes.to_dense()
    sums = update.sums(X, codes, D)
    before = oracles.observed.objective(X, W, D)
    assert sums.objective(D) == pytest.approx(before)
    result = update.solve(sums, D)
    # Codes go with atoms at unit norm: the best ones on the new atoms' lines are no worse.
    scale = np.sqrt(np.diagonal(result.sums.gram) / np.maximum(np.diagonal(sums.gram), 1e-300))
    after = oracles.observed.objective(X, W * scale, result.dictionary)
    assert after <= result.objective * (1 + 1e-9) <= before * (1 + 1e-9)


@given(**cases)
def test_ksvd_lowers_what_is_left_of_observed_entries(seed, missing):
    X, D = problem(seed, missing=missing)
    codes = OMP(3)(LinearProblem(X, D))
    before = oracles.observed.objective(X, codes.to_dense(), D)
    result = KSVDUpdate().apply(X, codes, D)
    left = oracles.observed.objective(X, result.codes.to_dense(), result.dictionary)
    assert result.objective == pytest.approx(left)
    assert left <= before * (1 + 1e-9)


def test_sums_of_blocks_are_those_of_all_rows(rng):
    X, D = problem(rng)
    codes = OMP(3)(LinearProblem(X, D))
    whole = LeastSquares().sums(X, codes, D)
    parts = [
        LeastSquares().sums(X[rows], codes.take(rows), D)
        for rows in np.split(np.arange(len(X)), [20, 50])
    ]
    total = parts[0] + parts[1] + parts[2]
    for name in ("gram", "cross", "energy", "missing"):
        np.testing.assert_allclose(getattr(total, name), getattr(whole, name), atol=1e-10)


@pytest.mark.parametrize("update", [LeastSquares(), KSVDSums(), KSVDUpdate()], ids=repr_of)
def test_complete_rows_are_learned_as_ever(update, rng):
    X, D = problem(rng, n=300)
    X = fill_by_means(X)
    found = []
    for complete in (True, False):
        state = LearnerState.start(D, np.random.RandomState(0))
        problems = partial(linear_problems, complete=complete)
        learn(problems, X, OMP(3, sparing=True), update, state, max_iter=4, tol=0)
        found.append(state.best)
    np.testing.assert_allclose(found[0], found[1], atol=1e-10)


@pytest.mark.parametrize("update", [LeastSquares(), KSVDSums(), KSVDUpdate()], ids=repr_of)
def test_a_planted_dictionary_is_found(update, rng):
    n_atoms, n_features = 12, 24
    truth = unit_rows(rng.standard_normal((n_atoms, n_features)))
    W = np.zeros((1500, n_atoms))
    for row in W:
        row[rng.permutation(n_atoms)[:2]] = rng.choice([-1, 1], 2) * rng.uniform(1, 2, 2)
    X = W @ truth
    partly = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    start = unit_rows(truth + 0.1 * rng.standard_normal(truth.shape))
    state = LearnerState.start(start, np.random.RandomState(0))
    problems = partial(linear_problems, complete=False)
    learn(problems, partly, OMP(2), update, state, max_iter=40, tol=0)
    assert (
        np.abs((state.best @ truth.T).diagonal()).min() > 0.999
    )  # OMP picks wrong atoms for a few rows


@pytest.mark.parametrize("update", [LeastSquares(), KSVDSums(), KSVDUpdate()], ids=repr_of)
def test_a_feature_that_is_never_observed_does_not_move(update, rng):
    X, D = problem(rng)
    X[:, 3] = np.nan
    D[:, 3] = 0
    state = LearnerState.start(unit_rows(D), np.random.RandomState(0))
    problems = partial(linear_problems, complete=False)
    learn(problems, X, OMP(3), update, state, max_iter=5, tol=0)
    assert np.isfinite(state.best).all()
    assert not state.best[:, 3].any()


@pytest.mark.parametrize("update", [LeastSquares(), KSVDSums(), KSVDUpdate()], ids=repr_of)
def test_dead_atoms_become_filled_rows(update, rng):
    X, D = problem(rng)
    D[4] = 0  # never picked
    state = LearnerState.start(D, np.random.RandomState(0))
    problems = partial(linear_problems, complete=False)
    learn(problems, X, OMP(3), update, state, max_iter=1, tol=0)
    codes = OMP(3)(LinearProblem(X, D))
    filled = unit_rows(oracles.observed.filled(X, codes.to_dense(), D))
    assert np.abs(filled @ state.dictionary[4]).max() == pytest.approx(1)


def test_filling(rng):
    X, D = problem(rng)
    codes = OMP(3)(LinearProblem(X, D))
    expected = oracles.observed.filled(X, codes.to_dense(), D)
    np.testing.assert_allclose(fill_by_codes(X, lambda: codes, D), expected)
    X[:, 2] = np.nan
    means = np.array([column[~np.isnan(column)].mean() for column in np.delete(X, 2, 1).T])
    means = np.insert(means, 2, 0)
    np.testing.assert_allclose(fill_by_means(X), np.where(np.isnan(X), means, X))
    assert fill_by_means(expected) is expected
    assert fill_by_codes(expected, lambda: codes, D) is expected


def test_relaxation():
    np.testing.assert_allclose(relaxation(np.array([0, 0.2, 0.9, 1])), [1, 1.25, 1.9, 1.9])
    np.testing.assert_allclose(relaxation(np.array([0, 0.1, 0.9]), 1.5), [1.5, 1.5 / 0.9, 1.9])


@pytest.mark.parametrize("update", [LeastSquares(), KSVDSums(), KSVDUpdate()], ids=repr_of)
def test_threads_change_no_bit(update, rng, monkeypatch):
    X, D = problem(rng, n=3000, dtype=np.float32)
    found = []
    for number in ("1", "2", "5"):
        monkeypatch.setenv("KERNELATOMS_NUM_THREADS", number)
        state = LearnerState.start(D, np.random.RandomState(0))
        problems = partial(linear_problems, complete=False)
        learn(problems, X, OMP(3, sparing=True), update, state, max_iter=3, tol=0)
        found.append(state.best)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_steps_by_sums_are_longer_where_more_is_missing(rng):
    X, D = problem(rng, n=400)
    codes = OMP(3)(LinearProblem(X, D))
    W = codes.to_dense()
    filled = oracles.observed.filled(X, W, D)
    best = np.linalg.lstsq(W, filled)[0]
    share = np.isnan(X).T @ np.square(W).sum(axis=1) / np.square(W).sum()
    for update, step in ((LeastSquares(), 1.0), (KSVDSums(), 1.5)):
        steps = np.minimum(step / (1 - share), 1.9)
        assert step < steps.min() < steps.max()
        found = update.solve(update.sums(X, codes, D), D).dictionary
        np.testing.assert_allclose(found, unit_rows(D + steps * (best - D)), atol=1e-10)


def test_atoms_start_from_rows_filled_with_the_means_of_all(rng):
    X, _ = problem(rng)
    X[:4] = 0  # these come last
    filled = unit_rows(fill_by_means(X))
    found = atoms_from_rows(X, 76, np.random.RandomState(0))
    assert sorted(map(tuple, found)) == sorted(map(tuple, filled[4:]))
