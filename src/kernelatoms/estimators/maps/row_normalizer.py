"""``RowNormalizer``: every row to norm 1, by what is observed of it."""

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.preprocessing import normalize
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from kernelatoms.engine import Array, is_device_array
from kernelatoms.estimators.base import Transformer
from kernelatoms.estimators.state_checks import check_features
from kernelatoms.estimators.validation import FLOATS, check_real, dense_rows, validate_any
from kernelatoms.similarity.missing import energy_from_parts, rows_with_missing


class RowNormalizer(Transformer):
    """Scale every row to norm 1; missing values (NaN) stay missing.

    What ``sklearn.preprocessing.Normalizer`` does, for rows that may miss values: their norm is
    estimated from the n_O of n values that are observed, |x|^2 = n / n_O sum_O x_i^2. Rows of
    zeros stay as they are, and so do rows of which nothing is observed. Sparse rows stay sparse,
    unless there is an offset or a missing value.

    Parameters
    ----------
    offset : float or None
        Append a column of this value, above 0, before rows are scaled: the length of a row becomes
        an angle, which helps where rows have few columns. None: no such column.

    Attributes
    ----------
    n_features_in_ : int
        How many columns rows have.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import RowNormalizer
    >>> print(RowNormalizer().fit_transform([[3.0, 4.0], [0.0, 2.0]]))
    [[0.6 0.8]
     [0.  1. ]]
    >>> print(RowNormalizer().fit_transform([[1.0, np.nan, 1.0, 1.0]]))
    [[0.5 nan 0.5 0.5]]
    >>> print(RowNormalizer(offset=2.0).fit_transform([[1.0, 2.0, 0.0]]).round(2))
    [[0.33 0.67 0.   0.67]]
    """

    _on_devices = True

    _fits_columns_alone = True

    def __init__(self, offset: float | None = None) -> None:
        self.offset = offset

    def _fit(self, X: Any) -> None:
        self._check_offset()
        self._checked(X, reset=True)

    def _transform(self, X: Any) -> Any:
        check_is_fitted(self)
        offset = self._check_offset()
        X = self._checked(X, reset=False)
        if scipy.sparse.issparse(X):
            if offset is None and np.isfinite(X.data).all():
                return normalize(X)  # stays sparse
            X = dense_rows(X)
        # Over the largest value first: squares of very large and very small ones are no numbers.
        sizes = np.abs(X)
        largest = sizes.max(axis=1) if is_device_array(X) else np.fmax.reduce(sizes, axis=1)
        largest = largest.astype(np.float64)
        largest = np.maximum(largest, offset or 0.0)  # NaN, of rows that hold nothing else, stays
        largest[largest == 0] = 1.0
        units = np.empty((len(X), X.shape[1] + (offset is not None)), X.dtype, like=X)
        units[:, : X.shape[1]] = X / largest[:, None]
        squares = _squared_norms(units[:, : X.shape[1]])
        if offset is not None:
            units[:, -1] = offset / largest
            squares += (offset / largest) ** 2
        squares[squares == 0] = 1.0
        units /= np.sqrt(squares)[:, None]
        return units

    def _checked(self, X: Any, *, reset: bool) -> Any:
        return validate_any(
            self, X, accept_sparse="csr", dtype=FLOATS, ensure_all_finite="allow-nan", reset=reset
        )

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns of what ``transform`` returns.

        Parameters
        ----------
        input_features : array of str of shape (n_features,), or None
            Names of the columns of rows; by default those that ``fit`` saw, or x0, x1, ...

        Returns
        -------
        names : object array of str
            The same names, and "offset" if there is one.
        """
        check_is_fitted(self)
        names: Array = np.asarray(_check_feature_names_in(self, input_features), dtype=object)
        return names if self.offset is None else np.append(names, "offset")

    def _check_offset(self) -> float | None:
        if self.offset is None:
            return None
        return check_real("offset", self.offset, low=0, low_open=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other; see ``fitted``."""
        self._check_offset()
        check_features(self)


def _squared_norms(rows: Array) -> Array:
    """Return squared norms, estimated where values are missing; NaN where all are."""
    squares: Array = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    holed = rows_with_missing(rows)
    if not len(holed):
        return squares
    holed = holed[~np.isnan(rows[holed]).all(axis=1)]
    if len(holed):
        squares[holed] = energy_from_parts(rows[holed].astype(np.float64))
    return squares
