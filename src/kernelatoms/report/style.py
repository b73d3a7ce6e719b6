"""What all figures share: width, colours, plain axes, labels that fit and mean what they say."""

from typing import Any

import numpy as np
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator

from kernelatoms.report.shown import Figure
from kernelatoms.report.words import shorten

WIDTH = 5.0
LABEL_SIZE = 10
# Blue, vermilion, green, purple of Okabe and Ito: told apart by all colour visions, and by marker.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#AA4499")
MARKERS = ("o", "s", "^", "D")
# Blue below 0, white at 0, red above.
SIGNED = "RdBu_r"
GREY, PALE = "#5b6470", "#dfe3e8"


def check_flags(**flags: Any) -> None:
    """Refuse flags, by name, that are neither True nor False."""
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name} must be True or False, got {value!r}.")


def new_plot(xlabel: str, ylabel: str, height: float = 3.5) -> tuple[Figure, Any]:
    """Return a figure with one axes, a pale grid and named axes."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    ax = figure.add_subplot()
    ax.set_xlabel(xlabel, fontsize=11)
    ax.set_ylabel(ylabel, fontsize=11)
    ax.grid(color=PALE, linewidth=0.8)
    ax.set_axisbelow(True)
    plain_axes(ax)
    return figure, ax


def plain_axes(ax: Any) -> None:
    """Draw the left and the lower edge only, in grey.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes to change.
    """
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(labelsize=10, color=GREY)


def line_style(i: int) -> dict[str, Any]:
    """Return colour and marker of the i-th line."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "markersize": 5,
        "linewidth": 1.8,
    }


def whole_numbers() -> MaxNLocator:
    """Return ticks at whole, round numbers."""
    return MaxNLocator(nbins=7, integer=True, steps=[1, 2, 5, 10])


def text_width(label: str, size: float) -> float:
    """Return how wide a label is, in inches."""
    return float(TextPath((0, 0), label, size=size).get_extents().width) / 72 if label else 0.0


def as_label(value: Any, longest: int = 18) -> str:
    """Return a name as matplotlib draws it letter by letter, its end cut off if it is long.

    Two dollar signs would otherwise start a formula, and a formula that is none is an error; a
    leading underscore would keep a name out of legends.
    """
    text = shorten(value, longest).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
