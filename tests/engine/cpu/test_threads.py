"""The thread pool: order, errors, nesting, forks, other people's threads and processes."""

import multiprocessing
import os
import threading
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info

from kernelatoms import KSVD, ClassDictionaryClassifier, sparse_encode
from kernelatoms.engine.cpu import threads

X = np.random.default_rng(0).standard_normal((3000, 20))
D = np.random.default_rng(1).standard_normal((50, 20))


def encode():
    return sparse_encode(X, D, n_nonzero_coefs=3, sparse_output=False)


def blas_threads():
    return {i["filepath"]: i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}


def test_results_come_in_order(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "3")

    def slow_first(i):
        time.sleep(0.05 if i == 0 else 0)
        return i * i

    assert threads.each(slow_first, range(10)) == [i * i for i in range(10)]


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


def test_only_the_outermost_level_threads(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")

    def outer(_):
        me = threading.get_ident()
        return all(inner == me for inner in threads.each(lambda _: threading.get_ident(), range(4)))

    assert all(threads.each(outer, range(4)))


def test_blas_is_limited_while_working_and_restored_after(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "2")
    before = blas_threads()
    during = threads.each(lambda _: blas_threads(), range(2))
    assert all(set(d.values()) == {1} for d in during)
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
