"""K-SVD: every atom and its coefficients in turn (eq. (2) of the LKDL paper)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.ksvd import residuals, sweep_atoms
from kernelatoms.learning.atoms import replace_unused
from kernelatoms.space.codes import Codes

Array = NDArray[Any]

# Sweeps over all atoms a pass, and alternations towards the leading singular pair of an atom's
# error in each. Coding costs far more than a sweep, and two sweeps of two lower the objective
# below that of one sweep of exact SVDs (benchmarks/RESULTS.md).
N_SWEEPS = 2
N_ALTERNATIONS = 2


def ksvd_update(X: Array, dictionary: Array, codes: Codes) -> tuple[Array, Codes]:
    """Improve all atoms, one after another; unused atoms become the worst signals."""
    new, values = dictionary.copy(), codes.values.copy()
    R = residuals(X, new, codes.indices, values)
    for _ in range(N_SWEEPS):
        sweep_atoms(R, new, codes.indices, values, N_ALTERNATIONS)
    error = np.vecdot(R, R)
    used = np.zeros(len(new), bool)
    used[codes.indices[codes.indices >= 0]] = True
    replace_unused(new, used, X, error)
    return new, Codes(codes.indices, values, codes.n_atoms, error)
