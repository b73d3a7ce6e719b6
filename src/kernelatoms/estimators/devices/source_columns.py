"""The columns of a source of rows, as scikit-learn looks at them: how many, and their names."""

from typing import Any

from sklearn.utils.validation import _check_feature_names, _check_n_features

from kernelatoms.rows import RowSource


class _Columns:
    def __init__(self, source: RowSource) -> None:
        self.shape = (1, source.n_features)
        if source.feature_names is not None:
            self.columns = source.feature_names


def note_columns(estimator: Any, source: RowSource, *, reset: bool = True) -> None:
    """Remember the columns of a source in an estimator, or compare them with those of ``fit``."""
    columns = _Columns(source)
    _check_feature_names(estimator, columns, reset=reset)
    _check_n_features(estimator, columns, reset=reset)
