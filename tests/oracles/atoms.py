"""Numbers of atoms by the book: coherence, energy and class purity, one atom after the other."""

import numpy as np


def coherence(gram):
    """Return the largest |cosine| of every atom with another, and which that is."""
    largest, which = [], []
    for i in range(len(gram)):
        best, place = 0.0, -1
        for j in range(len(gram)):
            if j != i:
                norms = np.sqrt(gram[i, i] * gram[j, j])
                cosine = abs(gram[i, j]) / norms if norms > 0 else 0.0
                if place < 0 or cosine > best:
                    best, place = cosine, j
        largest.append(best)
        which.append(place)
    return np.array(largest), np.array(which)


def energy(codes, gram):
    """Return the shares of sum_i w_ij^2 |d_j|^2."""
    parts = [sum(w * w for w in codes[:, j]) * gram[j, j] for j in range(len(gram))]
    return np.array(parts) / (sum(parts) or 1.0)


def purity(codes, y):
    """Return the largest class's share in every atom, classes weighed alike, and which it is."""
    classes = sorted(set(y))
    shares, which = [], []
    for column in np.asarray(codes).T:
        pairs = list(zip(column, y, strict=True))
        means = [np.mean([w * w for w, label in pairs if label == c]) for c in classes]
        used = sum(means) > 0
        shares.append(max(means) / sum(means) if used else np.nan)
        which.append(int(np.argmax(means)) if used else -1)
    return np.array(shares), np.array(which)


def best_square_root(matrix):
    """Return the least |x x' - M|^2 / |M|^2 of a symmetric M: its largest eigenvalue's."""
    top = max(np.linalg.eigvalsh(matrix).max(), 0.0)
    return 1 - top**2 / np.sum(matrix**2)
