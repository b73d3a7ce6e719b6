"""Distances of images, one pixel at a time."""

import numpy as np


def pixel(image, i, j):
    """A pixel; beyond the edge, the nearest one."""
    return image[min(max(i, 0), image.shape[0] - 1), min(max(j, 0), image.shape[1] - 1)]


def smoothed(image, sigma):
    """Gaussian weights to 4 sigma, over their sum."""
    reach = int(4 * sigma + 0.5)
    steps = range(-reach, reach + 1)
    weights = [np.exp(-(s**2) / (2 * sigma**2)) if sigma else 1.0 for s in steps]
    out = np.zeros(image.shape)
    for i, j in np.ndindex(*image.shape):
        for s, v in zip(steps, weights, strict=True):
            for t, w in zip(steps, weights, strict=True):
                out[i, j] += v * w * pixel(image, i + s, j + t)
    return out / sum(weights) ** 2


def tangents(image, sigma):
    """Simard et al. (1998): what seven small transformations change in an image, in unit rows."""
    smooth, rows = smoothed(image, sigma), np.zeros((7, image.size))
    for place, (i, j) in enumerate(np.ndindex(*image.shape)):
        across = (pixel(smooth, i, j + 1) - pixel(smooth, i, j - 1)) / 2
        down = (pixel(smooth, i + 1, j) - pixel(smooth, i - 1, j)) / 2
        x, y = j - (image.shape[1] - 1) / 2, i - (image.shape[0] - 1) / 2
        rows[:, place] = [
            across, down, y * across - x * down, x * across + y * down, x * across - y * down,
            y * across + x * down, across**2 + down**2,
        ]  # fmt: skip
    norms = np.linalg.norm(rows, axis=1)
    return rows[norms > 1e-12] / norms[norms > 1e-12, None]


def left_of(difference, *moves):
    """The norm of what least squares along the moves leaves."""
    along = np.concatenate(moves).T
    if not along.shape[1]:
        return np.linalg.norm(difference)
    steps = np.linalg.lstsq(along, difference, rcond=1e-5)[0]
    return np.linalg.norm(difference - along @ steps)


def tangent_distance(a, b, sigma, sides):
    difference, S, T = (a - b).ravel(), tangents(a, sigma), tangents(b, sigma)
    if sides == 2:
        return left_of(difference, S, T)
    return min(left_of(difference, S), left_of(difference, T))


def lbp_histograms(image, windows):
    """Ahonen et al. (2006): uniform patterns of 8 neighbours at radius 2, counted by window."""
    height, width = image.shape[0] - 4, image.shape[1] - 4
    n_down, n_across = min(windows[0], height), min(windows[1], width)
    uniform = [code for code in range(256) if changes(code) <= 2]
    counts = np.zeros((n_down, n_across, 59))
    for i, j in np.ndindex(height, width):
        code = 0
        for k in range(8):
            y = i + 2 - 2 * np.sin(np.pi * k / 4)
            x = j + 2 + 2 * np.cos(np.pi * k / 4)
            code += (between(image, y, x) >= image[i + 2, j + 2]) << k
        place = uniform.index(code) if code in uniform else 58
        counts[i * n_down // height, j * n_across // width, place] += 1
    return counts / counts.sum(axis=2, keepdims=True)


def changes(code):
    bits = [code >> k & 1 for k in range(8)]
    return sum(bits[k] != bits[k - 1] for k in range(8))


def between(image, y, x):
    y, x = round(y, 9), round(x, 9)
    i, j = int(y), int(x)
    value = 0.0
    for s, t in np.ndindex(2, 2):
        weight = (1 - abs(y - i - s)) * (1 - abs(x - j - t))
        value += weight * pixel(image, i + s, j + t)
    return value


def chi2(a, b):
    return sum((x - y) ** 2 / (x + y) for x, y in zip(a, b, strict=True) if x + y > 0) / 2


def lbp_distance(a, b, windows):
    A, B = (lbp_histograms(image, windows).reshape(-1, 59) for image in (a, b))
    return np.mean([chi2(x, y) for x, y in zip(A, B, strict=True)])


def apart(p, q):
    return np.hypot(p[0] - q[0], p[1] - q[1])


def contour(image):
    """Where the middle grey value is passed between neighbours, column by column and row by row."""
    level, points = (image.min() + image.max()) / 2, []
    for step_i, step_j in ((1, 0), (0, 1)):
        for i, j in np.ndindex(image.shape[0] - step_i, image.shape[1] - step_j):
            a, b = image[i, j], image[i + step_i, j + step_j]
            if (a > level) != (b > level):
                t = (a - level) / (a - b)
                points.append((i + t * step_i, j + t * step_j))
    return points


def spread(points, n):
    if len(points) <= n:
        return [points[i % len(points)] for i in range(n if points else 0)]
    middle = np.mean(points, axis=0)
    chosen = [max(range(len(points)), key=lambda i: apart(points[i], middle))]
    while len(chosen) < n:
        chosen.append(
            max(
                range(len(points)),
                key=lambda i: min(apart(points[i], points[c]) for c in chosen),
            )
        )
    return [points[i] for i in chosen]


def shape_contexts(image, n_points):
    """Belongie et al. (2002): 5 rings from 1/8 to 2 mean distances, 12 angles."""
    points, out = spread(contour(image), n_points), np.zeros((n_points, 5, 12))
    mean = np.mean([apart(p, q) for p in points for q in points]) if points else 0
    if mean == 0:
        return out.reshape(n_points, 60)
    rings = [0.125, 0.25, 0.5, 1, 2]
    for s, p in enumerate(points):
        for q in points:
            ring = sum(apart(p, q) / mean >= edge for edge in rings)
            if p != q and ring < 5:
                degrees = np.degrees(np.arctan2(p[0] - q[0], p[1] - q[1]))
                out[s, ring, int((degrees + 7.5) // 30) % 12] += 1
        out[s] /= max(out[s].sum(), 1)
    return out.reshape(n_points, 60)


def shape_distance(a, b, n_points):
    """The best of all assignments."""
    A, B = shape_contexts(a, n_points), shape_contexts(b, n_points)
    cost = np.array([[chi2(x, y) for y in B] for x in A])
    return least(cost, list(range(n_points))) / n_points


def least(cost, free):
    """The least sum of costs of the last rows, over all ways to give them the free columns."""
    if not free:
        return 0.0
    row = len(cost) - len(free)
    return min(cost[row, t] + least(cost, [q for q in free if q != t]) for t in free)
