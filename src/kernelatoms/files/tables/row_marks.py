"""Marks of the rows that a model learned from, to recognise them in other files.

A mark is a 32-bit hash of the values of a row; equal rows have equal marks. A record keeps up to
``MOST_MARKS`` of the smallest marks. Rows of other files with marks up to the largest kept can be
looked up: all rows if all marks were kept, else a fair sample. A new row is mistaken for a known
one with a probability of about (rows learned from) / 2^32.
"""

import base64
import binascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.files.tables.table import Array

#: Under which name a record keeps them, with its training data.
ROW_MARKS = "row_marks"
MOST_MARKS = 4096
# Of fewer rows that can be looked up, nothing is said about all.
_FEWEST_FOUND = 20
_BLOCK_ROWS = 1 << 14


def row_marks(X: Array) -> NDArray[np.uint32]:
    """Return a number per row, made of all its values; missing ones count as values."""
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
    """Return numbers whose bits each depend on all bits (splitmix64, Steele et al. 2014)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def kept_marks(X: Array) -> str:
    """Return what a record keeps of the training rows, as a text."""
    marks = np.unique(row_marks(X))
    whole = "all" if len(marks) <= MOST_MARKS else "some"
    data = marks[:MOST_MARKS].astype("<u4").tobytes()
    return f"{whole}:{base64.b64encode(data).decode('ascii')}"


def learned_share(X: Array, kept: Any) -> float | None:
    """Return the share of rows that equal training rows; None if that is unknown.

    ``kept`` is what ``kept_marks`` returned. Unknown: nothing was kept, or too few rows can be
    looked up.
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
