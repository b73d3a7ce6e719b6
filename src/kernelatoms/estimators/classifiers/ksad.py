"""``KSADClassifier``: an orthonormal kernel dictionary whose codes tell classes apart."""

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from kernelatoms.coding.closed_form import soft_threshold
from kernelatoms.coding.codes import Codes
from kernelatoms.coding.problem import CodingProblem
from kernelatoms.coding.pursuits import Pursuit, Threshold
from kernelatoms.engine import Array, machine
from kernelatoms.estimators.base import Bring
from kernelatoms.estimators.classifiers.ksad_state import KSADFitted, KSADMap
from kernelatoms.estimators.classifiers.neighbor_parameters import SeededSearch
from kernelatoms.estimators.classifiers.supervised import SupervisedDictionary
from kernelatoms.estimators.devices.border import by_rows
from kernelatoms.estimators.inspection.explanation import Explanation, explain_codes
from kernelatoms.estimators.learners.base import PassReporter
from kernelatoms.estimators.learners.ksad import root_mean_energy
from kernelatoms.estimators.maps.linearizer import SOLVERS
from kernelatoms.estimators.maps.map_learner import MapLearner
from kernelatoms.estimators.state_checks import (
    held,
    require_count,
    require_floats,
    require_number,
    require_rows,
)
from kernelatoms.estimators.training_rows import validate_labelled
from kernelatoms.estimators.validation import (
    check_choice,
    check_count,
    check_real,
    clip_count,
    refuse_unused,
)
from kernelatoms.features.memory import check_fits
from kernelatoms.learning.ksad import (
    SCATTERS,
    Weights,
    learn_ksad,
    ridge_of,
    start_ksad,
    within_class_metric,
)
from kernelatoms.learning.mod import orthonormal_start
from kernelatoms.similarity.base import check_flag

# Rows whose codes are compared with all training codes at once.
_ROWS_AT_ONCE = 8192

# Algorithm 1 and section IV of the paper.
_AS_PUBLISHED: dict[str, Any] = {
    "kernel": "poly", "degree": 8, "gamma": 1, "coef0": 0, "sampling": "uniform",
    "solver": "randomized", "l1_weight": 0.1, "fisher_weight": 0.01, "scatter": "scalar",
    "threshold_new": False, "within_class_metric": False, "n_neighbors": 1, "distance": "l2",
    "max_iter": 20, "tol": 0,
}  # fmt: skip


class KSADClassifier(SeededSearch, MapLearner, SupervisedDictionary):
    """Whiten a kernel map within classes and take the nearest neighbours of thresholded codes.

    That is what the defaults do: rows become virtual samples F of a low-rank kernel map; these are
    multiplied by (S + e I)^(-1/2), S their mean scatter within classes, and brought to unit norm;
    codes are soft(F Z', l1_weight / 2) over orthonormal atoms Z; the training rows whose codes have
    the smallest angles vote. The within-class metric, which makes most of the accuracy, is ours.

    K-SAD as published (Chhabra, Wallace and Hopgood, *Improved image discrimination using fast
    non-linear orthogonal dictionary learning*) is ``KSADClassifier.as_published(n_atoms)``. It has
    no metric, and lowers

        |F - Q Z|^2 + l1_weight |Q|_1 - fisher_weight tr(S_W^-1 S_B),   Z Z' = I

    over training codes Q and atoms Z, S_W and S_B the scatter of codes within and between classes.

    Parameters
    ----------
    n_atoms : int, optional
        Size of the dictionary, and rank of the map; by default 500, or fewer if there are fewer
        rows. What exceeds the rank of the landmarks' kernel is left out, with a warning.
    kernel : str, callable, object or class, default="rbf"
        As in ``KernelLinearizer``.
    gamma : float, "scale", "auto", "spread" or None, default="spread"
        As in ``KernelLinearizer``. "scale" is narrower than "spread", better on digits and worse on
        faces.
    degree, coef0 : float
        Parameters of the kernels by name, as in scikit-learn.
    kernel_params : dict, optional
        Further arguments of a function, or the arguments of a class.
    n_landmarks : int or float, optional
        Landmarks of the map, or which share of the rows; by default four per atom, or all rows if
        there are fewer.
    sampling : str or array of shape (n_landmarks, n_features), default="uniform"
        How landmarks are chosen, as in ``KernelLinearizer``: "uniform" or "kmeans" in the paper.
    solver : {"auto", "full", "randomized"}, default="auto"
        As in ``KernelLinearizer``. "randomized" is the paper's block Krylov method; with less than
        about 3.2 landmarks per atom it is "full", and exact.
    l1_weight : float, default=0.01
        Weight of the l1 penalty, relative to the root mean energy of the signals.
    fisher_weight : float, default=0
        Weight of the discriminative term, 0.01 in the paper; relative to the mean energy of the
        signals. In the within-class metric it gained nothing on the data sets tried.
    scatter : {"full", "scalar"}, default="full"
        What S_W and S_B are, with ``fisher_weight`` above 0: matrices, or numbers as in the paper,
        the sum over classes of the mean squared distance from their means, and the trace of S_B.
    threshold_new : bool, default=True
        Whether codes of new rows are thresholded like those of training rows; not so in the paper.
    within_class_metric : bool, default=True
        Whether virtual samples are brought to the metric in which classes are round.
    shrinkage : float, default=0.01
        The ridge of the scatter within classes, as a share of its mean eigenvalue: in the metric
        and, beside twice ``fisher_weight``, in the discriminative term.
    n_neighbors : int, default=3
        How many training codes vote; of classes with as many votes, that of the nearest wins.
    distance : {"correlation", "l2"}, default="correlation"
        Which training codes are near: by the angle between codes, or by their distance.
    search : {"exact", "approximate"}, default="exact"
        "approximate" finds most neighbours, among very many rows, by pynndescent (the extra
        ``ann``).
    max_iter : int, default=20
        The most passes: the best atoms for the codes, then a step of all codes.
    tol : float, default=1e-4
        Stop when three passes together lower the objective by no more than this share of it.
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR array or a dense one.
    calibrate : bool, default=False
        Whether to learn how sure answers are, from the rows left out of three more fits.
    random_state : int, RandomState or None
        Seeds the landmarks, the start and approximate search.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    anchors_ : array of shape (n_landmarks, n_features)
        The landmarks, which atoms are made of; their row numbers, if precomputed.
    dual_coef_ : array of shape (n_landmarks, n_atoms_)
        Atom j is the sum of ``dual_coef_[i, j] phi(anchors_[i])``, the metric undone.
    analysis_coef_ : array of shape (n_landmarks, n_atoms_)
        ``k(X, anchors_) @ analysis_coef_`` are inner products of X and the atoms in the metric,
        before rows are brought to unit norm. Without the metric, ``dual_coef_``.
    components_ : array of shape (n_atoms_, n_features)
        Pre-images of the atoms by ridge regression, for display; not if precomputed.
    atom_classes_ : array of shape (n_atoms_,)
        The class, as a number of ``classes_``, whose codes have most energy in an atom; ascending.
    codes_ : array of shape (n_samples, n_atoms_)
        The codes of the training rows, drawn apart by the discriminative term.
    labels_ : array of shape (n_samples,)
        Their classes, as numbers of ``classes_``.
    in_metric_ : bool
        Whether there is a within-class metric: asked for, and some class has different rows.
    objective_ : array of shape (n_iter_,)
        What every pass reached; it never rises, and may be negative.
    l1_weight_ : float
        The weight in units of the signals.
    n_atoms_, n_neighbors_, n_iter_ : int
        What the data allowed, and the passes run.
    gamma_ : float or None
        The kernel's gamma; None if it has none.
    search_seed_ : int
        With ``search="approximate"``: what the index of the training codes is made with.
    inverse_temperature_, label_smoothing_ : float
        With ``calibrate=True``: what makes probabilities of scores (see ``predict_proba``).

    Notes
    -----
    A training code has one vote, and the nearest of its class more: a half at the first place of
    all, a quarter at the second and so on. ``predict_proba`` without ``calibrate`` is the share
    that each class has in the votes, coarse with few neighbours; with it, a softmax of the votes.

    Examples
    --------
    >>> from kernelatoms import KSADClassifier
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KSADClassifier(n_atoms=100, random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.95
    True
    """

    codes_: Array
    labels_: NDArray[np.intp]
    l1_weight_: float

    def __init__(
        self,
        n_atoms: int | None = None,
        *,
        kernel: Any = "rbf",
        gamma: float | str | None = "spread",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        n_landmarks: int | float | None = None,
        sampling: Any = "uniform",
        solver: str = "auto",
        l1_weight: float = 0.01,
        fisher_weight: float = 0.0,
        scatter: str = "full",
        threshold_new: bool = True,
        within_class_metric: bool = True,
        shrinkage: float = 0.01,
        n_neighbors: int = 3,
        distance: str = "correlation",
        search: str = "exact",
        max_iter: int = 20,
        tol: float = 1e-4,
        sparse_output: bool = True,
        calibrate: bool = False,
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
        self.fisher_weight = fisher_weight
        self.scatter = scatter
        self.threshold_new = threshold_new
        self.within_class_metric = within_class_metric
        self.shrinkage = shrinkage
        self.n_neighbors = n_neighbors
        self.distance = distance
        self.search = search
        self.max_iter = max_iter
        self.tol = tol
        self.sparse_output = sparse_output
        self.calibrate = calibrate
        self.random_state = random_state

    @classmethod
    def as_published(cls, n_atoms: int | None = None, **others: Any) -> Self:
        """Return K-SAD as its paper prints it, Algorithm 1.

        The kernel (x'y)^8, uniform landmarks, the randomised block Krylov eigensolver, beta_1 = 0.1
        (``l1_weight``) and beta_2 = 0.01 (``fisher_weight``), scatter as numbers, 20 passes, codes
        of new rows without threshold (step 15), the nearest training code by distance, no
        within-class metric. Signs and the ridge, which bounds the objective from below, are ours.
        Accuracies are below the paper's; ``python -m reproduction ksad/readings-orl``,
        ``readings-yaleb`` and ``readings-mnist`` try other readings of its text.

        Parameters
        ----------
        n_atoms : int, optional
            Size of the dictionary: 240 (AT&T faces), 740 (Extended Yale B) or 300 (MNIST) in the
            paper.
        others : parameters of the constructor
            By name: those that should differ, and ``random_state``.

        Returns
        -------
        KSADClassifier
            Not fitted.

        Examples
        --------
        >>> from kernelatoms import KSADClassifier
        >>> model = KSADClassifier.as_published(240, degree=2)
        >>> model.degree, model.threshold_new, model.within_class_metric
        (2, False, False)
        """
        how = {**_AS_PUBLISHED, **others}
        if not how["fisher_weight"] and "scatter" not in others:
            del how["scatter"]  # which belongs to the term that is left out
        return cls(n_atoms, **how)

    def _fit(self, X: Any, y: Any) -> None:
        self._check_parameters()
        if not (self.within_class_metric or self.fisher_weight):
            needs = "belongs to within_class_metric=True and to fisher_weight above 0"
            refuse_unused(type(self), {"shrinkage": self.shrinkage}, needs)
        if not self.fisher_weight:
            needs = "belongs to fisher_weight above 0"
            refuse_unused(type(self), {"scatter": self.scatter}, needs)
        X, self.classes_, given = validate_labelled(self, X, y)
        self._check_calibration(given)
        asked = int(self.n_neighbors)
        self.n_neighbors_ = clip_count("n_neighbors", asked, len(X), "there are rows")
        self._fit_search_seed()
        rng = check_random_state(self.random_state)
        linearizer = self._fit_map(X, rng)
        rank = linearizer.n_components_
        check_fits(
            6.0 * len(X) * rank * X.itemsize, f"codes of {len(X)} rows over {rank} atoms",
            "Choose fewer atoms (n_atoms), or learn from fewer rows.",
        )  # fmt: skip
        order = np.argsort(given, kind="stable")
        labels = given[order]
        F, metric = self._in_metric(linearizer._transformed(X)[order], labels)
        start = orthonormal_start(F, rank, rng)
        weights = self._weights(F, labels, start)
        map_ = KSADMap(linearizer, metric, order, labels, weights)
        reporter = PassReporter(self, X, int(self.max_iter), map_.attributes)
        state = reporter.resumed(start_ksad(F, start, weights), F)
        learn_ksad(
            F, labels, state, weights, max_iter=reporter.passes_left, tol=float(self.tol),
            scatter=self.scatter, observer=reporter,
        )  # fmt: skip
        self._set(**map_.attributes(state))
        self._calibrate(X, given)
        reporter.end()

    def _shares_of_scores(self, scores: Array) -> Array:
        return scores / scores.sum(axis=1, keepdims=True)

    def kneighbors(self, X: Any) -> NDArray[np.int32]:
        """Return the training rows whose codes are nearest, the nearest first.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals.

        Returns
        -------
        rows : array of shape (n_samples, n_neighbors_)
            Numbers of training rows, from 0.
        """
        return by_rows(self._kneighbors, X, self)

    def _kneighbors(self, X: Any) -> NDArray[np.int32]:
        return self._nearest(self._encode(self._validated(X)))

    def _in_metric(
        self, F: Array, labels: NDArray[np.intp]
    ) -> tuple[Array, tuple[Array, Array] | None]:
        """Return virtual samples as they are coded, and the metric and its inverse, if any."""
        if not self.within_class_metric:
            return F, None
        metric = within_class_metric(F, labels, float(self.shrinkage))
        if metric is None:
            warnings.warn(
                "No class has two different rows, so there is no scatter within classes: the "
                "within-class metric is left out.",
                UserWarning,
                stacklevel=3,
            )
            return F, None
        seen = machine(F).times(F, metric[0])
        # Rows are brought to unit norm. Where that is their size already, on average, codes times
        # atoms are about the rows themselves.
        size = root_mean_energy(seen)
        return machine(F).unit_rows(seen), (metric[0] / size, metric[1] * size)

    def _weights(self, F: Array, labels: NDArray[np.intp], start: Array) -> Weights:
        """Return the weights in units of the signals, and the ridge that goes with them."""
        size = root_mean_energy(F)
        l1, fisher = float(self.l1_weight) * size, float(self.fisher_weight) * size**2
        if not fisher:
            return Weights(l1, fisher, 1.0)
        codes = soft_threshold(machine(F).times(F, start.T), l1 / 2)
        ridge = ridge_of(codes, labels, fisher, float(self.shrinkage), self.scatter)
        return Weights(l1, fisher, ridge)

    def _make_fitted(self, bring: Bring) -> KSADFitted:
        return KSADFitted(self)

    def _problem(self, X: Array) -> CodingProblem:
        problem: CodingProblem = self._fitted(X).problem(X)
        return problem

    def _pursuit(self) -> Pursuit:
        # The weight beside half of the squares.
        return Threshold(self.l1_weight_ / 2 if self.threshold_new else 0.0)

    def _scores(self, X: Array) -> Array:
        scores = np.empty((len(X), len(self.classes_)))
        for start in range(0, len(X), _ROWS_AT_ONCE):
            part = X[start : start + _ROWS_AT_ONCE]
            scores[start : start + len(part)] = self._scores_of(part, self._encode(part))
        return scores

    def _scores_of(self, X: Array, codes: Codes) -> Array:
        return self._votes(self._nearest(codes))

    def _votes(self, nearest: NDArray[np.int32]) -> Array:
        """Count votes; the nearest of a class has up to half of one more, by its place."""
        votes = np.zeros((len(nearest), len(self.classes_)))
        rows = np.arange(len(nearest))
        for place, members in enumerate(nearest.T):
            found = members >= 0  # approximate search may find fewer
            owners = self.labels_[members[found]]
            first = votes[rows[found], owners] == 0
            votes[rows[found], owners] += 1 + np.where(first, 0.5 ** (place + 1), 0.0)
        return votes

    def _nearest(self, codes: Codes) -> NDArray[np.int32]:
        """Return the training codes nearest to these, the nearest first."""
        nearest: NDArray[np.int32] = self._fitted().nearest(codes.to_dense(), self.n_neighbors_)
        return nearest

    def _explained(self, X: Array) -> list[Explanation]:
        problem = self._problem(X)
        codes = self._pursuit()(problem)
        nearest = self._nearest(codes)
        explained = explain_codes(
            codes.to_csr(), self.atom_classes_, self.classes_, self._votes(nearest),
            residual=codes.error, energies=problem.energy(0, len(X)),
        )  # fmt: skip
        found = (rows[rows >= 0] for rows in nearest)
        return [
            replace(why, neighbors=rows, neighbor_owners=self.labels_[rows])
            for why, rows in zip(explained, found, strict=True)
        ]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("l1_weight", self.l1_weight, low=0)
        check_real("fisher_weight", self.fisher_weight, low=0)
        check_real("shrinkage", self.shrinkage, low=0, low_open=True)
        check_choice("scatter", self.scatter, tuple(SCATTERS))
        check_choice("solver", self.solver, SOLVERS)
        check_flag("threshold_new", self.threshold_new)
        check_flag("within_class_metric", self.within_class_metric)
        check_choice("distance", self.distance, ("correlation", "l2"))
        check_choice("search", self.search, ("exact", "approximate"))
        check_count("n_neighbors", self.n_neighbors)
        if self.n_atoms is not None:
            check_count("n_atoms", self.n_atoms)
        self._asked_kernel()

    def _check_atoms(self, n_atoms: int, n_features: int) -> None:
        n_anchors = self._check_rows_held("anchors_", n_features)
        for name in ("dual_coef_", "analysis_coef_"):
            require_floats(self, name, (n_anchors, n_atoms))
        if not self._precomputed:
            require_floats(self, "components_", (n_atoms, n_features))

    def _check_decision(self, n_classes: int, n_atoms: int) -> None:
        n_rows = len(require_floats(self, "codes_", (None, n_atoms)))
        if len(np.unique(require_rows(self, "labels_", n_classes, n_rows))) < n_classes:
            raise ValueError("KSADClassifier.labels_ must hold every class.")
        require_count(self, "n_neighbors_", high=n_rows)
        check_flag("in_metric_", held(self, "in_metric_"))
        self._check_held_seed()
        if not require_number(self, "l1_weight_") >= 0:
            raise ValueError("KSADClassifier.l1_weight_ must be at least 0.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.allow_nan = False  # the metric would blow up what estimates are unsure of
        tags.classifier_tags.poor_score = False
        return tags
