"""Pictures of where codes have their weight: on the atoms of the rows' own class, or of others."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.report.code_energies import code_energy_figure
from kernelatoms.report.coding import Subject, code_weights
from kernelatoms.report.figures import class_matrix_figure
from kernelatoms.report.page import Picture
from kernelatoms.report.style import share_shades
from kernelatoms.report.words import label_words, percent

Array = NDArray[Any]

_CLASSES_IN_A_MATRIX = 20
_ATOMS_IN_A_LINE = 600


def weights_pictures(subject: Subject) -> list[Picture]:
    """Draw on which classes' atoms the codes of every class's rows have their weight.

    Beside it, atom by atom, the class whose codes have the least of it on their own atoms, where
    atoms were learned and are few enough to be told apart.
    """
    found = code_weights(subject.anatomy, subject.X, subject.y)
    if found is None or not found.by_atom.sum() > 0:
        return []
    weights, classes = found.by_class, subject.anatomy.classes
    pictures = [_weights_picture(weights, classes)]
    n_atoms = len(found.owners)
    if subject.anatomy.keeps_rows or n_atoms > _ATOMS_IN_A_LINE or len(classes) < 2:
        return pictures
    totals = weights.sum(axis=1)
    own = np.divide(np.diagonal(weights), totals, out=np.ones(len(totals)), where=totals > 0)
    least = int(np.where(totals > 0, own, np.inf).argmin())
    figure = code_energy_figure(found.by_atom[[least]], found.owners, classes, own=classes[least])
    words = (
        f"Rows of {label_words(classes[least])}, whose codes use atoms of other classes most: "
        f"{percent(float(1 - own[least]))} of their weight. Above, every atom, class after class; "
        "below, their sums by class."
    )
    return [*pictures, Picture(figure, words, f"Sums of |coefficients|. {words}")]


def _weights_picture(weights: Array, classes: list[Any]) -> Picture:
    totals = weights.sum(axis=1)
    present = np.flatnonzero(totals > 0)
    shares = weights / np.where(totals > 0, totals, 1)[:, None]
    own = np.diagonal(shares)
    words = (
        f"{percent(float(np.trace(weights) / weights.sum()))} of the weight of codes, their sum of "
        "|coefficients|, is on atoms of the row's own class"
    )
    least = present[own[present].argmin()]
    words += (
        f"; the least, {percent(float(own[least]))}, of rows of {label_words(classes[least])}. "
        "The further from the diagonal weight lies, the less codes tell classes apart."
    )
    if len(classes) > _CLASSES_IN_A_MATRIX:
        lowest = present[np.argsort(own[present], kind="stable")[:_CLASSES_IN_A_MATRIX]]
        shown = np.sort(lowest)
        words += f" The {len(shown)} of {len(classes)} classes with the least are drawn."
        shares, classes = shares[np.ix_(shown, shown)], [classes[c] for c in shown]
    # A hundredth and more is said in the cell; the colour tells the rest.
    cells = [[f"{100 * share:.0f}" if share >= 0.005 else "" for share in row] for row in shares]
    figure = class_matrix_figure(shares, cells, classes, "atoms of class, % of the weight")
    alt = f"Weight of codes by true class and by class of atoms. {words}"
    return Picture(figure, words, alt, share_shades("Of the weight of a true class's codes:"))
