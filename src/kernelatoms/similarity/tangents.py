"""The tangent distance of images: small transformations cost nothing.

Simard, LeCun, Denker and Victorri, "Transformation invariance in pattern recognition - tangent
distance and tangent propagation" (1998).

See docs/decisions/014-tangent-distances.md.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from kernelatoms.engine import machine
from kernelatoms.similarity.base import check_number, check_whole
from kernelatoms.similarity.images import ImageDistance, Shape

Array = NDArray[Any]

_N_TANGENTS = 7
# Slopes of an image below this share of its values, and what orthogonalisation leaves of a tangent
# below this share of it, are rounding.
_ROUNDING = 1e-10


@dataclass(frozen=True)
class Tangent(ImageDistance):
    """The distance of images after small transformations of them: the tangent distance.

    An image moves along seven tangents: two translations, rotation, scaling, the two hyperbolic
    deformations and the thickness of strokes. Two-sided, both images move; one-sided, one of them,
    whichever comes nearer, so that the distance is symmetric.

    Parameters
    ----------
    image_shape : tuple of (height, width)
        Of the images that rows are.
    sides : int
        2 or 1.
    sigma : float
        The width of the Gaussian that images are smoothed by before their slopes are taken, in
        pixels; 0 for none.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import make_distance
    >>> line = np.exp(-((np.arange(16) - 7.5) ** 2) / 8) * np.ones((16, 1))
    >>> moved = np.exp(-((np.arange(16) - 8.0) ** 2) / 8) * np.ones((16, 1))
    >>> rows = np.stack([line.ravel(), moved.ravel()])
    >>> for distance in (make_distance("l2"), make_distance("tangent", image_shape=(16, 16))):
    ...     A = distance.featurize(rows)
    ...     print(f"{distance.compare(A[:1], A[1:])[0, 0]:.2f}")
    1.33
    0.00
    """

    image_shape: Shape = None
    sides: int = 2
    sigma: float = 0.5
    _name = "tangent"

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_whole("sides", self.sides, 1)
        if self.sides > 2:
            raise ValueError(f"sides must be 1 or 2, got {self.sides!r}.")
        check_number("sigma", self.sigma)
        if self.sigma < 0:
            raise ValueError(f"sigma must be from 0, got {self.sigma!r}.")

    def featurize(self, rows: Array) -> Array:
        """Return rows, each followed by seven orthonormal tangents: (n, 8 * n_features)."""
        images = self.images(rows)
        n, n_features = len(images), rows.shape[1]
        out = np.empty((n, 1 + _N_TANGENTS, n_features), images.dtype)
        block = max(1, (1 << 20) // n_features)

        def fill(start: int) -> None:
            part = images[start : start + block].astype(np.float64)
            out[start : start + block, 0] = part.reshape(-1, n_features)
            out[start : start + block, 1:] = _orthonormal(_tangents(part, self.sigma))

        machine(out).each(fill, range(0, n, block))
        return out.reshape(n, (1 + _N_TANGENTS) * n_features)

    def compare(self, A: Array, B: Array) -> Array:
        """Return the distances of all pairs of descriptors: (..., n, m)."""
        return machine(A).tangent_distances(A, B, _N_TANGENTS, two_sided=self.sides == 2)


def _tangents(images: Array, sigma: float) -> Array:
    """Return the tangents of images (n, height, width), not orthogonal: (n, 7, n_pixels)."""
    n, height, width = images.shape
    # Edges go on as they are, so that a constant image has no slope.
    smooth = ndimage.gaussian_filter(images, (0, sigma, sigma), mode="nearest")
    across, down = (
        ndimage.correlate1d(smooth, [-0.5, 0.0, 0.5], axis=axis, mode="nearest") for axis in (2, 1)
    )
    steepest = np.maximum(np.abs(across), np.abs(down)).max(axis=(1, 2))
    rounding = steepest <= _ROUNDING * np.abs(images).max(axis=(1, 2))
    scale = np.where(rounding, 0, 1 / np.where(rounding, 1, steepest))[:, None, None]
    across, down = across * scale, down * scale
    x = np.arange(width) - (width - 1) / 2
    y = (np.arange(height) - (height - 1) / 2)[:, None]
    tangents = np.stack(
        [
            across,
            down,
            y * across - x * down,  # rotation
            x * across + y * down,  # scaling
            x * across - y * down,  # hyperbolic, along the axes
            y * across + x * down,  # hyperbolic, along the diagonals
            across**2 + down**2,  # thickness
        ],
        axis=1,
    )
    return tangents.reshape(n, _N_TANGENTS, height * width)


def _orthonormal(tangents: Array) -> Array:
    """Return orthonormal rows (n, 7, p) that span the same, 0 for what depends on those before."""
    out = np.zeros_like(tangents)
    for t in range(tangents.shape[1]):
        left = tangents[:, t].copy()
        before = np.linalg.norm(left, axis=1)
        for _ in range(2):  # what the first pass leaves of the others is rounding
            along = np.matvec(out[:, :t], left)
            left -= np.vecmat(along, out[:, :t])
        norm = np.linalg.norm(left, axis=1)
        kept = norm > np.sqrt(_ROUNDING) * before
        out[:, t] = np.where(kept, 1 / np.where(kept, norm, 1), 0)[:, None] * left
    return out
