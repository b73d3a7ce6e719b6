"""K-SAD as its paper means it: signals are columns, all matrices whole."""

import numpy as np


def soft(values, threshold):
    """Values drawn towards 0."""
    return np.sign(values) * np.maximum(np.abs(values) - threshold, 0)


def scatters(Q, labels, ridge):
    """S_W (with its ridge) and S_B of codes Q (K, N)."""
    mean, within, between = Q.mean(axis=1), ridge * np.eye(len(Q)), 0
    for c in np.unique(labels):
        own = Q[:, labels == c]
        mu = own.mean(axis=1)
        for q in own.T:
            within = within + np.outer(q - mu, q - mu)
        between = between + own.shape[1] * np.outer(mu - mean, mu - mean)
    return within, between


def discrimination(Q, labels, ridge):
    """tr(S_W^-1 S_B)."""
    within, between = scatters(Q, labels, ridge)
    return np.trace(np.linalg.inv(within) @ between)


def scalar_discrimination(Q, labels, ridge):
    """s_B / s_W, the numbers of section III-B: trace of S_B, sum of the v_c^2."""
    mean, within, between = Q.mean(axis=1), ridge, 0
    for c in np.unique(labels):
        own = Q[:, labels == c]
        mu = own.mean(axis=1)
        within += np.mean([np.sum((q - mu) ** 2) for q in own.T])
        between += own.shape[1] * np.sum((mu - mean) ** 2)
    return between / within


def objective(Phi, Z, Q, labels, l1, fisher, ridge, term=discrimination):
    """J of eq. (5), discrimination maximised."""
    squares = np.sum((Phi - Z @ Q) ** 2)
    return squares + l1 * np.abs(Q).sum() - fisher * term(Q, labels, ridge)


def slope(term, Q, labels, ridge, h=1e-5):
    """The gradient of a term by differences, entry by entry."""
    out = np.zeros_like(Q)
    for at in np.ndindex(Q.shape):
        up, down = Q.copy(), Q.copy()
        up[at] += h
        down[at] -= h
        out[at] = (term(up, labels, ridge) - term(down, labels, ridge)) / (2 * h)
    return out


def gradient(Q, labels, ridge):
    """2 S_W^-1 Q C_b - 2 S_W^-1 S_B S_W^-1 Q C_w: S_B is Q C_b Q', S_W is Q C_w Q' + ridge I."""
    N = len(labels)
    same = (labels[:, None] == labels) / np.array([np.sum(labels == c) for c in labels])
    C_w, C_b = np.eye(N) - same, same - np.ones((N, N)) / N
    within, between = scatters(Q, labels, ridge)
    inverse = np.linalg.inv(within)
    return 2 * inverse @ Q @ C_b - 2 * inverse @ between @ inverse @ Q @ C_w


def step(Phi, Z, Q, labels, l1, fisher, ridge, a, uphill=None):
    """One proximal step of curvature a: eq. (11)."""
    uphill = gradient(Q, labels, ridge) if uphill is None else uphill
    return soft(Q - (Q - Z.T @ Phi) / a + fisher / (2 * a) * uphill, l1 / (2 * a))


def procrustes(Phi, Q):
    """The orthonormal Z of least |Phi - Z Q|: Proposition 2."""
    U, _, Vt = np.linalg.svd(Phi @ Q.T)
    return U @ Vt


def metric(Phi, labels, shrinkage):
    """(S + e I)^(-1/2) of the mean scatter within classes."""
    S = scatters(Phi, labels, 0)[0] / Phi.shape[1]
    values, vectors = np.linalg.eigh(S)
    return vectors @ np.diag((values + shrinkage * values.mean()) ** -0.5) @ vectors.T
