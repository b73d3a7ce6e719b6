"""Many methods at a few places: a line of dots each, reported numbers beside."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from kernelatoms.report.style import check_flags, line_style, new_plot


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
    figure, ax = new_plot(xlabel, "", height=1.1 + 0.22 * max(len(methods), 1))
    places = list(dict.fromkeys(place for of in (*methods.values(), *reported.values())
                                for place in of))  # fmt: skip
    style_of = {place: {**line_style(i), "linestyle": "none"} for i, place in enumerate(places)}
    named: set[str] = set()
    for i, (method, of_place) in enumerate(methods.items()):
        for place, values in of_place.items():
            error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
            label = None if place in named else place
            named.add(place)
            ax.errorbar(
                float(np.mean(values)), i, xerr=float(error), label=label, capsize=2.5,
                **style_of[place],
            )  # fmt: skip
        for place, number in reported.get(method, {}).items():
            ends = np.atleast_1d(np.asarray(number, np.float64))
            style = style_of[place] | {"linestyle": "-", "linewidth": 1.0}
            ax.plot(ends, np.full(len(ends), i), markerfacecolor="white", **style)
    ax.set_yticks(range(len(methods)), list(methods), fontsize=8)
    ax.set_ylim(len(methods) - 0.5, -0.5)
    if log:
        ax.set_xscale("log")
    if len(named) > 1:
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure
