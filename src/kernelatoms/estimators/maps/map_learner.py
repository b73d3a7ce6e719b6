"""``MapLearner``: estimators that learn in a low-rank map of a kernel, as K-SAD does; its rows."""

from typing import Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.estimators.maps.kernel_choice import KernelChoice
from kernelatoms.estimators.maps.linearizer import KernelLinearizer
from kernelatoms.estimators.validation import check_count, clip_count
from kernelatoms.rows import ArrayRows, RowSource

DEFAULT_ATOMS = 500
# Default number of landmarks per atom; one loses up to three points on faces and half a point on
# digits (python -m reproduction ksad/ablation), more than four were not tried.
_LANDMARKS_AN_ATOM = 4


def mapped_rows(linearizer: KernelLinearizer, rows: RowSource) -> RowSource:
    """Return the virtual samples of rows: of those in memory there, of others as they are read."""
    if isinstance(rows, ArrayRows):
        return ArrayRows(linearizer._transformed(rows.collect()))
    one = linearizer._transformed(np.zeros((1, rows.n_features or 0), rows.dtype))
    return rows.map(linearizer._transformed, linearizer.n_components_, dtype=one.dtype)


class MapLearner(KernelChoice):
    """Estimators with as many atoms as their kernel map has coordinates."""

    n_atoms: Any
    n_landmarks: int | float | None
    sampling: Any
    solver: str

    def _fit_map(
        self, X: Array, rng: np.random.RandomState, n_rows: int | None = None
    ) -> KernelLinearizer:
        """Return the map that training rows lead to: its rank is the number of atoms.

        Of more rows than fit in memory, ``n_rows``, X is a sample.
        """
        n_atoms = min(self._wanted_atoms(n_rows or len(X)), len(X))
        n_landmarks = self.n_landmarks
        if n_landmarks is None and isinstance(self.sampling, str):
            n_landmarks = min(_LANDMARKS_AN_ATOM * n_atoms, len(X))
        linearizer = KernelLinearizer(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0,
            kernel_params=self.kernel_params, n_landmarks=n_landmarks,
            n_components=self._most_atoms(n_atoms, n_landmarks, len(X)), sampling=self.sampling,
            solver=self.solver, random_state=rng,
        ).fit(X)  # fmt: skip
        if self.n_atoms is not None:
            reason = "the rank of the kernel on the landmarks"
            clip_count("n_atoms", n_atoms, linearizer.n_components_, reason)
        self.gamma_ = linearizer.gamma_
        self.__dict__.pop("fitted_kernel_", None)  # of an earlier fit
        if hasattr(linearizer, "fitted_kernel_"):
            self.fitted_kernel_ = linearizer.fitted_kernel_
        return linearizer

    def _wanted_atoms(self, n_rows: int) -> int:
        """Return how many atoms are asked for, at most one per row."""
        if self.n_atoms is None:
            return min(DEFAULT_ATOMS, n_rows)
        return clip_count("n_atoms", check_count("n_atoms", self.n_atoms), n_rows, "there are rows")

    def _most_atoms(self, n_atoms: int, n_landmarks: Any, n_rows: int) -> int:
        """Return how many atoms so many landmarks allow; what is no number is refused later."""
        if not isinstance(self.sampling, str):
            return min(n_atoms, max(len(np.atleast_1d(self.sampling)), 1))
        if isinstance(n_landmarks, float | np.floating):
            n_landmarks = max(1, round(float(n_landmarks) * n_rows))
        if isinstance(n_landmarks, int | np.integer) and n_landmarks > 0:
            return min(n_atoms, int(n_landmarks))
        return n_atoms
