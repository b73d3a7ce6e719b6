"""Examples 1 and 2: ten points on the unit sphere, six atoms, with and without second-order terms.

The paper shows one draw. Here every seed is a draw; atoms stay on the sphere, where the points
are: without a bound on them, ever longer atoms would make the penalty vanish.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from kernelatoms.coding import LinearProblem, lasso
from reproduction.fksc.data import unit_rows
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

INPUT, LIFTED = "input space", "second-order terms"
EXTENDED, RECODED = "input space, then extended", "input space, extended, coded anew"
ALLOWED_ERRORS = (0.4, 0.2, 0.1, 0.05)

_N_POINTS, _N_ATOMS, _N_STARTS = 10, 6, 2
# From few nonzeros to nearly all; each dictionary starts from the one before.
_ALPHAS = np.geomspace(0.5, 0.004, 14)
_PASSES = 10


class Solution(NamedTuple):
    """Atoms in the input space, and the points' codes over them."""

    atoms: Array
    codes: Array
    alpha: float

    @property
    def n_nonzero(self) -> int:
        """NNZE of the paper."""
        return int(np.count_nonzero(self.codes))


def lift(points: Array) -> Array:
    """Return the points with all their second-order terms appended."""
    x, y, z = points.T
    return np.column_stack([points, points**2, x * y, x * z, y * z])


def error(targets: Array, atoms: Array, codes: Array) -> float:
    """Return AE, half the squared norm of what the codes leave."""
    return 0.5 * float(np.sum((targets - codes @ atoms) ** 2))


def draw_points(seed: int) -> Array:
    """Return points uniform on the sphere."""
    return unit_rows(np.random.default_rng(seed).standard_normal((_N_POINTS, 3)))


def measure_example(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return nonzeros and errors of the sparsest solution within the error allowed, x.

    "lifted_error" is the error with second-order terms, of the atoms extended by theirs.
    """
    points, method = draw_points(seed), setting["method"]
    found = sparsest(method == LIFTED, seed, setting["x"])
    atoms, codes = found.atoms, found.codes
    if method == RECODED:
        # As free to spend nonzeros as the solution that it is compared with.
        alpha = sparsest(True, seed, setting["x"]).alpha
        codes = _code(lift(points), lift(atoms), alpha)
    within = error(points, atoms, codes)
    return {
        "nonzeros": float(np.count_nonzero(codes)),
        "error": within,
        "reached": float(within < setting["x"]),
        "lifted_error": error(lift(points), lift(atoms), codes),
    }


def sparsest(lifted: bool, seed: int, allowed: float) -> Solution:
    """Return the solution of fewest nonzeros within the error; the closest, if there is none."""
    points = draw_points(seed)
    solutions = _learned(lifted, seed)
    good = [s for s in solutions if error(points, s.atoms, s.codes) < allowed]
    if good:
        return min(good, key=lambda s: s.n_nonzero)
    return min(solutions, key=lambda s: error(points, s.atoms, s.codes))


@lru_cache(maxsize=2)
def _learned(lifted: bool, seed: int) -> list[Solution]:
    """Learn dictionaries for every penalty from several starts."""
    points = draw_points(seed)
    rng = np.random.default_rng([seed, 1])
    solutions = []
    with threadpool_limits(1, "blas"):  # the matrices are tiny: helper threads would only spin
        for _ in range(_N_STARTS):
            atoms = points[rng.permutation(_N_POINTS)[:_N_ATOMS]]
            for alpha in _ALPHAS:
                atoms, codes = _learn(points, atoms, float(alpha), lifted)
                solutions.append(Solution(atoms, codes, float(alpha)))
    return solutions


def _learn(points: Array, atoms: Array, alpha: float, lifted: bool) -> tuple[Array, Array]:
    """Alternate codes and atoms, as Algorithm 1 does, with explicit features for the kernel's."""
    features = lift if lifted else np.asarray
    targets = features(points)
    codes = _code(targets, features(atoms), alpha)
    for _ in range(_PASSES):
        atoms = _better_atoms(targets, atoms, codes, lifted)
        codes = _code(targets, features(atoms), alpha)
    return atoms, codes


def _code(targets: Array, atoms: Array, alpha: float) -> Array:
    return lasso(LinearProblem(targets, atoms), alpha, gap_tol=1e-9).to_dense()


def _better_atoms(targets: Array, atoms: Array, codes: Array, lifted: bool) -> Array:
    """Return atoms on the sphere that leave less, the codes held fixed."""

    def left_and_slope(flat: Array) -> tuple[float, Array]:
        rows = flat.reshape(atoms.shape)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit = rows / lengths
        residual = codes @ (lift(unit) if lifted else unit) - targets
        slope = codes.T @ residual
        if lifted:
            slope = _through_lift(unit, slope)
        # Along the sphere only: the length of a row changes nothing.
        slope -= np.vecdot(slope, unit)[:, None] * unit
        return 0.5 * float(np.sum(residual**2)), (slope / lengths).ravel()

    found = minimize(
        left_and_slope, atoms.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 20}
    )
    return unit_rows(found.x.reshape(atoms.shape))


def _through_lift(points: Array, slope: Array) -> Array:
    """Return the gradient in the input space for one in the lifted: the transposed Jacobian."""
    x, y, z = points.T
    xy, xz, yz = slope[:, 6:].T
    mixed = np.column_stack([xy * y + xz * z, xy * x + yz * z, xz * x + yz * y])
    return slope[:, :3] + 2 * points * slope[:, 3:6] + mixed


def _settings(*methods: str) -> list[Setting]:
    return [{"method": method, "x": x} for method in methods for x in ALLOWED_ERRORS]


EXAMPLE_1 = Study(
    name="fksc/example1",
    dataset="none",
    quick=Size(_settings(INPUT, LIFTED), 10, "15 s"),
    full=Size(_settings(INPUT, LIFTED), 50, "40 s"),
    measure=measure_example,
)
EXAMPLE_2 = Study(
    name="fksc/example2",
    dataset="none",
    quick=Size(_settings(LIFTED, EXTENDED, RECODED), 10, "15 s"),
    full=Size(_settings(LIFTED, EXTENDED, RECODED), 50, "40 s"),
    measure=measure_example,
)
