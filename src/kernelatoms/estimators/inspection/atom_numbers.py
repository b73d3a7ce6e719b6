"""``atom_numbers``: coherence, energy and class purity of the atoms of any learner."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from kernelatoms.engine import Array
from kernelatoms.estimators.devices.border import on_cpu
from kernelatoms.estimators.inspection.pipelines import unwrap_pipeline

# Rows of a Gram matrix turned to cosines at once.
_ROWS_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class AtomNumbers:
    """What ``atom_numbers`` returns: arrays with one entry per atom, and sums over all atoms.

    Atoms are counted from 0, through all classes where every class has a dictionary.

    Parameters
    ----------
    coherence : array of shape (n_atoms,)
        The largest |<d, d'>| / (|d| |d'|) of the atom d with any other atom d' of its dictionary,
        in the space where atoms live; 0 for an only atom, and for an atom that is 0.
    nearest : array of shape (n_atoms,)
        Which atom that is, the first of equal ones; -1 for an only atom.
    dictionary : array of shape (n_atoms,)
        Which dictionary the atom belongs to, one per class; 0 where there is one for all.
    energy : array of shape (n_atoms,), optional
        The atom's share of the energy of the rows' codes: the sum over rows of w^2 |d|^2, w its
        coefficients, over that of all atoms. Shares add to 1; all are 0 where every code is 0.
    uses : array of shape (n_atoms,), optional
        How many rows use the atom: their coefficient is not 0.
    n_rows : int
        How many rows were coded.
    classes : array of shape (n_classes,), optional
        The labels in y, in order.
    purity : array of shape (n_atoms,), optional
        The largest share that one class has of the atom's energy, every class weighed alike: with
        e_c the mean of w^2 over the rows of class c, the largest e_c over the sum of all e_c. From
        ``chance`` to 1; NaN for an atom that no row uses.
    purest : array of shape (n_atoms,), optional
        The first class that has that share, as a number of ``classes``; -1 for an unused atom.

    Examples
    --------
    >>> from kernelatoms import KSVD, atom_numbers
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KSVD(20, n_nonzero_coefs=3, random_state=0).fit(X[:1000])
    >>> numbers = atom_numbers(model, X[1000:], y[1000:])
    >>> numbers.energy.shape, round(float(numbers.energy.sum()), 6)
    ((20,), 1.0)
    >>> numbers.mean_purity > numbers.chance
    True
    """

    coherence: Array
    nearest: NDArray[np.intp]
    dictionary: NDArray[np.intp]
    energy: Array | None = None
    uses: NDArray[np.intp] | None = None
    n_rows: int = 0
    classes: Array | None = None
    purity: Array | None = None
    purest: NDArray[np.intp] | None = None

    @property
    def mutual_coherence(self) -> float:
        """The largest coherence: that of the two atoms of a dictionary that are most alike."""
        return float(self.coherence.max())

    @property
    def mean_coherence(self) -> float:
        """The mean of the atoms' coherences."""
        return float(self.coherence.mean())

    @property
    def n_used(self) -> int | None:
        """How many atoms some row uses; None without rows."""
        return None if self.uses is None else int(np.count_nonzero(self.uses))

    @property
    def n_effective(self) -> float | None:
        """1 over the sum of squared energy shares, 1 to n_atoms; 0 unused, None without rows."""
        if self.energy is None:
            return None
        squares = float(np.vdot(self.energy, self.energy))
        return 1 / squares if squares > 0 else 0.0

    @property
    def mean_purity(self) -> float | None:
        """The mean purity, atoms weighed by their energy; None without labels, NaN without use."""
        if self.purity is None or self.energy is None:
            return None
        used = self.energy > 0
        if not used.any():
            return float("nan")
        return float(np.average(self.purity[used], weights=self.energy[used]))

    @property
    def chance(self) -> float | None:
        """The purity of an atom that all classes use alike, 1 / n_classes; None without labels."""
        return None if self.classes is None else 1 / len(self.classes)


def atom_numbers(model: Any, X: Any = None, y: Any = None) -> AtomNumbers:
    """Return coherence, energy, use and class purity of every atom of a fitted model.

    Parameters
    ----------
    model : estimator
        A fitted learner of dictionaries, with or without a kernel or labels, or a ``Pipeline`` that
        ends in one.
    X : array or data frame of shape (n_samples, n_features), optional
        Rows to code, as the model takes them; without, only coherences are known. They are coded as
        ``transform`` does; by a ``ClassDictionaryClassifier`` as its scheme does: over the one
        dictionary that leaves the least of the row, or ("collective") over all of them together.
    y : array of shape (n_samples,), optional
        Labels of the rows, for purities: any, also those that the model never met.

    Returns
    -------
    AtomNumbers

    Notes
    -----
    A purity is of the rows at hand: an atom that two rows use is easily pure, so look at ``uses``
    too. Rows of more energy weigh more within their class.

    Examples
    --------
    Two orthogonal atoms, one for each class, and one between them:

    >>> import numpy as np
    >>> from kernelatoms import KSVD, atom_numbers
    >>> X, y = np.eye(2)[[0, 0, 0, 1]], ["a", "a", "a", "b"]
    >>> model = KSVD(2, n_nonzero_coefs=1, random_state=0).fit(X)
    >>> numbers = atom_numbers(model, X, y)
    >>> numbers.mutual_coherence, sorted(numbers.energy.tolist()), numbers.purity.tolist()
    (0.0, [0.25, 0.75], [1.0, 1.0])
    """
    _, X, y = on_cpu("atom_numbers", model=model, X=X, y=y)
    parts = unwrap_pipeline(model)
    coherence, nearest, dictionary, norms2, start = [], [], [], [], 0
    for i, coder in enumerate(parts.dictionaries):
        gram = coder._gram()
        largest, which = coherences(gram)
        coherence.append(largest)
        nearest.append(np.where(which < 0, -1, which + start))
        dictionary.append(np.full(len(gram), i, np.intp))
        norms2.append(np.diagonal(gram).astype(np.float64))
        start += len(gram)
    known = (np.concatenate(coherence), np.concatenate(nearest), np.concatenate(dictionary))
    if X is None:
        if y is not None:
            raise ValueError("y needs the rows it labels: pass X too.")
        return AtomNumbers(*known)
    rows = parts.rows_to_code(X)
    labels = None if y is None else _check_labels(y, len(rows))
    squares = _squares(parts.last._deciding_codes(rows))
    totals = np.asarray(squares.sum(axis=0), np.float64) * np.concatenate(norms2)
    uses = np.bincount(squares.indices, minlength=start)
    energy = totals / (totals.sum() or 1.0)
    if labels is None:
        return AtomNumbers(*known, energy, uses, len(rows))
    classes, numbers = labels
    return AtomNumbers(
        *known, energy, uses, len(rows), classes, *purities(squares, numbers, len(classes))
    )


def coherences(gram: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return each vector's largest |cosine| with another (0 for 0), and with which (-1: none)."""
    n = len(gram)
    if n == 1:
        return np.zeros(1), np.full(1, -1, np.intp)
    norms = np.sqrt(np.maximum(np.diagonal(gram).astype(np.float64), 0))
    scale = np.divide(1, norms, out=np.zeros(n), where=norms > 0)
    largest, which = np.empty(n), np.empty(n, np.intp)
    for first in range(0, n, _ROWS_AT_ONCE):
        part = np.arange(first, min(first + _ROWS_AT_ONCE, n))
        cosines = np.abs(gram[part].astype(np.float64)) * scale[part, None] * scale
        cosines[part - first, part] = -1  # not with itself
        which[part] = cosines.argmax(axis=1)
        largest[part] = np.minimum(cosines[part - first, which[part]], 1)
    return largest, which


def purities(
    squares: scipy.sparse.csr_array, labels: NDArray[np.intp], n_classes: int
) -> tuple[Array, NDArray[np.intp]]:
    """Return the largest share of a class in each atom's energy (squared codes), and which."""
    # Means over a class's rows: a large class is not purer for being large.
    weights = 1 / np.bincount(labels, minlength=n_classes)[labels]
    marks = scipy.sparse.csr_array(
        (weights, (labels, np.arange(len(labels)))), shape=(n_classes, len(labels))
    )
    means = np.asarray((marks @ squares).toarray())
    total = means.sum(axis=0)
    used = total > 0
    purity = np.divide(means.max(axis=0), total, out=np.full(len(total), np.nan), where=used)
    return purity, np.where(used, means.argmax(axis=0), -1)


def _squares(codes: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return squared coefficients over their largest, in float64, without stored zeros."""
    out = codes.astype(np.float64)
    out.sum_duplicates()
    out.eliminate_zeros()
    # Only shares are asked for: coefficients far from 1 have squares too.
    largest = np.abs(out.data).max(initial=0)
    out.data = (out.data / (largest or 1.0)) ** 2
    return out


def _check_labels(y: Any, n_rows: int) -> tuple[Array, NDArray[np.intp]]:
    """Return the classes and the class of every row, as a number."""
    y = column_or_1d(y)
    if len(y) != n_rows:
        raise ValueError(
            f"y must hold one label for each of the {n_rows} rows of X, got {len(y)} labels."
        )
    missing = [i for i, label in enumerate(y.tolist()) if label is None or label != label]
    if missing:
        raise ValueError(
            f"y has no label for row {missing[0]}"
            f"{f' and {len(missing) - 1} more' if len(missing) > 1 else ''}; leave such rows out."
        )
    try:
        classes, numbers = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError("y must hold labels of one kind, such as all numbers.") from error
    return classes, numbers.astype(np.intp)
