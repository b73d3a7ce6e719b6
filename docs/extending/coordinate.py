"""A dictionary by coordinate descent: every atom in turn, all others and the codes held."""

import numpy as np

from kernelatoms.engine.cpu.ksvd import residuals
from kernelatoms.estimators.learners import LinearLearner
from kernelatoms.learning.atoms import replace_unused
from kernelatoms.learning.moments import Moments
from kernelatoms.space.codes import Codes


def coordinate_update(X, dictionary, codes):
    """Improve the atoms one after another (Mairal et al., 2009, Algorithm 2)."""
    moments = Moments.of(X, codes)
    used = np.diagonal(moments.gram) > 0
    D = dictionary.astype(np.float64)
    for j in np.flatnonzero(used):
        D[j] += (moments.cross[j] - moments.gram[j] @ D) / moments.gram[j, j]
    # Atoms go back to unit norm, their coefficients take up the difference.
    norms = np.linalg.norm(D, axis=1)
    D = np.divide(D, norms[:, None], where=norms[:, None] > 0, out=dictionary.astype(np.float64))
    new = D.astype(dictionary.dtype)
    values = (codes.values * norms[codes.indices]).astype(codes.values.dtype)
    rest = residuals(X, new, codes.indices, values)
    error = np.vecdot(rest, rest)
    replace_unused(new, used, X, error)
    return new, Codes(codes.indices, values, codes.n_atoms, error)


class CoordinateDescent(LinearLearner):
    """Learn a dictionary by sparse coding and coordinate descent; parameters as in KSVD."""

    _update = staticmethod(coordinate_update)
