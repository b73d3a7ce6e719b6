"""Figures of where the codes of a class have their weight: on which atoms, of which classes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.report.figures import style
from kernelatoms.report.words import percent

# Several models stand side by side, each this wide, in inches.
_COLUMN = 2.7
_LONGEST_NAME = 12
_FEW_ATOMS = 120


def code_energy_figure(
    codes: Any, owners: Any, classes: Sequence[Any], own: Any = None
) -> style.Figure:
    """Draw on which atoms, and on which classes' atoms, the codes of some rows have their weight.

    Above, the sum of |coefficients| of every atom, over a strip of classes; below, the same summed
    within every class. Codes that tell classes apart have their weight on the atoms of the rows'
    own class (Fig. 4 of Golts and Elad, 2016).

    Parameters
    ----------
    codes : array or sparse array of shape (n_rows, n_atoms), or a mapping of names to such
        Codes of rows of one class; of several models, to stand side by side.
    owners : array of shape (n_atoms,), or a mapping of the same names to such
        The class of every atom, as a number of ``classes``. Atoms are drawn class by class.
    classes : list
        The classes' names.
    own : object, optional
        The class of the rows, one of ``classes``: drawn in a colour of its own, with its share.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from kernelatoms import SRCClassifier
    >>> from kernelatoms.report.figures.code_energies import code_energy_figure
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> src = SRCClassifier().fit(X[:200], y[:200])
    >>> codes = src.codes(X[200:300][y[200:300] == 3])
    >>> figure = code_energy_figure(codes, src.labels_, src.classes_, own=3)
    """
    names = list(classes)
    if own is not None and own not in names:
        raise ValueError(f"own must be one of classes, got {own!r}.")
    mine = None if own is None else names.index(own)
    named = dict(codes) if isinstance(codes, Mapping) else {"": codes}
    theirs = dict(owners) if isinstance(owners, Mapping) else dict.fromkeys(named, owners)
    if not named or set(named) != set(theirs):
        raise ValueError(
            f"codes and owners must name the same models, got {list(named)} and {list(theirs)}."
        )
    each = {name: _atom_sums(code, theirs[name], len(names)) for name, code in named.items()}
    width = max(style.WIDTH, _COLUMN * len(each))
    figure = style.Figure(figsize=(width, 4.6), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.02, hspace=0.0)  # type: ignore[union-attr, call-arg]
    grid: Any = figure.subplots(3, len(each), squeeze=False, height_ratios=[10, 1, 10])
    for column, (name, (sums, owner)) in zip(grid.T, each.items(), strict=True):
        totals: style.Array = np.bincount(owner, sums, minlength=len(names))
        words = [style.as_label(name, 24)] if name else []
        if mine is not None and totals.sum() > 0:
            words.append(f"{percent(float(totals[mine] / totals.sum()))} on the own class")
        column[0].set_title("\n".join(words), fontsize=10)
        _draw_atoms(column[0], column[1], sums, owner, mine)
        _draw_classes(column[2], totals, names, mine, width / len(each) - 0.7)
    grid[0, 0].set_ylabel("by atom", fontsize=10)
    grid[2, 0].set_ylabel("by class", fontsize=10)
    figure.align_ylabels(grid[[0, 2], 0])
    figure.supylabel("sum of |coefficients|", fontsize=11)
    return figure


def _atom_sums(codes: Any, owners: Any, n_classes: int) -> tuple[style.Array, NDArray[np.intp]]:
    """Return the sums of |coefficients| and the owners of atoms, class by class."""
    if len(codes.shape) != 2 if hasattr(codes, "shape") else np.ndim(codes) != 2:
        raise ValueError(f"codes must have shape (n_rows, n_atoms), got {np.shape(codes)}.")
    codes = codes if hasattr(codes, "shape") else np.asarray(codes, np.float64)
    owner = np.asarray(owners)
    if owner.shape != (codes.shape[1],) or owner.dtype.kind not in "iu":
        raise ValueError(
            f"owners must hold a whole number for each of the {codes.shape[1]} atoms, got "
            f"{owner.dtype.name} of shape {owner.shape}."
        )
    if owner.size and not (owner.min() >= 0 and owner.max() < n_classes):
        raise ValueError(
            f"owners must lie between 0 and {n_classes - 1}, numbers of classes, got values from "
            f"{owner.min()} to {owner.max()}."
        )
    sums = np.asarray(abs(codes).sum(axis=0), np.float64).ravel()
    order = np.argsort(owner, kind="stable")
    return sums[order], owner[order].astype(np.intp)


def _draw_atoms(
    ax: Any, strip: Any, sums: style.Array, owner: style.Array, mine: int | None
) -> None:
    """Draw bars of atoms; in the strip below them, classes by turns dark and pale."""
    n_atoms, places = len(sums), np.arange(len(sums))
    colours = [style.COLOURS[1] if c == mine else style.COLOURS[0] for c in owner.tolist()]
    if n_atoms <= _FEW_ATOMS:
        ax.bar(places, sums, width=0.8, color=colours, linewidth=0)
    else:  # lines of a width that is seen: bars narrower than a point fade away
        ax.vlines(places, 0, sums, colors=colours, linewidth=1.0)
    turns = np.where(owner % 2 == 0, style.GREY, "#b8bfc8")
    if mine is not None:
        turns = np.where(owner == mine, style.COLOURS[1], turns)
    strip.bar(places, 1.0, width=1.0, color=turns, linewidth=0)
    strip.set_ylim(0, 1)
    for each in (ax, strip):
        each.set_xlim(-0.5, n_atoms - 0.5)
        each.set_xticks([])
    _plain(ax)
    strip.set_yticks([])
    strip.spines[:].set_visible(False)


def _draw_classes(
    ax: Any, totals: style.Array, names: Sequence[Any], mine: int | None, room: float
) -> None:
    """Draw one bar per class; of many, every few are named, and always the rows' own."""
    colours = [style.COLOURS[1] if c == mine else style.COLOURS[0] for c in range(len(totals))]
    ax.bar(range(len(totals)), totals, width=0.8, color=colours, linewidth=0)
    ax.set_xlim(-0.6, len(totals) - 0.4)
    labels = [style.as_label(name, _LONGEST_NAME) for name in names]
    size = style.LABEL_SIZE if len(totals) <= 12 else 8
    cell = room / len(totals)
    turned = max(style.text_width(label, size) for label in labels) > 0.9 * cell
    # A turned name needs the height of its letters.
    step = max(1, int(np.ceil(1.25 * size / 72 / cell))) if turned else 1
    shown = [c for c in range(len(totals)) if c % step == 0]
    if mine is not None and mine not in shown:
        shown = sorted({c for c in shown if abs(c - mine) >= step} | {mine})
    ax.set_xticks(shown, [labels[c] for c in shown], rotation=90 if turned else 0)
    _plain(ax)
    ax.tick_params(axis="x", labelsize=size, length=2)


def _plain(ax: Any) -> None:
    style.plain_axes(ax, grid="y")
    ax.locator_params(axis="y", nbins=4)
    ax.set_ylim(bottom=0)
