"""Many methods at a few places: one line of dots per method, reported numbers beside."""

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from reproduction.drawing import COLOURS, MARKERS, new_plot, plain_log


def dots_figure(
    methods: Mapping[str, Mapping[str, Any]],
    reported: Mapping[str, Mapping[str, Any]],
    *,
    xlabel: str,
    log: bool = False,
) -> Figure:
    """Draw one line per method: measured values with standard errors, reported ones hollow.

    ``methods`` has the values of all runs, by method and place (a data set, say); ``reported``
    numbers, or (low, high), likewise.
    """
    labels = [textwrap.fill(method, 30) for method in methods]
    n_lines = sum(label.count("\n") + 1 for label in labels)
    places = list(dict.fromkeys(place for of in (*methods.values(), *reported.values())
                                for place in of))  # fmt: skip
    legend_rows = -(-len(places) // 3) if len(places) > 1 else 0
    figure, ax = new_plot("", "", height=0.8 + 0.21 * max(n_lines, 1) + 0.2 * legend_rows)
    figure.supxlabel(xlabel, fontsize=10)
    style_of = {place: _style(i) for i, place in enumerate(places)}
    # Labels of two lines need twice the room.
    heights = np.array([label.count("\n") + 1.0 for label in labels])
    at = np.cumsum(heights) - heights / 2
    named: set[str] = set()
    for y, (method, of_place) in zip(at, methods.items(), strict=True):
        for place, values in of_place.items():
            error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
            label = None if place in named else place
            named.add(place)
            ax.errorbar(
                float(np.mean(values)), y, xerr=float(error), label=label, capsize=2.5,
                **style_of[place],
            )  # fmt: skip
        for place, number in reported.get(method, {}).items():
            ends = np.atleast_1d(np.asarray(number, np.float64))
            style = style_of[place] | {"linestyle": "-", "linewidth": 1.0}
            ax.plot(ends, np.full(len(ends), y), markerfacecolor="white", **style)
    ax.set_yticks(at, labels, fontsize=9)
    ax.set_ylim(heights.sum(), 0)
    if log:
        ax.set_xscale("log")
        plain_log(ax.xaxis)
    if len(named) > 1:
        figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _style(i: int) -> dict[str, Any]:
    """Return colour and marker of the i-th place."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "markersize": 5,
        "linestyle": "none",
    }
