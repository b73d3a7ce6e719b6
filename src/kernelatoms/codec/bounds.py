"""The error bound, and statistics of the errors of decoded rows, small enough for a header."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from kernelatoms.engine import Array

#: Quantiles of the rows' errors that a header stores.
SHARES = (0.5, 0.9, 0.99, 1.0)
# Rows whose errors are kept for the quantiles.
_MOST_KEPT = 1 << 20
# Values that are compared at a time: a dozen temporary arrays of a block would fill the memory.
_PIECE = 1 << 18


def _pieces(rows: Array, decoded: Array) -> Iterator[tuple[Array, Array]]:
    """Yield some rows and decoded rows at a time, in float64."""
    n = max(1, _PIECE // max(1, rows.shape[1]))
    for i in range(0, len(rows), n):
        yield rows[i : i + n].astype(np.float64), decoded[i : i + n].astype(np.float64)


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
        """Return which rows miss the bound; both are of one type.

        NaN and infinities must come back unchanged under every bound.
        """
        found = [self._broken(*pair) for pair in _pieces(rows, decoded)]
        return np.concatenate(found) if found else np.zeros(0, bool)

    def _broken(self, rows: Array, decoded: Array) -> Array:
        finite, differ = np.isfinite(rows), rows != decoded
        both_nan = np.isnan(rows) & np.isnan(decoded)
        wrong = np.where(finite, ~np.isfinite(decoded), differ & ~both_nan)
        if self.exact:
            wrong |= finite & (differ | (np.signbit(rows) != np.signbit(decoded)))
            return np.asarray(wrong.any(axis=1))
        broken = wrong.any(axis=1)
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


def row_errors(rows: Array, decoded: Array) -> tuple[Array, float]:
    """Return the error of every row relative to its norm, and the largest error of a value.

    Values that are not finite do not count. The relative error is infinite where zeros did not come
    back as zeros.
    """
    found = [_errors(*pair) for pair in _pieces(rows, decoded)]
    if not found:
        return np.zeros(0), 0.0
    return np.concatenate([relative for relative, _ in found]), max(most for _, most in found)


def _errors(rows: Array, decoded: Array) -> tuple[Array, float]:
    rows = np.where(np.isfinite(rows), rows, 0.0)
    # Scaling by a power of two keeps squares in range and changes no digit.
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


class ColumnSums(NamedTuple):
    """Sums over rows from which the share of each column's variance that is kept follows."""

    n_values: Array  # the number of finite values
    mean: Array
    spread: Array  # their summed squared distances from the mean
    lost: Array  # their summed squared errors

    def with_more(self, other: "ColumnSums") -> "ColumnSums":
        """Return the sums over these rows and others."""
        n_values = self.n_values + other.n_values
        share = other.n_values / np.maximum(n_values, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = other.mean - self.mean
            between = np.square(apart) * self.n_values * share
            return ColumnSums(
                n_values, self.mean + apart * share, self.spread + other.spread + between,
                self.lost + other.lost,
            )  # fmt: skip

    def kept(self) -> Array:
        """Return the share of every column's variance that is kept; 1 for constant columns."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            kept = 1 - self.lost / self.spread
        return np.where((self.spread > 0) & np.isfinite(self.spread), kept, 1.0)


def column_sums(rows: Array, decoded: Array) -> ColumnSums:
    """Return the sums of rows and decoded rows; values that are not finite do not count."""
    return reduce(ColumnSums.with_more, (_sums(*pair) for pair in _pieces(rows, decoded)))


def _sums(rows: Array, decoded: Array) -> ColumnSums:
    finite = np.isfinite(rows) & np.isfinite(decoded)
    n_values = finite.sum(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.where(finite, rows, 0.0).sum(axis=0) / np.maximum(n_values, 1)
        spread = np.square(np.where(finite, rows - mean, 0.0)).sum(axis=0)
        lost = np.square(np.where(finite, decoded - rows, 0.0)).sum(axis=0)
    return ColumnSums(n_values, mean, spread, lost)


class ErrorStats:
    """Errors of many rows; up to a million of them are kept for the quantiles."""

    def __init__(self) -> None:
        self.columns: dict[int, ColumnSums] = {}
        self.n_rows = 0
        self.largest = 0.0
        self._most = 0.0
        self._kept: list[Array] = []
        self._every = 1

    def add(self, relative: Array, largest: float) -> None:
        """Add the rows of a block."""
        self.n_rows += len(relative)
        self.largest = max(self.largest, largest)
        self._most = max(self._most, float(relative.max(initial=0.0)))
        self._kept.append(relative[:: self._every].astype(np.float32))
        if sum(map(len, self._kept)) > _MOST_KEPT:
            self._kept = [np.concatenate(self._kept)[::2]]
            self._every *= 2

    def add_columns(self, part: int, sums: ColumnSums) -> None:
        """Add the columns of a block."""
        old = self.columns.get(part)
        self.columns[part] = sums if old is None else old.with_more(sums)

    def add_summary(self, numbers: tuple[float, ...], n_rows: int) -> None:
        """Add rows of which only the quantiles of ``numbers`` are known."""
        if not numbers or not n_rows:
            return
        places = np.linspace(0, 1, min(n_rows, 1000) + 1)[1:]
        spread = np.interp(places, (0.0, *SHARES), (0.0, *numbers[:4]))
        self.add(np.repeat(spread, max(1, n_rows // self._every // len(spread))), numbers[4])
        self._most = max(self._most, numbers[3])

    def numbers(self) -> tuple[float, ...]:
        """Return the errors at ``SHARES`` and the largest of a value, to a few digits."""
        if not self.n_rows:
            return ()
        kept = np.concatenate(self._kept)
        at_shares = np.quantile(kept, SHARES[:-1], method="higher").tolist()
        found = (*at_shares, self._most, self.largest)
        digits = zip(found, (3, 3, 3, 4, 4), strict=True)
        return tuple(float(f"{min(value, 1e300):.{n}g}") for value, n in digits)
