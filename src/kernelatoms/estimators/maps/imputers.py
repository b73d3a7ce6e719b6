"""Missing values: ``NearestImputer``; ``TrainingImputer``, medians in learning, and only there."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelatoms.engine import Array
from kernelatoms.estimators.base import Transformer
from kernelatoms.estimators.devices.border import by_rows, learn
from kernelatoms.estimators.state_checks import check_features, require_floats
from kernelatoms.estimators.validation import FLOATS, check_count
from kernelatoms.features.imputation import fill_from_nearest
from kernelatoms.rows import RowSource
from kernelatoms.rows.opening import is_dask
from kernelatoms.similarity.missing import rows_with_missing

# Standard deviations from the median that count as further than anything: squares stay numbers.
_FARTHEST = 1e3


class _Imputer(OneToOneFeatureMixin, Transformer):
    medians_: Array

    def _transform(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._filled(self._checked(X, reset=False))

    def _filled(self, X: Array) -> Array:
        raise NotImplementedError

    def _checked(self, X: Any, *, reset: bool = True) -> Any:
        return validate_data(self, X, dtype=FLOATS, ensure_all_finite="allow-nan", reset=reset)


class TrainingImputer(_Imputer):
    """Fill missing values (NaN) for learning; leave them missing in rows to be coded.

    Dictionaries are learned from complete rows, and rows are coded best by what is observed of
    them. As the first step of a pipeline this gives both: ``fit_transform``, which ``fit`` calls,
    fills with medians; ``transform`` fills only rows of which nothing is known. All later steps
    must take NaN, as ``StandardScaler`` and most estimators here do.

    Attributes
    ----------
    medians_ : array of shape (n_features,)
        The median of every column over the training rows; 0 where all of it is missing.
    n_features_in_ : int
        How many columns rows have.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import TrainingImputer
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan], [8.0, 4.0]])
    >>> fill = TrainingImputer()
    >>> print(fill.fit_transform(X)[1], fill.transform(X)[1])
    [3. 3.] [ 3. nan]
    """

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Find the medians, and return the training rows filled with them.

        Parameters
        ----------
        X : array or RowSource of shape (n_samples, n_features)
            Training rows, NaN where values are missing.
        y : ignored
        fit_params : dict
            Not used.

        Returns
        -------
        rows : array of shape (n_samples, n_features)
            Complete rows.
        """
        filled = learn(self._fit, self, X)
        if isinstance(X, RowSource) or is_dask(X):  # and medians are of a sample
            return by_rows(self._filled_to_learn, X, self)
        return self._with_medians(filled, rows_with_missing(filled))

    def _filled_to_learn(self, X: Any) -> Array:
        X = self._checked(X, reset=False)
        return self._with_medians(X, rows_with_missing(X))

    def _fit(self, X: Any) -> Array:
        X = self._checked(X)
        self.medians_ = _medians(X)
        return X

    def _filled(self, X: Array) -> Array:
        rows = rows_with_missing(X)
        return self._with_medians(X, rows[np.isnan(X[rows]).all(axis=1)])

    def _with_medians(self, X: Array, rows: NDArray[np.intp]) -> Array:
        if not len(rows):
            return X
        filled = X.copy()
        medians = self.medians_.astype(X.dtype, copy=False)
        filled[rows] = np.where(np.isnan(X[rows]), medians, X[rows])
        return filled

    def _check_state(self) -> None:
        """Refuse fitted attributes that contradict each other; see ``fitted``."""
        require_floats(self, "medians_", (check_features(self),))


class NearestImputer(_Imputer):
    """Fill missing values (NaN) with the means of what the nearest training rows have there.

    How far two rows are is the mean, over the entries that both have, of their squared differences
    in units of the columns' standard deviations; rows with no entry in common are no neighbours,
    and columns of one value do not count. Where none of a row's neighbours has an entry, it takes
    the column's median. Where values are missing at random, rows filled like this are classified
    far better than rows filled with medians, and mostly better than by what is observed of them
    alone (``TrainingImputer``).

    Training rows are filled as any others; one that is kept has nothing to give to itself.

    Parameters
    ----------
    n_neighbors : int, default=15
        How many of the nearest rows give what they have; all of them where there are no more.
    max_rows : int, default=5000
        The most training rows that are kept, to fill from; of more, so many are drawn.
    random_state : int, RandomState or None
        Seeds the draw.

    Attributes
    ----------
    rows_ : array of shape (n_kept, n_features)
        The rows that values come from, NaN where they have none.
    medians_ : array of shape (n_features,)
        The median of every column over the training rows; 0 where all of it is missing.
    scales_ : array of shape (n_features,)
        The standard deviation of every column.
    n_features_in_ : int
        How many columns rows have.

    Notes
    -----
    ``KNNImputer`` looks for neighbours column by column, among the rows that have this column;
    here all gaps of a row are filled by the same neighbours, which are found by three matrix
    products.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import NearestImputer
    >>> X = np.array([[1.0, 2.0], [1.2, 2.2], [8.0, 9.0], [8.2, 9.2]])
    >>> NearestImputer(n_neighbors=2).fit(X).transform([[1.1, np.nan], [np.nan, 9.0]])
    array([[1.1, 2.1],
           [8.1, 9. ]])
    """

    def __init__(
        self, n_neighbors: int = 15, max_rows: int = 5000, random_state: Any = None
    ) -> None:
        self.n_neighbors = n_neighbors
        self.max_rows = max_rows
        self.random_state = random_state

    def _fit(self, X: Any) -> None:
        check_count("n_neighbors", self.n_neighbors)
        max_rows = check_count("max_rows", self.max_rows)
        X = self._checked(X)
        self.medians_ = _medians(X)
        self.scales_: Array = _scales(X, self.medians_)
        rows = np.arange(len(X))
        if len(X) > max_rows:
            draw = check_random_state(self.random_state)
            rows = np.sort(draw.choice(len(X), max_rows, replace=False))
        self.rows_: Array = X[rows]

    def _filled(self, X: Array) -> Array:
        holed = rows_with_missing(X)
        if not len(holed):
            return X
        # Columns of one value tell nothing of how near rows are, and have nothing but it to give.
        varied = self.scales_ > 0
        medians, scales = (held.astype(X.dtype) for held in (self.medians_, self.scales_))
        rows, kept = (
            np.clip(
                (some[:, varied].astype(X.dtype, copy=False) - medians[varied]) / scales[varied],
                -_FARTHEST,
                _FARTHEST,
            )
            for some in (X[holed], self.rows_)
        )
        filling = np.tile(medians, (len(holed), 1))
        nearest = fill_from_nearest(rows, kept, min(int(self.n_neighbors), len(kept)))
        filling[:, varied] += scales[varied] * nearest
        filled = X.copy()
        filled[holed] = np.where(np.isnan(X[holed]), filling, X[holed])
        return filled

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other; see ``fitted``."""
        check_count("n_neighbors", self.n_neighbors)
        n_features = check_features(self)
        require_floats(self, "rows_", (None, n_features), missing=True)
        if not len(self.rows_):
            raise ValueError("NearestImputer.rows_ must hold at least one row.")
        require_floats(self, "medians_", (n_features,))
        require_floats(self, "scales_", (n_features,), low=0)


def _medians(X: Array) -> Array:
    """Return the median of what is observed of every column, 0 where nothing is."""
    holed = np.flatnonzero(np.isnan(X.sum(axis=0)))
    medians = np.median(X, axis=0)
    for i in holed:
        seen = X[~np.isnan(X[:, i]), i]
        medians[i] = np.median(seen) if len(seen) else 0
    return medians.astype(X.dtype, copy=False)


def _scales(X: Array, medians: Array) -> Array:
    """Return the standard deviation of what is observed of every column."""
    # From the median, constants are exactly 0; over the largest value, squares are numbers.
    away = X - medians
    largest = np.fmax.reduce(np.abs(away), axis=0, initial=0.0).astype(np.float64)
    largest[largest == 0] = 1.0
    away = away / largest
    count = np.maximum(np.sum(~np.isnan(away), axis=0), 1)
    away -= np.nansum(away, axis=0) / count
    scales: Array = largest * np.sqrt(np.nansum(away**2, axis=0) / count)
    return scales.astype(X.dtype)
