"""Codes and answers of a fitted model: residuals, classes, use of atoms, a few numbers per row.

Rows are taken in blocks, so that many rows of many features need little memory.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.report.anatomy import Anatomy
from kernelatoms.report.origin import RowsOfFile
from kernelatoms.report.view import View

Array = NDArray[Any]

_BLOCK_ROWS = 1 << 14
_BLOCK_VALUES = 1 << 22
_TIMED_ROWS = 2000
_WEIGHED_ROWS = 2000
_RUNS = 3
_UNKNOWN = -1


@dataclass(frozen=True)
class Answers:
    """The class that a model chose for every row, and the true one, -1 where it is not known."""

    chosen: NDArray[np.intp]
    truth: NDArray[np.intp]
    own: Array  # how well the true class does, NaN if it is unknown
    other: Array  # how well the best of the others does


@dataclass(frozen=True)
class Decisions(Answers):
    """Shares of classes in the fit of every row (``predict_proba``); ``won`` is the largest."""

    won: Array


@dataclass(frozen=True)
class Coded(Answers):
    """Numbers of every row; a residual is |x - D w|^2, in the space where dictionaries live.

    ``chosen`` is the dictionary that leaves the least, with the residual ``least``; ``own`` and
    ``other`` are residuals too. ``uses`` counts the rows that use every atom, of ``n_coded`` of its
    dictionary: those that chose it, or all where rows are coded over all dictionaries together.
    """

    energy: Array
    least: Array
    uses: list[Array]
    n_coded: NDArray[np.intp]

    def share(self, residual: Array) -> Array:
        """Return residuals as shares of their rows' energy; NaN where there is none."""
        some = self.energy > 0
        return np.divide(residual, self.energy, out=np.full(len(some), np.nan), where=some)


def code_rows(anatomy: Anatomy, X: Any, y: Any = None) -> Coded:
    """Code all rows as the model does: over each dictionary, or over all of them together."""
    learners = anatomy.learners
    n_rows = n_rows_of(X)
    # One dictionary of all classes leaves what it leaves, whatever the row's class.
    truth = find_labels(anatomy.classes, None if anatomy.supervised else y, n_rows)
    numbers = np.full((4, n_rows), np.nan)
    energy, least, own, other = numbers
    chosen = np.zeros(n_rows, np.intp)
    uses = [np.zeros(learner.n_atoms_, np.int64) for learner in learners]
    for rows in _blocks(n_rows, anatomy):
        signals = anatomy.signals(take_rows(X, rows))
        if learners[0]._problem(signals).knows_energy:
            energy[rows] = learners[0]._energies(signals)
        codes, residuals = code_signals(anatomy, signals)
        best = residuals.argmin(axis=1)
        chosen[rows] = best
        least[rows] = residuals.min(axis=1)
        own[rows], other[rows] = _own_and_other(residuals, truth[rows])
        for c, code in enumerate(codes):
            counted = code if anatomy.codes_jointly else code[best == c]
            uses[c] += np.bincount(counted.indices, minlength=len(uses[c]))
    n_coded = np.bincount(chosen, minlength=len(learners))
    if anatomy.codes_jointly:
        n_coded = np.full(len(learners), n_rows)
    return Coded(chosen, truth, own, other, energy, least, uses, n_coded)


def decide_rows(anatomy: Anatomy, X: Any, y: Any = None) -> Decisions:
    """Return which class each row is given, with which share of the fit."""
    n_rows = n_rows_of(X)
    truth = find_labels(anatomy.classes, y, n_rows)
    won, own, other = np.full((3, n_rows), np.nan)
    chosen = np.zeros(n_rows, np.intp)
    for rows in _blocks(n_rows, anatomy):
        shares = anatomy.last.predict_proba(anatomy.signals(take_rows(X, rows)))
        chosen[rows], won[rows] = shares.argmax(axis=1), shares.max(axis=1)
        own[rows], other[rows] = -_own_and_other(-shares, truth[rows])
    return Decisions(chosen, truth, own, other, won)


@dataclass(frozen=True)
class Weights:
    """Sums of |coefficients| of every class's rows over every atom, and the class of every atom."""

    by_atom: scipy.sparse.csr_array
    owners: NDArray[np.intp]

    @property
    def by_class(self) -> Array:
        """The same over all atoms of a class: rows of class i, atoms of class j."""
        return np.asarray((self.by_atom @ _marks(self.owners, self.by_atom.shape[0])).toarray())


def code_weights(anatomy: Anatomy, X: Any, y: Any) -> Weights | None:
    """Return on which atoms each class's codes have weight; None if coded over one class alone."""
    if not (anatomy.keeps_rows or anatomy.codes_jointly or anatomy.supervised):
        return None
    rows, n_classes = spread(n_rows_of(X), _WEIGHED_ROWS), len(anatomy.classes)
    truth = find_labels(anatomy.classes, np.asarray(y)[rows], len(rows))
    owners = _owners(anatomy)
    total = scipy.sparse.csr_array((n_classes, len(owners)))
    for part in _blocks(len(rows), anatomy):
        signals = anatomy.signals(take_rows(X, rows[part]))
        if anatomy.keeps_rows:
            codes = anatomy.last.codes(signals)
        else:
            codes = scipy.sparse.hstack(code_signals(anatomy, signals)[0], format="csr")
        known = np.flatnonzero(truth[part] != _UNKNOWN)
        total = total + _marks(truth[part][known], n_classes).T @ abs(codes[known])
    return Weights(scipy.sparse.csr_array(total), owners)


def _owners(anatomy: Anatomy) -> NDArray[np.intp]:
    """Return the class of every atom, atoms counted through all classes."""
    if anatomy.keeps_rows:
        return np.asarray(anatomy.last.labels_, np.intp)
    sizes = [len(atoms) for _, atoms in anatomy.atoms_by_class]
    return np.repeat(np.arange(len(sizes)), sizes)


def _marks(classes: NDArray[np.intp], n_classes: int) -> scipy.sparse.csr_array:
    """Return a row for each entry with a 1 in its class's column."""
    places = (np.arange(len(classes)), classes)
    return scipy.sparse.csr_array((np.ones(len(classes)), places), shape=(len(classes), n_classes))


def code_signals(anatomy: Anatomy, signals: Array) -> tuple[list[scipy.sparse.csr_array], Array]:
    """Return codes over every dictionary, or its part of joint codes, and what each leaves."""
    learners = anatomy.learners
    if anatomy.codes_jointly:
        joint, residuals = anatomy.last._code_jointly(signals)
        ends, matrix = np.cumsum([0, *(learner.n_atoms_ for learner in learners)]), joint.to_csr()
        codes = [matrix[:, start:end] for start, end in pairwise(ends.tolist())]
        return codes, np.asarray(residuals, np.float64)
    own = anatomy.last.n_neighbors if anatomy.group == "class dictionaries" else None
    each = [learner._encode(signals, own) for learner in learners]
    residuals = np.stack([codes.error for codes in each], axis=1).astype(np.float64)
    return [codes.to_csr() for codes in each], residuals


def find_labels(classes: Sequence[Any], y: Any, n_rows: int) -> NDArray[np.intp]:
    """Return the numbers of the labels' classes; -1 for a label that is none of them."""
    if y is None or not classes:
        return np.full(n_rows, _UNKNOWN, np.intp)
    number = {label: c for c, label in enumerate(classes)}
    return np.array([number.get(label, _UNKNOWN) for label in np.asarray(y).tolist()], np.intp)


def _own_and_other(residuals: Array, truth: NDArray[np.intp]) -> Array:
    """Return the residual of each row's own class, and the least of the others; NaN if unknown."""
    known = np.flatnonzero(truth != _UNKNOWN)
    found, others = np.full((2, len(truth)), np.nan), residuals[known]
    found[0, known] = others[np.arange(len(known)), truth[known]]
    others[np.arange(len(known)), truth[known]] = np.inf
    found[1, known] = others.min(axis=1) if residuals.shape[1] > 1 else np.nan
    return found


def time_model(model: Any, X: Any) -> tuple[str, float, int]:
    """Return what was timed, the median seconds per row, and how many rows it was timed on."""
    name = "predict" if hasattr(model, "predict") else "transform"
    rows = take_rows(X, spread(n_rows_of(X), _TIMED_ROWS))
    seconds = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        getattr(model, name)(rows)
        seconds.append(time.perf_counter() - start)
    return name, float(np.median(seconds)) / n_rows_of(rows), n_rows_of(rows)


def spread(n_rows: int, most: int) -> NDArray[np.intp]:
    """Return at most so many row numbers, evenly spread over all."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, most).round().astype(np.intp)


def n_rows_of(X: Any) -> int:
    """Return how many rows a table of any kind has."""
    return int(X.shape[0])


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of an array or a data frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _blocks(n_rows: int, anatomy: Anatomy) -> Iterator[slice]:
    widths = [getattr(step, "n_features_in_", 1) for step in anatomy.steps]
    size = min(_BLOCK_ROWS, max(64, _BLOCK_VALUES // max(widths)))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


@dataclass(frozen=True)
class Subject:
    """What a report is about: a model taken apart, rows to show it on, and what it made of them."""

    model: Any
    anatomy: Anatomy
    view: View | None
    X: Any = None
    y: Any = None
    coded: Coded | None = None
    decisions: Decisions | None = None
    map_error: str | None = None
    source: RowsOfFile = field(default_factory=RowsOfFile)
