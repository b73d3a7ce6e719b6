"""What a model answers is decided by its parameters and fitted attributes, not by its past.

One instance goes from fit to fit, used in between, and answers as a fresh one does each time; and a
model that has been used answers as one that has not, whatever is set, copied or saved meanwhile.
"""

import ast
import copy
import dataclasses
import pickle
import warnings
from itertools import pairwise
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, clone

import kernelatoms
from every_estimator import ESTIMATORS
from half_blind import HalfBlind, half_blind_search
from kernelatoms import (
    KSAD,
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    CRCClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    FillFromNearest,
    FillToLearn,
    KernelCodec,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    KSADClassifier,
    LCKSVDClassifier,
    SparseCoder,
    SRCClassifier,
    UnitRows,
)
from kernelatoms.files import load_model, save_model

LEARNS = {"n_atoms": 6, "max_iter": 2, "random_state": 0}
KERNELS = [
    {"gamma": 0.2},
    {"kernel": "poly", "degree": 2},
    {"kernel": "poly", "degree": 3, "coef0": 0.5},
    {"kernel": "linear"},
    {"kernel": "mahalanobis", "gamma": 0.1},
]
LOCAL = {"n_neighbors": 7, "kernel": "rbf"}
APPROXIMATE = {**LOCAL, "search": "approximate"}
REPRESENTATIONS = [
    {"kernel": "rbf"},
    {"kernel": "rbf", "projection": "kpca"},
    {"kernel": "rbf", "projection": "kfda"},
    {"kernel": "rbf", "projection": None},
    {"residual_norm": "l1"},
    {"residual_norm": "l1", "kernel": "rbf", "projection": "identity"},
    {"residual_norm": "l1", "kernel": "rbf", "projection": "kpca", "n_neighbors": 5},
    LOCAL,
    {**LOCAL, "distance": "l1"},
    {**LOCAL, "distance": "correlation"},
    {**LOCAL, "n_coarse": 12, "distance": "l1"},
    {**LOCAL, "n_coarse": 12, "distance": "l1", "coarse_distance": "linf"},
    {**APPROXIMATE},
    {**APPROXIMATE, "distance": "correlation"},
    {**APPROXIMATE, "random_state": 1},
    {**APPROXIMATE, "random_state": 1, "distance": "l1", "n_coarse": 12},
    {"normalize": False},
    {"calibrate": True},
]
#: What is not at its default, of every estimator, and values that lead to other code.
WAYS = [
    (KSVD(**LEARNS), [{}, {"n_nonzero_coefs": 2}, {"selection": "ols"}, {"n_atoms": 0.1}]),
    (
        MOD(**LEARNS),
        [{}, {"alpha": 0.1}, {"alpha": 0.2, "positive": True}, {"n_nonzero_coefs": 2}],
    ),
    (KernelKSVD(**LEARNS), [{}, *KERNELS, {"coordinates": 0.1}, {"selection": "ols"}]),
    (KernelMOD(**LEARNS), [{}, *KERNELS, {"coordinates": KernelLinearizer(n_landmarks=9)}]),
    (
        KSCDL(**LEARNS),
        [{}, *KERNELS[:-1], {"alpha": 0.02}, {"transform_n_nonzero_coefs": 2}],
    ),
    (KSAD(**LEARNS), [{}, *KERNELS, {"l1_weight": 0.1}]),
    (
        KernelLinearizer(n_landmarks=12, random_state=0),
        [{}, *KERNELS, {"n_components": 3}, {"dtype": "float32"}, {"sampling": "kmeans"}],
    ),
    (SparseCoder(np.eye(5)), [
        {}, {"method": "lasso", "alpha": 0.1}, {"method": "ridge", "mu": 0.1},
        {"kernel": "rbf", "n_nonzero_coefs": 2},
    ]),
    (ClassDictionaryClassifier(KSVD(4, max_iter=2), random_state=0), [
        {}, {"scheme": "collective"}, {"n_neighbors": 3}, {"dictionary": MOD(3, max_iter=2)},
        {"dictionary": KernelKSVD(3, max_iter=2)}, {"calibrate": True},
    ]),
    (CRCClassifier(mu=0.1, random_state=0), [{}, *REPRESENTATIONS, {"mu": 0.5}, {"mu": "search"}]),
    (
        SRCClassifier(random_state=0),
        [{}, *REPRESENTATIONS[::4], {"alpha": 0.1}, {"n_nonzero_coefs": 3}],
    ),
    (
        DKSVDClassifier(6, max_iter=2, init_max_iter=2, random_state=0),
        [{}, {"label_weight": 0.0}, {"calibrate": True}],
    ),
    (
        LCKSVDClassifier(6, max_iter=2, init_max_iter=2, random_state=0),
        [{}, {"variant": 1}, {"class_weight": "balanced"}],
    ),
    (
        FDDLClassifier(2, max_iter=1, init_max_iter=1, random_state=0),
        [{}, {"decision": "global"}, {"mean_weight": 0.1}],
    ),
    (KSADClassifier(6, max_iter=2, random_state=0), [
        {}, {"distance": "l2"}, {"within_class_metric": False}, {"kernel": "poly", "degree": 2},
        {"search": "approximate"}, {"search": "approximate", "distance": "l2"},
        {"search": "approximate", "random_state": 1}, {"calibrate": True},
    ]),
    (KernelCodec(model="lags"), [{}, {"max_error": 0.5}]),
    (FillFromNearest(3, random_state=0), [{}, {"n_neighbors": 1}, {"max_rows": 20}]),
    (FillToLearn(), [{}]),
    (UnitRows(), [{}, {"offset": 0.5}]),
]  # fmt: skip
NAMES = [type(estimator).__name__ for estimator, _ in WAYS]
# What they are asked; of classifiers, what ``predict`` and ``score`` go by.
USES = (
    "transform", "predict_proba", "decision_function", "codes", "errors", "kneighbors", "explain",
)  # fmt: skip


def test_every_estimator_is_here():
    assert {type(estimator) for estimator, _ in WAYS} == {*map(type, ESTIMATORS), SparseCoder}


def data_sets():
    """Return rows and labels, each differing from those before in labels, rows, type or width."""
    rng = np.random.default_rng(0)
    rows, other = rng.standard_normal((24, 4)), rng.standard_normal((20, 4))
    two, three = np.repeat([0, 1], 12), np.repeat([0, 1, 2], 8)
    return [
        (rows, two),
        (rows, three),
        (rows, three[::-1] + 1),
        (rows[::-1].copy(), np.arange(24) % 2),
        (other, np.arange(20) % 3),
        (other.astype(np.float32), np.arange(20) % 3),
        (rng.standard_normal((20, 5)), np.arange(20) % 2),
    ]


DATA = data_sets()
# Every change of data with the first way, then some of them with each of the others.
N_SOME = 2


def fitted(estimator, X, y):
    if hasattr(estimator, "dictionary") and isinstance(estimator, SparseCoder):
        estimator.set_params(dictionary=np.eye(X.shape[1]))
    return quietly(estimator.fit, X, y)


def quietly(call, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args)


def answers(model, X, _):
    """Return what a model says of some rows, by method; the error where it refuses."""
    found, X = {}, X[::5]
    for name in USES:
        if hasattr(model, name):
            found[name] = said(getattr(model, name), X)
    if hasattr(model, "inverse_transform"):
        width = getattr(model, "n_atoms_", None) or getattr(model, "n_components_", X.shape[1])
        codes = np.random.default_rng(1).standard_normal((4, width)).astype(X.dtype)
        found["inverse_transform"] = said(model.inverse_transform, codes)
    return found


def said(call, *args):
    try:
        return quietly(call, *args)
    except (ValueError, TypeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


def attributes(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def bits(value):
    """Return a value in a form that two equal ones share, to the last bit."""
    if scipy.sparse.issparse(value):
        return [bits(part) for part in (value.data, value.indices, value.indptr)]
    if isinstance(value, np.ndarray) and value.dtype != object:
        return (value.shape, value.dtype.str, value.tobytes())
    if isinstance(value, BaseEstimator):
        return type(value), bits({**value.get_params(deep=False), **attributes(value)})
    if isinstance(value, dict):
        return {name: bits(part) for name, part in value.items()}
    if dataclasses.is_dataclass(value):
        return bits({part.name: getattr(value, part.name) for part in dataclasses.fields(value)})
    if isinstance(value, list | tuple):
        return [bits(part) for part in value]
    if isinstance(value, str | int | float | bool | np.generic | type(None)):
        return repr(value)
    return pickle.dumps(value)


def same(found, expected, told):
    assert found.keys() == expected.keys(), told
    for name, value in expected.items():
        assert bits(found[name]) == bits(value), (*told, name)


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


def clone_of(changes):
    return {name: clone(value, safe=False) for name, value in changes.items()}


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
        held = bits(vars(model))
        found = answers(model, *DATA[1])
        assert bits(vars(model)) == held
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
    assert len(made) == 1
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
    found = answers(model, *DATA[1])
    same(answers(pickle.loads(pickle.dumps(model)), *DATA[1]), found, ())


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


def test_what_is_remembered_is_made_of_what_is_compared_alone():
    """A maker that is no function of its module could see what its key leaves out."""
    calls = []
    for path in Path(kernelatoms.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text())
        own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        own |= {alias.asname or alias.name for node in tree.body
                if isinstance(node, ast.ImportFrom) for alias in node.names}  # fmt: skip
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "remember":
                maker = node.args[1]
                name = maker.value if isinstance(maker, ast.Attribute) else maker
                assert getattr(name, "id", None) in own, (path, node.lineno)
                calls.append(path.name)
    assert len(calls) >= 7
