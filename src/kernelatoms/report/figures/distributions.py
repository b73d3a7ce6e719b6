"""Figures of how numbers run and spread, over all and by class: objectives, usage, residuals."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from kernelatoms.report.figures import style

# What the middle 90 and the middle 50 of a hundred rows span.
_WHISKERS, _BOX = (5, 95), (25, 75)
# Curves that one plot can hold, and small plots that a picture can.
_TOGETHER, _SMALL_PLOTS = 7, 16
_ACROSS = 4


def progress_figure(objectives: Mapping[Any, Any], total: Any) -> Figure:
    """Draw the objectives by pass, relative to the first: per dictionary, and their total."""
    together = 100 * np.asarray(total) / (total[0] or 1)
    if len(objectives) > 1:
        relative = {
            label: 100 * np.asarray(values) / (values[0] or 1)
            for label, values in objectives.items()
        }
        return class_curves_figure(relative, "pass", "objective, % of the first pass", together)
    figure, ax = _one_curve(together, "pass", "objective, % of the first pass", marked=True)
    ax.set_ylim(bottom=0)
    return figure


def spectrum_figure(eigenvalues: Any) -> Figure:
    """Draw the eigenvalues of a kernel matrix, largest first, on a logarithmic axis."""
    values = np.asarray(eigenvalues, np.float64)
    figure, ax = _one_curve(values / values[0], "component", "eigenvalue, relative to the first")
    ax.set_yscale("log")
    return figure


def usage_figure(shares: Mapping[Any, Any]) -> Figure:
    """Draw the shares of rows that use each atom, the most used first: one line per dictionary."""
    falling = {name: -np.sort(-np.asarray(v, np.float64)) for name, v in shares.items()}
    names = ("atom, by how often it is used", "rows that use it")
    if len(falling) > 1:
        figure = class_curves_figure(falling, *names)
    else:
        (values,) = falling.values()
        figure, ax = _one_curve(values, *names)
        ax.set_ylim(bottom=0)
    for ax in figure.axes:
        ax.yaxis.set_major_formatter(_percent)
    return figure


def _one_curve(
    values: Any, xlabel: str, ylabel: str, *, marked: bool = False
) -> tuple[Figure, Any]:
    """Draw a curve over 1, 2, 3, ..., with markers if they are few."""
    figure, ax = style.new_plot(xlabel, ylabel)
    drawn = style.line_style(0)
    if not marked:
        drawn |= {"marker": "o" if len(values) <= 60 else "", "markersize": 4}
    ax.plot(_places(values), values, **drawn)
    ax.xaxis.set_major_locator(style.whole_numbers())
    return figure, ax


def shares_figure(shares: Any) -> Figure:
    """Draw how much of their energy codes leave over: a histogram over rows, and the median."""
    values = np.asarray(shares, np.float64)
    figure, ax = style.new_plot("share of a row's energy left over", "rows")
    largest = float(values.max()) or 1.0
    ax.hist(
        values,
        bins=30,
        range=(0, largest),
        color=style.COLOURS[0],
        edgecolor="white",
        linewidth=0.5,
    )
    middle = float(np.median(values))
    ax.axvline(middle, color=style.COLOURS[1], linewidth=1.8, label=f"median {100 * middle:.1f}%")
    ax.xaxis.set_major_formatter(_percent)
    ax.yaxis.set_major_locator(style.whole_numbers())
    ax.legend(frameon=False, fontsize=10)
    return figure


def own_and_other_figure(
    own: Sequence[Any], other: Sequence[Any], labels: Sequence[Any], what: str, dictionary: str
) -> Figure:
    """Draw for every class how its own dictionary does on its rows, and how the best other.

    ``own`` and ``other`` are shares of each class's rows. Boxes span the middle half, lines 90%.
    """
    height = 1.2 + (0.4 if len(labels) <= 10 else 0.3) * len(labels)
    figure, ax = style.new_plot(what, "", height)
    names = (f"its own {dictionary}", "the best other one")
    for shift, series, colour, marker, name in zip(
        (-0.17, 0.17), (own, other), style.COLOURS, style.MARKERS, names, strict=False
    ):
        places = np.arange(len(labels)) + shift
        low, high = np.array([np.percentile(values, _WHISKERS) for values in series]).T
        left, right = np.array([np.percentile(values, _BOX) for values in series]).T
        ax.hlines(places, low, high, color=colour, linewidth=1)
        ax.barh(places, right - left, 0.24, left, color=colour, alpha=0.35)
        middles = [float(np.median(values)) for values in series]
        ax.plot(middles, places, marker, color=colour, markersize=5, label=name)
    ax.set_yticks(range(len(labels)), [style.as_label(label) for label in labels])
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.grid(visible=False, axis="y")
    ax.xaxis.set_major_formatter(_percent)
    figure.legend(frameon=False, fontsize=10, loc="outside upper center", ncols=2)
    return figure


def _percent(value: float, _: Any) -> str:
    return f"{100 * value:g}%"


def class_curves_figure(
    curves: Mapping[Any, Any], xlabel: str, ylabel: str, total: Any = None
) -> Figure:
    """Draw one curve per class, over 1, 2, 3, ..., each with its name.

    Few share one plot; more get a small plot each, beside ``total``; of many, the range is drawn.
    """
    # A list: long names may be the same when they are cut.
    named = [
        (style.as_label(label), np.asarray(each, np.float64)) for label, each in curves.items()
    ]
    n_curves = len(named) + (total is not None)
    if n_curves > _TOGETHER and len(named) <= _SMALL_PLOTS:
        return _small_plots(named, xlabel, ylabel, total)
    figure, ax = style.new_plot(xlabel, ylabel)
    draw = _draw_together if n_curves <= _TOGETHER else _draw_band
    draw(ax, named, total)
    if n_curves > 1:
        _legend_below(figure)
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(style.whole_numbers())
    return figure


def _draw_together(ax: Any, named: list[tuple[str, style.Array]], total: Any) -> None:
    for i, (name, values) in enumerate(named):
        few = {"markevery": max(1, len(values) // 12), "linewidth": 1.3}
        ax.plot(_places(values), values, label=name, **style.line_style(i) | few)
    if total is not None:
        ax.plot(
            _places(total), total, color=style.GREY, linewidth=3.5, alpha=0.6, label="all classes"
        )


def _small_plots(
    named: list[tuple[str, style.Array]], xlabel: str, ylabel: str, total: Any
) -> Figure:
    n_lines = -(-len(named) // _ACROSS)
    figure = Figure(figsize=(style.WIDTH, 0.9 + 0.95 * n_lines), layout="constrained")
    axes: Any = figure.subplots(n_lines, _ACROSS, sharex=True, sharey=True, squeeze=False)
    middle, what = total, "all classes"
    if total is None:
        middle, what = np.nanmedian(_even(named), axis=0), "the median class"
    for ax, (name, values) in zip(axes.flat, named, strict=False):
        ax.plot(_places(middle), middle, color=style.GREY, linewidth=1.0, linestyle="--")
        ax.plot(_places(values), values, color=style.COLOURS[0], linewidth=1.6)
        ax.set_title(name, fontsize=9, pad=3)
        ax.grid(color=style.PALE, linewidth=0.8)
        style.plain_axes(ax)
        ax.tick_params(labelsize=8)
    for ax in axes.flat[len(named) :]:
        ax.set_visible(False)
    for ax in axes.flat[max(0, len(named) - _ACROSS) : len(named)]:
        ax.tick_params(labelbottom=True)  # the lowest of its column
    axes[0, 0].set_ylim(bottom=0)
    axes[0, 0].xaxis.get_major_locator().set_params(integer=True, nbins=3)
    solid, dashed = axes[0, 0].lines[1], axes[0, 0].lines[0]
    figure.legend([solid, dashed], ["the class", what], frameon=False, fontsize=9, ncols=2,
                  loc="outside upper center")  # fmt: skip
    figure.supxlabel(xlabel, fontsize=10)
    figure.supylabel(ylabel, fontsize=10)
    return figure


def _draw_band(ax: Any, named: list[tuple[str, style.Array]], total: Any) -> None:
    values = _even(named)
    ends = np.nanmean(values, axis=1)
    names = [name for name, _ in named]
    places = _places(values.T)
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    span = f"all {len(named):,} classes lie here"
    ax.fill_between(places, low, high, color=style.COLOURS[0], alpha=0.15, linewidth=0, label=span)
    for i, (which, c) in enumerate((("lowest", ends.argmin()), ("highest", ends.argmax()))):
        few = {"markevery": max(1, len(places) // 12), "linewidth": 1.3}
        label = f"{which} on average: {names[c]}"
        ax.plot(places, values[c], label=label, **style.line_style(i + 1) | few)
    middle, what = total, "all classes together"
    if total is None:
        middle, what = np.nanmedian(values, axis=0), "the median class"
    ax.plot(_places(middle), middle, color=style.COLOURS[0], linewidth=2.2, label=what)


def _legend_below(figure: Figure) -> None:
    """Put the legend under the plot, which is made higher by it: no corner may be free."""
    n_names = len(figure.axes[0].get_legend_handles_labels()[1])
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.2 * -(-n_names // 2))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)


def _even(named: list[tuple[str, style.Array]]) -> style.Array:
    """Return curves as rows; those that end early have no values after that."""
    longest = max(len(values) for _, values in named)
    return np.array([np.pad(v, (0, longest - len(v)), constant_values=np.nan) for _, v in named])


def _places(values: Any) -> style.Array:
    return np.arange(1, len(values) + 1)
