"""A dictionary by coordinate descent: every atom in turn, all others and the codes held."""

import numpy as np

from kernelatoms.coding import OMP
from kernelatoms.estimators.learners.linear import LinearLearner
from kernelatoms.learning.moments import UpdateFromMoments
from kernelatoms.learning.runs import UpdateResult
from kernelatoms.learning.state import unit_rows


class CoordinateUpdate(UpdateFromMoments):
    """Improve the atoms one after another, then bring them to unit norm."""

    accepts = (OMP,)

    def solve(self, sums, dictionary):
        D = dictionary.astype(np.float64)
        for j in np.flatnonzero(np.diagonal(sums.gram) > 0):
            D[j] += (sums.cross[j] - sums.gram[j] @ D) / sums.gram[j, j]
        # Their coefficients take up the difference; an atom that vanished stays what it was.
        norms = np.linalg.norm(D, axis=1)
        new = np.where(norms[:, None] > 0, unit_rows(D), dictionary).astype(dictionary.dtype)
        sums = sums.with_atoms_scaled(norms)
        return UpdateResult(new, sums.objective(new), sums)


class CoordinateDescent(LinearLearner):
    """Learn a dictionary by sparse coding and coordinate descent; parameters as in KSVD."""

    def _update(self):
        return CoordinateUpdate()
