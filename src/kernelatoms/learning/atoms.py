"""Where atoms start, and what replaces those that nobody uses."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def unit_rows(rows: Array) -> Array:
    """Return the rows at unit norm; zero rows stay zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)


def atoms_from_rows(X: Array, n_atoms: int, rng: np.random.RandomState) -> Array:
    """Return random training rows at unit norm (how both papers start), zero rows last."""
    order = rng.permutation(len(X))
    is_zero = ~X[order].any(axis=1)
    order = np.concatenate([order[~is_zero], order[is_zero]])
    return unit_rows(X[order[:n_atoms]])


def replace_unused(dictionary: Array, used: NDArray[np.bool_], X: Array, error: Array) -> None:
    """Put the worst represented signals, at unit norm, in place of atoms that no code uses.

    No code changes, so neither does the objective; the next coding step has better atoms to
    choose from. Signals without error have nothing to offer and replace nothing.
    """
    unused, worst = find_replacements(used, error)
    dictionary[unused] = unit_rows(X[worst])


def find_replacements(
    used: NDArray[np.bool_], error: Array
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the numbers of unused atoms and of as many signals, the worst represented first."""
    unused = np.flatnonzero(~used)
    worst = np.argsort(-error, kind="stable")[: len(unused)]
    worst = worst[error[worst] > 0]
    return unused[: len(worst)], worst
