"""Representation classifiers as the KCRC-LCD paper writes them, one signal at a time."""

import numpy as np


def crc_code(atoms, signal, mu):
    """Eq. (23): atoms and signal are explicit vectors."""
    return np.linalg.solve(atoms @ atoms.T + mu * np.eye(len(atoms)), atoms @ signal)


def residuals(atoms, labels, signal, code, n_classes):
    """Eq. (3): |y - D_c w_c| / |w_c|, infinite without w_c."""
    out = np.full(n_classes, np.inf)
    for c in range(n_classes):
        own = code * (labels == c)
        if np.linalg.norm(own) > 0:
            out[c] = np.linalg.norm(signal - own @ atoms) / np.linalg.norm(own)
    return out


def left_out_code(gram, psi, i, mu):
    """The code of row i over all others, of which alone the projection is made."""
    others = np.arange(len(gram)) != i
    mapped = gram[:, others] @ psi[others]
    code = np.zeros(len(gram))
    code[others] = crc_code(mapped[others], mapped[i], mu)
    return code, mapped


def robust_objective(atoms, signals, codes, mu, power):
    """Eq. (14), with |w|_2^2 or |w|_1."""
    left = np.abs(signals - codes @ atoms).sum(axis=1)
    return left + mu * (np.abs(codes) ** power).sum(axis=1)


def robust_codes(atoms, signals, mu, n_sweeps=3000):
    """Minimise |y - D w|_1 + mu |w|^2 by coordinate ascent in its dual, a quadratic in a box.

    max z'y - |D'z|^2 / (4 mu) over |z_i| <= 1, and w = D'z / (2 mu). Returns codes and dual values.
    """
    Q = atoms.T @ atoms / (2 * mu)
    Z = np.zeros_like(signals)
    for _ in range(n_sweeps):
        for i in np.flatnonzero(np.diag(Q) > 0):
            Z[:, i] = np.clip(Z[:, i] + (signals[:, i] - Z @ Q[i]) / Q[i, i], -1, 1)
    codes = Z @ atoms.T / (2 * mu)
    return codes, (Z * signals).sum(axis=1) - mu * (codes**2).sum(axis=1)


def algorithm_3(kernel, rows, labels, signals, n_neighbors, mu, n_classes):
    """Naive KCRC-LCD with Psi = I; ``kernel(A, B)`` falls with the distance."""
    found = []
    for signal in signals:
        values = kernel(rows, signal[None])[:, 0]
        near = np.argsort(-values, kind="stable")[:n_neighbors]
        if len(set(labels[near])) == 1:
            found.append(labels[near[0]])
            continue
        gram = kernel(rows[near], rows[near])
        code = crc_code(gram, values[near], mu)
        found.append(residuals(gram, labels[near], values[near], code, n_classes).argmin())
    return np.array(found)
