"""Kernel dictionary learning by the book: Nguyen et al. (2012), with N x N matrices.

Atoms are columns of A: d_k = sum_i A[i, k] phi(y_i). Codes W are columns, one per signal.
"""

import numpy as np


def komp(K, k_z, A, n_nonzero):
    """Fig. 2: code one signal z, known through k(z, Y); returns the dense code."""
    support, x = [], np.zeros(0)
    for _ in range(n_nonzero):
        tau = np.abs((k_z - (A[:, support] @ x) @ K) @ A)
        tau[support] = 0
        if tau.max() <= 1e-12:
            break
        support.append(int(tau.argmax()))
        chosen = A[:, support]
        x = np.linalg.solve(chosen.T @ K @ chosen, chosen.T @ k_z)
    w = np.zeros(A.shape[1])
    w[support] = x
    return w


def code_all(K, A, n_nonzero):
    """KOMP on every training signal; codes in columns."""
    return np.column_stack([komp(K, K[i], A, n_nonzero) for i in range(len(K))])


def objective(K, A, W):
    """|phi(Y) - phi(Y) A W|^2 = tr (I - AW)' K (I - AW)."""
    E = np.eye(len(K)) - A @ W
    return float(np.einsum("ij,ij->", E, K @ E))


def kernel_mod(K, W):
    """A = W^+, columns scaled to unit norm in feature space."""
    A = np.linalg.pinv(W)
    return A / np.sqrt(np.einsum("ik,ik->k", A, K @ A))


def kernel_ksvd_pass(K, A, W):
    """Stage 2 of Fig. 3: every atom with its coefficients, by the eigenvectors of E_R' K E_R."""
    A, W = A.copy(), W.copy()
    for k in range(A.shape[1]):
        users = np.flatnonzero(W[k])
        if len(users):
            E_R = np.eye(len(K))[:, users] - A @ W[:, users]
            E_R += np.outer(A[:, k], W[k, users])  # eq. (7), the columns of (8)
            values, vectors = np.linalg.eigh(E_R.T @ K @ E_R)
            sigma = np.sqrt(values[-1])
            W[k, users] = sigma * vectors[:, -1]  # eq. (11)
            A[:, k] = E_R @ vectors[:, -1] / sigma  # eq. (13)
    return A, W
