"""The figure of a contact sheet: small pictures in a grid, each with its numbers under it.

One axes in inches holds everything, which is much faster than an axes for every atom.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps

from kernelatoms.report.figures import style
from kernelatoms.report.figures.images import as_panel, panel_shape
from kernelatoms.report.figures.rows import draw_curve

_TITLE, _SMALL = 8.0, 7.5
_LINE = 0.13
# Inches around the sheet and between its cells.
_EDGE, _GAP = 0.06, 0.12
_BAR = 0.04
_WIDEST_CELL = 1.25
# More atoms than this are drawn on a sheet twice as wide: else it would be a very long strip.
_MANY = 60


@dataclass(frozen=True)
class Cell:
    """What stands under a picture: a title, a line for every number, how much of a bar is full."""

    title: str
    lines: Sequence[str]
    share: float | None = None


def sheet_figure(
    rows: Any,
    cells: Sequence[Cell],
    *,
    image_shape: tuple[int, ...] | None = None,
    feature_names: Sequence[Any] | None = None,
) -> style.Figure:
    """Draw rows as images, else as bars with names, else as curves, each with its numbers."""
    rows = np.asarray(rows, np.float64)
    largest = np.abs(rows).max(axis=1, keepdims=True)
    rows = rows / np.where(largest > 0, largest, 1)
    names = None
    if image_shape is None and feature_names is not None:
        names = [style.as_label(name, 20) for name in feature_names]
    left = _EDGE if names is None else 0.12 + max(style.text_width(name, _SMALL) for name in names)
    wide = 2 * style.WIDTH if len(rows) > _MANY else style.WIDTH
    n_columns = 10 if len(rows) > _MANY else 5
    n_columns = min(len(rows), n_columns if names is None else n_columns - 1)
    cell = min((wide - left - _EDGE) / n_columns, _WIDEST_CELL)
    across = cell - _GAP
    tall = _picture_height(across, image_shape, names)
    under = _LINE * (1 + max(len(each.lines) for each in cells)) + 0.1
    n_lines = -(-len(rows) // n_columns)
    size = (left + n_columns * cell + _EDGE, 2 * _EDGE + n_lines * (tall + under + _GAP) - _GAP)
    figure = style.Figure(figsize=size)
    ax = figure.add_axes((0, 0, 1, 1))
    for i, (row, each) in enumerate(zip(rows, cells, strict=True)):
        x = left + (i % n_columns) * cell
        y = _EDGE + (i // n_columns) * (tall + under + _GAP)
        box = (x, y, across, tall)
        if image_shape is not None:
            _draw_image(ax, row.reshape(image_shape), box)
        elif names is not None:
            _draw_bars(ax, row, box, names if i % n_columns == 0 else None)
        else:
            draw_curve(ax, row, x, y + tall / 2, across, -0.46 * tall)
        _write(ax, each, x, y + tall, across)
    ax.set(xlim=(0, size[0]), ylim=(size[1], 0), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return figure


def _picture_height(
    across: float, image_shape: tuple[int, ...] | None, names: list[str] | None
) -> float:
    if image_shape is not None:
        height, width = panel_shape(image_shape)
        return across * min(max(height / width, 0.2), 3.0)
    return 0.5 * across if names is None else 0.13 * len(names)


def _draw_image(ax: Any, image: style.Array, box: tuple[float, float, float, float]) -> None:
    x, y, across, tall = box
    height, width = panel_shape(image.shape)
    # Very long images are drawn narrower, very flat ones lower, in the middle of their box.
    wide, high = min(across, tall * width / height), min(tall, across * height / width)
    x, y = x + (across - wide) / 2, y + (tall - high) / 2
    ax.imshow(
        as_panel(image, 1.0), cmap=style.SIGNED, vmin=-1, vmax=1, extent=(x, x + wide, y + high, y),
        interpolation="none", aspect="auto",
    )  # fmt: skip
    edge = ([x, x + wide, x + wide, x, x], [y, y, y + high, y + high, y])
    ax.plot(*edge, color=style.PALE, linewidth=0.8)


def _draw_bars(
    ax: Any, row: style.Array, box: tuple[float, float, float, float], names: list[str] | None
) -> None:
    x, y, across, tall = box
    pitch, middle = tall / len(row), x + across / 2
    places = y + pitch * (np.arange(len(row)) + 0.5)
    colours = colormaps[style.SIGNED](np.where(row < 0, 0.12, 0.88))
    ax.plot([middle, middle], [y, y + tall], color=style.GREY, linewidth=0.8)
    ax.barh(places, row * across / 2, 0.7 * pitch, left=middle, color=colours)
    for name, place in zip(names or [], places, strict=False):
        ax.text(x - 0.06, place, name, ha="right", va="center", fontsize=_SMALL, color=style.GREY)


def _write(ax: Any, cell: Cell, x: float, y: float, across: float) -> None:
    """Write what stands under a picture, from y down."""
    y += 0.03
    if cell.share is not None:
        ax.barh(y + _BAR / 2, across, _BAR, left=x, color=style.PALE)
        ax.barh(y + _BAR / 2, across * cell.share, _BAR, left=x, color=style.COLOURS[0])
    y += 0.07
    font = {"ha": "left", "va": "top", "parse_math": False}
    ax.text(x, y, cell.title, fontsize=_TITLE, fontweight="bold", **font)
    for i, line in enumerate(cell.lines, start=1):
        ax.text(x, y + i * _LINE, line, fontsize=_SMALL, color="#303840", **font)
