"""What tells two calls of ``fit`` apart, as plain values: class, parameters, rows, labels, weights.

Large values are told by shape, type and a checksum. Parameters without a part in learning are left
out.
"""

import inspect
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator

from kernelatoms.engine import is_array, to_numpy
from kernelatoms.estimators.devices.border import fitted_names
from kernelatoms.estimators.devices.conversion import as_numpy, is_tensor, place_of
from kernelatoms.estimators.devices.use_device import chosen_device
from kernelatoms.rows import RowSource
from kernelatoms.rows.numbers import checksum

# They say what transform returns.
_WITHOUT_PART = ("sparse_output",)
# Parameters may hold themselves.
_DEEPEST = 20


def fit_identity(
    estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, *, goes_on: bool
) -> dict[str, Any]:
    """Return what a fit of these rows is made of; ``goes_on``: from the last fit."""
    from kernelatoms import __version__

    start = None
    if goes_on and hasattr(estimator, "n_features_in_"):
        start = _crc(_described({name: vars(estimator)[name] for name in fitted_names(estimator)}))
    return {
        "version": __version__,
        "class": _name_of(type(estimator)),
        "parameters": _parameters(estimator),
        "rows": data_identity(X),
        "labels": None if y is None else data_identity(y),
        "weights": None if sample_weight is None else data_identity(sample_weight),
        "goes_on_from": start,
        "device": place_of(X) if is_tensor(X) else str(chosen_device() or "cpu"),
    }


def data_identity(data: Any) -> dict[str, Any]:
    """Return what tells rows or labels apart: their own ``identity()``, or shape and checksum."""
    if hasattr(data, "identity"):
        return dict(data.identity())
    if scipy.sparse.issparse(data):
        rows = data.tocsr()
        parts = [array_identity(part) for part in (rows.data, rows.indices, rows.indptr)]
        return {"shape": list(rows.shape), "type": f"sparse {rows.dtype}", "crc32": _crc(parts)}
    if is_tensor(data):
        return array_identity(as_numpy(data, "X"))
    return array_identity(data)


def array_identity(data: Any) -> dict[str, Any]:
    """Return shape, type and checksum of what is an array, or can be one."""
    if isinstance(data, RowSource):
        return data.identity()
    array = to_numpy(data) if is_array(data) else np.asarray(data)
    told = {"shape": list(array.shape), "type": array.dtype.name}
    if array.dtype.kind in "OU":  # texts: a data frame's may have any width
        texts = "\0".join(f"{type(value).__name__} {value}" for value in array.ravel().tolist())
        return {**told, "type": "texts", "crc32": zlib.crc32(texts.encode(errors="replace"))}
    crc = 0
    step = max(1, (1 << 24) // max(1, array[:1].nbytes)) if array.ndim else 1
    for start in range(0, len(array) if array.ndim else 1, step):  # no copy of it all
        crc = checksum(array[start : start + step] if array.ndim else array, crc)
    return {**told, "crc32": crc}


def _parameters(estimator: Any) -> dict[str, Any]:
    given = estimator.get_params(deep=False)
    return {name: _described(value) for name, value in given.items() if name not in _WITHOUT_PART}


def _described(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST or value is None or isinstance(value, bool | int | float | str):
        return value if depth <= _DEEPEST else "..."
    if isinstance(value, np.generic):
        return value.item() if value.dtype.kind in "biufU" else str(value)
    if isinstance(value, np.random.RandomState):
        return {"RandomState": _crc([str(part) for part in value.get_state(legacy=False).items()])}
    if isinstance(value, np.random.Generator):
        return {"Generator": _crc(str(value.bit_generator.state))}
    if is_array(value) or is_tensor(value) or scipy.sparse.issparse(value):
        return data_identity(value)
    if isinstance(value, Mapping):
        return {str(key): _described(part, depth + 1) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_described(part, depth + 1) for part in value]
    if inspect.isroutine(value) or isinstance(value, type):
        return _name_of(value)
    if isinstance(value, BaseEstimator):
        told = _parameters(value)
        fitted = {name: vars(value)[name] for name in fitted_names(value)}
        return {"class": _name_of(type(value)), **told, **_described(fitted, depth + 1)}
    held = getattr(value, "__dict__", None) or {
        name: getattr(value, name) for name in getattr(type(value), "__slots__", ())
    }
    return {"class": _name_of(type(value)), **_described(held, depth + 1)}


def _name_of(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', repr(thing))}"


def _crc(told: Any) -> int:
    return zlib.crc32(repr(told).encode())
