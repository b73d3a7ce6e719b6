"""Signals, learners and sources of rows for tests of learning over sources."""

import numpy as np

from kernelatoms import KSAD, KSCDL, KSVD, MOD, KernelKSVD, KernelLinearizer, KernelMOD
from kernelatoms.rows import RowSource

LANDMARKS = {"coordinates": KernelLinearizer(n_landmarks=40), "gamma": 0.1}
#: Learners that see in a source just what they see in memory, and the digits they agree to.
LEARNERS = [
    (MOD(12, n_nonzero_coefs=3, max_iter=4, random_state=0), 0.0),
    (MOD(12, alpha=0.3, max_iter=4, random_state=0), 0.0),
    (KernelMOD(12, n_nonzero_coefs=3, max_iter=4, random_state=0, **LANDMARKS), 1e-9),
    (KSAD(12, max_iter=4, random_state=0), 1e-9),
]
#: Learners by other steps than in memory.
OTHERS = [
    KSVD(12, n_nonzero_coefs=3, max_iter=8, random_state=0),
    KernelKSVD(12, n_nonzero_coefs=3, max_iter=8, random_state=0, **LANDMARKS),
    KSCDL(12, alpha=0.05, gamma=0.1, max_iter=8, tol=0, random_state=0),
    KSCDL(12, alpha=0.05, kernel="linear", max_iter=8, tol=0, random_state=0),
]
ALL = [learner for learner, _ in LEARNERS] + OTHERS


def signals(seed=0, n=600, n_features=8, dtype=np.float64):
    """Return sparse combinations of few directions, and classes that use some of them each."""
    rng = np.random.default_rng(seed)
    atoms = rng.standard_normal((12, n_features))
    labels = rng.integers(0, 3, n)
    W = np.zeros((n, 12))
    for i, label in enumerate(labels):
        W[i, 4 * label + rng.permutation(4)[:2]] = rng.standard_normal(2)
    return (W @ atoms + 0.05 * rng.standard_normal((n, n_features))).astype(dtype), labels


def fitted(learner):
    """Return what a learner has learned, as arrays by name."""
    return {
        name: value
        for name, value in vars(learner).items()
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f"
    }


def same_bits(one, two):
    one, two = fitted(one), fitted(two)
    assert one.keys() == two.keys()
    assert one
    for name, value in one.items():
        np.testing.assert_array_equal(value, two[name], err_msg=name)


class Uncounted(RowSource):
    """Rows that are counted by the first pass; another number of them in a later one."""

    def __init__(self, X, later=None):
        super().__init__(None, X.shape[1], X.dtype)
        self.X, self.later, self.n_passes = X, later, 0

    def _read(self, block_rows):
        self.n_passes += 1
        X = self.X if self.later is None or self.n_passes < 4 else self.later
        for start in range(0, len(X), block_rows):
            yield X[start : start + block_rows]
