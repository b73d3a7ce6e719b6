"""Kernels of rows with missing values, one pair and one entry at a time."""

import numpy as np


def partial_kernel(name, x, y, gamma=None, degree=3, coef0=1):
    """k(x, y) of an x with NaN, from the observed entries scaled up to all."""
    seen = [i for i in range(len(x)) if not np.isnan(x[i])]
    gamma = 1 / len(x) if gamma is None else gamma
    scale = len(x) / len(seen)
    part = np.linalg.norm(y[seen]) / np.linalg.norm(y)
    inner = np.sqrt(scale) * sum(x[i] * y[i] for i in seen) / part
    if name == "rbf":
        return np.exp(-gamma * scale * sum((x[i] - y[i]) ** 2 for i in seen))
    if name == "laplacian":
        return np.exp(-gamma * scale * sum(abs(x[i] - y[i]) for i in seen))
    if name == "cosine":
        return x[seen] @ y[seen] / (np.linalg.norm(x[seen]) * np.linalg.norm(y[seen]))
    if name == "linear":
        return inner
    if name == "sigmoid":
        return np.tanh(gamma * inner + coef0)
    return (gamma * inner + coef0) ** degree


def shrink(f, s, energy):
    """f_i s_i / (s_i + weight) with the smallest weight for which |f|^2 <= energy, by bisection."""
    if f @ f <= energy:
        return f
    low, high = 1e-30, 1e30
    for _ in range(400):
        weight = np.sqrt(low * high)
        above = np.sum((f * s / (s + weight)) ** 2) > energy
        low, high = (weight, high) if above else (low, weight)
    return f * s / (s + high)


def consistent(K, k_x, energy):
    """Kernel values of a vector of at most this energy, nearest to k_x by ridge regression."""
    s, V = np.linalg.eigh(K)
    keep = s > len(s) * np.finfo(float).eps * s[-1]
    s, V = s[keep], V[:, keep]
    return V @ (np.sqrt(s) * shrink(V.T @ k_x / np.sqrt(s), s, energy))
