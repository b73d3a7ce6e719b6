"""Local binary patterns: images compared by histograms of small patterns in windows.

Ahonen, Hadid and Pietikäinen, "Face description with local binary patterns: application to face
recognition" (2006); Ojala, Pietikäinen and Mäenpää (2002) for the patterns.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import machine
from kernelatoms.similarity.decaying import chi2_sums
from kernelatoms.similarity.images import ImageDistance, Shape, check_pair

Array = NDArray[Any]

_N_NEIGHBORS = 8
_RADIUS = 2


@dataclass(frozen=True)
class LBPChi2(ImageDistance):
    """The chi-squared distance of histograms of local binary patterns, one a window: from 0 to 1.

    Each pixel at least 2 from the edge has a pattern: which of 8 neighbours on a circle of radius 2
    (between pixels by bilinear interpolation) are at least as bright. The 58 patterns with at most
    two changes around the circle are counted each by itself, all others together, in every window
    of a grid. The distance is the mean over windows of half of sum_i (a_i - b_i)^2 / (a_i + b_i),
    of histograms that sum to 1. Brightness and contrast change no pattern.

    Parameters
    ----------
    image_shape : tuple of (height, width)
        Of the images that rows are, at least 5 x 5.
    windows : tuple of (rows, columns)
        Of the grid; fewer where there are fewer pixels with patterns. 15 x 15 windows are those of
        Liu et al. (2015), 11 x 13 pixels of an image of 168 x 192, whatever size the image has.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import make_distance
    >>> images = np.random.default_rng(0).integers(0, 256, size=(2, 20 * 20)).astype(float)
    >>> distance = make_distance("lbp-chi2", image_shape=(20, 20), windows=(2, 2))
    >>> A, B = distance.featurize(images), distance.featurize(images / 4 + 100)
    >>> distance.compare(A, B).round(2)
    array([[0.  , 0.14],
           [0.14, 0.  ]])
    """

    image_shape: Shape = None
    windows: tuple[int, int] = (15, 15)
    semidefinite_to = 1
    _name = "lbp-chi2"

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        object.__setattr__(self, "windows", check_pair("windows", "(rows, columns)", self.windows))
        if self.image_shape is not None and min(self.image_shape) <= 2 * _RADIUS:
            raise ValueError(
                f"distance {self._name!r} needs images of at least {2 * _RADIUS + 1} x "
                f"{2 * _RADIUS + 1} pixels, got image_shape={self.image_shape}."
            )

    def featurize(self, rows: Array) -> Array:
        """Return a histogram of each window over the number of them: (n, n_windows * 59)."""
        images = self.images(rows)
        height, width = (side - 2 * _RADIUS for side in images.shape[1:])
        grid = min(self.windows[0], height), min(self.windows[1], width)
        down, across = np.arange(height) * grid[0] // height, np.arange(width) * grid[1] // width
        window = down[:, None] * grid[1] + across
        n_bins = int(_BIN_OF.max()) + 1
        shares = 1 / np.bincount(window.ravel()) / (grid[0] * grid[1])
        out = np.empty((len(images), grid[0] * grid[1] * n_bins), images.dtype)

        def fill(start: int) -> None:
            part = images[start : start + block]
            places = window * n_bins + _BIN_OF[_patterns(part)]
            places += np.arange(len(part))[:, None, None] * out.shape[1]
            counts = np.bincount(places.ravel(), minlength=len(part) * out.shape[1])
            histograms = counts.reshape(len(part), -1, n_bins) * shares[:, None]
            out[start : start + block] = histograms.reshape(len(part), -1)

        block = max(1, (1 << 19) // (images.shape[1] * images.shape[2]))
        machine(out).each(fill, range(0, len(images), block))
        return out

    def compare(self, A: Array, B: Array) -> Array:
        """Return the distances of all pairs of descriptors: (..., n, m)."""
        return 0.5 * chi2_sums(A, B)


def _patterns(images: Array) -> NDArray[np.intp]:
    """Return the pattern of every pixel but those at the edges, a number below 256."""
    _, height, width = images.shape
    centre = images[:, _RADIUS : height - _RADIUS, _RADIUS : width - _RADIUS].astype(np.float64)
    patterns = np.zeros(centre.shape, np.intp)
    for k in range(_N_NEIGHBORS):
        angle = 2 * np.pi * k / _N_NEIGHBORS
        # Whole numbers where they are meant.
        down, across = np.round([-_RADIUS * np.sin(angle), _RADIUS * np.cos(angle)], 10)
        difference = np.zeros_like(centre)
        for top, wide in _corners(down):
            for left, high in _corners(across):
                if wide * high > 0:
                    i, j = _RADIUS + top, _RADIUS + left
                    corner = images[:, i : i + centre.shape[1], j : j + centre.shape[2]]
                    # Differences first: among equal pixels they are 0 without rounding.
                    difference += wide * high * (corner - centre)
        patterns |= (difference >= 0).astype(np.intp) << k
    return patterns


def _corners(offset: float) -> list[tuple[int, float]]:
    """Return the pixels on both sides of a place, and how much each counts."""
    below = int(np.floor(offset))
    return [(below, below + 1 - offset), (below + 1, offset - below)]


def _bins() -> NDArray[np.intp]:
    """Return the bin of every pattern: its own where it is uniform, the last where not."""
    bits = (np.arange(1 << _N_NEIGHBORS)[:, None] >> np.arange(_N_NEIGHBORS)) & 1
    changes = (bits != np.roll(bits, 1, axis=1)).sum(axis=1)
    uniform = changes <= 2
    return np.where(uniform, np.cumsum(uniform) - 1, uniform.sum())


_BIN_OF = _bins()
