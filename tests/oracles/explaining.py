"""What a code leaves of a signal, as a whole and class by class, by the book."""

import numpy as np


def explained(x, atoms, code, owners, n_classes):
    """Return |x|^2, |x - D w|^2 and every |x - D_c w_c|^2, over the entries that are not NaN."""
    seen = ~np.isnan(x)

    def left(w):
        return np.sum((x - w @ atoms)[seen] ** 2)

    parts = [left(code * (owners == c)) for c in range(n_classes)]
    return left(0 * code), left(code), np.array(parts)
