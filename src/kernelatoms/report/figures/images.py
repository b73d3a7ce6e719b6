"""Figures of images: atoms, signals, and a signal with its code.

An image is an array of shape (height, width) or (height, width, channels). One of three channels is
drawn in colour, one of four in colour with the fourth (depth, say) in grey below, one of two in
grey side by side. Where values are clearly negative, middle grey is 0; else black is.
"""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from kernelatoms.report.figures import style

_MOST_CHANNELS = 4
# A sum of atoms may dip below 0 here and there: that alone does not make an image signed.
_SIGNED_FROM = -0.05


def atoms_figure(
    atoms: Any,
    image_shape: tuple[int, ...],
    *,
    n_columns: int | None = None,
    row_labels: Sequence[str] | None = None,
) -> style.Figure:
    """Draw atoms as images in a grid, white at 0, each scaled to its own largest value.

    Parameters
    ----------
    atoms : array of shape (n_atoms, n_features)
        Atoms, drawn row by row.
    image_shape : (height, width) or (height, width, channels)
        Their shape as images, of up to four channels.
    n_columns : int, optional
        Images per row; by default a grid about as wide as high.
    row_labels : list of str, optional
        A label left of every row of the grid.

    Returns
    -------
    Figure
    """
    images = _as_images("atoms", atoms, image_shape)
    largest = np.abs(images).max(axis=tuple(range(1, images.ndim)), keepdims=True)
    return _grid(images / np.where(largest > 0, largest, 1), n_columns, row_labels)


def images_figure(
    images: Any,
    image_shape: tuple[int, ...],
    *,
    n_columns: int | None = None,
    row_labels: Sequence[str] | None = None,
) -> style.Figure:
    """Draw signals as images in a grid on one scale, white at 0.

    Parameters
    ----------
    images : array of shape (n_images, n_features)
        Signals, drawn row by row.
    image_shape, n_columns, row_labels : tuple of int, int, list of str
        As in ``atoms_figure``.

    Returns
    -------
    Figure
    """
    stack = _as_images("images", images, image_shape)
    return _grid(stack / (np.abs(stack).max() or 1), n_columns, row_labels)


def code_figure(
    signal: Any, atoms: Any, code: Any, image_shape: tuple[int, ...], *, max_atoms: int = 5
) -> style.Figure:
    """Draw a signal, its approximation, what is left over, its code and the atoms it uses.

    The percentage over the rest is its share of the signal's energy (squared norm).

    Parameters
    ----------
    signal : array of shape (n_features,)
    atoms : array of shape (n_atoms, n_features)
        The dictionary; pre-images of its atoms, if they live in a feature space.
    code : array of shape (n_atoms,)
        The coefficients of the signal.
    image_shape : (height, width) or (height, width, channels)
        The shape of signal and atoms as images.
    max_atoms : int, default=5
        Draw this many of the used atoms, those with the largest coefficients.

    Returns
    -------
    Figure
    """
    pictures = _as_images("atoms", atoms, image_shape)
    target = _as_images("signal", np.atleast_2d(signal), image_shape)[0]
    code = np.asarray(code, np.float64)
    if code.shape != (len(pictures),):
        raise ValueError(
            f"code must hold one coefficient for each of the {len(pictures)} atoms, got shape "
            f"{code.shape}."
        )
    used = np.flatnonzero(code)
    shown = used[np.argsort(-np.abs(code[used]), kind="stable")][:max_atoms]
    approximation = np.tensordot(code, pictures, axes=1)
    return coded_image_figure(target, approximation, code, {int(i): pictures[i] for i in shown})


def coded_image_figure(
    target: style.Array,
    approximation: style.Array,
    code: style.Array,
    atoms: Mapping[int, style.Array],
) -> style.Figure:
    """Draw what ``code_figure`` draws, from images of the atoms to show, by their numbers."""
    figure = style.Figure(figsize=(style.WIDTH, 4.8 if atoms else 3.6), layout="constrained")
    heights = (1.5, 1.0, 1.1) if atoms else (1.5, 1.0)
    parts: Any = figure.subfigures(len(heights), 1, height_ratios=heights)
    left, limit = target - approximation, float(np.abs(target).max()) or 1.0
    images = {
        "signal": target,
        "sum of its atoms": approximation,
        f"left over: {100 * energy_share(left, target):.1f}%": left,
    }
    for ax, (name, image) in zip(parts[0].subplots(1, 3), images.items(), strict=True):
        show_image(ax, image, name, limit)
    draw_code(parts[1].subplots(), code)
    if atoms:
        axes = np.ravel(parts[2].subplots(1, len(atoms)))
        for ax, (atom, image) in zip(axes, atoms.items(), strict=True):
            show_image(ax, image, f"{code[atom]:+.2f} ·\natom {atom}")
    return figure


def _as_images(name: str, rows: Any, image_shape: tuple[int, ...]) -> style.Array:
    """Return rows as a stack of images, or say why they are none."""
    rows = np.asarray(rows, np.float64)
    shape = check_image_shape(image_shape, None) or ()
    size = math.prod(shape)
    if rows.ndim != 2 or len(rows) == 0 or rows.shape[1] != size:
        raise ValueError(
            f"{name} must hold rows of {' x '.join(map(str, shape))} = {size} values to be drawn "
            f"as images of image_shape={tuple(image_shape)}, got shape {rows.shape}."
        )
    return rows.reshape(-1, *shape)


def _grid(
    images: style.Array, n_columns: int | None, row_labels: Sequence[str] | None
) -> style.Figure:
    """Place images with values in [-1, 1] in one axes: much faster than an axes for each."""
    n_images, (height, width) = len(images), panel_shape(images.shape[1:])
    if n_columns is None:
        n_columns = int(np.ceil(np.sqrt(n_images)))
    n_rows = -(-n_images // n_columns)
    if row_labels is not None and len(row_labels) != n_rows:
        raise ValueError(
            f"row_labels must name each of the {n_rows} rows of the grid, got {len(row_labels)}."
        )
    gap = 0.12
    step_x, step_y = 1 + gap, height / width + gap
    size_x, size_y = n_columns * step_x + gap, n_rows * step_y + gap
    left = 0.05
    if row_labels is not None:
        left += 0.1 + max(style.text_width(label, style.LABEL_SIZE) for label in row_labels)
    room = style.WIDTH - left - 0.05
    height_in = room * size_y / size_x + 0.1
    figure = style.Figure(figsize=(style.WIDTH, height_in))
    ax = figure.add_axes(
        (left / style.WIDTH, 0.05 / height_in, room / style.WIDTH, 1 - 0.1 / height_in),
        aspect="equal",
    )
    for i, image in enumerate(images):
        x, y = (i % n_columns) * step_x, (i // n_columns) * step_y
        extent = (x, x + 1, y + height / width, y)
        if image.ndim == 3 and not np.isfinite(image).all():
            continue  # a place that stays empty
        panel = as_panel(image, 1.0)
        ax.imshow(panel, cmap=style.SIGNED, vmin=-1, vmax=1, extent=extent, interpolation="none")
    ax.set(xlim=(-gap, size_x - gap), ylim=(size_y - gap, -gap), xticks=[])
    ax.set_facecolor(style.PALE)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labelsize=style.LABEL_SIZE)
    middles = np.arange(n_rows) * step_y + height / width / 2
    ax.set_yticks(*((middles, row_labels) if row_labels is not None else ([],)))
    return figure


def energy_share(part: style.Array, whole: style.Array) -> float:
    """Return the energy (squared norm) of a part as a share of the whole's; 0 of nothing."""
    energy = float(np.vdot(whole, whole))
    return float(np.vdot(part, part)) / energy if energy > 0 else 0.0


def draw_code(ax: Any, code: style.Array, colour: str = style.COLOURS[0]) -> None:
    """Draw the coefficients of a code as stems, and say how many there are."""
    used = np.flatnonzero(code)
    ax.axhline(0, color=style.GREY, linewidth=0.8)
    ax.vlines(used, 0, code[used], color=colour, linewidth=1.5)
    ax.plot(used, code[used], "o", color=colour, markersize=5)
    ax.set_xlim(-0.9, len(code) - 0.1)
    ax.margins(y=0.15)
    ax.set_title(f"the code: {len(used)} of {len(code)} coefficients are not 0", fontsize=10)
    ax.set_xlabel("atom", fontsize=10)
    ax.xaxis.get_major_locator().set_params(integer=True)
    style.plain_axes(ax)


def show_image(ax: Any, image: style.Array, title: str, limit: float | None = None) -> None:
    """Draw one image, white at 0, full colour at the limit, by default its largest value."""
    limit = limit or float(np.abs(image).max()) or 1.0
    panel = as_panel(image, limit)
    ax.imshow(panel, cmap=style.SIGNED, vmin=-limit, vmax=limit, interpolation="none")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color(style.PALE)
    ax.set_title(title, fontsize=10)


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


def as_panel(image: style.Array, limit: float) -> style.Array:
    """Return what imshow draws for an image: itself, or colours (height, width, 3) from 0 to 1."""
    if image.ndim == 2:
        return image
    channels = image.shape[2]
    if channels == 2:
        return _grey(np.hstack([_toned(image[..., i], limit) for i in range(2)]))
    if channels == 3:
        return _toned(image, limit)
    # The fourth channel has a unit of its own: each part is drawn up to its own largest value.
    colours, fourth = image[..., :3], image[..., 3]
    colours, fourth = (_toned(part, float(np.abs(part).max())) for part in (colours, fourth))
    return np.vstack([colours, _grey(fourth)])


def _toned(values: style.Array, limit: float) -> style.Array:
    scaled = np.clip(values / (limit or 1.0), -1, 1)
    return (scaled + 1) / 2 if (scaled < _SIGNED_FROM).any() else np.maximum(scaled, 0)


def _grey(values: style.Array) -> style.Array:
    return np.repeat(values[..., None], 3, axis=2)
