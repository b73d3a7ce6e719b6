"""K-SVD: every atom and its coefficients in turn (eq. (2) of the LKDL paper).

See docs/decisions/033-ksvd-sweeps.md.
"""

from dataclasses import replace

import numpy as np

from kernelatoms.coding.codes import Codes, PaddedCodes
from kernelatoms.coding.pursuits import OMP
from kernelatoms.engine import Array, is_device_array, machine
from kernelatoms.learning.loop import UpdateResult
from kernelatoms.learning.state import unit_rows

# Sweeps over all atoms per pass, and alternations towards the leading singular pair of an atom's
# error in each. Coding costs far more than a sweep, and two sweeps of two lower the objective
# below that of one sweep of exact SVDs (benchmarks/RESULTS.md).
N_SWEEPS = 2
N_ALTERNATIONS = 2


class KSVDUpdate:
    """Improve all atoms, one after another, with the coefficients of the signals that use them.

    Parameters
    ----------
    exact : bool, default=False
        One sweep over all atoms by singular vectors, as published, in place of two sweeps of two
        alternations.
    """

    accepts: tuple[type, ...] = (OMP,)

    def __init__(self, exact: bool = False) -> None:
        self.exact = exact

    def apply(self, rows: Array, codes: Codes, dictionary: Array) -> UpdateResult:
        """Improve a dictionary, all rows and their codes at hand."""
        return self.apply_all([(rows, codes, dictionary)])[0]

    def apply_all(self, given: list[tuple[Array, Codes, Array]]) -> list[UpdateResult]:
        """Improve many dictionaries, each with its rows and codes, in the same launches."""
        engine = machine(given[0][0])
        if self.exact and is_device_array(given[0][0]):
            raise ValueError(
                "update='exact' works on the CPU alone, and X is on a device: bring it there by "
                "kernelatoms.to_device(X, 'cpu'), or use update='approximate'."
            )
        swept, exponents = [], []
        for rows, codes, dictionary in given:
            assert isinstance(codes, PaddedCodes)
            new, values = dictionary.copy(), codes.values.copy()
            R = engine.residuals(rows, new, codes.indices, values)
            # A sweep computes fourth powers of the signals, which overflow or underflow far from 1.
            exponent = _far_from_one(values)
            if exponent:
                R, values = np.ldexp(R, -exponent), np.ldexp(values, -exponent)
            swept.append((R, new, codes.indices, values))
            exponents.append(exponent)
        if self.exact:
            for one in swept:
                engine.sweep_atoms_exactly(*one)
        elif len(swept) == 1:
            engine.sweep_atoms(*swept[0], N_ALTERNATIONS, N_SWEEPS)
        else:
            engine.sweep_atoms_all(swept, N_ALTERNATIONS, N_SWEEPS)
        results = []
        for (_, codes, _), (R, new, _, values), exponent in zip(
            given, swept, exponents, strict=True
        ):
            assert isinstance(codes, PaddedCodes)
            if exponent:
                R, values = np.ldexp(R, exponent), np.ldexp(values, exponent)
            assert isinstance(codes, PaddedCodes)
            codes = replace(codes, values=values, error=engine.squared_norms(R))
            results.append(UpdateResult(new, codes, float(codes.error.sum())))
        return results

    def new_atoms(self, rows: Array) -> Array:
        """Return rows at unit norm."""
        return unit_rows(rows)


def _far_from_one(values: Array) -> int:
    """Return the exponent of the largest coefficient; 0 if its fourth power is in range."""
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    return 0 if 2.0**-16 <= largest <= 2.0**16 or largest == 0 else int(np.frexp(largest)[1])
