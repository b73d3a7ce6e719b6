"""Robust codes: objectives, certificates, entries that are distrusted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from draws import some
from kernelatoms.pursuit import RobustDictionary
from oracles import representation as oracle


def draw(seed, n_atoms, n_entries, n_signals=3):
    rng = np.random.default_rng(seed)
    atoms = rng.standard_normal((n_atoms, n_entries))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    signals = rng.standard_normal((n_signals, n_atoms)) @ atoms
    hidden = rng.random(signals.shape) < 0.15
    return atoms, signals + hidden * rng.standard_normal(signals.shape) * 3


@given(
    seed=st.integers(0, 2**32 - 1), n_atoms=st.integers(1, 12), n_entries=st.integers(1, 12),
    mu=st.sampled_from([0.01, 0.3, 3.0]),
)  # fmt: skip
def test_gaps_bound_what_any_other_code_gains(seed, n_atoms, n_entries, mu):
    atoms, signals = draw(seed, n_atoms, n_entries)
    found = RobustDictionary(atoms, mu).code(signals, gap_tol=1e-6, max_iter=20000)
    objective = oracle.robust_objective(atoms, signals, found.weights, mu, 2)
    rng = np.random.default_rng(seed)
    sizes = np.abs(signals).sum(axis=1)
    assert (found.gap <= 1e-6).all()
    for step in (1e-3, 1e-1, 1.0):
        other = found.weights + step * rng.standard_normal(found.weights.shape)
        better = objective - oracle.robust_objective(atoms, signals, other, mu, 2)
        assert (better <= 1.01e-6 * sizes + 1e-12).all()
    none = oracle.robust_objective(atoms, signals, 0 * found.weights, mu, 2)
    assert (objective <= none + 1e-6 * sizes).all()


@pytest.mark.parametrize("seed", some(range(5), [0, 1]))
def test_robust_l1_codes_reach_the_minimum_of_the_linear_program(seed):
    """min |y - D w|_1 + mu |w|_1 is a linear program in the positive and negative parts."""
    atoms, signals = draw(seed, 9, 14, n_signals=2)
    mu, n, c = 0.4, 9, 14
    found = RobustDictionary(atoms, mu, "l1").code(signals, gap_tol=1e-5, max_iter=50000)
    objective = oracle.robust_objective(atoms, signals, found.weights, mu, 1)
    equal = np.hstack([atoms.T, -atoms.T, np.eye(c), -np.eye(c)])
    cost = np.concatenate([np.full(2 * n, mu), np.ones(2 * c)])
    for signal, reached in zip(signals, objective, strict=True):
        best = linprog(cost, A_eq=equal, b_eq=signal).fun
        assert best - 1e-9 <= reached <= best + 1e-4 * np.abs(signal).sum()


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_errors_are_the_entries_that_were_corrupted(penalty):
    rng = np.random.default_rng(0)
    atoms = rng.standard_normal((10, 80))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    clean = rng.standard_normal((6, 10)) @ atoms
    signals = clean.copy()
    for s in range(6):
        signals[s, rng.permutation(80)[:12]] += 2.0 + rng.random(12)
    found = RobustDictionary(atoms, 0.01, penalty).code(signals, gap_tol=1e-5, max_iter=10000)
    corrupted = signals != clean
    assert np.abs(found.errors[corrupted]).min() > 1.0
    assert np.abs(found.errors[~corrupted]).max() < 0.1
    np.testing.assert_allclose(found.weights @ atoms + found.errors, signals, atol=0.01)


def test_signals_at_once_are_signals_one_by_one():
    atoms, signals = draw(4, 20, 30, n_signals=7)
    for penalty in ("l2", "l1"):
        dictionary = RobustDictionary(atoms, 0.2, penalty)
        together = dictionary.code(signals)
        for s in range(7):
            alone = dictionary.code(signals[s : s + 1])
            np.testing.assert_allclose(alone.weights[0], together.weights[s], atol=1e-10)


def test_zero_signals_have_zero_codes():
    atoms, signals = draw(5, 4, 6)
    signals[1] = 0
    found = RobustDictionary(atoms, 0.1).code(signals)
    assert not found.weights[1].any()
    assert not found.errors[1].any()
    assert found.gap[1] == 0


def test_codes_that_have_not_settled_are_told():
    atoms, signals = draw(6, 30, 20)
    with pytest.warns(ConvergenceWarning, match="have not settled after 20 steps"):
        RobustDictionary(atoms, 0.3, "l1").code(signals, gap_tol=1e-9, max_iter=20)
