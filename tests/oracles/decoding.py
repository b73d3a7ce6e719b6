"""Decoding by the book, eq. (19) of the FKSC paper: one signal, every atom of its code a start."""

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


def decode(k, D, w, n_steps=300):
    """Steepest descent from every start, its gradient by differences; returns the best row."""
    ends = [_descend(lambda y: objective(k, y, D, w), y, n_steps) for y in starts(D, w)]
    return min(ends, key=lambda y: objective(k, y, D, w))


def _descend(error, y, n_steps, h=1e-6):
    step = 1.0
    for _ in range(n_steps):
        slope = np.array([(error(y + h * e) - error(y - h * e)) / (2 * h) for e in np.eye(len(y))])
        while step > 1e-10 and error(y - step * slope) >= error(y):
            step /= 2
        if step <= 1e-10:
            break
        y, step = y - step * slope, 2 * step
    return y
