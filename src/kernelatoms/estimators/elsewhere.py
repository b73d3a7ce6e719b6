"""Checks of arrays, wherever they live: scikit-learn's for numpy's, the same for a device's.

scikit-learn would copy an array of a device to numpy to look at it. What it looks at is little: how
many sides there are, which type, whether all is finite.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_y,
    validate_data,
)

from kernelatoms.engine import lives_elsewhere

Array = NDArray[Any]


def check_any(value: Any, *, input_name: str, **options: Any) -> Any:
    """Return an array as ``check_array`` does, with its options, whatever machine it is of."""
    if not lives_elsewhere(value):
        return check_array(value, input_name=input_name, **options)
    return _checked(value, input_name, **options)


def validate_any(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return rows, and labels if given, as ``validate_data`` does, with its options."""
    if not lives_elsewhere(X):
        return validate_data(estimator, X, y, **options)
    reset = options.pop("reset", True)
    _check_feature_names(estimator, X, reset=reset)
    X = _checked(X, "X", **options)
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )
    if not (isinstance(y, str) and y == "no_validation"):
        y = _check_y(y, estimator=estimator)
        check_consistent_length(X, y)
    _check_n_features(estimator, X, reset=reset)
    return X if isinstance(y, str) else (X, y)


def _checked(
    value: Any,
    name: str,
    *,
    dtype: Any = "numeric",
    order: Any = None,
    accept_sparse: Any = False,
    ensure_all_finite: Any = True,
    ensure_2d: bool = True,
) -> Any:
    if hasattr(value, "toarray"):
        if accept_sparse:
            return value
        value = value.toarray()
    if ensure_2d and value.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {value.ndim}D array instead: {name} has shape {value.shape}. "
            "Reshape it: rows are signals, and one signal is of shape (1, n_features)."
        )
    if not value.size:
        least = "sample(s)" if not len(value) else "feature(s)"
        raise ValueError(
            f"Found array with 0 {least} (shape={value.shape}) while a minimum of 1 is required."
        )
    value = np.ascontiguousarray(value.astype(_type(value, dtype), copy=False), like=value)
    if value.dtype.kind == "f" and not math.isfinite(value.sum()):
        _refuse_infinite(value, name, ensure_all_finite)
    return value


def _type(value: Any, dtype: Any) -> np.dtype[Any]:
    """Return the type asked for: the array's own if it is one of several, else the first."""
    if isinstance(dtype, str) and dtype == "numeric":
        return value.dtype
    wanted = [np.dtype(kind) for kind in (dtype if isinstance(dtype, list | tuple) else [dtype])]
    return value.dtype if value.dtype in wanted else wanted[0]


def _refuse_infinite(value: Any, name: str, finite: Any) -> None:
    """Refuse NaN and infinity; a sum that overflows is neither."""
    if bool(np.isnan(value).any()):
        advice = ""
        if finite == "allow-nan":
            row = int(np.flatnonzero(np.isnan(value).any(axis=1))[0])
            advice = (
                f" (row {row} is the first): rows with missing values are coded on the CPU alone; "
                "bring them and the model there by kernelatoms.to_device(..., 'cpu'), or impute "
                "what is missing"
            )
        raise ValueError(f"Input {name} contains NaN{advice}.")
    if bool(np.isinf(value).any()):
        raise ValueError(
            f"Input {name} contains infinity or a value too large for {value.dtype!r}."
        )
