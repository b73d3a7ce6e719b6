"""Images of several channels as pictures: colour, and further channels in grey next to it.

An image is an array of shape (height, width) or (height, width, channels). One of three channels is
drawn in colour, one of four in colour with the fourth (depth, say) in grey below, one of two in
grey side by side. Where values are clearly negative, middle grey is 0; else black is.
"""

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_MOST_CHANNELS = 4
# A sum of atoms may dip below 0 here and there: that alone does not make an image signed.
_SIGNED_FROM = -0.05


def check_image_shape(image_shape: Any, n_features: int | None) -> tuple[int, ...] | None:
    """Return the shape of images as a tuple, or say what is wrong with it."""
    if image_shape is None:
        return None
    shape = tuple(image_shape) if isinstance(image_shape, Sequence | np.ndarray) else ()
    if isinstance(image_shape, str) or len(shape) not in (2, 3):
        raise ValueError(
            "image_shape must be (height, width) or (height, width, channels), got "
            f"{image_shape!r}."
        )
    for side in shape:
        if isinstance(side, bool) or not isinstance(side, Integral):
            raise TypeError(f"image_shape's sides must be a whole number each, got {side!r}.")
        if side < 1:
            raise ValueError(f"image_shape's sides must be at least 1, got {side}.")
    if len(shape) == 3 and shape[2] > _MOST_CHANNELS:
        raise ValueError(
            f"image_shape={shape}: images of up to {_MOST_CHANNELS} channels can be drawn, the "
            "last of the three numbers."
        )
    sides = tuple(int(side) for side in shape)
    if n_features is not None and math.prod(sides) != n_features:
        what = " times ".join(("height", "width", "channels")[: len(sides)])
        raise ValueError(
            f"image_shape={sides} makes {math.prod(sides)} pixels, but rows have {n_features} "
            f"features; their number must be {what}."
        )
    return sides[:2] if len(sides) == 3 and sides[2] == 1 else sides


def panel_shape(image_shape: Sequence[int]) -> tuple[int, int]:
    """Return height and width of the picture of an image: two greys stand side by side."""
    height, width = image_shape[:2]
    channels = image_shape[2] if len(image_shape) == 3 else 1
    return (2 * height if channels == 4 else height), (2 * width if channels == 2 else width)


def as_panel(image: Array, limit: float) -> Array:
    """Return what imshow draws for an image: itself, or colours (height, width, 3) from 0 to 1.

    ``limit`` is drawn in full. The fourth of four channels has a unit of its own: colours and the
    fourth are then each drawn up to their own largest value.
    """
    if image.ndim == 2:
        return image
    channels = image.shape[2]
    if channels == 2:
        return _grey(np.hstack([_toned(image[..., 0], limit), _toned(image[..., 1], limit)]))
    if channels == 3:
        return _toned(image, limit)
    colours, fourth = image[..., :3], image[..., 3]
    limits = [float(np.abs(part).max()) for part in (colours, fourth)]
    return np.vstack([_toned(colours, limits[0]), _grey(_toned(fourth, limits[1]))])


def _toned(values: Array, limit: float) -> Array:
    scaled = np.clip(values / (limit or 1.0), -1, 1)
    return (scaled + 1) / 2 if (scaled < _SIGNED_FROM).any() else np.maximum(scaled, 0)


def _grey(values: Array) -> Array:
    return np.repeat(values[..., None], 3, axis=2)
