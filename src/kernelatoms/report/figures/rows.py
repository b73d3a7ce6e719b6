"""Figures of atoms and rows that are not images, and of a row under two dictionaries.

Rows of a few named features are drawn with their names, longer ones as curves over the feature's
number.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelatoms.report.figures import style
from kernelatoms.report.figures.images import draw_code, energy_share, show_image

# Points a curve is drawn with: more than its pixels would only make the page heavier.
_SMALL_CURVE, _LARGE_CURVE = 300, 1200


def curves_figure(
    rows: Any, *, n_columns: int | None = None, row_labels: Sequence[str] | None = None
) -> style.Figure:
    """Draw rows as small curves in a grid, each on its own scale; places of NaN stay empty."""
    rows = np.asarray(rows, np.float64)
    if n_columns is None:
        n_columns = max(1, int(np.sqrt(len(rows) / 1.6)))
    n_lines = -(-len(rows) // n_columns)
    labels = list(row_labels) if row_labels is not None else []
    left = 0.05 + max(
        (0.1 + style.text_width(label, style.LABEL_SIZE) for label in labels), default=0.0
    )
    cell = (style.WIDTH - left - 0.05) / n_columns
    tall = min(0.62 * cell, 0.9)
    height = n_lines * tall + 0.1
    figure = style.Figure(figsize=(style.WIDTH, height))
    ax = figure.add_axes(
        (left / style.WIDTH, 0.05 / height, 1 - (left + 0.05) / style.WIDTH, 1 - 0.1 / height)
    )
    for i, row in enumerate(rows):
        if not np.isfinite(row).all():
            continue
        x, y = i % n_columns, -(i // n_columns) - 0.5
        draw_curve(ax, row / (np.abs(row).max() or 1), x + 0.06, y, 0.88, 0.42)
    ax.set(xlim=(0, n_columns), ylim=(-n_lines, 0), xticks=[])
    ax.set_yticks(-np.arange(n_lines) - 0.5 if labels else [], labels or None)
    ax.tick_params(length=0, labelsize=style.LABEL_SIZE)
    ax.spines[:].set_visible(False)
    return figure


def draw_curve(ax: Any, row: Any, x: float, y: float, across: float, unit: float) -> None:
    """Draw a row of values up to 1 as a curve from x on, around y; 1 is ``unit`` high."""
    ax.plot([x, x + across], [y, y], color=style.PALE, linewidth=0.8)
    places, values = outline(row, _SMALL_CURVE)
    along = x + across * places / max(1, len(row) - 1)
    width = 1.0 if len(row) < _SMALL_CURVE else 0.6
    ax.plot(along, y + unit * values, color=style.COLOURS[0], linewidth=width)


def heat_figure(
    atoms: Any, feature_names: Sequence[Any], groups: Sequence[tuple[str, int]] = ()
) -> style.Figure:
    """Draw atoms as columns of colours, each on its own scale, with labels over ``groups``."""
    atoms = np.asarray(atoms, np.float64)
    largest = np.abs(atoms).max(axis=1, keepdims=True)
    scaled = atoms / np.where(largest > 0, largest, 1)
    groups = list(groups) or [("", len(atoms))]
    names = [style.as_label(name, 26) for name in feature_names]
    widest = max(style.text_width(label, style.LABEL_SIZE) for label, _ in groups)
    narrowest = min(count for _, count in groups) * (style.WIDTH - 2.2) / (len(atoms) + len(groups))
    turned = widest > narrowest
    pitch, size = _pitch(len(names))
    height = 0.9 + pitch * len(names) + (widest if turned else 0.2)
    figure = style.Figure(figsize=(style.WIDTH, height), layout="constrained")
    ax = figure.add_subplot()
    start, middles = 0.0, []
    blocks = np.split(scaled, np.cumsum([count for _, count in groups])[:-1])
    for (_, count), block in zip(groups, blocks, strict=True):
        extent = (start, start + count, len(names), 0)
        image = ax.imshow(block.T, cmap=style.SIGNED, vmin=-1, vmax=1, extent=extent, aspect="auto",
                          interpolation="none")  # fmt: skip
        middles.append(start + count / 2)
        start += count + 0.35
    ax.set_xlim(0, start - 0.35)
    ax.xaxis.tick_top()
    ax.set_xticks(middles, [label for label, _ in groups], rotation=90 if turned else 0)
    ax.set_yticks(np.arange(len(names)) + 0.5, names)
    ax.tick_params(length=0, labelsize=style.LABEL_SIZE)
    ax.tick_params(axis="y", labelsize=size)
    ax.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=ax, location="bottom", aspect=40, pad=0.02, ticks=[-1, 0, 1])
    bar.ax.tick_params(labelsize=9)
    bar.set_label("of the atom's largest value", fontsize=9)
    bar.outline.set_visible(False)
    return figure


def coded_row_figure(
    row: Any,
    approximation: Any,
    code: Any,
    atoms: Mapping[int, Any],
    feature_names: Sequence[Any] | None = None,
) -> style.Figure:
    """Draw a row that is no image, its sum of atoms and its code; without names the atoms, too."""
    row, approximation = np.asarray(row, np.float64), np.asarray(approximation, np.float64)
    small = feature_names is None and len(atoms) > 0
    heights = (_rows_height(feature_names), 1.3, *((1.1,) if small else ()))
    figure = style.Figure(figsize=(style.WIDTH, sum(heights)), layout="constrained")
    parts: Any = figure.subfigures(len(heights), 1, height_ratios=heights)
    over = f"its atoms' sum ({100 * energy_share(row - approximation, row):.1f}% over)"
    _draw_rows(parts[0], {"the row": row, over: approximation}, feature_names)
    draw_code(parts[1].subplots(), np.asarray(code))
    if small:
        axes = np.ravel(parts[2].subplots(1, len(atoms)))
        for ax, (atom, values) in zip(axes, atoms.items(), strict=True):
            ax.axhline(0, color=style.PALE, linewidth=0.8)
            ax.plot(*outline(values, _SMALL_CURVE), color=style.COLOURS[0], linewidth=0.8)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_color(style.PALE)
            ax.set_title(f"{code[atom]:+.2f} ·\natom {atom}", fontsize=10)
    return figure


def pair_figure(
    row: Any,
    sums: Mapping[str, Any],
    codes: Sequence[Any],
    *,
    image_shape: tuple[int, ...] | None = None,
    feature_names: Sequence[Any] | None = None,
) -> style.Figure:
    """Draw a row, its sums of atoms by two dictionaries, and its codes over both.

    A ``row`` of None cannot be drawn. The first lines of the names in ``sums`` name codes too.
    """
    heights = [1.5]
    if row is not None:
        heights.insert(0, 1.9 if image_shape is not None else _rows_height(feature_names))
    figure = style.Figure(figsize=(style.WIDTH, sum(heights)), layout="constrained")
    parts: Any = np.ravel(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False))
    if row is not None and image_shape is not None:
        row = np.asarray(row, np.float64)
        limit = float(np.abs(row).max()) or 1.0
        axes = parts[0].subplots(1, 3)
        for ax, (name, values) in zip(axes, {"the row": row, **sums}.items(), strict=True):
            show_image(ax, np.reshape(values, image_shape), name, limit)
    elif row is not None:
        _draw_rows(parts[0], {"the row": row, **sums}, feature_names)
    for ax, (i, name) in zip(parts[-1].subplots(1, 2), enumerate(sums), strict=True):
        draw_code(ax, np.asarray(codes[i]), style.COLOURS[i])
        ax.set_title(f"code: {name.splitlines()[0]}", fontsize=10)
    return figure


def outline(curve: Any, most: int) -> tuple[style.Array, style.Array]:
    """Return places and values of a curve; of a long one the lowest and highest of stretches."""
    values = np.asarray(curve)
    if len(values) <= most:
        return np.arange(len(values)), values
    starts = np.linspace(0, len(values), most // 2, endpoint=False).astype(np.intp)
    ends = np.stack([np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)])
    return np.stack([starts, starts + 1]).T.ravel(), ends.T.ravel()


def _draw_rows(part: Any, rows: Mapping[str, Any], names: Sequence[Any] | None) -> None:
    """Draw rows over each other: the first as bars or a broad line, the others over it."""
    ax = part.subplots()
    handles = []
    for i, values in enumerate(rows.values()):
        colour = style.COLOURS[(i - 1) % len(style.COLOURS)]
        if names is None:
            drawn = {"color": colour, "linewidth": 1.0}
            if i == 0:
                drawn = {"color": style.GREY, "alpha": 0.5, "linewidth": 2.5}
            handles += ax.plot(*outline(values, _LARGE_CURVE), **drawn)
        elif i == 0:
            places = np.arange(len(names))
            handles.append(ax.barh(places, values, 0.7, color=style.PALE, edgecolor=style.GREY))
        else:
            beside = np.arange(len(names)) + 0.16 * (2 * i - len(rows))
            handles += ax.plot(values, beside, style.MARKERS[i - 1], color=colour, markersize=5)
    style.plain_axes(ax)
    if names is not None:
        ax.axvline(0, color=style.GREY, linewidth=0.8)
        ax.set_yticks(range(len(names)), [style.as_label(name, 26) for name in names])
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.tick_params(axis="y", length=0, labelsize=_pitch(len(names))[1])
    else:
        ax.set_xlabel("feature", fontsize=10)
        ax.xaxis.set_major_locator(style.whole_numbers())
    part.legend(
        handles, list(rows),
        frameon=False, fontsize=9, loc="outside upper center", ncols=len(rows),
    )  # fmt: skip


def _rows_height(names: Sequence[Any] | None) -> float:
    return 2.2 if names is None else 0.8 + _pitch(len(names))[0] * len(names)


def _pitch(n_names: int) -> tuple[float, int]:
    """Return how far apart lines of named features stand, in inches, and their letters' size."""
    return (0.24, style.LABEL_SIZE) if n_names <= 15 else (0.17, 8)
