"""K-SAD's codes and objective against formulas, term by term."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.ksad
from kernelatoms.coding.problem import linear_problems
from kernelatoms.coding.pursuits import Threshold
from kernelatoms.learning import ksad
from kernelatoms.learning.ksad import (
    FullScatter,
    ScalarScatter,
    Weights,
    learn_ksad,
    ridge_of,
    start_ksad,
    within_class_metric,
)
from kernelatoms.learning.loop import learn
from kernelatoms.learning.mod import Procrustes, orthonormal_start
from kernelatoms.learning.state import LearnerState


def case(seed, n=40, k=6, n_classes=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    labels = np.sort(np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n)]))
    X = rng.standard_normal((len(labels), k)) + 0.5 * rng.standard_normal((n_classes, k))[labels]
    X = X.astype(dtype)
    return X, labels, orthonormal_start(X, k, np.random.RandomState(rng.integers(2**31)))


def learnt(X, labels, Z, weights, **options):
    return learn_ksad(X, labels, start_ksad(X, Z, weights), weights, **options)


@given(seed=st.integers(0, 2**31), ridge=st.sampled_from([0.01, 1.0]))
def test_scatter_is_the_textbooks(seed, ridge):
    Q, labels, _ = case(seed)
    scatter = FullScatter.of(Q, labels, ridge)
    assert scatter.value == pytest.approx(oracles.ksad.discrimination(Q.T, labels, ridge))
    np.testing.assert_allclose(
        scatter.gradient(Q, labels), oracles.ksad.gradient(Q.T, labels, ridge).T, atol=1e-8
    )


def test_the_gradient_is_a_slope(rng):
    Q, labels, _ = case(rng, n=12)
    uphill, h = FullScatter.of(Q, labels, 0.5).gradient(Q, labels), 1e-6
    for i, j in [(0, 0), (3, 5), (11, 2)]:
        step = np.zeros_like(Q)
        step[i, j] = h
        up, down = (FullScatter.of(Q + way * step, labels, 0.5).value for way in (1, -1))
        assert uphill[i, j] == pytest.approx((up - down) / (2 * h), rel=1e-4, abs=1e-7)


@given(
    seed=st.integers(0, 2**31), ridge=st.sampled_from([0.01, 1.0]), n=st.integers(1, 30),
    k=st.integers(1, 6), n_classes=st.integers(2, 5),
)  # fmt: skip
def test_scatter_as_numbers_is_the_papers(seed, ridge, n, k, n_classes):
    Q, labels, _ = case(seed, n=max(n, k), k=k, n_classes=n_classes)
    scatter, term = ScalarScatter.of(Q, labels, ridge), oracles.ksad.scalar_discrimination
    assert scatter.value == pytest.approx(term(Q.T, labels, ridge))
    expected = oracles.ksad.slope(term, Q.T, labels, ridge).T
    atol = 1e-5 * (1 + np.abs(expected).max())
    np.testing.assert_allclose(scatter.gradient(Q, labels), expected, atol=atol)


def test_scatter_as_numbers_keeps_the_type(rng):
    Q, labels, _ = case(rng)
    single = ScalarScatter.of(Q.astype(np.float32), labels, 0.1)
    gradient = single.gradient(Q.astype(np.float32), labels)
    assert gradient.dtype == np.float32
    double = ScalarScatter.of(Q, labels, 0.1)
    assert single.value == pytest.approx(double.value, rel=1e-5)
    np.testing.assert_allclose(gradient, double.gradient(Q, labels), atol=1e-5)


@pytest.mark.parametrize("scatter", ["full", "scalar"])
def test_the_ridge_is_twice_the_weight_and_a_share_of_the_scatter(scatter, rng):
    Q, labels, _ = case(rng)
    within = oracles.ksad.scatters(Q.T, labels, 0)[0]
    shares = 1 / np.bincount(labels)[labels]
    apart = Q - np.array([Q[labels == c].mean(axis=0) for c in labels])
    mean = {"full": np.trace(within) / 6, "scalar": shares @ np.sum(apart**2, axis=1)}[scatter]
    assert ridge_of(Q, labels, 0.3, 0.05, scatter) == pytest.approx(0.6 + 0.05 * mean)
    same = np.repeat(Q[:3], 4, axis=0)  # no scatter within classes: a share of the energy
    energy = np.sum(same**2) / (6 if scatter == "full" else 1)
    found = ridge_of(same, np.repeat(np.arange(3), 4), 0, 0.05, scatter)
    assert found == pytest.approx(0.05 * energy)


@given(
    seed=st.integers(0, 2**31), fisher=st.sampled_from([0.01, 1.0, 100.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_with_scatter_as_numbers_the_objective_is_real_and_never_rises(seed, fisher, dtype):
    X, labels, Z = case(seed, dtype=dtype)
    weights = Weights(0.2, fisher, 2 * fisher + 0.1)
    state = learnt(X, labels, Z, weights, max_iter=6, tol=0, scatter="scalar")
    term, eps = oracles.ksad.scalar_discrimination, float(np.finfo(dtype).eps)
    parts = (part.T.astype(float) for part in (X, state.dictionary, state.codes))
    J = oracles.ksad.objective(*parts, labels, *weights, term)
    slack = 1e3 * eps * (np.sum(X.astype(float) ** 2) + abs(state.objective[0]))
    assert state.objective[-1] == pytest.approx(J, abs=slack)
    assert np.all(np.diff(state.objective) <= slack)
    # The term counts: codes are not those of the plain learner.
    plain = learnt(X, labels, Z, weights._replace(fisher=0.0), max_iter=6, tol=0)
    assert np.abs(state.codes - plain.codes).max() > 0


@given(seed=st.integers(0, 2**31), fisher=st.sampled_from([0.01, 1.0, 100.0]))
def test_a_step_of_codes_is_the_papers_and_lowers_the_objective(seed, fisher):
    X, labels, Z = case(seed)
    weights = Weights(0.2, fisher, 0.3)
    Q = oracles.ksad.soft(X @ Z.T, 0.1)
    scatter = FullScatter.of(Q, labels, weights.ridge)
    new, reached, a = ksad.step(Q, X @ Z.T, labels, scatter, weights, 1.0)
    assert a >= 1
    assert np.log2(a) % 1 == 0
    expected = oracles.ksad.step(X.T, Z.T, Q.T, labels, *weights, a).T
    np.testing.assert_allclose(new, expected, atol=1e-9)
    assert reached.value == pytest.approx(oracles.ksad.discrimination(new.T, labels, 0.3))

    def objective(Q):
        return oracles.ksad.objective(X.T, Z.T, Q.T, labels, *weights)

    # Not only lower, but by what a bound of curvature a promises: (11) is its minimum.
    uphill = oracles.ksad.gradient(Q.T, labels, 0.3).T
    slope = np.sum((2 * (Q - X @ Z.T) - fisher * uphill) * (new - Q))
    l1 = 0.2 * (np.abs(new).sum() - np.abs(Q).sum())
    bound = objective(Q) + slope + a * np.sum((new - Q) ** 2) + l1
    slack = 1e-8 * abs(objective(Q))
    assert objective(new) <= bound + slack
    assert bound <= objective(Q) + slack
    # And the shortest step that was needed: half of a would have broken the bound, or a is 1.
    if a > 1:
        longer = oracles.ksad.step(X.T, Z.T, Q.T, labels, *weights, a / 2).T
        moved = longer - Q
        t, t_longer = (oracles.ksad.discrimination(q.T, labels, 0.3) for q in (Q, longer))
        short = fisher * (t + np.sum(uphill * moved) - t_longer)
        assert short > (a / 2 - 1) * np.sum(moved**2) - 1e-9 * abs(fisher * t)


def test_a_search_begins_at_half_of_the_curvature_before(rng):
    X, labels, Z = case(rng)
    weights, Q = Weights(0.2, 1e-6, 0.3), oracles.ksad.soft(X @ Z.T, 0.1)
    scatter = FullScatter.of(Q, labels, weights.ridge)
    found = [ksad.step(Q, X @ Z.T, labels, scatter, weights, a)[2] for a in (1.0, 1.5, 8.0)]
    assert found == [1.0, 1.0, 4.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fisher", [0.0, 0.01, 1.0, 1000.0])
def test_the_objective_recorded_is_real_and_never_rises(dtype, fisher, rng):
    X, labels, Z = case(rng, n=120, k=15, n_classes=5, dtype=dtype)
    weights, atoms, codes = Weights(0.3, fisher, 0.5), [], []

    class Observer:
        def begin_pass(self):
            pass

        def end_pass(self, state, is_last):
            atoms.append(state.dictionary.astype(np.float64))
            codes.append(state.codes.astype(np.float64))
            return False

    state = learnt(X, labels, Z, weights, max_iter=12, tol=0, observer=Observer())
    assert len(state.objective) == 12
    close = 1e-12 if dtype == np.float64 else 1e-5
    eps = float(np.finfo(dtype).eps)
    for reached, D, Q in zip(state.objective, atoms, codes, strict=True):
        assert np.abs(D @ D.T - np.eye(15)).max() < close
        J = oracles.ksad.objective(X.T.astype(float), D.T, Q.T, labels, *weights)
        assert reached == pytest.approx(J, rel=1e4 * eps, abs=1e3 * eps * float(np.sum(X**2)))
    slack = 100 * eps * (np.sum(X.astype(float) ** 2) + np.abs(state.objective[0]))
    assert np.all(np.diff(state.objective) <= slack)
    assert state.objective[-1] < state.objective[0] - slack


def test_a_fixed_step_would_raise_it(rng):
    """Why there is a search: with a = 1, J rises on data like these."""
    X, labels, Z = case(rng, n=60, k=8, n_classes=6)
    weights = Weights(0.1, 200.0, 0.05)
    Q = oracles.ksad.soft(X @ Z.T, 0.05)
    J = [oracles.ksad.objective(X.T, Z.T, Q.T, labels, *weights)]
    for _ in range(10):
        Q = oracles.ksad.step(X.T, Z.T, Q.T, labels, *weights, 1.0).T
        J.append(oracles.ksad.objective(X.T, Z.T, Q.T, labels, *weights))
    assert np.diff(J).max() > 1e-3
    state = learnt(X, labels, Z, weights, max_iter=10, tol=0)
    assert np.diff(state.objective).max() <= 1e-8 * abs(state.objective[0])


def test_without_discrimination_it_is_the_unsupervised_learner(rng):
    X, labels, Z = case(rng)
    one = learnt(X, labels, Z, Weights(0.4, 0.0, 1.0), max_iter=6, tol=0)
    other = LearnerState.start(Z)
    learn(
        linear_problems, X, Threshold(0.2), Procrustes(0.4),
        other, max_iter=6, tol=0,
    )  # fmt: skip
    np.testing.assert_allclose(one.dictionary, other.dictionary, atol=1e-8)
    # Its codes are those of the last atoms, not of those before.
    np.testing.assert_allclose(one.codes, oracles.ksad.soft(X @ one.dictionary.T, 0.2), atol=1e-12)
    assert np.all(np.array(one.objective) <= np.array(other.objective) + 1e-10)


def test_learning_stops_when_it_settles_or_is_told_to(rng):
    X, labels, Z = case(rng)
    weights = Weights(0.4, 50.0, 1.0)  # its objective is negative
    short = learnt(X, labels, Z, weights, max_iter=50, tol=0.9)
    J = np.array(short.objective)
    assert J[0] < 0
    assert 4 <= len(J) < 50
    gains = (J[:-3] - J[3:]) / np.abs(J[:-3])  # of three passes together
    assert gains[-1] <= 0.9
    assert (gains[:-1] > 0.9).all()


@given(seed=st.integers(0, 2**31), shrinkage=st.sampled_from([1e-3, 0.1, 3.0]))
def test_in_the_metric_classes_are_round(seed, shrinkage):
    X, labels, _ = case(seed)
    found = within_class_metric(X, labels, shrinkage)
    assert found is not None
    metric, inverse = found
    np.testing.assert_allclose(metric, oracles.ksad.metric(X.T, labels, shrinkage), atol=1e-8)
    np.testing.assert_allclose(metric @ inverse, np.eye(6), atol=1e-8)
    S = oracles.ksad.scatters(X.T, labels, 0)[0] / len(X)
    shrunk = S + shrinkage * np.trace(S) / 6 * np.eye(6)
    np.testing.assert_allclose(metric @ shrunk @ metric, np.eye(6), atol=1e-8)


def test_classes_of_one_row_have_no_metric(rng):
    X = rng.standard_normal((5, 4))
    assert within_class_metric(X, np.arange(5), 0.01) is None
    twice = np.repeat(X, 2, axis=0)
    assert within_class_metric(twice, np.repeat(np.arange(5), 2), 0.01) is None
    twice[0] += 0.1
    assert within_class_metric(twice, np.repeat(np.arange(5), 2), 0.01) is not None


def test_the_curvature_of_the_last_step_is_part_of_the_state(rng):
    """A run that goes on from a state begins its search where the last step ended."""
    X, labels, Z = case(rng)
    weights = Weights(0.2, 0.01, 0.5)
    start = start_ksad(X, Z, weights)
    assert start.curvature == 1
    codes = []
    for curvature in (1.0, 16.0):
        state = replace(start, objective=[], curvature=curvature)
        learn_ksad(X, labels, state, weights, max_iter=1, tol=0)
        assert state.curvature >= curvature / 2
        codes.append(state.codes)
    assert (codes[0] != codes[1]).any()
