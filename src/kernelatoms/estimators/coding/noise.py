"""How large is the noise? ``estimate_sigma``, and images as planes of numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_array

from kernelatoms.engine import Array
from kernelatoms.estimators.devices.border import on_cpu
from kernelatoms.estimators.validation import FLOATS
from kernelatoms.similarity.base import check_flag

# The side of squares that noise is measured in, and the part of them that is quiet but for it.
_SQUARE, _QUIETEST = 16, 0.1
# In pure noise of deviation 1 the tenth quantile of the squares' median |Laplacian| is this, by
# simulation to three digits (30,000 squares; 77,000 stretches of 256).
_OF_NOISE = {False: 0.588, True: 0.602}
_MEDIAN = 0.6745  # of |x| for normal x: what all values together are measured by
_FEWEST = 20  # squares; with fewer, all values together are one


def estimate_sigma(X: Any, *, rows: bool = False) -> float:
    """Return an estimate of the standard deviation of white noise in an image, or in rows.

    The tenth quantile of the median absolute Laplacian in squares of 16 x 16 pixels, or along rows
    in stretches of 256 values: quiet ones hold hardly anything but noise.

    Parameters
    ----------
    X : array of shape (height, width), (height, width, n_channels) or (n_samples, n_features)
        A noisy image, grey or in colours, or noisy signals, one per row.
    rows : bool, default=False
        Whether the rows of X are signals of their own.

    Returns
    -------
    float
        In the units of X; of colours, the root of the mean square over the channels.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import estimate_sigma
    >>> noise = np.random.default_rng(0).standard_normal((256, 256))
    >>> round(estimate_sigma(np.hypot(*np.ogrid[:256, :256]) + 5 * noise))
    5
    """
    X = on_cpu("estimate_sigma", X=X)
    check_flag("rows", rows)
    if rows:
        signals = check_array(X, dtype=FLOATS, order="C", input_name="X")
        return sigma_of(signals.astype(np.float64), rows=True)
    planes, _ = planes_of(X)
    return float(np.sqrt(np.mean([sigma_of(plane) ** 2 for plane in planes])))


def sigma_of(plane: Array, *, rows: bool = False) -> float:
    """Return the deviation of the noise in a plane of float64, or in its rows."""
    if plane.shape[1] < 3 or (not rows and plane.shape[0] < 3):
        what = (
            f"rows of {plane.shape[1]} columns" if rows
            else f"an image of {plane.shape[0]} x {plane.shape[1]} pixels"
        )  # fmt: skip
        raise ValueError(f"sigma cannot be estimated from {what}; give sigma.")
    largest = float(np.abs(plane).max())
    if largest == 0:
        return 0.0
    scaled = plane / largest  # differences of huge numbers would overflow
    if rows:
        detail = np.abs(scaled[:, :-2] - 2 * scaled[:, 1:-1] + scaled[:, 2:]) / np.sqrt(6)
        squares = _stretches(detail)
    else:
        lines = scaled[:-2] - 2 * scaled[1:-1] + scaled[2:]
        detail = np.abs(lines[:, :-2] - 2 * lines[:, 1:-1] + lines[:, 2:]) / 6
        squares = _squares(detail)
    medians = np.median(squares, axis=1) if len(squares) else np.zeros(0)
    medians = medians[medians > 0]  # borders and backgrounds of one value have no noise to measure
    if len(medians) < _FEWEST:
        return largest * float(np.median(detail)) / _MEDIAN
    return largest * float(np.quantile(medians, _QUIETEST)) / _OF_NOISE[rows]


def _squares(detail: Array) -> Array:
    height, width = (side // _SQUARE for side in detail.shape)
    whole = detail[: height * _SQUARE, : width * _SQUARE]
    parted = whole.reshape(height, _SQUARE, width, _SQUARE).swapaxes(1, 2)
    return parted.reshape(height * width, _SQUARE**2)


def _stretches(detail: Array) -> Array:
    n, length = detail.size // _SQUARE**2, _SQUARE**2
    return detail.reshape(-1)[: n * length].reshape(n, length)


def planes_of(image: Any) -> tuple[list[Array], Callable[[list[Array]], Array]]:
    """Return an image as planes of float64, and the way back to its shape and type.

    Colours become brightness and differences of channels (an orthonormal DCT of them): there the
    noise is as white as before, and what an image shows is in few of them.
    """
    given = np.asarray(image)
    if given.dtype.kind not in "uif" or given.ndim not in (2, 3) or not given.size:
        raise ValueError(
            "image must be an array of numbers of shape (height, width) or (height, width, "
            f"n_channels), got shape {given.shape} of {given.dtype}."
        )
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise ValueError("image holds NaN or infinity; fill in such pixels first.")
    values = given.astype(np.float64)
    n_channels = 1 if given.ndim == 2 else given.shape[2]
    turn = _turn(n_channels)
    planes = np.moveaxis(values.reshape(*given.shape[:2], n_channels) @ turn.T, 2, 0)

    def back(planes: list[Array]) -> Array:
        result = (np.stack(planes, axis=2) @ turn).reshape(given.shape)
        if given.dtype.kind in "ui":
            info = np.iinfo(given.dtype)
            result = np.clip(np.rint(result), info.min, info.max)
        return result.astype(given.dtype)

    return list(planes), back


def _turn(n: int) -> Array:
    """Return the orthonormal DCT of n channels: (1) for grey, its first row the mean."""
    rows = np.cos(np.pi * np.outer(np.arange(n), np.arange(n) + 0.5) / n)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
