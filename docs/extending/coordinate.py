"""A dictionary by coordinate descent: every atom in turn, all others and the codes held."""

from dataclasses import replace

import numpy as np

from kernelatoms.coding import OMP
from kernelatoms.estimators.learners.linear import LinearLearner
from kernelatoms.learning.moments import Moments
from kernelatoms.learning.runs import UpdateResult
from kernelatoms.learning.state import unit_rows


class CoordinateUpdate:
    """Improve the atoms one after another, then bring them to unit norm."""

    accepts = (OMP,)

    def apply(self, rows, codes, dictionary):
        moments = Moments.of(rows, codes)
        D = dictionary.astype(np.float64)
        for j in np.flatnonzero(np.diagonal(moments.gram) > 0):
            D[j] += (moments.cross[j] - moments.gram[j] @ D) / moments.gram[j, j]
        # Their coefficients take up the difference; an atom that vanished stays what it was.
        norms = np.linalg.norm(D, axis=1)
        new = np.where(norms[:, None] > 0, unit_rows(D), dictionary).astype(dictionary.dtype)
        values = (codes.values * norms[codes.indices]).astype(codes.dtype)
        codes = replace(codes, values=values)
        left = rows - codes.to_csr() @ new
        codes = replace(codes, error=np.vecdot(left, left))
        return UpdateResult(new, codes, float(codes.error.sum(dtype=np.float64)))

    def new_atoms(self, rows):
        return unit_rows(rows)


class CoordinateDescent(LinearLearner):
    """Learn a dictionary by sparse coding and coordinate descent; parameters as in KSVD."""

    def _update(self):
        return CoordinateUpdate()
