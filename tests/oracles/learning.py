"""Dictionary updates by the book."""

import numpy as np


def mod(X, W):
    """Least-squares dictionary for codes W."""
    return np.linalg.pinv(W) @ X


def overstep(X, D, W):
    """One and a half times the step from D to the least-squares dictionary, at unit norm."""
    D = D + 1.5 * (mod(X, W) - D)
    return D / np.linalg.norm(D, axis=1, keepdims=True)


def ksvd_sweep(X, D, W):
    """K-SVD with a full SVD an atom; returns new D and W."""
    D, W = D.copy(), W.copy()
    for j in range(len(D)):
        users = np.flatnonzero(W[:, j])
        if len(users):
            E = X[users] - W[users] @ D + np.outer(W[users, j], D[j])
            U, s, Vt = np.linalg.svd(E, full_matrices=False)
            D[j], W[users, j] = Vt[0], U[:, 0] * s[0]
    return D, W


def alternating_sweep(X, D, W, n_alternations):
    """The same with d = E'w / |E'w|, w = E d in place of the SVD."""
    D, W = D.copy(), W.copy()
    for j in range(len(D)):
        users = np.flatnonzero(W[:, j])
        E = X[users] - W[users] @ D + np.outer(W[users, j], D[j])
        for _ in range(n_alternations if len(users) else 0):
            D[j] = E.T @ W[users, j] / np.linalg.norm(E.T @ W[users, j])
            W[users, j] = E @ D[j]
    return D, W


def descend_atoms(A, B, D, n_sweeps):
    """Mairal et al. 2010, Algorithm 2: each atom in turn to its minimum within the unit ball."""
    D = D.astype(np.float64)
    for _ in range(n_sweeps):
        for j in np.flatnonzero(np.diagonal(A) > 0):
            u = D[j] + (B[j] - A[j] @ D) / A[j, j]
            D[j] = u / max(np.linalg.norm(u), 1)
    return D
