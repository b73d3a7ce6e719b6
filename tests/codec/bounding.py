"""Whether decoded values are within a bound, in fractions: no rounding at all."""

from fractions import Fraction

import numpy as np


def within(row, decoded, relative=None, absolute=None, share=1):
    """Tell whether a row came back within a share of its bound; without one, exactly."""
    pairs = [(float(x), float(y)) for x, y in zip(row, decoded, strict=True)]
    if any(np.isfinite(x) != np.isfinite(y) for x, y in pairs):
        return False
    if any(str(x) != str(y) for x, y in pairs if not np.isfinite(x)):
        return False
    pairs = [(x, y) for x, y in pairs if np.isfinite(x)]
    if relative is None and absolute is None:
        return all(str(x) == str(y) for x, y in pairs)
    errors = [abs(Fraction(x) - Fraction(y)) for x, y in pairs]
    right = absolute is None or all(e <= Fraction(absolute) * share for e in errors)
    energy = sum(Fraction(x) ** 2 for x, _ in pairs)
    limit = 0 if relative is None else (Fraction(relative) * share) ** 2 * energy
    return right and (relative is None or sum(e**2 for e in errors) <= limit)
