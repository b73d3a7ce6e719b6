"""``KernelDictionary``: learners whose atoms are vectors of a kernel's feature space."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.coding.atom_products import KernelAtoms
from kernelatoms.coding.problem import CodingProblem, KernelProblem
from kernelatoms.estimators.learners.base import DictionaryLearner
from kernelatoms.estimators.maps.kernel_choice import KernelChoice
from kernelatoms.estimators.naming import unnamed
from kernelatoms.estimators.state_checks import require_floats
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.imputation import consistent_estimates
from kernelatoms.features.linear_algebra import block_diagonal
from kernelatoms.features.remembered import remember
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
        # Coefficients may be large: float32 rows meet a float64 model in float64.
        dtype = np.result_type(X.dtype, self.dual_coef_.dtype)
        kernel, rows = self._kernel(), X.astype(dtype, copy=False)
        made_of = (self.anchors_, self.dual_coef_, self.atom_gram_, dtype)
        if _needs_estimates(kernel, X):
            anchors, missing = _as_anchors(self.anchors_, dtype), rows[rows_with_missing(X)]
            estimated = consistent_estimates(kernel, anchors, missing)
            return KernelProblem(rows, _atoms_under(estimated, *made_of))
        return KernelProblem(rows, remember(self, _atoms_under, kernel, *made_of))

    @classmethod
    def _joint_problem(cls, learners: Sequence[Any], X: Array) -> CodingProblem:
        """Return the problem of coding rows over the atoms of several learners at once."""
        kernel = learners[0]._kernel()
        dtype = np.result_type(X.dtype, learners[0].dual_coef_.dtype)
        anchors = _as_anchors(np.concatenate([learner.anchors_ for learner in learners]), dtype)
        coef = block_diagonal([learner.dual_coef_ for learner in learners])
        rows = X.astype(dtype, copy=False)
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


def _atoms_under(
    kernel: Kernel, anchors: Array, coef: Array, gram: Array, dtype: np.dtype[Any]
) -> KernelAtoms:
    """Return atoms as fitted, of which the Gram matrix is known, to code rows of a type over."""
    expansion = Expansion(kernel, _as_anchors(anchors, dtype), coef)
    return KernelAtoms(expansion, gram.astype(dtype, copy=False))


def _as_anchors(anchors: Array, dtype: np.dtype[Any]) -> Array:
    """Return anchors in a type; row numbers, of a precomputed kernel, as a column."""
    return (anchors[:, None] if anchors.ndim == 1 else anchors).astype(dtype, copy=False)


def _needs_estimates(kernel: Kernel, X: Array) -> bool:
    """Whether rows miss values; a linear dictionary is coded by what is observed."""
    estimates = kernel.takes_missing and not isinstance(kernel, LinearKernel)
    return estimates and len(rows_with_missing(X)) > 0
