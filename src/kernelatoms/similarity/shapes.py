"""Shape contexts: images compared by where the points of their contours lie to each other.

Belongie, Malik and Puzicha, "Shape matching and object recognition using shape contexts" (2002).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import machine
from kernelatoms.similarity.base import check_whole
from kernelatoms.similarity.images import ImageDistance, Shape

Array = NDArray[Any]

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
        """Check the parameters."""
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
    """Return n of the points, each the farthest from those before; all in turn if they are fewer.

    The first is the farthest from the mean of all, so that it does not depend on where they lie.
    """
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
