"""Threads in step: K-SVD's sweeps have the same bits for any number of them, and never hang."""

import multiprocessing
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.learning
from kernelatoms import KSVD
from kernelatoms.engine import cpu
from kernelatoms.engine.cpu import gang, ksvd
from padded_codes import random_codes

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def many_processors(monkeypatch):
    """Have gangs of more threads than there may be processors, and of small work."""
    monkeypatch.setattr(gang, "n_processors", lambda: 16)
    monkeypatch.setattr(ksvd, "_FEWEST_NUMBERS", 1)
    monkeypatch.setattr(ksvd, "_FEWEST_USERS", 1)


def draw(n=700, n_features=20, n_atoms=12, n_nonzero=3, dtype=np.float64, rng=RNG):
    X = rng.standard_normal((n, n_features)).astype(dtype)
    D = cpu.unit_rows(rng.standard_normal((n_atoms, n_features)).astype(dtype))
    return X, D, *random_codes(rng, n, n_atoms, n_nonzero, dtype)


def swept(X, D, indices, values, n_alternations=2, n_sweeps=2):
    """Return residuals, atoms and coefficients after sweeps."""
    R, D, values = cpu.residuals(X, D, indices, values), D.copy(), values.copy()
    cpu.sweep_atoms(R, D, indices, values, n_alternations, n_sweeps)
    return R, D, values


def assert_same(ours, others):
    for one, other in zip(ours, others, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture
def sizes(monkeypatch):
    """Note the sizes of the gangs that were at work."""
    seen, sweep = [], ksvd._sweep

    def noted(words, *rest):
        sweep(words, *rest)
        seen.append(int(words[gang._SIZE]))

    monkeypatch.setattr(ksvd, "_sweep", noted)
    return seen


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_threads_computes_the_same(dtype, sizes, monkeypatch):
    given = draw(dtype=dtype)
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "1")
    alone = swept(*given)
    assert set(sizes) == {1}
    for number in (2, 3, 5, 16):
        monkeypatch.setenv("KERNELATOMS_NUM_THREADS", str(number))
        sizes.clear()
        for _ in range(5):
            assert_same(swept(*given), alone)
        assert 1 < max(sizes) <= number


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 200),
    n_features=st.integers(1, 20),
    n_atoms=st.integers(1, 12),
    n_alternations=st.integers(1, 3),
)
def test_sums_of_chunks_are_the_sweep_of_the_book(seed, n, n_features, n_atoms, n_alternations):
    """For numbers of rows that stripes and chunks do not divide."""
    rng = np.random.default_rng(seed)
    X, D, indices, values = draw(n, n_features, n_atoms, min(3, n_atoms), rng=rng)
    W = np.zeros((n, n_atoms + 1))
    np.put_along_axis(W, indices.astype(np.int64), values, axis=1)  # -1 is the last column
    book_D, book_W = oracles.learning.alternating_sweep(X, D, W[:, :-1], n_alternations)
    R, new, found = swept(X, D, indices, values, n_alternations, 1)
    new_W = np.zeros_like(W)
    np.put_along_axis(new_W, indices.astype(np.int64), found, axis=1)
    np.testing.assert_allclose(new, book_D, atol=1e-7)
    np.testing.assert_allclose(new_W[:, :-1], book_W, atol=1e-7)
    np.testing.assert_allclose(R, X - book_W @ book_D, atol=1e-7)


@given(seed=st.integers(0, 2**31), n=st.integers(1, 300), n_chunks=st.sampled_from([1, 2, 4, 16]))
def test_every_nonzero_is_a_user_in_one_chunk(seed, n, n_chunks):
    indices, _ = random_codes(np.random.default_rng(seed), n, 7, 3, np.float64)
    starts, rows, slots = ksvd._users_of_atoms(indices, 7, n_chunks)
    found = []
    for chunk in range(n_chunks):
        for atom in range(7):
            part = slice(starts[chunk, atom], starts[chunk, atom + 1])
            assert (rows[part] // ksvd._STRIPE % n_chunks == chunk).all()
            assert (np.diff(rows[part]) > 0).all()
            found += [(s, j, atom) for s, j in zip(rows[part], slots[part], strict=True)]
    every = [(s, j, indices[s, j]) for s, j in np.argwhere(indices >= 0)]
    assert sorted(found) == every


def test_rows_in_the_order_of_their_classes_are_in_all_chunks():
    """Each atom's users stand together: threads that took rows in a piece would wait for one."""
    indices = np.repeat(np.arange(4, dtype=np.int32), 256)[:, None]
    starts, _, _ = ksvd._users_of_atoms(indices, 4, 16)
    np.testing.assert_array_equal(np.diff(starts), 16)


def test_nobody_waits_for_threads_that_are_busy(sizes, monkeypatch):
    """All of the pool's threads are held, until the sweep is done without them."""
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "3")
    given = draw()
    expected = swept(*given)
    done, held = threading.Event(), threading.Barrier(4)

    def hold(_):
        held.wait(10)
        done.wait(60)

    with ThreadPoolExecutor(1) as others:
        holding = others.submit(cpu.each, hold, range(3))
        held.wait(10)
        sizes.clear()
        assert_same(swept(*given), expected)
        done.set()
        holding.result(10)
    assert set(sizes) == {1}


def test_python_threads_that_sweep_at_once(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "4")
    cases = [draw(n) for n in (300, 500, 700, 900)]
    expected = [swept(*case) for case in cases]
    with ThreadPoolExecutor(4) as python_threads:
        for _ in range(5):
            for ours, others in zip(
                python_threads.map(lambda case: swept(*case), cases), expected, strict=True
            ):
                assert_same(ours, others)


def test_sweeps_inside_the_pools_work_are_of_one_thread(sizes, monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "3")
    given = draw()
    alone = swept(*given)
    sizes.clear()
    for result in cpu.each(lambda _: swept(*given), range(6)):
        assert_same(result, alone)
    assert set(sizes) == {1}


def test_an_exception_between_the_steps_of_a_gang_reaches_the_caller(monkeypatch):
    """Also when it strikes one thread alone, which the others then do without."""
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "4")
    monkeypatch.setattr(ksvd, "_LONG_SWEEP", 1000)
    given, sweep, calls = draw(), ksvd._sweep, []

    def failing(*args):
        calls.append(None)
        if len(calls) == 7:
            raise RuntimeError("of one thread")
        sweep(*args)

    monkeypatch.setattr(ksvd, "_sweep", failing)
    with pytest.raises(RuntimeError, match="of one thread"):
        swept(*given)


def test_ctrl_c_between_the_steps_of_a_gang(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "4")
    monkeypatch.setattr(ksvd, "_LONG_SWEEP", 1000)
    given, sweep, calls = draw(), ksvd._sweep, []

    def interrupted(*args):
        calls.append(None)
        if len(calls) == 5:
            signal.raise_signal(signal.SIGINT)
        sweep(*args)

    monkeypatch.setattr(ksvd, "_sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        swept(*given)
    monkeypatch.undo()
    swept(*given)


def _in_child(given, connection):
    connection.send(swept(*given))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_has_gangs_of_its_own(monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "3")
    given = draw()
    expected = swept(*given)
    context = multiprocessing.get_context("fork")
    ours, its = context.Pipe()
    child = context.Process(target=_in_child, args=(given, its))
    child.start()
    assert ours.poll(60)
    assert_same(ours.recv(), expected)
    child.join(60)


def test_a_learner_has_the_same_bits(monkeypatch):
    X = RNG.standard_normal((3000, 20)).astype(np.float32)
    fits = []
    for number in ("1", "2", "5"):
        monkeypatch.setenv("KERNELATOMS_NUM_THREADS", number)
        fits.append(KSVD(30, n_nonzero_coefs=3, max_iter=3, random_state=0).fit(X))
    for other in fits[1:]:
        np.testing.assert_array_equal(other.components_, fits[0].components_)
        np.testing.assert_array_equal(other.objective_, fits[0].objective_)
