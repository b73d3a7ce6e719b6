"""The best dictionary for given codes, from sums over rows (``moments``).

``LeastSquares`` is MOD, the method of optimal directions, for greedy codes:

    D = argmin |X - W D|^2 = (W'W)^-1 W'X      (eqs. (3)-(4) of the LKDL paper)

scaled to unit norm. With l1 codes longer atoms would make codes smaller and evade the penalty: then
D is the minimum under |d_k| <= 1, by ``BlockDescent`` (Mairal et al. 2010, Algorithm 2). Batches of
it are online dictionary learning.

``Procrustes`` is for thresholded codes over orthonormal atoms: the minimum under D D' = I is the
polar factor U V' of W'X = U S V' (Proposition 2, eq. (6), of the K-SAD paper).

See docs/decisions/034-online-learning.md and docs/decisions/039-ksad-coordinates.md.
"""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes, DenseCodes
from kernelatoms.coding.pursuits import OMP, Lasso, Threshold
from kernelatoms.engine import Array, machine
from kernelatoms.features.linear_algebra import solve_positive_all
from kernelatoms.learning.missing import relaxation
from kernelatoms.learning.moments import Moments, UpdateFromMoments
from kernelatoms.learning.runs import Run, TakeRequest, UpdateResult, run
from kernelatoms.rows import ArrayRows, RowSource, draw

# Sweeps of block coordinate descent: with all rows, and after a batch, where sums are partly of old
# codes and the last atoms are a good start.
_SWEEPS, _SWEEPS_A_BATCH = 20, 2
# The weight of the old atoms in a rotation, as a share of the sums: directions without codes do not
# change.
_INERTIA = 1e-12


class LeastSquares(UpdateFromMoments):
    """Replace all atoms by the best ones for greedy codes, at unit norm."""

    accepts: tuple[type, ...] = (OMP,)

    def solve(self, sums: Moments, dictionary: Array) -> UpdateResult:
        """Return the solution of least squares."""
        return self.solve_all([(sums, dictionary)])[0]

    def solve_all(self, given: list[tuple[Moments, Array]]) -> list[UpdateResult]:
        """Return the solutions of many systems; small ones of a device are solved together."""
        best = best_dictionaries([sums for sums, _ in given], [atoms for _, atoms in given])
        return [UpdateResult(new, sums.objective(new), sums) for new, _, sums in best]


class BlockDescent(UpdateFromMoments):
    """Improve one atom after another for l1 codes, none longer than 1."""

    accepts: tuple[type, ...] = (Lasso,)

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def solve(self, sums: Moments, dictionary: Array) -> UpdateResult:
        """Return better atoms; unused ones do not change."""
        return self._descend(sums, dictionary, _SWEEPS)

    def add_batch(
        self, sums: Moments, dictionary: Array, past: Moments | None, decay: float
    ) -> UpdateResult:
        """Improve a dictionary by the sums of a batch and those of earlier ones."""
        sums = sums if past is None else past.scaled(decay) + sums
        return self._descend(sums, dictionary, _SWEEPS_A_BATCH)

    def _descend(self, sums: Moments, dictionary: Array, n_sweeps: int) -> UpdateResult:
        new = dictionary.copy()
        machine(new).descend_atoms(sums.gram, sums.cross, new, n_sweeps)
        return UpdateResult(new, 0.5 * sums.objective(new) + self.alpha * sums.l1_norm, sums)

    def _lengths(self, norms: Array) -> Array:
        return np.maximum(norms, 1.0)  # none longer than 1


def best_dictionaries(
    sums: list[Moments], dictionaries: list[Array]
) -> list[tuple[Array, Array, Moments]]:
    """Return dictionaries of least squares at unit norm, the norms they had, and rescaled sums."""
    used = [np.diagonal(moments.gram) > 0 for moments in sums]
    some = [i for i, atoms in enumerate(used) if atoms.any()]
    # At unit diagonal an atom with small coefficients weighs as much as any other: the solver's
    # rank decision is then about directions and not about sizes.
    sizes = {i: np.sqrt(np.diagonal(sums[i].gram)[used[i]]) for i in some}
    solutions = solve_positive_all(
        [sums[i].gram[np.ix_(used[i], used[i])] / sizes[i] / sizes[i][:, None] for i in some],
        [sums[i].cross[used[i]] / sizes[i][:, None] for i in some],
    )
    candidates = {
        i: solution / sizes[i][:, None] for i, solution in zip(some, solutions, strict=True)
    }
    return [
        _better(moments, dictionary, used[i], candidates.get(i))
        for i, (moments, dictionary) in enumerate(zip(sums, dictionaries, strict=True))
    ]


def _better(
    moments: Moments, dictionary: Array, used: NDArray[np.bool_], solution: Array | None
) -> tuple[Array, Array, Moments]:
    """Return the solution for the atoms in use where it is better, at unit norm."""
    D = dictionary.astype(np.float64)
    if solution is not None:  # unused atoms do not change, nor do all if rounding makes it worse
        candidate = D.copy()
        candidate[used] = np.where(solution.any(axis=1, keepdims=True), solution, D[used])
        missing = moments.missing_shares()
        if missing is not None:
            candidate = D + relaxation(missing) * (candidate - D)
        if moments.objective(candidate) <= moments.objective(D):
            D = candidate
    norms = np.linalg.norm(D, axis=1)
    norms[norms == 0] = 1.0
    return (D / norms[:, None]).astype(dictionary.dtype), norms, moments.with_atoms_scaled(norms)


class Procrustes(UpdateFromMoments):
    """Rotate an orthonormal dictionary to the best one for soft-threshold codes.

    ``l1_weight`` is that of |W|_1 beside |X - W Z|^2, for the objective alone.
    """

    accepts: tuple[type, ...] = (Threshold,)

    def __init__(self, l1_weight: float) -> None:
        self.l1_weight = l1_weight

    def sums(self, rows: Array, codes: Codes, dictionary: Array) -> Moments:
        """Return the sums over these rows; of W'W only the diagonal, since no more is needed."""
        assert isinstance(codes, DenseCodes)
        W = codes.weights
        return Moments(
            gram=np.diag(np.einsum("ij,ij->j", W, W, dtype=np.float64)),
            cross=machine(rows).cross_products(W, rows),
            energy=float(machine(rows).squared_norms(rows).sum()),
            l1_norm=codes.l1_norm(),
        )

    def solve(self, sums: Moments, dictionary: Array) -> UpdateResult:
        """Return the best rotation."""
        new = rotate_to(sums.cross, dictionary)
        return UpdateResult(new, sums.objective(new) + self.l1_weight * sums.l1_norm, sums)

    def new_atoms(self, rows: Array) -> Array | None:
        """Return None: all atoms form one rotation, and none can be chosen by itself."""
        return None


def orthonormal_start(rows: Array, n_atoms: int, rng: np.random.RandomState) -> Array:
    """Return the orthonormal atoms nearest to random rows (n, n_features), n_features at most n."""
    return run(draw_orthonormal(ArrayRows(rows), n_atoms, rng))


def draw_orthonormal(rows: RowSource, n_atoms: int, rng: np.random.RandomState) -> Run:
    """Return the same for the rows of a source; a run."""
    chosen = yield TakeRequest(rows, np.sort(draw(rows.count(), n_atoms, rng)))
    return polar_factor(chosen.astype(np.float64)).astype(chosen.dtype)


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
