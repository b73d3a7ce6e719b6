"""What each class's part of a code leaves of a signal, and the scores of classes.

A code w over atoms of several classes has a part w_c for every class. A class fits well if its
residual |y - D_c w_c| is small and its part large: the regularised residual is r_c = |y - D_c w_c|
/ |w_c| (eq. (3) of the KCRC-LCD paper).

See docs/decisions/030-training-rows-as-atoms.md.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes, DenseCodes, RaggedCodes, as_csr
from kernelatoms.coding.missing_and_tiny import split_missing
from kernelatoms.coding.problem import CodingProblem, LinearProblem
from kernelatoms.engine import Array, is_array, machine, to_numpy

#: The atoms of every class.
Members = list[slice | NDArray[np.intp]]

# The share of a signal's energy by which rounding of inner products may change its residual.
_MOST_DOUBT = 1e-6


def class_residuals(
    problem: CodingProblem, codes: Codes, owner: NDArray[np.intp], n_classes: int
) -> Array:
    """Return |x - D_c w_c|^2 for every signal and class: (n_signals, n_classes).

    ``owner`` (n_atoms,) is the class of every atom, from 0. Where the problem does not know a
    signal's energy, residuals are less that; where signals of a linear problem miss values, they
    are over the observed entries. Those of at most 10 eps of the energy count as 0.
    """
    owner = _checked(problem, codes, owner, n_classes)
    parts = split_missing(problem)
    if parts is None:
        return _complete_residuals(problem, codes, owner, n_classes)
    out = np.empty((problem.n_signals, n_classes))
    rows = parts.complete_rows
    out[rows] = _complete_residuals(parts.complete, codes.take(rows), owner, n_classes)
    rows = parts.partial_rows
    out[rows] = _observed_residuals(parts.partial, codes.take(rows), owner, n_classes)
    return out


def _complete_residuals(
    problem: CodingProblem, codes: Codes, owner: NDArray[np.int64], n_classes: int
) -> Array:
    """Return residuals; those of codes with large coefficients are computed in float64."""
    out = _residuals(problem, codes, owner, n_classes)
    if not problem.gains_digits or isinstance(codes, DenseCodes):
        return out
    some = _long_codes(problem, codes)
    if len(some):
        padded = codes.to_padded() if isinstance(codes, RaggedCodes) else codes
        own = padded.take(some).astype(np.float64)
        out[some] = _residuals(problem.in_float64(some), own, owner, n_classes)
    return out


def _long_codes(problem: CodingProblem, codes: Codes) -> NDArray[np.intp]:
    """Return the signals whose codes are so large that rounding shows: see ``greedy_loops``."""
    indptr, indices, values = _nonzeros(codes, np.dtype(np.float64))
    squares = as_csr(values * values, indices, indptr, problem.n_atoms)
    sizes2 = (squares @ problem.norms2.astype(np.float64)[:, None])[:, 0]
    energies = problem.energy(0, problem.n_signals)
    if energies is None:
        return np.arange(0)
    return np.flatnonzero(np.finfo(problem.dtype).eps * sizes2 > _MOST_DOUBT * energies)


def _residuals(
    problem: CodingProblem, codes: Codes, owner: NDArray[np.int64], n_classes: int
) -> Array:
    out = np.zeros((problem.n_signals, n_classes), like=problem.like)
    engine, rounding = machine(out), 10 * np.finfo(problem.dtype).eps
    gram, owners = problem.gram, np.asarray(owner, like=out)
    if isinstance(codes, DenseCodes):
        members = members_of(owner, n_classes)
        grams = [gram[atoms][:, atoms] for atoms in members]
    else:
        indptr, indices, values = _nonzeros(codes, problem.dtype)

    def work(start: int, stop: int) -> None:
        part = out[start:stop]
        if isinstance(codes, DenseCodes):
            corr, energy = problem.products(start, stop)
        else:
            pointers = indptr[start : stop + 1]
            corr, energy = problem.products_at(start, stop, pointers, indices)
        if energy is not None:
            part += energy[:, None]
        if isinstance(codes, DenseCodes):
            own = codes.weights[start:stop]
            engine.subtract_dense_class_parts(grams, corr, own, members, part)
        else:
            engine.subtract_class_parts(gram, corr, pointers, indices, values, owners, part)
        if energy is not None:
            part[np.abs(part) <= rounding * energy[:, None]] = 0

    engine.for_blocks(problem.n_signals, problem.n_atoms, problem.dtype.itemsize, work)
    return out


def _observed_residuals(
    problem: LinearProblem, codes: Codes, owner: NDArray[np.int64], n_classes: int
) -> Array:
    """Return |x_O - (D_c w_c)_O|^2 with O the observed entries of each signal."""
    signals, atoms = problem.signals, problem.atoms.rows
    out = np.empty((problem.n_signals, n_classes))
    cpu, rounding = machine(out), 10 * np.finfo(problem.dtype).eps
    if not isinstance(codes, DenseCodes):
        indptr, indices, values = _nonzeros(codes, problem.dtype)
    members = members_of(owner, n_classes)

    def work(start: int, stop: int) -> None:
        rows, part = signals[start:stop], out[start:stop]
        if not isinstance(codes, DenseCodes):
            pointers = indptr[start : stop + 1]
            cpu.observed_class_residuals(rows, atoms, pointers, indices, values, owner, part)
        else:
            for c, theirs in enumerate(members):
                left = rows - codes.weights[start:stop, theirs] @ atoms[theirs]
                left[np.isnan(rows)] = 0
                part[:, c] = cpu.squared_norms(left)
        energy = cpu.squared_norms(np.where(np.isnan(rows), 0, rows))
        part[part <= rounding * energy[:, None]] = 0

    cpu.for_blocks(problem.n_signals, atoms.shape[1], problem.dtype.itemsize, work)
    return out


def _checked(
    problem: CodingProblem, codes: Codes, owner: NDArray[np.intp], n_classes: int
) -> NDArray[np.int64]:
    """Return the owners as int64; refuse what would make compiled loops read out of bounds."""
    shape = (codes.n_signals, codes.n_atoms)
    if shape != (problem.n_signals, problem.n_atoms):
        raise ValueError(
            f"codes must be {problem.n_signals} signals over {problem.n_atoms} atoms, got {shape}."
        )
    owner = to_numpy(owner) if is_array(owner) else np.asarray(owner)
    if owner.shape != (problem.n_atoms,) or owner.dtype.kind not in "iu":
        raise ValueError(
            f"owner must hold a class for each of the {problem.n_atoms} atoms as a whole number, "
            f"got {owner.dtype.name} of shape {owner.shape}."
        )
    if owner.size and not (owner.min() >= 0 and owner.max() < n_classes):
        raise ValueError(
            f"owner must lie between 0 and n_classes - 1 = {n_classes - 1}, got values from "
            f"{owner.min()} to {owner.max()}."
        )
    return owner.astype(np.int64, copy=False)


def _nonzeros(codes: Codes, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """Return where each signal's nonzeros begin, their atoms and their values."""
    csr = codes.to_csr()
    return (
        csr.indptr.astype(np.int64, copy=False),
        csr.indices.astype(np.int32, copy=False),
        csr.data.astype(dtype, copy=False),
    )


def members_of(owner: NDArray[np.int64], n_classes: int) -> Members:
    """Return the atoms of every class, as slices if classes are in order, to avoid copies."""
    owner = to_numpy(owner)
    if (np.diff(owner) >= 0).all():
        edges = np.searchsorted(owner, np.arange(n_classes + 1))
        return [slice(edges[c], edges[c + 1]) for c in range(n_classes)]
    return [np.flatnonzero(owner == c) for c in range(n_classes)]


@dataclass(frozen=True)
class ClassParts:
    """Squared residuals and squared norms of parts (n, n_classes); energies of signals (n,)."""

    residuals2: Array
    norms2: Array
    energies: Array

    def residuals(self) -> Array:
        """Return r_c for every class, infinite where it has no part: (n, n_classes)."""
        out = np.full(self.residuals2.shape, np.inf, like=self.residuals2)
        used = self.norms2 > 0
        out[used] = np.sqrt(np.maximum(self.residuals2[used], 0.0) / self.norms2[used])
        return out

    def shares(self, dtype: np.dtype[Any]) -> Array:
        """Return how well each class fits, 1 / r_c^2 over the sum of all; see ``shares_of``."""
        # Divided by the largest first: squares of small parts may underflow.
        largest = self.norms2.max(axis=1, keepdims=True)
        parts = self.norms2 / np.maximum(largest, np.finfo(np.float64).tiny)
        return shares_of(self.residuals2, self.energies, dtype, parts)


def shares_of(
    left: Array, energies: Array, dtype: np.dtype[Any], parts: Array | float = 1.0
) -> Array:
    """Return parts / left over the sum of all classes: (n, n_classes).

    Squared residuals ``left`` below 10 eps of the signal's energy, with the eps of ``dtype``, count
    as that much. Where all ``parts``, shares of the classes in the code, are 0, results are equal.
    """
    smallest = 10 * float(np.finfo(dtype).eps) * energies.astype(np.float64, copy=False)
    floor = np.maximum(smallest, np.finfo(np.float64).tiny)[:, None]
    fits = parts * (floor / np.maximum(left, floor))
    total = fits.sum(axis=1, keepdims=True)
    alike = 1.0 / fits.shape[1]
    return np.where(total > 0, fits / np.where(total > 0, total, 1.0), alike)


def parts_of_dense_codes(
    corr: Array, energies: Array, weights: Array, members: Members, grams: list[Array]
) -> ClassParts:
    """Return residuals of classes, from inner products alone; ``grams`` are those of classes."""
    energies = energies.astype(np.float64, copy=False)
    residuals2 = np.repeat(energies[:, None], len(members), axis=1)
    machine(weights).subtract_dense_class_parts(grams, corr, weights, members, residuals2)
    norms2 = np.stack([np.vecdot(weights[:, own], weights[:, own]) for own in members], axis=1)
    return ClassParts(residuals2, norms2, energies)


def parts_of_sparse_codes(
    problem: CodingProblem, codes: Codes, labels: NDArray[np.intp], n_classes: int
) -> ClassParts:
    """Return residuals of classes for codes with few nonzeros; energies must be known."""
    energies = problem.energy(0, problem.n_signals)
    assert energies is not None
    energies = energies.astype(np.float64, copy=False)
    norms2 = _norms_of_parts(codes.to_csr(), labels, n_classes)
    return ClassParts(class_residuals(problem, codes, labels, n_classes), norms2, energies)


def _norms_of_parts(codes: Any, labels: NDArray[np.intp], n_classes: int) -> Array:
    """Return |w_c|^2 of every class's part of codes (n, n_atoms), in compressed rows."""
    n = codes.shape[0]
    rows = np.repeat(np.arange(n, dtype=np.int64, like=codes.indptr), np.diff(codes.indptr))
    owners = np.asarray(to_numpy(labels), like=codes.data)[codes.indices]
    squares = codes.data.astype(np.float64) ** 2
    sums = np.bincount(rows * n_classes + owners, weights=squares, minlength=n * n_classes)
    return sums.reshape(n, n_classes)


def parts_of_vectors(
    signals: Array, atoms: Array, weights: Array, labels: NDArray[np.intp], n_classes: int
) -> ClassParts:
    """Return residuals of classes for explicit signals (n, n_entries) and atoms."""
    residuals2 = np.empty((len(signals), n_classes))
    norms2 = np.empty_like(residuals2)
    for c in range(n_classes):
        own = labels == c
        theirs = weights[:, own]
        left = signals - theirs @ atoms[own]
        residuals2[:, c], norms2[:, c] = np.vecdot(left, left), np.vecdot(theirs, theirs)
    return ClassParts(residuals2, norms2, np.vecdot(signals, signals))


def nearest_probabilities(scores: Array) -> Array:
    """Return the probabilities nearest to scores, row by row: (n, n_classes).

    Scores that estimate probabilities may be negative and need not sum to 1. Their projection onto
    the simplex keeps the order of classes: p_c = max(s_c - t, 0), with the t that makes the sum 1.
    """
    # Subtracting the largest changes no projection, and 1 would be lost beside a large score.
    scores = scores.astype(np.float64) - scores.max(axis=1, keepdims=True)
    falling = -np.sort(-scores, axis=1)
    counts = np.arange(1, scores.shape[1] + 1)
    # t if the first k classes had all: right for the largest k whose last class keeps a part.
    shifts = (np.cumsum(falling, axis=1) - 1.0) / counts
    k = np.count_nonzero(falling > shifts, axis=1)
    shift = np.take_along_axis(shifts, k[:, None] - 1, axis=1)
    return np.maximum(scores - shift, 0.0)
