"""Farthest-point sampling: every landmark is the row that is farthest from all before it."""

import numpy as np

from kernelatoms.similarity.factory import as_anchors


def farthest_point(X, kernel, n_landmarks, rng):
    """Start anywhere, then always take the row farthest away in feature space."""
    anchors, energy = as_anchors(X, kernel), kernel.diag(X)
    chosen = [rng.randint(len(X))]
    distance = np.full(len(X), np.inf)
    while len(chosen) < n_landmarks:
        last = chosen[-1]
        to_last = energy + energy[last] - 2 * kernel(X, anchors[last : last + 1])[:, 0]
        distance = np.minimum(distance, to_last)
        distance[chosen] = -np.inf
        chosen.append(int(distance.argmax()))
    return anchors[np.sort(chosen)]
