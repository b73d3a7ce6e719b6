"""Many methods at a few places: a line of dots each, reported numbers beside."""

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from kernelatoms.report.series import SERIES_COLOURS, SERIES_MARKERS, plain_log
from kernelatoms.report.style import check_flags, new_plot


def dots_figure(
    methods: Mapping[str, Mapping[str, Any]],
    reported: Mapping[str, Mapping[str, Any]],
    *,
    xlabel: str,
    log: bool = False,
) -> Figure:
    """Draw one line a method: measured values with standard errors, reported ones hollow.

    Parameters
    ----------
    methods : mapping of str to mapping of str to array of shape (n_runs,)
        For each method, by place (a data set, say), the values of all runs.
    reported : mapping of str to mapping of str to number or (low, high)
        What somebody else reported, of the same methods at the same places.
    xlabel : str
        What the values are.
    log : bool
        A logarithmic axis.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from kernelatoms.report import dots_figure
    >>> figure = dots_figure(
    ...     {"ours": {"faces": [96.0, 97.0]}, "theirs": {"faces": [95.0]}},
    ...     {"theirs": {"faces": 94.2}}, xlabel="accuracy, %",
    ... )
    >>> len(figure.axes)
    1
    """
    check_flags(log=log)
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
        "color": SERIES_COLOURS[i % len(SERIES_COLOURS)],
        "marker": SERIES_MARKERS[i % len(SERIES_MARKERS)],
        "markersize": 5,
        "linestyle": "none",
    }
