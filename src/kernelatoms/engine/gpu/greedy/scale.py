"""Codes of signals that were coded at a power of two of themselves, scaled back."""

import torch
from torch import Tensor

from kernelatoms.engine.gpu.arrays.ufuncs import ldexp


def scale_back(
    exponents: Tensor | None,
    longest: float,
    energy: Tensor | None,
    values: Tensor,
    squares: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return codes (n, k) and squares (n,) at the scale of their signals.

    Codes that do not fit their type are refused. ``longest`` is the largest |d|^2 of an atom.
    """
    if exponents is None:
        return values, squares
    coded = (values != 0).any(dim=1)
    name = str(values.dtype).removeprefix("torch.")
    values = ldexp(values, exponents[:, None])
    squares = ldexp(squares, 2 * exponents)
    if not bool(torch.isfinite(values).all()):
        raise ValueError(
            f"The codes overflow {name}: the signals are too long for atoms of norm "
            f"{longest**0.5:.2g} at most; scale X down, or the dictionary up, or use float64."
        )
    # Coefficients are multiples of the smallest number. Over atoms of norm up to 2 that rounds a
    # signal about as much as its own entries are.
    numbers = torch.finfo(values.dtype)
    blur = numbers.smallest_normal * numbers.eps * longest**0.5
    sizes = (squares if energy is None else energy)[coded]
    shortest = max(float(sizes.min()), 0.0) ** 0.5 if len(sizes) else torch.inf
    if longest > 4 and blur > numbers.eps * shortest:
        raise ValueError(
            f"The codes underflow {name}: the signals are too short for atoms of norm "
            f"{longest**0.5:.2g}; scale X up, or the dictionary down, or use float64."
        )
    return values, squares
