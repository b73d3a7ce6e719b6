"""Marks of the rows that a model learned from, to tell them again in other files.

A mark is a 32-bit number made of a row's values; equal rows have equal marks, in any file and in
any order. A record keeps the smallest marks, up to ``MOST_MARKS`` different ones: rows of other
files with marks up to the largest kept can be looked up, which is every row where all marks were
kept and a fair sample of them where not. A row that was not learned from is taken for one with a
probability of about (rows learned from) / 2^32.
"""

import base64
import binascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Under which name a record keeps them, with its training data.
ROW_MARKS = "row_marks"
MOST_MARKS = 4096
# Of fewer rows that can be looked up, nothing is said about all.
_FEWEST_FOUND = 20
_BLOCK_ROWS = 1 << 14


def row_marks(X: Array) -> NDArray[np.uint32]:
    """Return a number for every row, made of all its values; missing ones count as such.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Rows of numbers.
    """
    marks = np.empty(len(X), np.uint32)
    for start in range(0, len(X), _BLOCK_ROWS):
        # The sum turns -0.0 into 0.0.
        block = np.array(X[start : start + _BLOCK_ROWS], np.float64, order="C") + 0.0
        block[np.isnan(block)] = np.nan
        words = block.view(np.uint64)
        total = np.zeros(len(words), np.uint64)
        for column in range(words.shape[1]):
            total = _mixed(total ^ words[:, column])
        marks[start : start + len(block)] = (total >> np.uint64(32)).astype(np.uint32)
    return marks


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers all of whose bits depend on all bits (splitmix64, Steele et al. 2014)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def kept_marks(X: Array) -> str:
    """Return what a record keeps of the rows that a model learned from, as a text.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        The rows.
    """
    marks = np.unique(row_marks(X))
    whole = "all" if len(marks) <= MOST_MARKS else "some"
    data = marks[:MOST_MARKS].astype("<u4").tobytes()
    return f"{whole}:{base64.b64encode(data).decode('ascii')}"


def learned_share(X: Array, kept: Any) -> float | None:
    """Return the share of rows that are equal to some that a model learned from.

    None where that is not known: nothing was kept, or too little to tell of these rows.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Rows in the columns of the model.
    kept : object
        What ``kept_marks`` returned.
    """
    whole, _, text = kept.partition(":") if isinstance(kept, str) else ("", "", "")
    try:
        known = np.frombuffer(base64.b64decode(text, validate=True), "<u4")
    except (binascii.Error, ValueError):
        return None
    if whole not in ("all", "some") or not len(known) or not len(X):
        return None
    marks = row_marks(X)
    if whole == "some":
        marks = marks[marks <= known.max()]
        if len(marks) < _FEWEST_FOUND:
            return None
    return float(np.isin(marks, known).mean())
