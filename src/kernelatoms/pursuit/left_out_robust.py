"""The weight of robust codes that classifies rows best which are no atoms themselves.

Robust codes of rows left out have no closed form, as ridge codes have (``left_out``): some rows are
coded for every weight that is tried.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.pursuit.robust import RobustDictionary
from kernelatoms.space.decisions import parts_of_vectors

Array = NDArray[Any]

#: Weights that are tried, as multiples of the atoms' mean |d|_1.
ROBUST_MULTIPLES = tuple(10.0**power for power in range(-6, 1))
# Answers are the same at a tenth of this gap.
_GAP = 1e-3


class LeftOut(NamedTuple):
    """Rows (n, n_entries) and atoms that they are coded over, with the classes of both."""

    rows: Array
    labels: NDArray[np.intp]
    atoms: Array
    owners: NDArray[np.intp]


def best_robust_mu(parts: Sequence[LeftOut], n_classes: int) -> float:
    """Return the weight of |w|^2 under which most rows are classified right.

    Parameters
    ----------
    parts : sequence of LeftOut
        Rows and what they are coded over.
    n_classes : int
        The number of classes.

    Returns
    -------
    float
        The middle of the best ones.
    """
    scale = float(np.mean([np.abs(part.atoms).sum(axis=1).mean() for part in parts]))
    if not scale > 0:
        return 1.0
    right = np.zeros(len(ROBUST_MULTIPLES), np.intp)
    for part in parts:
        dictionary = RobustDictionary(part.atoms, scale)
        for i, multiple in enumerate(ROBUST_MULTIPLES):
            dictionary = dictionary.with_mu(multiple * scale)
            right[i] += _n_right(part, dictionary, n_classes)
    best = np.log(ROBUST_MULTIPLES)[right == right.max()]
    return float(np.exp(best.mean())) * scale


def _n_right(part: LeftOut, dictionary: RobustDictionary, n_classes: int) -> int:
    found = dictionary.code_quietly(part.rows, _GAP)
    trusted = part.rows - found.errors
    shares = parts_of_vectors(trusted, part.atoms, found.weights, part.owners, n_classes).shares(
        np.dtype(np.float64)
    )
    return int(np.count_nonzero(shares.argmax(axis=1) == part.labels))
