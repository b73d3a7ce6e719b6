"""All values of an array looked at once: in blocks of rows, on all threads.

One thread reads some 10 GB/s, and a fit that reads all rows three times before it starts waits for
that. Blocks depend on the data alone, and so do the bits of sums.

See docs/decisions/003-one-thread-pool.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.scale import Array
from kernelatoms.engine.cpu.threads import each

Result = TypeVar("Result")

# Bytes that a thread looks at at once: they stay in the caches of its core.
_AT_ONCE = 2 << 20


@dataclass(frozen=True)
class Spread:
    """The least and the largest of some values, their mean and their variance, in float64."""

    lowest: float
    highest: float
    mean: float
    variance: float


def all_finite(X: Array) -> bool:
    """Whether all values are finite, and so is their sum."""
    return all(_each_block(lambda block: bool(np.isfinite(_sum(block))), X))


def holds_nan(X: Array) -> bool:
    """Whether some value is NaN."""
    return any(_each_block(_block_holds_nan, X))


def map_rows(function: Callable[[Array], Array], X: Array) -> Array:
    """Return ``function(rows)`` of blocks of rows of X, one under the other."""
    found = _each_block(function, X) or [function(X)]
    return found[0] if len(found) == 1 else np.concatenate(found)


def spread(X: Array) -> Spread:
    """Return the range, the mean and the variance of all values, of which there must be some.

    Blocks have means m_b and variances v_b; that of all values is the mean of v_b + (m_b - m)^2
    (Chan, Golub and LeVeque, 1979).
    """
    found = _each_block(_spread_of_block, X)
    if len(found) == 1:
        return Spread(*found[0][1:])
    counts, lowest, highest, means, variances = np.array(found).T
    shares = counts / counts.sum()
    mean = shares @ means
    variance = shares @ (variances + (means - mean) ** 2)
    return Spread(float(lowest.min()), float(highest.max()), float(mean), float(variance))


def count_values(values: NDArray[np.integer], n: int) -> NDArray[np.intp]:
    """Return how often each whole number from 0 to n - 1 is among the values; others are none."""

    def counts(block: NDArray[np.integer]) -> NDArray[np.intp]:
        # Numbers below 0, which padding is, are counted at 0, and one number up all others.
        return np.bincount(np.maximum(block.reshape(-1), -1) + 1, minlength=n + 1)[1 : n + 1]

    found = _each_block(counts, values) or [counts(values)]
    return found[0] if len(found) == 1 else np.sum(found, axis=0, dtype=np.intp)


def _each_block(look: Callable[[Array], Result], X: Array) -> list[Result]:
    """Return what ``look`` sees in every block of rows, in their order."""
    rows = max(1, _AT_ONCE * len(X) // max(X.nbytes, 1))
    if len(X) <= rows:  # not worth to wake a thread
        return [look(X)] if len(X) else []
    return each(lambda start: look(X[start : start + rows]), range(0, len(X), rows))


def _sum(block: Array) -> Any:
    # A sum is faster than a test of every value, and propagates NaN and infinity.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.sum(block)


def _block_holds_nan(block: Array) -> bool:
    return bool(np.isnan(_sum(block))) and bool(np.isnan(block).any())


def _spread_of_block(block: Array) -> tuple[float, ...]:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return (
            float(block.size), float(block.min()), float(block.max()),
            float(block.mean(dtype=np.float64)), float(block.var(dtype=np.float64)),
        )  # fmt: skip
