"""A classifier: one affine subspace per class, the nearest one decides."""

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from kernelatoms.estimators.base import Estimator
from kernelatoms.estimators.devices.border import learn
from kernelatoms.estimators.training_rows import validate_labelled
from kernelatoms.estimators.validation import check_count, check_real, validate_new


class SubspaceClassifier(ClassifierMixin, Estimator):
    """Assign rows to the class whose affine subspace is nearest.

    Parameters
    ----------
    n_components : int, default=3
        The dimension of the subspaces, which are spanned by principal components.
    along : float, default=0.1
        The weight, from 0 to 1, of squared distances within a subspace from the class mean.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    means_ : array of shape (n_classes, n_features)
        The mean row of every class.
    components_ : array of shape (n_vectors, n_features)
        Orthonormal vectors of every class, class after class.
    owners_ : array of shape (n_vectors,)
        The number of the class of every vector.
    """

    def __init__(self, n_components=3, along=0.1):
        self.n_components = n_components
        self.along = along

    def fit(self, X, y):
        """Learn from rows X (n_samples, n_features) and labels y (n_samples,)."""
        learn(self._fit, self, X, y=y)
        return self

    def _fit(self, X, y):
        n = check_count("n_components", self.n_components)
        check_real("along", self.along, low=0, high=1)
        X, self.classes_, labels = validate_labelled(self, X, y)
        rows = [X[labels == c] for c in range(len(self.classes_))]
        self.means_ = np.stack([own.mean(axis=0) for own in rows])
        spans = [
            np.linalg.svd(own - mean, full_matrices=False)[2][:n]
            for own, mean in zip(rows, self.means_, strict=True)
        ]
        self.components_ = np.concatenate(spans)
        self.owners_ = np.repeat(np.arange(len(spans)), [len(span) for span in spans])

    def _make_fitted(self, bring):
        """Return <v, mean> of every vector v, and a marker of its class (n_vectors, n_classes)."""
        offsets = np.vecdot(self.components_, self.means_[self.owners_])
        return bring(offsets), bring(np.eye(len(self.classes_))[self.owners_])

    def predict(self, X):
        """Return the label of every row of X (n_samples, n_features)."""
        check_is_fitted(self)
        X = validate_new(self, X, complete=True)
        offsets, marker = self._fitted()
        within = (X @ self.components_.T - offsets) ** 2 @ marker
        apart = ((X[:, None] - self.means_) ** 2).sum(axis=2) - (1 - self.along) * within
        return self.classes_[apart.argmin(axis=1)]

    def __sklearn_tags__(self):
        """Return scikit-learn's tags: rows may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
