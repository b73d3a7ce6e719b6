"""Checks of arguments: each names the argument, what was wrong and what would be right."""

import functools
import inspect
import math
import warnings
from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length, get_tags
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_y,
    validate_data,
)

from kernelatoms.engine import Array, is_array, is_device_array, machine
from kernelatoms.estimators.devices.conversion import as_numpy, enter, is_tensor
from kernelatoms.estimators.devices.source_columns import note_columns
from kernelatoms.features.memory import check_fits
from kernelatoms.rows import ArrayRows, RowSource
from kernelatoms.rows.routed import ClassRows
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


def complete_rows(X: Array) -> NDArray[np.bool_]:
    """Tell which rows are complete, and warn if some are not."""
    keep = np.ones(len(X), bool)
    keep[rows_with_missing(X)] = False
    n_missing = len(X) - int(np.count_nonzero(keep))
    if n_missing == len(X):
        raise ValueError(
            "X contains NaN in every row, and fit learns from complete rows only: impute what is "
            "missing (sklearn.impute)."
        )
    if n_missing:
        warnings.warn(
            f"X contains NaN in {n_missing} of {len(X)} rows; fit learns from the other "
            f"{len(X) - n_missing}. Impute what is missing (sklearn.impute) to use all.",
            UserWarning,
            stacklevel=3,
        )
    return keep


def observed_rows(X: Array) -> NDArray[np.bool_]:
    """Tell of which rows something is observed, and warn if nothing is of some."""
    keep = np.ones(len(X), bool)
    partial = rows_with_missing(X)
    if len(partial):
        keep[partial] = ~np.isnan(X[partial]).all(axis=1)
    n_empty = len(X) - int(np.count_nonzero(keep))
    if n_empty == len(X):
        raise ValueError("X contains nothing but NaN: there is nothing to learn from.")
    if n_empty:
        warnings.warn(
            f"X contains nothing but NaN in {n_empty} of {len(X)} rows; fit learns from the other "
            f"{len(X) - n_empty}.",
            UserWarning,
            stacklevel=3,
        )
    return keep


def learnable_rows(estimator: Any, X: Array) -> NDArray[np.bool_]:
    """Tell which rows an estimator learns from: those with a value, or the complete ones."""
    return observed_rows(X) if estimator._learns_missing else complete_rows(X)


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


class TrainingRows(NamedTuple):
    """Rows to learn from: their weights, if not all are 1, and whether none misses a value."""

    rows: RowSource
    weights: NDArray[np.float64] | None
    complete: bool


def validate_training(estimator: Any, X: Any, *, reset: bool = True) -> Array:
    """Return rows to learn from: floats, C-ordered, NaN where a value is missing.

    Rows with missing values are left out where the estimator cannot learn from them; estimators
    that have no use for NaN at all refuse it.
    """
    rows: Array = training_rows(estimator, X, reset=reset).rows.collect()
    return rows


def training_rows(
    estimator: Any, X: Any, sample_weight: Any = None, *, reset: bool = True
) -> TrainingRows:
    """Return the same as a source, of checked blocks where X is one, and weights.

    Rows of weight 0 are left out, but for a precomputed kernel, whose columns are the rows, too.
    No row of a source is left out because it misses values: it is learned from, or refused.
    """
    if isinstance(X, RowSource):
        return _source_to_learn_from(estimator, X, sample_weight, reset=reset)
    tags = get_tags(estimator).input_tags
    finite: Any = "allow-nan" if tags.allow_nan else True
    X, complete = _validated(
        estimator, dense_rows(X), dtype=FLOATS, order="C", reset=reset, ensure_all_finite=finite
    )
    weights = None if sample_weight is None else check_weights(sample_weight, len(X))
    if weights is not None and not tags.pairwise and not weights.all():
        some = np.flatnonzero(weights)
        X, weights = X[some], weights[some]
    if not complete:
        keep = learnable_rows(estimator, X)
        if not keep.all():
            X, weights = X[keep], None if weights is None else weights[keep]
        complete = not estimator._learns_missing or not len(rows_with_missing(X))
    return TrainingRows(ArrayRows(X), _unless_all_are_1(weights), complete)


def _source_to_learn_from(
    estimator: Any, source: RowSource, sample_weight: Any, *, reset: bool
) -> TrainingRows:
    if isinstance(source, ClassRows):  # of checked rows
        estimator.n_features_in_ = source.n_features
        checked: RowSource = source
    else:
        checked = checked_source(estimator, source, reset=reset)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, checked.count())
        checked, weights = _of_weight(checked, weights), weights[weights > 0]
    return TrainingRows(checked, _unless_all_are_1(weights), not estimator._learns_missing)


def checked_source(estimator: Any, source: RowSource, *, reset: bool) -> RowSource:
    """Return a source whose blocks are checked when they are read; columns are checked now."""
    if source.n_features is None:
        raise ValueError("X must be a source of rows with columns, and has one value per row.")
    note_columns(estimator, source, reset=reset)
    may_miss = estimator._learns_missing and get_tags(estimator).input_tags.allow_nan
    finite: Any = "allow-nan" if may_miss else True

    def checked(block: Any) -> Array:
        block = dense_rows(block)
        options = {"dtype": FLOATS, "order": "C", "ensure_all_finite": finite}
        if is_finite := _is_finite(block, options):
            options["ensure_all_finite"] = False
        rows: Array = check_array(block, input_name="X", **options)
        if is_finite or not may_miss:
            return rows
        if np.isnan(rows[rows_with_missing(rows)]).all(axis=1).any():
            raise ValueError(
                "X contains rows of nothing but NaN, and there is nothing to learn from these: "
                "leave them out of the source."
            )
        return rows

    rows = source.map(checked, source.n_features)
    if not rows.count():
        raise ValueError("X is a source without rows, and at least one is needed to learn from.")
    return rows


def _of_weight(source: RowSource, weights: NDArray[np.float64]) -> RowSource:
    """Return the rows of a source that have a weight above 0."""
    return source if weights.all() else ClassRows(source, np.where(weights > 0, 0, -1), 0)


def _unless_all_are_1(weights: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    return None if weights is None or bool((weights == 1).all()) else weights


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Return weights of rows: finite, none below 0, some above 0."""
    weights: NDArray[np.float64] = check_array(
        as_numpy(sample_weight, "sample_weight") if is_tensor(sample_weight) else sample_weight,
        dtype=np.float64,
        ensure_2d=False,
        input_name="sample_weight",
    )
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {weights.ndim}D array: sample_weight "
            "has one number per row of X."
        )
    if len(weights) != n_rows:
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}: one number per row of "
            "X."
        )
    if (weights < 0).any():
        raise ValueError(f"sample_weight must be at least 0, got {weights.min()}.")
    if not weights.any():
        raise ValueError("sample_weight is zero for every row: there is nothing to learn from.")
    return weights


def refuse_precomputed(estimator: Any, source: RowSource) -> None:
    """Refuse to learn from a source where a kernel matrix is asked for."""
    if estimator._precomputed:
        raise ValueError(
            "kernel='precomputed' needs k(train, train) in memory, and X is a source of rows: "
            f"give X.collect(), or use {type(estimator).__name__} with the kernel itself."
        )


def in_type(rows: RowSource, some: Array) -> RowSource:
    """Return rows in the type of some of them, which are all where rows are in memory."""
    if rows.dtype == some.dtype:
        return rows
    return ArrayRows(some) if isinstance(rows, ArrayRows) else in_float64(rows)


def in_float64(rows: RowSource) -> RowSource:
    """Return rows in float64."""
    if isinstance(rows, ArrayRows):
        return ArrayRows(rows.collect().astype(np.float64, copy=False))
    return rows.map(
        lambda block: block.astype(np.float64, copy=False), rows.n_features, dtype=float
    )


def validate_labelled(estimator: Any, X: Any, y: Any) -> tuple[Any, Array, NDArray[np.intp]]:
    """Return rows to learn from, the classes, and the number of the class of every row.

    Rows with missing values are left out where the estimator cannot learn from them; every class
    must keep some. Of a source, a source of checked blocks.
    """
    return validate_weighted(estimator, X, y, None)[:3]


def validate_weighted(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, Array, NDArray[np.intp], NDArray[np.float64] | None]:
    """Return the same and weights; rows of weight 0 are left out, but for a precomputed kernel."""
    if isinstance(X, RowSource):
        return _validate_source(estimator, X, y, sample_weight)
    X, y, keep, weights = _labelled_rows(estimator, X, y, sample_weight, reset=True)
    lost = np.setdiff1d(y, y[keep])
    if len(lost):
        if estimator._learns_missing:
            raise ValueError(
                f"X contains nothing but NaN in the rows of class {lost.tolist()[0]!r}."
            )
        raise ValueError(
            f"X contains NaN in every row of class {lost.tolist()[0]!r}, and fit learns from "
            "complete rows only: impute what is missing (sklearn.impute)."
        )
    if not keep.all():
        X, y = X[keep], y[keep]
        weights = None if weights is None else weights[keep]
    return X, *_numbered(y), weights


def _validate_source(
    estimator: Any, source: RowSource, y: Any, sample_weight: Any
) -> tuple[RowSource, Array, NDArray[np.intp], NDArray[np.float64] | None]:
    if y is None:
        raise ValueError(
            "y is None, and the source has no labels: give y, or open_rows(..., label=...)."
        )
    checked = checked_source(estimator, source, reset=True)
    y = _check_y(y, estimator=estimator)
    if len(y) != checked.count():
        raise ValueError(f"y has {len(y):,} labels, and X has {checked.count():,} rows.")
    check_classification_targets(y)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, len(y))
        checked, y, weights = _of_weight(checked, weights), y[weights > 0], weights[weights > 0]
    return checked, *_numbered(y), weights


def _numbered(y: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return the classes, and the number of the class of every label."""
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "y must hold at least two classes to tell apart, but every label is "
            f"{classes.tolist()[0]!r}: the classifier can't train on one class."
        )
    return classes, labels


def validate_batch(
    estimator: Any, X: Any, y: Any, *, reset: bool
) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return the same of a batch, which may have rows of some classes, or of one, alone."""
    X, y, keep, _ = _labelled_rows(estimator, X, y, None, reset=reset)
    classes, labels = np.unique(y[keep], return_inverse=True)
    return X if keep.all() else X[keep], classes, labels


def _labelled_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool
) -> tuple[Array, Array, NDArray[np.bool_], NDArray[np.float64] | None]:
    """Return checked rows and labels, which rows can be learned from, and weights."""
    finite: Any = "allow-nan" if get_tags(estimator).input_tags.allow_nan else True
    (X, y), is_finite = _validated(
        estimator, dense_rows(X), y, dtype=FLOATS, order="C", reset=reset, ensure_all_finite=finite
    )
    check_classification_targets(y)
    weights = None if sample_weight is None else check_weights(sample_weight, len(X))
    if weights is not None and not weights.all() and not get_tags(estimator).input_tags.pairwise:
        some = np.flatnonzero(weights)
        X, y, weights = X[some], y[some], weights[some]
    keep = np.ones(len(X), bool) if is_finite else learnable_rows(estimator, X)
    return X, y, keep, weights


def validate_new(estimator: Any, X: Any, *, complete: bool = False) -> Array:
    """Return rows to code: floats, C-ordered, NaN where a value is missing, if that may be."""
    finite: Any = True if complete else "allow-nan"
    X, is_finite = _validated(
        estimator, dense_rows(X), dtype=FLOATS, order="C", reset=False, ensure_all_finite=finite
    )
    if not complete and not is_finite:
        check_observed(X)
    return X


def check_signals(X: Any) -> tuple[Array, bool]:
    """Return rows to code, and whether they are known to miss no values, without an estimator."""
    X = enter(dense_rows(X), "X_")
    options: dict[str, Any] = {"dtype": FLOATS, "order": "C", "ensure_all_finite": "allow-nan"}
    is_finite = _is_finite(X, options)
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
    return _validated(estimator, X, y, **options)[0]


def _validated(
    estimator: Any, X: Any, y: Any = "no_validation", **options: Any
) -> tuple[Any, bool]:
    """Return what ``validate_any`` does, and whether all rows are known to be finite."""
    if is_device_array(X):
        return _validated_on_device(estimator, X, y, **options), False
    is_finite = _is_finite(X, options)
    if is_finite:
        options["ensure_all_finite"] = False  # scikit-learn would look once more, on one thread
    return validate_data(estimator, X, y, **options), is_finite


def _is_finite(X: Any, options: Mapping[str, Any]) -> bool:
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
