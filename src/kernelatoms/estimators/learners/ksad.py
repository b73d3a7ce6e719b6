"""``KSAD``: an orthonormal dictionary in a kernel's feature space."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from kernelatoms.coding.problem import linear_problems
from kernelatoms.coding.pursuits import Pursuit, Threshold
from kernelatoms.engine import Array, machine
from kernelatoms.estimators.base import Bring, sample_rows
from kernelatoms.estimators.coding.dictionary_coder import DictionaryCoder
from kernelatoms.estimators.learners.base import (
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
from kernelatoms.estimators.learners.kernel_atoms import (
    KernelState,
    check_kernel_atoms,
    joint_kernel_problem,
)
from kernelatoms.estimators.maps.linearizer import SOLVERS, KernelLinearizer
from kernelatoms.estimators.maps.map_learner import DEFAULT_ATOMS, MapLearner, mapped_rows
from kernelatoms.estimators.state_checks import check_learner_state, check_moments, require_number
from kernelatoms.estimators.training_rows import (
    refuse_precomputed,
    training_rows,
)
from kernelatoms.estimators.validation import (
    check_choice,
    check_complete,
    check_dictionary,
    check_real,
    check_row_numbers,
)
from kernelatoms.features.expansion import Expansion
from kernelatoms.learning.loop import batch, block_rows
from kernelatoms.learning.mod import Procrustes, draw_orthonormal, polar_factor
from kernelatoms.learning.runs import Run, SumRequest
from kernelatoms.learning.state import LearnerState
from kernelatoms.rows import ArrayRows, RowSource
from kernelatoms.similarity.inner import LinearKernel


class KSAD(MapLearner, BatchLearner, DictionaryLearner, DictionaryCoder):
    """Learn an orthonormal dictionary under a kernel: soft-threshold codes, Procrustes update.

    The unsupervised part of K-SAD (Chhabra, Wallace and Hopgood, *Improved image discrimination
    using fast non-linear orthogonal dictionary learning*). Rows are mapped to virtual samples F of
    low rank, whose inner products approximate the kernel, and

        |F - Q Z|^2 + l1_weight |Q|_1,   Z Z' = I

    is lowered over codes Q and as many orthonormal atoms Z as F has columns. Both steps are closed
    forms: Q = soft(F Z', l1_weight / 2), one matrix product, and Z the polar factor of Q'F.

    Parameters
    ----------
    n_atoms : int or float, optional
        Atoms, the rank of the map, or their share of the rows; by default 500, at most all rows.
        More than the rank of the landmarks' kernel matrix are left out, with a warning.
    kernel : str, callable, object or class, default="rbf"
        As in ``KernelLinearizer``.
    gamma : float, "scale", "auto", "spread" or None, default="spread"
        As in ``KernelLinearizer``; "scale", narrower, is better on digits and worse on faces.
    degree, coef0 : float
        As in scikit-learn; ``kernel="poly", degree=8, gamma=1, coef0=0`` is the paper's (x'y)^8.
    kernel_params : dict, optional
        Further arguments of a function, or the arguments of a class.
    n_landmarks : int or float, optional
        Landmarks, or their share of the rows; by default four per atom, at most all rows.
    sampling : str or array of shape (n_landmarks, n_features), default="uniform"
        How landmarks are chosen, as in ``KernelLinearizer``: "uniform" or "kmeans" in the paper.
    solver : {"auto", "full", "randomized"}, default="auto"
        As in ``KernelLinearizer``. "randomized" is the paper's block Krylov method; with less than
        about 3.2 landmarks per atom it is "full", and exact.
    l1_weight : float, default=0.1
        Weight of the l1 penalty, relative to the signals' root mean energy.
    max_iter : int, default=20
        The most passes of coding and updating.
    tol : float, default=1e-4
        Stop when three passes together lower the objective by no more than this share of it.
    dict_init : array of shape (n_atoms, n_features), optional
        Rows (row numbers, if precomputed), one per atom: atoms start orthonormal and nearest to
        their virtual samples. By default random training rows.
    warm_start : bool, default=False
        Keep the last ``fit``'s map; go on where it stopped, or with other rows from its atoms.
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR array or a dense one.
    forget : float, default=1
        Weight of the past at every ``partial_fit``, up to 1; below, early, poor codes fade.
    random_state : int, RandomState or None
        Seeds the landmarks and the start.

    Attributes
    ----------
    anchors_ : array of shape (n_landmarks, n_features)
        The landmarks, which atoms are made of; their row numbers, if precomputed.
    dual_coef_ : array of shape (n_landmarks, n_atoms_)
        Atom j is the sum of ``dual_coef_[i, j] phi(anchors_[i])``.
    atom_gram_ : array of shape (n_atoms_, n_atoms_)
        Inner products of the atoms: the identity, up to rounding.
    components_ : array of shape (n_atoms_, n_features)
        Pre-images of the atoms by ridge regression, to look at; not if precomputed.
    objective_ : array of shape (n_iter_,)
        What is minimised after every pass; it never rises. After ``partial_fit``, by the sums.
    best_pass_ : int
        The pass of the lowest objective, counted from 0.
    l1_weight_ : float
        The weight in units of the virtual samples.
    n_atoms_, n_iter_ : int
        What the data allowed, and the passes run.
    gamma_ : float or None
        The kernel's gamma; None if it has none.
    state_ : LearnerState
        Where learning stopped: what ``partial_fit`` goes on from.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import KSAD
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> model = KSAD(n_atoms=10, gamma=1, random_state=0).fit(circle)
    >>> model.transform(circle).shape
    (200, 10)
    >>> bool(np.allclose(model.atom_gram_, np.eye(10)))
    True
    """

    anchors_: Array
    dual_coef_: Array
    l1_weight_: float

    def __init__(
        self,
        n_atoms: int | float | None = None,
        *,
        kernel: Any = "rbf",
        gamma: float | str | None = "spread",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        n_landmarks: int | float | None = None,
        sampling: Any = "uniform",
        solver: str = "auto",
        l1_weight: float = 0.1,
        max_iter: int = 20,
        tol: float = 1e-4,
        dict_init: Any = None,
        warm_start: bool = False,
        sparse_output: bool = True,
        forget: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_landmarks = n_landmarks
        self.sampling = sampling
        self.solver = solver
        self.l1_weight = l1_weight
        self.max_iter = max_iter
        self.tol = tol
        self.dict_init = dict_init
        self.warm_start = warm_start
        self.sparse_output = sparse_output
        self.forget = forget
        self.random_state = random_state

    def _from_source(self, source: RowSource) -> RowSource:
        refuse_precomputed(self, source)
        return source

    def _learning(self, X: Any) -> Run:
        self._check_parameters()
        rows = training_rows(self, X).rows
        warm = self.warm_start and hasattr(self, "dual_coef_")
        mapped, F, state = yield from self._warm_start(rows) if warm else self._start(rows)
        if self.warm_start:
            state.data = fingerprint(rows)

        yield from learn_by_passes(
            self, X, F, linear_problems, state, mapped.attributes, in_coordinates=True
        )

    def _learning_batch(self, X: Any) -> Run:
        self._check_parameters()
        if self._precomputed:
            raise ValueError(
                "partial_fit needs rows, which kernel='precomputed' does not give: a kernel matrix "
                "of one batch says nothing of the next."
            )
        refuse_share(self)
        first = not hasattr(self, "dual_coef_")
        rows = training_rows(self, X, reset=first).rows
        if first:
            mapped, F, state = yield from self._start(rows)
        else:
            state = last_state(self)
            mapped, F = self._mapped_again(rows, state.best)
        yield from batch(
            linear_problems, F, self._pursuit(), self._update(), state,
            n_atoms=len(state.dictionary), decay=float(self.forget),
        )  # fmt: skip
        self._set(**mapped.attributes(state))

    def _start(self, rows: RowSource) -> Run:
        """Settle the map and the weight; return virtual samples and the start too; a run."""
        rng = check_random_state(self.random_state)
        some = yield from sample_rows(rows, self.random_state)
        linearizer = self._fit_map(some, rng, rows.count())
        F = mapped_rows(linearizer, rows)
        yield from self._settle_weight(F)
        back = None if self._precomputed else linearizer.preimage_coef_
        if self.dict_init is None:
            start = yield from draw_orthonormal(F, F.shape[1], rng)
        else:
            start = polar_factor(self._mapped_start(some, linearizer)).astype(F.dtype)
        state = LearnerState.start(start, rng)
        return _Mapped(linearizer.landmarks_, linearizer.dual_coef_, back), F, state

    def _settle_weight(self, F: RowSource) -> Run:
        """Settle the weight in units of the virtual samples' root mean energy; a run."""
        energy = yield SumRequest(
            F, lambda block, _: float(machine(block).squared_norms(block).sum()),
            block_rows(F, F.shape[1]),
        )  # fmt: skip
        self.l1_weight_ = float(self.l1_weight) * float(np.sqrt(energy / F.count()))

    def _mapped_start(self, X: Array, linearizer: KernelLinearizer) -> Array:
        """Return the virtual samples of the rows to start from, one for each atom."""
        if self._precomputed:
            given = X[check_row_numbers("dict_init", self.dict_init, len(X))]
        else:
            given = check_dictionary("dict_init", self.dict_init, X.shape[1], X.dtype)
        if len(given) != linearizer.n_components_:
            raise ValueError(
                f"dict_init must have as many rows as there are atoms, the map's rank of "
                f"{linearizer.n_components_}, got {len(given)}."
            )
        return linearizer._transformed(given).astype(np.float64)

    def _warm_start(self, rows: RowSource) -> Run:
        """Return the last fit's map, virtual samples, and where the passes go on; a run."""
        check_size(self, "the last fit (warm_start)", self.n_atoms_)
        if self.anchors_.ndim == 2 and self.anchors_.shape[1] != rows.n_features:
            raise ValueError(
                f"warm_start=True goes on with a map of {self.anchors_.shape[1]} features, but X "
                f"has {rows.n_features}. Use warm_start=False for other data."
            )
        if self._precomputed and self.anchors_.max(initial=0) >= rows.count():
            raise ValueError(
                "warm_start=True goes on with the last fit's rows, and X has fewer of them. Use "
                "warm_start=False for other data."
            )
        last = self.state_
        mapped, F = self._mapped_again(rows, last.best)
        yield from self._settle_weight(F)
        if last.data != fingerprint(rows):
            last = LearnerState.start(last.best, check_random_state(self.random_state))
        return mapped, F, last

    def _mapped_again(self, rows: RowSource, atoms: Array) -> tuple["_Mapped", RowSource]:
        """Return the fitted map, and virtual samples.

        Atoms are a rotation of the map's coordinates: turned back, they are the map.
        """
        times = machine(atoms).times
        back = None if self._precomputed else times(atoms.T, self.components_)
        mapped = _Mapped(self.anchors_, times(self.dual_coef_, atoms), back)
        anchors = self.anchors_[:, None] if self._precomputed else self.anchors_
        expansion = Expansion(self._kernel(), anchors, mapped.coef)

        def virtual_samples(X: Array) -> Array:
            X = X.astype(np.result_type(X, mapped.coef), copy=False)
            return expansion.project(X).astype(atoms.dtype, copy=False)

        if isinstance(rows, ArrayRows):
            return mapped, ArrayRows(virtual_samples(rows.collect()))
        return mapped, rows.map(virtual_samples, len(atoms), dtype=atoms.dtype)

    def _wanted_atoms(self, n_rows: int) -> int:
        if self.dict_init is not None:
            n_given = len(np.atleast_1d(self.dict_init))
            check_size(self, "dict_init", n_given)
            return n_given
        return choose_n_atoms(self, n_rows, DEFAULT_ATOMS)

    def _pursuit(self) -> Pursuit:
        return Threshold(self.l1_weight_ / 2)  # the weight beside half of the squares

    def _joint_pursuit(self, n_atoms: int, n_nonzero: int | None) -> Pursuit:
        return self._pursuit()

    _joint_problem = staticmethod(joint_kernel_problem)

    def _update(self) -> Procrustes:
        return Procrustes(self.l1_weight_)

    def _make_fitted(self, bring: Bring) -> KernelState:
        return KernelState(self, bring)

    def _validated(self, X: Any) -> Array:
        X = super()._validated(X)
        if isinstance(self._kernel(), LinearKernel):
            check_complete(X)  # its masked pursuits are greedy
        return X

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("l1_weight", self.l1_weight, low=0)
        check_real("forget", self.forget, low=0, high=1, low_open=True)
        check_choice("solver", self.solver, SOLVERS)

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other."""
        n_atoms, n_features = check_fitted_learner(self)
        check_kernel_atoms(self, n_atoms, n_features)
        if not require_number(self, "l1_weight_") >= 0:
            raise ValueError("KSAD.l1_weight_ must be at least 0.")
        check_learner_state(
            self, n_atoms, n_atoms, lambda state: check_moments(state, "sums", n_atoms, n_atoms)
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.allow_nan = self._takes_missing and self.kernel != "linear"
        return tags


class _Mapped(NamedTuple):
    """A low-rank map: k(x, landmarks) @ coef are virtual samples, ``back`` takes them to rows."""

    landmarks: Array
    coef: Array
    back: Array | None

    def attributes(self, state: LearnerState) -> dict[str, Any]:
        """Return the fitted attributes of a learner that would stop there."""
        atoms = state.best
        times = machine(atoms).times
        fitted = {
            "anchors_": self.landmarks,
            "dual_coef_": times(self.coef, atoms.T),
            "atom_gram_": times(atoms, atoms.T),
            "state_": state,
            **pass_attributes(state),
        }
        return fitted if self.back is None else fitted | {"components_": times(atoms, self.back)}


def root_mean_energy(rows: Array) -> float:
    """Return the square root of the rows' mean squared norm."""
    return float(np.sqrt(machine(rows).squared_norms(rows).mean()))
