"""A classifier: one subspace per class, the nearest one decides."""

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from kernelatoms.estimators.base import Estimator
from kernelatoms.estimators.devices.border import learn
from kernelatoms.estimators.validation import check_count, validate_labelled, validate_new


class SubspaceClassifier(ClassifierMixin, Estimator):
    """Give rows the class whose leading singular vectors span most of them.

    Parameters
    ----------
    n_components : int, default=3
        The dimension of the subspaces; a class with fewer rows has as many dimensions as rows.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    components_ : array of shape (n_vectors, n_features)
        Orthonormal vectors of every class, class after class.
    owners_ : array of shape (n_vectors,)
        The number of the class of every vector.
    """

    def __init__(self, n_components=3):
        self.n_components = n_components

    def fit(self, X, y):
        """Learn from rows X (n_samples, n_features) and labels y (n_samples,)."""
        learn(self._fit, self, X, y=y)
        return self

    def _fit(self, X, y):
        n = check_count("n_components", self.n_components)
        X, classes, labels = validate_labelled(self, X, y)
        svds = [np.linalg.svd(X[labels == c], full_matrices=False) for c in range(len(classes))]
        self.classes_ = classes
        self.components_ = np.concatenate([Vt[:n] for _, _, Vt in svds])
        self.owners_ = np.repeat(np.arange(len(classes)), [len(Vt[:n]) for _, _, Vt in svds])

    def _make_fitted(self, bring):
        """Return a marker of the class of every vector, (n_vectors, n_classes)."""
        return bring(np.eye(len(self.classes_))[self.owners_])

    def predict(self, X):
        """Return the label of every row of X (n_samples, n_features)."""
        check_is_fitted(self)
        X = validate_new(self, X, complete=True)
        inner = X @ self.components_.T
        return self.classes_[(inner**2 @ self._fitted()).argmax(axis=1)]

    def __sklearn_tags__(self):
        """Return scikit-learn's tags: rows may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
