"""Figures of dictionaries, codes and results: arrays in, ``matplotlib.figure.Figure`` out.

Every figure is drawn about five inches wide, so that its letters stay readable when a page on a
phone shrinks it; wide desktop pages put two of them side by side. Only the object interface is
used: no pyplot, no global state, so that figures can be made in any thread.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath
from numpy.typing import NDArray

from kernelatoms.report.comparison import mean_and_error

Array = NDArray[Any]

_WIDTH = 5.0
_LABEL_SIZE = 10
# Blue, vermilion, green, purple of Okabe and Ito: told apart by all colour visions, and by marker.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#AA4499")
_MARKERS = ("o", "s", "^", "D")
# Blue below 0, white at 0, red above.
_SIGNED = "RdBu_r"
_GREY, _PALE = "#5b6470", "#dfe3e8"


def atoms_figure(
    atoms: Any,
    image_shape: tuple[int, int],
    *,
    n_columns: int | None = None,
    row_labels: Sequence[str] | None = None,
) -> Figure:
    """Draw atoms as images in a grid, white at 0, each scaled to its own largest value.

    Parameters
    ----------
    atoms : array of shape (n_atoms, n_features)
        Atoms, one a row, drawn row by row.
    image_shape : (height, width)
        Their shape as images; height times width is n_features.
    n_columns : int, optional
        Images a row; by default a grid about as wide as high.
    row_labels : list of str, optional
        A label left of every row of the grid.

    Returns
    -------
    Figure
    """
    images = _as_images("atoms", atoms, image_shape)
    largest = np.abs(images).max(axis=(1, 2), keepdims=True)
    return _grid(images / np.where(largest > 0, largest, 1), n_columns, row_labels)


def images_figure(
    images: Any,
    image_shape: tuple[int, int],
    *,
    n_columns: int | None = None,
    row_labels: Sequence[str] | None = None,
) -> Figure:
    """Draw signals as images in a grid on one scale, white at 0; see ``atoms_figure``."""
    stack = _as_images("images", images, image_shape)
    return _grid(stack / (np.abs(stack).max() or 1), n_columns, row_labels)


def code_figure(
    signal: Any, atoms: Any, code: Any, image_shape: tuple[int, int], *, max_atoms: int = 5
) -> Figure:
    """Draw a signal, what its code makes of it, what is left over, and the atoms it uses.

    The percentage over the rest is its share of the signal's energy (squared norm).

    Parameters
    ----------
    signal : array of shape (n_features,)
    atoms : array of shape (n_atoms, n_features)
        The dictionary; pre-images of its atoms, if they live in a feature space.
    code : array of shape (n_atoms,)
        The coefficients of the signal.
    image_shape : (height, width)
        The shape of signal and atoms as images.
    max_atoms : int, default=5
        Draw this many of the used atoms, those with the largest coefficients.

    Returns
    -------
    Figure
    """
    pictures = _as_images("atoms", atoms, image_shape)
    target = _as_images("signal", np.atleast_2d(signal), image_shape)[0]
    code = np.asarray(code, np.float64)
    if code.shape != (len(pictures),):
        raise ValueError(
            f"code must hold one coefficient for each of the {len(pictures)} atoms, got shape "
            f"{code.shape}."
        )
    used = np.flatnonzero(code)
    shown = used[np.argsort(-np.abs(code[used]), kind="stable")][:max_atoms]
    approximation = np.tensordot(code, pictures, axes=1)

    figure = Figure(figsize=(_WIDTH, 4.8 if len(shown) else 3.6), layout="constrained")
    heights = (1.5, 1.0, 1.1) if len(shown) else (1.5, 1.0)
    parts: Any = figure.subfigures(len(heights), 1, height_ratios=heights)
    _draw_approximation(parts[0], target, approximation)
    _draw_code(parts[1].subplots(), code, len(used))
    if len(shown):
        for ax, atom in zip(np.ravel(parts[2].subplots(1, len(shown))), shown, strict=True):
            limit = float(np.abs(pictures[atom]).max()) or 1.0
            _show(ax, pictures[atom], limit, f"{code[atom]:+.2f} ·\natom {atom}")
    return figure


def robustness_figure(
    levels: Any, scores: Mapping[str, Any], *, xlabel: str, ylabel: str = "accuracy"
) -> Figure:
    """Draw scores against the strength of a corruption: means, with standard errors as bars.

    Parameters
    ----------
    levels : array of shape (n_levels,)
        The strengths.
    scores : mapping of str to array of shape (n_runs, n_levels)
        Scores between 0 and 1 of each model; two runs or more.
    xlabel, ylabel : str
        The axes' names.

    Returns
    -------
    Figure
    """
    levels = np.asarray(levels, np.float64)
    figure, ax = _plot(xlabel, ylabel)
    for i, (name, values) in enumerate(scores.items()):
        mean, error = mean_and_error(values)
        if mean.shape != levels.shape:
            raise ValueError(
                f"scores[{name!r}] must have one column for each of the {len(levels)} levels, got "
                f"shape {np.shape(values)}."
            )
        ax.errorbar(levels, mean, yerr=error, label=name, capsize=3, **_line(i))
    ax.set_ylim(0, 1.02)
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    ax.legend(frameon=False, fontsize=10, loc="lower left")
    return figure


def convergence_figure(
    objectives: Mapping[str, Any], *, ylabel: str = "squared error", log: bool = False
) -> Figure:
    """Draw the objective after every pass of learning.

    Parameters
    ----------
    objectives : mapping of str to array of shape (n_passes,)
        One curve a model, of any lengths: ``objective_`` of a learner.
    ylabel : str
        What the objective is.
    log : bool, default=False
        A logarithmic axis, for objectives that fall by orders of magnitude.

    Returns
    -------
    Figure
    """
    figure, ax = _plot("pass", ylabel)
    for i, (name, values) in enumerate(objectives.items()):
        ax.plot(np.arange(1, len(values) + 1), values, label=name, **_line(i))
    if log:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False, fontsize=10)
    return figure


def confusion_figure(matrix: Any, labels: Sequence[Any]) -> Figure:
    """Draw a confusion matrix: counts as numbers, coloured by their share of the row.

    Parameters
    ----------
    matrix : int array of shape (n_classes, n_classes)
        How often class i (row) was taken for class j (column).
    labels : list
        The classes' names.

    Returns
    -------
    Figure
    """
    matrix = np.asarray(matrix)
    n_classes = len(labels)
    if matrix.shape != (n_classes, n_classes):
        raise ValueError(
            f"matrix must be square, with a row for each of the {n_classes} labels, got shape "
            f"{matrix.shape}."
        )
    totals = matrix.sum(axis=1, keepdims=True)
    shares = matrix / np.where(totals > 0, totals, 1)
    figure = Figure(figsize=(_WIDTH, 4.7), layout="constrained")
    ax = figure.add_subplot()
    # The square root keeps rare mistakes visible beside a full diagonal.
    ax.imshow(np.sqrt(shares), cmap="Blues", vmin=0, vmax=1.15)
    for row, column in zip(*np.nonzero(matrix), strict=True):
        dark = shares[row, column] > 0.4
        ax.text(
            column, row, f"{matrix[row, column]:d}",
            ha="center", va="center", fontsize=9, color="white" if dark else "black",
        )  # fmt: skip
    ax.set_xticks(range(n_classes), [str(label) for label in labels])
    ax.set_yticks(range(n_classes), [str(label) for label in labels])
    ax.set_xlabel("taken for", fontsize=11)
    ax.set_ylabel("true class", fontsize=11)
    ax.tick_params(length=0, labelsize=10)
    ax.spines[:].set_visible(False)
    return figure


def _as_images(name: str, rows: Any, image_shape: tuple[int, int]) -> Array:
    """Return rows as a stack of images, or say why they are none."""
    rows = np.asarray(rows, np.float64)
    height, width = image_shape
    if rows.ndim != 2 or len(rows) == 0 or rows.shape[1] != height * width:
        raise ValueError(
            f"{name} must hold rows of {height} x {width} = {height * width} values to be drawn as "
            f"images of image_shape={tuple(image_shape)}, got shape {rows.shape}."
        )
    return rows.reshape(-1, height, width)


def _grid(images: Array, n_columns: int | None, row_labels: Sequence[str] | None) -> Figure:
    """Place images with values in [-1, 1] in one axes: much faster than an axes for each."""
    n_images, height, width = images.shape
    if n_columns is None:
        n_columns = int(np.ceil(np.sqrt(n_images)))
    n_rows = -(-n_images // n_columns)
    if row_labels is not None and len(row_labels) != n_rows:
        raise ValueError(
            f"row_labels must name each of the {n_rows} rows of the grid, got {len(row_labels)}."
        )
    gap = 0.12
    step_x, step_y = 1 + gap, height / width + gap
    size_x, size_y = n_columns * step_x + gap, n_rows * step_y + gap
    left = 0.05
    if row_labels is not None:
        left += 0.1 + max(_width(label, _LABEL_SIZE) for label in row_labels)
    room = _WIDTH - left - 0.05
    height_in = room * size_y / size_x + 0.1
    figure = Figure(figsize=(_WIDTH, height_in))
    ax = figure.add_axes(
        (left / _WIDTH, 0.05 / height_in, room / _WIDTH, 1 - 0.1 / height_in), aspect="equal"
    )
    for i, image in enumerate(images):
        x, y = (i % n_columns) * step_x, (i // n_columns) * step_y
        extent = (x, x + 1, y + height / width, y)
        ax.imshow(image, cmap=_SIGNED, vmin=-1, vmax=1, extent=extent, interpolation="none")
    ax.set(xlim=(-gap, size_x - gap), ylim=(size_y - gap, -gap), xticks=[])
    ax.set_facecolor(_PALE)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labelsize=_LABEL_SIZE)
    middles = np.arange(n_rows) * step_y + height / width / 2
    ax.set_yticks(*((middles, row_labels) if row_labels is not None else ([],)))
    return figure


def _width(label: str, size: float) -> float:
    """Return how wide a label is, in inches."""
    return float(TextPath((0, 0), label, size=size).get_extents().width) / 72 if label else 0.0


def _draw_approximation(part: Any, target: Array, approximation: Array) -> None:
    residual = target - approximation
    energy = float(np.vdot(target, target))
    share = float(np.vdot(residual, residual)) / energy if energy > 0 else 0.0
    limit = float(np.abs(target).max()) or 1.0
    left, middle, right = part.subplots(1, 3)
    _show(left, target, limit, "signal")
    _show(middle, approximation, limit, "sum of its atoms")
    _show(right, residual, limit, f"left over: {100 * share:.1f}%")


def _draw_code(ax: Any, code: Array, n_used: int) -> None:
    ax.axhline(0, color=_GREY, linewidth=0.8)
    ax.stem(np.arange(len(code)), code, linefmt=_COLOURS[0], markerfmt=" ", basefmt=" ")
    used = np.flatnonzero(code)
    ax.plot(used, code[used], "o", color=_COLOURS[0], markersize=5)
    ax.set_xlim(-0.9, len(code) - 0.1)
    ax.margins(y=0.15)
    ax.set_title(f"the code: {n_used} of {len(code)} coefficients are not 0", fontsize=10)
    ax.set_xlabel("atom", fontsize=10)
    ax.xaxis.get_major_locator().set_params(integer=True)
    _plain_axes(ax)


def _show(ax: Any, image: Array, limit: float, title: str) -> None:
    ax.imshow(image, cmap=_SIGNED, vmin=-limit, vmax=limit, interpolation="none")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color(_PALE)
    ax.set_title(title, fontsize=10)


def _plot(xlabel: str, ylabel: str) -> tuple[Figure, Any]:
    figure = Figure(figsize=(_WIDTH, 3.5), layout="constrained")
    ax = figure.add_subplot()
    ax.set_xlabel(xlabel, fontsize=11)
    ax.set_ylabel(ylabel, fontsize=11)
    ax.grid(color=_PALE, linewidth=0.8)
    ax.set_axisbelow(True)
    _plain_axes(ax)
    return figure, ax


def _plain_axes(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(_GREY)
    ax.tick_params(labelsize=10, color=_GREY)


def _line(i: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[i % len(_COLOURS)],
        "marker": _MARKERS[i % len(_MARKERS)],
        "markersize": 5,
        "linewidth": 1.8,
    }
