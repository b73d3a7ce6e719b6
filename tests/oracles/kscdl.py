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


def published_codes(K, b, alpha, change_tol, max_passes=100):
    """Codes of one signal by (8) and (9), until |w - w_before| <= change_tol |w_before|."""
    w = np.zeros(len(b))
    for _ in range(max_passes):
        before = w.copy()
        for i in range(len(w)):
            z = b[i] - K[i] @ w + K[i, i] * w[i]
            w[i] = np.sign(z) * max(abs(z) - alpha, 0) / K[i, i]
        if np.linalg.norm(w - before) <= change_tol * np.linalg.norm(before):
            break
    return w


def as_printed(X, D, alpha, gamma, step, change_tol, max_passes):
    """Algorithm 1: codes from zero, (11) with mu = step / |H|_2, until |D - D_before| is small."""
    kernel, reached = rbf(gamma), []
    for _ in range(max_passes):
        K, B = matrix(kernel, D, D), matrix(kernel, X, D)
        W = np.array([published_codes(K, b, alpha, change_tol) for b in B])
        Q1, Q2 = W * B, (W.T @ W) * K
        H = 2 * gamma * (Q2 + np.diag(Q1.sum(axis=0) - Q2.sum(axis=0)))
        before = D
        D = D - step / np.linalg.norm(H, 2) * rbf_gradient(X, D, W, gamma)
        reached.append(objective(kernel, X, D, W, alpha))
        if np.linalg.norm(D - before) <= change_tol * np.linalg.norm(before):
            break
    return D, reached
