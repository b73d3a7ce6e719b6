"""A pass as a sum: the tree, order of completion, errors, Ctrl-C, reading ahead."""

import gc
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelatoms.engine.cpu.threads import each, is_at_work
from kernelatoms.rows import ArrayRows, RowSource, TreeSum, tree
from kernelatoms.rows.prefetch import Prefetch
from kernelatoms.rows.reduction import _Node
from oracles.row_sums import tree_sum


class Slow(RowSource):
    """Counts how many blocks are alive, and says when one is read."""

    def __init__(self, n_rows, fails_at=None, pause=0.0):
        super().__init__(n_rows, 2, np.float64)
        self.alive = weakref.WeakSet()
        self.most = self.n_read = 0
        self.fails_at, self.pause = fails_at, pause
        self.closed = 0

    def _read(self, block_rows):
        try:
            for start in range(0, self.n_rows, block_rows):
                if start == self.fails_at:
                    raise OSError(f"no row {start}")
                time.sleep(self.pause)
                block = Held((min(block_rows, self.n_rows - start), 2))
                block[:] = start
                self.alive.add(block)
                self.n_read += 1
                self.most = max(self.most, len(self.alive))
                yield block
                del block
        finally:
            self.closed += 1
            self.closed_by = threading.current_thread().name


class Held(np.ndarray):
    """An array that can be referred to weakly."""

    __hash__ = object.__hash__


@pytest.fixture(params=["1", "2", "5"])
def threads(request, monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", request.param)
    return int(request.param)


@pytest.fixture(autouse=True)
def no_thread_is_left_behind():
    yield
    assert not [t for t in threading.enumerate() if t.name == "kernelatoms-reader"]


def test_the_tree_has_fixed_groups():
    assert list(tree(1)) == []
    assert list(tree(16)) == [[range(16)]]
    assert list(tree(17)) == [[range(16), range(16, 17)], [range(2)]]
    assert [len(level) for level in tree(16 * 16 + 1)] == [17, 2, 1]


@given(st.integers(1, 600), st.integers(0, 2**31))
@settings(deadline=None, max_examples=60)
def test_sums_in_any_order_are_those_of_the_tree(n, seed):
    rng = np.random.RandomState(seed)
    results = rng.standard_normal(n) * 10.0 ** rng.randint(-8, 8, n)
    total = TreeSum(lambda a, b: a + b)
    for i in rng.permutation(n):
        total.push(int(i), results[i])
    levels = list(results)
    for level in tree(n):
        levels = [sum((levels[i] for i in group[1:]), levels[group[0]]) for group in level]
    assert total.total(n) == tree_sum(results) == levels[0]


def test_a_result_that_comes_when_another_thread_has_just_looked_is_added():
    class Late(dict):
        """Another thread brings result 1 when it was looked for and not found."""

        def __contains__(self, number):
            found = super().__contains__(number)
            if number == 1 and not found:
                total.push(1, 20)  # this thread still has the turn
            return found

    total = TreeSum(lambda a, b: a + b)
    total._nodes[0, 0] = node = _Node()
    node.waiting = Late()
    total.push(0, 10)
    total.push(2, 30)
    assert total.total(3) == 60


def test_sums_do_not_depend_on_which_block_is_done_first(threads):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 5)) * 10.0 ** rng.integers(-6, 6, (1000, 1))
    pauses = rng.random(400) * 0.004

    def work(block, start):
        time.sleep(pauses[start // 3])
        return block.T @ block

    total = ArrayRows(X).reduce(work, block_rows=3)
    expected = tree_sum(X[i : i + 3].T @ X[i : i + 3] for i in range(0, 1000, 3))
    np.testing.assert_array_equal(total, expected)


def test_add_may_change_its_first_argument(threads):
    def add(a, b):
        a += b
        return a

    X = np.random.default_rng(0).standard_normal((500, 4))
    total = ArrayRows(X).reduce(lambda block, start: block.sum(axis=0), block_rows=2, add=add)
    expected = tree_sum(X[i : i + 2].sum(axis=0) for i in range(0, 500, 2))
    np.testing.assert_array_equal(total, expected)


def test_results_are_added_from_left_to_right(threads):
    starts = ArrayRows(np.zeros((900, 1))).reduce(lambda block, start: (start,), block_rows=2)
    assert starts == tuple(range(0, 900, 2))


def test_blocks_of_a_device_are_worked_on_one_after_another(threads):
    rows = ArrayRows(np.zeros((64, 2)))
    rows.one_by_one = True
    ids = []
    for source in (rows, rows.map(np.negative, 2)):
        source.reduce(
            lambda block, start: ids.append(threading.get_ident()), block_rows=4, add=None
        )
    assert ids == 32 * [threading.get_ident()]


def test_without_add_only_work_is_done(threads):
    out = np.zeros(100)

    def work(block, start):
        out[start : start + len(block)] = block[:, 0]

    X = np.arange(200.0).reshape(100, 2)
    assert ArrayRows(X).reduce(work, block_rows=7, add=None) is None
    np.testing.assert_array_equal(out, X[:, 0])


def test_each_block_is_worked_on_by_one_thread(threads):
    nested = []

    def work(block, start):
        me = threading.get_ident()
        nested.append((is_at_work(), set(each(lambda _: threading.get_ident(), range(3))) == {me}))
        return 0

    ArrayRows(np.zeros((64, 2))).reduce(work, block_rows=4)
    assert set(nested) == {(threads > 1, True)}


def test_one_at_a_time_leaves_the_threads_to_the_work(threads):
    ids = set()

    def work(block, start):
        assert not is_at_work()
        ids.add(threading.get_ident())
        return 0

    ArrayRows(np.zeros((64, 2))).reduce(work, block_rows=4, max_at_once=1)
    assert ids == {threading.get_ident()}
    with pytest.raises(ValueError, match="max_at_once"):
        ArrayRows(np.zeros((64, 2))).reduce(work, block_rows=4, max_at_once=0)


def test_reductions_nest(threads):
    inner = ArrayRows(np.ones((10, 2)))

    def work(block, start):
        return inner.reduce(lambda rows, _: len(rows), block_rows=3)

    assert ArrayRows(np.zeros((64, 2))).reduce(work, block_rows=4) == 160


def test_few_blocks_are_alive(threads):
    source = Slow(200)

    def work(block, start):
        time.sleep(0.002)
        return 0

    source.reduce(work, block_rows=2)
    assert source.n_read == 100
    assert source.most <= threads + 2


def test_few_results_wait_for_a_slow_neighbour(threads):
    source, started = Slow(200), []

    def work(block, start):
        started.append(start // 2)
        if start == 0:
            time.sleep(0.3)
            assert max(started) < 3
        return 0

    source.reduce(work, block_rows=2, max_at_once=3)


def test_blocks_are_read_ahead(threads):
    source = Slow(20)
    seen = []

    def work(block, start):
        deadline = time.monotonic() + 5
        while source.n_read < min(10, start // 2 + 2) and time.monotonic() < deadline:
            time.sleep(0.001)
        seen.append(source.n_read >= min(10, start // 2 + 2))
        return 0

    source.reduce(work, block_rows=2)
    assert all(seen)
    blocks = source.blocks(2)
    next(blocks)
    deadline = time.monotonic() + 5
    while source.n_read < 12 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert source.n_read == 12  # two ahead, and no more
    blocks.close()
    assert source.closed == 2
    assert source.closed_by == "kernelatoms-reader"  # some things may be closed by who opened them


def test_the_first_block_that_fails_is_named(threads):
    def work(block, start):
        if start >= 50:
            time.sleep(0.02 if start == 50 else 0)
            raise RuntimeError(f"block {start}")
        return 0

    source = Slow(400)
    with pytest.raises(RuntimeError, match=r"block 50$"):
        source.reduce(work, block_rows=2)
    assert source.closed == 1
    assert source.n_read < 60
    gc.collect()
    assert not source.alive


def test_errors_of_the_reader_are_raised(threads):
    source = Slow(100, fails_at=40)
    with pytest.raises(OSError, match="no row 40"):
        source.reduce(lambda block, start: 0, block_rows=2)
    with pytest.raises(OSError, match="no row 40"):
        list(source.blocks(2))
    assert source.closed == 2


def test_errors_of_add_are_raised(threads):
    def add(a, b):
        raise RuntimeError("cannot add")

    with pytest.raises(RuntimeError, match="cannot add"):
        Slow(100).reduce(lambda block, start: 0, block_rows=2, add=add)


def test_no_rows_are_an_error():
    with pytest.raises(ValueError, match="no rows"):
        ArrayRows(np.empty((0, 2))).reduce(lambda block, start: 0, block_rows=2)
    with pytest.raises(ValueError, match="block_rows"):
        ArrayRows(np.empty((3, 2))).reduce(lambda block, start: 0, block_rows=0)


@pytest.mark.parametrize("where", ["work", "read"])
def test_ctrl_c_stops_all_threads(threads, where):
    source = Slow(10_000, pause=0.05 if where == "read" else 0)

    def work(block, start):
        if start == 20:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.005)
        return 0

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        source.reduce(work, block_rows=2)
    assert source.n_read < 200
    assert source.closed == 1
    assert time.monotonic() - began < 30
    n_read = source.n_read
    time.sleep(0.05)
    assert source.n_read == n_read


def test_a_reader_whose_owner_is_gone_ends():
    """Ctrl-C may strike between the start of the thread and the body of the with statement."""
    source = Slow(100)
    pieces = Prefetch(source._pieces(2), 1)
    pieces.__enter__()
    next(pieces)
    del pieces
    deadline = time.monotonic() + 10
    while not source.closed and time.monotonic() < deadline:
        time.sleep(0.01)
    assert source.closed == 1
    while any(t.name == "kernelatoms-reader" for t in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_source_that_changes_its_length_is_refused(threads):
    source = Slow(20)
    for n_rows in (10, 30):
        source.n_rows = n_rows
        pieces = list(source._read(3))
        source._read = lambda block_rows, pieces=pieces: iter(pieces)
        source.n_rows = 20
        with pytest.raises(ValueError, match=r"changed since they were counted: there were 20"):
            source.reduce(lambda block, start: 0, block_rows=3)
        del source._read


def test_rows_are_freed_when_a_pass_has_ended(rng):
    """Without Python's collector of cycles, which comes by late where rows are large."""
    gc.collect()
    gc.disable()
    try:
        X = rng.standard_normal((20, 3))
        rows = weakref.ref(X)
        ArrayRows(X).reduce(lambda block, _: block.sum(), block_rows=4)
        del X
        assert rows() is None
    finally:
        gc.enable()
