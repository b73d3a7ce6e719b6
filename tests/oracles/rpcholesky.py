"""Randomly pivoted Cholesky by the book: Algorithm 1 of Chen, Epperly, Tropp and Webber (2022)."""

import numpy as np


def rpcholesky(K, n_pivots, rng):
    """Draw one pivot after another; returns the factor and the pivots."""
    F, left, pivots = np.zeros((len(K), n_pivots)), np.diagonal(K).copy(), []
    for j in range(n_pivots):
        s = rng.choice(len(K), p=left / left.sum())
        column = K[:, s] - F @ F[s]
        F[:, j] = column / np.sqrt(column[s])
        left = np.maximum(left - F[:, j] ** 2, 0)
        left[s] = 0
        pivots.append(int(s))
    return F, pivots


def factor(K, pivots):
    """The factor for these pivots in this order."""
    F = np.zeros((len(K), len(pivots)))
    for j, s in enumerate(pivots):
        column = K[:, s] - F @ F[s]
        F[:, j] = column / np.sqrt(column[s])
    return F


def probabilities(K, n_pivots, before=()):
    """The probability of every sequence of pivots: {(s1, s2, ...): p}."""
    if len(before) == n_pivots:
        return {before: 1.0}
    left = np.maximum(np.diagonal(K) - (factor(K, before) ** 2).sum(axis=1), 0)
    left[list(before)] = 0
    found = {}
    for s in range(len(K)):
        if s not in before:
            after = probabilities(K, n_pivots, (*before, s))
            found |= {sequence: p * left[s] / left.sum() for sequence, p in after.items()}
    return found
