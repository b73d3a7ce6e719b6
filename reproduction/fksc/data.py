"""The columns that are coded, one per row here; every set in three parts.

What a method chooses for itself (a bandwidth) it chooses by coding the part ``choose`` over atoms
of the part ``learn``; then it learns from both, and the part ``test`` is coded once.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.datasets import load_planetlab, load_pm25, load_traffic
from reproduction.study import DataHome

Array = NDArray[Any]

N_MAPS = 15
WEEK = 7 * 24
# A week with more than this share of its hours missing is left out; shorter gaps are bridged.
_MOST_MISSING = 0.05


class Columns(NamedTuple):
    """Rows to learn from, to choose on, and to test on."""

    learn: Array
    choose: Array
    test: Array

    @property
    def train(self) -> Array:
        """All that may be learned from."""
        return np.concatenate([self.learn, self.choose])


@lru_cache(maxsize=2)
def load_columns(data: str, scale: str, seed: int, data_home: DataHome) -> Columns:
    """Return a data set's columns in float64.

    Parameters
    ----------
    data : str
        "planetlab", "traffic", "pm25", or "syn360", "syn600", ... with so many values per column;
        "planetlab 8" for slice 8 of time to test, the three before it to train.
    scale : str
        "unit": every column at unit norm; "minmax": the whole set between 0 and 1, then columns at
        unit norm; "raw": as it is.
    seed : int
        The draw of the synthetic sets; the others are the same for every seed.
    data_home : path or None
        The folder of the files.
    """
    if data.startswith("syn"):
        n_values = int(data[3:])
        n_train, n_test = (1000, 500) if n_values == 360 else (2 * n_values, n_values)
        rows = synthetic_rows(n_values, n_train + n_test, seed)
        parts = np.split(rows, [3 * n_train // 4, n_train])
    elif data.startswith("planetlab"):
        parts = _planetlab(data_home, int(data.removeprefix("planetlab") or 4))
    else:
        parts = {"traffic": _traffic, "pm25": _pm25}[data](data_home)
    if scale == "minmax":
        low, high = min(p.min() for p in parts), max(p.max() for p in parts)
        parts = [(part - low) / (high - low) for part in parts]
    if scale != "raw":
        parts = [unit_rows(part) for part in parts]
    return Columns(*parts)


def unit_rows(rows: Array) -> Array:
    """Return rows of norm 1; a row of zeros stays."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)


def synthetic_rows(n_values: int, n_rows: int, seed: int) -> Array:
    """Return rows P s~ (A.5.1): 15 random cubic maps of a cube in three dimensions, shuffled.

    The text has 15 maps and later 18, with 100 columns each: 15 fit the 1,500 columns of Table 3.
    """
    rng = np.random.default_rng(seed)
    maps = rng.standard_normal((N_MAPS, 20, n_values))
    s = rng.uniform(-1, 1, (n_rows, 3))
    rows = np.einsum("ij,ijk->ik", cubic_terms(s), maps[np.arange(n_rows) % N_MAPS])
    return rng.permutation(rows)


def cubic_terms(s: Array) -> Array:
    """Return the 20 monomials of three variables up to degree 3."""
    powers = [(i, j, k) for i in range(4) for j in range(4 - i) for k in range(4 - i - j)]
    return np.stack([np.prod(s**power, axis=1) for power in np.array(powers)], axis=1)


def _planetlab(data_home: DataHome, test: int) -> list[Array]:
    """Round-trip times to one node: one slice of time to test, the three before it to train.

    Slices count from 1; Table 3 trains on 1-3 and tests on 4.
    """
    slices = load_planetlab(data_home=data_home).X[test - 4 : test].astype(np.float64)
    columns = [one.T for one in slices]
    return [np.concatenate(columns[:2]), columns[2], columns[3]]


def _traffic(data_home: DataHome) -> list[Array]:
    """Speeds of one road on one day, 144 values: days 1-8, 9-10, 11-15; the dead road left out."""
    speeds = load_traffic(data_home=data_home).X.astype(np.float64)
    days = speeds[:, speeds.any(axis=(0, 2))].transpose(2, 1, 0)
    return [np.concatenate(part) for part in (days[:8], days[8:10], days[10:])]


def _pm25(data_home: DataHome) -> list[Array]:
    """PM2.5 of one station in one week, 168 values: the first 60% of the weeks, 20%, 20%."""
    data = load_pm25(data_home=data_home)
    n_weeks = (int(data.hour[-1]) + 1) // WEEK
    hours = np.full((n_weeks * WEEK, data.X.shape[1]), np.nan)
    known = data.hour < len(hours)
    hours[data.hour[known]] = data.X[known]
    weeks = hours.reshape(n_weeks, WEEK, -1).transpose(0, 2, 1)
    cuts = [round(0.6 * n_weeks), round(0.8 * n_weeks)]
    return [_nearly_complete(part.reshape(-1, WEEK)) for part in np.split(weeks, cuts)]


def _nearly_complete(weeks: Array) -> Array:
    """Return the weeks with few hours missing, those bridged by straight lines."""
    kept = weeks[np.isnan(weeks).mean(axis=1) <= _MOST_MISSING]
    hours = np.arange(WEEK)
    for week in kept:
        known = ~np.isnan(week)
        week[:] = np.interp(hours, hours[known], week[known])
    return kept
