"""Rows and their integers: the arrays that predictors read and fill."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.engine import Array

# Steps are 2^(code / 16). Numbers are near 1 or on a grid of decimals: smaller steps would be below
# rounding errors.
LEAST_CODE, MOST_CODE = -16 * 60, 16 * 60
# The worth of a bit in squared steps, when a value moves to a cheaper cell: ln(2) / 6 at high
# rates, where the error is step^2 / 12. Other numbers are worse.
TRADE = 0.11
# The most decimals of a grid, and a bound on its points.
MOST_DECIMALS = 9
_MOST_POINTS = 2.0**40


@dataclass(frozen=True)
class Unit:
    """The unit that numbers are converted to: points of a decimal grid, or a power of two."""

    # All numbers are multiples of 10^-decimals; -1 if they are not on such a grid.
    decimals: int = -1
    # Without a grid, numbers are divided by 2^exponent, which brings the largest near 1.
    exponent: int = 0

    @classmethod
    def fitting(cls, rows: Array) -> "Unit":
        """Return the unit of rows: the coarsest grid that all values are on, if there is one."""
        finite = rows[np.isfinite(rows)]
        size = float(np.abs(finite).max(initial=0.0))
        if size == 0.0:
            return cls(0)
        wide = finite.astype(np.float64)
        for decimals in range(MOST_DECIMALS + 1):
            scale = float(10**decimals)
            if size * scale >= _MOST_POINTS:
                break
            # Most numbers that are on no grid show it at once.
            if all(
                ((np.rint(wide[:n] * scale) / scale).astype(rows.dtype) == finite[:n]).all()
                for n in (1000, len(wide))
            ):
                return cls(decimals)
        return cls(-1, int(np.frexp(size)[1]))

    @property
    def scale(self) -> float:
        """Grid points per unit, 0 without a grid."""
        return float(10**self.decimals) if self.decimals >= 0 else 0.0

    def of(self, rows: Array) -> Array:
        """Return rows in this unit, in float64."""
        return _times_power(rows.astype(np.float64), -self.exponent)

    def nearest(self, rows: Array) -> Array:
        """Return rows in this unit, rounded to the grid: float32 is only close to it."""
        values = self.of(rows)
        if self.decimals < 0:
            return values
        with np.errstate(over="ignore"):
            values *= self.scale
            np.rint(values, out=values)
            values /= self.scale
        return values

    def step(self, value: float) -> float:
        """Return a number in this unit."""
        with np.errstate(over="ignore"):
            return float(np.ldexp(value, -self.exponent))

    def back(self, values: Array, dtype: Any) -> Array:
        """Invert ``of``."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(_times_power(values, self.exponent).astype(dtype))


def _times_power(values: Array, exponent: int) -> Array:
    """Return values times 2^exponent."""
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(values, exponent)) if exponent else values


@dataclass
class QuantisedBlock:
    """Rows, integers and what is known of both: the arrays that loops read and fill."""

    x: Array  # the rows in their unit, of shape (n, m); without rows when decoding
    coded: Array  # uint8 of shape (n, m): where integers are coded
    given: Array  # known values elsewhere, NaN where there are none
    limits: Array  # the largest l2 error of every row
    decoded: Array  # history, then the decoded rows
    decoding: bool  # whether steps and integers are read or written
    unit: Unit
    absolute: float = np.inf  # the largest error of a value
    trade: float = TRADE
    least: int = LEAST_CODE  # the range of codes
    most: int = MOST_CODE
    codes: Array = field(init=False)  # the rows' steps, in sixteenths of an octave
    # ``EXACT_ROW`` where no step suffices: such rows move from ``coded`` to ``given``.
    kinds: Array = field(init=False)
    k: Array = field(init=False)  # the integers
    side: Array = field(init=False)  # integers of the model, per row

    def __post_init__(self) -> None:
        n, m = self.coded.shape
        self.codes = np.zeros(n, np.int32)
        self.kinds = np.zeros(n, np.uint8)
        self.k = np.zeros((n, m), np.int32)
        self.side = np.zeros((n, 0), np.int32)

    @property
    def scale(self) -> float:
        """Grid points per unit, 0 without a grid."""
        return self.unit.scale

    @property
    def rows(self) -> Array:
        """The decoded rows, without history."""
        return self.decoded[len(self.decoded) - len(self.k) :]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The last arguments of all loops that code rows."""
        return (
            self.x, self.coded, self.given, self.limits, self.scale, self.absolute, self.trade,
            self.least, self.most, self.codes, self.kinds, self.k, self.decoded, self.decoding,
        )  # fmt: skip


def block_to_encode(rows: Array, bound: Bound, model: CodecModel, unit: Unit) -> QuantisedBlock:
    """Return a block to encode; the model's history, if any, precedes the rows."""
    x = unit.nearest(np.where(np.isfinite(rows), rows, 0))
    norms = np.linalg.norm(x, axis=1)
    limits, absolute = np.full(len(x), np.inf), 0.0 if bound.exact else np.inf
    # Less what rounding can add: to the rows' type, in these sums, to the grid.
    rounding = float(np.finfo(rows.dtype).eps) * (1.0 if unit.scale else 0.5) + 2.0**-52
    if bound.relative is not None:
        limits = norms * max(bound.relative * (1 - 1e-9) - rounding, 0.0)
    if bound.absolute is not None:
        largest = float(np.abs(x).max(initial=0.0))
        absolute = max(unit.step(bound.absolute) * (1 - 1e-9) - rounding * largest, 0.0)
    block = _block(x, ~np.isnan(rows), limits, model, unit, False)
    block.absolute = absolute
    # Cells smaller than the distance of grid points gain nothing.
    block.least = LEAST_CODE if unit.scale == 0 else int(np.floor(-16 * np.log2(unit.scale)))
    if absolute < np.inf:
        widest = 2 * absolute + (1 / unit.scale if unit.scale else 0.0)
        code = np.floor(16 * np.log2(widest)) if widest > 0 else block.least
        block.most = int(np.clip(code, block.least, MOST_CODE))
    return block


def block_to_decode(observed: Array, model: CodecModel, unit: Unit) -> QuantisedBlock:
    """Return a block to decode, its integers still to be filled in."""
    return _block(np.empty((0, observed.shape[1])), observed, np.empty(0), model, unit, True)


def _block(
    x: Array, observed: Array, limits: Array, model: CodecModel, unit: Unit, decoding: bool
) -> QuantisedBlock:
    coded = observed.astype(np.uint8)
    if model.symmetric:  # one half of each slice
        slices = coded.reshape(-1, model.n_columns, model.n_columns)
        slices *= np.triu(np.ones(slices.shape[1:], np.uint8))
    history = unit.nearest(model.arrays.get("history", np.empty((0, coded.shape[1]))))
    return QuantisedBlock(
        x, coded, np.full(coded.shape, np.nan), limits,
        np.concatenate([history, np.zeros(coded.shape)]), decoding, unit,
    )  # fmt: skip


def set_rows(block: QuantisedBlock, chosen: Array, values: Array, observed: Array, m: int) -> None:
    """Set the values of rows that are not coded.

    ``values`` are known where ``observed``; ``m`` is the number of columns of symmetric slices, 0
    for other rows.
    """
    block.coded[chosen] = 0
    block.given[chosen] = np.where(observed[chosen], values[chosen], np.nan)
    for row in np.flatnonzero(chosen) if m else ():
        start, column = row // m * m, row % m
        block.coded[start : start + m, column] = 0
        block.given[start : start + m, column] = block.given[row]
