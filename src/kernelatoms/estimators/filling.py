"""``FillToLearn``: medians for missing values in learning, and only there."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelatoms.estimators.checks import FLOATS
from kernelatoms.estimators.fitted import check_features, held_floats
from kernelatoms.similarity.missing import rows_with_missing

Array = NDArray[Any]


class FillToLearn(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill missing values (NaN) for learning; leave them missing in rows to be coded.

    Dictionaries are learned from complete rows, and rows are coded best by what is observed of
    them. As the first step of a pipeline this gives both: ``fit_transform``, which a pipeline's
    ``fit`` calls, fills with medians; ``transform``, which its ``predict`` and ``transform`` call,
    fills nothing but rows of which nothing at all is known. All later steps must take NaN, as
    ``StandardScaler``, ``UnitRows``, ``KernelLinearizer`` and most learners here do.

    Attributes
    ----------
    medians_ : array of shape (n_features,)
        The median of every column over the training rows; 0 where all of it is missing.
    n_features_in_ : int
        How many columns rows have.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import FillToLearn
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan], [8.0, 4.0]])
    >>> fill = FillToLearn()
    >>> print(fill.fit_transform(X)[1], fill.transform(X)[1])
    [3. 3.] [ 3. nan]
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the median of every column.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Training rows, NaN where values are missing.
        y : ignored

        Returns
        -------
        self
        """
        X = validate_data(self, X, dtype=FLOATS, ensure_all_finite="allow-nan")
        self._learn(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Find the medians, and return the training rows filled with them.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Training rows, NaN where values are missing.
        y : ignored
        fit_params : dict
            Not used.

        Returns
        -------
        rows : array of shape (n_samples, n_features)
            Complete rows.
        """
        X = validate_data(self, X, dtype=FLOATS, ensure_all_finite="allow-nan")
        self._learn(X)
        return self._filled(X, rows_with_missing(X))

    def transform(self, X: Any) -> Array:
        """Return the rows as they are; those of which nothing is known as medians.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Rows, NaN where values are missing.

        Returns
        -------
        rows : array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=FLOATS, ensure_all_finite="allow-nan", reset=False)
        rows = rows_with_missing(X)
        return self._filled(X, rows[np.isnan(X[rows]).all(axis=1)])

    def _learn(self, X: Array) -> None:
        holed = np.flatnonzero(np.isnan(X.sum(axis=0)))
        medians = np.median(X, axis=0)
        for i in holed:
            seen = X[~np.isnan(X[:, i]), i]
            medians[i] = np.median(seen) if len(seen) else 0
        self.medians_: Array = medians.astype(X.dtype, copy=False)

    def _filled(self, X: Array, rows: NDArray[np.intp]) -> Array:
        if not len(rows):
            return X
        filled = X.copy()
        medians = self.medians_.astype(X.dtype, copy=False)
        filled[rows] = np.where(np.isnan(X[rows]), medians, X[rows])
        return filled

    def _check_state(self) -> None:
        """Refuse fitted attributes that contradict each other; see ``fitted``."""
        held_floats(self, "medians_", (check_features(self),))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
