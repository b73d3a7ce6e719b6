"""Learning from rows with missing values (NaN): what is observed counts, and nothing else.

Such rows are coded by their observed entries. With M the mask of these, an update wants atoms of a
small |M * (X - W D)|^2. Filled with their reconstructions, missing entries have residuals of 0, and
the ordinary update of filled rows lowers

    |X_filled - W D'|^2 >= |M * (X - W D')|^2,   equal at D' = D,

which adds up over rows: majorisation and minimisation, or the EM of least squares. A step moves
atoms by about the observed share of what is needed. Features do not depend on each other once codes
are there, and any multiple of a step below 2 lowers the objective of its feature too: each is taken
1 / share times, at most 1.9 times.

See docs/decisions/060-learning-from-observed-values.md.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from kernelatoms.coding.codes import Codes, PaddedCodes
from kernelatoms.engine import Array, machine
from kernelatoms.similarity.missing import rows_with_missing

# The most times that a step is taken: below 2, where it would no longer lower the objective.
_MOST = 1.9


def relaxation(missing: Array) -> Array:
    """Return how many times steps of features are taken, given the shares that are missing."""
    return np.minimum(1.0 / np.maximum(1.0 - missing, 1.0 / _MOST), _MOST)


def missing_shares(rows: Array, codes: Codes) -> Array | None:
    """Return the share of the codes' energy for which each feature is missing; None if none is."""
    if not len(rows_with_missing(rows)):
        return None
    assert isinstance(codes, PaddedCodes)
    sizes = np.square(codes.values, dtype=np.float64).sum(axis=1)
    missing: Array = sizes.astype(rows.dtype) @ np.isnan(rows).astype(rows.dtype)
    return missing.astype(np.float64) / max(float(sizes.sum()), np.finfo(np.float64).tiny)


def fill_by_codes(rows: Array, codes: Codes, dictionary: Array) -> Array:
    """Return rows with what codes reconstruct in place of missing values."""
    if not len(rows_with_missing(rows)):
        return rows
    filled, _ = _filled(rows, codes, dictionary)
    return filled


def fill_by_means(rows: Array) -> Array:
    """Return rows with the means of features in place of missing values; 0 if all are missing."""
    partial = rows_with_missing(rows)
    if not len(partial):
        return rows
    missing = np.isnan(rows)
    total = np.where(missing, 0, rows).sum(axis=0, dtype=np.float64)
    means = total / np.maximum(len(rows) - missing.sum(axis=0), 1)
    return np.where(missing, means.astype(rows.dtype), rows)


def sum_up(update: Any, rows: Array, codes: Codes, dictionary: Array) -> Any:
    """Return the sums of an update over rows that may miss values, these filled by their codes."""
    filled, missing = _filled(rows, codes, dictionary)
    return replace(update.sums(filled, codes), missing=missing)


def _filled(rows: Array, codes: Codes, dictionary: Array) -> tuple[Array, Array]:
    """Return filled rows and, per feature, the sum of |w|^2 over the rows that miss it."""
    assert isinstance(codes, PaddedCodes)
    filled: tuple[Array, Array] = machine(rows).fill_missing(
        rows, dictionary, codes.indices, codes.values
    )
    return filled
