"""The Nystroem map by the book: eqs. (20)-(24) and (30) of the LKDL paper."""

import numpy as np


def virtual_samples(K_xr, K_rr, k):
    """F = C V_k S_k^(-1/2)."""
    s, V = np.linalg.eigh(K_rr)
    return K_xr @ V[:, ::-1][:, :k] / np.sqrt(s[::-1][:k])


def nystroem_error(K, F):
    """|K - F F'|_F / |K|_F."""
    return np.linalg.norm(K - F @ F.T) / np.linalg.norm(K)


def coreset_weights(X):
    """|x - mu gamma|^2 with the best gamma for every x."""
    mu = X.mean(axis=0)
    return np.array([np.sum((x - mu * (x @ mu) / (mu @ mu)) ** 2) for x in X])
