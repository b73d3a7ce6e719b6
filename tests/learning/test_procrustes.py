"""The orthogonal Procrustes update against the SVD, and what every update owes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.ksad
from kernelatoms.coding import LinearProblem
from kernelatoms.coding.problem import linear_problems
from kernelatoms.coding.pursuits import Threshold
from kernelatoms.learning.loop import learn
from kernelatoms.learning.mod import Procrustes, orthonormal_start, polar_factor, rotate_to
from kernelatoms.learning.moments import Moments
from kernelatoms.learning.state import LearnerState

#: How far atoms may be from orthonormal.
CLOSE = {np.float64: 1e-12, np.float32: 1e-5}


def case(seed, n=80, k=7, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, k)) * np.linspace(3, 0.2, k)).astype(dtype)
    return X, orthonormal_start(X, k, np.random.RandomState(rng.integers(2**31)))


def apart(atoms):
    return np.abs(atoms.astype(np.float64) @ atoms.T - np.eye(len(atoms))).max()


@given(
    seed=st.integers(0, 2**31),
    l1=st.sampled_from([0.0, 0.3, 2.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_a_step_is_the_best_rotation_and_never_raises_the_objective(seed, l1, dtype):
    X, Z = case(seed, dtype=dtype)
    codes = Threshold(l1 / 2)(LinearProblem(X, Z))
    W = codes.to_dense().astype(np.float64)

    def objective(Z):
        return np.sum((X - W @ Z) ** 2) + l1 * np.abs(W).sum()

    update = Procrustes(l1)
    updated = update.solve(update.sums(X, codes, Z), Z)
    assert apart(updated.dictionary) < CLOSE[dtype]
    best = oracles.ksad.procrustes(X.T.astype(float), W.T).T
    size = np.sum(X.astype(float) ** 2)
    assert updated.objective == pytest.approx(objective(best), abs=20 * np.finfo(dtype).eps * size)
    assert updated.objective <= objective(Z) + 20 * np.finfo(dtype).eps * size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("l1", [0.0, 0.5, 50.0])
def test_every_pass_is_orthonormal_and_the_objective_falls(dtype, l1, rng):
    X, Z = case(rng, n=200, k=20, dtype=dtype)
    state, seen = LearnerState.start(Z), []

    class Observer:
        def begin_pass(self):
            pass

        def end_pass(self, state, is_last):
            seen.append(apart(state.dictionary))
            return False

    learn(
        linear_problems, X, Threshold(l1 / 2), Procrustes(l1), state, max_iter=15, tol=0,
        observer=Observer(),
    )  # fmt: skip
    assert len(seen) == len(state.objective)
    assert max(seen) < CLOSE[dtype]
    slack = 10 * np.finfo(dtype).eps * np.sum(X.astype(float) ** 2)
    assert np.all(np.diff(state.objective) <= slack)
    assert state.objective[-1] < state.objective[0] or l1 in (0.0, 50.0)


def test_sums_add_up_and_know_the_objective(rng):
    X, Z = case(rng, n=90)
    codes = Threshold(0.3)(LinearProblem(X, Z))
    update = Procrustes(0.6)
    whole = update.sums(X, codes, Z)
    parts = [update.sums(X[i::3], codes.take(np.arange(i, 90, 3)), Z) for i in range(3)]
    total = parts[0] + parts[1] + parts[2]
    np.testing.assert_allclose(total.cross, codes.to_dense().T @ X, atol=1e-10)
    np.testing.assert_allclose(total.gram, whole.gram, atol=1e-10)
    squares = np.sum((X - codes.to_dense() @ Z) ** 2)
    assert total.objective(Z) == pytest.approx(squares)
    # Of orthonormal atoms the diagonal of W'W is as good as all of it.
    assert Moments.of(X, codes).objective(Z) == pytest.approx(squares)
    batch = update.take_batch(X[1::3], codes.take(np.arange(1, 90, 3)), Z, parts[0], 0.5)
    np.testing.assert_allclose(batch.sums.cross, 0.5 * parts[0].cross + parts[1].cross, atol=1e-10)
    assert batch.objective == pytest.approx(
        batch.sums.objective(batch.dictionary) + 0.6 * batch.sums.l1_norm
    )


def test_one_batch_of_all_rows_is_a_pass(rng):
    X, Z = case(rng)
    codes = Threshold(0.3)(LinearProblem(X, Z))
    update = Procrustes(0.6)
    np.testing.assert_allclose(
        update.take_batch(X, codes, Z, None, 1.0).dictionary,
        update.solve(update.sums(X, codes, Z), Z).dictionary,
        atol=1e-12,
    )


def test_what_no_code_uses_stays(rng):
    _, Z = case(rng)
    np.testing.assert_allclose(rotate_to(np.zeros((7, 7)), Z), Z, atol=1e-12)
    cross = np.zeros((7, 7))
    cross[:3] = 4 * Z[:3]  # as good as they are; nobody asks for the others
    np.testing.assert_allclose(rotate_to(cross, Z), Z, atol=1e-3)
    assert apart(rotate_to(cross, Z)) < 1e-12
    assert Procrustes(0.1).new_atoms(Z) is None


def test_the_start_is_the_orthonormal_basis_nearest_to_random_rows(rng):
    X, _ = case(rng)
    chosen = np.sort(np.random.RandomState(3).permutation(len(X))[:7])
    start = orthonormal_start(X, 7, np.random.RandomState(3))
    np.testing.assert_allclose(start, polar_factor(X[chosen]), atol=1e-12)
    U, _, Vt = np.linalg.svd(X[chosen])
    np.testing.assert_allclose(start, U @ Vt, atol=1e-12)
    assert apart(orthonormal_start(np.zeros((9, 4)), 4, np.random.RandomState(0))) < 1e-12
