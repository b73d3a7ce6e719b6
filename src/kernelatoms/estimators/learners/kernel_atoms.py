"""Atoms in the feature space of a kernel: ``dual_coef_`` on ``anchors_``, Gram ``atom_gram_``."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelatoms.coding.atom_products import KernelAtoms
from kernelatoms.coding.problem import CodingProblem, KernelProblem
from kernelatoms.engine import Array
from kernelatoms.estimators.base import Bring
from kernelatoms.estimators.maps.kernel_choice import kernel_on
from kernelatoms.estimators.state_checks import require_floats
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.imputation import consistent_estimates
from kernelatoms.features.linear_algebra import block_diagonal
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.inner import LinearKernel
from kernelatoms.similarity.missing import rows_with_missing


class KernelState:
    """The fitted state of a learner whose atoms are phi(anchors) @ coef.

    Row numbers, which are the anchors of a precomputed kernel, are held as a column.
    """

    def __init__(self, learner: Any, bring: Bring) -> None:
        anchors = bring(learner.anchors_)
        self.kernel = kernel_on(learner._kernel(), bring)
        self.anchors = anchors[:, None] if anchors.ndim == 1 else anchors
        self.coef, self.gram = bring(learner.dual_coef_), bring(learner.atom_gram_)
        self.components = None if learner._precomputed else bring(learner.components_)
        self._atoms: dict[Any, KernelAtoms] = {}

    @property
    def expansion(self) -> Expansion:
        """The atoms as vectors of the feature space."""
        return Expansion(self.kernel, self.anchors, self.coef)

    def problem(self, X: Array) -> CodingProblem:
        """Return the problem of coding rows over the atoms."""
        # Coefficients may be large: float32 rows meet a float64 model in float64.
        rows = X.astype(np.result_type(X.dtype, self.coef.dtype), copy=False)
        if _needs_estimates(self.kernel, X):
            anchors = self.anchors.astype(rows.dtype, copy=False)
            kernel = consistent_estimates(self.kernel, anchors, rows[rows_with_missing(X)])
            return KernelProblem(rows, self._atoms_under(kernel, rows.dtype))
        if rows.dtype not in self._atoms:
            self._atoms[rows.dtype] = self._atoms_under(self.kernel, rows.dtype)
        return KernelProblem(rows, self._atoms[rows.dtype])

    def _atoms_under(self, kernel: Kernel, dtype: np.dtype[Any]) -> KernelAtoms:
        expansion = Expansion(kernel, self.anchors.astype(dtype, copy=False), self.coef)
        return KernelAtoms(expansion, self.gram.astype(dtype, copy=False))


def joint_kernel_problem(learners: Sequence[Any], X: Array) -> CodingProblem:
    """Return the problem of coding rows over the atoms of several learners together."""
    states: list[KernelState] = [learner._fitted(X) for learner in learners]
    kernel = states[0].kernel
    rows = X.astype(np.result_type(X.dtype, states[0].coef.dtype), copy=False)
    anchors = np.concatenate([state.anchors for state in states]).astype(rows.dtype, copy=False)
    coef = block_diagonal([state.coef for state in states])
    if _needs_estimates(kernel, X):
        kernel = consistent_estimates(kernel, anchors, rows[rows_with_missing(X)])
    return KernelProblem(rows, Expansion(kernel, anchors, coef))


def check_kernel_atoms(learner: Any, n_atoms: int, n_features: int) -> None:
    """Check the fitted attributes that the atoms are made of."""
    n_anchors = learner._check_rows_held("anchors_", n_features)
    require_floats(learner, "dual_coef_", (n_anchors, n_atoms))
    require_floats(learner, "atom_gram_", (n_atoms, n_atoms))
    if not learner._precomputed:
        require_floats(learner, "components_", (n_atoms, n_features))


def _needs_estimates(kernel: Kernel, X: Array) -> bool:
    """Whether rows miss values; a linear dictionary is coded by what is observed."""
    estimates = kernel.takes_missing and not isinstance(kernel, LinearKernel)
    return estimates and len(rows_with_missing(X)) > 0
