"""Images made up on the spot, where a set of the papers is not at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # scikit-learn takes a second to import
    from sklearn.utils import Bunch

COLOURS = {"red": (200, 60, 60), "green": (60, 180, 70), "blue": (70, 90, 200)}
SHAPES = ("dome", "bowl", "wedge")

_DESCRIPTION = """\
Made-up RGB-D images of round objects: nine classes, three colours times three shapes. Red, green
and blue go from 0 to 255, depth is in millimetres. Colour says nothing of the shape and depth
nothing of the colour, so that no channel alone tells the classes apart. They stand in for the
Washington RGB-D objects, which are not at hand; accuracies on them cannot be compared with
published ones."""


def make_rgbd_objects(
    n_samples: int = 270,
    *,
    image_shape: tuple[int, int] = (10, 10),
    broken: float = 0.0,
    random_state: Any = None,
) -> Bunch:
    """Make small images of four channels, red, green, blue and depth, of coloured objects.

    A stand-in for the Washington RGB-D object data set of the K-SAD paper, which is not at hand.
    The outline of an object is the same circle for all, at a random place and size. Its colour,
    under random light and with a rough surface, shows in three noisy channels; its shape (dome,
    bowl, wedge) in depth only, whose numbers are larger and of another unit.

    Parameters
    ----------
    n_samples : int, default=270
        How many images. Classes have as many each, or one more.
    image_shape : tuple of (height, width), default=(10, 10)
        From 4 pixels a side.
    broken : float, default=0
        The share of images in which one channel, drawn at random, is static: noise of that
        channel's mean and spread.
    random_state : int, RandomState or None
        Seed, for the same images again.

    Returns
    -------
    data : Bunch
        ``X`` (n_samples, height * width * 4) float64: images (height, width, 4), channels last,
        flattened; ``y`` (n_samples,), the classes 0 to 8; ``colour`` and ``shape``, 0 to 2 each,
        ``y`` is 3 * colour + shape; ``target_names``; ``image_shape``, with the channels:
        (height, width, 4); and ``source``, ``DESCR``.

    Examples
    --------
    >>> from kernelatoms.datasets import make_rgbd_objects
    >>> objects = make_rgbd_objects(90, random_state=0)
    >>> objects.X.shape, objects.image_shape
    ((90, 400), (10, 10, 4))
    >>> depth = objects.X.reshape(90, 10, 10, 4)[..., 3]
    >>> bool(depth.mean() > 800)  # millimetres
    True
    """
    from sklearn.utils import Bunch, check_random_state

    height, width = _checked(n_samples, image_shape, broken)
    rng = check_random_state(random_state)
    y = rng.permutation(n_samples) % (len(COLOURS) * len(SHAPES))
    colour, shape = np.divmod(y, len(SHAPES))
    inside, relief = _reliefs(shape, height, width, rng)
    images = np.empty((n_samples, height, width, 4))
    light = rng.uniform(0.7, 1.2, (n_samples, 1, 1, 1))
    paint = np.array(list(COLOURS.values()), float)[colour][:, None, None]
    images[..., :3] = light * np.where(inside[..., None], paint, 90)
    images[..., :3] += rng.normal(scale=40, size=(n_samples, height, width, 3))
    np.clip(images[..., :3], 0, 255, out=images[..., :3])
    distance = rng.uniform(880, 920, (n_samples, 1, 1))
    images[..., 3] = distance - 60 * relief
    images[..., 3] += rng.normal(scale=8, size=(n_samples, height, width))
    _break(images, broken, rng)
    return Bunch(
        X=images.reshape(n_samples, -1),
        y=y.astype(np.int64),
        colour=colour.astype(np.int64),
        shape=shape.astype(np.int64),
        target_names=[f"{name} {kind}" for name in COLOURS for kind in SHAPES],
        image_shape=(height, width, 4),
        source="generated",
        DESCR=_DESCRIPTION,
    )


def _reliefs(shape: Any, height: int, width: int, rng: Any) -> tuple[Any, Any]:
    """Return which pixels are on the object, and how high they stand, from 0 to 1."""
    n = len(shape)
    rows, columns = np.mgrid[:height, :width]
    down, across = rng.uniform(-1, 1, (2, n, 1, 1))
    radius = 0.4 * min(height, width) * rng.uniform(0.9, 1.1, (n, 1, 1))
    y = (rows - (height - 1) / 2 - down) / radius
    x = (columns - (width - 1) / 2 - across) / radius
    inside = x * x + y * y < 1
    dome = np.sqrt(np.maximum(1 - x * x - y * y, 0))
    kinds = np.stack([dome, 1 - dome, (1 + x) / 2])
    return inside, np.where(inside, kinds[shape, np.arange(n)], 0)


def _break(images: Any, share: float, rng: Any) -> None:
    """Put static in the place of a channel, in some images."""
    channels = images.reshape(-1, 4)
    means, spreads = channels.mean(axis=0), channels.std(axis=0)
    for i in np.flatnonzero(rng.uniform(size=len(images)) < share):
        c = rng.randint(4)
        images[i, ..., c] = rng.normal(means[c], spreads[c], images.shape[1:3])


def _checked(n_samples: Any, image_shape: Any, broken: Any) -> tuple[int, int]:
    """Return height and width."""
    whole = isinstance(n_samples, int | np.integer) and not isinstance(n_samples, bool)
    if not whole or n_samples < 1:
        raise ValueError(f"n_samples must be a whole number from 1, got {n_samples!r}.")
    sides = list(image_shape) if isinstance(image_shape, tuple | list) else []
    right = [isinstance(side, int | np.integer) and side >= 4 for side in sides]
    if len(sides) != 2 or not all(right):
        raise ValueError(
            "image_shape must be (height, width), whole numbers from 4; the four channels come "
            f"on top. Got {image_shape!r}."
        )
    number = isinstance(broken, int | float | np.number) and not isinstance(broken, bool)
    if not number or not 0 <= broken <= 1:
        raise ValueError(f"broken must be a share of the images, from 0 to 1, got {broken!r}.")
    return int(sides[0]), int(sides[1])
