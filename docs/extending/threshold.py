"""Thresholding: the k atoms of largest correlation, all at once, then least squares."""

from dataclasses import dataclass

import numpy as np

from kernelatoms.coding import PaddedCodes
from kernelatoms.estimators.learners.linear import LinearLearner
from kernelatoms.learning.ksvd import KSVDUpdate


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
            if not np.isfinite(corr).all():
                raise ValueError("Thresholding needs complete signals, without NaN.")
            picked = np.sort(np.argpartition(-np.abs(corr) / norms, width - 1)[:, :width])
            grams = gram[picked[:, :, None], picked[:, None, :]]
            target = np.take_along_axis(corr, picked, axis=1)
            # The pseudo-inverse, because two picked atoms may be the same.
            code = (np.linalg.pinv(grams, hermitian=True) @ target[:, :, None])[:, :, 0]
            explained = np.vecdot(code, target)
            error = -explained if energy is None else np.maximum(energy - explained, 0)
            blocks.append((picked.astype(np.int32), code, error))
        indices, values, error = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return PaddedCodes(n_atoms=problem.n_atoms, error=error, indices=indices, values=values)


class ThresholdUpdate(KSVDUpdate):
    """K-SVD's update, which any codes of few nonzeros will do for."""

    accepts = (Threshold,)


class ThresholdKSVD(LinearLearner):
    """K-SVD with thresholding in place of OMP; parameters as in KSVD."""

    def _pursuit(self):
        return Threshold(self.n_nonzero_coefs_)

    def _joint_pursuit(self, n_atoms, n_nonzero):
        return Threshold(min(n_nonzero or self.n_nonzero_coefs_, n_atoms))

    def _update(self):
        return ThresholdUpdate()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags
