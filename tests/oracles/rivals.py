"""The rivals of the FKSC paper by the book; W as the papers write it, one column a signal."""

import numpy as np


def kfmc(K, B, beta):
    """(K_DD + beta I)^-1 K_DY."""
    return np.linalg.inv(K + beta * np.eye(len(K))) @ B


def l21_objective(K, B, W, alpha, eps=0.0):
    """|phi(Y) - phi(X) W|^2 + alpha sum_i sqrt(|w^i|^2 + eps^2), less |phi(Y)|^2."""
    rows = sum(np.sqrt(w @ w + eps**2) for w in W)
    return np.trace(W.T @ K @ W) - 2 * np.trace(W.T @ B) + alpha * rows


def l21_by_rows(K, B, alpha, n_passes=2000):
    """Block coordinate descent: every row's minimum with the others fixed.

    For one row, K_ii |w|^2 - 2 w'r + alpha |w| with r what the others leave: w along r, of length
    (|r| - alpha/2) / K_ii where that is positive.
    """
    W = np.zeros(B.shape)
    for _ in range(n_passes):
        for i in range(len(K)):
            if K[i, i] <= 0:
                continue
            r = B[i] - K[i] @ W + K[i, i] * W[i]
            size = np.linalg.norm(r)
            W[i] = max(size - alpha / 2, 0) / K[i, i] * r / size if size > 0 else 0
    return W


def largest(w, count):
    """Keep the so many entries of largest |w|, the first of equal ones."""
    kept = np.zeros(len(w))
    for i in sorted(range(len(w)), key=lambda i: -abs(w[i]))[:count]:
        kept[i] = w[i]
    return kept


def lpm(K, b, n_nonzero, n_steps):
    """Proximal gradient steps with a cut to so many nonzeros, from w = 0."""
    L = np.linalg.eigvalsh(K)[-1]
    w = np.zeros(len(K))
    for _ in range(n_steps):
        w = largest(w - (K @ w - b) / L, n_nonzero)
    return w


def l0_objective(K, b, w):
    """1/2 |phi(y) - phi(D) w|^2 less |phi(y)|^2 / 2."""
    return 0.5 * w @ K @ w - b @ w
