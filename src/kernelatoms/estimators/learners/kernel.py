"""Dictionary learners in feature space: ``KernelMOD`` and ``KernelKSVD``."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from kernelatoms.coding.problem import linear_problems
from kernelatoms.coding.pursuits import Pursuit
from kernelatoms.engine import Array, machine
from kernelatoms.estimators.base import Bring, sample_rows, unnamed
from kernelatoms.estimators.coding.dictionary_coder import DictionaryCoder
from kernelatoms.estimators.devices.border import as_labels
from kernelatoms.estimators.devices.conversion import to_machine
from kernelatoms.estimators.learners.base import (
    WeightedLearner,
    check_fitted_learner,
    check_ksvd,
    check_size,
    choose_n_atoms,
    choose_n_nonzero,
    draw_atoms,
    greedy_pursuit,
    learn_by_passes,
    pass_attributes,
)
from kernelatoms.estimators.learners.kernel_atoms import (
    KernelState,
    check_kernel_atoms,
    joint_kernel_problem,
)
from kernelatoms.estimators.maps.kernel_choice import KernelChoice, without_contrast_check
from kernelatoms.estimators.maps.linearizer import KernelLinearizer
from kernelatoms.estimators.maps.map_learner import mapped_rows
from kernelatoms.estimators.state_checks import require_count
from kernelatoms.estimators.training_rows import in_type, refuse_precomputed, training_rows
from kernelatoms.estimators.validation import (
    check_any,
    check_choice,
    check_dictionary,
    check_real,
    check_row_numbers,
)
from kernelatoms.features.coordinates import (
    Coordinates,
    check_training_kernel,
    exact_coordinates,
    pruned_coordinates,
)
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.linear_algebra import OVERFLOW
from kernelatoms.features.memory import gib
from kernelatoms.features.preimage_methods import regress_rows, rows_to_regress
from kernelatoms.learning.ksvd import KSVDSums, KSVDUpdate
from kernelatoms.learning.loop import passes
from kernelatoms.learning.mod import LeastSquares
from kernelatoms.learning.runs import Run, SumRequest, TakeRequest, Update
from kernelatoms.learning.state import LearnerState, unit_rows
from kernelatoms.rows import ArrayRows, MappedRows, RowSource
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.factory import as_anchors


@unnamed
class KernelLearner(KernelChoice, WeightedLearner, DictionaryCoder):
    """Learn atoms in feature space, for greedy codes; a subclass says how (``_update``)."""

    anchors_: Array
    dual_coef_: Array
    n_nonzero_coefs_: int
    _on_devices = True

    def __init__(
        self,
        n_atoms: int | float | None = None,
        *,
        kernel: Any = "rbf",
        gamma: float | str | None = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        n_nonzero_coefs: int | None = None,
        selection: str = "omp",
        max_iter: int = 20,
        tol: float = 1e-4,
        coordinates: Any = "exact",
        base: Any = None,
        dict_init: Any = None,
        warm_start: bool = False,
        sparse_output: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_nonzero_coefs = n_nonzero_coefs
        self.selection = selection
        self.max_iter = max_iter
        self.tol = tol
        self.coordinates = coordinates
        self.base = base
        self.dict_init = dict_init
        self.warm_start = warm_start
        self.sparse_output = sparse_output
        self.random_state = random_state

    def _from_source(self, source: RowSource) -> RowSource:
        refuse_precomputed(self, source)
        if not isinstance(self.coordinates, KernelLinearizer):
            n = source.count() if source.is_distributed else source.n_rows
            size = "" if n is None else f" ({gib(8.0 * n**2)} for all {n:,} rows)"
            raise ValueError(
                f"coordinates={self.coordinates!r} needs all rows and their kernel matrix{size} in "
                "memory, and X is a source of rows: use coordinates=KernelLinearizer(n_landmarks="
                "1000)."
            )
        return source

    def _learning(self, X: Any, sample_weight: Any = None) -> Run:
        self._check_parameters()
        kernel = self._asked_kernel()
        self._check_coordinates()
        rows, weights, _ = training_rows(self, X, sample_weight)
        some = yield from sample_rows(rows, self.random_state)
        if self._precomputed:
            check_training_kernel(some)
        last = self._last_atoms(some)
        kernel = self._fit_kernel(kernel, some)
        some = self._in_range(kernel, some)
        rows = in_type(rows, some.dtype)
        rng = check_random_state(self.random_state)
        coordinates = self._make_coordinates(rows, some, kernel, rng)
        F = coordinates.rows
        F = F if isinstance(F, RowSource) else ArrayRows(F)
        outside = yield from _energy_outside(kernel, rows, F, weights)
        to_regress = None if self._precomputed else (yield from _rows_to_regress(rows, F))
        if weights is not None and not weights.all():  # a precomputed kernel keeps all rows
            counted = np.flatnonzero(weights)
            F, weights = ArrayRows(F.collect()[counted]), weights[counted]
        start = self._given_start(some, kernel, coordinates, last)
        n_features = some.shape[1]
        n_atoms = (
            len(start) if start is not None else choose_n_atoms(self, F.count(), 2 * n_features)
        )
        limit = min(n_atoms, F.shape[1])
        self.n_nonzero_coefs_ = choose_n_nonzero(self.n_nonzero_coefs, n_features, limit)
        if start is None:
            start = yield from draw_atoms(self, F, n_atoms, rng)

        def attributes(state: LearnerState) -> dict[str, Any]:
            atoms = state.best
            duals = coordinates.duals(atoms)
            used = np.flatnonzero(np.abs(duals).max(axis=1) > 0)
            anchors = coordinates.anchors[used]
            fitted = {
                "anchors_": anchors[:, 0] if self._precomputed else anchors,
                "dual_coef_": np.ascontiguousarray(duals[used], like=duals),
                "atom_gram_": atoms @ atoms.T,
                **pass_attributes(state),
            }
            fitted["objective_"] = fitted["objective_"] + outside
            if to_regress is not None:
                some_rows, theirs = to_regress
                fitted["components_"] = regress_rows(some_rows, theirs, atoms)
            return fitted

        state = LearnerState.start(start, rng)
        yield from learn_by_passes(
            self, X, F, linear_problems, state, attributes, in_coordinates=True,
            by=partial(passes, weights=weights),
        )  # fmt: skip

    def _last_atoms(self, X: Array) -> tuple[Array, Array] | None:
        """Return anchors and coefficients of the last fit's atoms, if they are to start from."""
        if not (self.warm_start and hasattr(self, "dual_coef_")):
            return None
        check_size(self, "the last fit (warm_start)", self.n_atoms_)
        anchors = self.anchors_
        width = X.shape[1] if self._precomputed else anchors.shape[1]
        if width != X.shape[1] or (self._precomputed and anchors.max(initial=0) >= len(X)):
            raise ValueError(
                "warm_start=True goes on with atoms made of the last fit's rows, which X does not "
                f"match: got shape {X.shape}. Use warm_start=False for other data."
            )
        return anchors, self.dual_coef_

    def _given_start(
        self, X: Array, kernel: Kernel, coordinates: Coordinates, last: tuple[Array, Array] | None
    ) -> Array | None:
        """Return the coordinates of atoms to start from, at unit norm; None where none are given.

        What coordinates do not reach of them is left out.
        """
        if last is None and self.dict_init is None:
            return None
        if last is not None:
            rows, coef = last[0], last[1].T
        elif self._precomputed:
            rows, coef = check_row_numbers("dict_init", as_labels(self.dict_init), len(X)), None
        else:
            rows = check_dictionary("dict_init", self.dict_init, X.shape[1], X.dtype)
            rows, coef = to_machine(rows, X), None
        if coef is None:
            check_size(self, "dict_init", len(rows))
        made_of = coordinates.duals(np.eye(coordinates.rows.shape[1], dtype=X.dtype, like=X))
        anchors = coordinates.anchors
        given = X[rows] if self._precomputed else rows.astype(X.dtype, copy=False)
        seen = Expansion(kernel, anchors, made_of).project(given)
        seen = seen if coef is None else coef @ seen
        return unit_rows(np.ascontiguousarray(seen, dtype=X.dtype, like=X))

    def _update(self) -> Update:
        raise NotImplementedError

    def _pursuit(self) -> Pursuit:
        return greedy_pursuit(self, self.n_nonzero_coefs_)

    def _joint_pursuit(self, n_atoms: int, n_nonzero: int | None) -> Pursuit:
        return greedy_pursuit(self, min(n_nonzero or self.n_nonzero_coefs_, n_atoms))

    _joint_problem = staticmethod(joint_kernel_problem)

    def _make_fitted(self, bring: Bring) -> KernelState:
        return KernelState(self, bring)

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other."""
        n_atoms, n_features = check_fitted_learner(self)
        if self.dict_init is not None:
            if self._precomputed:
                check_row_numbers("dict_init", as_labels(self.dict_init), n_features)
            else:
                check_dictionary("dict_init", self.dict_init, n_features, np.float64)
        require_count(self, "n_nonzero_coefs_", high=n_atoms)
        check_choice("selection", self.selection, ("omp", "ols"))
        check_kernel_atoms(self, n_atoms, n_features)

    def _check_coordinates(self) -> None:
        given = self.coordinates
        if isinstance(given, KernelLinearizer):
            if self.base is not None:
                raise ValueError(
                    "base and coordinates=KernelLinearizer(...) both choose the rows that atoms "
                    "are made of; give one of them."
                )
        elif isinstance(given, str):
            check_choice("coordinates", given, ("exact",))
        elif isinstance(given, float | np.floating):
            check_real("coordinates", given, low=0, high=1, low_open=True)
        else:
            raise TypeError(
                "coordinates must be 'exact', the share of the kernel's trace that may be left "
                f"out (0.01, say), or a KernelLinearizer, got {given!r}."
            )

    def _make_coordinates(
        self, rows: RowSource, some: Array, kernel: Kernel, rng: np.random.RandomState
    ) -> Coordinates:
        """Return coordinates for all rows, of which some are in memory."""
        _energies(kernel, some)  # refuses what overflows, before work starts
        if isinstance(self.coordinates, KernelLinearizer):
            return self._landmark_coordinates(rows, some, rng)
        base = self._check_base(some)
        if base is None:
            members, anchors, signals = some, as_anchors(some, kernel), None
        else:
            members = some[base[:, 0]] if self._precomputed else base
            anchors, signals = base, some
        if isinstance(self.coordinates, str):
            return exact_coordinates(kernel, members, anchors, signals)
        accuracy = float(self.coordinates)
        return pruned_coordinates(kernel, members, anchors, accuracy, rng, signals)

    def _landmark_coordinates(
        self, rows: RowSource, some: Array, rng: np.random.RandomState
    ) -> Coordinates:
        """Return virtual samples as coordinates."""
        linearizer = clone(self.coordinates).set_params(
            kernel=self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0,
            kernel_params=self.kernel_params, random_state=rng,
        )  # fmt: skip
        with without_contrast_check():
            linearizer.fit(some)
        landmarks = linearizer.landmarks_
        return Coordinates(
            mapped_rows(linearizer, rows),
            landmarks[:, None] if self._precomputed else landmarks,
            lambda vectors: linearizer.dual_coef_ @ vectors.T,
        )

    def _check_base(self, X: Array) -> Array | None:
        if self.base is None:
            return None
        if self._precomputed:
            return check_row_numbers("base", as_labels(self.base), len(X))[:, None]
        base = to_machine(check_any(self.base, dtype=X.dtype, order="C", input_name="base"), X)
        if base.shape[1] != X.shape[1]:
            raise ValueError(
                f"base must have the {X.shape[1]} features of X, got shape {base.shape}."
            )
        return base

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.allow_nan = self._takes_missing
        return tags


def _energies(kernel: Kernel, X: Array) -> Array:
    """Return k(x, x), or refuse rows where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        energy = kernel.diag(X).astype(np.float64)
    if not np.isfinite(energy).all():
        raise ValueError(OVERFLOW)
    return energy


def _energy_outside(
    kernel: Kernel, rows: RowSource, F: RowSource, weights: NDArray[np.float64] | None
) -> Run:
    """Return what lies outside of the coordinates' span, and is part of every objective; a run."""

    def sums(X: Array, coordinates: Array, weights: Array | None = None) -> Array:
        energy = _energies(kernel, X)
        outside = np.maximum(energy - machine(X).squared_norms(coordinates), 0.0)
        if weights is not None:
            own = np.asarray(weights, like=energy)
            energy, outside = own * energy, own * outside
        return np.array([float(outside.sum()), float(energy.sum())])

    if isinstance(F, MappedRows):
        read = F.function
        outside, energy = yield SumRequest(
            rows, lambda block, _, *own: sums(block, read(block), *own), rows.default_block_rows,
            () if weights is None else (weights,),
        )  # fmt: skip
    else:
        outside, energy = sums(rows.collect(), F.collect(), weights)
    return float(outside) if outside > 10 * np.finfo(rows.dtype).eps * energy else 0.0


def _rows_to_regress(rows: RowSource, F: RowSource) -> Run:
    """Return the rows, and their coordinates, of which pre-images are learned; a run."""
    chosen = rows_to_regress(rows.count())
    X = yield TakeRequest(rows, chosen)
    return X, F.function(X) if isinstance(F, MappedRows) else F.take(chosen)


class KernelKSVD(KernelLearner):
    """Learn a dictionary under a kernel by K-SVD: every atom with its coefficients in turn.

    Minimises |phi(X) - W D|^2 over codes W with few nonzeros per row and unit-norm atoms
    D = phi(anchors) A (Nguyen, Patel, Nasrabadi, Chellappa, 2012). Coordinates F with
    F F' = k(X, X), by pivoted Cholesky, give kernel K-SVD (Fig. 3) without its N x N matrices.

    Parameters
    ----------
    n_atoms : int or float, optional
        Atoms, or their share of the rows; by default twice the features, at most all rows.
    kernel : str, callable, object or class, default="rbf"
        As in ``KernelLinearizer``; "precomputed": k(train, train) to fit, then k(new, train).
    gamma : float, "scale", "auto", "spread" or None, default="scale"
        As in ``KernelLinearizer``: "scale" is 1 / (n_features * X.var()) of the training rows.
    degree, coef0 : float
        Parameters of the kernels by name, as in scikit-learn.
    kernel_params : dict, optional
        Further arguments of a function, or the arguments of a class.
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
    coordinates : "exact", float or KernelLinearizer, default="exact"
        As in ``KernelMOD``.
    base : array of shape (n_base, n_features), optional
        Make atoms of these rows instead of the training rows; row numbers, if precomputed.
    init : {"rows", "sums"}, default="rows"
        Start from random rows at unit norm, or from sums of ``n_nonzero_coefs`` random rows each
        (of their phi) (Nguyen et al., Fig. 3). With sums there may be more atoms than rows.
    dict_init : array of shape (n_atoms, n_features), optional
        Rows (row numbers, if precomputed) whose phi, at unit norm, replace ``init``.
    warm_start : bool, default=False
        Start from the atoms of the last ``fit``, as near as the new coordinates come to them.
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR array or a dense one.
    random_state : int, RandomState or None
        Seeds the start, and drawn anchors or landmarks.

    Attributes
    ----------
    anchors_ : array of shape (n_anchors, n_features)
        The rows that atoms are made of; their numbers, if precomputed.
    dual_coef_ : array of shape (n_anchors, n_atoms_)
        Atom j is the sum of ``dual_coef_[i, j] phi(anchors_[i])``.
    atom_gram_ : array of shape (n_atoms_, n_atoms_)
        Inner products of the atoms.
    components_ : array of shape (n_atoms_, n_features)
        Pre-images of the atoms by ridge regression, to look at; not if precomputed.
    objective_ : array of shape (n_iter_,)
        |phi(X) - W D|^2 over all signals after every pass; it may rise, and the best counts.
    best_pass_ : int
        The pass of the lowest objective, counted from 0: the atoms are those of this pass.
    n_atoms_, n_nonzero_coefs_, n_iter_ : int
        What the data allowed, and the passes run.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import KernelKSVD
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> model = KernelKSVD(
    ...     10, kernel="poly", degree=2, gamma=1, coef0=1, n_nonzero_coefs=3, random_state=0
    ... ).fit(circle)
    >>> model.transform(circle).shape
    (200, 10)
    """

    def __init__(
        self,
        n_atoms: int | float | None = None,
        *,
        kernel: Any = "rbf",
        gamma: float | str | None = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        n_nonzero_coefs: int | None = None,
        selection: str = "omp",
        update: str = "approximate",
        max_iter: int = 20,
        tol: float = 1e-4,
        coordinates: Any = "exact",
        base: Any = None,
        init: str = "rows",
        dict_init: Any = None,
        warm_start: bool = False,
        sparse_output: bool = True,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_atoms,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            kernel_params=kernel_params,
            n_nonzero_coefs=n_nonzero_coefs,
            selection=selection,
            max_iter=max_iter,
            tol=tol,
            coordinates=coordinates,
            base=base,
            dict_init=dict_init,
            warm_start=warm_start,
            sparse_output=sparse_output,
            random_state=random_state,
        )
        self.update = update
        self.init = init

    def _update(self) -> Update:
        return KSVDUpdate(exact=self.update == "exact")

    def _update_from_sums(self) -> KSVDSums:
        return KSVDSums()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_ksvd(self)


class KernelMOD(KernelLearner):
    """Learn a dictionary under a kernel by MOD: the least-squares dictionary for the codes.

    Minimises |phi(X) - W D|^2 over codes W with few nonzeros per row and unit-norm atoms
    D = phi(anchors) A (Nguyen, Patel, Nasrabadi, Chellappa, 2012). Coordinates F with
    F F' = k(X, X), by pivoted Cholesky, give kernel MOD (A = X^+ in the paper) on ordinary rows.
    Atoms that no signal uses become the worst represented signals.

    Parameters
    ----------
    n_atoms : int or float, optional
        Atoms, or their share of the rows; by default twice the features, at most all rows.
    kernel : str, callable, object or class, default="rbf"
        As in ``KernelLinearizer``; "precomputed": k(train, train) to fit, then k(new, train).
    gamma : float, "scale", "auto", "spread" or None, default="scale"
        As in ``KernelLinearizer``: "scale" is 1 / (n_features * X.var()) of the training rows.
    degree, coef0 : float
        Parameters of the kernels by name, as in scikit-learn.
    kernel_params : dict, optional
        Further arguments of a function, or the arguments of a class.
    n_nonzero_coefs : int, optional
        The most atoms a signal uses; by default a tenth of the features, at least 1.
    selection : {"omp", "ols"}, default="omp"
        Pick atoms by correlation, or by residual decrease: smaller residuals, 10 to 20% slower.
    max_iter : int, default=20
        The most passes of coding and updating.
    tol : float, default=1e-4
        Stop when three passes together lower the objective by no more than this share of it.
    coordinates : "exact", float or KernelLinearizer, default="exact"
        Exact, of all independent rows; or of anchors drawn until this share of the kernel's trace
        is left (randomly pivoted Cholesky), for smaller models and where the n x n kernel matrix
        does not fit; or the landmarks of a ``KernelLinearizer``, with this kernel for its own,
        which learn from a source of rows, too (``open_rows``).
    base : array of shape (n_base, n_features), optional
        Make atoms of these rows instead of the training rows; row numbers, if precomputed.
    dict_init : array of shape (n_atoms, n_features), optional
        Rows (row numbers, if precomputed) whose phi to start from; by default random ones.
    warm_start : bool, default=False
        Start from the atoms of the last ``fit``, as near as the new coordinates come to them.
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR array or a dense one.
    random_state : int, RandomState or None
        Seeds the start, and drawn anchors or landmarks.

    Attributes
    ----------
    anchors_ : array of shape (n_anchors, n_features)
        The rows that atoms are made of; their numbers, if precomputed.
    dual_coef_ : array of shape (n_anchors, n_atoms_)
        Atom j is the sum of ``dual_coef_[i, j] phi(anchors_[i])``.
    atom_gram_ : array of shape (n_atoms_, n_atoms_)
        Inner products of the atoms.
    components_ : array of shape (n_atoms_, n_features)
        Pre-images of the atoms by ridge regression, to look at; not if precomputed.
    objective_ : array of shape (n_iter_,)
        |phi(X) - W D|^2 over all signals after every pass; it may rise, and the best counts.
    best_pass_ : int
        The pass of the lowest objective, counted from 0: the atoms are those of this pass.
    n_atoms_, n_nonzero_coefs_, n_iter_ : int
        What the data allowed, and the passes run.
    gamma_ : float or None
        The kernel's gamma; None if it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import KernelMOD
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> model = KernelMOD(
    ...     10, kernel="poly", degree=2, gamma=1, coef0=1, n_nonzero_coefs=3, random_state=0
    ... ).fit(circle)
    >>> model.transform(circle).shape
    (200, 10)
    """

    def _update(self) -> Update:
        return LeastSquares()
