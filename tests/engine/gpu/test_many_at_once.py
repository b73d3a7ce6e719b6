"""Many small problems at once on a device: the answers are those of each alone."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import kernelatoms as ka  # noqa: E402
from kernelatoms.engine import gpu  # noqa: E402
from kernelatoms.engine.gpu.arrays import linalg, work  # noqa: E402
from kernelatoms.learning import runs  # noqa: E402
from machines import tensor_machine  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(
    ("held", "free", "enough"), [(24, None, True), (26, 50, True), (26, 49, False), (90, 60, True)]
)
def test_free_memory_is_asked_for_where_much_is_held(held, free, enough, monkeypatch):
    on_card = SimpleNamespace(is_cuda=True, device="cuda:0")
    whole = SimpleNamespace(total_memory=100)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: whole)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: held)
    monkeypatch.setattr(work, "free_bytes", lambda tensor: free)
    assert work.is_mostly_free(on_card) == enough


def test_the_host_is_mostly_free():
    assert work.is_mostly_free(torch.zeros(1))


def test_short_memory_makes_halves():
    solved = []

    def double_all(numbers, most):
        if len(numbers) > most:
            raise torch.OutOfMemoryError("too many")
        solved.append(len(numbers))
        return [2 * number for number in numbers]

    assert work.in_halves(lambda some: double_all(some, 2), [*range(5)]) == [0, 2, 4, 6, 8]
    assert solved == [2, 1, 2]
    assert work.in_halves(lambda some: double_all(some, 5), [*range(5)]) == [0, 2, 4, 6, 8]
    assert solved[3:] == [5]
    with pytest.raises(torch.OutOfMemoryError):
        work.in_halves(lambda some: double_all(some, 0), [*range(3)])


def test_factors_and_solutions_of_many_are_those_of_each(monkeypatch):
    """Matrices of one size go together, large ones alone."""
    at_once, cholesky_ex = [], torch.linalg.cholesky_ex
    monkeypatch.setattr(
        torch.linalg, "cholesky_ex", lambda A: [at_once.append(len(A)), cholesky_ex(A)][1]
    )
    rng = np.random.default_rng(0)
    sizes = [5, 8, 5, 5, 8, 5]
    monkeypatch.setattr(linalg, "_SMALL", 7)
    bases = [rng.standard_normal((n, 3 * n)) for n in sizes]
    grams = [torch.tensor(base @ base.T / len(base), device=DEVICE) for base in bases]
    rights = [torch.tensor(rng.standard_normal((n, 4)), device=DEVICE) for n in sizes]
    grams[2] = -grams[2]
    factors = linalg.cholesky_all(grams)
    assert sorted(at_once) == [1, 1, 4]
    assert [factor is None for factor in factors] == [i == 2 for i in range(6)]
    sound = [i for i in range(6) if i != 2]
    inner = linalg.solve_triangular_all([factors[i] for i in sound], [rights[i] for i in sound])
    found = linalg.solve_triangular_all([factors[i] for i in sound], inner, transposed=True)
    for i, solution in zip(sound, found, strict=True):
        torch.testing.assert_close(grams[i] @ solution, rights[i], rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(factors[i], linalg.cholesky(grams[i]), rtol=1e-12, atol=1e-12)


def rows_of_classes():
    """Return rows in float64 of four classes of different sizes."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [40, 25, 31, 40])
    X = rng.standard_normal((4, 6, 9))[y, rng.integers(6, size=len(y))]
    return X + 0.3 * rng.standard_normal(X.shape), y


def fitted(learner, monkeypatch, together):
    """Return the dictionaries of classes, updated together or one by one."""
    X, y = rows_of_classes()
    model = ka.ClassDictionaryClassifier(learner, random_state=0)
    with monkeypatch.context() as patch, gpu.cpu_as_device():
        patch.setattr(gpu, "UPDATES_TOGETHER", 64 if together else 1)
        return model.fit(torch.tensor(X, device=DEVICE), y).dictionaries_


def test_dictionaries_by_mod_are_those_of_one_by_one(monkeypatch):
    at_once = []
    for name in ("cholesky_ex", "solve_triangular"):
        way = getattr(torch.linalg, name)
        monkeypatch.setattr(
            torch.linalg,
            name,
            lambda A, *given, way=way, **more: [at_once.append(len(A)), way(A, *given, **more)][1],
        )
    learner = ka.MOD(8, n_nonzero_coefs=2, max_iter=12, tol=1e-3)
    expected = fitted(learner, monkeypatch, together=False)
    assert set(at_once) == {1}
    found = fitted(learner, monkeypatch, together=True)
    assert max(at_once) > 1
    for own, theirs in zip(found, expected, strict=True):
        assert own.n_iter_ == theirs.n_iter_
        torch.testing.assert_close(own.components_, theirs.components_, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(own.objective_, theirs.objective_, rtol=1e-9, atol=1e-9)


def test_a_class_that_fails_leaves_the_classifier_as_it_was(monkeypatch):
    X, y = rows_of_classes()
    X, model = torch.tensor(X, device=DEVICE), ka.ClassDictionaryClassifier(ka.MOD(8))
    real, calls = gpu.sum_products, []

    def fail(*given):
        calls.append(None)
        if len(calls) == 3:
            raise FloatingPointError("the third class")
        return real(*given)

    monkeypatch.setattr(gpu, "sum_products", fail)
    with gpu.cpu_as_device(), pytest.raises(FloatingPointError, match="the third class"):
        model.fit(X, y)
    assert not hasattr(model, "dictionaries_")


class TestRuns:
    """Runs on a device wait for updates, which are made together."""

    class Update:
        """Doubles numbers, and notes which were doubled at once."""

        def __init__(self):
            self.seen = []

        def apply_all(self, asked):
            self.seen.append([rows for rows, _ in asked])
            return [2 * rows for rows, _ in asked]

    def learning(self, update, n, n_updates, log):
        try:
            for i in range(n_updates):
                found = yield runs.UpdateRequest(update, (10 * n + i, np.zeros(1)))
                assert found == 2 * (10 * n + i)
                if n == 7:
                    raise ValueError("not 7")
            return n
        finally:
            log.append(n)

    def test_updates_of_all_that_wait_are_made_together(self):
        update, log, like = self.Update(), [], tensor_machine().array(np.zeros(1))
        with gpu.cpu_as_device():
            some = [self.learning(update, n, n, log) for n in (2, 0, 3, 1)]
            assert runs.run_all(some, like) == [2, 0, 3, 1]
        assert update.seen == [[20, 30, 10], [21, 31], [32]]

    def test_no_more_runs_than_there_is_room_for(self, monkeypatch):
        monkeypatch.setattr(gpu, "UPDATES_TOGETHER", 2)
        update, log, like = self.Update(), [], tensor_machine().array(np.zeros(1))
        assert runs.run_all([self.learning(update, n, 1, log) for n in range(5)], like) == [
            *range(5)
        ]
        assert max(map(len, update.seen)) == 2
        monkeypatch.setattr(gpu, "is_mostly_free", lambda like: False)
        update.seen.clear()
        assert runs.run_all([self.learning(update, n, 1, log) for n in range(3)], like) == [0, 1, 2]
        assert update.seen == [[0], [10], [20]]

    def test_what_one_raises_is_raised_and_the_others_end(self):
        update, log, like = self.Update(), [], tensor_machine().array(np.zeros(1))
        with pytest.raises(ValueError, match="not 7"):
            runs.run_all([self.learning(update, n, 2, log) for n in (1, 7, 3)], like)
        assert sorted(log) == [1, 3, 7]
