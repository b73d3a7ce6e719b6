"""Kernels by name: one pair of rows at a time, and all pairs in extended precision."""

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


def matrix(name, X, Y, gamma, degree, coef0):
    """Return k(x, y) of all pairs in extended precision, which numbers of any size fit in."""
    X, Y = X.astype(np.longdouble), Y.astype(np.longdouble)
    gamma, coef0 = np.longdouble(gamma), np.longdouble(coef0)
    inner = X @ Y.T
    if name == "linear":
        return inner
    if name in ("poly", "polynomial"):
        return (gamma * inner + coef0) ** np.longdouble(degree)
    if name == "sigmoid":
        return np.tanh(gamma * inner + coef0)
    if name == "cosine":
        norms = np.sqrt((X**2).sum(axis=1))[:, None] * np.sqrt((Y**2).sum(axis=1))
        return np.divide(inner, norms, out=np.zeros_like(inner), where=norms > 0)
    differences = X[:, None] - Y
    if name == "rbf":
        return np.exp(-gamma * (differences**2).sum(axis=2))
    if name == "laplacian":
        return np.exp(-gamma * np.abs(differences).sum(axis=2))
    sums = X[:, None] + Y
    chi2 = np.divide(differences**2, sums, out=np.zeros_like(sums), where=sums > 0).sum(axis=2)
    return np.exp(-gamma * chi2) if name == "chi2" else -chi2
