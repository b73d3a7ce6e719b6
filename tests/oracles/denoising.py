"""K-SVD denoising by the book (Elad and Aharon, 2006): one patch, one atom at a time."""

import numpy as np


def cosines(side, n_atoms):
    """Products of cosines in both directions without the constant, low frequencies first."""
    n = int(np.ceil(np.sqrt(n_atoms + 1)))
    waves = []
    for k in range(n):
        wave = np.cos(np.pi * k * (np.arange(side) + 0.5) / n)
        if k:
            wave = wave - wave.mean()
        waves.append(wave / np.linalg.norm(wave))
    pairs = sorted(((i, j) for i in range(n) for j in range(n)), key=lambda p: (p[0] + p[1], p[0]))
    return np.array([np.outer(waves[i], waves[j]).ravel() for i, j in pairs[1 : n_atoms + 1]])


def omp(x, D, bound, most):
    """Code one signal until the residual's norm is at most ``bound``."""
    chosen, code, residual = [], np.zeros(len(D)), x.copy()
    while np.linalg.norm(residual) > bound and len(chosen) < most:
        chosen.append(int(np.argmax(np.abs(D @ residual))))
        values = np.linalg.lstsq(D[chosen].T, x, rcond=None)[0]
        residual = x - values @ D[chosen]
    if chosen:
        code[chosen] = values
    return code


def ksvd(X, D, bound, most, n_passes):
    """Learn atoms by K-SVD; codes are bounded by their error."""
    D = D.copy()
    for _ in range(n_passes):
        W = np.array([omp(x, D, bound, most) for x in X])
        for k in range(len(D)):
            users = np.flatnonzero(W[:, k])
            if not len(users):
                continue
            E = X[users] - W[users] @ D + np.outer(W[users, k], D[k])
            U, S, V = np.linalg.svd(E, full_matrices=False)
            D[k], W[users, k] = V[0], S[0] * U[:, 0]
        worst = np.argsort(-np.sum((X - W @ D) ** 2, axis=1))
        for k, row in zip(np.flatnonzero(~W.any(axis=0)), worst, strict=False):
            D[k] = X[row] / np.linalg.norm(X[row])
    return D


def denoise(noisy, sigma, side, n_atoms, n_passes, blend, gain=1.15):
    """Return the average of all coded patches and of the noisy image, so weighted."""
    height, width = noisy.shape
    bound, most = gain * sigma * side, side**2 // 2
    places = [(i, j) for i in range(height - side + 1) for j in range(width - side + 1)]
    patches = np.array([noisy[i : i + side, j : j + side].ravel() for i, j in places])
    means = patches.mean(axis=1)
    centred = patches - means[:, None]
    D = cosines(side, n_atoms)
    D = ksvd(centred[np.linalg.norm(centred, axis=1) > bound], D, bound, most, n_passes)
    sums, counts = blend * noisy, np.full(noisy.shape, float(blend))
    for (i, j), x, mean in zip(places, centred, means, strict=True):
        patch = omp(x, D, bound, most) @ D + mean
        sums[i : i + side, j : j + side] += patch.reshape(side, side)
        counts[i : i + side, j : j + side] += 1
    return sums / counts


def psnr(image, truth, peak):
    """Peak signal-to-noise ratio in dB."""
    return 10 * np.log10(peak**2 / np.mean((image - truth) ** 2))
