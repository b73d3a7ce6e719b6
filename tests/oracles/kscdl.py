"""KSCDL by its formulas, one pair of rows at a time. Rows are signals."""

import numpy as np


def rbf(gamma):
    return lambda x, y: np.exp(-gamma * np.sum((x - y) ** 2))


def linear(x, y):
    return x @ y


def matrix(kernel, X, Y):
    return np.array([[kernel(x, y) for y in Y] for x in X])


def objective(kernel, X, D, W, alpha):
    """Eqs. (3) and (10): 1/2 |phi(x) - sum_j w_j phi(d_j)|^2 + alpha |w|_1, over all rows."""
    total = 0.0
    for x, w in zip(X, W, strict=True):
        inner = sum(w[j] * kernel(x, d) for j, d in enumerate(D))
        square = sum(w[i] * w[j] * kernel(c, d) for i, c in enumerate(D) for j, d in enumerate(D))
        total += 0.5 * (kernel(x, x) - 2 * inner + square) + alpha * np.abs(w).sum()
    return total


def linear_objective(X, D, W, alpha):
    """Eq. (1): what dictionary learning without a kernel minimises."""
    return 0.5 * np.sum((X - W @ D) ** 2) + alpha * np.abs(W).sum()


def rbf_gradient(X, D, W, gamma):
    """Eq. (11) as printed, columns for rows: (X G1 - Y Q1 + X Q2 - X G2) / sigma^2."""
    Q1, Q2 = W * matrix(rbf(gamma), X, D), (W.T @ W) * matrix(rbf(gamma), D, D)
    G1, G2 = np.diag(Q1.sum(axis=0)), np.diag(Q2.sum(axis=0))
    return 2 * gamma * (D.T @ G1 - X.T @ Q1 + D.T @ Q2 - D.T @ G2).T
