"""Kernels by name, one pair of rows at a time."""

import numpy as np


def chi2_sum(x, y):
    return sum((a - b) ** 2 / (a + b) for a, b in zip(x, y, strict=True) if a + b > 0)


def kernel(name, x, y, gamma, degree, coef0):
    """Return k(x, y)."""
    inner = sum(a * b for a, b in zip(x, y, strict=True))
    norms = np.sqrt(sum(x * x) * sum(y * y))
    return {
        "linear": lambda: inner,
        "poly": lambda: (gamma * inner + coef0) ** degree,
        "polynomial": lambda: (gamma * inner + coef0) ** degree,
        "sigmoid": lambda: np.tanh(gamma * inner + coef0),
        "rbf": lambda: np.exp(-gamma * sum((x - y) ** 2)),
        "laplacian": lambda: np.exp(-gamma * sum(abs(x - y))),
        "cosine": lambda: inner / norms if norms > 0 else 0.0,
        "chi2": lambda: np.exp(-gamma * chi2_sum(x, y)),
        "additive_chi2": lambda: -chi2_sum(x, y),
    }[name]()
