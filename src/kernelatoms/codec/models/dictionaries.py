"""Dictionaries: learned from rows, stored as models, and how they predict rows.

A row is a mean plus a few atoms, or the pre-image of a few. Atoms are learned from centred rows of
unit norm, so that all count equally under a relative bound, and stored as integers of a step; rows
are coded over the rounded atoms.
"""

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import scipy.linalg

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.loops import entropy
from kernelatoms.codec.loops.cells import step_of
from kernelatoms.codec.loops.rows import code_combinations, preimages
from kernelatoms.codec.models.codec_model import CodecModel, ReadyModel
from kernelatoms.codec.models.quantised import QuantisedBlock
from kernelatoms.coding import OMP, Lasso
from kernelatoms.coding.omp import omp
from kernelatoms.coding.problem import KernelProblem, LinearProblem, linear_problems
from kernelatoms.engine import Array
from kernelatoms.features.expansion import Expansion
from kernelatoms.learning.gradients import GradientStep
from kernelatoms.learning.ksvd import KSVDUpdate
from kernelatoms.learning.loop import learn
from kernelatoms.learning.state import LearnerState
from kernelatoms.similarity import RBFKernel

#: Predictors with atoms.
LEARNED = ("pca", "ksvd", "kscdl")

# Rows and columns that atoms are learned from, at most; fewer rows under a kernel.
_MOST_ROWS, _MOST_COLUMNS = 4096, 4096
_KERNEL_ROWS, _KERNEL_ATOMS = 512, 128
_MOST_ATOMS = 512
_FEWEST_ROWS = 16
# Under tighter bounds residuals take nearly all bytes, and atoms overflow their steps.
_LEAST_ERROR = 1e-6
_PASSES, _KERNEL_PASSES = 15, 5
# The l1 penalty under a kernel with k(x, x) = 1, and values of gamma to try, relative to one over
# the mean squared distance.
_ALPHA = 0.01
_GAMMAS = (0.25, 1.0, 4.0)
# A mean that explains less than this share of the energy is not stored.
_WORTH_A_MEAN = 0.05

# Greedy codes stop at this share of a row's limit: rounding their coefficients takes the rest.
_SHARE = 0.6
# The step of the weights of a Gaussian expansion; rounds of its pre-image.
_WEIGHT_STEP = 1.0 / 128
_N_ROUNDS = 12
# The most atoms per value of a row and numbers in a dictionary; the largest code of a step.
_MOST_TIMES, _MOST_NUMBERS = 4, 1 << 22
_MOST_CODE = 16 * 1000


def dictionary_model(
    predictor: str, mean: Array, atoms: Array, error: float, *, slice_rows: int = 0, **settings: Any
) -> CodecModel:
    """Return the model of a mean and atoms, rounded.

    Atoms have norms near 1. ``error`` is the relative error that rows may have; atoms have half of
    it. ``settings`` are further settings of the predictor.
    """
    m = len(mean)
    atom_code, mean_code = _code_of(0.5 * error * np.sqrt(12 / m)), 0
    largest = float(np.abs(mean).max(initial=0.0))
    if largest > 0:
        size = float(np.linalg.norm(mean / largest))
        mean_code = _code_of(0.1 * error * size * np.sqrt(12 / m), largest)
    steps = [step_of(code) for code in (mean_code, atom_code)]
    k = np.rint(np.concatenate([mean[None] / steps[0], atoms / steps[1]]))
    if not np.abs(k).max(initial=0) < 1 << 30 or k.size > _MOST_NUMBERS:
        raise ValueError("atoms and mean do not fit their steps.")
    data = entropy.encode_all(k.astype(np.int32))
    settings |= {"n_atoms": len(atoms), "atom_code": atom_code, "mean_code": mean_code}
    return CodecModel(predictor, m, slice_rows, settings=settings, arrays={"atoms": data})


def atoms_of(model: CodecModel) -> tuple[Array, Array]:
    """Return a model's mean and atoms."""
    if isinstance(model, ReadyModel) and model.mean_and_atoms is not None:
        return model.mean_and_atoms
    data, settings = model.arrays["atoms"], model.settings
    k = entropy.decode_all(data, (settings["n_atoms"] + 1, model.n_columns))
    return k[0] * step_of(settings["mean_code"]), k[1:] * step_of(settings["atom_code"])


def check_dictionary(model: CodecModel) -> None:
    """Refuse an invalid dictionary of unknown origin."""
    settings, m = model.settings, model.n_columns
    n_atoms, *codes = (settings.get(name) for name in ("n_atoms", "atom_code", "mean_code"))
    most = min(_MOST_TIMES * m, _MOST_NUMBERS // m - 1)
    if type(n_atoms) is not int or not 0 < n_atoms <= most:
        raise CodecError(f"a dictionary cannot have {str(n_atoms)[:40]} atoms of {m} numbers.")
    if not all(type(code) is int and abs(code) <= _MOST_CODE for code in codes):
        raise CodecError("the steps of a dictionary are not integers.")
    data = model.arrays.get("atoms")
    if data is None or data.dtype != np.uint8 or data.ndim != 1:
        raise CodecError("the model has no atoms.")
    for name in ("gamma", "alpha") if model.predictor == "kscdl" else ():
        value = settings.get(name)
        if type(value) is not float or not 0 < value < 1e12:
            raise CodecError(f"a kernel dictionary needs {name} above 0, not {str(value)[:40]}.")


def code_dictionary(block: QuantisedBlock, model: CodecModel) -> None:
    """Code rows over atoms: over all of orthonormal ones, over few of others."""
    mean, atoms = atoms_of(model)
    mean = block.unit.of(mean)
    coefs = np.empty((0, len(atoms)))
    if not block.decoding:
        rows = np.where(block.coded == 1, block.x, np.nan) - mean
        coefs = _projected(rows, atoms) if model.predictor == "pca" else _greedy(block, rows, atoms)
        block.side = np.zeros(coefs.shape, np.int32)
    nothing = np.empty((0, len(mean)))
    code_combinations(mean, atoms, nothing, coefs, block.side, *block.arguments)


def code_kernel_dictionary(block: QuantisedBlock, model: CodecModel) -> None:
    """Code rows as multiples of pre-images of l1 codes under a Gaussian kernel."""
    mean, atoms = atoms_of(model)
    mean = block.unit.of(mean)
    gamma, alpha = model.settings["gamma"], model.settings["alpha"]
    norms = np.empty((0, 1))
    if block.decoding:
        multiples, weights = block.side[:, :1].copy(), block.side[:, 1:].copy()
    else:
        rows = np.nan_to_num(np.where(block.coded == 1, block.x, np.nan) - mean)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        units = rows / np.where(norms > 0, norms, 1)
        problem = KernelProblem(units, Expansion(RBFKernel(gamma), atoms, None))
        codes = Lasso(alpha, gap_tol=1e-4)(problem)
        weights = np.rint(codes.to_dense() / _WEIGHT_STEP).astype(np.int32, order="C")
        multiples = np.zeros((len(weights), 1), np.int32)
    own = np.zeros((len(weights), len(mean)))
    preimages(weights, _WEIGHT_STEP, atoms, gamma, _N_ROUNDS, own)
    if not block.decoding:
        # The best multiple: the norm, corrected for the error of the pre-image.
        energies = np.maximum((own * own).sum(axis=1, keepdims=True), 1e-30)
        norms = (rows * own).sum(axis=1, keepdims=True) / energies
    nothing = np.empty((0, len(mean)))
    code_combinations(mean, nothing, own, norms, multiples, *block.arguments)
    block.side = np.concatenate([multiples, weights], axis=1)


def n_side(model: CodecModel) -> int:
    """Return the number of side integers per row."""
    if model.predictor not in LEARNED:
        return 0
    return int(model.settings["n_atoms"]) + (model.predictor == "kscdl")


def _projected(rows: Array, atoms: Array) -> Array:
    return np.asarray(np.linalg.lstsq(atoms.T, np.nan_to_num(rows).T, rcond=1e-9)[0].T)


def _greedy(block: QuantisedBlock, rows: Array, atoms: Array) -> Array:
    """Return greedy codes of rows (NaN where missing) to a share of their limits."""
    norms = np.linalg.norm(atoms, axis=1)
    seen = ~np.isnan(rows).all(axis=1) & np.nan_to_num(rows).any(axis=1)
    codes = np.zeros((len(rows), len(atoms)))
    if seen.any():
        # Under an absolute bound, the l2 error of uniform errors.
        n_seen = np.count_nonzero(~np.isnan(rows[seen]), axis=1)
        uniform = min(block.absolute, 1e300) * np.sqrt(n_seen / 3)
        stop = _SHARE * np.minimum(block.limits[seen], uniform)
        most = max(1, min(len(atoms), rows.shape[1] // 4))
        problem = LinearProblem(rows[seen], atoms / norms[:, None])
        found = omp(problem, most, max_residual=stop, absolute=True)
        codes[seen] = found.to_dense() / norms
    return codes


def _code_of(step: float, unit: float = 1.0) -> int:
    """Return the code of the step nearest to ``step * unit``."""
    code = 16 * float(np.log2(step) + np.log2(unit))
    return round(min(max(code, -_MOST_CODE), _MOST_CODE))


def learned_models(
    rows: Array,
    bound: Bound,
    slice_rows: int = 0,
    names: Collection[str] = LEARNED,
    *,
    gamma: float | None = None,
) -> Iterator[CodecModel]:
    """Yield models with atoms learned from rows; none if rows are too few or too wide.

    Atoms are stored no more precisely than ``bound`` needs. Without ``gamma``, several values are
    tried for the kernel.
    """
    m = rows.shape[1]
    error = relative_error(rows, bound)
    if len(rows) < _FEWEST_ROWS or not 2 <= m <= _MOST_COLUMNS or not _LEAST_ERROR <= error < 1:
        return
    mean, units = _unit_rows(rows)
    if len(units) < _FEWEST_ROWS:
        return

    def model(predictor: str, atoms: Array, **settings: Any) -> CodecModel:
        return dictionary_model(predictor, mean, atoms, error, slice_rows=slice_rows, **settings)

    if "pca" in names:
        yield model("pca", principal_atoms(units, error))
    if "ksvd" in names:
        yield model("ksvd", sparse_atoms(units, error))
    if "kscdl" in names:
        for value in _gammas(units) if gamma is None else [gamma]:
            yield model("kscdl", kernel_atoms(units, value), gamma=value, alpha=_ALPHA)


def relative_error(rows: Array, bound: Bound) -> float:
    """Return the relative error that a bound means for rows of typical norm."""
    finite = np.where(np.isfinite(rows), rows, 0).astype(np.float64)
    largest = float(np.abs(finite).max(initial=0.0))
    size = 0.0
    if largest > 0:
        size = float(np.sqrt(np.mean(np.square(finite / largest)))) * largest
    errors = [bound.relative] if bound.relative is not None else []
    if bound.absolute is not None and size > 0:
        errors.append(bound.absolute / size)
    return min(errors, default=0.0)


def _unit_rows(rows: Array) -> tuple[Array, Array]:
    """Return the mean of rows, 0 if it explains little, and rows without it at unit norm."""
    some = rows[np.unique(np.linspace(0, len(rows) - 1, _MOST_ROWS).astype(np.int64))]
    finite = np.isfinite(some)
    some = np.where(finite, some, 0).astype(np.float64)
    # Scaled by a power of two, so that squares stay in range.
    exponent = np.frexp(np.abs(some).max(initial=0.0))[1]
    some = np.ldexp(some, -exponent)
    mean = some.sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    centred = np.where(finite, some - mean, 0.0)
    if np.sum(centred**2) > (1 - _WORTH_A_MEAN) * np.sum(some**2):
        mean, centred = mean * 0, some
    norms = np.linalg.norm(centred, axis=1)
    return np.ldexp(mean, exponent), centred[norms > 0] / norms[norms > 0, None]


def principal_atoms(units: Array, error: float) -> Array:
    """Return the leading right singular vectors that leave less than the error."""
    _, values, vectors = np.linalg.svd(units, full_matrices=False)
    left = 1 - np.cumsum(values**2) / np.sum(values**2)
    rank = int(np.searchsorted(-left, -((0.7 * error) ** 2))) + 1
    return vectors[: min(rank, len(vectors))]


def sparse_atoms(units: Array, error: float) -> Array:
    """Return atoms of K-SVD, with atoms that are used together next to each other.

    K-SVD starts from rows chosen by a pivoted QR factorisation: random ones may miss whole groups
    of rows.
    """
    n, m = units.shape
    _, factor, pivots = scipy.linalg.qr(units.T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(factor))
    n_atoms = int(np.clip((sizes > 0.5 * error * sizes[0]).sum(), 1, min(_MOST_ATOMS, n // 2)))
    n_nonzero = int(np.clip(m // 18, 2, min(32, n_atoms) if n_atoms > 1 else 2))
    state = LearnerState.start(units[pivots[:n_atoms]], np.random.RandomState(0))
    pursuit = OMP(min(n_nonzero, n_atoms, m))

    learn(linear_problems, units, pursuit, KSVDUpdate(), state, max_iter=_PASSES, tol=1e-4)
    atoms = state.best
    used = pursuit(linear_problems(atoms, len(units))(units)).to_dense() != 0
    return atoms[_chained(used.T.astype(np.float64) @ used)]


def _chained(together: Array) -> Array:
    """Return an order in which every atom is often used with those just before it."""
    n = len(together)
    order, left = [int(np.argmax(together.sum(axis=1)))], np.ones(n, bool)
    left[order[0]] = False
    for _ in range(n - 1):
        ties = together[:, order[-20:]].sum(axis=1)
        best = int(np.argmax(np.where(left, ties, -1.0)))
        order.append(best)
        left[best] = False
    return np.array(order)


def _gammas(units: Array) -> list[float]:
    """Return values of gamma to try; rows of unit norm have mean squared distances up to 2."""
    spread = 2 * (1 - float(np.square(units.mean(axis=0)).sum()))
    return [float(gamma / max(spread, 1e-6)) for gamma in _GAMMAS]


def kernel_atoms(units: Array, gamma: float) -> Array:
    """Return atoms of KSCDL under a Gaussian kernel, started from rows."""
    some = units[np.unique(np.linspace(0, len(units) - 1, _KERNEL_ROWS).astype(np.int64))]
    n_atoms = min(_KERNEL_ATOMS, len(some) // 2, _MOST_TIMES * units.shape[1])
    start = some[np.unique(np.linspace(0, len(some) - 1, n_atoms).astype(np.int64))]
    kernel = RBFKernel(gamma)
    state = LearnerState.start(start, np.random.RandomState(0))
    learn(
        lambda atoms, _: lambda rows: KernelProblem(rows, Expansion(kernel, atoms)), some,
        Lasso(_ALPHA, gap_tol=1e-4), GradientStep(kernel, _ALPHA), state,
        max_iter=_KERNEL_PASSES, tol=1e-3,
    )  # fmt: skip
    return state.best
