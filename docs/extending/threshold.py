"""Thresholding: the k atoms of largest correlation, all at once, then least squares."""

import numpy as np

from kernelatoms.engine.cpu.omp import padded
from kernelatoms.engine.cpu.products import block_rows
from kernelatoms.engine.cpu.threads import each_block, n_threads
from kernelatoms.pursuit import Codes


def threshold(problem, n_nonzero):
    """Code all signals of a problem with the ``n_nonzero`` atoms that each correlates with most."""
    n_signals, n_atoms, dtype = problem.n_signals, problem.n_atoms, problem.dtype
    gram = problem.gram[:, :n_atoms]  # without the padding
    norms = np.sqrt(np.maximum(np.diagonal(gram), np.finfo(dtype).tiny))
    indices = np.empty((n_signals, n_nonzero), np.int32)
    values = np.empty((n_signals, n_nonzero), dtype)
    error = np.empty(n_signals, dtype)

    def work(start, stop):
        corr = np.empty((stop - start, n_atoms), dtype)
        problem.correlate(start, stop, out=corr)
        picked = np.argpartition(-np.abs(corr) / norms, n_nonzero - 1, axis=1)[:, :n_nonzero]
        picked.sort(axis=1)
        grams = gram[picked[:, :, None], picked[:, None, :]]
        target = np.take_along_axis(corr, picked, axis=1)
        # The pseudo-inverse, because two picked atoms may be the same.
        code = (np.linalg.pinv(grams, hermitian=True) @ target[:, :, None])[:, :, 0]
        explained = np.vecdot(code, target)
        energy = problem.energy(start, stop)
        indices[start:stop], values[start:stop] = picked, code
        error[start:stop] = -explained if energy is None else np.maximum(energy - explained, 0)

    block = block_rows(n_signals, padded(n_atoms), dtype.itemsize, n_threads())
    each_block(n_signals, block, lambda: work)
    return Codes(indices, values, n_atoms, error)
