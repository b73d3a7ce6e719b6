"""Checks of arguments: each names the argument, what was wrong and what would be right."""

import functools
import inspect
import math
import warnings
from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_y,
    validate_data,
)

from kernelatoms.engine import Array, is_array, is_device_array, machine
from kernelatoms.estimators.devices.conversion import enter
from kernelatoms.features.memory import check_fits
from kernelatoms.similarity.base import plain_number
from kernelatoms.similarity.missing import rows_with_missing

FLOATS = [np.float64, np.float32]


def check_count(name: str, value: Any, low: int = 1) -> int:
    """Return a whole number of at least 1, or as little as is allowed."""
    value = plain_number(name, value)
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}.")
    if value < low:
        raise ValueError(f"{name} must be at least {low}, got {value}.")
    return int(value)


def check_real(
    name: str, value: Any, *, low: float, high: float | None = None, low_open: bool = False
) -> float:
    """Return a number between two bounds, the lower one in or out; finite without an upper one."""
    span = f"{'above' if low_open else 'at least'} {low:g}"
    if high is not None and high < np.inf:
        span += f" and at most {high:g}"
    value = plain_number(name, value)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number {span}, got {value!r}.")
    number = float(value)
    if high is None and number == np.inf:
        raise ValueError(f"{name} must be {span} and finite, got {value}.")
    inside = low < number if low_open else low <= number
    if not inside or (high is not None and number > high):
        raise ValueError(f"{name} must be {span}, got {value}.")
    return number


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return one of the given words."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {words}, got {value!r}.")
    return value


def clip_count(name: str, value: int, limit: int, reason: str, then: str = "") -> int:
    """Return the value or the limit, whichever is smaller, and warn if it was the limit."""
    if value <= limit:
        return value
    warnings.warn(
        f"{name}={value} is more than {reason} ({limit}); {then or f'{limit} is used'}.",
        UserWarning,
        stacklevel=3,
    )
    return limit


def refuse_unused(takes: Any, given: Mapping[str, Any], why: str) -> None:
    """Refuse arguments of ``takes`` that are not at their defaults; errors say why not."""
    for name, value in given.items():
        if not is_default(takes, name, value):
            default = _defaults(takes)[name].default
            raise ValueError(f"{name} {why}; leave it at its default, {default!r}.")


def is_default(takes: Any, name: str, value: Any) -> bool:
    """Whether an argument has its default value."""
    default = _defaults(takes)[name].default
    if value is None or default is None:
        return value is default
    if isinstance(value, np.floating):  # 0.01 of float32 is another number
        default = value.dtype.type(default)
    return bool(np.ndim(value) == 0 and value == default)


@functools.cache
def _defaults(takes: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(takes).parameters


def check_dictionary(name: str, value: Any, n_features: int, dtype: Any) -> Array:
    """Return a finite matrix of atoms over these features, C-ordered and of this dtype."""
    try:
        atoms = check_any(dense_rows(value, name), dtype=dtype, order="C", input_name=name)
    except TypeError as error:  # NumPy's words do not say of what
        raise TypeError(
            f"{name} must be an array of numbers, one atom per row, got {type(value).__name__}: "
            f"{error}."
        ) from error
    if atoms.shape[1] != n_features:
        turned = len(atoms) == n_features
        raise ValueError(
            f"{name} must have one column per feature: {n_features}, but its "
            f"shape is {atoms.shape}"
            + (f"; it looks transposed: pass {name}.T." if turned else ".")
        )
    return atoms


def check_codes(codes: Any, n_atoms: int) -> Any:
    """Return codes, dense or in CSR, with one column per atom."""
    codes = check_any(codes, accept_sparse="csr", dtype=FLOATS, input_name="codes")
    if codes.shape[1] != n_atoms:
        raise ValueError(
            f"codes must have one column for each of the {n_atoms} atoms, got {codes.shape[1]}."
        )
    return codes


def check_row_numbers(name: str, given: Any, n_rows: int, what: str = "") -> Array:
    """Return numbers of training rows, which a precomputed kernel has in place of rows."""
    rows: Array = given if is_array(given) else np.asarray(given)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
        raise ValueError(f"With kernel='precomputed', {name} must be {what}a list of row numbers.")
    if rows.min() < 0 or rows.max() >= n_rows:
        raise ValueError(f"{name} holds row numbers outside 0..{n_rows - 1}.")
    return rows


def check_complete(X: Array) -> None:
    """Refuse missing values."""
    rows = rows_with_missing(X)
    if len(rows):
        raise ValueError(
            f"X contains NaN in {len(rows)} of {len(X)} rows (the first is row {rows[0]}), but "
            "complete rows are needed here: impute what is missing, or leave such rows out."
        )


def check_observed(X: Array) -> None:
    """Refuse rows of which nothing is known."""
    rows = rows_with_missing(X)
    if not len(rows):
        return
    empty = rows[np.isnan(X[rows]).all(axis=1)]
    if len(empty):
        raise ValueError(
            f"X contains NaN only in row {empty[0]}"
            f"{f' and {len(empty) - 1} more' if len(empty) > 1 else ''}: a row can be coded by "
            "the values that it has, and needs at least one. Leave such rows out."
        )


def validate_new(estimator: Any, X: Any, *, complete: bool = False) -> Array:
    """Return rows to code: floats, C-ordered, NaN where a value is missing, if that may be."""
    finite: Any = True if complete else "allow-nan"
    X, is_finite = validated(
        estimator, dense_rows(X), dtype=FLOATS, order="C", reset=False, ensure_all_finite=finite
    )
    if not complete and not is_finite:
        check_observed(X)
    return X


def check_signals(X: Any) -> tuple[Array, bool]:
    """Return rows to code, and whether they are known to miss no values, without an estimator."""
    X = enter(dense_rows(X), "X_")
    options: dict[str, Any] = {"dtype": FLOATS, "order": "C", "ensure_all_finite": "allow-nan"}
    is_finite = looks_finite(X, options)
    if is_finite:
        options["ensure_all_finite"] = False
    X = check_any(X, input_name="X", **options)
    if not is_finite:
        check_observed(X)
    return X, is_finite


def wants_frame(transformer: Any) -> bool:
    """Tell whether ``transform`` is to return a data frame, by ``set_output`` or globally.

    Data frames hold no CSR array: codes are then dense, as with ``sparse_output=False``.
    """
    return bool(_get_output_config("transform", transformer)["dense"] != "default")


# Arrays of any machine. scikit-learn would copy an array of a device to numpy to look at it. What
# it looks at is little: how many sides there are, which type, whether all is finite.


def check_any(value: Any, *, input_name: str, **options: Any) -> Any:
    """Return an array as ``check_array`` does, with its options, whatever machine it is of."""
    value = enter(value, input_name + "_")
    if not is_device_array(value):
        return check_array(value, input_name=input_name, **options)
    return _checked(value, input_name, **options)


def validate_any(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return rows, and labels if given, as ``validate_data`` does, with its options."""
    return validated(estimator, X, y, **options)[0]


def validated(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> tuple[Any, bool]:
    """Return what ``validate_any`` does, and whether all rows are known to be finite."""
    if is_device_array(X):
        return _validated_on_device(estimator, X, y, **options), False
    is_finite = looks_finite(X, options)
    if is_finite:
        options["ensure_all_finite"] = False  # scikit-learn would look once more, on one thread
    return validate_data(estimator, X, y, **options), is_finite


def looks_finite(X: Any, options: Mapping[str, Any]) -> bool:
    """Whether rows that will not be converted are known to be finite; looks on all threads.

    Of rows that are not, and of small or strange ones, scikit-learn says what is wrong.
    """
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in FLOATS:
        return False
    return _type(X, options["dtype"]) == X.dtype and bool(machine(X).all_finite(X))


def _validated_on_device(estimator: Any, X: Any, y: Any, **options: Any) -> Any:
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


def dense_rows(X: Any, name: str = "X") -> Any:
    """Return a sparse array as a dense one, where that fits; anything else as it is."""
    if isinstance(X, Iterator):
        raise TypeError(
            f"{name} is a {type(X).__name__}, which gives its rows once: give an array, "
            "open_rows(...) of what can be read again and again, or its blocks to partial_fit."
        )
    if is_device_array(X) and hasattr(X, "toarray"):
        return X.toarray()
    if not scipy.sparse.issparse(X):
        return X
    n_bytes = float(np.prod(X.shape)) * (4 if X.dtype == np.float32 else 8)
    shape = " x ".join(f"{side:,}" for side in X.shape)
    check_fits(
        n_bytes, f"the {shape} values of {name}, which is sparse and dense inside,",
        "Give fewer rows, or fewer columns (sklearn.decomposition.TruncatedSVD, say).",
    )  # fmt: skip
    return X.toarray()
