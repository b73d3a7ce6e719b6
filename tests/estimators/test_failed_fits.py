"""A fit that ends early, wherever that is, leaves the estimator as it was."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest

from answers import answers, same
from draws import later
from every_estimator import ENTRIES, make
from kernelatoms import (
    KSVD,
    MOD,
    KernelLinearizer,
    SparseCoder,
)
from kernelatoms.engine.cpu import threads
from kernelatoms.estimators.maps import linearizer
from kernelatoms.estimators.registry import names_of

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((60, 5)), RNG.standard_normal((50, 7))
FEW = {"n_atoms": 8, "max_iter": 2, "random_state": 0}
ESTIMATORS = {
    **{name: make(name, **ENTRIES[name].small)
       for name in names_of("learners", "class dictionaries", "supervised dictionaries")},
    "KSVD, warm": KSVD(n_nonzero_coefs=2, warm_start=True, **FEW),
    "MOD, l1": MOD(alpha=0.1, **FEW),
}  # fmt: skip


class Failure(BaseException):
    pass


def failing_after(left, share):
    """Return a way to share work that fails after so many uses."""

    def fail(*args):
        nonlocal left
        left -= 1
        if left < 0:
            raise Failure
        share(*args)

    return fail


def failures(monkeypatch, work):
    """Do the work again and again; it fails at its first, second, ... use of threads."""
    share, n_calls = threads._share, 0
    while True:
        monkeypatch.setattr(threads, "_share", failing_after(n_calls, share))
        try:
            work()
        except Failure:
            n_calls += 1
            yield
        else:
            break
    monkeypatch.setattr(threads, "_share", share)
    assert n_calls > 0


def contents(estimator):
    return pickle.dumps(copy.deepcopy(estimator.__getstate__()))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("rows", [X[:40], later(Y)], ids=["as wide", "wider"])
def test_fit(name, rows, monkeypatch):
    fresh = copy.deepcopy(ESTIMATORS[name])
    fitted = copy.deepcopy(ESTIMATORS[name]).fit(X, np.arange(60) % 2)
    labels = np.arange(len(rows)) % 3
    for estimator in (fresh, fitted):
        if name == "KSVD, warm" and rows is Y and estimator is fitted:
            continue  # refused
        before, trial = contents(estimator), copy.deepcopy(estimator)
        for _ in failures(monkeypatch, partial(trial.fit, rows, labels)):
            assert contents(trial) == before


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_that_was_used_answers_as_before(name, monkeypatch):
    """By the fitted state of its attributes, not by one of the fit that failed."""
    model = copy.deepcopy(ESTIMATORS[name]).fit(X, np.arange(60) % 2)
    expected, n_failed = answers(model, X, None), 0
    for left in (0, 1, 4):
        trial = copy.deepcopy(model)
        answers(trial, X, None)
        with monkeypatch.context() as patch:
            patch.setattr(threads, "_share", failing_after(left, threads._share))
            try:
                trial.fit(X[:40], np.arange(40) % 3)
            except Failure:
                n_failed += 1
            else:
                continue
        same(answers(trial, X, None), expected, (left,))
    assert n_failed > 1


@pytest.mark.parametrize("name", ["MOD", "MOD, l1", "KSCDL"])
@pytest.mark.parametrize("first", [0, 4, 60])
def test_partial_fit(name, first, monkeypatch):
    """Also while rows still become atoms."""
    estimator = copy.deepcopy(ESTIMATORS[name])
    if first:
        estimator.partial_fit(X[:first])
    before, trial = contents(estimator), copy.deepcopy(estimator)
    for _ in failures(monkeypatch, partial(trial.partial_fit, X[10:50])):
        assert contents(trial) == before


def test_a_linearizer(monkeypatch):
    mapper = KernelLinearizer(n_landmarks=10, random_state=0).fit(X)
    before = contents(mapper)
    monkeypatch.setattr(linearizer, "ridge_preimage", lambda _: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):
        mapper.fit(Y)
    assert contents(mapper) == before


def test_a_coder():
    coder = SparseCoder(np.eye(5), n_nonzero_coefs=2).fit(X)
    before = contents(coder)
    with pytest.raises(ValueError, match="one column per feature"):
        coder.fit(Y)
    assert contents(coder) == before
