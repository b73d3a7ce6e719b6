"""Runs that learn together: the results are those of one after another."""

from types import SimpleNamespace

import numpy as np
import pytest

from kernelatoms import KSVD, MOD, ClassDictionaryClassifier
from kernelatoms.engine import cpu
from kernelatoms.learning import loop
from kernelatoms.learning.loop import UpdateRequest, run_all

ROWS = np.zeros((1, 1))


class Doubling:
    """Doubles numbers, and records which were doubled together."""

    def __init__(self):
        self.seen = []

    def apply_all(self, given):
        self.seen.append([number for number, _ in given])
        return [2 * number for number in self.seen[-1]]

    def asked(self, number):
        return UpdateRequest(self, (number, ROWS))


def use_machine(monkeypatch, together, is_mostly_free=lambda like: True):
    engine = SimpleNamespace(
        **{**vars(cpu), "UPDATES_TOGETHER": together, "is_mostly_free": is_mostly_free}
    )  # fmt: skip
    monkeypatch.setattr(loop, "machine", lambda like: engine)


def numbers(double, n):
    """Ask n times; return n."""
    for i in range(n):
        assert (yield double.asked(10 * n + i)) == 20 * n + 2 * i
    return n


def test_updates_are_made_together_and_some_runs_end_before_others(monkeypatch):
    use_machine(monkeypatch, 64)
    double = Doubling()
    assert run_all([numbers(double, n) for n in (2, 0, 3, 1)], ROWS) == [2, 0, 3, 1]
    assert double.seen == [[20, 30, 10], [21, 31], [32]]
    assert run_all([], ROWS) == []


def test_no_more_runs_begin_than_are_updated_together(monkeypatch):
    use_machine(monkeypatch, 2)
    double, begun = Doubling(), []

    def learning(n):
        begun.append(n)
        return (yield double.asked((yield double.asked(n))))

    assert run_all([learning(n) for n in range(5)], ROWS) == [4 * n for n in range(5)]
    assert begun == list(range(5))
    assert double.seen == [[0, 1], [0, 2], [2, 3], [4, 6], [4], [8]]


def test_no_more_runs_begin_when_memory_is_taken(monkeypatch):
    free = iter([60, 40, 49, 51, 10])
    use_machine(monkeypatch, 64, lambda like: next(free) >= 50)
    double = Doubling()

    def learning(n):
        return (yield double.asked(n))

    assert run_all([learning(n) for n in range(5)], ROWS) == [0, 2, 4, 6, 8]
    assert double.seen == [[0, 1], [2], [3, 4]]


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt])
def test_what_one_raises_is_raised_and_the_others_are_closed(stop, monkeypatch):
    use_machine(monkeypatch, 64)
    double, left = Doubling(), []

    def learning(n):
        try:
            yield double.asked(n)
            if n == 1:
                raise stop("not 1")
            yield double.asked(n)
            left.append("past the end")
        finally:
            left.append(n)

    with pytest.raises(stop, match="not 1"):
        run_all([learning(n) for n in range(4)], ROWS)
    assert left[0] == 1
    assert sorted(left) == [0, 1, 2, 3]


def test_an_update_that_fails_closes_all_runs(monkeypatch):
    use_machine(monkeypatch, 64)
    left = []

    class Refusing(Doubling):
        def apply_all(self, given):
            raise RuntimeError(f"{len(given)} at once")

    double = Refusing()

    def learning(n):
        try:
            yield double.asked(n)
        finally:
            left.append(n)

    with pytest.raises(RuntimeError, match="3 at once"):
        run_all([learning(n) for n in range(3)], ROWS)
    assert sorted(left) == [0, 1, 2]


@pytest.mark.parametrize("learner", [KSVD(5, n_nonzero_coefs=2, max_iter=6),
                                     MOD(5, n_nonzero_coefs=2, max_iter=6),
                                     MOD(5, alpha=0.1, max_iter=3)])  # fmt: skip
def test_classes_are_learned_alike_together_and_by_threads(learner, monkeypatch):
    """To the last bit."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [40, 25, 31, 40])
    X = rng.standard_normal((4, 6, 9))[y, rng.integers(6, size=len(y))]
    X = X + 0.3 * rng.standard_normal(X.shape)
    model = ClassDictionaryClassifier(learner, random_state=0)
    expected = model.fit(X, y).dictionaries_
    together = []

    def sweep_all(given, *sizes):
        together.append(len(given))
        for one in given:
            cpu.sweep_atoms(*one, *sizes)

    use_machine(monkeypatch, 3)
    monkeypatch.setattr(cpu, "sweep_atoms_all", sweep_all, raising=False)
    found = model.fit(X, y).dictionaries_
    assert not isinstance(learner, KSVD) or max(together) == 3
    for own, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own.components_, theirs.components_)
        np.testing.assert_array_equal(own.objective_, theirs.objective_)
