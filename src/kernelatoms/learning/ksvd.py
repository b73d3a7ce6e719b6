"""K-SVD: every atom and its coefficients in turn (eq. (2) of the LKDL paper)."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import machine
from kernelatoms.learning.atoms import unit_rows
from kernelatoms.learning.loop import Updated
from kernelatoms.pursuit.choices import OMP
from kernelatoms.space.codes import Codes, PaddedCodes

Array = NDArray[Any]

# Sweeps over all atoms a pass, and alternations towards the leading singular pair of an atom's
# error in each. Coding costs far more than a sweep, and two sweeps of two lower the objective
# below that of one sweep of exact SVDs (benchmarks/RESULTS.md).
N_SWEEPS = 2
N_ALTERNATIONS = 2


class KSVDUpdate:
    """Improve all atoms, one after another, with the coefficients of the signals that use them."""

    takes: tuple[type, ...] = (OMP,)

    def apply(self, rows: Array, codes: Codes, dictionary: Array) -> Updated:
        """Improve a dictionary, all rows and their codes at hand."""
        assert isinstance(codes, PaddedCodes)
        engine = machine(rows)
        new, values = dictionary.copy(), codes.values.copy()
        R = engine.residuals(rows, new, codes.indices, values)
        for _ in range(N_SWEEPS):
            engine.sweep_atoms(R, new, codes.indices, values, N_ALTERNATIONS)
        error = np.vecdot(R, R)
        codes = replace(codes, values=values, error=error)
        return Updated(new, codes, float(np.sum(error, dtype=np.float64)))

    def new_atoms(self, rows: Array) -> Array:
        """Return rows at unit norm."""
        return unit_rows(rows)
