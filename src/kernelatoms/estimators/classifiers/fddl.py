"""``FDDLClassifier``: Fisher discriminative dictionary learning."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from kernelatoms.coding.class_residuals import shares_of
from kernelatoms.coding.codes import Codes
from kernelatoms.coding.pursuits import Lasso, Pursuit
from kernelatoms.engine import Array, machine
from kernelatoms.estimators.classifiers.base import CodeClassifier
from kernelatoms.estimators.classifiers.supervised import SupervisedDictionary
from kernelatoms.estimators.inspection.explanation import Explanation, codes_of_best, explain_codes
from kernelatoms.estimators.learners.base import PassReporter
from kernelatoms.estimators.state_checks import require_floats, require_number
from kernelatoms.estimators.training_rows import validate_labelled
from kernelatoms.estimators.validation import check_choice, check_count, check_real, clip_count
from kernelatoms.features.memory import check_fits
from kernelatoms.learning.fddl import (
    DrawnProblem,
    Labelled,
    Weights,
    class_atoms,
    code_means,
    learn_fisher,
    start_fisher,
)
from kernelatoms.learning.state import CoupledState, unit_rows

# Weight of the distance from a class's mean code in the global decision (w of Yang et al. 2014).
_GLOBAL_MEAN_WEIGHT = 0.5
_KMEANS_PASSES = 30


class FDDLClassifier(SupervisedDictionary):
    """Learn atoms for every class that serve no other, with codes alike within a class: FDDL.

    Minimises eq. (7) of the LKDL paper (M. Yang, L. Zhang, X. Feng and D. Zhang, 2014), signals as
    columns: over atoms D of at most unit norm, D_i those of class i, and codes G, G_i^j the part of
    class i's codes over the atoms of class j,

        sum_i (|X_i - D G_i|^2 + |X_i - D_i G_i^i|^2 + sum_{j != i} |D_j G_i^j|^2)
            + lambda_1 |G|_1 + lambda_2 (tr(S_W - S_B) + eta |G|^2)

    where S_W and S_B are the scatter of codes within and between classes. After a
    ``KernelLinearizer`` it learns under a kernel (LKDL).

    Parameters
    ----------
    n_atoms_per_class : int, optional
        Atoms of every class; by default as many as features, or as the class has rows.
    l1_weight : float, default=0.2
        lambda_1, also for new rows, in units of the signals' root mean energy.
    fisher_weight : float, default=0.001
        lambda_2; with 0 classes are held apart by their atoms alone.
    convexity : float, default=1.0
        eta, at least 1: from there on the codes' problem is convex.
    decision : {"local", "global"}, default="local"
        Code a new row over every class's atoms by itself and decide by the value of
        |x - D_i a|^2 + lambda_1 |a|_1 + g |a - mu_i|^2, mu_i the class's mean code; or code it once
        over all atoms, and decide by |x - D_i a_i|^2 + g |a - mu_i|^2. The global decision suits
        classes of few rows.
    mean_weight : float, optional
        g; by default ``fisher_weight`` in the local decision and 0.5 in the global one.
    init_max_iter : int, default=10
        The most passes over each class alone, before the classes come together; 0 starts from
        k-means centres as they are.
    max_iter : int, default=5
        The most passes: an update of all atoms, then of all codes.
    tol : float, default=1e-4
        Stop when three passes together lower the objective by no more than this share of it.
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR array or a dense one.
    calibrate : bool, default=False
        Whether to learn how sure answers are, from the rows left out of three more fits.
    random_state : int, RandomState or None
        Seeds the k-means centres that every class starts from.

    Attributes
    ----------
    classes_ : array
        The labels.
    components_ : array of shape (n_atoms_, n_features)
        The atoms, class after class.
    atom_classes_ : array of shape (n_atoms_,)
        The number of the class that each atom belongs to.
    mean_codes_ : array of shape (n_classes, n_atoms_)
        mu_i: the mean code of every class's training rows.
    l1_weight_ : float
        lambda_1 for signals of this energy.
    objective_ : array of shape (n_iter_,)
        The value of eq. (7) that every pass reached; it does not rise.
    n_atoms_, n_iter_ : int
        What the data allowed, and the passes run.
    inverse_temperature_, label_smoothing_ : float
        With ``calibrate=True``: what makes probabilities of scores (see ``predict_proba``).

    Notes
    -----
    ``decision_function``, and ``predict_proba`` without ``calibrate``, return shares: 1 / e over
    the sum of all, with e what a class leaves of a row in the sense of ``decision``, at least 10
    eps of the row's energy.

    Examples
    --------
    >>> from kernelatoms import FDDLClassifier
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(Normalizer(), FDDLClassifier(n_atoms_per_class=20, random_state=0))
    >>> model.fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.9
    True
    """

    def __init__(
        self,
        n_atoms_per_class: int | None = None,
        *,
        l1_weight: float = 0.2,
        fisher_weight: float = 0.001,
        convexity: float = 1.0,
        decision: str = "local",
        mean_weight: float | None = None,
        init_max_iter: int = 10,
        max_iter: int = 5,
        tol: float = 1e-4,
        sparse_output: bool = True,
        calibrate: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_atoms_per_class = n_atoms_per_class
        self.l1_weight = l1_weight
        self.fisher_weight = fisher_weight
        self.convexity = convexity
        self.decision = decision
        self.mean_weight = mean_weight
        self.init_max_iter = init_max_iter
        self.max_iter = max_iter
        self.tol = tol
        self.sparse_output = sparse_output
        self.calibrate = calibrate
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        self._check_parameters()
        X, self.classes_, labels = validate_labelled(self, X, y)
        self._check_calibration(labels)
        counts = self._choose_counts(X.shape[1], np.bincount(labels))
        owners = np.repeat(np.arange(len(counts)), counts)
        check_fits(  # rows, residuals, Gram matrices
            8.0 * (4 * X.size + 4 * len(owners) ** 2),
            f"{len(X)} rows and inner products of {len(owners)} atoms",
            "Learn from fewer rows, or fewer atoms per class.",
        )
        energy = float(machine(X).squared_norms(X).mean(dtype=np.float64)) or 1.0
        weights = Weights(
            float(np.sqrt(energy)) * float(self.l1_weight), float(self.fisher_weight),
            float(self.convexity),
        )  # fmt: skip
        order = np.argsort(labels, kind="stable")
        data = Labelled(X[order].astype(np.float64, copy=False), labels[order], owners)

        def attributes(state: CoupledState) -> dict[str, Any]:
            return {
                "components_": state.dictionary.astype(X.dtype),
                "atom_classes_": owners,
                "mean_codes_": code_means(state.codes, data)[0],
                "l1_weight_": weights.l1,
                "objective_": np.array(state.objective),
                "n_atoms_": len(owners),
                "n_iter_": len(state.objective),
            }

        reporter = PassReporter(self, X, int(self.max_iter), attributes)
        start = _class_centres(data, counts, check_random_state(self.random_state))
        if self.init_max_iter:
            start = class_atoms(
                data, start, weights.l1, max_iter=int(self.init_max_iter), tol=float(self.tol)
            )
        state = reporter.resumed(start_fisher(data, start, weights), data.rows)
        learn_fisher(
            data, state, weights, max_iter=reporter.passes_left, tol=float(self.tol),
            observer=reporter,
        )  # fmt: skip
        self._set(**attributes(state))
        self._calibrate(X, labels)
        reporter.end()

    _evidence = CodeClassifier._evidence  # scores are shares

    def _scores(self, X: Array) -> Array:
        if self.decision == "global":
            return super()._scores(X)
        each = (self._code_of_class(X, c) for c in range(len(self.classes_)))
        return self._shares(X, np.stack([self._value(codes) for codes in each], axis=1))

    def _scores_of(self, X: Array, codes: Codes) -> Array:
        """Decide globally: |x - D_i a_i|^2 + g |a - mu_i|^2 of every class."""
        matrix, means = codes.to_csr().astype(np.float64), self.mean_codes_
        energies = np.asarray(matrix.power(2).sum(axis=1)).ravel()
        apart = energies[:, None] - 2 * (matrix @ means.T) + np.vecdot(means, means)
        left = self._class_residuals(X, codes) + self._mean_weight * np.maximum(apart, 0.0)
        return self._shares(X, left)

    def _shares(self, X: Array, left: Array) -> Array:
        return shares_of(left, self._energies(X), X.dtype)

    def _explained(self, X: Array) -> list[Explanation]:
        if self.decision == "global":
            return super()._explained(X)
        each = [self._code_of_class(X, c) for c in range(len(self.classes_))]
        scores = self._shares(X, np.stack([self._value(codes) for codes in each], axis=1))
        best = scores.argmax(axis=1)
        matrices = [codes.to_csr() for codes in each]
        residuals = np.empty(scores.shape)
        for c, matrix in enumerate(matrices):
            left = X - matrix @ self.components_[self.atom_classes_ == c]
            residuals[:, c] = np.vecdot(left, left)
        return explain_codes(
            codes_of_best(matrices, best), self.atom_classes_, self.classes_, scores,
            residuals=residuals, residual=residuals[np.arange(len(X)), best],
            energies=self._energies(X),
        )  # fmt: skip

    def _code_of_class(self, X: Array, c: int) -> Codes:
        """Return codes over one class's atoms, drawn towards its mean code."""
        rows, own = X.astype(np.float64, copy=False), self.atom_classes_ == c
        atoms = self.components_[own].astype(np.float64)
        mean, weight = self.mean_codes_[c, own], self._mean_weight
        gram = machine(atoms).gram_matrix(atoms)
        gram[np.diag_indices_from(gram)] += weight
        energy = np.vecdot(rows, rows) + weight * float(mean @ mean)
        towards = np.broadcast_to(weight * mean, (len(rows), len(atoms)))
        return self._pursuit()(DrawnProblem(gram, rows, atoms, towards, energy))

    def _value(self, codes: Codes) -> Array:
        """Return |x - D_i a|^2 + g |a - mu_i|^2, which are the errors, and lambda_1 |a|_1."""
        sizes = np.asarray(abs(codes.to_csr()).sum(axis=1), np.float64)
        return codes.error + self.l1_weight_ * sizes.ravel()

    @property
    def _mean_weight(self) -> float:
        if self.mean_weight is not None:
            return float(self.mean_weight)
        return float(self.fisher_weight) if self.decision == "local" else _GLOBAL_MEAN_WEIGHT

    def _pursuit(self) -> Pursuit:
        return Lasso(self.l1_weight_ / 2)  # which is the weight beside half of the squares

    def _choose_counts(self, n_features: int, class_sizes: NDArray[np.intp]) -> NDArray[np.intp]:
        if self.n_atoms_per_class is None:
            return np.minimum(class_sizes, n_features)
        count = int(self.n_atoms_per_class)
        clip_count(
            "n_atoms_per_class", count, int(class_sizes.min()), "the smallest class has rows",
            "every class uses as many as it allows",
        )  # fmt: skip
        return np.minimum(class_sizes, count)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("l1_weight", self.l1_weight, low=0, low_open=True)
        check_real("fisher_weight", self.fisher_weight, low=0)
        check_real("convexity", self.convexity, low=1)
        check_choice("decision", self.decision, ("local", "global"))
        check_count("init_max_iter", self.init_max_iter, low=0)
        if self.mean_weight is not None:
            check_real("mean_weight", self.mean_weight, low=0)
        if self.n_atoms_per_class is not None:
            check_count("n_atoms_per_class", self.n_atoms_per_class)

    def _check_decision(self, n_classes: int, n_atoms: int) -> None:
        require_floats(self, "mean_codes_", (n_classes, n_atoms))
        if not require_number(self, "l1_weight_") > 0:
            raise ValueError("FDDLClassifier.l1_weight_ must be above 0.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False  # l1 codes are of complete rows
        return tags


def _class_centres(data: Labelled, counts: NDArray[np.intp], rng: np.random.RandomState) -> Array:
    """Return k-means centres of every class at unit norm, class after class."""
    centres = []
    for c, count in enumerate(counts.tolist()):
        rows = data.rows[data.members(c)]
        if count < len(rows):
            model = KMeans(
                count, init="random", n_init=1, max_iter=_KMEANS_PASSES, random_state=rng
            )
            with warnings.catch_warnings():
                # Fewer different rows than atoms: some centres are alike.
                warnings.simplefilter("ignore", ConvergenceWarning)
                rows = model.fit(rows).cluster_centers_
        centres.append(unit_rows(np.ascontiguousarray(rows)))
    return np.concatenate(centres)
