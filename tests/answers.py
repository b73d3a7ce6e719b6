"""What fitted estimators answer, on small data sets, and whether two answers are the same bits."""

import dataclasses
import pickle
import warnings

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, clone

from kernelatoms import SparseCoder

# What they are asked; of classifiers, what ``predict`` and ``score`` go by.
USES = (
    "transform", "predict_proba", "decision_function", "codes", "errors", "kneighbors", "explain",
)  # fmt: skip


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
    if isinstance(value, np.random.RandomState):
        name, words, *numbers = value.get_state()
        return name, bits(words), [float(number) for number in numbers]
    return pickle.dumps(value)


def same(found, expected, told):
    assert found.keys() == expected.keys(), told
    for name, value in expected.items():
        assert bits(found[name]) == bits(value), (*told, name)


def clone_of(changes):
    return {name: clone(value, safe=False) for name, value in changes.items()}
