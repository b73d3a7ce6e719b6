"""Figures of how numbers of a fitted model run and spread: objectives, eigenvalues, residuals."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from kernelatoms.report.figures.class_curves import class_curves_figure
from kernelatoms.report.figures.style import (
    COLOURS,
    MARKERS,
    as_label,
    line_style,
    new_plot,
    whole_numbers,
)

# What the middle 90 and the middle 50 of a hundred rows span.
_WHISKERS, _BOX = (5, 95), (25, 75)


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
    """Draw how often atoms are used, the most used first: one line per dictionary.

    ``shares`` holds, for every atom of each dictionary, the share of rows that use it.
    """
    falling = {name: -np.sort(-np.asarray(v, np.float64)) for name, v in shares.items()}
    names = ("atom, by how often it is used", "rows that use it")
    if len(falling) > 1:
        figure = class_curves_figure(falling, *names)
        for ax in figure.axes:
            ax.yaxis.set_major_formatter(_percent)
        return figure
    (values,) = falling.values()
    figure, ax = _one_curve(values, *names)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(_percent)
    return figure


def _one_curve(
    values: Any, xlabel: str, ylabel: str, *, marked: bool = False
) -> tuple[Figure, Any]:
    """Draw a curve over 1, 2, 3, ..., with markers if they are few."""
    figure, ax = new_plot(xlabel, ylabel)
    style = line_style(0)
    if not marked:
        style |= {"marker": "o" if len(values) <= 60 else "", "markersize": 4}
    ax.plot(np.arange(1, len(values) + 1), values, **style)
    ax.xaxis.set_major_locator(whole_numbers())
    return figure, ax


def shares_figure(shares: Any) -> Figure:
    """Draw how much of their energy codes leave over: a histogram over rows, and the median."""
    values = np.asarray(shares, np.float64)
    figure, ax = new_plot("share of a row's energy left over", "rows")
    largest = float(values.max()) or 1.0
    ax.hist(values, bins=30, range=(0, largest), color=COLOURS[0], edgecolor="white", linewidth=0.5)
    middle = float(np.median(values))
    ax.axvline(middle, color=COLOURS[1], linewidth=1.8, label=f"median {100 * middle:.1f}%")
    ax.xaxis.set_major_formatter(_percent)
    ax.yaxis.set_major_locator(whole_numbers())
    ax.legend(frameon=False, fontsize=10)
    return figure


def own_and_other_figure(
    own: Sequence[Any], other: Sequence[Any], labels: Sequence[Any], what: str, dictionary: str
) -> Figure:
    """Draw for every class how its own dictionary does on its rows, and how the best other.

    ``own`` and ``other`` are shares, one array per class, with a value for each of its rows;
    ``what`` says what they are, and ``dictionary`` what a class is represented by. Boxes span the
    middle half of the rows, lines the middle 90%; marks are medians.
    """
    height = 1.2 + (0.4 if len(labels) <= 10 else 0.3) * len(labels)
    figure, ax = new_plot(what, "", height)
    names = (f"its own {dictionary}", "the best other one")
    for shift, series, colour, marker, name in zip(
        (-0.17, 0.17), (own, other), COLOURS, MARKERS, names, strict=False
    ):
        places = np.arange(len(labels)) + shift
        low, high = np.array([np.percentile(values, _WHISKERS) for values in series]).T
        left, right = np.array([np.percentile(values, _BOX) for values in series]).T
        ax.hlines(places, low, high, color=colour, linewidth=1)
        ax.barh(places, right - left, 0.24, left, color=colour, alpha=0.35)
        middles = [float(np.median(values)) for values in series]
        ax.plot(middles, places, marker, color=colour, markersize=5, label=name)
    ax.set_yticks(range(len(labels)), [as_label(label) for label in labels])
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.grid(visible=False, axis="y")
    ax.xaxis.set_major_formatter(_percent)
    figure.legend(frameon=False, fontsize=10, loc="outside upper center", ncols=2)
    return figure


def _percent(value: float, _: Any) -> str:
    return f"{100 * value:g}%"
