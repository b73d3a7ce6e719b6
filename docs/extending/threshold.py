"""Thresholding: the k atoms of largest correlation, all at once, then least squares."""

from dataclasses import dataclass

import numpy as np

from kernelatoms.pursuit import PaddedCodes


@dataclass(frozen=True)
class Threshold:
    """Code signals with the ``n_nonzero`` atoms that each correlates with most."""

    n_nonzero: int

    def __call__(self, problem):
        gram, width = problem.gram, self.n_nonzero
        norms = np.sqrt(np.maximum(problem.norms2, np.finfo(problem.dtype).tiny))
        blocks = []
        for start in range(0, problem.n_signals, 1024):
            corr, energy = problem.products(start, min(start + 1024, problem.n_signals))
            picked = np.argpartition(-np.abs(corr) / norms, width - 1, axis=1)[:, :width]
            picked.sort(axis=1)
            grams = gram[picked[:, :, None], picked[:, None, :]]
            target = np.take_along_axis(corr, picked, axis=1)
            # The pseudo-inverse, because two picked atoms may be the same.
            code = (np.linalg.pinv(grams, hermitian=True) @ target[:, :, None])[:, :, 0]
            explained = np.vecdot(code, target)
            error = -explained if energy is None else np.maximum(energy - explained, 0)
            blocks.append((picked, code, error))
        indices, values, error = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return PaddedCodes(
            n_atoms=problem.n_atoms, error=error, indices=indices.astype(np.int32), values=values
        )
