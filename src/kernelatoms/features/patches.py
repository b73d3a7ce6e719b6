"""Patches of images: taken, put back and averaged; a cosine dictionary of their shape.

See docs/decisions/050-denoising.md.
"""

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array


def patches_of(
    plane: Array, shape: tuple[int, int], numbers: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return patches, counted line by line, as rows less their means, and the means (n, 1)."""
    windows = np.lib.stride_tricks.sliding_window_view(plane, shape)
    lines, columns = np.divmod(numbers, windows.shape[1])
    rows = windows[lines, columns].reshape(len(numbers), -1)
    means = rows.mean(axis=1, keepdims=True)
    return rows - means, means


class PatchSum:
    """Patches added up at their places in a plane, and how many cover each pixel."""

    def __init__(self, plane: tuple[int, ...], patch: tuple[int, int]) -> None:
        self.patch = patch
        self.sums = np.zeros(plane)
        self.n_lines, self.per_line = plane[0] - patch[0] + 1, plane[1] - patch[1] + 1
        self.n_patches = self.n_lines * self.per_line

    def add(self, start: int, rows: Array) -> None:
        """Add patches number ``start`` and on: whole lines of them, as rows."""
        first, n = start // self.per_line, len(rows) // self.per_line
        stack = rows.reshape(n, self.per_line, *self.patch)
        for i, j in np.ndindex(*self.patch):
            self.sums[first + i : first + i + n, j : j + self.per_line] += stack[:, :, i, j]

    def average(self, plane: Array, weight: float) -> Array:
        """Return the mean of all patches over a pixel and of the plane itself, so weighted."""
        counts = np.outer(
            _covered(self.n_lines, self.patch[0]), _covered(self.per_line, self.patch[1])
        )
        return (self.sums + weight * plane) / (counts + weight)


def _covered(n_places: int, length: int) -> Array:
    """Return how many of the windows at so many places cover each point of a line."""
    return np.convolve(np.ones(n_places), np.ones(length)).round()


def cosines(shape: tuple[int, int], n_atoms: int) -> Array:
    """Return products of cosines in both directions at unit norm, (n_atoms, height * width).

    An overcomplete DCT, low frequencies first. Waves other than the constant one have mean 0.
    """
    if shape[0] == 1:
        waves = [_waves(1, 1), _waves(n_atoms + 1, shape[1])]
    else:
        n_waves = int(np.ceil(np.sqrt(n_atoms + 1)))
        waves = [_waves(n_waves, side) for side in shape]
    products = np.einsum("ij,kl->ikjl", *waves).reshape(len(waves[0]), len(waves[1]), -1)
    order = np.add.outer(np.arange(len(waves[0])), np.arange(len(waves[1])))
    chosen = np.argsort(order, axis=None, kind="stable")[1 : n_atoms + 1]
    return np.ascontiguousarray(products.reshape(order.size, -1)[chosen])


def _waves(n_waves: int, length: int) -> Array:
    waves = np.cos(np.pi * np.outer(np.arange(n_waves), np.arange(length) + 0.5) / n_waves)
    waves[1:] -= waves[1:].mean(axis=1, keepdims=True)
    norms = np.linalg.norm(waves, axis=1, keepdims=True)
    return waves / norms
