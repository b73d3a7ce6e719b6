"""``KernelDictionary``: learners whose atoms are vectors of a kernel's feature space."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.coding.atoms import KernelAtoms
from kernelatoms.coding.problem import CodingProblem, KernelProblem
from kernelatoms.estimators.base import Bring
from kernelatoms.estimators.learners.base import DictionaryLearner
from kernelatoms.estimators.maps.kernel_choice import KernelChoice, kernel_on
from kernelatoms.estimators.naming import unnamed
from kernelatoms.estimators.state_checks import require_floats
from kernelatoms.features.consistent_estimates import consistent_estimates
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.linear_algebra import block_diagonal
from kernelatoms.similarity import Kernel, LinearKernel
from kernelatoms.similarity.missing import rows_with_missing

Array = NDArray[Any]


@unnamed
class KernelDictionary(KernelChoice, DictionaryLearner):
    """Code rows over atoms ``dual_coef_`` on ``anchors_``, whose Gram matrix is ``atom_gram_``."""

    anchors_: Array
    dual_coef_: Array
    atom_gram_: Array

    def transform(self, X: Any) -> scipy.sparse.csr_array | Array:
        """Return the sparse codes of X over the dictionary.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals; k(new, train) with ``kernel="precomputed"``. Of signals with missing values
            (NaN), the linear kernel compares what is observed, and others are estimated from it,
            with a warning if many estimates contradict each other; "chi2", "additive_chi2",
            "precomputed" and functions refuse NaN.

        Returns
        -------
        codes : CSR array of shape (n_samples, n_atoms_), dense with ``sparse_output=False``
        """
        return super().transform(X)

    def inverse_transform(self, codes: Any) -> Array:
        """Return rows whose phi is about what codes stand for: the learned ridge pre-image.

        Linear in the codes: ``codes @ components_``. ``preimage`` offers other methods.

        Parameters
        ----------
        codes : dense or CSR array of shape (n_samples, n_atoms_)
            Coefficients, as ``transform`` returns them.

        Returns
        -------
        rows : array of shape (n_samples, n_features)
        """
        return super().inverse_transform(codes)

    def _problem(self, X: Array) -> CodingProblem:
        state: KernelState = self._fitted(X)
        # Coefficients may be large: float32 rows meet a float64 model in float64.
        rows = X.astype(np.result_type(X.dtype, state.coef.dtype), copy=False)
        if _needs_estimates(state.kernel, X):
            anchors = state.anchors.astype(rows.dtype, copy=False)
            estimated = consistent_estimates(state.kernel, anchors, rows[rows_with_missing(X)])
            return KernelProblem(rows, state.atoms_under(estimated, rows.dtype))
        return KernelProblem(rows, state.atoms(rows.dtype))

    def _make_fitted(self, bring: Bring) -> "KernelState":
        components = None if self._precomputed else bring(self.components_)
        return KernelState(
            kernel_on(self._kernel(), bring), bring(self.anchors_), bring(self.dual_coef_),
            bring(self.atom_gram_), components,
        )  # fmt: skip

    @classmethod
    def _joint_problem(cls, learners: Sequence[Any], X: Array) -> CodingProblem:
        """Return the problem of coding rows over the atoms of several learners at once."""
        states: list[KernelState] = [learner._fitted(X) for learner in learners]
        kernel = states[0].kernel
        rows = X.astype(np.result_type(X.dtype, states[0].coef.dtype), copy=False)
        anchors = np.concatenate([state.anchors for state in states]).astype(rows.dtype, copy=False)
        coef = block_diagonal([state.coef for state in states])
        if _needs_estimates(kernel, X):
            kernel = consistent_estimates(kernel, anchors, rows[rows_with_missing(X)])
        return KernelProblem(rows, Expansion(kernel, anchors, coef))

    def _check_atoms(self, n_atoms: int, n_features: int) -> None:
        n_anchors = self._check_rows_held("anchors_", n_features)
        require_floats(self, "dual_coef_", (n_anchors, n_atoms))
        require_floats(self, "atom_gram_", (n_atoms, n_atoms))
        if not self._precomputed:
            require_floats(self, "components_", (n_atoms, n_features))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.allow_nan = self._takes_missing
        return tags


class KernelState:
    """The fitted state of a dictionary in feature space: phi(anchors) @ coef, and its Gram matrix.

    Row numbers, which are the anchors of a precomputed kernel, stand in a column.
    """

    def __init__(
        self, kernel: Kernel, anchors: Array, coef: Array, gram: Array, components: Array | None
    ) -> None:
        self.kernel, self.coef, self.gram, self.components = kernel, coef, gram, components
        self.anchors = anchors[:, None] if anchors.ndim == 1 else anchors
        self._atoms: dict[Any, KernelAtoms] = {}

    @property
    def expansion(self) -> Expansion:
        """The atoms as vectors of the feature space."""
        return Expansion(self.kernel, self.anchors, self.coef)

    def atoms(self, dtype: np.dtype[Any]) -> KernelAtoms:
        """Return the atoms, to code rows of a type over."""
        if dtype not in self._atoms:
            self._atoms[dtype] = self.atoms_under(self.kernel, dtype)
        return self._atoms[dtype]

    def atoms_under(self, kernel: Kernel, dtype: np.dtype[Any]) -> KernelAtoms:
        """Return the atoms under another kernel, with the same Gram matrix."""
        expansion = Expansion(kernel, self.anchors.astype(dtype, copy=False), self.coef)
        return KernelAtoms(expansion, self.gram.astype(dtype, copy=False))


def _needs_estimates(kernel: Kernel, X: Array) -> bool:
    """Whether rows miss values; a linear dictionary is coded by what is observed."""
    estimates = kernel.takes_missing and not isinstance(kernel, LinearKernel)
    return estimates and len(rows_with_missing(X)) > 0
