"""How far decoded rows are from the original ones, in numbers that a header has room for."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: The shares of rows that a header tells the largest error of.
SHARES = (0.5, 0.9, 0.99, 1.0)
_MOST_KEPT = 1 << 20
# Values that are compared at a time.
_PIECE = 1 << 18


def row_errors(rows: Array, decoded: Array) -> tuple[Array, float]:
    """Return every row's error relative to its norm, and the largest error of any value.

    Parameters
    ----------
    rows, decoded : array of shape (n_rows, n_columns)
        The original rows and what was decoded; values that are not finite do not count.

    Returns
    -------
    relative : array of shape (n_rows,)
        |row - decoded| / |row|; infinite where zeros did not come back as zeros.
    largest : float
        The largest |value - decoded|.
    """
    n = max(1, _PIECE // max(1, rows.shape[1]))
    found = [_errors(rows[i : i + n], decoded[i : i + n]) for i in range(0, len(rows), n)]
    if not found:
        return np.zeros(0), 0.0
    return np.concatenate([relative for relative, _ in found]), max(most for _, most in found)


def _errors(rows: Array, decoded: Array) -> tuple[Array, float]:
    rows, decoded = rows.astype(np.float64), decoded.astype(np.float64)
    rows = np.where(np.isfinite(rows), rows, 0.0)
    # Powers of two keep squares of huge and tiny numbers in range and change no digit.
    size = np.abs(rows).max(axis=1, initial=0.0)
    unit = np.exp2(-np.frexp(size)[1].astype(np.float64).clip(-1000, 1000))[:, None]
    errors = np.where(np.isfinite(decoded) & (rows != 0), decoded, 0.0) * unit - rows * unit
    errors += np.where(np.isfinite(decoded) & (rows == 0), decoded, 0.0) * unit
    lengths = np.linalg.norm(errors, axis=1)
    norms = np.linalg.norm(rows * unit, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(lengths == 0, 0.0, lengths / norms)
    largest = (np.abs(errors).max(axis=1, initial=0.0) / unit[:, 0]).max(initial=0.0)
    return relative, float(largest)


class Tally:
    """Errors of many rows, of which some hundred thousand are remembered."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.largest = 0.0
        self._most = 0.0
        self._kept: list[Array] = []
        self._every = 1

    def add(self, relative: Array, largest: float) -> None:
        """Count the rows of a block."""
        self.n_rows += len(relative)
        self.largest = max(self.largest, largest)
        self._most = max(self._most, float(relative.max(initial=0.0)))
        self._kept.append(relative[:: self._every].astype(np.float32))
        if sum(map(len, self._kept)) > _MOST_KEPT:
            self._kept = [np.concatenate(self._kept)[::2]]
            self._every *= 2

    def add_summary(self, numbers: tuple[float, ...], n_rows: int) -> None:
        """Count rows of which only a summary is known."""
        if not numbers or not n_rows:
            return
        places = np.linspace(0, 1, min(n_rows, 1000) + 1)[1:]
        spread = np.interp(places, (0.0, *SHARES), (0.0, *numbers[:4]))
        self.add(np.repeat(spread, max(1, n_rows // self._every // len(spread))), numbers[4])
        self._most = max(self._most, numbers[3])

    def numbers(self) -> tuple[float, ...]:
        """Return the errors at ``SHARES`` and the largest of any value, in a few digits."""
        if not self.n_rows:
            return ()
        kept = np.concatenate(self._kept)
        at_shares = np.quantile(kept, SHARES[:-1], method="higher").tolist()
        found = (*at_shares, self._most, self.largest)
        digits = (3, 3, 3, 4, 4)
        return tuple(
            float(f"{min(value, 1e300):.{n}g}") for value, n in zip(found, digits, strict=True)
        )
