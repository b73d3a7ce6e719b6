"""How far decoded numbers may be from the original ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Bound:
    """The largest error allowed; with neither, numbers come back exactly.

    Parameters
    ----------
    relative : float or None
        Of every row: |row - decoded| <= relative * |row| in the l2 norm, over its finite values.
    absolute : float or None
        Of every value: |value - decoded| <= absolute.
    """

    relative: float | None = None
    absolute: float | None = None

    @property
    def exact(self) -> bool:
        """Whether nothing may change."""
        return self.relative is None and self.absolute is None

    def broken(self, rows: Array, decoded: Array) -> Array:
        """Return which rows are not within the bound.

        NaN, infinities and their signs must come back as they were, whatever the bound.

        Parameters
        ----------
        rows, decoded : array of shape (n_rows, n_columns)
            The original rows and what was decoded, of one type.

        Returns
        -------
        broken : bool array of shape (n_rows,)
        """
        rows, decoded = rows.astype(np.float64), decoded.astype(np.float64)
        finite = np.isfinite(rows)
        other = np.where(finite, 0.0, rows)
        wrong = ~np.isfinite(decoded) & finite
        wrong |= ~finite & ~((decoded == other) | (np.isnan(decoded) & np.isnan(other)))
        if self.exact:
            wrong |= finite & (rows != decoded)
            return np.asarray(wrong.any(axis=1))
        # Powers of two keep squares of huge and tiny numbers in range and change no digit.
        size = np.abs(np.where(finite, rows, 0.0)).max(axis=1, initial=0.0)
        unit = np.exp2(-np.frexp(size)[1].astype(np.float64).clip(-1000, 1000))[:, None]
        values = np.where(finite, rows, 0.0) * unit
        errors = np.where(finite & ~wrong, decoded, 0.0) * unit - np.where(wrong, 0.0, values)
        broken = wrong.any(axis=1)
        if self.relative is not None:
            broken |= np.linalg.norm(errors, axis=1) > self.relative * np.linalg.norm(
                values, axis=1
            )
        if self.absolute is not None:
            broken |= (np.abs(errors) > self.absolute * unit).any(axis=1)
        return np.asarray(broken)
