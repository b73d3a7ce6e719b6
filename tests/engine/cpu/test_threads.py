"""The thread pool: order, errors, nesting, forks, other people's threads and processes."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

from kernelatoms import KSVD, ClassDictionaryClassifier, sparse_encode
from kernelatoms.engine import cpu
from kernelatoms.engine.cpu import ksvd, l1, threads

X = np.random.default_rng(0).standard_normal((3000, 20))
D = np.random.default_rng(1).standard_normal((50, 20))


@pytest.fixture(autouse=True)
def several_blas_threads():
    """Else, on one core or after a failure, there would be nothing to restore."""
    with threadpool_limits(3, user_api="blas"):
        yield


def encode():
    return sparse_encode(X, D, n_nonzero_coefs=3, sparse_output=False)


def blas_threads():
    return {i["filepath"]: i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}


def test_results_come_in_order(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "3")
    others_done = threading.Barrier(2)

    def first_is_last(i):
        if i in (0, 9):
            others_done.wait(60)
        return i * i

    assert threads.each(first_is_last, range(10)) == [i * i for i in range(10)]


@pytest.mark.parametrize("n", ["1", "2", "5"])
def test_codes_do_not_depend_on_the_number_of_threads(n, monkeypatch):
    expected = encode()
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", n)
    np.testing.assert_array_equal(encode() != 0, expected != 0)
    np.testing.assert_allclose(encode(), expected, atol=1e-12)


def test_every_block_is_done_once(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "4")
    counts = np.zeros(1001, int)

    def work(start, stop):
        counts[start:stop] += 1

    threads.each_block(1001, 10, lambda: work)
    assert (counts == 1).all()


def test_errors_reach_the_caller_and_blas_is_restored(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")
    before = blas_threads()

    def fail(i):
        raise RuntimeError(f"item {i}")

    with pytest.raises(RuntimeError, match="item 0"):
        threads.each(fail, range(3))
    assert blas_threads() == before


MANY = 2000


class Spy:
    """Two threads at work on items; item 0 ends in ``fail`` once the other thread is in item 1.

    All later items take their time, so that a thread that is not stopped would be seen at many.
    """

    def __init__(self, fail):
        self.fail, self.both = fail, threading.Barrier(2)
        self.begun, self.ended = [], []

    def __call__(self, i):
        self.begun.append(i)
        if i < 2:
            self.both.wait(60)
        if i == 0:
            self.fail()
        time.sleep(0.002)
        self.ended.append(i)

    def check(self):
        """Nobody is at work any more, and most items never began."""
        assert set(self.begun) - set(self.ended) == {0}
        assert len(self.begun) < MANY / 2
        seen = len(self.begun)
        assert threads.each(lambda i: i, range(50)) == list(range(50))  # all threads are free
        assert len(self.begun) == seen


def raise_error():
    raise RuntimeError("item 0")


def in_items(spy):
    threads.each(spy, range(MANY))


def in_blocks(spy):
    threads.each_block(MANY, 1, lambda: lambda start, stop: spy(start))


def in_nested_items(spy):
    threads.each(lambda first: threads.each(spy, range(first, MANY, 2)), range(2))


def in_nested_blocks(spy):
    def half(first):
        threads.each_block(MANY // 2, 1, lambda: lambda start, stop: spy(first + 2 * start))

    threads.each(half, range(2))


@pytest.mark.parametrize("run", [in_items, in_blocks, in_nested_items, in_nested_blocks])
def test_an_exception_stops_everybody_at_the_next_item(run, monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")
    before, spy = blas_threads(), Spy(raise_error)
    with pytest.raises(RuntimeError, match="item 0"):
        run(spy)
    spy.check()
    assert blas_threads() == before


def test_nested_calls_of_the_last_items_are_not_stopped(monkeypatch):
    """The caller is done and waits while another thread is still inside."""
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")
    caller, both = threading.current_thread(), threading.Barrier(2)
    caller_is_done = threading.Event()

    def outer(_):
        both.wait(60)
        if threading.current_thread() is caller:
            caller_is_done.set()
            return 6
        caller_is_done.wait(60)
        return sum(threads.each(lambda i: time.sleep(0.005) or i, range(4)))

    assert threads.each(outer, range(2)) == [6, 6]


def test_the_first_item_that_fails_is_the_one_told(monkeypatch):
    """However many fail, and whoever is first to do so."""
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "4")
    all_begun = threading.Barrier(4)

    def fail(i):
        if i < 4:
            all_begun.wait(60)
        time.sleep(0.01 * (4 - i))
        raise RuntimeError(f"item {i}")

    with pytest.raises(RuntimeError, match="item 0"):
        threads.each(fail, range(100))


def test_an_exception_where_a_thread_prepares_reaches_the_caller(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "3")
    done = []

    def make_worker():
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        threads.each_block(100, 1, make_worker)
    threads.each_block(100, 1, lambda: lambda start, stop: done.append(start))
    assert sorted(done) == list(range(100))


@pytest.mark.skipif(not hasattr(os, "kill"), reason="signals are POSIX")
@pytest.mark.parametrize("more", [0, 5], ids=["once", "again and again"])
def test_ctrl_c_stops_everybody_at_the_next_item(more, monkeypatch):
    """Also a second time, while the caller waits for threads to leave."""
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")
    before, both = blas_threads(), threading.Barrier(2)
    begun, ended = [], []

    def work(i):
        begun.append(i)
        if i < 2:
            both.wait(60)
        if threading.current_thread() is threading.main_thread():
            signal.raise_signal(signal.SIGINT)
        for _ in range(more if i < 2 else 0):
            time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.002)
        ended.append(i)

    with pytest.raises(KeyboardInterrupt):
        threads.each(work, range(MANY))
    assert len(set(begun) - set(ended)) == 1  # the caller's; the other thread has finished its own
    assert len(begun) < MANY / 2
    seen = len(begun)
    assert threads.each(lambda i: i, range(50)) == list(range(50))
    assert len(begun) == seen
    assert blas_threads() == before


def finishes(function):
    """Run a function that might hang for ever."""
    outcome = []
    runner = threading.Thread(target=lambda: outcome.append(function()), daemon=True)
    runner.start()
    runner.join(120)
    assert not runner.is_alive(), "it hangs"
    return outcome[0]


def test_work_that_waits_for_threads_that_use_the_pool(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")

    def outer(i):
        inner = []
        user = threading.Thread(
            target=lambda: inner.extend(threads.each(lambda j: i + j, range(8)))
        )
        user.start()
        user.join()
        return inner

    expected = [list(range(i, i + 8)) for i in range(6)]
    assert finishes(lambda: threads.each(outer, range(6))) == expected


def test_a_kernel_that_codes_in_threads_of_its_own(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")

    def kernel(A, B):
        with ThreadPoolExecutor(2) as own:
            products = own.submit(lambda: encode() is not None and A @ B.T)
            return products.result()

    codes = finishes(lambda: sparse_encode(X, D, n_nonzero_coefs=3, kernel=kernel))
    np.testing.assert_allclose(codes.toarray(), encode(), atol=1e-9)


def test_the_number_of_threads_may_change_while_others_compute(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")
    before, failures, stop = blas_threads(), [], threading.Event()

    def compute():
        try:
            while not stop.is_set():
                assert threads.each(lambda i: -i, range(20)) == [-i for i in range(20)]
        except BaseException as error:
            failures.append(error)

    users = [threading.Thread(target=compute) for _ in range(4)]
    for user in users:
        user.start()
    for i in range(200):
        monkeypatch.setenv("KERNELATOMS_NUM_THREADS", str(2 + i % 4))
        threads.each(lambda i: i, range(8))
    stop.set()
    for user in users:
        user.join()
    assert failures == []
    assert blas_threads() == before


def test_without_a_pool_the_caller_does_it_all(monkeypatch):
    """No thread to be had, or the interpreter shuts down."""
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "3")

    class NoThreads:
        def submit(self, *_):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_pool", NoThreads())
    monkeypatch.setattr(threads, "_pool_size", 2)
    assert threads.each(lambda i: i * i, range(10)) == [i * i for i in range(10)]


def test_only_the_outermost_level_threads(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")

    def outer(_):
        me = threading.get_ident()
        return all(inner == me for inner in threads.each(lambda _: threading.get_ident(), range(4)))

    assert all(threads.each(outer, range(4)))


def test_blas_is_limited_while_working_and_restored_after(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")
    before = blas_threads()
    assert set(before.values()) == {3}
    during = threads.each(lambda _: blas_threads(), range(2))
    assert all(set(d.values()) == {1} for d in during)
    assert blas_threads() == before


def test_blas_is_restored_by_the_last_to_leave_whoever_entered_first(monkeypatch):
    before, first_in, second_in = blas_threads(), threading.Event(), threading.Event()

    def enter_first():
        with threads.one_blas_thread():
            first_in.set()
            second_in.wait(60)

    first = threading.Thread(target=enter_first)
    first.start()
    first_in.wait(60)
    with threads.one_blas_thread():
        second_in.set()
        first.join()
        assert set(blas_threads().values()) == {1}
    assert blas_threads() == before


def test_two_python_threads_at_once_get_the_same_codes_and_leave_blas_alone(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")
    before, expected, results = blas_threads(), encode(), [None] * 4

    def use(i):
        results[i] = encode()

    users = [threading.Thread(target=use, args=(i,)) for i in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    for result in results:
        np.testing.assert_allclose(result, expected, atol=1e-12)
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_builds_a_pool_of_its_own(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")
    expected = encode()
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=lambda: send.send(encode()))
    child.start()
    assert receive.poll(120), "the forked child hangs"
    np.testing.assert_allclose(receive.recv(), expected, atol=1e-12)
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.slow
def test_grid_search_in_processes_agrees_with_one():
    data, labels = load_digits(n_class=3, return_X_y=True)
    model = ClassDictionaryClassifier(KSVD(n_atoms=10, max_iter=2), random_state=0)
    scores = [
        GridSearchCV(model, {"dictionary__n_nonzero_coefs": [1, 3]}, cv=2, n_jobs=n_jobs)
        .fit(data, labels)
        .cv_results_["mean_test_score"]
        for n_jobs in (None, 2)
    ]
    np.testing.assert_allclose(*scores)


def test_the_number_of_threads_is_checked(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "many")
    with pytest.raises(ValueError, match="KERNELATOMS_NUM_THREADS must be a positive whole number"):
        threads.n_threads()
    monkeypatch.delenv("KERNELATOMS_NUM_THREADS")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.n_threads() == 3


def test_long_items_can_be_left_in_between(monkeypatch):
    """Whoever is in one when another fails; outside of any call nobody is stopped."""
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")
    threads.stop_if_asked()
    both, failed, parts = threading.Barrier(2), threading.Event(), []

    def work(i):
        both.wait(60)
        if i == 0:
            failed.set()
            raise RuntimeError("item 0")
        failed.wait(60)
        time.sleep(0.2)  # the other thread is about to say so
        threads.in_short_parts(100, 16, parts.append)

    with pytest.raises(RuntimeError, match="item 0"):
        threads.each(work, range(2))
    assert parts == []


def test_short_parts_grow_while_they_are_quick():
    parts = []

    def work(part):
        parts.append(np.arange(1000)[part])
        if len(parts) == 3:
            time.sleep(0.1)

    threads.in_short_parts(1000, 16, work)
    assert np.concatenate(parts).tolist() == list(range(1000))
    assert [len(part) for part in parts] == [16, 64, 256, 16, 64, 256, 328]


def interrupt_at_second_call(monkeypatch, module, name):
    """Press Ctrl-C in a compiled loop; returns how often it was called."""
    loop, calls = getattr(module, name), []

    def interrupted(*args):
        calls.append(None)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return loop(*args)

    monkeypatch.setattr(module, name, interrupted)
    return calls


CANDIDATES = np.arange(50)[None].repeat(100, axis=0)


@pytest.mark.parametrize(
    ("module", "name", "options"),
    [(l1, "solve_lasso", {"method": "lasso"}), (cpu, "ksc_passes", {"method": "ksc"}),
     (cpu, "fksc_passes", {"method": "fksc"}),
     (l1, "solve_lasso_local", {"method": "lasso", "candidates": CANDIDATES})],
)  # fmt: skip
def test_ctrl_c_waits_for_a_few_hard_signals_only(module, name, options, monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "1")
    monkeypatch.setattr(l1, "block_rows", lambda *_: 100)
    monkeypatch.setattr(l1, "_WORTH_A_CALL", 1)
    calls = interrupt_at_second_call(monkeypatch, module, name)
    with pytest.raises(KeyboardInterrupt):
        sparse_encode(X[:100], D, alpha=0.1, **options)
    assert len(calls) == 2


def test_ctrl_c_waits_for_a_part_of_a_long_sweep(monkeypatch):
    """And sweeps in parts are sweeps all the same."""
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "1")
    whole = KSVD(n_atoms=50, n_nonzero_coefs=3, max_iter=2, random_state=0).fit(X)
    monkeypatch.setattr(ksvd, "_LONG_SWEEP", 10_000)
    parts = KSVD(n_atoms=50, n_nonzero_coefs=3, max_iter=2, random_state=0).fit(X)
    np.testing.assert_array_equal(parts.components_, whole.components_)
    calls = interrupt_at_second_call(monkeypatch, ksvd, "_sweep")
    with pytest.raises(KeyboardInterrupt):
        KSVD(n_atoms=50, n_nonzero_coefs=3, max_iter=2, random_state=0).fit(X)
    assert len(calls) == 2
