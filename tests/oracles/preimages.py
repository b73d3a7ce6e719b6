"""Pre-images by the book, one vector v = sum_i c[i] phi(A[i]) at a time."""

import numpy as np


def rbf(x, a, gamma):
    return np.exp(-gamma * np.sum((x - a) ** 2))


def poly(x, a, gamma, degree, coef0):
    return (gamma * (x @ a) + coef0) ** degree


def relative_error(k, x, A, c):
    """|phi(x) - v|^2 / |v|^2 with the kernel k(x, y) of two rows."""
    vv = sum(c[i] * c[j] * k(A[i], A[j]) for i in range(len(A)) for j in range(len(A)))
    xv = sum(c[i] * k(x, A[i]) for i in range(len(A)))
    return (k(x, x) - 2 * xv + vv) / vv


def rbf_fixed_point(x, A, c, gamma, n_steps):
    """Mika et al. (1998), eq. (10)."""
    for _ in range(n_steps):
        w = np.array([c[i] * rbf(x, A[i], gamma) for i in range(len(A))])
        x = sum(w[i] * A[i] for i in range(len(A))) / w.sum()
    return x


def poly_fixed_point(x, A, c, gamma, degree, coef0, n_steps):
    """Schoelkopf et al. (1999): x <- sum_i c_i k'(x'a_i) a_i / k'(x'x)."""
    for _ in range(n_steps):
        slopes = [poly(x, a, gamma, degree - 1, coef0) for a in A]
        own = poly(x, x, gamma, degree - 1, coef0)
        x = sum(c[i] * slopes[i] * A[i] for i in range(len(A))) / own
    return x


def rbf_distances(A, c, gamma, n_neighbors):
    """Kwok and Tsang (2004): distances to the nearest phi(a), then classical scaling."""
    n = len(A)
    K = np.array([[rbf(A[i], A[j], gamma) for j in range(n)] for i in range(n)])
    c = c / np.sqrt(c @ K @ c)
    feature = np.array([1 + 1 - 2 * K[i] @ c for i in range(n)])  # |v - phi(a)|^2
    near = np.argsort(feature)[:n_neighbors]
    d2 = -np.log(1 - feature[near] / 2) / gamma
    mean = A[near].mean(axis=0)
    U, s, Vt = np.linalg.svd((A[near] - mean).T, full_matrices=False)
    keep = s > 1e-10 * s[0]
    U, s, Vt = U[:, keep], s[keep], Vt[keep]
    d0 = np.sum((s[:, None] * Vt) ** 2, axis=0)
    return mean + U @ (-Vt @ (d2 - d0) / s / 2)


def poly_products(A, c, gamma, degree, coef0, n_neighbors):
    """The same for x'a of an odd degree: least squares in the span of the nearest in angle."""
    v = [sum(c[j] * poly(a, A[j], gamma, degree, coef0) for j in range(len(A))) for a in A]
    v = np.array(v)
    cosine = v / np.sqrt([poly(a, a, gamma, degree, coef0) for a in A])
    near = np.argsort(-(np.abs(cosine) if coef0 == 0 else cosine))[:n_neighbors]
    products = (np.sign(v[near]) * np.abs(v[near]) ** (1 / degree) - coef0) / gamma
    return np.linalg.lstsq(A[near], products, rcond=1e-10)[0]


def ridge(K, X, inner):
    """Ridge regression of rows X on phi(X): the GCV error and the result of each of 33 ridges."""
    tried, largest = [], np.linalg.eigvalsh(K)[-1]
    for alpha in largest * np.logspace(-8, 0, 33):
        inverse = np.linalg.inv(K + alpha * np.eye(len(X)))
        left = alpha * inverse  # I - K inverse: what the regression leaves of X
        gcv = np.sum((left @ X) ** 2) / np.trace(left) ** 2
        tried.append((gcv, inner @ inverse @ X))
    return tried
