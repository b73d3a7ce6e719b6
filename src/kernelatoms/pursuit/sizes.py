"""Whether the Gram matrix of all atoms is worth its price."""

import numpy as np

from kernelatoms.space.problem import CodingProblem

# From this many bytes on a Gram matrix is not made; below this many atoms it always is.
_MOST_BYTES = 2 << 30
_FEWEST_ATOMS = 4096


def prefers_no_gram(problem: CodingProblem, n_nonzero: int) -> bool:
    """Whether to code without the Gram matrix: it is too large, or more work than it saves.

    A signal of k nonzeros needs k rows of it; all signals together may need fewer rows than there
    are atoms.
    """
    if problem.gram_is_known or problem.n_atoms < _FEWEST_ATOMS:
        return False
    n_bytes = problem.n_atoms**2 * np.dtype(problem.dtype).itemsize
    return n_bytes > _MOST_BYTES or 2 * problem.n_signals * n_nonzero < problem.n_atoms
