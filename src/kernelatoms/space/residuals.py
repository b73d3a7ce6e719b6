"""Residuals of classes: what is left of a signal when only one class's atoms of its code count."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import machine
from kernelatoms.space.codes import Codes
from kernelatoms.space.problem import CodingProblem, LinearProblem, parted

Array = NDArray[Any]


def class_residuals(
    problem: CodingProblem, codes: Codes, owner: NDArray[np.intp], n_classes: int
) -> Array:
    """Return |x - D_c w_c|^2 for every signal and class; ``owner[j]`` is the class of atom j.

    Up to the signal's own energy, where the problem does not know it. Where signals of a linear
    problem miss values, what is left of their observed entries.
    """
    parts = parted(problem)
    if parts is not None:
        out = np.empty((problem.n_signals, n_classes), problem.dtype)
        if len(parts.complete_rows):
            out[parts.complete_rows] = class_residuals(
                parts.complete, _some(codes, parts.complete_rows), owner, n_classes
            )
        out[parts.partial_rows] = _observed_residuals(
            parts.partial, _some(codes, parts.partial_rows), owner, n_classes
        )
        return out
    gram, k = problem.gram, codes.indices.shape[1]
    out = np.zeros((problem.n_signals, n_classes), problem.dtype)

    def worker(start: int, stop: int) -> None:
        corr = np.empty((stop - start, problem.n_atoms), problem.dtype)
        problem.correlate(start, stop, out=corr)
        atoms = np.maximum(codes.indices[start:stop], 0)
        values = codes.values[start:stop]  # 0 where the code is padded
        classes = owner[atoms]
        gain = 2 * values * np.take_along_axis(corr, atoms, axis=1)
        rows = np.arange(stop - start)
        part = out[start:stop]
        energy = problem.energy(start, stop)
        if energy is not None:
            part += energy[:, None]
        for i in range(k):
            part[rows, classes[:, i]] -= gain[:, i]
            for j in range(k):
                same = classes[:, i] == classes[:, j]
                cross = values[:, i] * values[:, j] * gram[atoms[:, i], atoms[:, j]]
                part[rows, classes[:, i]] += np.where(same, cross, 0)

    machine(out).for_blocks(problem.n_signals, problem.n_atoms, problem.dtype.itemsize, worker)
    return out


def _some(codes: Codes, rows: NDArray[np.intp]) -> Codes:
    return Codes(codes.indices[rows], codes.values[rows], codes.n_atoms, codes.error[rows])


def _observed_residuals(
    problem: LinearProblem, codes: Codes, owner: NDArray[np.intp], n_classes: int
) -> Array:
    """Return |x_O - (D_c w_c)_O|^2 with O the observed entries of each signal."""
    out = np.empty((problem.n_signals, n_classes), problem.dtype)

    def worker(start: int, stop: int) -> None:
        signals = problem.signals[start:stop]
        known = ~np.isnan(signals)
        used = np.maximum(codes.indices[start:stop], 0)
        atoms, classes = problem.atoms[used], owner[used]
        for c in range(n_classes):
            values = np.where(classes == c, codes.values[start:stop], 0)
            left = signals - np.matmul(values[:, None, :], atoms)[:, 0]
            left = np.where(known, left, 0)
            out[start:stop, c] = np.vecdot(left, left)

    width = (codes.indices.shape[1] + 3) * problem.atoms.shape[1]
    machine(out).for_blocks(problem.n_signals, width, problem.dtype.itemsize, worker)
    return out
