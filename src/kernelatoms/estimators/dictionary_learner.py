"""What learners share: ``DictionaryLearner``, and how passes become fitted attributes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from kernelatoms.engine import machine
from kernelatoms.estimators.checks import (
    FLOATS,
    check_choice,
    check_count,
    check_real,
    clip_count,
    validate_new,
)
from kernelatoms.estimators.fitted import (
    check_features,
    check_learner_parameters,
    check_passes,
    held_count,
)
from kernelatoms.learning.loop import Update, learn
from kernelatoms.learning.state import LearnerState
from kernelatoms.pursuit.choices import OMP, Pursuit, code_over_nearest
from kernelatoms.similarity.base import check_flag
from kernelatoms.space.codes import Codes
from kernelatoms.space.memory import check_dense_fits, check_fits
from kernelatoms.space.problem import CodingProblem, split_missing

Array = NDArray[Any]


class DictionaryLearner(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator
):
    """What all learners share: the passes, the callbacks, the sizes, the codes.

    A learner says how it codes (``_pursuit``), how a dictionary is improved (``_update``), and
    which problem it is to code rows over its atoms (``_problem``).
    """

    n_atoms: int | float | None
    max_iter: int
    tol: float
    sparse_output: bool
    components_: Array
    n_atoms_: int

    def transform(self, X: Any) -> scipy.sparse.csr_array | Array:
        """Return the sparse codes of X over the dictionary.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals. Those with missing values (NaN) are coded by what is observed of them.

        Returns
        -------
        codes : CSR array of shape (n_samples, n_atoms_), dense with ``sparse_output=False``
        """
        check_is_fitted(self)
        X = validate_new(self, X)
        if not self.sparse_output:
            check_dense_fits(len(X), self.n_atoms_, X.itemsize)
        codes = self._encode(X)
        return codes.to_csr() if self.sparse_output else codes.to_dense()

    def inverse_transform(self, codes: Any) -> Array:
        """Return the signals that codes stand for: ``codes @ components_``.

        Parameters
        ----------
        codes : dense or CSR array of shape (n_samples, n_atoms_)
            Coefficients, as ``transform`` returns them.

        Returns
        -------
        rows : array of shape (n_samples, n_features)
        """
        codes = self._check_codes(codes)
        return np.asarray(codes @ self.components_.astype(codes.dtype, copy=False))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the share of the signals' energy that their codes keep.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals; of those with missing values (NaN), what is observed counts.
        y : ignored

        Returns
        -------
        float
            1 less the sum of the squared residuals over that of the k(x, x); 1 is lossless.
        """
        check_is_fitted(self)
        X = validate_new(self, X)
        problem = self._problem(X)
        if not problem.knows_energy:
            raise ValueError("score needs k(x, x), which kernel='precomputed' does not give.")
        error = float(np.sum(self._encode(X).error, dtype=np.float64))
        energy = float(np.nansum(self._energies(X), dtype=np.float64))
        return 1.0 - error / energy if energy > 0 else 1.0

    def _energies(self, X: Array) -> Array:
        """Return k(x, x) of validated rows; of those coded by observed entries, what these have."""
        problem = self._problem(X)
        energies, parts = problem.energy(0, len(X)), split_missing(problem)
        assert energies is not None
        if parts is not None:
            observed = np.nan_to_num(parts.partial.signals)
            energies[parts.partial_rows] = machine(observed).squared_norms(observed)
        return energies

    def _check_codes(self, codes: Any) -> Any:
        check_is_fitted(self)
        codes = check_array(codes, accept_sparse="csr", dtype=FLOATS, input_name="codes")
        if codes.shape[1] != self.n_atoms_:
            raise ValueError(
                f"codes must have one column for each of the {self.n_atoms_} atoms, got "
                f"{codes.shape[1]}."
            )
        return codes

    def _problem(self, X: Array) -> CodingProblem:
        """Return the problem of coding validated rows over the atoms."""
        raise NotImplementedError

    @classmethod
    def _joint_problem(cls, learners: Sequence[Any], X: Array) -> CodingProblem:
        """Return the problem of coding rows over the atoms of several learners at once."""
        raise NotImplementedError

    def _pursuit(self) -> Pursuit:
        """Return how rows are coded."""
        raise NotImplementedError

    def _joint_pursuit(self, n_atoms: int, n_nonzero: int | None) -> Pursuit:
        """Return how rows are coded over the atoms of several such learners, greedily if asked."""
        raise NotImplementedError

    def _update(self) -> Update:
        """Return how a dictionary is improved."""
        raise NotImplementedError

    def _encode(self, X: Array, n_neighbors: int | None = None) -> Codes:
        """Return the codes of validated rows as the pursuits give them, errors included.

        Over all atoms, or over the few that are nearest to each row.
        """
        return code_over_nearest(self._pursuit(), self._problem(X), n_neighbors).astype(X.dtype)

    def _check_parameters(self) -> None:
        """Refuse parameters before any work starts."""
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, low=0)
        check_flag("sparse_output", self.sparse_output)

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other; see ``fitted``."""
        self._check_parameters()
        check_learner_parameters(self)
        self._check_share()
        check_passes(self)
        self._check_atoms(held_count(self, "n_atoms_"), check_features(self))

    def _check_atoms(self, n_atoms: int, n_features: int) -> None:
        """Refuse fitted attributes that are not those of so many atoms over these features."""
        raise NotImplementedError

    def _choose_n_atoms(self, n_samples: int, default: int) -> int:
        if self.n_atoms is None:
            return min(default, n_samples)
        if isinstance(self.n_atoms, float | np.floating):
            self._check_share()
            return max(1, round(float(self.n_atoms) * n_samples))
        count = check_count("n_atoms", self.n_atoms)
        return clip_count("n_atoms", count, n_samples, "there are rows")

    def _check_share(self) -> None:
        """Refuse a number of atoms that is neither whole nor a share of the rows."""
        if isinstance(self.n_atoms, float | np.floating) and not 0 < self.n_atoms <= 1:
            raise ValueError(
                "n_atoms must be a whole number, or a share of the rows above 0 and at most 1, "
                f"got {self.n_atoms}."
            )

    def _refuse_share(self) -> None:
        """Refuse a share of the rows where rows come in batches."""
        self._check_share()
        if isinstance(self.n_atoms, float | np.floating):
            raise ValueError(
                f"n_atoms={self.n_atoms} is a share of the rows, and nobody knows how many rows "
                "batches will bring; give partial_fit a whole number."
            )

    def _run_passes(
        self,
        X: Array,
        rows: Array,
        problem_of: Callable[[Array], CodingProblem],
        state: LearnerState,
        attributes: Callable[[LearnerState], dict[str, Any]],
    ) -> None:
        """Learn from ``rows``: the signals X themselves, or coordinates in feature space."""
        update = self._update()
        if hasattr(update, "take_batch"):
            check_sums_fit(*state.dictionary.shape)
        watch = _CallbackWatch(self, X, self.max_iter, attributes)
        learn(
            problem_of, rows, self._pursuit(), update, state, max_iter=self.max_iter,
            tol=self.tol, watch=watch,
        )  # fmt: skip
        self.__dict__.update(attributes(state))
        watch.end()

    @property
    def _n_features_out(self) -> int:
        return self.n_atoms_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # in rows to code; fit leaves such rows out
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_sums_fit(n_atoms: int, n_features: int) -> None:
    """Refuse atoms whose sums over rows, W'W and W'X, need more memory than there is."""
    check_fits(
        8.0 * n_atoms * (2 * n_atoms + 4 * n_features),
        f"sums over the codes of n_atoms={n_atoms} atoms",
        "Use fewer atoms, or KSVD, which needs no such sums.",
    )


def pass_attributes(state: LearnerState) -> dict[str, Any]:
    """Return the fitted attributes that tell of the passes."""
    return {
        "n_atoms_": len(state.best),
        "objective_": np.array(state.objective),
        "best_pass_": state.best_pass,
        "n_iter_": len(state.objective),
    }


class GreedyParameters:
    """Learners whose codes have at most ``n_nonzero_coefs`` nonzeros, by OMP or OLS."""

    n_nonzero_coefs: int | None
    selection: str
    n_nonzero_coefs_: int
    n_features_in_: int

    def _pursuit(self) -> Pursuit:
        check_choice("selection", self.selection, ("omp", "ols"))
        return OMP(self.n_nonzero_coefs_, self.selection)

    def _joint_pursuit(self, n_atoms: int, n_nonzero: int | None) -> Pursuit:
        count = min(n_nonzero or self.n_nonzero_coefs_, self._most_nonzeros(n_atoms))
        return OMP(count, self.selection)

    def _check_nonzeros(self, n_atoms: int) -> None:
        """Refuse more nonzeros than there are atoms."""
        held_count(self, "n_nonzero_coefs_", high=n_atoms)

    def _most_nonzeros(self, n_atoms: int) -> int:
        """Return how many nonzeros make sense over so many atoms."""
        return n_atoms

    def _choose_n_nonzero(self, n_features: int, limit: int) -> int:
        if self.n_nonzero_coefs is None:
            return min(max(1, n_features // 10), limit)
        count = check_count("n_nonzero_coefs", self.n_nonzero_coefs)
        return clip_count("n_nonzero_coefs", count, limit, "atoms or features")


class _CallbackWatch:
    """Tell scikit-learn's callbacks (progress bars, early stopping) about every pass."""

    def __init__(
        self,
        estimator: DictionaryLearner,
        X: Array,
        max_iter: int,
        attributes: Callable[[LearnerState], dict[str, Any]],
    ) -> None:
        self._estimator, self._X, self._attributes = estimator, X, attributes
        self._context = estimator._init_callback_context(max_subtasks=max_iter)
        self._context.call_on_fit_task_begin(estimator=estimator, X=X)

    def begin_pass(self) -> None:
        self._pass = self._context.subcontext(task_name="pass")
        self._pass.call_on_fit_task_begin(estimator=self._estimator, X=self._X)

    def end_pass(self, state: LearnerState) -> bool:
        return self._pass.call_on_fit_task_end(
            estimator=self._estimator,
            X=self._X,
            metadata={"objective": state.objective[-1]},
            reconstruction_attributes=lambda: self._attributes(state),
        )

    def end(self) -> None:
        self._context.call_on_fit_task_end(estimator=self._estimator, X=self._X)
