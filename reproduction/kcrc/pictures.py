"""Figs. 2, 3 and 8 as the paper has them: stems, maps of the plane, confusion matrices."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kernelatoms.report import Picture
from kernelatoms.report.figures.classes import confusion_figure
from reproduction.drawing import COLOURS, GREY, plain_axes
from reproduction.kcrc.digits import CONFUSION
from reproduction.kcrc.direction import CLASSIFIERS, fitted, how_of, one_direction
from reproduction.kcrc.faces import ONE_FACE, PEOPLE, SHOWN
from reproduction.kcrc.reported import CRC, LCD
from reproduction.store import read_records

Array = NDArray[Any]

_SEED = 0
# The paper's grid: -4 to 4 in steps of 0.1.
_REACH, _STEP = 4.0, 0.1
_SHOWN_ROWS = 100


def face_pictures(folder: Path) -> list[Picture]:
    """Draw the coefficients and the residuals of one face, method by method."""
    by_method: dict[str, dict[int, dict[str, float]]] = {}
    for record in read_records(ONE_FACE.path(folder)):
        if record["seed"] == _SEED:
            of_method = by_method.setdefault(record["setting"]["method"], {})
            of_method[record["setting"]["x"]] = record["measures"]
    whole = {m: of for m, of in by_method.items() if set(of) == set(PEOPLE)}
    if not whole:
        return []
    figure = Figure(figsize=(9, 1.5 * len(whole)), layout="constrained")
    axes = figure.subplots(len(whole), 2, squeeze=False)
    for (left, right), (method, of_person) in zip(axes, whole.items(), strict=True):
        weights = [_weights(of_person[person]) for person in PEOPLE]
        n_each = len(weights[0])
        for person, own in zip(PEOPLE, weights, strict=True):
            colour = COLOURS[1] if person == SHOWN else COLOURS[0]
            places = np.arange(n_each) + (person - 1) * n_each
            left.vlines(places, 0, own, color=colour, linewidth=0.8)
        residuals = [of_person[person]["residual"] for person in PEOPLE]
        colours = [COLOURS[1] if person == SHOWN else GREY for person in PEOPLE]
        right.bar(PEOPLE, residuals, color=colours)
        left.set_title(f"{method}: coefficients", fontsize=10)
        right.set_title(f"{method}: residuals", fontsize=10)
        for ax in (left, right):
            plain_axes(ax)
    axes[-1][0].set_xlabel("training image")
    axes[-1][1].set_xlabel("person")
    caption = (
        "A face of the first person over 1,216 training images: coefficients over the largest, "
        "residuals over the smallest; the first person in red."
    )
    alt = "For every method two plots: coefficients by training image, residuals by person."
    return [Picture(figure, caption, alt)]


def _weights(measures: dict[str, float]) -> list[float]:
    n_each = sum(name.startswith("w") for name in measures)
    return [measures[f"w{i}"] for i in range(1, n_each + 1)]


def direction_pictures(folder: Path) -> list[Picture]:
    """Draw which class every point of the plane is given, by three classifiers."""
    figure = Figure(figsize=(9, 3.3), layout="constrained")
    side = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    rows, labels = one_direction(_SHOWN_ROWS, 2, np.random.default_rng(_SEED))
    for ax, method in zip(figure.subplots(1, len(CLASSIFIERS)), CLASSIFIERS, strict=True):
        how = {**how_of(method), "dtype": "float64", "x": 2}
        found = fitted(tuple(how.items()), _SEED).predict(points)
        ax.pcolormesh(
            side, side, found.reshape(len(side), len(side)), cmap="gray", vmin=-1.5, vmax=1,
            rasterized=True,
        )  # fmt: skip
        for label, colour in enumerate(COLOURS[:2]):
            ax.plot(*rows[labels == label].T, ".", color=colour, markersize=3)
        ax.set_title(method, fontsize=11)
        ax.set(aspect="equal", xlabel="first feature", ylabel="second feature")
    caption = (
        "Which class every point is given, grey or white, first draw; the training rows of both "
        "classes as dots."
    )
    alt = (
        "Three maps of the plane. CRC mixes grey and white in rays through the origin; with the "
        "kernel one half of the plane is grey and the other white, global and local alike."
    )
    return [Picture(figure, caption, alt)]


def confusion_pictures(folder: Path) -> list[Picture]:
    """Draw how often every digit was taken for every other, over all splits."""
    counts: dict[str, Array] = {}
    splits: dict[str, set[int]] = {}
    for record in read_records(CONFUSION.path(folder)):
        method, measures = record["setting"]["method"], record["measures"]
        matrix = counts.setdefault(method, np.zeros((10, 10), int))
        matrix[record["setting"]["x"]] += [int(measures[f"as{digit}"]) for digit in range(10)]
        splits.setdefault(method, set()).add(record["seed"])
    pictures = []
    for method in (LCD, CRC):
        if method in counts:
            n = len(splits[method])
            caption = f"{method}: digits and what they were taken for, {n} split{'s' * (n > 1)}."
            alt = f"Confusion matrix of {method}; the diagonal holds most of every row."
            pictures.append(Picture(confusion_figure(counts[method], range(10)), caption, alt))
    return pictures
