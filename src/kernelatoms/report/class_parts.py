"""The figure of a row that is written in training rows: how its classes are judged."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from kernelatoms.report.figures import show_image
from kernelatoms.report.style import COLOURS, GREY, PALE, WIDTH, plain_axes


def class_parts_figure(
    names: Sequence[str],
    energies: Any,
    residuals: Any,
    marked: Any,
    images: Mapping[str, Any],
    atoms: Sequence[tuple[str, Any]],
) -> Figure:
    """Draw each class's part of a code and its regularised residual, under the images if any.

    Parameters
    ----------
    names : list of str
        The classes.
    energies : array of shape (n_classes,)
        Shares of the code's squared norm.
    residuals : array of shape (n_classes,)
        r_c; infinite for a class without a part, which gets no bar.
    marked : array of int
        Classes in the colour of the answer.
    images : mapping of str to array of shape (height, width)
        The row first; all on its scale.
    atoms : list of (str, array of shape (height, width))
        Training rows, each on its own scale.

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
    left, right = parts[-1].subplots(1, 2, sharey=True)
    left.barh(range(len(names)), energies, color=colours, height=0.7)
    left.set_title("share of the code's energy", fontsize=10)
    left.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    finite = np.isfinite(residuals)
    right.barh(
        np.flatnonzero(finite), np.asarray(residuals)[finite], color=colours[finite], height=0.7
    )
    right.set_title("regularised residual", fontsize=10)
    for missing in np.flatnonzero(~finite):
        right.text(0, missing, " no part in the code", va="center", fontsize=8, color=GREY)
    for ax in (left, right):
        plain_axes(ax)
        ax.grid(axis="x", color=PALE, linewidth=0.8)
        ax.set_axisbelow(True)
        ax.locator_params(axis="x", nbins=4)
    left.set_yticks(range(len(names)), names)
    left.set_ylim(len(names) - 0.5, -0.5)
    left.tick_params(axis="y", length=0)
    right.tick_params(axis="y", length=0)
    return figure
