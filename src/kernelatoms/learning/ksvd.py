"""K-SVD, and D-KSVD and LC-KSVD, which are K-SVD on signals with labels as additional features.

K-SVD improves every atom and its coefficients in turn (eq. (2) of the LKDL paper). Where not all
rows are at hand, ``KSVDSums`` improves atoms by sums over them.

With signals as columns of X, codes G with at most q nonzeros per signal, H the one-hot class of
every signal and Q indicators of all atoms of its class, LC-KSVD2 minimises over D, T, Theta and G

    |X - D G|^2 + alpha |Q - T G|^2 + beta |H - Theta G|^2          (eq. (9) of the LKDL paper)

which is K-SVD on [X; sqrt(alpha) Q; sqrt(beta) H] (eq. (10)). LC-KSVD1 leaves the last term out,
D-KSVD the second one.

Rows of Q that belong to atoms of one class are equal and stay equal to the class's row of H. With
n_c atoms of class c, both terms are therefore sum_c (alpha n_c + beta) |h_c - theta_c G|^2 with one
row per class: the same atoms and codes from shorter signals (I. Kviatkovsky et al., *On the
equivalence of the LC-KSVD and the D-KSVD algorithms*, IEEE PAMI 39(2), 2017).

Here signals are rows.

See docs/decisions/033-ksvd-sweeps.md, docs/decisions/062-ksvd-from-sums.md and
docs/decisions/037-lcksvd-class-weights.md.
"""

from dataclasses import replace

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes, PaddedCodes
from kernelatoms.coding.problem import linear_problems
from kernelatoms.coding.pursuits import OMP
from kernelatoms.engine import Array, is_device_array, machine
from kernelatoms.learning.loop import learn
from kernelatoms.learning.missing import missing_shares, relaxation
from kernelatoms.learning.mod import LeastSquares, best_dictionaries
from kernelatoms.learning.moments import Moments
from kernelatoms.learning.runs import UpdateResult
from kernelatoms.learning.state import LearnerState, atoms_from_rows, unit_rows

# Sweeps over all atoms per pass, and alternations towards the leading singular pair of an atom's
# error in each. Coding costs far more than a sweep, and two sweeps of two lower the objective
# below that of one sweep of exact SVDs (benchmarks/RESULTS.md).
N_SWEEPS = 2
N_ALTERNATIONS = 2
# How far atoms go from where they are towards, and past, the best ones for the codes (KSVDSums).
_STEP = 1.5


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
        swept, exponents, partial = [], [], []
        for rows, codes, dictionary in given:
            assert isinstance(codes, PaddedCodes)
            new, values = dictionary.copy(), codes.values.copy()
            missing = missing_shares(rows, codes)
            if missing is None:
                R = engine.residuals(rows, new, codes.indices, values)
            else:
                factors = relaxation(missing)
                R = engine.observed_residuals(rows, new, codes.indices, values, factors)
            partial.append(missing is not None)
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
        for (rows, codes, _), (R, new, _, values), exponent, misses in zip(
            given, swept, exponents, partial, strict=True
        ):
            assert isinstance(codes, PaddedCodes)
            if exponent:
                R, values = np.ldexp(R, exponent), np.ldexp(values, exponent)
            if misses:
                R = engine.observed_residuals(rows, new, codes.indices, values)
            codes = replace(codes, values=values, error=engine.squared_norms(R))
            results.append(UpdateResult(new, float(codes.error.sum()), codes=codes))
        return results

    def new_atoms(self, rows: Array) -> Array:
        """Return rows at unit norm."""
        return unit_rows(rows)


class KSVDSums(LeastSquares):
    """Improve all atoms by sums over rows, of which no more than a block need be at hand.

    A sweep of K-SVD refreshes coefficients, and needs the rows for it. What it gains in a pass over
    the one step of ``LeastSquares``, from D to the best dictionary S for the codes, is gained by a
    longer step in the same direction:

        D + 3/2 (S - D),   then at unit norm.

    The objective for the codes is quadratic in D: there it is f(S) + 1/4 (f(D) - f(S)), which is
    never more than f(D). Batches, whose sums are mostly of old codes, take the step to S. Steps of
    features that miss values are longer (``missing``).
    """

    def solve_all(self, given: list[tuple[Moments, Array]]) -> list[UpdateResult]:
        """Return the dictionaries of a longer step each."""
        complete = [replace(sums, missing=None) for sums, _ in given]
        best = best_dictionaries(complete, [atoms for _, atoms in given])
        return [
            _overstep(sums, atoms, new * norms[:, None])
            for (sums, atoms), (new, norms, _) in zip(given, best, strict=True)
        ]

    def add_batch(
        self, sums: Moments, dictionary: Array, past: Moments | None, decay: float
    ) -> UpdateResult:
        """Improve a dictionary by the sums of a batch and those of earlier ones."""
        return LeastSquares().add_batch(sums, dictionary, past, decay)


def _overstep(sums: Moments, dictionary: Array, solution: Array) -> UpdateResult:
    """Go past the solution of least squares; atoms that would vanish go to it."""
    D = dictionary.astype(np.float64, copy=False)
    missing = sums.missing_shares()
    beyond = D + (_STEP if missing is None else relaxation(missing, _STEP)) * (solution - D)
    beyond = np.where(beyond.any(axis=1, keepdims=True), beyond, solution)
    norms = np.linalg.norm(beyond, axis=1)
    norms[norms == 0] = 1.0
    new = (beyond / norms[:, None]).astype(dictionary.dtype)
    sums = sums.with_atoms_scaled(norms)
    return UpdateResult(new, sums.objective(new), sums)


def sums_of_uses(state: LearnerState, energy: float) -> Moments:
    """Return sums for batches to go on from after a fit by sweeps, which adds none up.

    As if each use of an atom had this energy and were of this atom alone: the best atoms for the
    sums are those of the state, and so is the objective.
    """
    weights = energy * state.use
    cross = weights[:, None] * state.best.astype(np.float64, copy=False)
    total = state.objective[state.best_pass] + float(weights.sum())
    return Moments(np.diag(weights), cross, total)


def _far_from_one(values: Array) -> int:
    """Return the exponent of the largest coefficient; 0 if its fourth power is in range."""
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    return 0 if 2.0**-16 <= largest <= 2.0**16 or largest == 0 else int(np.frexp(largest)[1])


# Joint atoms with features below this many eps, beside their labels, are rounding.
_ROUNDING = 100


def allocate_atoms(n_atoms: int, class_sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how many atoms each class gets: in proportion to its rows, at least 1, at most all."""
    ideal = n_atoms * class_sizes / class_sizes.sum()
    counts = np.clip(ideal.astype(np.intp), 1, class_sizes)
    while counts.sum() != n_atoms:
        step = 1 if counts.sum() < n_atoms else -1
        possible = counts < class_sizes if step == 1 else counts > 1
        lack = np.where(possible, step * (ideal - counts), -np.inf)
        counts[int(lack.argmax())] += step
    return counts


def class_atoms(
    X: Array, labels: NDArray[np.intp], counts: NDArray[np.intp], n_nonzero: int, *,
    max_iter: int, tol: float, seeds: NDArray[np.intp],
) -> Array:  # fmt: skip
    """Return atoms learned by K-SVD for every class separately, class after class."""

    def learn_class(c: int) -> Array:
        rows, rng = X[labels == c], np.random.RandomState(seeds[c])
        state = LearnerState.start(atoms_from_rows(rows, int(counts[c]), rng), rng)
        pursuit = OMP(min(n_nonzero, int(counts[c])))
        learn(
            linear_problems, rows, pursuit, KSVDUpdate(), state, max_iter=max_iter, tol=tol,
        )  # fmt: skip
        return state.best

    return np.concatenate(machine(X).each(learn_class, range(len(counts))))


def label_map(
    codes: Codes, labels: NDArray[np.intp], n_classes: int, ridge: float,
    scale: Array | None = None,
) -> Array:  # fmt: skip
    """Return the ridge regression of class marks on codes, (n_classes, n_atoms), in float64.

    Theta = H G' (G G' + ridge I)^-1: LC-KSVD1's decision, and where the others start. Where codes
    are those of signals times ``scale`` (n_samples,), so are the marks.
    """
    marks = np.eye(n_classes)[labels]
    sums = Moments.of(marks if scale is None else scale[:, None] * marks, codes)
    gram = sums.gram + ridge * np.eye(len(sums.gram))
    with machine(gram).one_blas_thread():  # whose sums do not depend on the number of threads
        return scipy.linalg.solve(gram, sums.cross, assume_a="pos").T


def with_labels(X: Array, labels: NDArray[np.intp], weights: Array) -> Array:
    """Return signals with a row of marks each, sqrt(weight) at their class: eq. (10)."""
    rows = np.zeros((len(X), X.shape[1] + len(weights)), X.dtype)
    rows[:, : X.shape[1]] = X
    rows[np.arange(len(X)), X.shape[1] + labels] = np.sqrt(weights)[labels]
    return rows


def atoms_with_map(atoms: Array, map_: Array, weights: Array) -> Array:
    """Return atoms, each with its column of a label map, at unit norm together."""
    joint = np.concatenate([atoms, np.sqrt(weights) * map_.T], axis=1)
    return unit_rows(joint.astype(atoms.dtype))


def split_joint_atoms(joint: Array, weights: Array) -> tuple[Array, Array]:
    """Return unit atoms and the label map of joint atoms, both scalings undone.

    Marks were multiplied by sqrt(weight), and atoms are |d_k| < 1 long beside them: codes over unit
    atoms are |d_k| times as large. Maps of classes without weight are 0, and so are atoms that are
    marks alone, up to rounding, and their maps.
    """
    n_features = joint.shape[1] - len(weights)
    atoms, marks = joint[:, :n_features], joint[:, n_features:].astype(np.float64)
    atoms = np.ascontiguousarray(atoms)
    norms = np.sqrt(machine(atoms).squared_norms(atoms).astype(np.float64))
    is_rounding = norms <= _ROUNDING * np.finfo(atoms.dtype).eps
    atoms[is_rounding], norms[is_rounding] = 0.0, 0.0
    roots = np.sqrt(weights)
    scale = norms[:, None] * roots
    map_ = np.divide(marks, scale, out=np.zeros_like(marks), where=scale > 0)
    return unit_rows(atoms), map_.T
