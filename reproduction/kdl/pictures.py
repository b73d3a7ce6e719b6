"""Fig. 4 as the paper has it: functions of the plane, drawn for the first seed."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kernelatoms.report import Picture
from reproduction.drawing import GREY, SIGNED
from reproduction.kdl.reported import (
    KERNEL,
    LINEAR,
    LINEAR_1,
)
from reproduction.kdl.synthetic import (
    ATOMS,
    atoms_by_use,
    errors_of_circles,
    log_ratio,
    on_circle,
    on_parabola,
    parabola_dictionary,
    projections,
    setting_of,
)

Array = NDArray[Any]

_SEED = 0
_N_GRID = 161
_DECADES = 4


def circles_pictures() -> list[Picture]:
    """Draw the error ratio of the two circles' dictionaries over the plane."""
    figure = Figure(figsize=(9, 3.3), layout="constrained")
    side = np.linspace(-3, 3, _N_GRID)
    points = _grid(side, side)
    angles = np.linspace(0, 2 * np.pi, 200)
    titles = {LINEAR: "linear K-SVD, 2 nonzeros", LINEAR_1: LINEAR_1, KERNEL: KERNEL}
    axes = figure.subplots(1, len(titles))
    for ax, (method, title) in zip(axes, titles.items(), strict=True):
        setting = setting_of(method)
        ratio = log_ratio(setting, errors_of_circles(setting, _SEED, points), points)
        mesh = ax.pcolormesh(
            side, side, ratio.reshape(_N_GRID, _N_GRID), cmap=SIGNED, vmin=-_DECADES,
            vmax=_DECADES, rasterized=True,
        )  # fmt: skip
        for radius, style in zip(setting["radii"], ("-", "--"), strict=True):
            ax.plot(*on_circle(radius, angles).T, color="black", linewidth=0.9, linestyle=style)
        ax.set_title(title, fontsize=11)
        _plain(ax)
    figure.colorbar(mesh, ax=axes, shrink=0.9, label="log10 of the error ratio", extend="both")
    caption = (
        "The outer circle's error over the inner circle's, first seed: red where the inner class "
        "(solid) leaves less, blue where the outer one (dashed) does, white where they are equal."
    )
    alt = (
        "Three maps of the plane with two circles. With two linear atoms the map is white; with "
        "one it has thin red and blue rays from the origin; with the kernel a red disc around the "
        "inner circle lies in a blue ring around the outer one."
    )
    return [Picture(figure, caption, alt)]


def parabola_pictures() -> list[Picture]:
    """Draw level curves of the projections on three atoms, linear and kernel."""
    figure = Figure(figsize=(9, 5.2), layout="constrained")
    across, up = np.linspace(-1.25, 1.25, _N_GRID), np.linspace(-0.4, 1.35, _N_GRID)
    points = _grid(across, up)
    curve = on_parabola(np.linspace(-1, 1, 101))
    axes = figure.subplots(2, len(ATOMS))
    for row, method in zip(axes, (LINEAR, KERNEL), strict=True):
        setting = setting_of(method)
        learner, places = parabola_dictionary(setting, _SEED)
        order = atoms_by_use(learner, on_parabola(places))
        values = projections(setting, learner, points)
        for ax, atom in zip(row, ATOMS, strict=True):
            level = values[:, order[atom - 1]].reshape(_N_GRID, _N_GRID)
            ax.contourf(across, up, level, levels=14, cmap="viridis")
            ax.contour(across, up, level, levels=14, colors="white", linewidths=0.5)
            ax.plot(*curve.T, color="#D55E00", linewidth=2)
            ax.set_title(f"{method}, atom {atom}", fontsize=11)
            _plain(ax)
    caption = (
        "Level curves of the projections on the three atoms with the largest coefficients, first "
        "seed; the parabola in red."
    )
    alt = (
        "Six maps of the plane with a parabola. Linear projections have straight level curves at "
        "equal distances; those of the kernel bend a little and crowd on one arm of the parabola."
    )
    return [Picture(figure, caption, alt)]


def _grid(across: Array, up: Array) -> Array:
    return np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)


def _plain(ax: Any) -> None:
    ax.set(aspect="equal", xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_color(GREY)
