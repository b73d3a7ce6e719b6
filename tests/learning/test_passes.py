"""Passes as reductions: blocks of rows, sums along a tree, runs that ask for what they need."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.coding import OMP, Lasso
from kernelatoms.coding.problem import linear_problems
from kernelatoms.coding.pursuits import Threshold
from kernelatoms.learning import loop
from kernelatoms.learning.loop import block_rows, learn, passes
from kernelatoms.learning.mod import BlockDescent, LeastSquares, Procrustes, orthonormal_start
from kernelatoms.learning.pass_sums import PassSums, WorstRows
from kernelatoms.learning.runs import run, run_routed
from kernelatoms.learning.state import (
    LearnerState,
    atoms_from_rows,
    draw_rows,
    unit_rows,
    worst_represented,
)
from kernelatoms.rows import ArrayRows, MappedRows
from kernelatoms.rows.routed import ClassRows, reduce_routed

KINDS = [
    (OMP(3), LeastSquares()),
    (OMP(3, "ols", True), LeastSquares()),
    (Lasso(0.3), BlockDescent(0.3)),
    (Threshold(0.2), Procrustes(0.4)),
]


def start_of(X, update):
    rng = np.random.RandomState(0)
    if isinstance(update, Procrustes):
        return LearnerState.start(orthonormal_start(X, X.shape[1], rng))
    return LearnerState.start(unit_rows(X[:12]), rng)


def learned(rows, X, pursuit, update, n=4):
    state = start_of(X, update)
    learn(linear_problems, rows, pursuit, update, state, max_iter=n, tol=0)
    return state


class Fetched(MappedRows):
    """Rows that are read, as those of files, by a thread ahead of time."""

    def __init__(self, X):
        super().__init__(ArrayRows(X), np.array, X.shape[1])
        self._waits_for_data = True


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Rows in blocks of few, so that small data make many."""
    monkeypatch.setattr(loop, "_FEWEST_ROWS", 8)
    monkeypatch.setattr(loop, "_FEWEST_PRODUCTS", 0)


@pytest.mark.parametrize(("pursuit", "update"), KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_anywhere_and_any_number_of_threads_give_the_same_bits(
    pursuit, update, dtype, rng, monkeypatch
):
    X = rng.standard_normal((500, 8)).astype(dtype)
    states = []
    for threads in (1, 2, 5, 16):
        monkeypatch.setenv("KERNELATOMS_NUM_THREADS", str(threads))
        states += [learned(rows, X, pursuit, update) for rows in (X, ArrayRows(X), Fetched(X))]
    for state in states[1:]:
        assert state.objective == states[0].objective
        np.testing.assert_array_equal(state.best, states[0].best)
        np.testing.assert_array_equal(state.sums.cross, states[0].sums.cross)
    assert states[0].best.dtype == dtype


@pytest.mark.parametrize(("pursuit", "update"), KINDS)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 90))
def test_a_pass_is_that_of_all_rows_together(pursuit, update, seed, n):
    X = np.random.default_rng(seed).standard_normal((n + 12, 6))
    state = start_of(X, update)
    before = state.dictionary
    learn(linear_problems, X, pursuit, update, state, max_iter=1, tol=0)
    codes = pursuit(linear_problems(before, len(X))(X))
    whole = update.solve(update.sums(X, codes, before), before)
    assert state.objective[0] == pytest.approx(whole.objective, rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(state.use, codes.uses())
    used = codes.uses() > 0
    np.testing.assert_allclose(state.dictionary[used], whole.dictionary[used], atol=1e-6)


@given(seed=st.integers(0, 2**31), sizes=st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_the_worst_rows_of_blocks_are_those_of_all(seed, sizes):
    error = np.random.default_rng(seed).integers(0, 4, sum(sizes)).astype(float)
    starts = np.cumsum([0, *sizes])
    parts = [WorstRows.of(error[a:b], a, 3) for a, b in itertools.pairwise(starts)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    np.testing.assert_array_equal(total.rows, worst_represented(error, 3))
    np.testing.assert_array_equal(total.error, error[total.rows])


def test_unused_atoms_become_the_worst_rows_of_any_block(rng):
    """Rows along two axes, three atoms that no row uses, and one row apart, in the last block."""
    X = np.zeros((300, 5))
    X[np.arange(300), np.arange(300) % 2] = rng.uniform(1, 2, 300)
    X[297, 4] = 5.0
    D = np.eye(5)[[0, 1, 2, 3, 3]]
    state = LearnerState.start(D)
    learn(linear_problems, Fetched(X), OMP(1), LeastSquares(), state, max_iter=1, tol=0)
    np.testing.assert_allclose(state.dictionary[2], unit_rows(X[297:298])[0], atol=1e-12)


def test_sums_of_blocks_are_sums_of_their_rows(rng):
    X = rng.standard_normal((60, 6))
    D = unit_rows(X[:9])
    problem_of = linear_problems(D, 60)
    update = LeastSquares()

    def sums(start, stop):
        codes = OMP(2)(problem_of(X[start:stop]))
        return PassSums.of(update.sums(X[start:stop], codes, D), codes, start)

    whole, parts = sums(0, 60), sums(0, 25) + sums(25, 60)
    np.testing.assert_allclose(parts.sums.gram, whole.sums.gram, atol=1e-12)
    np.testing.assert_array_equal(parts.uses, whole.uses)
    np.testing.assert_array_equal(parts.worst.rows, whole.worst.rows)


def test_blocks_depend_on_the_data_alone(monkeypatch):
    monkeypatch.undo()
    few, many = ArrayRows(np.zeros((1000, 64))), ArrayRows(np.zeros((200_000, 64)))
    sizes = [block_rows(few, 16), block_rows(many, 16), block_rows(many, 5000)]
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "7")
    assert sizes == [block_rows(few, 16), block_rows(many, 16), block_rows(many, 5000)]
    assert sizes[1] * 64 * 8 <= 8 << 20
    assert sizes[2] >= 5000  # sums over 5,000 atoms are larger than the rows


def test_small_rows_are_refused_wherever_they_are():
    X = np.full((50, 4), 1e-170)
    for rows in (X, Fetched(X)):
        state = LearnerState.start(np.eye(4)[:3])
        with pytest.raises(ValueError, match=r"squared norms of X underflow float64"):
            learn(linear_problems, rows, OMP(1), LeastSquares(), state, max_iter=2, tol=0)


def test_rows_that_start_atoms_are_the_same_anywhere(rng):
    X = rng.standard_normal((40, 3))
    X[rng.random(40) < 0.7] = 0
    expected = atoms_from_rows(X, 15, np.random.RandomState(1))
    order = np.random.RandomState(1).permutation(40)
    naive = [X[i] for i in order if X[i].any()] + [X[i] for i in order if not X[i].any()]
    np.testing.assert_allclose(expected, unit_rows(np.array(naive[:15])))
    learning = draw_rows(Fetched(X), 15, np.random.RandomState(1))
    asked = []

    def watched():
        answer = None
        while True:
            try:
                asked.append(learning.send(answer))
            except StopIteration as end:
                return end.value
            answer = yield asked[-1]

    np.testing.assert_array_equal(run(watched()), expected)
    assert len(asked) > 1  # the first rows drawn were too few that are not 0


# Rows of classes in one source --------------------------------------------------------------------


class Counted(Fetched):
    """Counts how often all rows are read."""

    n_passes = 0

    def _read(self, block_rows):
        self.n_passes += 1
        return super()._read(block_rows)


def test_classes_learn_in_one_pass_as_each_by_itself(rng):
    labels = rng.permutation(np.repeat([0, 1, 2], [50, 20, 90]))
    X = rng.standard_normal((160, 6)) + labels[:, None]
    source = Counted(X)

    def learning(rows):
        state = LearnerState.start((yield from draw_rows(rows, 8, np.random.RandomState(3))))
        yield from passes(linear_problems, rows, OMP(2), LeastSquares(), state, max_iter=5, tol=0)
        return state

    runs = [learning(ClassRows(source, labels, c)) for c in range(3)]
    states = run_routed(runs, source)
    assert source.n_passes <= 1 + 5 + 5  # to draw, to learn, and for dead atoms, if there are any
    for c, state in enumerate(states):
        own = learned_alone(X[labels == c])
        np.testing.assert_allclose(state.objective, own.objective, rtol=1e-9)
        np.testing.assert_allclose(state.best, own.best, atol=1e-9)


def learned_alone(X):
    state = LearnerState.start(atoms_from_rows(X, 8, np.random.RandomState(3)))
    learn(linear_problems, X, OMP(2), LeastSquares(), state, max_iter=5, tol=0)
    return state


@given(seed=st.integers(0, 2**31), n=st.integers(1, 60), n_classes=st.integers(1, 5))
def test_rows_are_routed_to_their_class(seed, n, n_classes):
    rng = np.random.default_rng(seed)
    labels, X = rng.integers(0, n_classes, n), rng.standard_normal((n, 2))
    wanted = np.unique(labels)[: n_classes - 1] if len(np.unique(labels)) > 1 else np.unique(labels)
    works = {int(c): lambda rows, start: [(start, rows)] for c in wanted}
    source = Fetched(X)
    classes = [(ClassRows(source, labels, c), work) for c, work in works.items()]
    sums = reduce_routed(source, classes)
    for c, parts in zip(works, sums, strict=True):
        rows = np.concatenate([rows for _, rows in parts])
        np.testing.assert_array_equal(rows, X[labels == c])
        starts = np.cumsum([0] + [len(rows) for _, rows in parts])[:-1]
        assert [start for start, _ in parts] == starts.tolist()
        of_class = ClassRows(Fetched(X), labels, c)
        np.testing.assert_array_equal(np.concatenate(list(of_class.blocks(3))), rows)
        np.testing.assert_array_equal(of_class.take([len(rows) - 1, 0]), rows[[-1, 0]])
