"""What learners share: ``DictionaryLearner`` all of them, ``GreedyLearner`` those that use OMP."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from kernelatoms.estimators.checks import (
    FLOATS,
    check_choice,
    check_count,
    check_real,
    clip_count,
    validate_new,
)
from kernelatoms.learning.loop import Learned, Watch, learn
from kernelatoms.pursuit import omp_of_observed
from kernelatoms.space.codes import Codes
from kernelatoms.space.problem import CodingProblem

Array = NDArray[Any]


class DictionaryLearner(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator
):
    """What all learners share: the passes, the callbacks, the sizes, the codes."""

    n_atoms: int | None
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
        codes = self._encode(validate_new(self, X))
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

    def _encode(self, X: Array) -> Codes:
        """Return the codes of validated rows as the pursuits give them, errors included."""
        raise NotImplementedError

    @classmethod
    def _joint_codes(cls, learners: Sequence[Any], X: Array) -> tuple[CodingProblem, Codes]:
        """Return the problem and codes of rows over the atoms of several learners at once."""
        raise NotImplementedError

    def _residuals(self, X: Array) -> Array:
        """Return the squared residuals of validated rows, by which classes are compared."""
        return self._encode(X).error

    def _check_loop(self) -> None:
        """Refuse parameters of the passes before any work starts."""
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, low=0)

    def _choose_n_atoms(self, n_samples: int, default: int) -> int:
        if self.n_atoms is None:
            return min(default, n_samples)
        return clip_count(
            "n_atoms", check_count("n_atoms", self.n_atoms), n_samples, "there are rows"
        )

    def _follow_passes(
        self, X: Array, run: Callable[[Watch], Learned], attributes: Callable[[Array, Array], Any]
    ) -> None:
        """Learn by ``run(watch)`` and store ``attributes(dictionary, objective)``."""
        watch = _CallbackWatch(self, X, self.max_iter, attributes)
        learned = run(watch)
        self.__dict__.update(attributes(learned.dictionary, learned.objective))
        self._remember(X)
        watch.end()

    def _remember(self, X: Array) -> None:
        """Keep what learning may later go on from; by default nothing but the atoms."""

    @property
    def _n_features_out(self) -> int:
        return self.n_atoms_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # in rows to code; fit leaves such rows out
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class GreedyLearner(DictionaryLearner):
    """Learners whose codes have a bounded number of nonzeros, by OMP."""

    _update: ClassVar[Callable[..., tuple[Array, Codes]]]
    n_nonzero_coefs: int | None
    selection: str
    n_nonzero_coefs_: int

    def _encode(self, X: Array) -> Codes:
        check_choice("selection", self.selection, ("omp", "ols"))
        return omp_of_observed(self._problem(X), self.n_nonzero_coefs_, selection=self.selection)

    @classmethod
    def _joint_problem(cls, learners: Sequence[Any], X: Array) -> CodingProblem:
        """Return the problem of coding rows over the atoms of several learners at once."""
        raise NotImplementedError

    @classmethod
    def _joint_codes(cls, learners: Sequence[Any], X: Array) -> tuple[CodingProblem, Codes]:
        problem = cls._joint_problem(learners, X)
        n_nonzero = max(learner.n_nonzero_coefs_ for learner in learners)
        return problem, omp_of_observed(problem, n_nonzero, selection=learners[0].selection)

    def _check_loop(self) -> None:
        super()._check_loop()
        check_choice("selection", self.selection, ("omp", "ols"))

    def _choose_n_nonzero(self, n_features: int, limit: int) -> int:
        if self.n_nonzero_coefs is None:
            return min(max(1, n_features // 10), limit)
        count = check_count("n_nonzero_coefs", self.n_nonzero_coefs)
        return clip_count("n_nonzero_coefs", count, limit, "atoms or features")

    def _run_passes(
        self, X: Array, rows: Array, start: Array, attributes: Callable[[Array, Array], Any]
    ) -> None:
        """Learn from ``rows``: the signals X themselves, or coordinates in feature space."""

        def run(watch: Watch) -> Learned:
            return learn(
                rows, start, self.n_nonzero_coefs_, type(self)._update, selection=self.selection,
                max_iter=self.max_iter, tol=self.tol, watch=watch,
            )  # fmt: skip

        self._follow_passes(X, run, attributes)


def codes_in(dtype: Any, codes: Codes) -> Codes:
    """Return codes that were computed in float64 in the dtype of their signals."""
    if codes.values.dtype == dtype:
        return codes
    return replace(codes, values=codes.values.astype(dtype), error=codes.error.astype(dtype))


class _CallbackWatch:
    """Tell scikit-learn's callbacks (progress bars, early stopping) about every pass."""

    def __init__(
        self,
        estimator: DictionaryLearner,
        X: Array,
        max_iter: int,
        attributes: Callable[[Array, Array], Any],
    ) -> None:
        self._estimator, self._X, self._attributes = estimator, X, attributes
        self._context = estimator._init_callback_context(max_subtasks=max_iter)
        self._context.call_on_fit_task_begin(estimator=estimator, X=X)

    def begin_pass(self) -> None:
        self._pass = self._context.subcontext(task_name="pass")
        self._pass.call_on_fit_task_begin(estimator=self._estimator, X=self._X)

    def end_pass(self, dictionary: Array, objective: list[float]) -> bool:
        return self._pass.call_on_fit_task_end(
            estimator=self._estimator,
            X=self._X,
            metadata={"objective": objective[-1]},
            reconstruction_attributes=lambda: self._attributes(dictionary, np.array(objective)),
        )

    def end(self) -> None:
        self._context.call_on_fit_task_end(estimator=self._estimator, X=self._X)
