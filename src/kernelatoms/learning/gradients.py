"""Gradient steps of explicit atoms in input space: KSCDL's dictionary step.

For signals X coded as W over phi(D) (eqs. (3), (5) and (10) of the FKSC paper), with B = W'W,

    L(D) = 1/2 sum k(x, x) - <W, k(X, D)> + 1/2 <B, k(D, D)> + alpha |W|_1.

Every kernel with a gradient changes by d k(x, y) / d y = a x + b y, so that

    dL/dD = H D - Q'X,   Q = W * a(X, D),   H = B * a(D, D) + diag(stay)          (eq. (11))
    stay_j = sum_l B_lj b(d_l, d_j) - sum_i W_ij b(x_i, d_j).

All but B's terms are sums over rows, which add up over blocks, files or batches.

The step goes towards H^-1 Q'X, where (11) vanishes if a and b stay as they are: MOD under the
linear kernel, the joint mean shift of all atoms under RBF. Where codes are optimal, H is positive
definite and this is downhill.

See docs/decisions/036-kscdl-steps.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes
from kernelatoms.coding.pursuits import KSC, Lasso
from kernelatoms.engine import Array, machine
from kernelatoms.learning.runs import UpdateResult
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.gradients import weighted_values

# A step must achieve this share of the decrease that the slope predicts (Armijo).
_ENOUGH = 1e-4
# How often a step is halved before its direction is given up.
_HALVINGS_JOINT, _HALVINGS_SAFE = 8, 30
# Sweeps over the atoms towards the best ones of bounded norm.
_SWEEPS = 3
# Ranges of rows that have sums of their own.
_MOST_SHARES = 16
# Kernel values computed at once, and the fewest rows of them.
_BLOCK_NUMBERS, _FEWEST_ROWS = 1 << 19, 128
# A share of the diagonal, added to H: atoms with the same signals keep separate steps.
_RIDGE = 1e-9
# An objective that all others are below; no infinity, which files of states cannot hold.
_ANY = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class GradientSums:
    """Sums over rows of a coded block: a + b is that of both blocks.

    ``constant`` is 1/2 sum k(x, x) + alpha |W|_1, ``inner`` <W, k(X, D)>, ``gram`` W'W, ``pull``
    the weighted gradient of k(X, D), and ``stay`` the sum over rows of W * b(X, D).
    """

    constant: float
    inner: float
    gram: Array
    pull: Array
    stay: Array

    @classmethod
    def of(cls, kernel: Kernel, X: Array, codes: Any, atoms: Array, alpha: float) -> "GradientSums":
        """Return the sums over these rows and their codes (CSR), for atoms as they are."""
        slopes = kernel.slopes(X, atoms)
        penalty = alpha * float(np.abs(codes.data).sum())
        stay = np.zeros(len(atoms))
        if slopes.along_y is not None:
            stay = np.asarray(weighted_values(codes, slopes.along_y).sum(axis=0))
        return cls(
            0.5 * float(kernel.diag(X).sum()) + penalty,
            float(weighted_values(codes, slopes.values).sum()),
            (codes.T @ codes).toarray(),
            kernel.weighted_gradient(codes, X, atoms, slopes),
            stay,
        )

    def __add__(self, other: "GradientSums") -> "GradientSums":
        return GradientSums(
            self.constant + other.constant, self.inner + other.inner, self.gram + other.gram,
            self.pull + other.pull, self.stay + other.stay,
        )  # fmt: skip

    def finish(self, kernel: Kernel, atoms: Array) -> "Gradient":
        """Return L, its gradient (11) and the matrix H."""
        slopes = kernel.slopes(atoms, atoms)
        curvature = self.gram * slopes.along_x
        if slopes.along_y is not None:
            stay = (self.gram * slopes.along_y).sum(axis=0) - self.stay
            curvature[np.diag_indices(len(atoms))] += stay
        return Gradient(
            objective=self.constant + 0.5 * float(np.vdot(self.gram, slopes.values)) - self.inner,
            gradient=kernel.weighted_gradient(self.gram, atoms, atoms, slopes) - self.pull,
            curvature=curvature,
        )


class Gradient(NamedTuple):
    """L(D), dL/dD and H at some atoms."""

    objective: float
    gradient: Array
    curvature: Array


class Step(NamedTuple):
    """The result of a step: atoms, their L, and the H of the step."""

    atoms: Array
    objective: float
    curvature: Array


def sum_gradients(kernel: Kernel, X: Array, codes: Any, atoms: Array, alpha: float) -> GradientSums:
    """Return the sums over all rows, block by block: k(X, atoms) is never held."""

    def part(rows: range) -> GradientSums:
        return _sums_of(kernel, X, codes, atoms, alpha, rows)

    return reduce(add, machine(X).each(part, _shares(X)))


def _sums_of(
    kernel: Kernel, X: Array, codes: Any, atoms: Array, alpha: float, rows: range | None = None
) -> GradientSums:
    """Return the sums over some rows, or all, in one thread."""
    blocks = _blocks(range(len(X)) if rows is None else rows, len(atoms))
    return reduce(add, (GradientSums.of(kernel, X[b], codes[b], atoms, alpha) for b in blocks))


def coded_loss(kernel: Kernel, X: Array, codes: Any, gram: Array, atoms: Array) -> float:
    """Return 1/2 <gram, k(D, D)> - <W, k(X, D)>, the part of L that depends on atoms."""

    def part(rows: range) -> float:
        blocks = _blocks(rows, len(atoms))
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is no improvement
            return sum(float(weighted_values(codes[b], kernel(X[b], atoms)).sum()) for b in blocks)

    with np.errstate(over="ignore", invalid="ignore"):
        among = 0.5 * float(np.vdot(gram, kernel(atoms, atoms)))
    return among - sum(machine(X).each(part, _shares(X)))


def move_atoms(
    kernel: Kernel,
    X: Array,
    codes: Any,
    atoms: Array,
    alpha: float,
    *,
    max_norm: float | None = None,
    past: Array | None = None,
) -> Step:
    """Take one step downhill on L for given codes.

    - ``X`` (n, n_features), ``codes`` (n, n_atoms): signals, in float64, and their codes (CSR).
    - ``atoms``, ``max_norm``: where to start; no atom becomes, or is, longer than this.
    - ``past`` (n_atoms, n_atoms): the sum of H over earlier batches: the more an atom was used
      before, the less it moves.
    - result: L is never higher than before: where no step lowers it, atoms stay. ``curvature``
      includes ``past``.
    """
    sums = sum_gradients(kernel, X, codes, atoms, alpha)
    here = sums.finish(kernel, atoms)
    curvature = here.curvature if past is None else here.curvature + past
    used = np.diagonal(sums.gram) > 0
    for trial, enough in trials(kernel, atoms, here, curvature, used, max_norm):
        reached = sums.constant + coded_loss(kernel, X, codes, sums.gram, trial)
        if reached <= enough:
            return Step(trial, reached, curvature)
    return Step(atoms, here.objective, curvature)


def trials(
    kernel: Kernel,
    atoms: Array,
    here: Gradient,
    curvature: Array,
    used: NDArray[np.bool_],
    max_norm: float | None,
) -> Iterator[tuple[Array, float]]:
    """Yield atoms to try, ever nearer to those here, and the objective that is low enough.

    Only atoms in use move.
    """
    for towards, halvings, gradient in _ways(kernel, atoms, here.gradient):
        way = np.zeros_like(atoms)
        found = towards(curvature[np.ix_(used, used)], gradient[used], atoms[used], max_norm)
        if found is None:
            continue
        way[used] = found
        slope = float(np.vdot(here.gradient, way))
        if not slope < 0:
            continue
        length = 1.0
        for _ in range(halvings):
            yield atoms + length * way, here.objective + _ENOUGH * length * slope
            length /= 2


def _ways(kernel: Kernel, atoms: Array, gradient: Array) -> list[tuple[Any, int, Array]]:
    """Return directions to try, how often to halve the step, and the gradients behind them.

    Gradients are divided by the steepness of columns (``column_sizes``), so that H is right for
    each. Bounds on norms may turn that uphill; then the plain gradient is used.
    """
    sizes = kernel.column_sizes(atoms)
    scaled = gradient if sizes is None else gradient / sizes
    ways = [(_joint_step, _HALVINGS_JOINT, scaled), (_safe_step, _HALVINGS_SAFE, scaled)]
    return ways if sizes is None else [*ways, (_safe_step, _HALVINGS_SAFE, gradient)]


def project_to_ball(atoms: Array, max_norm: float | None) -> Array:
    """Return the atoms, those that are too long shortened to ``max_norm``."""
    if max_norm is None:
        return atoms
    near, exponents = machine(atoms).rescale_if_needed(atoms)
    norms = np.linalg.norm(near, axis=1, keepdims=True)
    if exponents is not None:
        norms = np.ldexp(norms.astype(np.float64), exponents[:, None])
    factors = np.minimum(1, max_norm / np.where(norms > 0, norms, 1))
    return (atoms * factors).astype(atoms.dtype, copy=False)


def _joint_step(H: Array, gradient: Array, atoms: Array, max_norm: float | None) -> Array | None:
    """Return the way to the minimum of <gradient, S> + 1/2 <H S, S> over S; None if it has none.

    With bounds, one atom after another goes to its best place within the ball: exact in each, since
    H has one curvature in all directions of an atom.
    """
    diagonal = np.diagonal(H)
    if not len(H) or not (diagonal > 0).all():
        return None
    try:
        factor = scipy.linalg.cho_factor(H + _RIDGE * np.diag(diagonal), check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    step = -scipy.linalg.cho_solve(factor, gradient, check_finite=False)
    if max_norm is None or (np.linalg.norm(atoms + step, axis=1) <= max_norm).all():
        return np.asarray(step)
    # Bounds are convex sets: all of the way is within them if its end is.
    step = np.zeros_like(atoms)
    for _ in range(_SWEEPS):
        for j, h in enumerate(diagonal):
            best = atoms[j] + step[j] - (gradient[j] + H[j] @ step) / h
            step[j] = project_to_ball(best[None], max_norm)[0] - atoms[j]
    return step


def _safe_step(H: Array, gradient: Array, atoms: Array, max_norm: float | None) -> Array | None:
    """Return a descent direction for any H: every atom by itself along the gradient."""
    scale = np.abs(H).sum(axis=1, keepdims=True)
    scale[scale == 0] = 1
    return project_to_ball(atoms - gradient / scale, max_norm) - atoms


def _shares(X: Array) -> list[range]:
    """Return the rows in few ranges with sums of their own, whatever the number of threads."""
    n_rows = len(X)
    size = max(machine(X).fair_share(n_rows), -(-n_rows // _MOST_SHARES))
    return [range(i, min(i + size, n_rows)) for i in range(0, n_rows, size)]


def _blocks(rows: range, n_atoms: int) -> Iterator[slice]:
    size = max(_FEWEST_ROWS, _BLOCK_NUMBERS // max(n_atoms, 1))
    for start in range(rows.start, rows.stop, size):
        yield slice(start, min(start + size, rows.stop))


class GradientStep:
    """Move all atoms one step downhill on the objective of their codes.

    Parameters
    ----------
    kernel : Kernel
        One with a gradient.
    alpha : float
        Weight of |w|_1.
    max_norm : float or None
        The longest that atoms may be.
    """

    accepts: tuple[type, ...] = (Lasso, KSC)

    def __init__(self, kernel: Kernel, alpha: float, max_norm: float | None = None) -> None:
        self.kernel, self.alpha, self.max_norm = kernel, alpha, max_norm

    def apply(self, rows: Array, codes: Codes, dictionary: Array) -> UpdateResult:
        """Improve a dictionary, all rows and their codes at hand."""
        return self.take_batch(rows, codes, dictionary, None, 1.0)

    def take_batch(
        self, rows: Array, codes: Codes, dictionary: Array, past: Array | None, decay: float
    ) -> UpdateResult:
        """Improve a dictionary by a batch; the curvature of earlier ones shortens the step."""
        step = move_atoms(
            self.kernel, rows, codes.to_csr(), dictionary, self.alpha, max_norm=self.max_norm,
            past=None if past is None else decay * past,
        )  # fmt: skip
        return UpdateResult(step.atoms, step.objective, step.curvature)

    def sums(self, rows: Array, codes: Codes, atoms: Array) -> GradientSums:
        """Return the sums over these rows, for atoms as they are."""
        return _sums_of(self.kernel, rows, codes.to_csr(), atoms, self.alpha)

    def trials(
        self, atoms: Array, here: Gradient, used: NDArray[np.bool_]
    ) -> Iterator[tuple[Array, float]]:
        """Yield atoms to try, and the objective that is low enough: see ``trials``."""
        return trials(self.kernel, atoms, here, here.curvature, used, self.max_norm)

    def clear_atoms(self, sums: Array, atoms: NDArray[np.intp]) -> Array:
        """Return the curvature without any use of these atoms."""
        sums = sums.copy()
        sums[atoms] = 0
        sums[:, atoms] = 0
        return sums

    def padded(self, sums: Array, n_new: int) -> Array:
        """Return the curvature with ``n_new`` unused atoms more."""
        return np.pad(sums, (0, n_new))

    def new_atoms(self, rows: Array) -> Array | None:
        """Return rows, those that are too long shortened."""
        return project_to_ball(rows, self.max_norm)


class PlainStep(GradientStep):
    """The step (11) as printed, D - mu dL/dD with mu = ``step`` / L, without any check.

    The paper's L is a Lipschitz constant of the gradient: here the spectral norm of H. Unused atoms
    do not move.
    """

    def __init__(self, kernel: Kernel, alpha: float, max_norm: float | None, step: float) -> None:
        super().__init__(kernel, alpha, max_norm)
        self.step = step

    def apply(self, rows: Array, codes: Codes, dictionary: Array) -> UpdateResult:
        """Take the step."""
        W = codes.to_csr()
        sums = sum_gradients(self.kernel, rows, W, dictionary, self.alpha)
        here = sums.finish(self.kernel, dictionary)
        moved = self._moved(dictionary, here)
        if moved is None:
            return UpdateResult(dictionary, here.objective, here.curvature)
        objective = sums.constant + coded_loss(self.kernel, rows, W, sums.gram, moved)
        return UpdateResult(moved, objective, here.curvature)

    def trials(
        self, atoms: Array, here: Gradient, used: NDArray[np.bool_]
    ) -> Iterator[tuple[Array, float]]:
        """Yield where the step leads, whatever the objective is there."""
        moved = self._moved(atoms, here)
        if moved is not None:
            yield moved, _ANY

    def _moved(self, atoms: Array, here: Gradient) -> Array | None:
        """Return atoms after the step; None where no signal uses any."""
        steepest = float(np.linalg.norm(here.curvature, 2))
        if not steepest > 0:
            return None
        return project_to_ball(atoms - self.step / steepest * here.gradient, self.max_norm)

    def new_atoms(self, rows: Array) -> Array | None:
        """Return None: nothing replaces an atom."""
        return None
