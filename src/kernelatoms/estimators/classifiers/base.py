"""``CodeClassifier``: what all classifiers share: answers, explanations, probabilities.

A classifier has a share for every class: at least 0, adding up to 1, largest for its answer. Shares
order classes and do not say how often an answer is right. With ``calibrate=True`` that is learned
from left-out rows: copies of the classifier score rows that they have not learned from, and with s
the evidence for the classes

    p = (1 - label_smoothing) softmax(inverse_temperature * s) + label_smoothing / n_classes

has the inverse temperature under which the labels of these rows are likeliest. It is one number, so
that few rows suffice and the order of classes stays. Where evidence is the logarithm of shares,
these are powers of shares: with residuals e_c, e_c^-inverse_temperature over the sum of all, the
posterior where residuals are Gaussian in 2 * inverse_temperature directions of unknown variance.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.base import ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from kernelatoms.engine import Array, to_numpy
from kernelatoms.estimators.base import unnamed
from kernelatoms.estimators.devices.border import (
    as_labels,
    by_rows,
    collections_entered,
    computed,
)
from kernelatoms.estimators.inspection.explanation import Explanation, explain_on_cpu
from kernelatoms.estimators.state_checks import require_number
from kernelatoms.estimators.validation import validate_new
from kernelatoms.rows import RowSource
from kernelatoms.rows.opening import is_dask

_PARTS = 3  # rows are left out in so many parts
_LARGEST = 1e4
_STEPS = 81  # on a logarithmic scale, before the search between two of them


@unnamed
class CodeClassifier(ClassifierMixin):
    """Classifiers that decide by codes.

    Subclasses say how well each class fits checked rows (``_scores``) and explain them
    (``_explained``). Where scores are no shares, they say which shares belong to them
    (``_shares_of_scores``). ``fit`` ends with ``_calibrate``.
    """

    calibrate: bool
    classes_: Array
    inverse_temperature_: float
    label_smoothing_: float

    def predict(self, X: Any) -> Array:
        """Return the class that fits best for every row; of equal ones the first.

        Parameters
        ----------
        X : array or RowSource of shape (n_samples, n_features)
            Signals; k(new, train) with ``kernel="precomputed"``.

        Returns
        -------
        labels : array of shape (n_samples,)
            Of a source of rows a source, whose blocks are computed when they are read; so are the
            answers of the other methods.
        """
        return by_rows(self._predict, X, self)

    def _predict(self, X: Any) -> Array:
        return self._labels(self._scores(self._validated(X)).argmax(axis=1))

    def decision_function(self, X: Any) -> Array:
        """Return how well each class fits; larger is better. The Notes of the class say more.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals, as ``predict`` takes them.

        Returns
        -------
        scores : (n_samples, n_classes), or (n_samples,) for two classes
            With two classes, the second one's score less the first one's.
        """
        return by_rows(self._decision_function, X, self)

    def _decision_function(self, X: Any) -> Array:
        scores = self._scores(self._validated(X))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def explain(self, X: Any) -> list[Explanation]:
        """Say for every row why it is given its class: the atoms used, what each class leaves.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals, as ``predict`` takes them.

        Returns
        -------
        list of Explanation
            One per row; scores are those of ``decision_function``, one for every class.
        """
        return explain_on_cpu(self, X)

    def _explain(self, X: Any) -> list[Explanation]:
        return self._explained(self._validated(X))

    def predict_proba(self, X: Any) -> Array:
        """Return probabilities of the classes, the largest for the answer of ``predict``.

        With ``calibrate=True`` they are probabilities: of answers given with 90%, about nine in ten
        are right. Without, they are shares that add up to 1 (see Notes), which order classes
        and are not calibrated.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals, as ``predict`` takes them.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
        """
        return by_rows(self._predict_proba, X, self)

    def _predict_proba(self, X: Any) -> Array:
        X = self._validated(X)
        if not self.calibrate or not hasattr(self, "inverse_temperature_"):
            shares, best = self._shares_of_classes(X)
            return first_largest(shares, best)
        evidence, best = self._evidence(X)
        return first_largest(
            probabilities(evidence, self.inverse_temperature_, self.label_smoothing_), best
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of rows whose label is predicted.

        Parameters
        ----------
        X : array or RowSource of shape (n_samples, n_features)
            Signals, as ``predict`` takes them.
        y : array of shape (n_samples,)
            Their labels; by default those of the source (``open_rows(..., label=...)``).
        sample_weight : array of shape (n_samples,), optional
            What each row counts.

        Returns
        -------
        float
            Between 0 and 1.
        """
        predicted: Any = self.predict(X)
        if isinstance(X, RowSource):
            y = X.labels() if y is None else y
            predicted = predicted.collect()
        elif is_dask(X):
            X, y, sample_weight = collections_entered(X, y=y, sample_weight=sample_weight)
            predicted = computed(predicted)
        given, weights = as_labels(y), as_labels(sample_weight)
        return float(accuracy_score(given, as_labels(predicted), sample_weight=weights))

    def _labels(self, numbers: NDArray[np.intp]) -> Array:
        """Return the labels of classes by number (n,), numbers where the classes have such."""
        if self._class_labels.dtype.kind not in "biuf":
            return self._class_labels[to_numpy(numbers)]
        return np.asarray(self._class_labels, like=numbers)[numbers]

    @property
    def _class_labels(self) -> Array:
        """The labels of the classes as a numpy array; ``classes_`` may be a tensor."""
        labels: Array = as_labels(self.classes_)
        return labels

    def _validated(self, X: Any) -> Array:
        """Return rows that can be classified, or refuse them."""
        check_is_fitted(self)
        return validate_new(self, X, complete=True)

    def _scores(self, X: Array) -> Array:
        """Return how well each class fits checked rows: (n, n_classes)."""
        raise NotImplementedError

    def _explained(self, X: Array) -> list[Explanation]:
        """Return why checked rows are given their classes."""
        raise NotImplementedError

    def _shares_of_scores(self, scores: Array) -> Array:
        """Return scores as numbers that are at least 0 and add up to 1, in the same order."""
        return scores

    def _shares_of_classes(self, X: Array) -> tuple[Array, NDArray[np.intp]]:
        """Return the shares of checked rows (n, n_classes), and the classes answered."""
        scores = self._scores(X)
        return self._shares_of_scores(scores), scores.argmax(axis=1)

    def _evidence(self, X: Array) -> tuple[Array, NDArray[np.intp]]:
        """Return the evidence for each class of checked rows (n, n_classes), and the answers."""
        shares, best = self._shares_of_classes(X)
        with np.errstate(divide="ignore"):
            return np.log(shares), best

    def _check_calibration(self, labels: NDArray[np.intp]) -> None:
        """Refuse to calibrate with classes of which no row can be left out."""
        counts = np.bincount(labels)
        if self.calibrate and counts.min() < 2:
            raise ValueError(
                "calibrate=True learns from rows left out, and so needs at least two rows of every "
                f"class, but class {self.classes_.tolist()[counts.argmin()]!r} has {counts.min()}."
            )

    def _calibrate(self, X: Array, labels: NDArray[np.intp]) -> None:
        """Learn the inverse temperature, if asked to, from rows left out of the fits of copies."""
        for name in ("inverse_temperature_", "label_smoothing_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if not self.calibrate:
            return
        n_parts = min(_PARTS, int(np.bincount(labels).min()))
        pairwise = get_tags(self).input_tags.pairwise
        evidence = np.empty((len(X), len(self.classes_)))
        parts = StratifiedKFold(n_parts, shuffle=True, random_state=0)
        for kept, left_out in parts.split(np.zeros(len(labels)), labels):
            rows, new = X[kept], X[left_out]
            if pairwise:
                rows, new = rows[:, kept], new[:, kept]
            copy: Any = clone(self).set_params(calibrate=False)
            vars(copy).pop("_skl_callbacks", None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fit itself has warned
                copy.fit(rows, labels[kept])
                evidence[left_out] = to_numpy(copy._evidence(copy._validated(new))[0])
        # None of n left-out rows wrong: about one of n + 2 others may be, by Laplace's rule.
        self.label_smoothing_ = 1.0 / (len(X) + 2)
        self.inverse_temperature_ = likeliest_temperature(evidence, labels, self.label_smoothing_)

    def _check_calibrated(self) -> None:
        """Refuse fitted attributes of ``calibrate`` that are out of range."""
        if "inverse_temperature_" not in vars(self):
            return
        if not require_number(self, "inverse_temperature_") > 0:
            raise ValueError(f"{type(self).__name__}.inverse_temperature_ must be above 0.")
        if not 0 <= require_number(self, "label_smoothing_") < 1:
            raise ValueError(
                f"{type(self).__name__}.label_smoothing_ must be at least 0 and below 1."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Codes are blind to the distance from the origin, which is all that tells the common
        # checks' blobs apart along one direction.
        tags.classifier_tags.poor_score = True
        return tags


def probabilities(evidence: Array, inverse_temperature: float, label_smoothing: float) -> Array:
    """Return (1 - smoothing) softmax(inverse_temperature * evidence) + smoothing / n_classes.

    Evidence (n, n_classes) may be -inf for some of the classes of a row.
    """
    evidence = evidence.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):  # -inf has no part
        powers = np.exp(inverse_temperature * (evidence - evidence.max(axis=1, keepdims=True)))
    shares = powers / powers.sum(axis=1, keepdims=True)
    return (1 - label_smoothing) * shares + label_smoothing / evidence.shape[1]


def likeliest_temperature(
    evidence: Array,
    labels: NDArray[np.intp],
    label_smoothing: float,
    weights: Array | None = None,
) -> float:
    """Return the inverse temperature under which labels, numbers of classes, are likeliest.

    ``label_smoothing`` above 0 makes no label impossible.
    """
    rows = np.arange(len(labels))

    def surprise(log_value: float) -> float:
        p = probabilities(evidence, float(np.exp(log_value)), label_smoothing)[rows, labels]
        return -float(np.average(np.log(p), weights=weights))

    steps = np.linspace(-np.log(_LARGEST), np.log(_LARGEST), _STEPS)
    best = int(np.argmin([surprise(step) for step in steps]))
    around = (steps[max(best - 1, 0)], steps[min(best + 1, _STEPS - 1)])
    found = minimize_scalar(surprise, bounds=around, method="bounded", options={"xatol": 1e-6})
    # Where all steps are equal, the smallest one is the most cautious.
    return float(np.exp(found.x if found.fun < surprise(steps[best]) else steps[best]))


def first_largest(probabilities: Array, best: NDArray[np.intp]) -> Array:
    """Return probabilities, the answers' the largest: rounding may make others equal to them."""
    rows = np.flatnonzero(probabilities.argmax(axis=1) != best)
    if len(rows):
        largest = probabilities[rows].max(axis=1)
        probabilities[rows, best[rows]] = np.nextafter(largest, np.inf)
    return probabilities
