"""Figures of classes: confusion matrices, and the classes' parts in the code of a row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelatoms.report.figures import style
from kernelatoms.report.figures.images import show_image


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
) -> style.Figure:
    """Draw what is known of each class's part in a code, under the images if any.

    ``bars`` stand side by side; ``marked`` classes have the colour of the answer. ``images``, the
    row first, share one scale; ``atoms`` are (name, image) pairs, each on its own scale.
    """
    heights = [*([1.75] if images else []), *([1.3] if atoms else []), 0.8 + 0.2 * len(names)]
    figure = style.Figure(figsize=(style.WIDTH, sum(heights)), layout="constrained")
    parts: Any = np.ravel(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False))
    if images:
        limit = float(np.abs(next(iter(images.values()))).max()) or 1.0
        axes = np.ravel(parts[0].subplots(1, len(images)))
        for ax, (name, image) in zip(axes, images.items(), strict=True):
            show_image(ax, image, name, limit)
    if atoms:
        axes = np.ravel(parts[-2].subplots(1, len(atoms)))
        for ax, (name, image) in zip(axes, atoms, strict=True):
            show_image(ax, image, name)
    colours = np.full(len(names), style.COLOURS[0], dtype=object)
    colours[marked] = style.COLOURS[1]
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
        ax.text(0, missing, " no part in the code", va="center", fontsize=8, color=style.GREY)
    ax.set_title(bars.title, fontsize=10)
    if bars.are_shares:
        ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    style.plain_axes(ax, grid="x")
    ax.locator_params(axis="x", nbins=4)
    ax.tick_params(axis="y", length=0)


def confusion_figure(matrix: Any, labels: Sequence[Any]) -> style.Figure:
    """Draw a confusion matrix: counts as numbers, coloured by their share of the row.

    Parameters
    ----------
    matrix : int array of shape (n_classes, n_classes)
        How often class i (row) was taken for class j (column).
    labels : list
        The classes' names.

    Returns
    -------
    Figure
    """
    matrix = np.asarray(matrix)
    n_classes = len(labels)
    if matrix.shape != (n_classes, n_classes):
        raise ValueError(
            f"matrix must be square, with a row for each of the {n_classes} labels, got shape "
            f"{matrix.shape}."
        )
    totals = matrix.sum(axis=1, keepdims=True)
    shares = matrix / np.where(totals > 0, totals, 1)
    words = [[f"{count:d}" if count else "" for count in row] for row in matrix.tolist()]
    return class_matrix_figure(shares, words, labels, "taken for")


def class_matrix_figure(
    shares: Any, words: Sequence[Sequence[str]], labels: Sequence[Any], xlabel: str
) -> style.Figure:
    """Draw a square of true classes (rows) and others, coloured by shares, ``words`` in cells."""
    n_classes = len(labels)
    # Many classes need the room for their cells.
    longest, size = (18, style.LABEL_SIZE) if n_classes <= 12 else (12, 8)
    names = [style.as_label(label, longest) for label in labels]
    widest = max(style.text_width(name, size) for name in names)
    cell = (style.WIDTH - 0.7 - widest) / n_classes
    turned = widest > 0.9 * cell
    figure = style.Figure(figsize=(style.WIDTH, 4.7 + widest * (turned - 1)), layout="constrained")
    ax = figure.add_subplot()
    shades = style.share_colour(np.asarray(shares, np.float64))
    ax.imshow(np.sqrt(shares), cmap=style.SHARES, vmin=0, vmax=style.DARKEST)
    # A digit is about two thirds as wide as it is high.
    digits = min(9.0, 72 * cell / (0.75 * max(len(word) for row in words for word in row) or 1))
    for row, cells in enumerate(words):
        for column, word in enumerate(cells):
            if word:
                ink = style.ink_on(shades[row, column])
                ax.text(column, row, word, ha="center", va="center", fontsize=digits, color=ink)
    ax.set_xticks(range(n_classes), names, rotation=90 if turned else 0)
    ax.set_yticks(range(n_classes), names)
    ax.set_xlabel(xlabel, fontsize=11)
    ax.set_ylabel("true class", fontsize=11)
    ax.tick_params(length=0, labelsize=size)
    ax.spines[:].set_visible(False)
    return figure
