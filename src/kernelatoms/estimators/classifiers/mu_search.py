"""The weight of ridge codes over training rows: it classifies most of the left-out rows right."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.leave_one_out import (
    ROBUST_MULTIPLES,
    ROW_MULTIPLES,
    LeftOut,
    best_local_mu,
    best_mu,
    best_robust_mu,
)
from kernelatoms.engine import machine
from kernelatoms.estimators.classifiers.training_dictionary import Locality, TrainingDictionary

Array = NDArray[Any]

# Rows that are left out one by one. Over neighbours there are fewer where these are many: their
# Gram matrices have so many entries in all.
_LEFT_OUT, _LEFT_OUT_LOCALLY, _LOCAL_ENTRIES = 2000, 4000, 12_000_000
# For robust codes: so many rows take part, of which so many are left out in so many parts.
_ROBUST_ATOMS, _ROBUST_ROWS, _PARTS = 400, 150, 5


def find_mu(dictionary: TrainingDictionary, locality: Locality | None) -> float:
    """Return the weight of ridge codes over all rows, or over each row's own."""
    labels, n_classes = dictionary.labels, dictionary.n_classes
    if locality is not None:
        fits = _LOCAL_ENTRIES // locality.n_neighbors**2
        some = _spread(labels, max(100, min(_LEFT_OUT_LOCALLY, fits)))
        rows = dictionary.rows[some]
        near = dictionary.neighbors(rows, locality, skip=some)
        local = dictionary.local_problems(rows, near)
        return best_local_mu(
            local.grams, local.corrs, local.energies, dictionary.owners(labels, near),
            labels[some], n_classes, columns=local.columns,
        )  # fmt: skip
    some, psi = _spread(labels, _LEFT_OUT), dictionary.psi
    mu, _ = best_mu(
        dictionary.atoms.gram[np.ix_(some, some)], labels[some], n_classes,
        projected=dictionary.projected, psi=None if psi is None else psi[some],
        unit=dictionary.unit,
    )  # fmt: skip
    return mu * _growth(dictionary, len(some))


def find_robust_mu(dictionary: TrainingDictionary, locality: Locality | None) -> float:
    """Return the weight of robust codes over all rows, or over each row's own."""
    labels, n_classes = dictionary.labels, dictionary.n_classes
    multiples = ROBUST_MULTIPLES if dictionary.projected else ROW_MULTIPLES
    if locality is None:
        some = _spread(labels, _ROBUST_ATOMS)
        mu = best_robust_mu(_left_out(dictionary, some), n_classes, multiples)
        return mu * _growth(dictionary, len(some))
    some = _spread(labels, _ROBUST_ROWS)
    rows = dictionary.rows[some]
    near = dictionary.neighbors(rows, locality, skip=some)
    each = dictionary.local_vectors(rows, near)
    parts = [
        LeftOut(signal[None], own_labels, atoms, labels[own[there]])
        for (signal, atoms, there), own_labels, own in zip(
            each, labels[some][:, None], near, strict=True
        )
    ]
    return best_robust_mu(parts, n_classes, multiples)


def _growth(dictionary: TrainingDictionary, n_some: int) -> float:
    """Return how many times as large mu is for all rows as for some of them.

    Eigenvalues grow with the number of atoms, and with that of the terms of a projection; |e|_1
    grows with the number of entries, too.
    """
    terms = dictionary.projected and not dictionary.unit
    return (dictionary.n_atoms / n_some) ** (2 if terms else 1)


def _left_out(dictionary: TrainingDictionary, some: NDArray[np.intp]) -> list[LeftOut]:
    """Return some rows in parts, each with the others as atoms."""
    coded = np.linspace(0, len(some) - 1, min(_ROBUST_ROWS, len(some))).round().astype(np.intp)
    labels, parts = dictionary.labels, []
    for part in range(_PARTS):
        out = coded[part::_PARTS]
        if not len(out):
            continue
        others = np.delete(some, out)
        vectors = dictionary.vectors_by(others)
        rows, atoms = some[out], vectors[others]
        if dictionary.unit:
            atoms = machine(atoms).unit_rows(atoms)
        parts.append(LeftOut(vectors[rows], labels[rows], atoms, labels[others]))
    return parts


def _spread(labels: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return the numbers of at most so many rows, evenly spaced in the order of the classes."""
    order = np.argsort(labels, kind="stable")
    if len(labels) <= most:
        return order
    return order[np.linspace(0, len(labels) - 1, most).round().astype(np.intp)]
