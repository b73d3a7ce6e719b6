"""What all figures share: the class, width, colours, plain axes, labels."""

import io
from typing import Any

import matplotlib.figure
import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from kernelatoms.report.embedding import stand_in
from kernelatoms.report.page import Shades
from kernelatoms.report.words import shorten

Array = NDArray[Any]

WIDTH = 5.0
LABEL_SIZE = 10
# Blue, vermilion, green, purple and so on, after Okabe and Ito: told apart by all colour visions,
# and by marker. More than seven curves do not fit in one plot.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#AA4499", "#3A94CE", "#B8860B", "#1c2127")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", ":")
# Blue below 0, white at 0, red above.
SIGNED = "RdBu_r"
# The square root keeps small shares visible beside a full diagonal.
SHARES, DARKEST = "Blues", 1.15
GREY, PALE = "#5b6470", "#dfe3e8"
# Two dots per pixel at a width of five inches.
_NOTEBOOK_DPI = 144


class Figure(matplotlib.figure.Figure):
    """A matplotlib figure made without pyplot that notebooks show as the last line of a cell."""

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        """Return the picture and its width in pixels, for IPython."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=_NOTEBOOK_DPI)
        return file.getvalue(), {"width": round(100 * self.get_figwidth())}


def new_plot(xlabel: str, ylabel: str, height: float = 3.5) -> tuple[Figure, Any]:
    """Return a figure with one axes, a pale grid and named axes."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    ax = figure.add_subplot()
    ax.set_xlabel(xlabel, fontsize=11)
    ax.set_ylabel(ylabel, fontsize=11)
    plain_axes(ax, grid="both")
    return figure, ax


def plain_axes(ax: Any, grid: str = "") -> None:
    """Draw the left and the lower edge only, in grey; a pale grid for "x", "y" or "both"."""
    if grid:
        ax.grid(axis=grid, color=PALE, linewidth=0.8)
        ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(labelsize=10, color=GREY)


def line_style(i: int) -> dict[str, Any]:
    """Return colour, marker and dashes of the i-th line; 21 of them differ."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": DASHES[i // len(COLOURS) % len(DASHES)],
        "markersize": 5,
        "linewidth": 1.8,
    }


def whole_numbers() -> MaxNLocator:
    """Return ticks at whole, round numbers."""
    return MaxNLocator(nbins=7, integer=True, steps=[1, 2, 5, 10])


def text_width(label: str, size: float) -> float:
    """Return how wide a label is, in inches."""
    text = stand_in(label)
    return float(TextPath((0, 0), text, size=size).get_extents().width) / 72 if text else 0.0


def share_colour(share: Any) -> Any:
    """Return the colours of shares from 0 to 1, as numbers (..., 4)."""
    return colormaps[SHARES](np.sqrt(share) / DARKEST)


def ink_on(colour: Any) -> str:
    """Return black or white, whichever is read better on a colour."""
    rgb = np.asarray(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    light = float(linear @ [0.2126, 0.7152, 0.0722])
    return "black" if (light + 0.05) ** 2 > 0.05 * 1.05 else "white"


def signed_shades(title: str) -> Shades:
    """Return the legend of images that are white at 0; ``title`` says what is 1."""
    steps = ((-1, "-1"), (-0.5, "-0.5"), (0, "0"), (0.5, "0.5"), (1, "1"))
    return Shades(title, [(name, to_hex(colormaps[SIGNED]((v + 1) / 2))) for v, name in steps])


def share_shades(title: str) -> Shades:
    """Return the legend of squares shaded by shares, as in confusion matrices."""
    steps = (0, 0.01, 0.1, 0.25, 0.5, 1)
    return Shades(title, [(f"{100 * share:g}%", to_hex(share_colour(share))) for share in steps])


def as_label(value: Any, longest: int = 18) -> str:
    """Return a name as matplotlib draws it letter by letter, its end cut off if it is long."""
    # Dollar signs would start a formula, and a leading underscore keep a name out of legends.
    text = shorten(value, longest).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
