"""Small pieces of plain English: counts, shares, lists, the settings of an estimator."""

import inspect
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

# A value longer than this is named by what it is, not shown.
_LONGEST_VALUE = 60
_RIGHT_TO_LEFT = frozenset({"R", "AL"})
# Around a word from right to left, so that what stands beside it keeps its place.
_ISOLATE, _END = "\u2068", "\u2069"


def count_words(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: "1 row", "1,200 rows", "2 classes" (``plural``)."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def percent(share: float) -> str:
    """Return a share as a percentage with one decimal; 0 and 1 only if they are just that."""
    text = f"{100 * share:.1f}%"
    if text == "0.0%" and share > 0:
        return "below 0.1%"
    if text == "100.0%" and share < 1:
        return "above 99.9%"
    return text


def list_words(words: Sequence[str]) -> str:
    """Return words with commas and a last "and"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def shorten(value: Any, longest: int = 32) -> str:
    """Return a name in one line, its end cut off if it is long; Chinese letters count twice."""
    text = " ".join(str(value).split())
    ends = np.cumsum([columns(letter) for letter in text])
    if not len(ends) or ends[-1] <= longest:
        return text
    # Marks on a letter take no room, and stay with it.
    return text[: int(np.searchsorted(ends, longest - 1, side="right"))] + "…"


def runs_leftward(text: str) -> bool:
    """Return whether any letter belongs to a script that is written from right to left."""
    return any(unicodedata.bidirectional(letter) in _RIGHT_TO_LEFT for letter in text)


def isolate(text: str) -> str:
    """Return a text that does not disturb the order of the words beside it."""
    return f"{_ISOLATE}{text}{_END}" if runs_leftward(text) else text


def columns(letter: str) -> int:
    """Return how many columns of a terminal a letter takes: 0 for marks on others, 1 or 2."""
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def label_words(label: Any) -> str:
    """Return a class's name as written in a sentence: texts in quotation marks."""
    return f'"{isolate(label)}"' if isinstance(label, str) else str(label)


def labels_words(labels: Sequence[Any], most: int) -> str:
    """Return classes with commas; of many the first, and of how many these are."""
    shown = ", ".join(isolate(str(label)) for label in labels[:most])
    return shown if len(labels) <= most else f"{shown} (the first {most} of {len(labels):,})"


def settings_in_words(estimator: Any) -> str:
    """Return an estimator's class and its settings other than the defaults: "KSVD with tol 0"."""
    name = type(estimator).__name__
    if not isinstance(estimator, BaseEstimator):
        return name
    settings = estimator.get_params(deep=False)
    signature = inspect.signature(type(estimator).__init__).parameters
    changed = [
        f"{key} {_in_words(settings[key])}"
        for key, parameter in signature.items()
        if key in settings and not _same(settings[key], parameter.default)
    ]
    return f"{name} with {list_words(changed)}" if changed else f"{name} as it comes"


def _in_words(value: Any) -> str:
    if isinstance(value, BaseEstimator):
        return f"({settings_in_words(value)})"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, float):
        return f"{value:g}"
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"a {type(value).__name__}"


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    if isinstance(value, BaseEstimator) or callable(value):
        return False
    if isinstance(value, float) and isinstance(default, float) and np.isnan(value):
        return bool(np.isnan(default))  # NaN is the default of imputers, and not equal to itself
    return bool(np.array_equal(value, default))
