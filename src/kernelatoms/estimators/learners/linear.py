"""Dictionary learners: ``MOD`` and ``KSVD``."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelatoms.coding.problem import CodingProblem, LinearProblem, linear_problems
from kernelatoms.coding.pursuits import OMP, Lasso, Pursuit
from kernelatoms.engine import Array, machine
from kernelatoms.estimators.base import unnamed
from kernelatoms.estimators.coding.dictionary_coder import DictionaryCoder
from kernelatoms.estimators.devices.border import learn
from kernelatoms.estimators.devices.conversion import to_machine
from kernelatoms.estimators.learners.base import (
    BatchLearner,
    WeightedLearner,
    check_fitted_learner,
    check_ksvd,
    check_size,
    check_sums_fit,
    choose_n_atoms,
    choose_n_nonzero,
    draw_atoms,
    fingerprint,
    greedy_pursuit,
    last_state,
    learn_by_passes,
    may_outnumber_rows,
    pass_attributes,
    refuse_share,
)
from kernelatoms.estimators.state_checks import (
    check_learner_state,
    check_moments,
    require_count,
    require_floats,
)
from kernelatoms.estimators.training_rows import in_type, training_rows
from kernelatoms.estimators.validation import (
    FLOATS,
    check_any,
    check_choice,
    check_complete,
    check_count,
    check_dictionary,
    check_real,
)
from kernelatoms.learning.gradients import project_to_ball
from kernelatoms.learning.ksvd import KSVDSums, KSVDUpdate, sums_of_uses
from kernelatoms.learning.loop import batch, passes
from kernelatoms.learning.missing import fill_by_means
from kernelatoms.learning.mod import BlockDescent, LeastSquares
from kernelatoms.learning.runs import Run, SumRequest
from kernelatoms.learning.state import LearnerState, unit_rows
from kernelatoms.rows import ArrayRows, RowSource
from kernelatoms.similarity.base import check_flag

# Batch t weighs the sums of the past by (1 - 1/t) to this power, but for MOD's greedy codes; 2 is
# slower, 4 better late and worse early. See docs/decisions/034-online-learning.md and
# docs/decisions/062-ksvd-from-sums.md.
_FORGETTING = 3


@unnamed
class LinearLearner(WeightedLearner, DictionaryCoder):
    """Learn atoms that are rows, for greedy or l1 codes; a subclass says how (``_update``)."""

    n_nonzero_coefs_: int
    _on_devices = True

    def __init__(
        self,
        n_atoms: int | float | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        selection: str = "omp",
        max_iter: int = 20,
        tol: float = 1e-4,
        dict_init: Any = None,
        warm_start: bool = False,
        sparse_output: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.n_nonzero_coefs = n_nonzero_coefs
        self.selection = selection
        self.max_iter = max_iter
        self.tol = tol
        self.dict_init = dict_init
        self.warm_start = warm_start
        self.sparse_output = sparse_output
        self.random_state = random_state

    def _learning(self, X: Any, sample_weight: Any = None) -> Run:
        self._check_parameters()
        rows, weights, complete = training_rows(self, X, sample_weight)
        state = yield from self._starting_state(rows, weights)

        def attributes(state: LearnerState) -> dict[str, Any]:
            fitted = {"components_": state.best, **pass_attributes(state)}
            return fitted | ({"state_": state} if self._keeps_state else {})

        yield from learn_by_passes(
            self, X, rows, partial(linear_problems, complete=complete), state, attributes,
            by=partial(passes, weights=weights),
        )  # fmt: skip

    @property
    def _is_greedy(self) -> bool:
        """Whether codes are greedy, of ``n_nonzero_coefs`` nonzeros, and atoms of unit norm."""
        return True

    def _update(self) -> Any:
        raise NotImplementedError

    @property
    def _learns_missing(self) -> bool:  # type: ignore[override]
        return self._is_greedy and not getattr(self, "positive", False)

    def _learning_pursuit(self) -> Pursuit:
        pursuit = self._pursuit()
        return replace(pursuit, sparing=True) if isinstance(pursuit, OMP) else pursuit

    def _pursuit(self) -> Pursuit:
        return greedy_pursuit(self, self.n_nonzero_coefs_)

    def _joint_pursuit(self, n_atoms: int, n_nonzero: int | None) -> Pursuit:
        count = min(n_nonzero or self.n_nonzero_coefs_, n_atoms, self.n_features_in_)
        return greedy_pursuit(self, count)

    @staticmethod
    def _joint_problem(learners: Sequence[Any], X: Array) -> CodingProblem:
        atoms = np.concatenate([learner._fitted(X).components for learner in learners])
        return LinearProblem(X, atoms.astype(X.dtype, copy=False))

    @property
    def _keeps_state(self) -> bool:
        """Whether a later call may go on from where this one ended."""
        return self.warm_start

    def _starting_state(self, rows: RowSource, weights: NDArray[np.float64] | None) -> Run:
        """Settle the sizes; return where the last fit of these rows stopped, or a start."""
        n_features = rows.n_features or 0
        data = fingerprint(rows, weights) if self.warm_start else None
        warm = self.warm_start and hasattr(self, "components_")
        last: LearnerState | None = getattr(self, "state_", None) if warm else None
        if last is not None and last.data == data and len(last.dictionary) == self.n_atoms_:
            start = self._check_start("components_ (warm_start)", last.dictionary, rows)
            self._settle_nonzeros(n_features, len(start))
            return last
        rng = check_random_state(self.random_state)
        given = self.components_ if warm else self.dict_init
        if given is not None:
            name = "dict_init" if not warm else "components_ (warm_start)"
            start = self._check_start(name, given, rows)
            self._settle_nonzeros(n_features, len(start))
        else:
            n_atoms = choose_n_atoms(self, rows.count(), 2 * n_features)
            self._settle_nonzeros(n_features, n_atoms)
            start = yield from draw_atoms(self, rows, n_atoms, rng)
        state = LearnerState.start(start, rng)
        state.data = data
        return state

    def _check_start(self, name: str, given: Any, rows: RowSource) -> Array:
        start = check_dictionary(name, given, rows.n_features or 0, rows.dtype)
        if isinstance(rows, ArrayRows):
            start = to_machine(start, rows.collect())
        check_size(self, name, len(start))
        return unit_rows(start) if self._is_greedy else project_to_ball(start, 1.0)

    def _settle_nonzeros(self, n_features: int, n_atoms: int) -> None:
        if self._is_greedy:
            limit = min(n_atoms, n_features)
            self.n_nonzero_coefs_ = choose_n_nonzero(self.n_nonzero_coefs, n_features, limit)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("selection", self.selection, ("omp", "ols"))

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other."""
        n_atoms, n_features = check_fitted_learner(self)
        if self._is_greedy:
            require_count(self, "n_nonzero_coefs_", high=n_atoms)
        require_floats(self, "components_", (n_atoms, n_features))
        if self.dict_init is not None:
            check_dictionary("dict_init", self.dict_init, n_features, np.float64)
        if "state_" in vars(self):
            check_learner_state(
                self, n_atoms, n_features,
                lambda state: check_moments(state, "sums", n_atoms, n_features),
            )  # fmt: skip


@unnamed
class BatchLinearLearner(BatchLearner, LinearLearner):
    """Learn atoms that are rows from batches of rows, too."""

    _keeps_state = True

    def _learning_batch(self, X: Any) -> Run:
        self._check_parameters()
        first = not hasattr(self, "components_")
        rows, _, complete = training_rows(self, X, reset=first)
        state = (yield from self._first_state(rows)) if first else last_state(self)
        rows = in_type(rows, state.dictionary.dtype)
        n_features = rows.n_features or 0
        # The first batch has given its rows already; later ones give theirs until all are there.
        n_atoms = len(state.dictionary) if first else self._n_atoms_of_batches(n_features)
        self._settle_batch_nonzeros(n_features, min(len(state.dictionary) + rows.count(), n_atoms))
        if state.sums is None and state.objective:
            state.sums = yield from self._sums_of_fit(state, rows)
        yield from batch(
            partial(linear_problems, complete=complete), rows, self._learning_pursuit(),
            self._update_from_sums(), state, n_atoms=n_atoms,
            decay=self._decay(state.n_batches + 1),
        )  # fmt: skip
        fitted = {"components_": state.dictionary, "state_": state, **pass_attributes(state)}
        self._set(**fitted)

    def change_coordinates(self, change: Any) -> Self:
        """Bring atoms, and the sums of past rows, to other coordinates of the same vectors.

        What ``KernelLinearizer.renew`` asks for; learning then goes on. Atoms stay at unit norm
        (with ``alpha``, at most); where nothing is left of one, later batches replace it.

        Parameters
        ----------
        change : array of shape (n_features, n_new_features)
            Row vectors of coordinates times ``change`` are the new coordinates.

        Returns
        -------
        self
        """
        learn(self._change_coordinates, self, change, name="change", from_nothing=False)
        return self

    def _change_coordinates(self, change: Any) -> None:
        check_is_fitted(self)
        change = check_any(change, dtype=FLOATS, input_name="change")
        if change.shape[0] != self.n_features_in_:
            raise ValueError(
                f"change must have a row for each of the {self.n_features_in_} coordinates of the "
                f"atoms, got shape {change.shape}."
            )
        state = last_state(self)
        self._update_from_sums().change_coordinates(state, change)
        self.n_features_in_ = change.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        self._settle_batch_nonzeros(change.shape[1], len(state.dictionary))
        self.components_, self.state_ = state.dictionary, state

    def _decay(self, batch: int) -> float:
        """Return the weight of the past at a batch, counted from 1."""
        raise NotImplementedError

    def _sums_of_fit(self, state: LearnerState, rows: RowSource) -> Run:
        """Return sums for a fit that has added none up; ``rows`` are a batch's; a run."""
        raise NotImplementedError

    def _settle_batch_nonzeros(self, n_features: int, n_atoms: int) -> None:
        """Use as many nonzeros as asked for and there are atoms so far; more may come."""
        if self._is_greedy:
            limit = min(self._n_atoms_of_batches(n_features), n_features)
            most = choose_n_nonzero(self.n_nonzero_coefs, n_features, limit)
            self.n_nonzero_coefs_ = min(most, n_atoms)

    def _n_atoms_of_batches(self, n_features: int) -> int:
        """Return how many atoms batches lead to."""
        refuse_share(self)
        if hasattr(self, "components_") and self.n_atoms is None:
            return max(len(self.components_), 2 * n_features if self.dict_init is None else 0)
        if self.n_atoms is None:
            return 2 * n_features if self.dict_init is None else len(self.dict_init)
        n_atoms = check_count("n_atoms", self.n_atoms)
        check_sums_fit(n_atoms, n_features)
        return n_atoms

    def _first_state(self, rows: RowSource) -> Run:
        """Return the state before the first batch; a run."""
        n_features = rows.n_features or 0
        n_atoms = self._n_atoms_of_batches(n_features)
        rng = check_random_state(self.random_state)
        if self.dict_init is not None:
            start = self._check_start("dict_init", self.dict_init, rows)
            return LearnerState.start(start, rng)
        if not may_outnumber_rows(self):
            n_atoms = min(n_atoms, rows.count())
        self._settle_batch_nonzeros(n_features, n_atoms)
        return LearnerState.start((yield from draw_atoms(self, rows, n_atoms, rng)), rng)


class KSVD(BatchLinearLearner):
    """Learn a dictionary by K-SVD: sparse coding, then every atom with its coefficients in turn.

    Minimises |X - W D|^2 over codes W with few nonzeros per row and unit-norm atoms D (Aharon, Elad
    and Bruckstein, 2006). Atoms that no signal uses become the worst represented signals.

    Refreshing coefficients needs all rows at hand. ``partial_fit`` learns from batches by sums over
    rows instead: a batch is coded, and all atoms become the best ones for the codes so far, where
    those before batch t weigh (1 - 1/t)^3.

    Parameters
    ----------
    n_atoms : int or float, optional
        Atoms, or their share of the rows; by default twice the features, at most all rows.
    n_nonzero_coefs : int, optional
        The most atoms a signal uses; by default a tenth of the features, at least 1.
    selection : {"omp", "ols"}, default="omp"
        Pick atoms by correlation, or by residual decrease: smaller residuals, 10 to 20% slower.
    update : {"approximate", "exact"}, default="approximate"
        Improve atoms by two sweeps of two alternations each towards their leading singular pairs,
        or by one sweep of exact ones, as published: slower, on the CPU alone, and no better.
    max_iter : int, default=20
        The most passes of coding and updating.
    tol : float, default=1e-4
        Stop when three passes together lower the objective by no more than this share of it.
    init : {"rows", "sums"}, default="rows"
        Start from random rows at unit norm, or from sums of ``n_nonzero_coefs`` random rows each
        (Nguyen et al., Fig. 3). With sums there may be more atoms than rows.
    dict_init : array of shape (n_atoms, n_features), optional
        Atoms to start from (scaled to unit norm), in place of ``init``.
    warm_start : bool, default=False
        Go on where the last ``fit`` of these rows stopped; with others, from its dictionary.
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR array or a dense one.
    random_state : int, RandomState or None
        Seeds the start.

    Attributes
    ----------
    components_ : array of shape (n_atoms_, n_features)
        The atoms of the best pass, at unit norm.
    objective_ : array of shape (n_iter_,)
        |X - W D|^2 over all signals after every pass; it may rise, and the best pass counts. After
        ``partial_fit``, by the sums so far.
    best_pass_ : int
        The pass of the lowest objective, counted from 0: ``components_`` are its atoms.
    n_atoms_, n_nonzero_coefs_, n_iter_ : int
        What the data allowed, and the passes run.
    state_ : LearnerState
        Where learning stopped: what ``partial_fit`` and ``warm_start`` go on from.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import KSVD
    >>> X = np.random.default_rng(0).normal(size=(200, 16))
    >>> ksvd = KSVD(n_atoms=32, n_nonzero_coefs=4, max_iter=5, random_state=0).fit(X)
    >>> codes = ksvd.transform(X)
    >>> codes.shape, codes.nnz
    ((200, 32), 800)

    From batches:

    >>> online = KSVD(n_atoms=32, n_nonzero_coefs=4, random_state=0)
    >>> for batch in np.split(X, 4):
    ...     online = online.partial_fit(batch)
    >>> online.components_.shape
    (32, 16)
    """

    def __init__(
        self,
        n_atoms: int | float | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        selection: str = "omp",
        update: str = "approximate",
        max_iter: int = 20,
        tol: float = 1e-4,
        init: str = "rows",
        dict_init: Any = None,
        warm_start: bool = False,
        sparse_output: bool = True,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_atoms,
            n_nonzero_coefs=n_nonzero_coefs,
            selection=selection,
            max_iter=max_iter,
            tol=tol,
            dict_init=dict_init,
            warm_start=warm_start,
            sparse_output=sparse_output,
            random_state=random_state,
        )
        self.update = update
        self.init = init

    def _update(self) -> Any:
        return KSVDUpdate(exact=self.update == "exact")

    def _update_from_sums(self) -> KSVDSums:
        return KSVDSums()

    def _decay(self, batch: int) -> float:
        return forgetting(batch)

    def _sums_of_fit(self, state: LearnerState, rows: RowSource) -> Run:
        total = yield SumRequest(rows, lambda block, _: _energy(block), rows.default_block_rows)
        return sums_of_uses(state, total / rows.count() / self.n_nonzero_coefs_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_ksvd(self)


class MOD(BatchLinearLearner):
    """Learn a dictionary by MOD: sparse coding, then the best dictionary for the codes.

    With greedy codes, minimises |X - W D|^2 over codes W with few nonzeros per row and unit-norm
    atoms D (Engan, Aase and Husoy, 1999). With ``alpha``, minimises half of |X - W D|^2 plus alpha
    |W|_1 over atoms of at most unit norm, by block coordinate descent (Mairal, Bach, Ponce and
    Sapiro, 2010); ``partial_fit`` is then online dictionary learning. Atoms that no signal uses
    become the worst represented signals.

    Parameters
    ----------
    n_atoms : int or float, optional
        Atoms, or their share of the rows; by default twice the features, at most all rows.
    n_nonzero_coefs : int, optional
        The most atoms a signal uses; by default a tenth of the features. Not with ``alpha``.
    selection : {"omp", "ols"}, default="omp"
        Pick atoms by correlation, or by residual decrease: smaller residuals, 10 to 20% slower.
    alpha : float, optional
        Code by the l1 penalty of this weight instead of greedily.
    positive : bool, default=False
        Allow no negative coefficients.
    max_iter : int, default=20
        The most passes of coding and updating.
    tol : float, default=1e-4
        Stop when three passes together lower the objective by no more than this share of it.
    dict_init : array of shape (n_atoms, n_features), optional
        Atoms to start from (scaled to unit norm); by default random rows of the data.
    warm_start : bool, default=False
        Go on where the last ``fit`` of these rows stopped; with others, from its dictionary.
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR array or a dense one.
    forget : float, optional
        Weight of the past at every ``partial_fit``, above 0 and at most 1; below 1, sums of early,
        poor codes fade. By default 1; with ``alpha``, (1 - 1/t)^3 at batch t.
    random_state : int, RandomState or None
        Seeds the start.

    Attributes
    ----------
    components_ : array of shape (n_atoms_, n_features)
        The atoms of the best pass, at unit norm; with ``alpha``, of at most unit norm.
    objective_ : array of shape (n_iter_,)
        What is minimised, over all signals, after every pass; after ``partial_fit``, by the sums
        so far. An upper bound of it where values are missing. Without ``alpha`` it may rise, and
        the best pass counts.
    best_pass_ : int
        The pass of the lowest objective, counted from 0: ``components_`` are its atoms.
    n_atoms_, n_nonzero_coefs_, n_iter_ : int
        What the data allowed, and the passes run.
    state_ : LearnerState
        Where learning stopped: sums over rows, use of atoms. What ``partial_fit`` goes on from.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import MOD
    >>> X = np.random.default_rng(0).normal(size=(200, 16))
    >>> mod = MOD(n_atoms=32, n_nonzero_coefs=4, random_state=0)
    >>> for batch in np.split(X, 4):
    ...     mod = mod.partial_fit(batch)
    >>> mod.components_.shape
    (32, 16)

    Online dictionary learning:

    >>> online = MOD(n_atoms=32, alpha=0.5, random_state=0)
    >>> for batch in np.split(X, 4):
    ...     online = online.partial_fit(batch)
    >>> online.score(X) > 0.5
    True
    """

    def __init__(
        self,
        n_atoms: int | float | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        selection: str = "omp",
        alpha: float | None = None,
        positive: bool = False,
        max_iter: int = 20,
        tol: float = 1e-4,
        dict_init: Any = None,
        warm_start: bool = False,
        sparse_output: bool = True,
        forget: float | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_atoms,
            n_nonzero_coefs=n_nonzero_coefs,
            selection=selection,
            max_iter=max_iter,
            tol=tol,
            dict_init=dict_init,
            warm_start=warm_start,
            sparse_output=sparse_output,
            random_state=random_state,
        )
        self.alpha = alpha
        self.positive = positive
        self.forget = forget

    @property
    def _is_greedy(self) -> bool:
        return self.alpha is None

    def _pursuit(self) -> Pursuit:
        if self.alpha is not None:
            return Lasso(check_real("alpha", self.alpha, low=0, low_open=True), self.positive)
        return super()._pursuit()

    def _joint_pursuit(self, n_atoms: int, n_nonzero: int | None) -> Pursuit:
        return super()._joint_pursuit(n_atoms, n_nonzero) if self._is_greedy else self._pursuit()

    def _update(self) -> Any:
        return LeastSquares() if self.alpha is None else BlockDescent(float(self.alpha))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag("positive", self.positive)
        if self.forget is not None:
            check_real("forget", self.forget, low=0, high=1, low_open=True)
        if self.alpha is None:
            return
        check_real("alpha", self.alpha, low=0, low_open=True)
        if self.n_nonzero_coefs is not None:
            raise ValueError(
                f"alpha={self.alpha} asks for l1 codes and n_nonzero_coefs={self.n_nonzero_coefs} "
                "for greedy ones; give one of them."
            )
        if self.selection != "omp":
            raise ValueError(
                f"selection={self.selection!r} belongs to greedy codes, and alpha={self.alpha} "
                "asks for l1 codes; leave one of them out."
            )

    def _validated(self, X: Any) -> Array:
        X = super()._validated(X)
        if self.alpha is not None:
            check_complete(X)  # masked pursuits are greedy
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.alpha is None  # l1 codes are of complete rows
        return tags

    def _decay(self, batch: int) -> float:
        if self.forget is not None:
            return float(self.forget)
        return 1.0 if self.alpha is None else forgetting(batch)


def _energy(rows: Array) -> float:
    filled = fill_by_means(rows)
    return float(machine(filled).squared_norms(filled).sum())


def forgetting(batch: int) -> float:
    """Return the weight of the past at a batch, so that sums of early, poor codes fade."""
    return float((1 - 1 / batch) ** _FORGETTING)
