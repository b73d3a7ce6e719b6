"""Greedy pursuits by the book: least squares from scratch at every step."""

import numpy as np


def omp(x, D, n_nonzero, max_residual=0.0, candidates=None, ols=False):
    """Code one signal over the rows of D; returns the support in order and the coefficients."""
    allowed = np.arange(len(D)) if candidates is None else np.unique(candidates[candidates >= 0])
    support, w, r = [], np.zeros(0), x
    while len(support) < n_nonzero and np.linalg.norm(r) > max_residual * np.linalg.norm(x):
        scores = [-1.0 if i in support else _score(D, support, i, r, ols) for i in allowed]
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


def _score(D, support, i, r, ols):
    if not ols:
        return abs(D[i] @ r)
    # What the atom adds to the picked ones; a difference of residuals would lose half the digits.
    rest = D[i]
    for _ in range(2 if support else 0):
        rest = rest - np.linalg.lstsq(D[support].T, rest, rcond=None)[0] @ D[support]
    size = np.linalg.norm(rest)
    return abs(rest @ r) / size if size > 1e-7 * np.linalg.norm(D[i]) else 0.0


def nonnegative_least_squares(x, A):
    """Return the w >= 0 that minimises |x - w A|, the best of all supports."""
    best, smallest = np.zeros(len(A)), x @ x
    for bits in range(1, 2 ** len(A)):
        chosen = [i for i in range(len(A)) if bits >> i & 1]
        w = np.zeros(len(A))
        w[chosen] = np.linalg.lstsq(A[chosen].T, x, rcond=None)[0]
        left = x - w @ A
        if (w >= 0).all() and left @ left < smallest:
            best, smallest = w, left @ left
    return best


def nonnegative_omp(x, D, n_nonzero, max_residual=0.0, ols=False):
    """Code x over the rows of D with positive coefficients; returns support and coefficients."""
    support, w, r = [], np.zeros(0), x
    while len(support) < n_nonzero and np.linalg.norm(r) > max_residual * np.linalg.norm(x):
        scores = D @ r
        if ols:
            basis = np.linalg.qr(D[support].T)[0]
            rest = np.linalg.norm(D - D @ basis @ basis.T, axis=1)
            scores = np.where(rest > 1e-7 * np.linalg.norm(D, axis=1), scores, 0) / (rest + 1e-300)
        scores[support] = 0
        if scores.max() <= 1e-10 * np.linalg.norm(x):
            break
        tried = [*support, int(np.argmax(scores))]
        new = nonnegative_least_squares(x, D[tried])
        left = x - new @ D[tried]
        if left @ left >= r @ r * (1 - 1e-12):
            break
        support, w, r = [i for i, v in zip(tried, new, strict=True) if v > 0], new[new > 0], left
    return support, w
