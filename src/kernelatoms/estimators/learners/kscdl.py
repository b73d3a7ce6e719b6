"""``KSCDL``: kernel sparse coding dictionary learning, atoms as rows of the input space."""

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelatoms.coding.atom_products import KernelAtoms
from kernelatoms.coding.codes import Codes
from kernelatoms.coding.problem import CodingProblem, KernelProblem
from kernelatoms.coding.pursuits import KSC, OMP, Lasso, Pursuit, code_over_nearest
from kernelatoms.engine import Array
from kernelatoms.estimators.base import Bring, sample_rows
from kernelatoms.estimators.coding.arguments import L1_METHODS, refuse_of_other_methods
from kernelatoms.estimators.coding.dictionary_coder import DictionaryCoder
from kernelatoms.estimators.devices.border import refuse_source
from kernelatoms.estimators.learners.base import (
    ONE_BATCH,
    BatchLearner,
    DictionaryLearner,
    check_fitted_learner,
    check_size,
    choose_n_atoms,
    fingerprint,
    last_state,
    learn_by_passes,
    pass_attributes,
    refuse_share,
)
from kernelatoms.estimators.maps.bandwidth import choose_gamma
from kernelatoms.estimators.maps.kernel_choice import KernelChoice, without_contrast_check
from kernelatoms.estimators.state_checks import (
    check_learner_state,
    held,
    require_floats,
    require_number,
)
from kernelatoms.estimators.training_rows import in_type, training_rows, validate_training
from kernelatoms.estimators.validation import (
    check_choice,
    check_complete,
    check_count,
    check_dictionary,
    check_real,
    clip_count,
    refuse_unused,
)
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.preimage import decode_rows
from kernelatoms.learning.descent import descend
from kernelatoms.learning.gradients import GradientStep, PlainStep, project_to_ball
from kernelatoms.learning.loop import batch, passes
from kernelatoms.learning.runs import Run, SumRequest, TakeRequest
from kernelatoms.learning.state import LearnerState
from kernelatoms.rows import ArrayRows, RowSource, draw
from kernelatoms.similarity import Kernel, make_kernel
from kernelatoms.similarity.base import check_flag
from kernelatoms.similarity.contrast import blind_part
from kernelatoms.similarity.factory import check_gradient
from kernelatoms.similarity.gammas import GAMMA_WORDS, check_gamma

# Batch t weighs the curvature of the past by (1 - 1/t) to this power: steps shrink as 5/t, which
# on circles and PlanetLab is nearer to fit's objective after a few epochs than 1/t and 3/t.
_FORGETTING = 4
# Enough to tell whether most codes are empty.
_ROWS_LOOKED_AT = 500


class KSCDL(KernelChoice, BatchLearner, DictionaryLearner, DictionaryCoder):
    """Learn a dictionary of rows for l1 coding in the feature space of a kernel.

    Minimises half of |phi(x) - sum_j w_j phi(d_j)|^2 plus ``alpha`` |w|_1 over all signals x,
    their codes w and the atoms d_j, which are rows (eq. (3) of "Fast kernel sparse coding"). Passes
    alternate between codes, to a duality gap of 1e-6 of k(x, x), and a step of all atoms along the
    gradient (11), scaled by its curvature (with ``partial_fit``, by that of all batches so far) and
    shortened where it would not lower the objective.
    Rows of a source are read once per pass: the pass after a step tells whether it lowered the
    objective, and half of it is taken back where not. ``objective_`` is then that of the atoms
    that a pass begins with.
    Atoms that no signal uses become the worst represented signals. The paper's own algorithm is
    ``method="fksc", change_tol=1e-3, step=1, dict_init="normal"``.

    Parameters
    ----------
    n_atoms : int, optional
        How many atoms; by default as many as features (as in the paper), at most all rows.
    alpha : float, default=0.1
        Weight of |w|_1: 0.001 to 0.1 in the paper. A signal whose kernel values with all atoms
        stay below alpha has the code 0. May be changed after ``fit``, for other codes.
    kernel : str, object or class, default="rbf"
        One whose gradient is known: "rbf", "linear", "poly", "sigmoid", "cosine" or "laplacian"
        (almost everywhere), or what has ``slopes`` (see ``similarity.Kernel``). Where it is not
        bounded, atoms are kept no longer than the longest training row.
    gamma : float, "scale", "auto", "search" or None, default="scale"
        As in ``KernelLinearizer``. "search" tries several on a part of the rows, with the atoms
        asked for, and takes the one whose codes bring held-out rows back with the smallest squared
        error, all at the same mean number of nonzeros (of those within a quarter of it, the one
        that needs the alpha nearest to the given one).
    degree, coef0 : float
        Parameters of the kernels by name, as in scikit-learn.
    kernel_params : dict, optional
        The arguments of a class.
    method : {"lasso", "ksc", "fksc"}, default="lasso"
        What solves for the codes, as in ``sparse_encode``: the paper's coordinate descent in one
        stage ("ksc") or in two ("fksc") has the same minimum and is many times slower.
    change_tol : float, optional
        For "ksc" and "fksc": the paper's stops (at 1e-3) in place of the duality gap and of
        ``tol``: when a pass changes codes (after 100 passes at the latest), or atoms, by no more
        than this share of their norm. Under wide kernels such codes are far from the minimum.
    step : float, optional
        The paper's own step, between 0 and 2: by ``step`` / L, L the largest curvature, whatever
        the objective does; atoms that no signal uses stay. Not for ``partial_fit``.
    positive : bool, default=False
        For "lasso": allow no negative coefficients.
    transform_n_nonzero_coefs : int, optional
        Let ``transform`` code by orthogonal matching pursuit with so many atoms per signal. At
        equal nonzeros its errors are smaller; l1 codes adapt the nonzeros to each signal.
    max_iter : int, default=100
        The most passes of coding and moving.
    tol : float, default=1e-3
        Stop when three passes together lower the objective by no more than this share of it.
    dict_init : "normal" or array of shape (n_atoms, n_features), optional
        Atoms to start from: by default random rows, much better than the paper's "normal".
    warm_start : bool, default=False
        Go on where the last ``fit`` of these rows stopped; with others, from its dictionary.
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR array or a dense one.
    random_state : int, RandomState or None
        Seeds the start, and the rows that ``gamma="search"`` looks at.

    Attributes
    ----------
    components_ : array of shape (n_atoms_, n_features)
        The atoms of the best pass, in input space.
    objective_ : array of shape (n_iter_,)
        The objective after every pass; after ``partial_fit``, that of the last batch.
    best_pass_ : int
        The pass of the lowest objective, counted from 0: ``components_`` are its atoms.
    gamma_ : float or None
        The kernel's gamma; None if it has none.
    gamma_scores_ : dict of arrays
        With ``gamma="search"``, what was tried: ``gamma``, ``error`` (the share of held-out squared
        norm that is lost), ``n_nonzero`` (per row) and ``alpha``.
    n_atoms_, n_iter_ : int
        What the data allowed, and the passes run.
    max_norm_ : float or None
        The longest that atoms may be; None if they are not bounded.
    state_ : LearnerState
        Where learning stopped: curvature, use of atoms. What ``partial_fit`` goes on from.

    Notes
    -----
    Computed in float64, also for float32 rows: under a wide kernel all kernel values are near 1.

    ``inverse_transform`` returns rows y with phi(y) nearest to sum_j w_j phi(d_j), by eq. (19):
    ``codes @ components_`` under the linear kernel; under RBF and polynomial ones a local minimum,
    from several starts. A code of zeros represents the row 0.

    Examples
    --------
    Rows along a curve, which a linear dictionary needs both coordinates for:

    >>> import numpy as np
    >>> from kernelatoms import KSCDL
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> model = KSCDL(n_atoms=12, alpha=0.02, gamma=2, random_state=0).fit(circle)
    >>> codes = model.transform(circle)
    >>> back = model.inverse_transform(codes)
    >>> bool(np.abs(back - circle).max() < 0.1)
    True
    """

    def __init__(
        self,
        n_atoms: int | None = None,
        *,
        alpha: float = 0.1,
        kernel: Any = "rbf",
        gamma: float | str | None = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        method: str = "lasso",
        change_tol: float | None = None,
        step: float | None = None,
        positive: bool = False,
        transform_n_nonzero_coefs: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-3,
        dict_init: Any = None,
        warm_start: bool = False,
        sparse_output: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.method = method
        self.change_tol = change_tol
        self.step = step
        self.positive = positive
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        self.max_iter = max_iter
        self.tol = tol
        self.dict_init = dict_init
        self.warm_start = warm_start
        self.sparse_output = sparse_output
        self.random_state = random_state

    def _learning(self, X: Any) -> Run:
        self._check_parameters()
        given = training_rows(self, X).rows
        rows = in_type(given, np.float64)
        rng = check_random_state(self.random_state)
        some = yield from sample_rows(rows, self.random_state)
        kernel = self._settle_kernel(some, rng)
        self.max_norm_ = None if kernel.bounded else (yield from _longest_of(rows))
        state = yield from self._starting_state(rows, rng)

        def attributes(state: LearnerState) -> dict[str, Any]:
            atoms = state.best.astype(given.dtype, copy=False)
            return {"components_": atoms, "state_": state, **pass_attributes(state)}

        yield from learn_by_passes(
            self, X, rows, self._problems, state, attributes, change_tol=self.change_tol,
            by=passes if isinstance(rows, ArrayRows) else descend,
        )  # fmt: skip
        step = -(-rows.count() // _ROWS_LOOKED_AT)
        self._warn_of_empty_codes((yield TakeRequest(given, np.arange(0, rows.count(), step))))

    def _learning_batch(self, X: Any) -> Run:
        self._check_parameters()
        refuse_source("KSCDL.partial_fit", X, ONE_BATCH)  # steps look at a batch several times
        refuse_unused(type(self), {"step": self.step}, "belongs to fit, not to partial_fit")
        first = not hasattr(self, "components_")
        X = validate_training(self, X, reset=first)
        rows = X.astype(np.float64, copy=False)
        if first:
            rng = check_random_state(self.random_state)
            kernel = self._settle_kernel(rows, rng)
            self.max_norm_ = None if kernel.bounded else _longest(rows)
            start = yield from self._start(ArrayRows(rows), rng, batches=True)
            state = LearnerState.start(start, rng)
            dtype = X.dtype
        else:
            state, dtype = last_state(self), self.components_.dtype
            if not self._kernel().bounded:
                self.max_norm_ = max(self.max_norm_ or 0.0, _longest(rows))
        n_atoms = len(state.dictionary) if first else self._n_atoms_of_batches(rows.shape[1])
        yield from batch(
            self._problems, rows, self._pursuit(), self._update(),
            state, n_atoms=n_atoms, decay=(1 - 1 / (state.n_batches + 1)) ** _FORGETTING,
        )  # fmt: skip
        atoms = state.dictionary.astype(dtype, copy=False)
        self._set(components_=atoms, state_=state, **pass_attributes(state))

    def _inverse_transform(self, codes: Any) -> Array:
        codes = self._check_codes(codes)
        state: RowAtomsState = self._fitted()
        return decode_rows(state.kernel, state.components.astype(codes.dtype), codes)

    def _problems(self, atoms: Array, n_signals: int) -> Callable[[Array], CodingProblem]:
        """Return how problems over atoms are posed."""
        return lambda rows: self._problem_over(rows, atoms)

    def _problem_over(self, rows: Array, atoms: Array) -> CodingProblem:
        return KernelProblem(rows, Expansion(self._kernel(), atoms))

    def _make_fitted(self, bring: Bring) -> "RowAtomsState":
        return RowAtomsState(self._kernel(), bring(self.components_))

    @staticmethod
    def _joint_problem(learners: Sequence[Any], X: Array) -> CodingProblem:
        check_complete(X)
        atoms = np.concatenate([learner._fitted().components for learner in learners])
        atoms = atoms.astype(np.float64)
        return learners[0]._problem_over(X.astype(np.float64, copy=False), atoms)

    def _pursuit(self) -> Pursuit:
        alpha = check_real("alpha", self.alpha, low=0, low_open=True)
        if self.method == "lasso":
            return Lasso(alpha, self.positive)
        return KSC(alpha, self.method, self.change_tol)

    def _joint_pursuit(self, n_atoms: int, n_nonzero: int | None) -> Pursuit:
        return self._coding_pursuit(n_atoms)

    def _coding_pursuit(self, n_atoms: int) -> Pursuit:
        """Return how rows are coded by ``transform``."""
        if self.transform_n_nonzero_coefs is None:
            return self._pursuit()
        count = check_count("transform_n_nonzero_coefs", self.transform_n_nonzero_coefs)
        count = clip_count("transform_n_nonzero_coefs", count, n_atoms, "there are atoms")
        return OMP(count, "omp", self.positive)

    def _update(self) -> GradientStep:
        kernel, alpha = self._kernel(), float(self.alpha)
        if self.step is None:
            return GradientStep(kernel, alpha, self.max_norm_)
        return PlainStep(kernel, alpha, self.max_norm_, float(self.step))

    def _encode(self, X: Array, n_neighbors: int | None = None) -> Codes:
        self._check_coding()
        check_complete(X)
        pursuit = self._coding_pursuit(self.n_atoms_)
        return code_over_nearest(pursuit, self._problem(X), n_neighbors).astype(X.dtype)

    def _n_atoms_of_batches(self, n_features: int) -> int:
        """Return how many atoms batches lead to."""
        refuse_share(self)
        if not (self.dict_init is None or isinstance(self.dict_init, str)):
            return len(self.dict_init)
        return n_features if self.n_atoms is None else check_count("n_atoms", self.n_atoms)

    def _starting_state(self, rows: RowSource, rng: np.random.RandomState) -> Run:
        """Return where the last fit of these rows stopped, its atoms, or a start; a run."""
        if not self.warm_start:
            return LearnerState.start((yield from self._start(rows, rng)), rng)
        data = fingerprint(rows)
        if hasattr(self, "components_"):
            name = "components_ (warm_start)"
            atoms = check_dictionary(name, self.components_, rows.n_features or 0, np.float64)
            check_size(self, name, len(atoms))
            last: LearnerState | None = getattr(self, "state_", None)
            if last is not None and last.data == data:
                return last
            state = LearnerState.start(project_to_ball(atoms, self.max_norm_), rng)
        else:
            state = LearnerState.start((yield from self._start(rows, rng)), rng)
        state.data = data
        return state

    def _start(self, rows: RowSource, rng: np.random.RandomState, batches: bool = False) -> Run:
        """Settle the size; return atoms to start from, to which batches may add; a run."""
        n_samples, n_features = rows.count(), rows.n_features or 0
        given = self.dict_init
        if given is None or isinstance(given, str):
            if given not in (None, "normal"):
                raise ValueError(
                    f"dict_init must be None (random rows), 'normal' or an array, got {given!r}."
                )
            if batches:
                n_atoms = min(self._n_atoms_of_batches(n_features), n_samples)
            else:
                n_atoms = choose_n_atoms(self, n_samples, n_features)
            if given is None:
                return (yield TakeRequest(rows, draw(n_samples, n_atoms, rng)))
            return project_to_ball(rng.standard_normal((n_atoms, n_features)), self.max_norm_)
        start = check_dictionary("dict_init", given, n_features, np.float64)
        check_size(self, "dict_init", len(start))
        return project_to_ball(start, self.max_norm_)

    def _warn_of_empty_codes(self, X: Array) -> None:
        """Warn if most of these rows have the code 0, unless the kernel is known to be blind."""
        empty = float((self._encode(X).to_csr().count_nonzero(axis=1) == 0).mean())
        if empty > 0.5 and blind_part(self._kernel(), X) is None:
            gamma = "" if self.gamma_ is None else f"gamma={self.gamma_:.3g} or "
            rows = ", start from rows (dict_init=None)" if self.dict_init is not None else ""
            warnings.warn(
                f"{empty:.0%} of the training codes are empty: {gamma}alpha={self.alpha:g} is too "
                "large for these rows, whose kernel values with all atoms stay below alpha. Scale "
                f"the rows{rows}, or choose smaller values (gamma='scale' or 'search').",
                UserWarning,
                stacklevel=4,
            )

    def _asked_kernel(self) -> Kernel:
        return make_kernel(
            self.kernel, gamma=None if self._searches else self.gamma, degree=self.degree,
            coef0=self.coef0, kernel_params=self.kernel_params,
        )  # fmt: skip

    @property
    def _searches(self) -> bool:
        return isinstance(self.gamma, str) and self.gamma == "search"

    def _settle_kernel(self, rows: Array, rng: np.random.RandomState) -> Kernel:
        self.__dict__.pop("gamma_scores_", None)  # of an earlier fit
        if not self._searches:
            return self._fit_kernel(self._asked_kernel(), rows)
        with without_contrast_check():  # of the gamma that a search begins with
            kernel = self._fit_kernel(self._asked_kernel(), rows)
            self.gamma_, self.gamma_scores_ = choose_gamma(self, kernel, rows, rng)
        kernel = kernel.with_gamma(self.gamma_)
        self._check_contrast(kernel, rows)
        return kernel

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_coding()
        check_flag("positive", self.positive)
        if self.step is not None:
            check_real("step", self.step, low=0, high=2, low_open=True)
        if self.change_tol is not None:
            why = "does not count where change_tol tells when to stop"
            refuse_unused(type(self), {"tol": self.tol}, why)
        kernel = self._asked_kernel()
        if self._searches and not kernel.has_gamma:
            raise ValueError(f"gamma='search': kernel {kernel.name!r} has no gamma to choose.")

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other."""
        n_atoms, n_features = check_fitted_learner(self)
        self._check_rows_held("components_", n_features, n_atoms)
        if held(self, "max_norm_") is not None:
            require_number(self, "max_norm_")
        if not (self.dict_init is None or isinstance(self.dict_init, str)):
            check_dictionary("dict_init", self.dict_init, n_features, np.float64)
        check_learner_state(
            self, n_atoms, n_features,
            lambda state: require_floats(state, "sums", (n_atoms, n_atoms)),
        )  # fmt: skip

    def _check_coding(self) -> None:
        check_gamma(self.gamma, words=(*GAMMA_WORDS, "search"))
        check_gradient(self._asked_kernel())
        check_real("alpha", self.alpha, low=0, low_open=True)
        check_choice("method", self.method, L1_METHODS)
        refuse_of_other_methods(self.method, type(self), {"change_tol": self.change_tol})
        if self.method != "lasso":
            refuse_unused(type(self), {"positive": self.positive}, "belongs to method='lasso'")
        if self.change_tol is not None:
            check_real("change_tol", self.change_tol, low=0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False  # the duality gap needs all of a row
        return tags


def _longest(rows: Array) -> float:
    return float(np.linalg.norm(rows, axis=1).max())


class _Largest(float):
    """A number whose sum with another one is the larger of both."""

    def __add__(self, other: float) -> "_Largest":
        return _Largest(max(self, other))


def _longest_of(rows: RowSource) -> Run:
    """Return the norm of the longest row; a run."""
    found = yield SumRequest(
        rows, lambda block, _: _Largest(_longest(block)), rows.default_block_rows
    )
    return float(found)


class RowAtomsState:
    """The fitted state of a dictionary whose atoms are phi of rows."""

    def __init__(self, kernel: Kernel, components: Array) -> None:
        self.kernel, self.components = kernel, components

    @property
    def expansion(self) -> Expansion:
        """The atoms as vectors of the feature space."""
        return Expansion(self.kernel, self.components)

    @cached_property
    def _atoms(self) -> KernelAtoms:
        return KernelAtoms(Expansion(self.kernel, self.components.astype(np.float64)))

    def problem(self, X: Array) -> CodingProblem:
        """Return the problem of coding rows over the atoms, in float64."""
        return KernelProblem(X.astype(np.float64, copy=False), self._atoms)
