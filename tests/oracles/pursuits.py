"""Greedy pursuits by the book: least squares from scratch at every step."""

import numpy as np


def omp(x, D, n_nonzero, max_residual=0.0, candidates=None, ols=False):
    """Code one signal over the rows of D; returns the support in order and the coefficients."""
    allowed = np.arange(len(D)) if candidates is None else np.unique(candidates[candidates >= 0])
    support, w, r = [], np.zeros(0), x
    while len(support) < n_nonzero and np.linalg.norm(r) > max_residual * np.linalg.norm(x):
        scores = [-1.0 if i in support else _score(x, D, support, i, r, ols) for i in allowed]
        if len(scores) == 0 or max(scores) <= 1e-10 * np.linalg.norm(x):
            break
        support.append(int(allowed[int(np.argmax(scores))]))
        w = np.linalg.lstsq(D[support].T, x, rcond=None)[0]
        r = x - w @ D[support]
    return support, w


def omp_of_observed(x, D, n_nonzero, eps=2.0**-52, **options):
    """Code x by its entries that are not NaN, over the atoms' same entries at unit norm.

    Atoms that are rounding there, 100 eps of their whole norm, count as zero.
    """
    seen = ~np.isnan(x)
    norms = np.linalg.norm(D[:, seen], axis=1)
    unit = D[:, seen] / np.where(norms > 0, norms, 1)[:, None]
    unit[norms <= 100 * eps * np.linalg.norm(D, axis=1)] = 0
    support, w = omp(x[seen], unit, n_nonzero, **options)
    return support, w / norms[support]


def _score(x, D, support, i, r, ols):
    if not ols:
        return abs(D[i] @ r)
    new = D[[*support, i]]
    left = x - np.linalg.lstsq(new.T, x, rcond=None)[0] @ new
    return np.sqrt(max(r @ r - left @ left, 0.0))
