"""Corrupted images, the same for every method: the seed and the level decide, nothing else."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def add_noise(pixels: Array, sigma: float, seed: int) -> Array:
    """Return the images with Gaussian noise of this standard deviation."""
    rng = np.random.default_rng([seed, round(1000 * sigma), 1])
    return pixels + np.float32(sigma) * rng.standard_normal(pixels.shape, np.float32)


def kept_pixels(shape: tuple[int, int], missing: float, seed: int) -> NDArray[np.bool_]:
    """Return which pixels are left when this share of every image is missing."""
    rng = np.random.default_rng([seed, round(1000 * missing), 2])
    return rng.random(shape).argsort(axis=1) >= round(missing * shape[1])
