"""Rows that are not Gaussian: images, patches, and tables of few different values.

Their entries saturate or repeat, so that many of them round alike: what an error model that takes
rounding errors for independent does not see.
"""

import numpy as np


def unit_rows(kind: str, n_signals: int, n_atoms: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return signals and atoms, float32 rows of norm 1, all different; None without their file.

    Where there are fewer rows than asked for, atoms are fewer.
    """
    from kernelatoms.datasets import DatasetNotFoundError

    rng = np.random.default_rng(0)
    try:
        rows = _MADE[kind](n_signals + n_atoms, rng)
    except DatasetNotFoundError:
        return None
    rows = np.unique(rows.astype(np.float32), axis=0)
    rows = rows[rng.permutation(len(rows))]
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = (rows / np.where(norms, norms, 1))[norms[:, 0] > 0]
    n_signals = min(n_signals, len(rows) // 4)
    return rows[:n_signals], rows[n_signals : n_signals + n_atoms]


def _mnist(n: int, rng: np.random.Generator) -> np.ndarray:
    from kernelatoms.datasets import load_mnist

    data = load_mnist(download_if_missing=False)
    return np.concatenate([data.X_train, data.X_test])[:n]


def _usps(n: int, rng: np.random.Generator) -> np.ndarray:
    """Digits and their shifts by one pixel, as grey values from 0 on."""
    from kernelatoms.datasets import load_usps

    data = load_usps(download_if_missing=False)
    rows = np.concatenate([data.X_train, data.X_test]) + 1
    images = rows.reshape(len(rows), 16, 16)
    shifted = [np.roll(images, step, axis) for axis in (1, 2) for step in (-2, -1, 1, 2)]
    rows = np.concatenate([images, *shifted]).reshape(-1, 256)
    return rows[rng.permutation(len(rows))[:n]]


def _faces(n: int, rng: np.random.Generator) -> np.ndarray:
    from kernelatoms.datasets import load_yaleb

    images = load_yaleb().X.reshape(-1, 96, 84)
    return _patches_of(list(images), 24, n, rng)


def _patches(n: int, rng: np.random.Generator) -> np.ndarray:
    from sklearn.datasets import load_sample_images

    return _patches_of([image[..., 1] for image in load_sample_images().images], 16, n, rng)


def _patches_of(
    images: list[np.ndarray], size: int, n: int, rng: np.random.Generator
) -> np.ndarray:
    rows = np.empty((n, size * size), dtype=np.float32)
    for i in range(n):
        image = images[rng.integers(len(images))]
        top, left = (rng.integers(extent - size + 1) for extent in image.shape)
        rows[i] = image[top : top + size, left : left + size].ravel()
    return rows


def _levels(n: int, rng: np.random.Generator) -> np.ndarray:
    """Sixteen grey values."""
    rows = rng.standard_normal((n, 32)) @ rng.standard_normal((32, 512)) / 6
    return np.clip(np.round(4 * rows) + 8, 0, 15)


def _one_hot(n: int, rng: np.random.Generator) -> np.ndarray:
    """Forty categories of ten values each, columns weighted as by how rare they are."""
    shares = 1 / np.arange(1, 11)
    values = rng.choice(10, size=(n, 40), p=shares / shares.sum())
    rows = np.zeros((n, 400), dtype=np.float32)
    rows[np.arange(n)[:, None], 10 * np.arange(40) + values] = 1
    return rows * np.log(n / (1 + rows.sum(0)))


def _counts(n: int, rng: np.random.Generator) -> np.ndarray:
    """Bags of words."""
    rates = 40 / np.arange(1, 601) * rng.gamma(0.5, 2, size=(n, 600))
    return rng.poisson(rates)


_MADE = {
    "mnist": _mnist, "usps": _usps, "faces": _faces, "patches": _patches, "levels": _levels,
    "one-hot": _one_hot, "counts": _counts,
}  # fmt: skip
