"""Learning from observed entries, by the book."""

import numpy as np


def filled(X, W, D):
    """Rows with their reconstructions in place of missing values."""
    return np.where(np.isnan(X), W @ D, X)


def residuals(X, W, D):
    """Residuals of what is observed."""
    return np.nan_to_num(X - W @ D)


def objective(X, W, D):
    """|M * (X - W D)|^2."""
    return float(np.sum(residuals(X, W, D) ** 2))


def sparing_limit(x, n_nonzero):
    """The most atoms that a row with missing values may use in learning."""
    share = max(0.1, n_nonzero / len(x))
    return min(max(round(share * np.sum(~np.isnan(x))), 1), n_nonzero)
