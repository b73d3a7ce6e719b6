"""Where atoms start, and which signals replace those that nobody uses.

See docs/decisions/035-dead-atoms.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import machine, to_numpy

Array = NDArray[Any]


def unit_rows(rows: Array) -> Array:
    """Return the rows at unit norm; zero rows stay zero."""
    return machine(rows).unit_rows(rows)


def atoms_from_rows(X: Array, n_atoms: int, rng: np.random.RandomState) -> Array:
    """Return random training rows at unit norm (how both papers start), zero rows last."""
    order = rng.permutation(len(X))
    is_zero = to_numpy(~X.any(axis=1))[order]
    order = np.concatenate([order[~is_zero], order[is_zero]])
    return unit_rows(X[order[:n_atoms]])


def atoms_from_sums(X: Array, n_atoms: int, n_terms: int, rng: np.random.RandomState) -> Array:
    """Return sums of so many random rows at unit norm, zero rows left out where others are.

    The start of Fig. 3 of the kernel dictionary learning paper. There may be more atoms than rows.
    """
    rows = np.flatnonzero(to_numpy(X.any(axis=1)))
    rows = rows if len(rows) else np.arange(len(X))
    drawn = np.stack([rng.permutation(rows)[:n_terms] for _ in range(n_atoms)])
    total = X[drawn[:, 0]]
    for term in drawn[:, 1:].T:
        total = total + X[term]
    return unit_rows(total)


def worst_represented(error: Array, count: int) -> NDArray[np.intp]:
    """Return the numbers of at most ``count`` signals of the largest errors, largest first.

    Signals without error have nothing to offer.
    """
    worst = np.argsort(-error, kind="stable")[:count]
    return worst[error[worst] > 0]
