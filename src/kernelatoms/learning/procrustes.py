"""The best orthonormal dictionary for given codes: the orthogonal Procrustes problem.

    Z = argmin |X - W Z|^2   over   Z Z' = I      is the polar factor U V' of W'X = U S V'

(Proposition 2, eq. (6), of the K-SAD paper; here signals, codes and atoms are rows). W'X is a sum
over rows, which adds up over batches too.

See docs/decisions/039-ksad-coordinates.md.
"""

from dataclasses import replace

import numpy as np
import scipy.linalg

from kernelatoms.coding.codes import Codes, DenseCodes
from kernelatoms.coding.pursuits import Threshold
from kernelatoms.engine import Array, machine
from kernelatoms.learning.loop import UpdateResult
from kernelatoms.learning.mod import AdditiveUpdate
from kernelatoms.learning.moments import Moments

# The weight of the old atoms, as a share of the sums: directions without codes do not change.
_INERTIA = 1e-12


class Procrustes(AdditiveUpdate):
    """Rotate an orthonormal dictionary to the best one for soft-threshold codes.

    ``l1_weight`` is that of |W|_1 beside |X - W Z|^2, for the objective alone.
    """

    accepts: tuple[type, ...] = (Threshold,)

    def __init__(self, l1_weight: float) -> None:
        self.l1_weight = l1_weight

    def accumulate(self, rows: Array, codes: Codes) -> Moments:
        """Return the sums over these rows; of W'W only the diagonal, since no more is needed."""
        assert isinstance(codes, DenseCodes)
        W = codes.weights
        return Moments(
            gram=np.diag(np.einsum("ij,ij->j", W, W, dtype=np.float64)),
            cross=machine(rows).cross_products(W, rows),
            energy=float(machine(rows).squared_norms(rows).sum()),
            l1_norm=codes.l1_norm(),
        )

    def apply(self, rows: Array, codes: Codes, dictionary: Array) -> UpdateResult:
        """Improve a dictionary, all rows and their codes at hand."""
        assert isinstance(codes, DenseCodes)
        sums = self.accumulate(rows, codes)
        new = rotate_to(sums.cross, dictionary)
        error, weights = np.empty(len(rows)), codes.weights

        def work(start: int, stop: int) -> None:
            # From the rows themselves: a small difference of large sums would be rounding.
            left = rows[start:stop] - weights[start:stop] @ new
            error[start:stop] = machine(left).squared_norms(left)

        machine(rows).for_blocks(len(rows), 2 * rows.shape[1], rows.itemsize, work)
        objective = float(error.sum()) + self.l1_weight * sums.l1_norm
        return UpdateResult(new, replace(codes, error=error), objective, sums)

    def from_sums(self, sums: Moments, codes: Codes, dictionary: Array) -> UpdateResult:
        """Return the best rotation."""
        new = rotate_to(sums.cross, dictionary)
        objective = sums.objective(new) + self.l1_weight * sums.l1_norm
        return UpdateResult(new, codes, objective, sums)

    def new_atoms(self, rows: Array) -> Array | None:
        """Return None: all atoms form one rotation, and none can be chosen by itself."""
        return None


def orthonormal_start(rows: Array, n_atoms: int, rng: np.random.RandomState) -> Array:
    """Return the orthonormal atoms nearest to random rows (n, n_features), n_features at most n."""
    chosen = rows[np.sort(rng.permutation(len(rows))[:n_atoms])].astype(np.float64)
    return polar_factor(chosen).astype(rows.dtype)


def rotate_to(cross: Array, atoms: Array) -> Array:
    """Return the orthonormal atoms of largest inner product with the sums ``cross``.

    Directions that no code uses are those of the old atoms. The sums are scaled to a size near 1.
    """
    cross = np.ldexp(cross, -np.frexp(np.abs(cross).max(initial=0))[1])
    inertia = _INERTIA * (float(np.linalg.norm(cross)) or 1.0)
    return polar_factor(cross + inertia * atoms.astype(np.float64)).astype(atoms.dtype)


def polar_factor(matrix: Array) -> Array:
    """Return the matrix of orthonormal rows that is nearest to a matrix (m, n) with m <= n."""
    with machine(matrix).one_blas_thread():  # else its last digits depend on how many there are
        U, _, Vt = scipy.linalg.svd(matrix, full_matrices=False, check_finite=False)
        return U @ Vt
