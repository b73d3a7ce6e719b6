"""Dictionaries learned from rows: candidates for the model.

Rows are centred and scaled to unit norm, so that all count equally under a relative bound.
"""

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.models.dictionaries import MOST_TIMES, dictionary_model
from kernelatoms.coding import OMP, Lasso
from kernelatoms.coding.problem import KernelProblem, LinearProblem
from kernelatoms.features.expansion import Expansion
from kernelatoms.learning.gradients import GradientStep
from kernelatoms.learning.ksvd import KSVDUpdate
from kernelatoms.learning.loop import learn
from kernelatoms.learning.state import LearnerState
from kernelatoms.similarity import RBFKernel

Array = NDArray[Any]

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
    if "pca" in names:
        yield dictionary_model(
            "pca", mean, principal_atoms(units, error), error, slice_rows=slice_rows
        )
    if "ksvd" in names:
        yield dictionary_model("ksvd", mean, sparse_atoms(units, error), error,
                               slice_rows=slice_rows)  # fmt: skip
    if "kscdl" in names:
        for value in _gammas(units) if gamma is None else [gamma]:
            atoms = kernel_atoms(units, value)
            yield dictionary_model("kscdl", mean, atoms, error, slice_rows=slice_rows,
                                   gamma=value, alpha=_ALPHA)  # fmt: skip


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
    learn(
        lambda atoms: LinearProblem(units, atoms, complete=True), units, pursuit, KSVDUpdate(),
        state, max_iter=_PASSES, tol=1e-4,
    )  # fmt: skip
    atoms = state.best
    used = pursuit(LinearProblem(units, atoms, complete=True)).to_dense() != 0
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
    n_atoms = min(_KERNEL_ATOMS, len(some) // 2, MOST_TIMES * units.shape[1])
    start = some[np.unique(np.linspace(0, len(some) - 1, n_atoms).astype(np.int64))]
    kernel = RBFKernel(gamma)
    state = LearnerState.start(start, np.random.RandomState(0))
    learn(
        lambda atoms: KernelProblem(some, Expansion(kernel, atoms)), some,
        Lasso(_ALPHA, gap_tol=1e-4), GradientStep(kernel, _ALPHA), state,
        max_iter=_KERNEL_PASSES, tol=1e-3,
    )  # fmt: skip
    return state.best
