"""Learning from rows with missing values (NaN): what is observed counts, and nothing else.

Such rows are coded by their observed entries. With M the mask of these, an update wants atoms of a
small |M * (X - W D)|^2. Filled with their reconstructions, missing entries have residuals of 0, and
the ordinary update of filled rows lowers

    |X_filled - W D'|^2 >= |M * (X - W D')|^2,   equal at D' = D,

which adds up over rows: majorisation and minimisation, or the EM of least squares. A step moves
atoms by about the observed share of what is needed. Features do not depend on each other once codes
are there, and any multiple of a step below 2 lowers the objective of its feature too: each is taken
1 / share times, at most 1.9 times.

See docs/decisions/065-learning-from-observed-values.md.
"""

from collections.abc import Callable

import numpy as np

from kernelatoms.coding.codes import Codes, PaddedCodes
from kernelatoms.engine import Array, machine
from kernelatoms.learning.runs import Run, SumRequest
from kernelatoms.rows import RowSource
from kernelatoms.similarity.missing import rows_with_missing

# The most times that a step is taken: below 2, where it would no longer lower the objective.
_MOST = 1.9


# Rows whose means are summed up at once, in bytes.
_BLOCK_BYTES = 4 << 20


def relaxation(missing: Array, step: float = 1.0) -> Array:
    """Return how many times steps of features are taken, given the shares that are missing.

    ``step`` is how many times those of features are taken that are never missing.
    """
    return np.minimum(step / np.maximum(1.0 - missing, step / _MOST), _MOST)


def missing_shares(rows: Array, codes: Codes) -> Array | None:
    """Return the share of the codes' energy for which each feature is missing; None if none is."""
    if not len(rows_with_missing(rows)):
        return None
    assert isinstance(codes, PaddedCodes)
    sizes = np.square(codes.values, dtype=np.float64).sum(axis=1)
    missing: Array = sizes.astype(rows.dtype) @ np.isnan(rows).astype(rows.dtype)
    return missing.astype(np.float64) / max(float(sizes.sum()), np.finfo(np.float64).tiny)


def fill_by_codes(rows: Array, code: Callable[[], Codes], dictionary: Array) -> Array:
    """Return rows with what their codes reconstruct in place of missing values, if there are."""
    return filled(rows, code(), dictionary)[0] if len(rows_with_missing(rows)) else rows


def filled(rows: Array, codes: Codes, dictionary: Array) -> tuple[Array, Array]:
    """Return the same rows and, per feature, the sum of |w|^2 over those that miss it."""
    assert isinstance(codes, PaddedCodes)
    found: tuple[Array, Array] = machine(rows).fill_missing(
        rows, dictionary, codes.indices, codes.values
    )
    return found


def fill_by_means(rows: Array, means: Array | None = None) -> Array:
    """Return rows with the means of features in place of missing values.

    These are means of all rows where ``rows`` are a part of them; 0 if all values are missing.
    """
    if not len(rows_with_missing(rows)):
        return rows
    means = _means(_totals(rows)) if means is None else means
    return np.where(np.isnan(rows), means.astype(rows.dtype), rows)


def feature_means(rows: RowSource) -> Run:
    """Return the means of features over the values that are there; a run."""
    block_rows = max(1, _BLOCK_BYTES // ((rows.n_features or 1) * rows.dtype.itemsize))
    return _means((yield SumRequest(rows, lambda block, _: _totals(block), block_rows)))


def _totals(rows: Array) -> Array:
    """Return the sums of the values that are there, and how many there are, per feature."""
    missing = np.isnan(rows)
    total = np.where(missing, 0, rows).sum(axis=0, dtype=np.float64)
    return np.stack([total, len(rows) - missing.sum(axis=0)])


def _means(totals: Array) -> Array:
    return totals[0] / np.maximum(totals[1], 1)
