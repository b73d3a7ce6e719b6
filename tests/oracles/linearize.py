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


def squares(X, coef0):
    """phi(x) with phi(x)'phi(y) = (x'y + coef0)^2: all products of two entries of (x, sqrt(c))."""
    Z = np.hstack([X, np.full((len(X), 1), np.sqrt(coef0))])
    return np.stack([np.outer(z, z).ravel() for z in Z])


def change_of_coordinates(rows, old, old_coef, new, new_coef):
    """Least squares over rows, drawn to the inner products of both maps' basis vectors.

    All of it from vectors of feature space: phi of the rows, of old and new landmarks.
    """
    U, V = old_coef.T @ old, new_coef.T @ new
    projection = np.array([[u @ v for v in V] for u in U])
    F, G = rows @ U.T, rows @ V.T
    weight = np.sqrt(0.01 * (F**2).sum() / F.shape[1])
    return np.linalg.lstsq(
        np.vstack([F, weight * np.eye(F.shape[1])]), np.vstack([G, weight * projection]), rcond=None
    )[0]


def moved_sums(X, W, change):
    """W'W and W'X of signals in other coordinates, signal by signal."""
    gram, cross = 0, 0
    for x, w in zip(X, W, strict=True):
        gram = gram + np.outer(w, w)
        cross = cross + np.outer(w, x @ change)
    return gram, cross
