"""What values have in common, by numpy alone."""

import numpy as np


def spread(X):
    """Return the range, the mean and the variance of all values."""
    values = np.asarray(X, np.float64).reshape(-1)
    mean = values.sum() / len(values)
    return values.min(), values.max(), mean, ((values - mean) ** 2).sum() / len(values)


def counts(values, n):
    """Return how often each number from 0 to n - 1 is among the values."""
    return np.array([np.sum(np.asarray(values) == i) for i in range(n)])
