"""l1 coding by the book: cyclic coordinate descent, eqs. (8) and (9) of the FKSC paper."""

import numpy as np


def objective(x, D, w, alpha):
    """1/2 |x - D'w|^2 + alpha |w|_1, atoms in rows."""
    return 0.5 * np.sum((x - w @ D) ** 2) + alpha * np.abs(w).sum()


def coordinate_descent(x, D, alpha, positive=False, n_passes=3000):
    """Soft-threshold one coefficient after another."""
    w = np.zeros(len(D))
    for _ in range(n_passes):
        for i in np.flatnonzero((D**2).sum(axis=1)):
            z = D[i] @ (x - w @ D) + (D[i] @ D[i]) * w[i]
            size = max(z - alpha, 0) if positive else np.sign(z) * max(abs(z) - alpha, 0)
            w[i] = size / (D[i] @ D[i])
    return w


def duality_gap(x, D, w, alpha, positive=False):
    """Primal less dual at theta = t r, the best feasible t up to 1."""
    r = x - w @ D
    c = D @ r
    largest = c.max() if positive else np.abs(c).max()
    t = min(1.0, alpha / largest) if largest > 0 else 1.0
    t = min(t, max(x @ r / (r @ r), 0.0)) if r @ r > 0 else t
    return objective(x, D, w, alpha) - (t * (x @ r) - t * t * (r @ r) / 2)
