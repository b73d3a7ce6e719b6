"""Decoding by the book, eq. (19) of the FKSC paper: one signal at a time."""

import numpy as np


def rbf(y, d, gamma):
    return np.exp(-gamma * np.sum((y - d) ** 2))


def poly(y, d, gamma, degree, coef0):
    return (gamma * (y @ d) + coef0) ** degree


def objective(k, y, D, w):
    """|phi(y) - sum_j w_j phi(d_j)|^2 less the energy of the code, which no row changes."""
    return k(y, y) - 2 * sum(w[j] * k(y, D[j]) for j in range(len(D)))


def starts(D, w):
    """The atoms of the code, and their weighted mean where there is one."""
    used = np.flatnonzero(w)
    rows = [D[j] for j in used]
    if w.sum() > 0.01 * np.abs(w).sum():
        rows.append(w @ D / w.sum())
    return rows


def descend(k, y, D, w, n_steps=300, h=1e-6):
    """Steepest descent, its gradient by differences; steps too short to leave a valley."""

    def error(y):
        return objective(k, y, D, w)

    step = 1.0
    for _ in range(n_steps):
        slope = np.array([(error(y + h * e) - error(y - h * e)) / (2 * h) for e in np.eye(len(y))])
        step = min(step, 1e-2 / max(np.linalg.norm(slope), 1e-300))
        while step > 1e-10 and error(y - step * slope) >= error(y):
            step /= 2
        if step <= 1e-10:
            break
        y, step = y - step * slope, 2 * step
    return y
