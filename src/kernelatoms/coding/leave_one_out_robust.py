"""The weight of robust codes that classifies rows best which are no atoms themselves.

Robust codes of rows left out have no closed form, as ridge codes have (``left_out``): some rows are
coded for every weight that is tried.

See docs/decisions/029-leave-one-out.md.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.decisions import parts_of_vectors
from kernelatoms.coding.robust import RobustDictionary

Array = NDArray[Any]

#: Weights that are tried, as multiples of the atoms' mean |d|_1, until two in a row gain nothing.
#: Columns of kernel values are nearly alike and need large codes, and so small weights.
ROBUST_MULTIPLES = tuple(10.0**-power for power in range(7))
#: Of rows as they are: smaller weights gain nothing on whole rows and lose much on hidden parts.
ROW_MULTIPLES = ROBUST_MULTIPLES[:3]
# A row counts by log(r_other / r_own), its own class's residual and the least of others, cut here:
# some hundred rows tell more so than by right and wrong alone.
_CLEAR = 0.3
# A larger weight, under which hidden parts of a signal do less harm, may lose this much of 1.
_MARGIN = 0.01
# The multiple where rows left out tell nothing.
_UNKNOWN = 0.01
# Answers are the same at a hundredth of this gap.
_GAP = 1e-3


class LeftOut(NamedTuple):
    """Rows (n, n_entries) and atoms that they are coded over, with the classes of both."""

    rows: Array
    labels: NDArray[np.intp]
    atoms: Array
    owners: NDArray[np.intp]


def best_robust_mu(
    parts: Sequence[LeftOut], n_classes: int, multiples: Sequence[float] = ROBUST_MULTIPLES
) -> float:
    """Return the largest weight of |w|^2 that tells rows left out nearly as clearly as the best.

    These rows are whole, and do not tell what hidden parts need: of weights that do equally well on
    them the largest is safest.

    Parameters
    ----------
    parts : sequence of LeftOut
        Rows and what they are coded over.
    n_classes : int
        The number of classes.
    multiples : sequence of float
        Weights that are tried, falling.

    Returns
    -------
    float
    """
    scale = float(np.mean([np.abs(part.atoms).sum(axis=1).mean() for part in parts]))
    if not scale > 0:
        return 1.0
    dictionaries = [RobustDictionary(part.atoms, scale) for part in parts]
    scores: list[float] = []
    for multiple in multiples:
        dictionaries = [one.with_mu(multiple * scale) for one in dictionaries]
        coded = zip(parts, dictionaries, strict=True)
        scores.append(float(np.concatenate([_clear(*each, n_classes) for each in coded]).mean()))
        if len(scores) > 2 and max(scores[-2:]) <= max(scores[:-2]):
            break
    if max(scores) <= -1:  # as where every class has one row
        return _UNKNOWN * scale
    enough = max(scores) - _MARGIN
    first = next(i for i, score in enumerate(scores) if score >= enough)
    return multiples[first] * scale


def _clear(part: LeftOut, dictionary: RobustDictionary, n_classes: int) -> Array:
    """Return how clearly rows are told: from -1, clearly taken for another class, to 1."""
    found = dictionary.code_quietly(part.rows, _GAP)
    trusted = part.rows - found.errors
    classes = parts_of_vectors(trusted, part.atoms, found.weights, part.owners, n_classes)
    residuals = classes.residuals()
    at = (np.arange(len(residuals)), part.labels)
    own = residuals[at]
    residuals[at] = np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(residuals.min(axis=1)) - np.log(own)
    ratio[np.isnan(ratio)] = 0.0  # no class has a part, or two fit exactly: not told
    return np.clip(ratio, -_CLEAR, _CLEAR) / _CLEAR
