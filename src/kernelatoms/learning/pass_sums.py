"""What a pass tells of coded rows; that of several blocks adds up along a tree (``rows``).

See docs/decisions/042-blocks-and-sums.md.
"""

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes
from kernelatoms.engine import Array, is_device_array, to_numpy
from kernelatoms.learning.state import worst_represented


@dataclass(frozen=True)
class WorstRows:
    """The worst represented rows, at most ``most``, worst first; of equal ones the first rows.

    ``rows`` are their numbers among all rows, ``error`` their squared residuals.
    """

    rows: NDArray[np.intp]
    error: Array
    most: int

    @classmethod
    def of(cls, error: Array, start: int, most: int) -> Self:
        """Return those of rows start, start + 1, ... with these squared residuals."""
        worst = worst_represented(error, most)
        return cls(start + worst, error[worst], most)

    def __add__(self, later: "WorstRows") -> "WorstRows":
        rows = np.concatenate([self.rows, later.rows])
        error = np.concatenate([self.error, later.error])
        worst = worst_represented(error, self.most)
        return WorstRows(rows[worst], error[worst], self.most)


@dataclass(frozen=True)
class PassSums:
    """The sums of an update over rows, how many rows use each atom, and the worst rows."""

    sums: Any
    uses: NDArray[np.intp]
    worst: WorstRows

    @classmethod
    def of(cls, sums: Any, codes: Codes, start: int) -> Self:
        """Return what rows start, start + 1, ... and their codes tell."""
        return cls(sums, codes.uses(), WorstRows.of(codes.error, start, codes.n_atoms))

    def __add__(self, later: "PassSums") -> "PassSums":
        return PassSums(self.sums + later.sums, self.uses + later.uses, self.worst + later.worst)

    def __iadd__(self, later: "PassSums") -> "PassSums":
        """Add in the memory of these sums."""
        sums = self.sums
        sums += later.sums
        return PassSums(sums, self.uses + later.uses, self.worst + later.worst)


def sums_to_numpy(sums: Any) -> Any:
    """Return sums with numpy arrays for those of a device."""
    if is_device_array(sums):
        return to_numpy(sums)
    if not is_dataclass(sums) or isinstance(sums, type):
        return sums
    parts = {field.name: getattr(sums, field.name) for field in fields(sums)}
    return replace(sums, **{name: sums_to_numpy(part) for name, part in parts.items()})
