"""Predictions of rows from rows that are decoded, and values from integers, one at a time."""

import numpy as np


def step(code):
    """The width of a cell."""
    return 2.0 ** (code / 16)


def value(prediction, k, width, scale, column):
    """The value of the k-th cell from a prediction; of a grid with ``scale`` points per unit."""
    if not scale:
        return prediction + k * width
    points = max(1, np.floor(width * scale + column * 40503 % 65536 / 65536))
    if points % 2 or points > 6:
        return (np.floor(prediction * scale + 0.5) + k * points) / scale
    return (np.floor(prediction * scale) + 0.5 + k * points) / scale


def by_lags(decoded, t, lag, past):
    """Row t as the median of an odd number of rows lag, 2 lag, ... before."""
    before = [t - i * lag for i in range(1, past + 1) if t >= i * lag]
    before = before[: len(before) - 1 + len(before) % 2] if before else before
    if not before:
        return decoded[t - 1] if t else np.zeros(decoded.shape[1])
    return np.median(decoded[before], axis=0)


def by_interpolation(decoded, t, n, stride, before=None):
    """Row t of n from those that are coarser; ``before`` is the row before the first."""
    if t % stride == 0:
        if t:
            return decoded[t - stride]
        return np.zeros(decoded.shape[1]) if before is None else before
    half = t & -t
    if t - 3 * half >= 0 and t + 3 * half < n:
        near, far = decoded[[t - half, t + half]], decoded[[t - 3 * half, t + 3 * half]]
        return (9 * near.sum(axis=0) - far.sum(axis=0)) / 16
    return decoded[[t - half, t + half]].mean(axis=0) if t + half < n else decoded[t - half]


def parents(decoded, t, n_parents):
    """Of every column those before it whose changes were most like its own in the last rows."""
    chosen = max([32 * 4**i for i in range(8) if 32 * 4**i <= t], default=0)
    if not chosen:
        return [[] for _ in decoded.T], 0
    changes = np.diff(decoded[max(0, chosen - 513) : chosen], axis=0)
    found = []
    for j in range(decoded.shape[1]):
        scores = []
        for other in range(0 if decoded.shape[1] <= 512 else max(0, j - 64), j):
            squares = (changes[:, j] ** 2).sum() * (changes[:, other] ** 2).sum()
            both = changes[:, j] @ changes[:, other]
            scores.append((-(both**2) / squares if squares else 0.0, other))
        found.append([other for score, other in sorted(scores)[:n_parents] if score < 0])
    return found, chosen


def by_columns(decoded, known, t, j, lags, n_parents, fade=0.999, ridge=1e-3):
    """Value j of row t by weighted least squares, solved afresh; ``decoded[t, :j]`` is known."""
    if t == 0:
        return 0.0
    mine, chosen = parents(decoded, t, n_parents)
    mine = mine[j] + [-1] * (n_parents - len(mine[j]))

    def inputs(i):
        size = _size(decoded, i)
        own = [decoded[i - lag, j] if i >= lag else 0.0 for lag in lags]
        for p in mine:
            own += [decoded[i, p], decoded[i - 1, p] if i else 0.0] if p >= 0 else [0.0, 0.0]
        return np.array([*own, size]) / size

    first = np.eye(1, len(lags) + 2 * n_parents + 1)[0]
    # Weights are those after the last row at which they were solved for.
    last = max((i for i in range(t) if i < 64 or (i + 1) % 4 == 0), default=-1)
    rows = [i for i in range(max(0, chosen - 1024), last + 1) if i < chosen or known[i, j]]
    A, b = np.zeros((len(first), len(first))), np.zeros(len(first))
    for age, i in enumerate(rows[::-1]):
        x = inputs(i)
        A += fade**age * np.outer(x, x)
        b += fade**age * x * decoded[i, j] / _size(decoded, i)
    weights = first
    if np.trace(A) > 0:
        penalty = ridge * np.trace(A) / len(A) * np.eye(len(A))
        weights = first + np.linalg.solve(A + penalty, b - A @ first)
    low, high = decoded[t - 1].min(), decoded[t - 1].max()
    reach = high - low if known[t, j] else 0.0
    return np.clip(weights @ inputs(t) * _size(decoded, t), low - reach, high + reach)


def _size(decoded, t):
    size = np.sqrt(np.mean(decoded[t - 1] ** 2)) if t else 1.0
    return size or 1.0


def by_slices(decoded, s, past):
    """Slice s as the median of slices before, an odd number of them; None without any."""
    past = min(past, s)
    past -= past > 0 and past % 2 == 0
    return np.median(decoded[s - past : s], axis=0) if past else None


def by_rows_alike(matrix, i):
    """Row i of a symmetric matrix, from its diagonal on, by the three rows before most like it."""
    m = len(matrix)
    if i == 0:
        return np.zeros(m)
    row = matrix[i - 1].copy()
    if i > 3:
        cap = np.abs(matrix[i, :i]).mean()
        distances, offsets = np.zeros(i), np.zeros(i)
        for r in range(i):
            others = [c for c in range(i) if c != r]
            far = matrix[i, others] - matrix[r, others]
            distances[r] = np.minimum(np.abs(far), cap).mean()
            offsets[r] = np.clip(far, -2 * distances[r], 2 * distances[r]).mean()
        near = np.argsort(distances, kind="stable")[:3]
        away = distances[near] + cap / 200
        weights = away**-3.0 if (away > 0).all() else np.where(away > 0, 0.0, 1.0)
        row = weights @ (matrix[near] + offsets[near, None]) / weights.sum()
    row[i] = matrix[i - 1, i - 1]
    return row


def by_gaussian_preimage(weights, atoms, gamma, n_rounds=12):
    """The fixed point y = sum_i w_i k(y, x_i) x_i / sum_i w_i k(y, x_i), from sum_i w_i x_i."""
    y = weights @ atoms
    for _ in range(n_rounds):
        pull = weights * np.exp(-gamma * ((y - atoms) ** 2).sum(axis=1))
        if abs(pull.sum()) <= 1e-3:
            break
        y = pull @ atoms / pull.sum()
    return y
