"""From what classes leave of a signal to what is thought of it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def regularised_residuals(residuals2: Array, norms2: Array) -> Array:
    """Return r_c = |y - D_c w_c| / |w_c| (eq. (3) of the KCRC-LCD paper); infinite without w_c.

    Parameters
    ----------
    residuals2 : array of shape (n, n_classes)
        Squared residuals, what class c's part of the code leaves of the signal.
    norms2 : array of shape (n, n_classes)
        Squared norms of the parts.
    """
    out = np.full(residuals2.shape, np.inf)
    used = norms2 > 0
    out[used] = np.sqrt(np.maximum(residuals2[used], 0.0) / norms2[used])
    return out


def class_shares(residuals2: Array, norms2: Array, energies: Array, dtype: np.dtype[Any]) -> Array:
    """Return how well each class fits, 1 / r_c^2, as shares of 1: (n, n_classes).

    Parameters
    ----------
    residuals2, norms2 : arrays of shape (n, n_classes)
        As in ``regularised_residuals``.
    energies : array of shape (n,)
        Squared norms of the signals: a residual below 10 eps of them is not told from 0.
    dtype : dtype
        Whose eps that is.

    Returns
    -------
    array of shape (n, n_classes)
        The same for all classes where none has a part in the code.
    """
    smallest = np.finfo(np.float64).tiny
    floor = np.maximum(10 * float(np.finfo(dtype).eps) * energies, smallest)[:, None]
    # Over the largest first: squares of small parts may be no numbers.
    parts = norms2 / np.maximum(norms2.max(axis=1, keepdims=True), smallest)
    fits = parts * (floor / np.maximum(residuals2, floor))
    total = fits.sum(axis=1, keepdims=True)
    n_classes = fits.shape[1]
    return np.where(total > 0, fits / np.where(total > 0, total, 1.0), 1.0 / n_classes)
