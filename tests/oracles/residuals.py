"""What the atoms of a class leave of a signal, by the book."""

import numpy as np


def class_residuals(X, D, W, owner, n_classes):
    """|x - D_c w_c|^2 over the observed entries (those that are not NaN)."""
    out = np.empty((len(X), n_classes))
    for s, x in enumerate(X):
        for c in range(n_classes):
            left = x - W[s, owner == c] @ D[owner == c]
            out[s, c] = np.sum(left[~np.isnan(x)] ** 2)
    return out
