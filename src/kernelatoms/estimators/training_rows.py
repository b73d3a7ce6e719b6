"""Rows to learn from, with labels and weights: arrays, and sources whose blocks are checked."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import check_array, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y

from kernelatoms.engine import Array, is_device_array
from kernelatoms.estimators.devices.conversion import all_to_numpy, as_numpy, is_tensor
from kernelatoms.estimators.devices.source_columns import note_columns
from kernelatoms.estimators.devices.use_device import on_workers_device
from kernelatoms.estimators.validation import (
    FLOATS,
    check_any,
    dense_rows,
    looks_finite,
    validated,
)
from kernelatoms.rows import ArrayRows, RowSource
from kernelatoms.rows.routed import ClassRows
from kernelatoms.similarity.missing import rows_with_missing


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
    X, complete = validated(
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

    on_devices = source.is_distributed and _learns_on_devices(estimator)

    def checked(block: Any) -> Array:
        block = dense_rows(on_workers_device(block) if on_devices else all_to_numpy(block))
        if is_device_array(block):
            return check_any(block, dtype=FLOATS, order="C", input_name="X")
        options = {"dtype": FLOATS, "order": "C", "ensure_all_finite": finite}
        if is_finite := looks_finite(block, options):
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


def _learns_on_devices(estimator: Any) -> bool:
    parts = (estimator, getattr(estimator, "dictionary", None))
    return all(part is None or getattr(part, "_on_devices", False) for part in parts)


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
            f"give {source.how_to_collect}, or use {type(estimator).__name__} with the kernel "
            "itself."
        )


def in_type(rows: RowSource, dtype: DTypeLike) -> RowSource:
    """Return rows in a type of floats."""
    floats = np.dtype(dtype)
    if rows.dtype == floats:
        return rows
    if isinstance(rows, ArrayRows):
        return ArrayRows(rows.collect().astype(floats, copy=False))
    return rows.map(lambda block: block.astype(floats, copy=False), rows.n_features, dtype=floats)


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
        checked, y, weights = _validate_source(estimator, X, y, sample_weight, reset=True)
        return checked, *_numbered(y), weights
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
    estimator: Any, source: RowSource, y: Any, sample_weight: Any, *, reset: bool
) -> tuple[RowSource, Array, NDArray[np.float64] | None]:
    if y is None:
        raise ValueError(
            "y is None, and the source has no labels: give y, or open_rows(..., label=...)."
        )
    checked = checked_source(estimator, source, reset=reset)
    y = _check_y(y, estimator=estimator)
    if len(y) != checked.count():
        raise ValueError(f"y has {len(y):,} labels, and X has {checked.count():,} rows.")
    check_classification_targets(y)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, len(y))
        checked, y, weights = _of_weight(checked, weights), y[weights > 0], weights[weights > 0]
    return checked, y, weights


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
) -> tuple[Any, Array, NDArray[np.intp]]:
    """Return the same of a batch, which may have rows of some classes, or of one, alone."""
    if isinstance(X, RowSource):
        checked, y, _ = _validate_source(estimator, X, y, None, reset=reset)
        return checked, *np.unique(y, return_inverse=True)
    X, y, keep, _ = _labelled_rows(estimator, X, y, None, reset=reset)
    classes, labels = np.unique(y[keep], return_inverse=True)
    return X if keep.all() else X[keep], classes, labels


def _labelled_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool
) -> tuple[Array, Array, NDArray[np.bool_], NDArray[np.float64] | None]:
    """Return checked rows and labels, which rows can be learned from, and weights."""
    finite: Any = "allow-nan" if get_tags(estimator).input_tags.allow_nan else True
    (X, y), is_finite = validated(
        estimator, dense_rows(X), y, dtype=FLOATS, order="C", reset=reset, ensure_all_finite=finite
    )
    check_classification_targets(y)
    weights = None if sample_weight is None else check_weights(sample_weight, len(X))
    if weights is not None and not weights.all() and not get_tags(estimator).input_tags.pairwise:
        some = np.flatnonzero(weights)
        X, y, weights = X[some], y[some], weights[some]
    keep = np.ones(len(X), bool) if is_finite else learnable_rows(estimator, X)
    return X, y, keep, weights
