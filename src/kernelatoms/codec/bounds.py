"""The error bound."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Values that are compared at a time.
_PIECE = 1 << 18


@dataclass(frozen=True)
class Bound:
    """The largest error allowed; without both, numbers come back exactly."""

    # Per row: |row - decoded| <= relative * |row| in the l2 norm, over its finite values.
    relative: float | None = None
    absolute: float | None = None  # per value: |value - decoded| <= absolute

    @property
    def exact(self) -> bool:
        """Whether numbers must come back exactly."""
        return self.relative is None and self.absolute is None

    def broken(self, rows: Array, decoded: Array) -> Array:
        """Return which rows miss the bound.

        NaN and infinities must come back unchanged under every bound.

        Parameters
        ----------
        rows, decoded : array of shape (n_rows, n_columns)
            The original and the decoded rows, of one type.

        Returns
        -------
        broken : bool array of shape (n_rows,)
        """
        # In pieces: a dozen temporary arrays of a block's size would take most of the memory.
        n = max(1, _PIECE // max(1, rows.shape[1]))
        pieces = [self._broken(rows[i : i + n], decoded[i : i + n]) for i in range(0, len(rows), n)]
        return np.concatenate(pieces) if pieces else np.zeros(0, bool)

    def _broken(self, rows: Array, decoded: Array) -> Array:
        rows, decoded = rows.astype(np.float64), decoded.astype(np.float64)
        finite = np.isfinite(rows)
        wrong = np.where(
            finite, ~np.isfinite(decoded), (rows != decoded) & ~(np.isnan(rows) & np.isnan(decoded))
        )
        if self.exact:
            wrong |= finite & ((rows != decoded) | (np.signbit(rows) != np.signbit(decoded)))
        broken = wrong.any(axis=1)
        if self.exact:
            return np.asarray(broken)
        values = np.where(finite, rows, 0.0)
        with np.errstate(over="ignore"):
            errors = np.abs(np.where(finite & ~wrong, decoded, values) - values)
        # Stricter by what rounding in differences and sums can hide.
        rounding = 1 - (rows.shape[1] + 8) * 2.0**-53
        if self.relative is not None:
            broken |= _longer(errors, values, self.relative * rounding)
        if self.absolute is not None:
            broken |= (errors > self.absolute * rounding).any(axis=1)
        return np.asarray(broken)


def _longer(errors: Array, values: Array, share: float) -> Array:
    """Return the rows with |errors| > share * |values|."""
    infinite = np.asarray(np.isinf(errors).any(axis=1))
    of_errors, exponents = _norms(np.where(infinite[:, None], 0.0, errors))
    of_values, others = _norms(values)
    with np.errstate(over="ignore", under="ignore"):
        return infinite | (np.ldexp(of_errors, exponents - others) > share * of_values)


def _norms(rows: Array) -> tuple[Array, Array]:
    """Return norms as numbers near 1 times powers of 2: squares would leave float64's range."""
    exponents = np.frexp(np.abs(rows).max(axis=1, initial=0.0))[1]
    # In two steps: 2^1074 is not a float64.
    half = -(exponents // 2)
    near = rows * np.ldexp(1.0, half)[:, None] * np.ldexp(1.0, -exponents - half)[:, None]
    return np.linalg.norm(near, axis=1), exponents
