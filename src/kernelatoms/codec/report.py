"""The figure of a compressed matrix: original, decoded, error, and some curves."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps

from kernelatoms.engine import Array
from kernelatoms.report.figures.style import (
    COLOURS,
    GREY,
    PALE,
    SIGNED,
    Figure,
    as_label,
    plain_axes,
    whole_numbers,
)

_COLOURS_OF_VALUES = "viridis"
_MISSING = "#c9ced6"
_N_CURVES = 3
# With fewer columns than this, curves show columns over rows.
_FEW_COLUMNS = 12
_MOST_POINTS = 400
# Rows of an image, at most.
_MOST_SHOWN = 240
_DPI = 150


def compression_figure(
    original: Any,
    decoded: Any,
    *,
    title: str = "",
    max_error: float | None = None,
    max_absolute: float | None = None,
    column_names: Sequence[str] | None = None,
) -> Figure:
    """Draw a matrix and its decoded version, the error, and some curves.

    Parameters
    ----------
    original : array of shape (n_rows, n_columns) or None
        The matrix, NaN where missing; None to draw the decoded one alone.
    decoded : array of shape (n_rows, n_columns)
        The decoded matrix.
    title : str
        The title.
    max_error, max_absolute : float or None
        The error bound, drawn with the errors of rows.
    column_names : list of n_columns str, optional
        Names of the columns, shown if they are few.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.codec import compression_figure
    >>> X = np.random.default_rng(0).normal(size=(30, 20))
    >>> len(compression_figure(X, X.round(1), max_error=0.1).axes) > 4
    True
    """
    decoded = np.asarray(decoded, np.float64)
    names = None if column_names is None else [as_label(name) for name in column_names]
    shown, heights = [("decoded", decoded)], [3, 2.1]
    if original is not None:
        original = np.asarray(original, np.float64)
        if original.ndim != 2 or original.shape != decoded.shape:
            raise ValueError(
                f"original and decoded must be matrices of one shape, got {original.shape} and "
                f"{decoded.shape}."
            )
        shown, heights = [("original", original), *shown], [3, *heights]
    figure = Figure(figsize=(10, 6.4 if original is None else 9.4), layout="constrained")
    figure.suptitle(as_label(title, 90), fontsize=13, x=0.01, ha="left")
    places: Any = figure.subfigures(len(heights), 1, height_ratios=heights)
    maps = places[0].subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
    for ax, (name, values) in zip(maps, shown, strict=True):
        image = _heat_map(ax, values, *_limits(shown[0][1]), _COLOURS_OF_VALUES, names)
        ax.set_title(name, fontsize=11, loc="left")
    places[0].colorbar(image, ax=maps, pad=0.01, fraction=0.03)
    if original is not None:
        maps[1].set_ylabel("")
        error = decoded - original
        largest = float(np.nanmax(np.abs(error), initial=0.0)) or 1.0
        below, beside = places[1].subplots(1, 2)
        image = _heat_map(below, error, -largest, largest, SIGNED, names)
        below.set_title("decoded - original", fontsize=11, loc="left")
        places[1].colorbar(image, ax=below, pad=0.02, fraction=0.05)
        _row_errors(beside, original, error, max_error, max_absolute)
    _curves(places[-1], original, decoded, names)
    return figure


def figure_bytes(figure: Figure, form: str) -> bytes:
    """Return a figure as a "png", "svg" or "pdf" file."""
    data = io.BytesIO()
    figure.savefig(data, format=form, dpi=_DPI)
    return data.getvalue()


def _limits(values: Array) -> tuple[float, float]:
    """Return the range of colours: the inner 99% of values, so that outliers hide nothing."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    low, high = np.quantile(finite, [0.005, 0.995])
    return (float(low), float(high)) if low < high else (float(low) - 0.5, float(low) + 0.5)


def _heat_map(
    ax: Any, values: Array, low: float, high: float, colours: str, names: list[str] | None
) -> Any:
    """Draw a matrix; one of few columns with its rows from left to right."""
    shown = _thinned(np.where(np.isfinite(values), values, np.nan))
    few = _is_narrow(values)
    height, width = values.T.shape if few else values.shape
    image = ax.imshow(
        shown.T if few else shown, aspect="auto", interpolation="nearest", vmin=low, vmax=high,
        cmap=colormaps[colours].with_extremes(bad=_MISSING),
        extent=(-0.5, width - 0.5, height - 0.5, -0.5),
    )  # fmt: skip
    ax.set(xlabel="row" if few else "column", ylabel="column" if few else "row")
    columns = ax.yaxis if few else ax.xaxis
    if few and names is not None:
        columns.set_ticks(range(len(names)), names)
        ax.set_ylabel("")
    else:
        columns.set_major_locator(whole_numbers())
    ax.tick_params(labelsize=9, color=GREY)
    for spine in ax.spines.values():
        spine.set_color(PALE)
    return image


def _thinned(values: Array) -> Array:
    """Return at most ``_MOST_SHOWN`` rows.

    Of neighbouring values, a missing one is shown, or the one farthest from the column's median.
    """
    step = -(-len(values) // _MOST_SHOWN)
    if step == 1:
        return values
    whole = np.concatenate([values, np.repeat(values[-1:], -len(values) % step, axis=0)])
    groups = whole.reshape(-1, step, values.shape[1])
    middle = np.nan_to_num(np.median(np.nan_to_num(values), axis=0))
    chosen = np.argmax(np.where(np.isnan(groups), np.inf, np.abs(groups - middle)), axis=1)
    return np.take_along_axis(groups, chosen[:, None], axis=1)[:, 0]


def _is_narrow(values: Array) -> bool:
    """Whether curves show columns over rows."""
    return values.shape[1] < _FEW_COLUMNS and len(values) > values.shape[1]


def _row_errors(
    ax: Any, original: Array, error: Array, max_error: float | None, max_absolute: float | None
) -> None:
    """Draw the sorted errors of all rows, and the bound."""
    finite = np.isfinite(original) & np.isfinite(error)
    bound: float | None
    if max_error is None and max_absolute is not None:
        sizes = np.abs(np.where(finite, error, 0.0)).max(axis=1, initial=0.0)
        bound, label = max_absolute, "largest error of a row's values"
    else:
        norms = np.linalg.norm(np.where(finite, original, 0.0), axis=1)
        lengths = np.linalg.norm(np.where(finite, error, 0.0), axis=1)
        sizes = np.divide(lengths, norms, out=np.zeros_like(norms), where=norms > 0)
        bound, label = max_error, "error of a row / its norm"
    share = (np.arange(len(sizes)) + 0.5) / max(1, len(sizes))
    ax.plot(100 * share, np.sort(sizes), color=COLOURS[0], linewidth=2)
    ax.fill_between(100 * share, np.sort(sizes), color=COLOURS[0], alpha=0.12, linewidth=0)
    if bound is not None:
        ax.axhline(bound, color=COLOURS[1], linewidth=1.5, linestyle="--")
        ax.annotate(
            f"bound {bound:.3g}", (1, bound), xytext=(2, -4), textcoords="offset points",
            va="top", color=COLOURS[1], fontsize=9,
        )  # fmt: skip
    top = 1.12 * max(float(sizes.max(initial=0.0)), bound or 0.0) or 1.0
    ax.set(xlim=(0, 100), ylim=(0, top), xlabel="% of rows", ylabel=label)
    ax.set_title("errors of rows, sorted", fontsize=11, loc="left")
    ax.grid(color=PALE, linewidth=0.8)
    ax.set_axisbelow(True)
    plain_axes(ax)


def _curves(place: Any, original: Array | None, decoded: Array, names: list[str] | None) -> None:
    """Draw some rows over their columns, or some columns over their rows."""
    few = _is_narrow(decoded)
    n_lines = decoded.shape[1] if few else len(decoded)
    chosen = np.unique(np.linspace(0, n_lines - 1, _N_CURVES).round().astype(int))
    axes = place.subplots(1, len(chosen), squeeze=False)[0]
    for ax, line in zip(axes, chosen.tolist(), strict=True):
        if original is not None:
            values = (original[:, line] if few else original[line])[:_MOST_POINTS]
            ax.plot(values, color=_MISSING, linewidth=4, label="original", solid_capstyle="round")
        values = (decoded[:, line] if few else decoded[line])[:_MOST_POINTS]
        ax.plot(values, color=COLOURS[0], linewidth=1.2, label="decoded")
        name = f"{'column' if few else 'row'} {line:,}"
        ax.set_title(names[line] if few and names is not None else name, fontsize=10, loc="left")
        ax.set_xlabel("row" if few else "column")
        ax.margins(x=0.02)
        plain_axes(ax)
        ax.tick_params(labelsize=9)
    if original is not None:
        lines = axes[0].get_legend_handles_labels()
        place.legend(*lines, loc="outside upper right", ncols=2, frameon=False, fontsize=9)
