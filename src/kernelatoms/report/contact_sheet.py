"""Contact sheets: the atoms of a fitted model as small pictures, with the numbers of each."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kernelatoms import AtomNumbers, atom_numbers, atom_preimages
from kernelatoms.report.anatomy import Anatomy, Array, dissect
from kernelatoms.report.figures.images import check_image_shape
from kernelatoms.report.figures.sheet import Cell, sheet_figure
from kernelatoms.report.view import View, check_names, make_view
from kernelatoms.report.words import shorten

# Atoms on a sheet by default: as images, as curves, as bars with names.
_IMAGES, _CURVES, _TABLES = 30, 20, 12


def contact_sheet(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    image_shape: tuple[int, ...] | None = None,
    n_atoms: int | None = None,
    order: str | None = None,
    feature_names: Any = None,
) -> Figure:
    """Draw the atoms of a fitted model as small pictures, each with its numbers under it.

    Under every atom stand its share of the codes' energy (the bar shows it, relative to the largest
    share), its coherence, and with labels the class that most of its energy comes from with its
    share, the purity: see ``atom_numbers``. Atoms of a kernel's feature space are shown by their
    pre-images (``atom_preimages``), with the error |phi(x) - d|^2 / |d|^2; where there is none, by
    the learner's linear ones.

    Parameters
    ----------
    model : estimator
        A fitted learner of dictionaries, or a ``Pipeline`` that ends in one.
    X : array or data frame of shape (n_samples, n_features), optional
        Rows to code, as the model takes them. Without, coherences are the only numbers.
    y : array of shape (n_samples,), optional
        Labels of the rows, for purities.
    image_shape : (height, width) or (height, width, channels), optional
        Rows are images of this shape: three channels are drawn in colour, a fourth in grey below
        them, two in grey side by side. Without, up to 30 features are drawn as bars, more as a
        curve.
    n_atoms : int, optional
        How many to draw; by default 30 images, 20 curves or 12 tables of bars.
    order : {"energy", "use", "purity", "coherence", "number"}, optional
        The largest first, or by the atom's number. By default by energy, and by number without X.
    feature_names : list of n_features names, optional
        By default those of the data frame that the model learned from.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from kernelatoms import KSVD
    >>> from kernelatoms.report import contact_sheet
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KSVD(16, n_nonzero_coefs=3, max_iter=3, random_state=0).fit(X[:500])
    >>> figure = contact_sheet(model, X[500:800], y[500:800], image_shape=(8, 8))
    >>> len(figure.axes[0].images)
    16
    """
    anatomy = dissect(model)
    n_features = anatomy.n_features
    shape = check_image_shape(image_shape, n_features)
    names = check_names(feature_names, anatomy, n_features)
    view = make_view(anatomy, n_features, shape, names)
    if view is None:
        raise ValueError(
            "model: there is no way back from the space of its atoms to features (a precomputed "
            "kernel, or a step before the dictionary that has no inverse)."
        )
    numbers = atom_numbers(model, X, y)
    return make_sheet(model, anatomy, view, numbers, n_atoms=n_atoms, order=order).draw(view)


@dataclass(frozen=True)
class Sheet:
    """The atoms of a contact sheet: their numbers, as rows of features, and their words."""

    chosen: NDArray[np.intp]
    rows: Array
    cells: list[Cell]
    error: Array | None

    def part(self, places: slice) -> "Sheet":
        """Return the sheet of some of the atoms."""
        error = None if self.error is None else self.error[places]
        return Sheet(self.chosen[places], self.rows[places], self.cells[places], error)

    def draw(self, view: View) -> Figure:
        """Return the figure."""
        return sheet_figure(
            self.rows, self.cells, image_shape=view.image_shape, feature_names=view.feature_names
        )


def make_sheet(
    model: Any,
    anatomy: Anatomy,
    view: View,
    numbers: AtomNumbers,
    *,
    n_atoms: Any = None,
    order: str | None = None,
) -> Sheet:
    """Choose atoms, bring them back to features and put their numbers into words."""
    if n_atoms is None:
        n_atoms = _IMAGES if view.image_shape else _TABLES if view.feature_names else _CURVES
    elif isinstance(n_atoms, bool) or not isinstance(n_atoms, Integral):
        raise TypeError(f"n_atoms must be a whole number, got {n_atoms!r}.")
    elif n_atoms < 1:
        raise ValueError(f"n_atoms must be at least 1, got {n_atoms}.")
    chosen = ordered(numbers, order)[: int(n_atoms)]
    rows, error = _atoms_as_features(model, anatomy, view, chosen)
    largest = 0.0 if numbers.energy is None else float(numbers.energy.max())
    cells = []
    for place, atom in enumerate(chosen.tolist()):
        lines = _lines(numbers, atom)
        if error is not None:
            lines.append(f"error {_short(error[place])}")
        share = None if numbers.energy is None else float(numbers.energy[atom]) / (largest or 1.0)
        cells.append(Cell(_title(anatomy, atom), lines, share))
    return Sheet(chosen, rows, cells, error)


def ordered(numbers: AtomNumbers, order: str | None) -> NDArray[np.intp]:
    """Return the numbers of all atoms, the first to be drawn first."""
    if order is None:
        order = "number" if numbers.energy is None else "energy"
    orders: dict[str, Any] = {
        "energy": numbers.energy,
        "use": numbers.uses,
        "purity": numbers.purity,
        "coherence": numbers.coherence,
        "number": -np.arange(len(numbers.coherence)),
    }
    if not isinstance(order, str) or order not in orders:
        raise ValueError(f"order must be one of {', '.join(map(repr, orders))}, got {order!r}.")
    values = orders[order]
    if values is None:
        raise ValueError(f"order={order!r} needs {'y' if order == 'purity' else 'X'}.")
    return np.argsort(-np.nan_to_num(values.astype(np.float64), nan=-1.0), kind="stable")


def _atoms_as_features(
    model: Any, anatomy: Anatomy, view: View, chosen: NDArray[np.intp]
) -> tuple[Array, Array | None]:
    """Return atoms as rows of features; with the errors of pre-images, where they are such."""
    if view.preimages:
        try:
            found = atom_preimages(model, chosen)
        except ValueError:  # there is no such way back, but a linear one
            pass
        else:
            return view.rows(found.rows), found.error
    sizes = [len(learner.components_) for learner in anatomy.learners]
    owner = np.repeat(np.arange(len(sizes)), sizes)[chosen]
    number = chosen - np.concatenate([[0], np.cumsum(sizes)])[owner]
    each = zip(owner.tolist(), number.tolist(), strict=True)
    rows = view.atoms(np.array([anatomy.learners[i].components_[j] for i, j in each]))
    return (rows if anatomy.row_atoms else upright(rows)), None


def upright(atoms: Array) -> Array:
    """Return atoms with the signs that make their largest values positive."""
    largest = np.take_along_axis(atoms, np.abs(atoms).argmax(axis=1)[:, None], axis=1)
    return np.where(largest < 0, -atoms, atoms)


def _title(anatomy: Anatomy, atom: int) -> str:
    """Return the number of an atom, and the class that it was learned for."""
    if not anatomy.classes:
        return f"atom {atom}"
    parts = anatomy.atoms_by_class
    ends = np.cumsum([len(atoms) for _, atoms in parts])
    owner = anatomy.classes[int(np.searchsorted(ends, atom, side="right"))]
    return f"{atom} of {_class_name(owner, 10)}"


def _lines(numbers: AtomNumbers, atom: int) -> list[str]:
    lines = []
    if numbers.energy is not None:
        lines.append(f"energy {_short(numbers.energy[atom])}")
    lines.append(f"coherence {numbers.coherence[atom]:.2f}")
    if numbers.purity is not None and numbers.classes is not None and numbers.purest is not None:
        name = _class_name(numbers.classes[numbers.purest[atom]], 9)
        unused = numbers.purest[atom] < 0
        lines.append("no class" if unused else f"{100 * numbers.purity[atom]:.0f}% {name}")
    return lines


def _class_name(label: Any, longest: int) -> str:
    """Return a class's name in few letters; a number is said to be a class."""
    return shorten(label, longest) if isinstance(label, str) else f"class {shorten(label, 4)}"


def _short(share: float) -> str:
    """Return a share as a short percentage."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{100 * share:.1f}%" if share < 0.9995 else f"{100 * share:.0f}%"
