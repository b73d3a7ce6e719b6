"""What a model answers is decided by its parameters and fitted attributes, not by its past.

One instance goes from fit to fit, used in between, and answers as a fresh one does each time; and a
model that has been used answers as one that has not, whatever is set, copied or saved meanwhile.
"""

import copy
import pickle
from itertools import pairwise

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from answers import DATA, answers, attributes, bits, clone_of, fitted, same
from every_estimator import ESTIMATORS, LEARNS, WAYS
from half_blind import HalfBlind, half_blind_search
from kernelatoms import (
    KSVD,
    CRCClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    KSADClassifier,
    SparseCoder,
    SRCClassifier,
)
from kernelatoms.files import load_model, save_model

NAMES = [type(estimator).__name__ for estimator, _ in WAYS]


def test_every_estimator_is_here():
    assert {type(estimator) for estimator, _ in WAYS} == {*map(type, ESTIMATORS), SparseCoder}


# Every change of data with the first way, then some of them with each of the others.
N_SOME = 2


@pytest.fixture(autouse=True)
def search(monkeypatch):
    """Let approximate search miss half of the rows, which half the seed says."""
    half_blind_search(monkeypatch)


def journey(ways):
    """Yield changes of parameters and data sets such that one step changes one of them."""
    for n, changes in enumerate(ways):
        for step in range(len(DATA) if n == 0 else N_SOME):
            yield changes, (step + n * (N_SOME - 1) - (n > 0)) % len(DATA)


@pytest.mark.parametrize(("estimator", "ways"), WAYS, ids=NAMES)
def test_fitted_anew_is_as_fresh(estimator, ways):
    model, given = clone(estimator), estimator.get_params(deep=False)
    for changes, i in journey(ways):
        fresh = fitted(clone(estimator).set_params(**clone_of(changes)), *DATA[i])
        fitted(model.set_params(**{**given, **clone_of(changes)}), *DATA[i])
        told = (changes, i)
        same(attributes(model), attributes(fresh), told)
        same(answers(model, *DATA[i]), answers(fresh, *DATA[i]), told)


@pytest.mark.parametrize(("estimator", "ways"), WAYS, ids=NAMES)
def test_parameters_set_after_fit_meet_nothing_older(estimator, ways):
    """A model that was used answers as one that was not, with what is set in between."""
    given = estimator.get_params(deep=False)
    for first, second in pairwise([*ways, ways[0]]):
        used = fitted(clone(estimator).set_params(**clone_of(first)), *DATA[1])
        kept = pickle.dumps(used)
        answers(used, *DATA[1])
        for changes in (second, first):
            changed = {**given, **clone_of(changes)}
            changed["dictionary"] = used.get_params(deep=False).get("dictionary")
            changed = {name: value for name, value in changed.items() if name in given}
            unused = pickle.loads(kept).set_params(**changed)
            used.set_params(**changed)
            same(answers(used, *DATA[1]), answers(unused, *DATA[1]), (first, changes))


@pytest.mark.parametrize(("estimator", "ways"), WAYS, ids=NAMES)
def test_copies_answer_alike_whenever_they_are_made(estimator, ways, tmp_path):
    for changes in ways:
        model = fitted(clone(estimator).set_params(**clone_of(changes)), *DATA[1])
        before = [pickle.loads(pickle.dumps(model))]
        held = bits(model.__getstate__())
        found = answers(model, *DATA[1])
        assert bits(model.__getstate__()) == held
        path = tmp_path / "model"
        joblib.dump(model, path)
        after = [copy.copy(model), copy.deepcopy(model), joblib.load(path)]
        for one in [*before, *after]:
            same(answers(one, *DATA[1]), found, (changes,))


SEARCHES = [
    CRCClassifier("rbf", mu=0.1, n_neighbors=7, search="approximate"),
    SRCClassifier("rbf", n_neighbors=7, search="approximate"),
    KSADClassifier(6, max_iter=2, search="approximate"),
]


@pytest.mark.parametrize("state", [None, 3, "RandomState"])
@pytest.mark.parametrize("estimator", SEARCHES, ids=lambda one: type(one).__name__)
def test_a_model_has_one_index(estimator, state, monkeypatch, tmp_path):
    """Its seed is drawn by fit, and so it is the same in every call, copy and file."""
    state = np.random.RandomState(3) if state == "RandomState" else state
    made = []
    monkeypatch.setattr(HalfBlind, "prepare", lambda index: made.append(index))
    model = fitted(clone(estimator).set_params(random_state=state), *DATA[1])
    found = answers(model, *DATA[1])
    for _ in range(2):
        same(answers(model, *DATA[1]), found, ())
    assert [index.seed for index in made] == [model.search_seed_]
    save_model(model, tmp_path / "model")
    for one in (pickle.loads(pickle.dumps(model)), load_model(tmp_path / "model")[0]):
        same(answers(one, *DATA[1]), found, ())
    assert len(made) == 3
    if state is None:
        seeds = {fitted(clone(model), *DATA[1]).search_seed_ for _ in range(5)}
        assert len(seeds) > 1


@pytest.mark.parametrize("estimator", SEARCHES, ids=lambda one: type(one).__name__)
def test_search_that_is_set_later_is_the_same_each_time(estimator):
    model = fitted(clone(estimator).set_params(search="exact"), *DATA[1])
    model.set_params(search="approximate")
    for state in (None, 3, 4):
        model.set_params(random_state=state)
        found = answers(model, *DATA[1])
        same(answers(pickle.loads(pickle.dumps(model)), *DATA[1]), found, (state,))


def test_a_state_that_is_set_or_an_attribute_that_is_deleted_leaves_nothing_older():
    X = DATA[0][0]
    model, other = (KSVD(6, random_state=0).fit(rows) for rows in (X[::2], X[1::2]))
    model.transform(X)
    model.__setstate__(other.__getstate__())
    assert (model.transform(X) != other.transform(X)).nnz == 0
    del model.components_
    with pytest.raises(AttributeError, match="components_"):
        model.transform(X)


def test_fitted_attributes_decide():
    """Also if they are set by hand, or parameters choose among them, after a model was used."""
    coarse = {"n_coarse": 12, "coarse_distance": "correlation", "normalize": False}
    model = fitted(clone(SEARCHES[0]).set_params(distance="l2", **coarse), *DATA[1])
    for change in ({"n_coarse": None}, {"n_coarse": 12}):
        answers(model, *DATA[1])
        model.set_params(**change)
        unused = pickle.loads(pickle.dumps(model))
        same(answers(model, *DATA[1]), answers(unused, *DATA[1]), (change,))
    model = fitted(CRCClassifier(mu=0.1), *DATA[1])
    for name, value in {"mu_": 5.0, "labels_": model.labels_[::-1].copy()}.items():
        answers(model, *DATA[1])
        setattr(model, name, value)
        unused = pickle.loads(pickle.dumps(model))
        same(answers(model, *DATA[1]), answers(unused, *DATA[1]), (name,))


@pytest.mark.parametrize(
    "estimator",
    [CRCClassifier(mu=0.1), KSVD(**LEARNS), KernelKSVD(**LEARNS), KernelLinearizer(n_landmarks=9)],
    ids=lambda one: type(one).__name__,
)
def test_a_model_file_of_a_used_model(estimator, tmp_path):
    model = fitted(clone(estimator), *DATA[0])
    answers(model, *DATA[0])
    fitted(model, *DATA[1])
    found = answers(model, *DATA[1])
    save_model(model, tmp_path / "model")
    same(answers(load_model(tmp_path / "model")[0], *DATA[1]), found, ())


class Scaled:
    """A kernel whose scale may be edited between fits."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, X, Y):
        return self.scale * np.exp(-((X[:, None] - Y) ** 2).sum(axis=2))


@pytest.mark.parametrize("kind", [CRCClassifier, SRCClassifier, KernelLinearizer, KernelMOD])
def test_a_kernel_edited_between_fits(kind):
    kernel = Scaled(1.0)
    model = fitted(kind(kernel=kernel, random_state=0), *DATA[0])
    answers(model, *DATA[0])
    kernel.scale = 3.0
    fresh = fitted(kind(kernel=kernel, random_state=0), *DATA[0])
    same(answers(fitted(model, *DATA[0]), *DATA[0]), answers(fresh, *DATA[0]), ())
