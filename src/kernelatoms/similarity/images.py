"""Rows as images: the shape that distances of images ask for."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.similarity.distances import Distance, as_rows

Array = NDArray[Any]
Shape = tuple[int, int] | None


class ImageDistance(Distance):
    """A distance of the library's that looks at rows as images of ``image_shape``."""

    takes_stacks = True
    image_shape: Shape
    _name = ""

    def __post_init__(self) -> None:
        """Check the parameters."""
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
    whole = [isinstance(side, int | np.integer) and not isinstance(side, bool) for side in sides]
    if len(sides) != 2 or not all(whole) or min(sides) < 1:
        raise ValueError(f"{name} must be {meaning}, two whole numbers from 1, got {value!r}.")
    return int(sides[0]), int(sides[1])
