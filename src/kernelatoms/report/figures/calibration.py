"""Calibration: how often answers are right against how sure they are."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from kernelatoms.report.figures import style
from kernelatoms.report.words import shorten


class Reliability(NamedTuple):
    """How sure answers are, and how often right, in bins of equally many answers.

    Parameters
    ----------
    sure, right : arrays of shape (n_bins,)
        The mean probability of the answers of a bin, and the share of them that is right.
    counts : array of shape (n_bins,)
        How many answers are in it.
    error : float
        The expected calibration error: the mean of ``|right - sure|`` over answers.
    log_loss : float
        The mean of -log p of the true class.
    """

    sure: style.Array
    right: style.Array
    counts: style.Array
    error: float
    log_loss: float


def reliability(truth: Any, probabilities: Any, n_bins: int = 10) -> Reliability:
    """Compare how sure answers are with how often they are right.

    Parameters
    ----------
    truth : array of shape (n_samples,)
        Numbers of the true classes: columns of ``probabilities``.
    probabilities : array of shape (n_samples, n_classes)
        As ``predict_proba`` returns them; the largest is the answer.
    n_bins : int, default=10
        Answers are sorted by how sure they are, and cut into so many groups of one size.

    Returns
    -------
    Reliability
    """
    truth, p = np.asarray(truth), np.asarray(probabilities, np.float64)
    if p.ndim != 2 or truth.shape != (len(p),) or not len(p):
        raise ValueError(
            "truth must hold a class for every row of probabilities (n_samples, n_classes), got "
            f"shapes {truth.shape} and {p.shape}."
        )
    if truth.dtype.kind not in "iu" or truth.min() < 0 or truth.max() >= p.shape[1]:
        raise ValueError(f"truth must hold numbers of classes, 0..{p.shape[1] - 1}.")
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number of at least 1, got {n_bins!r}.")
    sure, right = p.max(axis=1), p.argmax(axis=1) == truth
    order = np.argsort(sure, kind="stable")
    parts = [part for part in np.array_split(order, n_bins) if len(part)]
    means = np.array([[sure[part].mean(), right[part].mean(), len(part)] for part in parts])
    error = float(np.average(np.abs(means[:, 1] - means[:, 0]), weights=means[:, 2]))
    of_truth = p[np.arange(len(p)), truth]
    log_loss = -float(np.log(np.maximum(of_truth, np.finfo(np.float64).eps)).mean())
    return Reliability(means[:, 0], means[:, 1], means[:, 2].astype(np.intp), error, log_loss)


def calibration_figure(truth: Any, probabilities: Mapping[str, Any], n_bins: int = 10) -> Figure:
    """Draw how often answers are right against how sure they are: a reliability diagram.

    Above the diagonal a model is too modest, below it too sure. The legend has the expected
    calibration error, the mean distance from the diagonal.

    Parameters
    ----------
    truth : array of shape (n_samples,)
        Numbers of the true classes: columns of the probabilities.
    probabilities : dict of arrays of shape (n_samples, n_classes)
        What ``predict_proba`` of each model returned, by the models' names; at most four.
    n_bins : int, default=10
        Answers are sorted by how sure they are, and cut into so many groups of one size.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.report.figures.calibration import calibration_figure
    >>> sure = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]])
    >>> figure = calibration_figure(np.array([0, 0, 1]), {"a model": sure}, n_bins=1)
    >>> figure.axes[0].get_legend().get_texts()[0].get_text()
    'a model: 0.233'
    """
    if not isinstance(probabilities, Mapping) or not 1 <= len(probabilities) <= 4:
        raise ValueError("probabilities must be a dict of one to four arrays, by models' names.")
    figure, ax = style.new_plot("how sure the answers are", "share that is right", height=4.0)
    ax.plot([0, 1], [0, 1], color=style.GREY, linewidth=1, linestyle="--")
    for i, (name, p) in enumerate(probabilities.items()):
        found = reliability(truth, p, n_bins)
        label = f"{shorten(name)}: {found.error:.3f}"
        ax.plot(found.sure, found.right, label=label, **style.line_style(i))
    ax.set_xlim(0, 1.02)
    ax.set_ylim(0, 1.02)
    ax.legend(frameon=False, fontsize=9, title="calibration error", loc="lower right")
    return figure
