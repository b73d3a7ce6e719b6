"""Local dictionaries by the book: neighbours, ridge codes and class residuals, query by query."""

import numpy as np


def nearest(distances, K):
    """The K smallest of every row, ascending, ties by lower number."""
    return np.argsort(distances, axis=1, kind="stable")[:, :K]


def gather(gram, candidates):
    """Each list's own Gram matrix, 0 where it is padded."""
    out = np.zeros((*candidates.shape, candidates.shape[1]), gram.dtype)
    for s, own in enumerate(candidates):
        used = np.flatnonzero(own >= 0)
        out[s][np.ix_(used, used)] = gram[np.ix_(own[used], own[used])]
    return out


def ridge(G, b, mu, columns):
    """(G + mu I) w = b, or (G G + mu I) w = G b; the shortest w."""
    A, right = (G @ G, G @ b) if columns else (G, b)
    return np.linalg.pinv(A + mu * np.eye(len(G)), rcond=1e-12, hermitian=True) @ right


def class_parts(G, b, energy, w, owner, n_classes, columns):
    """|y - D_c w_c|^2 and |w_c|^2 for every class."""
    residuals2, norms2 = np.empty(n_classes), np.empty(n_classes)
    for c in range(n_classes):
        own = np.where(owner == c, w, 0)
        norms2[c] = own @ own
        left = b - G @ own
        residuals2[c] = left @ left if columns else energy - 2 * own @ b + own @ G @ own
    return residuals2, norms2
