"""``predict_proba`` of every classifier, by one rule, and how sure scores are.

A classifier has a share for every class: at least 0, adding up to 1, largest for its answer. They
order classes and say nothing of how often an answer is right. With ``calibrate=True`` that is
learned from rows left out: copies of the classifier judge rows that they have not learned from,
and with s the evidence for the classes

    p = (1 - doubt) softmax(sharpness * s) + doubt / n_classes

has the sharpness that makes the labels of these rows likeliest. It is one number, so that little
data settle it and the order of classes stays. For evidence that is the logarithm of shares, these
are powers of shares: with residuals e_c, e_c^-sharpness over the sum of all, the posterior where
residuals are Gaussian in 2 * sharpness directions of unknown variance.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import get_tags

from kernelatoms.engine import to_numpy
from kernelatoms.estimators.devices.border import as_labels, by_rows
from kernelatoms.estimators.naming import unnamed
from kernelatoms.estimators.state_checks import require_number
from kernelatoms.similarity.base import check_flag

Array = NDArray[Any]

_PARTS = 3  # rows are left out in so many parts
_SHARPEST = 1e4
_STEPS = 81  # on a logarithmic scale, before the search between two of them


@unnamed
class Probabilities:
    """Classifiers with ``predict_proba``: shares, calibrated if asked.

    Subclasses give the shares of checked rows (``_shares_of_classes``) and, where it is something
    else than their logarithm, the evidence (``_evidence``); ``fit`` ends with ``_calibrate``.
    """

    calibrate: bool
    classes_: Array
    inverse_temperature_: float
    label_smoothing_: float

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

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows that ``predict`` gives their labels.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals, as ``predict`` takes them.
        y : array of shape (n_samples,)
            Their labels.
        sample_weight : array of shape (n_samples,), optional
            What rows count.

        Returns
        -------
        float
        """
        labels = as_labels(self.predict(X))  # type: ignore[attr-defined]
        return float(accuracy_score(as_labels(y), labels, sample_weight=as_labels(sample_weight)))

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
        """Return rows that can be judged, or refuse them."""
        raise NotImplementedError

    def _shares_of_classes(self, X: Array) -> tuple[Array, NDArray[np.intp]]:
        """Return the shares of checked rows (n, n_classes), and the classes answered."""
        raise NotImplementedError

    def _evidence(self, X: Array) -> tuple[Array, NDArray[np.intp]]:
        """Return what speaks for each class of checked rows (n, n_classes), and the answers."""
        shares, best = self._shares_of_classes(X)
        with np.errstate(divide="ignore"):
            return np.log(shares), best

    def _check_calibration(self, counts: NDArray[np.intp]) -> None:
        """Refuse to calibrate with classes of which no row can be left out."""
        if check_flag("calibrate", self.calibrate) and counts.min() < 2:
            raise ValueError(
                "calibrate=True learns from rows left out, and so needs at least two rows of every "
                f"class, but class {self.classes_.tolist()[counts.argmin()]!r} has {counts.min()}."
            )

    def _calibrate(self, X: Array, labels: NDArray[np.intp], weights: Array | None = None) -> None:
        """Learn the sharpness, if asked to, from rows that copies have not learned from."""
        for name in ("inverse_temperature_", "label_smoothing_"):  # of an earlier fit
            vars(self).pop(name, None)
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
            given = {} if weights is None else {"sample_weight": weights[kept]}
            copy: Any = clone(self).set_params(calibrate=False)
            vars(copy).pop("_skl_callbacks", None)  # nobody asked to follow copies
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fit itself has warned
                copy.fit(rows, labels[kept], **given)
                evidence[left_out] = to_numpy(copy._evidence(copy._validated(new))[0])
        # None of n left-out rows wrong: about one of n + 2 others may be, by Laplace's rule.
        self.label_smoothing_ = 1.0 / (len(X) + 2)
        self.inverse_temperature_ = likeliest_sharpness(
            evidence, labels, self.label_smoothing_, weights
        )

    def _check_sharpness(self) -> None:
        """Refuse a sharpness that is none; models saved before there was one have none."""
        check_flag("calibrate", self.calibrate)
        if "inverse_temperature_" not in vars(self):
            return
        if not require_number(self, "inverse_temperature_") > 0:
            raise ValueError(f"{type(self).__name__}.inverse_temperature_ must be above 0.")
        if not 0 <= require_number(self, "label_smoothing_") < 1:
            raise ValueError(
                f"{type(self).__name__}.label_smoothing_ must be at least 0 and below 1."
            )


def probabilities(evidence: Array, sharpness: float, doubt: float) -> Array:
    """Return (1 - doubt) softmax(sharpness * evidence) + doubt / n_classes: (n, n_classes).

    Evidence may be -inf, for classes that have nothing, unless it is so for all of a row.
    """
    evidence = evidence.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):  # what is beyond all numbers has no part
        powers = np.exp(sharpness * (evidence - evidence.max(axis=1, keepdims=True)))
    return (1 - doubt) * powers / powers.sum(axis=1, keepdims=True) + doubt / evidence.shape[1]


def likeliest_sharpness(
    evidence: Array, labels: NDArray[np.intp], doubt: float, weights: Array | None = None
) -> float:
    """Return the sharpness under which labels are likeliest.

    Parameters
    ----------
    evidence : array of shape (n, n_classes)
        What speaks for each class.
    labels : array of shape (n,)
        Numbers of the true classes.
    doubt : float
        As in ``probabilities``; above 0, so that no label is impossible.
    weights : array of shape (n,), optional
        What rows count.
    """
    rows = np.arange(len(labels))

    def surprise(log_sharpness: float) -> float:
        p = probabilities(evidence, float(np.exp(log_sharpness)), doubt)[rows, labels]
        return -float(np.average(np.log(p), weights=weights))

    steps = np.linspace(-np.log(_SHARPEST), np.log(_SHARPEST), _STEPS)
    best = int(np.argmin([surprise(step) for step in steps]))
    around = (steps[max(best - 1, 0)], steps[min(best + 1, _STEPS - 1)])
    found = minimize_scalar(surprise, bounds=around, method="bounded", options={"xatol": 1e-6})
    # Where all steps are alike, the first one says least.
    return float(np.exp(found.x if found.fun < surprise(steps[best]) else steps[best]))


def first_largest(probabilities: Array, best: NDArray[np.intp]) -> Array:
    """Return probabilities of which the answers' are the first of the largest.

    Rounding may make a class that is a little worse equal to the answer.
    """
    rows = np.flatnonzero(probabilities.argmax(axis=1) != best)
    if len(rows):
        largest = probabilities[rows].max(axis=1)
        probabilities[rows, best[rows]] = np.nextafter(largest, np.inf)
    return probabilities
