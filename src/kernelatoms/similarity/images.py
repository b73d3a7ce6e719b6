"""Distances of rows as images: tangent distance, local binary patterns and shape contexts.

- ``Tangent``: Simard, LeCun, Denker and Victorri (1998). See
  docs/decisions/014-tangent-distances.md.
- ``LBPChi2``: Ahonen, Hadid and Pietikäinen (2006); the patterns are those of Ojala, Pietikäinen
  and Mäenpää (2002).
- ``ShapeContext``: Belongie, Malik and Puzicha (2002).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from kernelatoms.engine import Array, machine
from kernelatoms.similarity.base import check_number, check_whole, is_whole
from kernelatoms.similarity.distances import Distance, as_rows

Shape = tuple[int, int] | None


class ImageDistance(Distance):
    """A distance of rows as images of ``image_shape``."""

    takes_stacks = True
    image_shape: Shape
    _name = ""

    def __post_init__(self) -> None:
        if self.image_shape is not None:
            shape = check_pair("image_shape", "(height, width)", self.image_shape)
            object.__setattr__(self, "image_shape", shape)

    def images(self, rows: Array) -> Array:
        """Return rows (n, height * width) as images (n, height, width); ask for their shape."""
        rows = as_rows(rows)
        if self.image_shape is None:
            raise ValueError(
                f"distance {self._name!r} compares images: give image_shape=(height, width), with "
                f"height * width = n_features = {rows.shape[1]}."
            )
        height, width = self.image_shape
        if height * width != rows.shape[1]:
            raise ValueError(
                f"image_shape must be (height, width) of rows with n_features={rows.shape[1]}, "
                f"got {self.image_shape}, which has {height * width} pixels."
            )
        return rows.reshape(-1, height, width)


def check_pair(name: str, meaning: str, value: Any) -> tuple[int, int]:
    """Return two whole numbers from 1."""
    sides = list(value) if isinstance(value, tuple | list | np.ndarray) else []
    if len(sides) != 2 or not all(map(is_whole, sides)) or min(sides) < 1:
        raise ValueError(f"{name} must be {meaning}, two whole numbers from 1, got {value!r}.")
    return int(sides[0]), int(sides[1])


_N_TANGENTS = 7
# Slopes of an image below this share of its values, and what orthogonalisation leaves of a tangent
# below this share of it, are rounding.
_ROUNDING = 1e-10


@dataclass(frozen=True)
class Tangent(ImageDistance):
    """The tangent distance: the distance of images after small transformations of them.

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
        super().__post_init__()
        if not is_whole(self.sides) or self.sides not in (1, 2):
            raise ValueError(f"sides must be 1 or 2, got {self.sides!r}.")
        check_number("sigma", self.sigma, low=0)

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
    # Edges are continued, so that a constant image has no slope.
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


_N_NEIGHBORS = 8
_RADIUS = 2


@dataclass(frozen=True)
class LBPChi2(ImageDistance):
    """The chi-squared distance of histograms of local binary patterns per window: from 0 to 1.

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
        return 0.5 * machine(A).chi2_distances(A, B)


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
    """Return the bin of every pattern: its own if it is uniform, else the last."""
    bits = (np.arange(1 << _N_NEIGHBORS)[:, None] >> np.arange(_N_NEIGHBORS)) & 1
    changes = (bits != np.roll(bits, 1, axis=1)).sum(axis=1)
    uniform = changes <= 2
    return np.where(uniform, np.cumsum(uniform) - 1, uniform.sum())


_BIN_OF = _bins()


_N_ANGLES = 12
# Of the distances from a point over the mean of all, as in Belongie et al.: five bins to 2.
_RADII = np.geomspace(0.125, 2, 5)


@dataclass(frozen=True)
class ShapeContext(ImageDistance):
    """The mean cost of matching the contours of two images, point by point: from 0 to 1.

    The contour is where an image passes half-way between its darkest and its brightest value.
    Points spread evenly over it, and each is described by a histogram of where the others lie: 5
    bins of the logarithm of the distance over the mean one, times 12 angles. The distance is the
    mean chi-squared distance of histograms under the best one-to-one assignment. Where a shape
    lies, how large and how bright it is change nothing. An image without a contour is at 0 from
    others without one, and at 0.5 from all that have one.

    Belongie et al. go on to align the images by splines and to add what that costs and leaves;
    this is their first step.

    Parameters
    ----------
    image_shape : tuple of (height, width)
        Of the images that rows are.
    n_points : int
        How many points a contour has, from 2; of a shorter one they are used again. Time for a
        pair of images grows with its third power.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import make_distance
    >>> square, moved, cross = np.zeros((3, 16, 16))
    >>> square[2:9, 2:9] = moved[5:12, 7:14] = 1
    >>> cross[7:9, 2:14] = cross[2:14, 7:9] = 1
    >>> distance = make_distance("shape-context", image_shape=(16, 16))
    >>> A = distance.featurize(np.stack([square, moved, cross]).reshape(3, -1))
    >>> distance.compare(A[:1], A).round(2)
    array([[0.  , 0.  , 0.39]])
    """

    image_shape: Shape = None
    n_points: int = 50
    _name = "shape-context"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("n_points", self.n_points, 2)

    def featurize(self, rows: Array) -> Array:
        """Return the histograms of all points: (n, n_points * 60)."""
        images = self.images(rows)
        out = np.empty((len(images), self.n_points * len(_RADII) * _N_ANGLES), images.dtype)
        for i, image in enumerate(images):
            points = _spread(_contour(image.astype(np.float64)), self.n_points)
            out[i] = _contexts(points).ravel()
        return out

    def compare(self, A: Array, B: Array) -> Array:
        """Return the distances of all pairs of descriptors: (..., n, m)."""
        return machine(A).assignment_distances(A, B, self.n_points)


def _contour(image: Array) -> Array:
    """Return where an image passes the middle of its range between pixels: (n, 2), down, across."""
    dark, bright = image.min(), image.max()
    level = dark + (bright - dark) / 2
    height = image - level
    found = []
    for axis in (0, 1):
        before, after = (np.delete(height, edge, axis) for edge in (-1, 0))  # a pixel, the next
        places = np.argwhere((before > 0) != (after > 0))
        start, stop = before[tuple(places.T)], after[tuple(places.T)]
        points = places.astype(np.float64)
        points[:, axis] += start / (start - stop)
        found.append(points)
    return np.concatenate(found)


def _spread(points: Array, n: int) -> Array:
    """Return n of the points, each the farthest from those before, the first from their mean."""
    if len(points) <= n:
        return np.resize(points, (n if len(points) else 0, 2))
    chosen = [int(np.square(points - points.mean(axis=0)).sum(axis=1).argmax())]
    nearest = np.full(len(points), np.inf)
    while len(chosen) < n:
        np.minimum(nearest, np.square(points - points[chosen[-1]]).sum(axis=1), out=nearest)
        chosen.append(int(nearest.argmax()))
    return points[chosen]


def _contexts(points: Array) -> Any:
    """Return the histogram of each point, sum 1: (n_points, 60); 0 if all are in one place."""
    down, across = (points[:, [c]] - points[:, c] for c in (0, 1))
    far = np.hypot(down, across)
    mean = far.mean() if len(far) else 0.0
    if mean == 0:
        return np.zeros(1)
    ring = np.searchsorted(_RADII, far / mean, side="right")
    # Turned by a quarter of a bin: of pixels many lie exactly beside, above or across each other,
    # and rounding would decide on which side of an edge.
    turns = np.arctan2(down, across) / (2 * np.pi) * _N_ANGLES + 0.25
    sector = np.floor(turns).astype(np.intp) % _N_ANGLES
    counted = (far > 0) & (ring < len(_RADII))
    owner = np.broadcast_to(np.arange(len(points))[:, None], far.shape)
    n_bins = len(_RADII) * _N_ANGLES
    places = (owner * n_bins + ring * _N_ANGLES + sector)[counted]
    counts = np.bincount(places, minlength=len(points) * n_bins).reshape(-1, n_bins)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
