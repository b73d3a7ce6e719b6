"""Residuals of classes: what is left of a signal when only one class's atoms of its code count."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes, DenseCodes, RaggedCodes, as_csr
from kernelatoms.coding.problem import CodingProblem, LinearProblem, split_missing
from kernelatoms.engine import is_array, machine, to_numpy

Array = NDArray[Any]

# A share of a signal's energy that rounding of inner products may change in its residual.
_MOST_DOUBT = 1e-6


def class_residuals(
    problem: CodingProblem, codes: Codes, owner: NDArray[np.intp], n_classes: int
) -> Array:
    """Return |x - D_c w_c|^2 for every signal and class.

    Parameters
    ----------
    problem : CodingProblem
        Signals and atoms.
    codes : Codes
        What codes the signals.
    owner : (n_atoms,) whole numbers
        The class of every atom, from 0 to n_classes - 1. A class may own no atoms.
    n_classes : int
        The number of classes.

    Returns
    -------
    (n_signals, n_classes) float64
        Less the signal's own energy, where the problem does not know it. Where signals of a
        linear problem miss values, what is left of their observed entries. No more than 10 eps
        of a signal's energy counts as 0.
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
    """Return residuals; those of long codes, whose squares float32 would blur, from float64."""
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
    """Return the signals whose codes are so long that rounding shows: see ``greedy_loops``."""
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
    fill: Callable[[int, int, Array], Array | None]
    if not isinstance(codes, DenseCodes):
        indptr, indices, values = _nonzeros(codes, problem.dtype)

        def fill(start: int, stop: int, part: Array) -> Array | None:
            pointers = indptr[start : stop + 1]
            corr, energy = problem.products_at(start, stop, pointers, indices)
            part += 0.0 if energy is None else energy[:, None]
            engine.subtract_class_parts(gram, corr, pointers, indices, values, owners, part)
            return energy
    else:
        members = members_of(owner, n_classes)
        grams = [gram[atoms][:, atoms] for atoms in members]

        def fill(start: int, stop: int, part: Array) -> Array | None:
            corr, energy = problem.products(start, stop)
            part += 0.0 if energy is None else energy[:, None]
            own = codes.weights[start:stop]
            engine.subtract_dense_class_parts(grams, corr, own, members, part)
            return energy

    def work(start: int, stop: int) -> None:
        part = out[start:stop]
        energy = fill(start, stop, part)
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
    """Return the owners as int64; what the compiled loops would read must be there."""
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


def members_of(owner: NDArray[np.int64], n_classes: int) -> list[slice | NDArray[np.intp]]:
    """Return the atoms of every class, as slices where classes are in order: no copies then."""
    owner = to_numpy(owner)
    if (np.diff(owner) >= 0).all():
        edges = np.searchsorted(owner, np.arange(n_classes + 1))
        return [slice(edges[c], edges[c + 1]) for c in range(n_classes)]
    return [np.flatnonzero(owner == c) for c in range(n_classes)]
