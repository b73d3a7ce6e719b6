"""All values of a tensor looked at once; see ``engine.cpu.values``."""

from typing import Any

import torch

from kernelatoms.engine.cpu.values import Spread


def all_finite(X: Any) -> bool:
    """Whether all values are finite, and so is their sum."""
    return bool(torch.isfinite(X.sum()))


def spread(X: Any) -> Spread:
    """Return the range, the mean and the variance of all values, of which there must be some."""
    lowest, highest = torch.aminmax(X)
    wide = X.to(torch.float64)
    variance, mean = torch.var_mean(wide, correction=0)
    return Spread(float(lowest), float(highest), float(mean), float(variance))


def count_values(values: Any, n: int) -> Any:
    """Return how often each whole number from 0 to n - 1 is among the values; others are none."""
    flat = values.reshape(-1)
    flat = flat[(flat >= 0) & (flat < n)]
    return torch.bincount(flat.to(torch.int64), minlength=n)
