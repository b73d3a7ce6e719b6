"""Residuals of classes: what is left of a signal when only one class's atoms of its code count."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.products import block_rows
from kernelatoms.engine.threads import each_block, n_threads
from kernelatoms.space.codes import Codes
from kernelatoms.space.problem import CodingProblem

Array = NDArray[Any]


def class_residuals(
    problem: CodingProblem, codes: Codes, owner: NDArray[np.intp], n_classes: int
) -> Array:
    """Return |x - D_c w_c|^2 for every signal and class; ``owner[j]`` is the class of atom j.

    Up to the signal's own energy, where the problem does not know it.
    """
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

    block = block_rows(problem.n_signals, problem.n_atoms, problem.dtype.itemsize, n_threads())
    each_block(problem.n_signals, block, lambda: worker)
    return out
