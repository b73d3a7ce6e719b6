"""Tasks that take turns: what they ask for is done at once, and the answers are those of each."""

import contextvars
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import kernelatoms as ka  # noqa: E402
from kernelatoms.engine import gpu  # noqa: E402
from kernelatoms.engine.gpu import together  # noqa: E402
from kernelatoms.engine.gpu.arrays import linalg  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = threading.active_count()
    yield
    assert threading.active_count() == before


class Doubling:
    """Doubles numbers, and remembers which were doubled at once."""

    def __init__(self, most=None):
        self.seen, self.most = [], most

    def all(self, asked):
        if self.most is not None and len(asked) > self.most:
            raise torch.OutOfMemoryError("too many")
        self.seen.append([int(number) for (number,) in asked])
        return [2 * int(number) for (number,) in asked]

    def __call__(self, number, alike=None):
        return together.for_all(self.all, alike, torch.tensor(number))


def test_alone_and_in_turns():
    double = Doubling()
    assert double(3) == 6
    assert together.each(double, [1]) == [2]
    assert together.each(double, []) == []
    assert double.seen == [[3], [1]]
    assert together.each(double, range(4)) == [0, 2, 4, 6]
    assert double.seen[2:] == [[0, 1, 2, 3]]


def test_one_works_at_a_time_in_order_and_some_are_done_before_others():
    double, told, working = Doubling(), [], []

    def task(n):
        for i in range(n):
            assert not working
            working.append(n)
            time.sleep(1e-3)
            told.append((n, i))
            working.remove(n)
            assert double(10 * n + i) == 20 * n + 2 * i
        return n

    assert together.each(task, [2, 0, 3, 1]) == [2, 0, 3, 1]
    assert told == [(2, 0), (3, 0), (1, 0), (2, 1), (3, 1), (3, 2)]
    assert double.seen == [[20, 30, 10], [21, 31], [32]]


def test_only_what_is_alike_is_done_at_once():
    double, other = Doubling(), Doubling()

    def task(n):
        return (other if n == 4 else double)(n, n % 2)

    assert together.each(task, range(5)) == [0, 2, 4, 6, 8]
    assert double.seen == [[0, 2], [1, 3]]
    assert other.seen == [[4]]


def test_no_more_tasks_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(together, "MOST_TASKS", 2)
    double, begun = Doubling(), []

    def task(n):
        begun.append(n)
        return double(double(n))

    assert together.each(task, range(5)) == [4 * n for n in range(5)]
    assert begun == list(range(5))
    assert double.seen == [[0, 1], [0, 2], [2, 3], [4, 6], [4], [8]]


def test_no_more_tasks_begin_when_memory_is_taken(monkeypatch):
    free = iter([60, 40, 49, 51, 10])
    monkeypatch.setattr(together, "_is_mostly_free", lambda tensor: next(free) >= 50)
    double = Doubling()
    assert together.each(double, range(5)) == [0, 2, 4, 6, 8]
    assert double.seen == [[0, 1], [2], [3, 4]]


@pytest.mark.parametrize(
    ("held", "free", "enough"), [(24, None, True), (26, 50, True), (26, 49, False), (90, 60, True)]
)
def test_free_memory_is_asked_for_where_much_is_held(held, free, enough, monkeypatch):
    on_card = SimpleNamespace(is_cuda=True, device="cuda:0")
    whole = SimpleNamespace(total_memory=100)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: whole)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: held)
    monkeypatch.setattr(together, "free_bytes", lambda tensor: free)
    assert together._is_mostly_free(on_card) == enough


def test_short_memory_makes_halves():
    double = Doubling(most=2)
    assert together.each(double, range(5)) == [0, 2, 4, 6, 8]
    assert double.seen == [[0, 1], [2], [3, 4]]
    with pytest.raises(torch.OutOfMemoryError):
        together.each(Doubling(most=0), range(3))


def test_what_one_raises_is_raised_and_the_others_leave():
    double, left = Doubling(), []

    def task(n):
        try:
            double(n)
            if n == 1:
                raise ValueError("not 1")
            double(n)
            left.append("past the end")
        except Exception:
            left.append("held up")
            raise
        finally:
            left.append(n)

    with pytest.raises(ValueError, match="not 1"):
        together.each(task, range(4))
    assert left == ["held up", 1, 0, 2, 3]


def test_what_is_asked_for_may_fail():
    def refuse(asked):
        raise RuntimeError(f"{len(asked)} at once")

    with pytest.raises(RuntimeError, match="3 at once"):
        together.each(lambda n: together.for_all(refuse, None, torch.tensor(n)), range(3))


def test_an_interrupt_stops_all():
    double, left = Doubling(), []

    def task(n):
        try:
            double(n)
            if n == 1:
                signal.raise_signal(signal.SIGINT)
                time.sleep(0.05)  # the interrupt strikes who waits for this
            double(n)
        finally:
            left.append(n)

    with pytest.raises(KeyboardInterrupt):
        together.each(task, range(3))
    assert sorted(left) == [0, 1, 2]
    assert len(double.seen) == 1


def test_calls_within_a_task_are_its_own():
    double = Doubling()
    found = together.each(lambda n: together.each(double, [n, n + 10]), range(2))
    assert found == [[0, 20], [2, 22]]
    assert double.seen == [[0, 1], [10, 11]]


def test_tasks_see_what_their_caller_sees():
    number = contextvars.ContextVar("number", default=0)
    number.set(5)
    with torch.inference_mode():
        found = together.each(lambda n: (number.get(), torch.is_inference_mode_enabled()), [1, 2])
    assert found == [(5, True)] * 2
    assert together.each(lambda n: torch.is_inference_mode_enabled(), [1, 2]) == [False, False]


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a card")
def test_tasks_work_in_the_stream_of_their_caller():
    with torch.cuda.stream(torch.cuda.Stream()) as stream:
        ours = torch.cuda.current_stream()
        found = together.each(lambda n: torch.cuda.current_stream(), [1, 2])
    assert found == [ours] * 2
    del stream


def test_factors_and_solutions_of_many_are_those_of_each():
    rng = np.random.default_rng(0)
    sizes = [5, 8, 5, 5]
    bases = [rng.standard_normal((n, 3 * n)) for n in sizes]
    grams = [torch.tensor(base @ base.T / len(base), device=DEVICE) for base in bases]
    rights = [torch.tensor(rng.standard_normal((n, 4)), device=DEVICE) for n in sizes]
    grams[2] = -grams[2]

    def solve(i):
        factor = linalg.cholesky(grams[i])
        if factor is None:
            return None
        return linalg.solve_triangular(
            factor, linalg.solve_triangular(factor, rights[i]), transposed=True
        )

    found = together.each(solve, range(4))
    assert found[2] is None
    for i in (0, 1, 3):
        torch.testing.assert_close(grams[i] @ found[i], rights[i], rtol=1e-10, atol=1e-10)


def rows_of_classes():
    """Return rows in float64 of four classes of different sizes."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [40, 25, 31, 40])
    X = rng.standard_normal((4, 6, 9))[y, rng.integers(6, size=len(y))]
    return X + 0.3 * rng.standard_normal(X.shape), y


def fitted(learner, monkeypatch, in_turns):
    """Return the dictionaries of classes, learned in turns or one after another."""
    X, y = rows_of_classes()
    model = ka.ClassDictionaryClassifier(learner, random_state=0)
    with monkeypatch.context() as patch, gpu.cpu_as_device():
        if not in_turns:
            patch.setattr(gpu, "each", lambda function, items: [function(i) for i in items])
        return model.fit(torch.tensor(X, device=DEVICE), y).dictionaries_


def test_dictionaries_by_mod_are_those_of_one_after_another(monkeypatch):
    at_once = []
    for name in ("cholesky_ex", "solve_triangular"):
        way = getattr(torch.linalg, name)
        monkeypatch.setattr(
            torch.linalg,
            name,
            lambda A, *given, way=way, **more: [at_once.append(len(A)), way(A, *given, **more)][1],
        )
    learner = ka.MOD(8, n_nonzero_coefs=2, max_iter=12, tol=1e-3)
    expected = fitted(learner, monkeypatch, in_turns=False)
    assert set(at_once) == {1}
    found = fitted(learner, monkeypatch, in_turns=True)
    assert max(at_once) > 1
    for own, theirs in zip(found, expected, strict=True):
        assert own.n_iter_ == theirs.n_iter_
        torch.testing.assert_close(own.components_, theirs.components_, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(own.objective_, theirs.objective_, rtol=1e-9, atol=1e-9)


def test_a_class_that_fails_leaves_the_classifier_as_it_was(monkeypatch):
    X, y = rows_of_classes()
    X, model = torch.tensor(X, device=DEVICE), ka.ClassDictionaryClassifier(ka.MOD(8))
    real, calls = gpu.residuals, []

    def fail(*given):
        calls.append(None)
        if len(calls) == 3:
            raise FloatingPointError("the third class")
        return real(*given)

    monkeypatch.setattr(gpu, "residuals", fail)
    with gpu.cpu_as_device(), pytest.raises(FloatingPointError, match="the third class"):
        model.fit(X, y)
    assert not hasattr(model, "dictionaries_")
