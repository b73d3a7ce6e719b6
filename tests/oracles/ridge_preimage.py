"""Kernel ridge regression with every row left out in turn, by solving anew each time."""

import numpy as np


def kernel(A, B, gamma):
    if gamma is None:
        return 1 + A @ B.T
    return np.array([[np.exp(-gamma * np.sum((a - b) ** 2)) for b in B] for a in A])


def left_out(F, Y, gamma, share):
    """Return the errors of left-out rows, the weights on all rows, and the errors on these.

    The ridge is a share of the mean k(f, f).
    """
    K = kernel(F, F, gamma)
    ridge = share * np.trace(K) / len(K)
    errors = np.empty_like(Y)
    for i in range(len(F)):
        others = [j for j in range(len(F)) if j != i]
        small = K[np.ix_(others, others)] + ridge * np.eye(len(others))
        errors[i] = Y[i] - K[i, others] @ np.linalg.solve(small, Y[others])
    weights = np.linalg.solve(K + ridge * np.eye(len(K)), Y)
    return errors, weights, Y - K @ weights
