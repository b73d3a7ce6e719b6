"""Robust codes: objectives, certificates, entries that are distrusted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from draws import some
from kernelatoms.coding.robust import RobustDictionary, _RidgeSteps, _solve, warn_not_converged
from kernelatoms.coding.robust_interior import InteriorPoint
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
    found = RobustDictionary(atoms, mu).code(signals, gap_tol=1e-6)
    objective = oracle.robust_objective(atoms, signals, found.weights, mu, 2)
    rng = np.random.default_rng(seed)
    assert (found.gap <= 1e-6).all()
    for step in (1e-3, 1e-1, 1.0):
        other = found.weights + step * rng.standard_normal(found.weights.shape)
        better = objective - oracle.robust_objective(atoms, signals, other, mu, 2)
        assert (better <= 1.01e-6 * objective).all()
    none = oracle.robust_objective(atoms, signals, 0 * found.weights, mu, 2)
    assert (objective <= none + 1e-6 * objective).all()


@pytest.mark.parametrize("mu", [1e-4, 0.01, 1.0, 100.0])
@pytest.mark.parametrize("gamma", [0.3, 1.0])
def test_codes_over_kernel_values_reach_the_minimum(gamma, mu):
    """|y|_1 is far above the objective there: a gap is a share of the latter."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((16, 5))
    values = np.exp(-gamma * ((rows[:, None] - rows) ** 2).sum(axis=2))
    atoms, signals = values[:12, :12], values[12:, :12]
    found = RobustDictionary(atoms, mu).code(signals)
    reached = oracle.robust_objective(atoms, signals, found.weights, mu, 2)
    codes, below = oracle.robust_codes(atoms, signals, mu)
    least = oracle.robust_objective(atoms, signals, codes, mu, 2)
    assert (least - below <= 1e-5 * least).all()  # the oracle has converged
    assert (found.gap <= 1e-4).all()
    assert (reached <= least * (1 + 1.01e-4)).all()


@pytest.mark.parametrize("shape", [(30, 12), (12, 30), (20, 20)])
def test_both_solvers_find_the_same_codes(shape):
    atoms, signals = draw(7, *shape)
    dictionary = RobustDictionary(atoms, 0.3)
    weights, errors, gaps = _solve(_RidgeSteps(dictionary, signals), 1e-10, 20000)
    assert (gaps <= 1e-10).all()
    for i, signal in enumerate(signals):
        w, e, gap = InteriorPoint(atoms, 0.3, "l2").code(signal, 1e-10, 100)
        assert gap <= 1e-10
        np.testing.assert_allclose(w, weights[i], atol=1e-4)
        np.testing.assert_allclose(e, errors[i], atol=1e-4)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
def test_steps_by_atoms_are_steps_by_entries(penalty, shape):
    atoms, signals = draw(9, *shape)
    found = []
    for in_entries in (False, True):
        solver = InteriorPoint(atoms, 0.3, penalty)
        solver.in_entries = in_entries
        found.append([solver.code(signal, 1e-6, 100) for signal in signals])
    for one, other in zip(*found, strict=True):
        assert max(one[2], other[2]) <= 1e-6
        np.testing.assert_allclose(one[0], other[0], atol=1e-3)


def test_cheap_steps_settle_codes_over_images():
    """Over many entries and atoms that differ; problems that are small are solved at once."""
    rng = np.random.default_rng(0)
    atoms = rng.standard_normal((300, 600))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    wide = RobustDictionary(atoms, 1.0)
    signals = atoms[:5] + (rng.random((5, 600)) < 0.1) * rng.standard_normal((5, 600))
    wide._interior.code = None  # is not called
    assert (wide.code(signals).gap <= 1e-4).all()
    assert RobustDictionary(atoms[:10, :10], 1.0)._n_cheap_steps() == 0


@pytest.mark.parametrize("seed", some(range(5), [0, 1]))
def test_robust_l1_codes_reach_the_minimum_of_the_linear_program(seed):
    """min |y - D w|_1 + mu |w|_1 is a linear program in the positive and negative parts."""
    atoms, signals = draw(seed, 9, 14, n_signals=2)
    mu, n, c = 0.4, 9, 14
    found = RobustDictionary(atoms, mu, "l1").code(signals, gap_tol=1e-7)
    objective = oracle.robust_objective(atoms, signals, found.weights, mu, 1)
    equal = np.hstack([atoms.T, -atoms.T, np.eye(c), -np.eye(c)])
    cost = np.concatenate([np.full(2 * n, mu), np.ones(2 * c)])
    for signal, reached in zip(signals, objective, strict=True):
        best = linprog(cost, A_eq=equal, b_eq=signal).fun
        assert best * (1 - 1e-9) <= reached <= best * (1 + 1.01e-7)
    # A vertex has no more nonzeros than entries that it explains.
    assert (np.count_nonzero(found.weights, axis=1) <= (found.errors == 0).sum(axis=1)).all()


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_errors_are_the_entries_that_were_corrupted(penalty):
    rng = np.random.default_rng(0)
    atoms = rng.standard_normal((10, 80))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    clean = rng.standard_normal((6, 10)) @ atoms
    signals = clean.copy()
    for s in range(6):
        signals[s, rng.permutation(80)[:12]] += 2.0 + rng.random(12)
    found = RobustDictionary(atoms, 0.01, penalty).code(signals, gap_tol=1e-5)
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


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_codes_that_have_not_converged_lead_to_a_warning(penalty):
    atoms, signals = draw(6, 30, 20)
    found = RobustDictionary(atoms, 0.3, penalty).code(signals, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="3 of 3 robust codes have not converged") as told:
        warn_not_converged(found.gap, 1e-4)
    assert len(told) == 1
    assert f"up to {found.gap.max():.2g} of the objective" in str(told[0].message)
    assert (found.gap > 1e-4).all()


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_codes_of_signals_and_atoms_far_from_1(penalty, size):
    """|y - D w|_1 grows with both, and so does mu: the code is the same."""
    atoms, signals = draw(8, 12, 20)
    expected = RobustDictionary(atoms, 0.3, penalty).code(signals, gap_tol=1e-7)
    found = RobustDictionary(size * atoms, 0.3 * size, penalty).code(size * signals, gap_tol=1e-7)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-4)
