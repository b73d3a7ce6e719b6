"""Rows that count differently: sums over rows with weights.

A row of weight v counts as v rows. Sums of squares and products over rows x and codes w are then
those over sqrt(v) x and sqrt(v) w; rows are coded as they are, since a penalty would count for less
on longer signals.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes, DenseCodes, PaddedCodes, RaggedCodes
from kernelatoms.engine import Array
from kernelatoms.learning.moments import Moments


def scaled_rows(rows: Array, weights: NDArray[np.float64]) -> Array:
    """Return rows times the square roots of their weights."""
    with np.errstate(over="ignore"):
        scaled = rows * _roots(weights, rows)[:, None]
    if np.isinf(scaled).any():
        raise ValueError(f"sample_weight is so large that X overflows {rows.dtype}; scale it down.")
    return scaled


def weighted_sums(
    update: Any, rows: Array, codes: Codes, dictionary: Array, weights: NDArray[np.float64]
) -> tuple[Any, Codes]:
    """Return the sums of an update over rows with weights above 0, and the codes that they are of.

    Parameters
    ----------
    update : AdditiveUpdate
        Sums up.
    rows : array of shape (n, n_features)
        The rows.
    codes : Codes
        Their codes.
    dictionary : array of shape (n_atoms, n_features)
        The atoms.
    weights : array of shape (n,)
        How much every row counts.

    Returns
    -------
    sums : object
        The sums.
    codes : Codes
        Those of rows times the square roots of their weights.
    """
    scaled = _scaled_codes(codes, weights)
    sums = update.sums(scaled_rows(rows, weights), scaled, dictionary)
    if isinstance(sums, Moments):
        sums = replace(sums, l1_norm=_scaled_codes(scaled, weights).l1_norm())
    return sums, scaled


def _scaled_codes(codes: Codes, weights: NDArray[np.float64]) -> Codes:
    """Return the codes of rows times the square roots of their weights."""
    error = codes.error * np.asarray(weights, dtype=np.float64, like=codes.error)
    if isinstance(codes, RaggedCodes):
        roots = np.repeat(_roots(weights, codes.values), np.diff(codes.indptr))
        return replace(codes, error=error, values=codes.values * roots)
    if isinstance(codes, PaddedCodes):
        roots = _roots(weights, codes.values)
        return replace(codes, error=error, values=codes.values * roots[:, None])
    assert isinstance(codes, DenseCodes)
    roots = _roots(weights, codes.weights)
    return replace(codes, error=error, weights=codes.weights * roots[:, None])


def _roots(weights: NDArray[np.float64], like: Array) -> Array:
    return np.asarray(np.sqrt(weights), dtype=like.dtype, like=like)
