"""Gradient steps that the next pass judges: one reduction per pass."""

from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from kernelatoms.coding.problem import KernelProblem
from kernelatoms.coding.pursuits import Lasso
from kernelatoms.estimators.state_checks import check_learner_state
from kernelatoms.features.expansion import Expansion
from kernelatoms.learning.descent import descend
from kernelatoms.learning.gradients import GradientStep, PlainStep, move_atoms
from kernelatoms.learning.runs import SumRequest, run
from kernelatoms.learning.state import LearnerState
from kernelatoms.rows import ArrayRows
from kernelatoms.similarity import make_kernel

ALPHA = 0.05
KERNELS = [("rbf", {"gamma": 0.3}), ("linear", {}), ("poly", {"degree": 2, "gamma": 0.2})]


class Overshooting(GradientStep):
    """A step whose first trials are far too long."""

    def trials(self, atoms, here, used):
        way = -here.gradient
        slope = -float(np.vdot(way, way))
        for length in 30.0 * 0.25 ** np.arange(30):
            yield atoms + length * way, here.objective + 1e-4 * length * slope


def problems(kernel, atoms, n_rows):
    return lambda rows: KernelProblem(rows, Expansion(kernel, atoms))


def learn(kernel, X, start, update, max_iter, tol=0.0, **options):
    state = LearnerState.start(start, np.random.RandomState(0))
    rows = ArrayRows(X)
    pose = partial(problems, kernel)
    run(descend(pose, rows, Lasso(ALPHA), update, state, max_iter=max_iter, tol=tol, **options))
    return state


def objective(kernel, X, atoms):
    """Return the minimum over codes, from k alone."""
    codes = Lasso(ALPHA)(problems(kernel, atoms, len(X))(X)).to_dense()
    squares = kernel.diag(X) - 2 * np.sum(codes * kernel(X, atoms), axis=1)
    squares += np.einsum("ij,jk,ik->i", codes, kernel(atoms, atoms), codes)
    return 0.5 * squares.sum() + ALPHA * np.abs(codes).sum()


@pytest.mark.parametrize(("name", "parameters"), KERNELS)
def test_the_objective_of_a_pass_is_that_of_fresh_codes(name, parameters, rng):
    kernel, X = make_kernel(name, **parameters), rng.standard_normal((300, 4))
    state = learn(kernel, X, X[:7], GradientStep(kernel, ALPHA, 10.0), 6)
    assert state.objective[0] == pytest.approx(objective(kernel, X, X[:7]), rel=1e-5)
    assert min(state.objective) == pytest.approx(objective(kernel, X, state.best), rel=1e-5)
    assert min(state.objective) < state.objective[0]
    assert state.pending is None


@pytest.mark.parametrize(("name", "parameters"), KERNELS)
def test_the_first_step_is_that_of_move_atoms(name, parameters, rng):
    kernel, X = make_kernel(name, **parameters), rng.standard_normal((300, 4))
    seen = []

    class Watch:
        def begin_pass(self):
            pass

        def end_pass(self, state, is_last):
            seen.append(state.dictionary)

    learn(kernel, X, X[:7], GradientStep(kernel, ALPHA, 10.0), 1, observer=Watch())
    codes = Lasso(ALPHA)(problems(kernel, X[:7], 300)(X)).to_csr()
    step = move_atoms(kernel, X, codes, X[:7], ALPHA, max_norm=10.0)
    used = np.flatnonzero(codes.count_nonzero(axis=0))
    np.testing.assert_allclose(seen[0][used], step.atoms[used], atol=1e-9)
    assert np.abs(step.atoms[used] - X[used]).max() > 1e-3


def test_a_step_that_is_too_long_is_taken_back(rng):
    kernel, X = make_kernel("rbf", gamma=0.3), rng.standard_normal((300, 4))
    state = learn(kernel, X, X[:6], Overshooting(kernel, ALPHA), 60)
    reached = np.array(state.objective)
    assert (np.diff(reached) > 0).sum() > 10  # steps that were too long
    best = np.minimum.accumulate(reached)
    assert best[-1] < 0.9 * best[0]
    assert objective(kernel, X, state.best) == pytest.approx(best[-1], rel=1e-5)
    # Passes that only take a step back are none without progress, which would end learning.
    assert len(learn(kernel, X, X[:6], Overshooting(kernel, ALPHA), 60, tol=1e-6).objective) > 12


def test_a_pass_reads_the_rows_once(rng):
    kernel, X = make_kernel("rbf", gamma=0.3), rng.standard_normal((300, 4))
    state = LearnerState.start(X[:6])
    learning = descend(
        partial(problems, kernel), ArrayRows(X), Lasso(ALPHA), GradientStep(kernel, ALPHA), state,
        max_iter=5, tol=0.0,
    )  # fmt: skip
    requests, answer = [], None
    try:
        while True:
            request = learning.send(answer)
            requests.append(type(request))
            answer = request.answer()
    except StopIteration:
        pass
    assert requests.count(SumRequest) == 5 == len(state.objective)


@pytest.mark.parametrize("stopped_after", [1, 4, 9])
def test_going_on_from_a_kept_state_changes_no_bits(stopped_after, rng):
    kernel, X = make_kernel("rbf", gamma=0.3), rng.standard_normal((300, 4))
    whole = learn(kernel, X, X[:6], Overshooting(kernel, ALPHA), 20)

    class Stop:
        def begin_pass(self):
            pass

        def end_pass(self, state, is_last):
            if len(state.objective) == stopped_after:
                self.kept = state.copy()
            return len(state.objective) == stopped_after

    stop = Stop()
    learn(kernel, X, X[:6], Overshooting(kernel, ALPHA), 20, observer=stop)
    state = stop.kept
    rest = descend(
        partial(problems, kernel), ArrayRows(X), Lasso(ALPHA), Overshooting(kernel, ALPHA), state,
        max_iter=20 - stopped_after, tol=0.0,
    )  # fmt: skip
    run(rest)
    assert state.objective == whole.objective
    np.testing.assert_array_equal(state.best, whole.best)


def test_the_plain_step_is_taken_whatever_it_does(rng):
    kernel, X = make_kernel("rbf", gamma=0.3), rng.standard_normal((300, 4))
    update = PlainStep(kernel, ALPHA, None, 1.5)
    state = learn(kernel, X, X[:6], update, 5)
    atoms = X[:6]
    for reached in state.objective:
        assert reached == pytest.approx(objective(kernel, X, atoms), rel=1e-5)
        codes = Lasso(ALPHA)(problems(kernel, atoms, 300)(X))
        atoms = update.apply(X, codes, atoms).dictionary
    moved = np.linalg.norm(atoms - X[:6]) / np.linalg.norm(X[:6])
    assert len(learn(kernel, X, X[:6], update, 5, change_tol=moved).objective) == 1


def test_atoms_without_use_become_the_worst_rows(rng):
    kernel, X = make_kernel("rbf", gamma=0.3), rng.standard_normal((300, 4))
    start = np.concatenate([X[:5], np.full((2, 4), 50.0)])
    state = learn(kernel, X, start, GradientStep(kernel, ALPHA), 3)
    assert np.abs(state.best).max() < 10
    assert state.objective[1] < state.objective[0]


def test_a_kept_step_that_is_none_is_refused(rng):
    kernel, X = make_kernel("rbf", gamma=0.3), rng.standard_normal((300, 4))

    class Keep:
        def begin_pass(self):
            pass

        def end_pass(self, state, is_last):
            self.kept = state.copy()
            return True

    keep = Keep()
    learn(kernel, X, X[:6], GradientStep(kernel, ALPHA), 3, observer=keep)
    state, pending = keep.kept, list(keep.kept.pending)

    def check():
        check_learner_state(SimpleNamespace(state_=state), 6, 4, lambda _: None)

    check()
    for place, wrong in enumerate([X[:5], None, X[:6, :3], np.eye(5), np.ones(5), [np.nan]]):
        if wrong is not None:
            state.pending = (*pending[:place], wrong, *pending[place + 1 :])
            with pytest.raises(ValueError, match=r"LearnerState\.pending"):
                check()
    for wrong in (("a",), 3, pending[:-1]):
        state.pending = wrong
        with pytest.raises(TypeError, match=r"LearnerState\.pending"):
            check()


def test_trials_are_ever_nearer(rng):
    kernel, X = make_kernel("rbf", gamma=0.3), rng.standard_normal((200, 4))
    atoms, used = X[:6], np.array([True] * 5 + [False])
    codes = Lasso(ALPHA)(problems(kernel, atoms, 200)(X))
    update = GradientStep(kernel, ALPHA)
    here = update.sums(X, codes, atoms).finish(kernel, atoms)
    tried = list(update.trials(atoms, here, used))
    assert len(tried) == 8 + 30  # of the joint way, then atom by atom
    for (one, enough), (half, more) in pairwise(tried[:8]):
        np.testing.assert_allclose(half - atoms, (one - atoms) / 2, atol=1e-12)
        assert more - here.objective == pytest.approx((enough - here.objective) / 2)
        assert enough < here.objective
        np.testing.assert_array_equal(half[5], atoms[5])
