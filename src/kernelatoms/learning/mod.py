"""MOD, the method of optimal directions: the least-squares dictionary for given codes.

D = argmin |X - W D|^2 = (W'W)^-1 W'X                  (eqs. (3)-(4) of the LKDL paper)
"""

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.engine.cpu.ksvd import residuals
from kernelatoms.learning.atoms import replace_unused
from kernelatoms.learning.moments import Moments
from kernelatoms.space.codes import Codes

Array = NDArray[Any]


def best_dictionary(moments: Moments, dictionary: Array) -> tuple[Array, Array, Moments]:
    """Return the dictionary of least squares at unit norm, the norms it had, and rescaled sums.

    Atoms without users keep their place; so does the whole dictionary should rounding in a
    nearly singular W'W make the solution worse than what there is.
    """
    used = np.diagonal(moments.gram) > 0
    D = dictionary.astype(np.float64)
    if used.any():
        # At unit diagonal an atom with small coefficients weighs as much as any other: the
        # solver's rank decision is then about directions and not about sizes.
        sizes = np.sqrt(np.diagonal(moments.gram)[used])
        gram = moments.gram[np.ix_(used, used)] / sizes / sizes[:, None]
        cross = moments.cross[used] / sizes[:, None]
        solution = _solve(gram, cross) / sizes[:, None]
        candidate = D.copy()
        candidate[used] = np.where(solution.any(axis=1, keepdims=True), solution, D[used])
        if moments.objective(candidate) <= moments.objective(D):
            D = candidate
    norms = np.linalg.norm(D, axis=1)
    norms[norms == 0] = 1.0
    return (D / norms[:, None]).astype(dictionary.dtype), norms, moments.with_atoms_scaled(norms)


def _solve(gram: Array, cross: Array) -> Array:
    """Solve by Cholesky, which is fast, or where codes are nearly dependent by pivoted QR."""
    try:
        factor = scipy.linalg.cholesky(gram, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        factor = None
    # Diagonals squared are what is left of unit columns: below this, solutions lose their digits.
    if factor is None or np.diagonal(factor).min() ** 2 < 1e-8:
        return scipy.linalg.lstsq(gram, cross, lapack_driver="gelsy")[0]
    return scipy.linalg.cho_solve((factor, True), cross, check_finite=False)


def mod_update(X: Array, dictionary: Array, codes: Codes) -> tuple[Array, Codes]:
    """Replace all atoms by the best ones for these codes; unused atoms by the worst signals."""
    moments = Moments.of(X, codes)
    new, norms, _ = best_dictionary(moments, dictionary)
    values = (codes.values * norms[codes.indices]).astype(codes.values.dtype)
    R = residuals(X, new, codes.indices, values)
    error = np.vecdot(R, R)
    replace_unused(new, np.diagonal(moments.gram) > 0, X, error)
    return new, Codes(codes.indices, values, codes.n_atoms, error)
