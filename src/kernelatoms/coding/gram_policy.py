"""Whether the Gram matrix of all atoms is worth its price, and what there is instead.

See docs/decisions/021-many-atoms.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.problem import CodingProblem, LinearProblem
from kernelatoms.engine import machine

Array = NDArray[Any]


def prefers_no_gram(problem: CodingProblem, n_nonzero: int, *, few: bool = False) -> bool:
    """Whether to code without the Gram matrix: it is not there, and its machine does better.

    With ``few``, also if the signals need no more than a few of its rows.
    """
    if problem.gram_is_known:
        return False
    if few and 2 * problem.n_signals * n_nonzero < problem.n_atoms:
        return True
    itemsize = np.dtype(problem.dtype).itemsize
    engine = machine(problem.like)
    return bool(engine.prefers_no_gram(problem.n_atoms, problem.n_signals, n_nonzero, itemsize))


def rows_of(problem: CodingProblem) -> tuple[Array, Array] | None:
    """Return signals and atoms, where inner products are those of rows; None elsewhere."""
    if not isinstance(problem, LinearProblem):
        return None
    return problem.signals, problem.atoms.rows
