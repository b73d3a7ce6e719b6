"""What dictionary learners share: ``fit``, plain functions of a learner, and callbacks."""

import json
import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from kernelatoms.coding.problem import CodingProblem
from kernelatoms.coding.pursuits import OMP, Pursuit
from kernelatoms.engine import Array, to_numpy
from kernelatoms.estimators.base import sample_rows, unnamed
from kernelatoms.estimators.devices.border import collections_entered, learn
from kernelatoms.estimators.kept import kept, kept_run
from kernelatoms.estimators.state_checks import (
    check_features,
    check_passes,
    require_count,
)
from kernelatoms.estimators.validation import check_choice, check_count, check_real, clip_count
from kernelatoms.features.memory import check_fits
from kernelatoms.learning.loop import Problems, passes
from kernelatoms.learning.missing import fill_by_means
from kernelatoms.learning.runs import Run, run
from kernelatoms.learning.state import LearnerState, atoms_from_sums, draw_rows
from kernelatoms.rows import ArrayRows, RowSource
from kernelatoms.rows.numbers import checksum
from kernelatoms.similarity.base import check_flag

#: What to do with a source of rows where a batch in memory is asked for.
ONE_BATCH = "give it to fit, or its blocks to partial_fit (for block in X: ...)"


@unnamed
class DictionaryLearner:
    """What learns one dictionary, on its own or as that of one class of a classifier."""

    n_atoms: Any
    max_iter: int
    tol: float
    warm_start: bool
    sparse_output: bool

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn a dictionary for the rows of X.

        Parameters
        ----------
        X : array or RowSource of shape (n_samples, n_features)
            Signals; k(train, train) with ``kernel="precomputed"``. A source of rows is read once
            per pass (see ``open_rows``); a kernel's gamma and landmarks are then of a random
            sample of 100,000 rows, or of 256 MiB if that is less. Under a kernel, rows with missing
            values (NaN) are left out, with a warning; ``KSCDL``, whose codes are learned with an l1
            penalty, refuses them, and so do sources. Tensors are learned from where they are
            (float16 and bfloat16 in float32); attributes are then tensors there.
        y : ignored

        Returns
        -------
        self
        """
        (X,) = collections_entered(X)
        with kept(self, X, goes_on=self.warm_start):
            learn(lambda rows: run(self._learning(rows)), self, X, from_nothing=not self.warm_start)
        return self

    def _from_source(self, source: RowSource) -> Any:
        return source

    def _learning(self, X: Any) -> Run:
        """Return a run that learns from the rows X and sets the fitted attributes at its end."""
        raise NotImplementedError

    def _learning_pursuit(self) -> Pursuit:
        """Return how rows are coded to learn from them."""
        pursuit: Pursuit = self._pursuit()  # type: ignore[attr-defined]
        return pursuit

    def _update(self) -> Any:
        """Return how the dictionary is improved."""
        raise NotImplementedError

    def _update_from_sums(self) -> Any:
        """Return how it is improved where not all rows are in memory."""
        return self._update()

    def _check_parameters(self) -> None:
        """Refuse parameters, before any work starts."""
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, low=0)
        check_flag("sparse_output", self.sparse_output)
        check_flag("warm_start", self.warm_start)

    @staticmethod
    def _joint_problem(learners: Any, X: Array) -> CodingProblem:
        """Return the problem of coding rows over the atoms of several learners together."""
        raise NotImplementedError

    def _joint_pursuit(self, n_atoms: int, n_nonzero: int | None) -> Pursuit:
        """Return how rows are coded over the atoms of several learners together.

        ``n_nonzero`` is the number of nonzeros per row asked for; only greedy pursuits use it.
        """
        raise NotImplementedError


@unnamed
class WeightedLearner(DictionaryLearner):
    """What learns one dictionary from rows that may have weights."""

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn a dictionary for the rows of X.

        Parameters
        ----------
        X : array or RowSource of shape (n_samples, n_features)
            Signals; k(train, train) with ``kernel="precomputed"``. A source of rows is read once
            per pass (see ``open_rows``); a kernel's gamma and landmarks are then of a random
            sample of 100,000 rows, or of 256 MiB if that is less. ``KSVD`` and ``MOD`` learn from
            signals with missing values (NaN) by what is observed. Under a kernel these are left
            out, with a warning, since their coordinates would be estimates; sources with such rows
            are refused, and so are they where codes are learned with an l1 penalty
            (``MOD(alpha=...)``). Tensors are learned from where they are (float16 and bfloat16 in
            float32); attributes are then tensors there.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            How much every signal counts, from 0: a signal of weight 2 counts as two. ``gamma`` and
            where atoms start do not depend on weights above 0.

        Returns
        -------
        self
        """
        X, sample_weight = collections_entered(X, sample_weight=sample_weight)
        with kept(self, X, sample_weight=sample_weight, goes_on=self.warm_start):
            learn(
                lambda rows: run(self._learning(rows, sample_weight)), self, X,
                from_nothing=not self.warm_start,
            )  # fmt: skip
        return self

    def _learning(self, X: Any, sample_weight: Any = None) -> Run:
        """Return a run that learns from the rows X and sets the fitted attributes at its end."""
        raise NotImplementedError


@unnamed
class BatchLearner:
    """What learns from rows that come in batches, too."""

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take in a batch: code it, add what it tells to the past ones, improve the dictionary.

        The first batch settles what depends on all rows in ``fit``: gamma, and the map of ``KSAD``,
        for which it should have more rows than there are to be atoms. Rows of the first batches
        become atoms until there are ``n_atoms``. After ``fit``, batches go on from its best pass.

        Parameters
        ----------
        X : array or RowSource of shape (n_samples, n_features)
            A batch of signals; missing values (NaN) as in ``fit``. All rows of a source, or of a
            Dask array, are one batch; ``KSCDL`` takes arrays alone.
        y : ignored

        Returns
        -------
        self
        """
        learn(lambda rows: run(self._learning_batch(rows)), self, X, from_nothing=False)
        return self

    def _learning_batch(self, X: Any) -> Run:
        """Return a run that learns from a batch and sets the fitted attributes at its end."""
        raise NotImplementedError


def check_fitted_learner(learner: Any) -> tuple[int, int]:
    """Check what all fitted learners have; return the numbers of atoms and of features."""
    learner._check_parameters()
    for name in ("n_nonzero_coefs", "transform_n_nonzero_coefs"):
        if getattr(learner, name, None) is not None:
            check_count(name, getattr(learner, name))
    if learner.n_atoms is not None and not _is_share(learner):
        check_count("n_atoms", learner.n_atoms)
    _check_share(learner)
    check_random_state(learner.random_state)
    check_passes(learner)
    return require_count(learner, "n_atoms_"), check_features(learner)


def choose_n_atoms(learner: Any, n_samples: int, default: int) -> int:
    """Return how many atoms are to be learned from so many rows."""
    if learner.n_atoms is None:
        return min(default, n_samples)
    if _is_share(learner):
        _check_share(learner)
        return max(1, round(float(learner.n_atoms) * n_samples))
    count = check_count("n_atoms", learner.n_atoms)
    if may_outnumber_rows(learner):
        return count
    return clip_count("n_atoms", count, n_samples, "there are rows")


def may_outnumber_rows(learner: Any) -> bool:
    """Whether there may be more atoms than rows to learn from."""
    return bool(getattr(learner, "init", "rows") == "sums")


def check_size(learner: Any, name: str, n_given: int) -> None:
    """Refuse atoms to start from that are not as many as ``n_atoms``, where that is a number."""
    if _is_share(learner) or learner.n_atoms is None:
        return
    if check_count("n_atoms", learner.n_atoms) != n_given:
        raise ValueError(
            f"n_atoms={learner.n_atoms}, but {name} has {n_given} atoms; leave n_atoms out or "
            "make them agree."
        )


def refuse_share(learner: Any) -> None:
    """Refuse a share of the rows where rows come in batches."""
    _check_share(learner)
    if _is_share(learner):
        raise ValueError(
            f"n_atoms={learner.n_atoms} is a share of the rows, and the number of rows "
            "in all batches is not known; give partial_fit a whole number."
        )


def _is_share(learner: Any) -> bool:
    return isinstance(learner.n_atoms, float | np.floating)


def _check_share(learner: Any) -> None:
    if _is_share(learner) and not 0 < learner.n_atoms <= 1:
        raise ValueError(
            "n_atoms must be a whole number, or a share of the rows above 0 and at most 1, "
            f"got {learner.n_atoms}."
        )


def choose_n_nonzero(asked: int | None, n_features: int, limit: int) -> int:
    """Return the most nonzeros of a greedy code: as asked, or a tenth of the features."""
    if asked is None:
        return min(max(1, n_features // 10), limit)
    return clip_count(
        "n_nonzero_coefs", check_count("n_nonzero_coefs", asked), limit, "atoms or features"
    )


def greedy_pursuit(learner: Any, n_nonzero: int) -> OMP:
    """Return how rows are coded with at most so many nonzeros, by OMP or OLS (``selection``)."""
    check_choice("selection", learner.selection, ("omp", "ols"))
    return OMP(n_nonzero, learner.selection, getattr(learner, "positive", False))


def check_ksvd(learner: Any) -> None:
    """Refuse parameters that learners by K-SVD have: ``update`` and ``init``."""
    check_choice("update", learner.update, ("approximate", "exact"))
    check_choice("init", learner.init, ("rows", "sums"))
    if learner.init != "rows" and learner.dict_init is not None:
        raise ValueError(
            f"init={learner.init!r} draws the atoms to start from and dict_init gives them; leave "
            "one of them out."
        )


def draw_atoms(learner: Any, rows: RowSource, n_atoms: int, rng: np.random.RandomState) -> Run:
    """Return atoms to start from: random rows, or sums of some (``init="sums"``); a run."""
    if may_outnumber_rows(learner):
        some = yield from sample_rows(rows, rng)
        some = fill_by_means(some)
        return atoms_from_sums(some, n_atoms, learner.n_nonzero_coefs_, rng)
    return (yield from draw_rows(rows, n_atoms, rng))


def check_sums_fit(n_atoms: int, n_features: int) -> None:
    """Refuse atoms whose sums over rows, W'W and W'X, need more memory than there is."""
    check_fits(
        8.0 * n_atoms * (2 * n_atoms + 4 * n_features),
        f"sums over the codes of n_atoms={n_atoms} atoms",
        "Use fewer atoms, or KSVD.fit, which needs no such sums.",
    )


def learn_by_passes(
    learner: Any,
    X: Any,
    rows: RowSource,
    problems: Problems,
    state: LearnerState,
    attributes: Callable[[LearnerState], dict[str, Any]],
    *,
    in_coordinates: bool = False,
    change_tol: float | None = None,
    by: Callable[..., Run] = passes,
) -> Run:
    """Learn from ``rows``, the signals X or their coordinates in feature space; set attributes."""
    in_memory = isinstance(rows, ArrayRows)
    update = learner._update() if in_memory else learner._update_from_sums()
    if hasattr(update, "take_batch"):
        check_sums_fit(*state.dictionary.shape)
    rows.plan(*state.dictionary.shape)
    reporter = PassReporter(learner, X, int(learner.max_iter), attributes)
    state = reporter.resumed(state, rows if in_coordinates else None)
    yield from by(
        problems, rows, learner._learning_pursuit(), update, state,
        max_iter=reporter.passes_left, tol=float(learner.tol), change_tol=change_tol,
        observer=reporter,
    )  # fmt: skip
    learner._set(**attributes(state))
    reporter.end()


def pass_attributes(state: LearnerState) -> dict[str, Any]:
    """Return the fitted attributes that describe the passes."""
    return {
        "n_atoms_": len(state.best),
        "objective_": np.array(state.objective),
        "best_pass_": state.best_pass,
        "n_iter_": len(state.objective),
    }


def fingerprint(X: Any, weights: NDArray[np.float64] | None = None) -> tuple[Any, ...]:
    """Return shape, type and a CRC of training rows, by which a warm start knows them again."""
    if weights is not None:
        return *fingerprint(X), *fingerprint(weights)
    if isinstance(X, RowSource) and not isinstance(X, ArrayRows):
        return ("source", json.dumps(X.identity(), sort_keys=True))
    X = X.collect() if isinstance(X, RowSource) else X
    array = to_numpy(X)
    return array.shape, array.dtype.str, checksum(array)


def last_state(learner: Any) -> LearnerState:
    """Return where batches go on: after the last one, or after the best pass of ``fit``."""
    state: LearnerState | None = getattr(learner, "state_", None)
    if state is None:
        raise ValueError(f"{type(learner).__name__} has no state_ to continue from: fit it again.")
    if state.n_batches == 0:
        state.n_batches = len(state.objective)  # a pass has seen as much as a batch, and more
    state.dictionary = state.best
    return state


class PassReporter:
    """Inform scikit-learn's callbacks (progress bars, early stopping) and checkpoints about passes.

    ``attributes(state)`` are those of an estimator that would stop there; a state knows the
    objective of its passes.
    """

    def __init__(
        self,
        estimator: Any,
        X: Array,
        max_iter: int,
        attributes: Callable[[Any], dict[str, Any]],
    ) -> None:
        self._estimator, self._X, self._attributes = estimator, X, attributes
        self._max_iter, self._kept = max_iter, kept_run(estimator)
        self._context = estimator._init_callback_context(max_subtasks=max_iter)
        self._context.call_on_fit_task_begin(estimator=estimator, X=X)

    def resumed(self, state: Any, rows: Any) -> Any:
        """Return the state to go on from: this one, or what an earlier, stopped fit has kept.

        ``rows`` are those that are learned from, if they are not those of ``fit``.
        """
        if self._kept is not None:
            state = self._kept.resumed(state, self._max_iter, rows)
            for _ in range(self._kept.n_passes):
                self._context.subcontext(task_name="pass")
        return state

    @property
    def passes_left(self) -> int:
        """How many passes may follow."""
        if self._kept is None:
            return self._max_iter
        return 0 if self._kept.is_done else self._max_iter - self._kept.n_passes

    def begin_pass(self) -> None:
        """Tell that a pass starts."""
        self._began, self._sent = time.perf_counter(), getattr(self._X, "bytes_moved", 0)
        self._pass = self._context.subcontext(task_name="pass")
        self._pass.call_on_fit_task_begin(estimator=self._estimator, X=self._X)

    def end_pass(self, state: Any, is_last: bool) -> bool:
        """Report what a pass reached; return whether a callback asks to stop."""
        stop: bool = self._pass.call_on_fit_task_end(
            estimator=self._estimator,
            X=self._X,
            metadata={
                "objective": state.objective[-1],
                "rows_per_second": _num_samples(self._X) / (time.perf_counter() - self._began),
                "bytes_moved": getattr(self._X, "bytes_moved", 0) - self._sent,
            },
            reconstruction_attributes=lambda: self._attributes(state),
        )
        if self._kept is not None:
            self._kept.keep(state, stop or is_last)
        return stop

    def end(self) -> None:
        """Tell that learning has ended."""
        self._context.call_on_fit_task_end(estimator=self._estimator, X=self._X)
