"""Scores of repeated runs: means, standard errors, and words that follow from them.

Two models that saw the same splits and the same corruptions are compared run by run, so that
what both share (an easy split, a mild draw of noise) cancels in the difference.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.report.words import list_words

Array = NDArray[Any]

# A difference counts as seen when it is larger than this many of its standard errors.
_CLEAR = 2.0


def mean_and_error(scores: Any) -> tuple[Array, Array]:
    """Return the mean over the first axis and its standard error.

    Parameters
    ----------
    scores : array of shape (n_runs, ...)
        At least two runs: one run does not show how far runs spread.

    Returns
    -------
    mean, error : arrays of shape (...)

    Examples
    --------
    >>> from kernelatoms.report import mean_and_error
    >>> mean, error = mean_and_error([0.8, 0.9, 1.0])
    >>> print(f"{mean:.2f} +- {error:.3f}")
    0.90 +- 0.058
    """
    scores = np.asarray(scores, np.float64)
    if scores.ndim == 0 or len(scores) < 2:
        raise ValueError(
            "scores must hold at least two runs along its first axis to give an error, got shape "
            f"{scores.shape}."
        )
    return scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(len(scores))


def compare_in_words(scores: Mapping[str, tuple[Any, Any]], challenger: str, baseline: str) -> str:
    """Say where one model is more accurate than another, less accurate, or no different.

    Parameters
    ----------
    scores : mapping of str to (challenger's scores, baseline's scores)
        Per condition ("on clean digits", "with noise 0.3"), one accuracy per run; run i of both
        models used the same data.
    challenger, baseline : str
        The names of the models.

    Returns
    -------
    str
        Differences in percentage points, with the standard error of the paired difference;
        within two standard errors of 0 they count as not told apart.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.report import compare_in_words
    >>> old = np.array([0.80, 0.82, 0.81])
    >>> compare_in_words({"on clean digits": (old + [0.05, 0.06, 0.05], old)}, "New", "old")
    'New is more accurate than old on clean digits (+5.3 ± 0.3 points).'
    """
    if not scores:
        raise ValueError("scores must name at least one condition, got none.")
    verdicts: dict[str, list[str]] = {
        f"{challenger} is more accurate than {baseline}": [],
        f"{challenger} is less accurate than {baseline}": [],
        f"{challenger} and {baseline} cannot be told apart": [],
    }
    better, worse, alike = verdicts.values()
    for condition, (ours, theirs) in scores.items():
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        if ours.shape != theirs.shape or ours.ndim != 1:
            raise ValueError(
                f"scores[{condition!r}] must be two lists with one score per run each, got shapes "
                f"{ours.shape} and {theirs.shape}."
            )
        mean, error = (float(value) for value in mean_and_error(ours - theirs))
        phrase = f"{condition} ({100 * mean:+.1f} ± {100 * error:.1f} points)"
        found = better if mean > 0 else worse
        (alike if abs(mean) <= _CLEAR * error else found).append(phrase)
    parts = [f"{verdict} {list_words(found)}" for verdict, found in verdicts.items() if found]
    return "; ".join(parts) + "."
