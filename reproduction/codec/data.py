"""The four data sets as arrays whose rows are within the bound, and the error of every row."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.datasets import load_planetlab, load_pm25, load_traffic
from reproduction.codec.packing import mask_bytes
from reproduction.fksc.data import synthetic_rows
from reproduction.study import DataHome

Array = NDArray[Any]

#: Rows of a day: ten-minute windows (Traffic), hours (PM2.5).
PERIODS = {"traffic": 144, "pm25": 24}


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers to be stored; NaN where there is none. Rows lie along the last axis."""

    name: str
    values: Array

    @cached_property
    def known(self) -> Array:
        """Where there is a number."""
        return ~np.isnan(self.values)

    @cached_property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return bool(self.known.all())

    @cached_property
    def integers(self) -> bool:
        """Whether all values are whole numbers, which a decoder may round to."""
        known = self.values[self.known]
        return np.array_equal(np.rint(known), known)

    @cached_property
    def symmetric(self) -> bool:
        """Whether these are slices of symmetric matrices with zeros on the diagonal."""
        v = self.values
        if v.ndim != 3 or v.shape[1] != v.shape[2]:
            return False
        return np.array_equal(v, v.transpose(0, 2, 1)) and not v.diagonal(0, 1, 2).any()

    @cached_property
    def row_norms(self) -> Array:
        """The norm of every row's known values."""
        return _norms(np.nan_to_num(self.values))

    @cached_property
    def gap_bytes(self) -> int:
        """The bytes that say where values are missing."""
        return mask_bytes(self.known)

    @cached_property
    def bridged(self) -> Array:
        """The values with gaps filled by straight lines down every column.

        What rivals cannot leave out they are given in the form that costs them least.
        """
        if self.complete:
            return self.values
        filled = self.values.copy()
        places = np.arange(len(filled))
        for column in filled.T:
            known = ~np.isnan(column)
            column[:] = np.interp(places, places[known], column[known]) if known.any() else 0
        return filled

    def row_errors(self, decoded: Array) -> Array:
        """Return |row - decoded row| / |row| over known values; a row of zeros allows no error.

        Rows without any known value are left out.
        """
        missed = self.values - decoded
        missed = _norms(missed if self.complete else np.where(self.known, missed, 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(missed == 0, 0, missed / self.row_norms)
        return relative[self.known.any(axis=-1)]


def _norms(values: Array) -> Array:
    return np.sqrt(np.einsum("...i,...i->...", values, values, dtype=np.float64))


@lru_cache(maxsize=1)
def load_table(data: str, data_home: DataHome, seed: int = 0) -> Table:
    """Return a data set in float32, in the order in which it was measured.

    Parameters
    ----------
    data : str
        "planetlab": 18 slices of 490 x 490, rows are (slice, node). "traffic": snapshots of 49
        roads, ten minutes apart; the road without data is left out. "pm25": hours of 36 stations,
        with gaps. "syn360": 1,500 made-up signals.
    data_home : path or None
        The folder of the files.
    seed : int
        The draw of the made-up signals.
    """
    return Table(data, np.ascontiguousarray(_load(data, data_home, seed), np.float32))


def _load(data: str, data_home: DataHome, seed: int) -> Array:
    if data == "planetlab":
        return load_planetlab(data_home=data_home).X
    if data == "traffic":
        speeds = load_traffic(data_home=data_home).X
        alive = speeds[:, speeds.any(axis=(0, 2))]
        return alive.transpose(2, 0, 1).reshape(-1, alive.shape[1])
    if data == "pm25":
        return load_pm25(data_home=data_home).X
    if data == "syn360":
        return synthetic_rows(360, 1500, seed)
    raise ValueError(f"no such data set: {data!r}.")
