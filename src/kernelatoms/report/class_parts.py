"""The figure of a row that is written in atoms: how its classes are judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelatoms.report.figures import show_image
from kernelatoms.report.shown import Figure
from kernelatoms.report.style import COLOURS, GREY, PALE, WIDTH, plain_axes


@dataclass(frozen=True)
class Bars:
    """A number for every class, with what it is; an infinite one belongs to a class without any."""

    title: str
    values: Any
    are_shares: bool = False

    def of(self, classes: Any) -> "Bars":
        """Return the bars of some classes."""
        return replace(self, values=np.asarray(self.values)[classes])


def class_parts_figure(
    names: Sequence[str],
    bars: Sequence[Bars],
    marked: Any,
    images: Mapping[str, Any],
    atoms: Sequence[tuple[str, Any]],
) -> Figure:
    """Draw what is known of each class's part in a code, under the images if any.

    Parameters
    ----------
    names : list of str
        The classes.
    bars : list of Bars
        Side by side, such as shares of the code's squared norm and regularised residuals. An
        infinite one, of a class without a part, gets words in place of a bar.
    marked : array of int
        Classes in the colour of the answer.
    images : mapping of str to array of shape (height, width)
        The row first; all on its scale.
    atoms : list of (str, array of shape (height, width))
        Atoms, each on its own scale.

    Returns
    -------
    Figure
    """
    heights = [*([1.75] if images else []), *([1.3] if atoms else []), 0.8 + 0.2 * len(names)]
    figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
    parts: Any = np.ravel(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False))
    if images:
        limit = float(np.abs(next(iter(images.values()))).max()) or 1.0
        axes = np.ravel(parts[0].subplots(1, len(images)))
        for ax, (name, image) in zip(axes, images.items(), strict=True):
            show_image(ax, image, limit, name)
    if atoms:
        axes = np.ravel(parts[-2].subplots(1, len(atoms)))
        for ax, (name, image) in zip(axes, atoms, strict=True):
            show_image(ax, image, float(np.abs(image).max()) or 1.0, name)
    colours = np.full(len(names), COLOURS[0], dtype=object)
    colours[marked] = COLOURS[1]
    columns: Any = np.ravel(parts[-1].subplots(1, len(bars), sharey=True))
    for ax, each in zip(columns, bars, strict=True):
        _draw_bars(ax, each, colours)
    columns[0].set_yticks(range(len(names)), names)
    columns[0].set_ylim(len(names) - 0.5, -0.5)
    return figure


def _draw_bars(ax: Any, bars: Bars, colours: Any) -> None:
    values = np.asarray(bars.values)
    finite = np.isfinite(values)
    ax.barh(np.flatnonzero(finite), values[finite], color=colours[finite], height=0.7)
    for missing in np.flatnonzero(~finite):
        ax.text(0, missing, " no part in the code", va="center", fontsize=8, color=GREY)
    ax.set_title(bars.title, fontsize=10)
    if bars.are_shares:
        ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    plain_axes(ax)
    ax.grid(axis="x", color=PALE, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.locator_params(axis="x", nbins=4)
    ax.tick_params(axis="y", length=0)
