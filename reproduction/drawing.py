"""Measured curves beside reported ones: up to seven in one plot, more in small plots."""

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter, LogLocator, NullFormatter

WIDTH = 5.0
GREY, PALE = "#5b6470", "#dfe3e8"
# Blue below 0, white at 0, red above.
SIGNED = "RdBu_r"
# Okabe and Ito's colours, which all kinds of colour vision distinguish; markers differ too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: More curves than these cannot be distinguished in one plot.
MOST_CURVES = 7
# Places that spread further than this are crowded at one end of a linear axis.
_WIDE = 40
# Curves of other methods in a small plot.
_OTHERS = "#c3c9d1"

Lines = Mapping[str, tuple[Any, Any]]
Reports = Mapping[str, Mapping[Any, Any]]


def series_figure(
    lines: Lines,
    levels: Mapping[str, Any],
    reported: Reports,
    *,
    xlabel: str,
    ylabel: str,
    log: bool = False,
    percent_places: bool = False,
) -> Figure:
    """Draw measured values with standard errors, and reported ones dotted.

    ``lines`` has for each method its places on the axis and the values of all runs there;
    ``levels`` the values of methods that do not depend on the axis, drawn dashed; ``reported``
    numbers, or (low, high), by method and place, where the place None does not depend on the axis.

    Up to seven curves share one plot. Of more, every method has a small plot of its own in which
    the others are pale; or every group has, where all names are of the form "group: name" and no
    group has more than seven lines.
    """
    names = list(dict.fromkeys([*lines, *levels, *reported]))
    n_curves = len(lines) + len(levels) + len(reported)
    if n_curves <= MOST_CURVES:
        figure, axes = _one_plot(names, lines, levels, reported, xlabel, ylabel)
    else:
        figure, axes = _small_plots(names, lines, levels, reported, xlabel, ylabel)
    _set_scales(axes, lines, log=log, percent_places=percent_places)
    return figure


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
    """Draw the left and the lower edge only, in grey."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(labelsize=10, color=GREY)


def _one_plot(
    names: list[str], lines: Lines, levels: Any, reported: Reports, xlabel: str, ylabel: str
) -> tuple[Figure, list[Any]]:
    figure, ax = new_plot(xlabel, ylabel)
    for i, name in enumerate(names):
        _draw(ax, name, lines, levels, reported, i)
    entries = ax.get_legend_handles_labels()[1]
    n_columns = 2 if max(map(len, entries), default=0) < 34 else 1
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.22 * -(-len(entries) // n_columns))
    figure.legend(loc="outside lower center", ncols=n_columns, frameon=False, fontsize=9)
    return figure, [ax]


def _small_plots(
    names: list[str], lines: Lines, levels: Any, reported: Reports, xlabel: str, ylabel: str
) -> tuple[Figure, list[Any]]:
    groups = _groups(names, lines, reported)
    grouped = len(groups) < len(names)
    n_columns = 2 if len(groups) < 10 else 3
    titles = [textwrap.fill(title, 60 // n_columns) for title in groups]
    n_rows = -(-len(groups) // n_columns)
    tall = 1.3 + 0.16 * max(title.count("\n") + 1 for title in titles)
    figure = Figure(figsize=(WIDTH, n_rows * tall + 0.45), layout="constrained")
    cells = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    for ax in cells[len(groups) :]:
        ax.set_axis_off()
    axes = list(cells[: len(groups)])
    for ax in axes[max(0, len(axes) - n_columns) :]:
        ax.tick_params(labelbottom=True)  # the cell below it may be empty
    suffixes = list(dict.fromkeys(name.split(": ", 1)[-1] for name in names))
    for ax, title, own in zip(axes, titles, groups.values(), strict=True):
        ax.grid(color=PALE, linewidth=0.6)
        ax.set_axisbelow(True)
        plain_axes(ax)
        ax.tick_params(labelsize=9)
        ax.set_title(title, fontsize=9, loc="left")
        for other in () if grouped else lines:
            places, values = lines[other]
            ax.plot(places, [float(np.mean(v)) for v in values], color=_OTHERS, linewidth=1.0)
        for name in own:
            i = suffixes.index(name.split(": ", 1)[-1]) if grouped else 0
            _draw(ax, name, lines, levels, reported, i, short_levels=grouped)
    figure.supxlabel(xlabel, fontsize=10)
    figure.supylabel(ylabel, fontsize=10)
    if grouped:
        handles = [Line2D([], [], label=label, **_style(i)) for i, label in enumerate(suffixes)]
    else:
        handles = [Line2D([], [], color=_OTHERS, label="the others")]
        if reported:
            dotted = _style(0) | {"linestyle": ":", "markerfacecolor": "white"}
            handles.insert(0, Line2D([], [], label="reported", **dotted))
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.22 * -(-len(handles) // 2))
    figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure, axes


def _groups(names: list[str], lines: Lines, reported: Reports) -> dict[str, list[str]]:
    """Return which names share a small plot, by its title."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.split(": ", 1)[0] if ": " in name else "", []).append(name)
    counts = [sum((m in lines) + (m in reported) for m in own) for own in groups.values()]
    if "" in groups or len(groups) == 1 or max(counts) > MOST_CURVES:
        return {name: [name] for name in names}
    return groups


def _draw(
    ax: Any, name: str, lines: Lines, levels: Any, reported: Reports, i: int,
    *, short_levels: bool = False,
) -> None:  # fmt: skip
    """Draw all that there is of one method: its line, its level, what was reported."""
    style = _style(i)
    if name in lines:
        places, values = lines[name]
        mean = [float(np.mean(v)) for v in values]
        error = [float(np.std(v, ddof=1) / np.sqrt(len(v))) if len(v) > 1 else 0.0 for v in values]
        ax.errorbar(places, mean, yerr=error, label=name, capsize=2.5, **style)
    if name in levels:
        start = 0.94 if short_levels else 0.0
        ax.axhline(
            float(np.mean(levels[name])), start, color=style["color"], linewidth=1.6,
            linestyle="-" if short_levels else (0, (6, 2)), label=None if name in lines else name,
        )  # fmt: skip
    if name in reported:
        _draw_reported(ax, name, reported[name], style["color"], style["marker"])


def _style(i: int) -> dict[str, Any]:
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "markersize": 4.5,
        "linewidth": 1.6,
    }


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


def _set_scales(axes: list[Any], lines: Lines, *, log: bool, percent_places: bool) -> None:
    """Choose logarithmic axes and plain numbers on them; shared axes follow the first."""
    places = sorted({x for found, _ in lines.values() for x in found})
    ax = axes[0]
    if log:
        ax.set_yscale("log")
        plain_log(ax.yaxis)
    if len(places) > 3 and places[0] > 0 and places[-1] > _WIDE * places[0]:
        ax.set_xscale("log")
        plain_log(ax.xaxis)
    elif percent_places:
        ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    elif places and places[-1] >= 1000:
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def plain_log(axis: Any) -> None:
    """Write numbers at a logarithmic axis as they are, at 1, 2 and 5 where decades are few."""
    low, high = axis.get_view_interval()
    few = high < 30 * max(low, 1e-300)
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=8))
    axis.set_major_formatter(_PlainNumbers(labelOnlyBase=False, minor_thresholds=(9, 9)))
    axis.set_minor_formatter(NullFormatter())


class _PlainNumbers(LogFormatter):
    """Numbers at a logarithmic axis: 0.001, 1, 20, 5,000; 1e6 and 1e-5 beyond."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        if 1e-4 < x < 1e6:
            return f"{x:,.0f}" if x >= 1000 else f"{x:g}"
        return f"{x:.0e}".replace("e+0", "e").replace("e-0", "e-")
