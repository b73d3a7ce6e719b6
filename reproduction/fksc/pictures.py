"""Fig. 7 and Example 1 as the paper has them: positions and matrices, drawn for the first seed."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kernelatoms.report import Picture
from reproduction.drawing import COLOURS, GREY, SIGNED, plain_axes
from reproduction.fksc.reported import ALLOWED
from reproduction.fksc.speed import PAIRS, coding_problem, support_after
from reproduction.fksc.sphere import INPUT, LIFTED, sparsest

Array = NDArray[Any]

_SEED = 0
_DATA = "syn360"
_ROUNDS = 50


def support_pictures() -> list[Picture]:
    """Draw which coefficients of one column are nonzero, round by round."""
    alpha, sigma = PAIRS[0]
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for ax, scale in zip(figure.subplots(1, 2), ("raw", "unit"), strict=True):
        problem = coding_problem(_DATA, scale, alpha, sigma, 1, _SEED, None)
        for k in range(1, _ROUNDS + 1):
            there = np.flatnonzero(support_after(problem, alpha, k)[0])
            ax.plot(np.full(len(there), k), there, ".", color=COLOURS[0], markersize=2.5)
        final = np.flatnonzero(support_after(problem, alpha, None)[0])
        ax.plot(
            np.full(len(final), _ROUNDS + 3), final, "<", color=COLOURS[1], markersize=5,
            clip_on=False,
        )  # fmt: skip
        ax.set(xlabel="round", ylabel="atom", title=f"{scale} columns", ylim=(0, problem.n_atoms))
        plain_axes(ax)
    caption = (
        f"Nonzero coefficients of one Syn360 column in {_ROUNDS} rounds of KSC (dots), and at the "
        f"minimum (triangles); lambda {alpha:g}, sigma {sigma:g}. With unit columns all atoms are "
        "nearly alike, and the first ones in the order of the descent take the weight."
    )
    alt = (
        "Two plots of positions by round. With raw columns the positions soon are those of the "
        "minimum. With unit columns nothing changes from the first round on: the positions are "
        "those of the first atoms, and few are those of the minimum."
    )
    return [Picture(figure, caption, alt)]


def code_pictures() -> list[Picture]:
    """Draw the codes of ten points over six atoms, without and with second-order terms."""
    figure = Figure(figsize=(9, 2.9), layout="constrained")
    axes = figure.subplots(1, 2)
    for ax, method in zip(axes, (INPUT, LIFTED), strict=True):
        found = sparsest(method == LIFTED, _SEED, ALLOWED)
        image = ax.imshow(found.codes.T, cmap=SIGNED, vmin=-1, vmax=1, aspect="auto")
        ax.set_title(f"{method}: {found.n_nonzero} nonzeros", fontsize=11)
        ax.set(xlabel="point", ylabel="atom", xticks=[], yticks=[])
        for point, atom in zip(*np.nonzero(found.codes), strict=True):
            ax.plot(point, atom, ".", color=GREY, markersize=3)
    figure.colorbar(image, ax=axes, shrink=0.9, label="coefficient", extend="both")
    caption = f"The sparsest codes with an error below {ALLOWED:g}, first draw; dots on nonzeros."
    alt = "Two matrices of six atoms by ten points; the one with second-order terms is fuller."
    return [Picture(figure, caption, alt)]
