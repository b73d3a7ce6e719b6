"""Measured curves beside reported ones."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from kernelatoms.report.style import check_flags, new_plot

# Okabe and Ito's colours: told apart by all colour visions.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def series_figure(
    lines: Mapping[str, tuple[Any, Any]],
    levels: Mapping[str, Any],
    reported: Mapping[str, Mapping[Any, Any]],
    *,
    xlabel: str,
    ylabel: str,
    log: bool = False,
    percent_places: bool = False,
) -> Figure:
    """Draw measured values with standard errors, and what somebody else reported, dotted.

    Parameters
    ----------
    lines : mapping of str to (list of places, list of arrays of shape (n_runs,))
        For each method its places on the axis and the values of all runs there.
    levels : mapping of str to array of shape (n_runs,)
        Methods that do not depend on the axis: the values of all runs.
    reported : mapping of str to mapping of place to number or (low, high)
        Reported numbers; the place None does not depend on the axis. A method has the colour of
        its measured line.
    xlabel, ylabel : str
        The axes' names.
    log : bool
        A logarithmic vertical axis.
    percent_places : bool
        Write places as percentages.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from kernelatoms.report import series_figure
    >>> figure = series_figure(
    ...     {"ours": ([1, 2], [[3.0, 3.1], [4.0, 4.2]])}, {}, {"ours": {1: 2.9, 2: 4.1}},
    ...     xlabel="size", ylabel="seconds",
    ... )
    >>> len(figure.axes)
    1
    """
    check_flags(log=log, percent_places=percent_places)
    figure, ax = new_plot(xlabel, ylabel)
    style_of = {
        # Where the colours start again, the markers are the next ones.
        name: (_COLOURS[i % len(_COLOURS)], _MARKERS[(i + i // len(_COLOURS)) % len(_MARKERS)])
        for i, name in enumerate(dict.fromkeys([*lines, *levels, *reported]))
    }
    for name, (places, values) in lines.items():
        colour, marker = style_of[name]
        mean = [float(np.mean(v)) for v in values]
        error = [float(np.std(v, ddof=1) / np.sqrt(len(v))) if len(v) > 1 else 0.0 for v in values]
        ax.errorbar(
            places, mean, yerr=error, label=name, color=colour, marker=marker,
            markersize=4.5, linewidth=1.6, capsize=2.5,
        )  # fmt: skip
    for name, values in levels.items():
        ax.axhline(float(np.mean(values)), color=style_of[name][0], linewidth=1.6, label=name)
    for name, numbers in reported.items():
        _draw_reported(ax, name, numbers, *style_of[name])
    if log:
        ax.set_yscale("log")
    if percent_places:
        ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    elif max((x for places, _ in lines.values() for x in places), default=0) >= 1000:
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    # Many lines leave no corner free: the legend stands under the plot.
    entries = ax.get_legend_handles_labels()[1]
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.2 * -(-len(entries) // 2))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def _draw_reported(
    ax: Any, name: str, numbers: Mapping[Any, Any], colour: str, marker: str
) -> None:
    label = f"reported: {name}"
    if None in numbers:
        ax.axhline(numbers[None], color=colour, linewidth=1.2, linestyle=":", label=label)
        return
    places = sorted(numbers)
    if isinstance(numbers[places[0]], tuple):
        low, high = zip(*(numbers[x] for x in places), strict=True)
        ax.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0, label=label)
        return
    ax.plot(
        places, [numbers[x] for x in places], color=colour, marker=marker, markersize=4.5,
        markerfacecolor="white", linewidth=1.2, linestyle=":", label=label,
    )  # fmt: skip
