"""The columns of a source of rows: how many, and their names, as scikit-learn checks an array's."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_n_features

from kernelatoms.rows import RowSource


class _Columns:
    def __init__(self, n_columns: int | None) -> None:
        self.shape = (1, n_columns)


def note_columns(estimator: Any, source: RowSource, *, reset: bool = True) -> None:
    """Remember the columns of a source in an estimator, or compare them with those of ``fit``."""
    _check_n_features(estimator, _Columns(source.n_features), reset=reset)
    names, known = source.feature_names, getattr(estimator, "feature_names_in_", None)
    if reset:
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        elif known is not None:
            del estimator.feature_names_in_
        return
    if names is None or known is None:
        if names is not known:
            has, was = ("no names", "with") if names is None else ("names", "without")
            warnings.warn(
                f"The columns of X have {has}, but {type(estimator).__name__} was fitted {was} "
                "feature names",
                UserWarning,
                stacklevel=2,
            )
        return
    for number, (name, before) in enumerate(zip(names, known, strict=True)):
        if name != before:
            raise ValueError(
                "X must have the columns of fit in the same order: column "
                f"{number} is {name!r} and was {before!r}."
            )
