"""D-KSVD, LC-KSVD and FDDL as their papers write them: signals are columns, all matrices whole."""

import numpy as np


def stacked(X, labels, owners, alpha, beta):
    """[X; sqrt(alpha) Q; sqrt(beta) H] of eq. (10) of the LKDL paper, signals as columns."""
    Q = (owners[:, None] == labels).astype(float)
    H = (np.arange(labels.max() + 1)[:, None] == labels).astype(float)
    return np.vstack([X.T, np.sqrt(alpha) * Q, np.sqrt(beta) * H])


def ridge_map(codes, labels, tau):
    """Theta' of H = Theta G: ((G G' + tau I)^-1 G H')', codes as rows."""
    H = (np.arange(labels.max() + 1)[:, None] == labels).astype(float)
    G = codes.T
    return (np.linalg.inv(G @ G.T + tau * np.eye(len(G))) @ G @ H.T).T


def fisher_objective(X, labels, D, owners, G, l1, fisher, eta):
    """J of eqs. (5) to (7), term by term; X (p, N), D (p, M), G (M, N)."""
    total, mean = 0.0, G.mean(axis=1)
    for i in np.unique(labels):
        Xi, Gi = X[:, labels == i], G[:, labels == i]
        total += np.sum((Xi - D @ Gi) ** 2)
        for j in np.unique(owners):
            part = D[:, owners == j] @ Gi[owners == j]
            total += np.sum((Xi - part) ** 2) if i == j else np.sum(part**2)
        mu = Gi.mean(axis=1, keepdims=True)
        within = np.trace((Gi - mu) @ (Gi - mu).T)
        between = Gi.shape[1] * np.sum((mu[:, 0] - mean) ** 2)
        total += fisher * (within - between)
    return total + l1 * np.abs(G).sum() + fisher * eta * np.sum(G**2)


def fisher_gradient(X, labels, D, owners, G, fisher, eta):
    """The gradient of the smooth terms of J in the codes."""
    out = 2 * D.T @ (D @ G - X)
    mean = G.mean(axis=1)
    for i in np.unique(labels):
        mine = labels == i
        for j in np.unique(owners):
            rows = np.ix_(owners == j, mine)
            part = D[:, owners == j] @ G[rows] - (X[:, mine] if i == j else 0)
            out[rows] += 2 * D[:, owners == j].T @ part
        mu = G[:, mine].mean(axis=1)
        out[:, mine] += 2 * fisher * ((1 + eta) * G[:, mine] - 2 * mu[:, None] + mean[:, None])
    return out


def fisher_codes(X, labels, D, owners, l1, fisher, eta, n_steps):
    """Codes of least J by accelerated proximal steps (FISTA), from nothing."""
    blocks = [D[:, owners == j] for j in np.unique(owners)]
    bound = np.linalg.norm(D, 2) ** 2 + max(np.linalg.norm(block, 2) ** 2 for block in blocks)
    step = 1 / (2 * bound + 2 * fisher * (1 + eta))
    G = Z = np.zeros((D.shape[1], X.shape[1]))
    t = 1.0
    for _ in range(n_steps):
        W = Z - step * fisher_gradient(X, labels, D, owners, Z, fisher, eta)
        new = np.sign(W) * np.maximum(np.abs(W) - step * l1, 0)
        t_new = (1 + np.sqrt(1 + 4 * t**2)) / 2
        Z, G, t = new + (t - 1) / t_new * (new - G), new, t_new
    return G


def local_value(x, D, mean, l1, g, n_steps=5000):
    """min_a |x - D a|^2 + l1 |a|_1 + g |a - mean|^2 by proximal steps."""
    step, a = 1 / (2 * np.linalg.norm(D, 2) ** 2 + 2 * g), np.zeros(D.shape[1])
    for _ in range(n_steps):
        w = a - step * (2 * D.T @ (D @ a - x) + 2 * g * (a - mean))
        a = np.sign(w) * np.maximum(np.abs(w) - step * l1, 0)
    return np.sum((x - D @ a) ** 2) + l1 * np.abs(a).sum() + g * np.sum((a - mean) ** 2)


def nearest_probabilities(scores, n_steps=60):
    """The point of the simplex nearest to scores: the shift by bisection."""
    low, high = scores.min() - 1, scores.max()
    for _ in range(n_steps):
        shift = (low + high) / 2
        low, high = (shift, high) if np.maximum(scores - shift, 0).sum() > 1 else (low, shift)
    return np.maximum(scores - high, 0)
