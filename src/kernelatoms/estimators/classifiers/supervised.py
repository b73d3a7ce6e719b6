"""``SupervisedDictionary``: one dictionary, learned from rows and labels; those by K-SVD."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight

from kernelatoms.coding.class_residuals import class_residuals, nearest_probabilities
from kernelatoms.coding.codes import Codes
from kernelatoms.coding.problem import LinearProblem, linear_problems
from kernelatoms.coding.pursuits import OMP, Pursuit
from kernelatoms.engine import Array, machine
from kernelatoms.estimators.base import unnamed
from kernelatoms.estimators.classifiers.base import CodeClassifier
from kernelatoms.estimators.coding.dictionary_coder import DictionaryCoder
from kernelatoms.estimators.devices.border import learn
from kernelatoms.estimators.inspection.explanation import Explanation, explain_codes
from kernelatoms.estimators.kept import kept
from kernelatoms.estimators.learners.base import PassReporter, choose_n_nonzero, pass_attributes
from kernelatoms.estimators.state_checks import (
    check_features,
    check_labels,
    check_passes,
    require_count,
    require_floats,
    require_rows,
)
from kernelatoms.estimators.training_rows import validate_labelled
from kernelatoms.estimators.validation import check_count, check_real, clip_count
from kernelatoms.features.memory import check_fits
from kernelatoms.learning.ksvd import (
    KSVDUpdate,
    allocate_atoms,
    atoms_with_map,
    class_atoms,
    label_map,
    split_joint_atoms,
    with_labels,
)
from kernelatoms.learning.loop import passes
from kernelatoms.learning.runs import run
from kernelatoms.learning.state import LearnerState
from kernelatoms.similarity.base import check_flag

# Scores that differ by fewer eps than this count as equal.
_ROUNDING = 10


@unnamed
class SupervisedDictionary(CodeClassifier, DictionaryCoder):
    """One dictionary whose atoms belong to classes; what its codes say of a row decides.

    Subclasses learn it (``_fit``) and say how well each class fits rows of given codes
    (``_scores_of``).
    """

    max_iter: int
    tol: float
    random_state: Any
    atom_classes_: NDArray[np.intp]

    # Not the share of energy that codes keep.
    score = CodeClassifier.score

    @with_callbacks
    def fit(self, X: Any, y: Any) -> Self:
        """Learn atoms and how they decide from labelled rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals; k(train, train) with ``kernel="precomputed"``. ``DKSVDClassifier`` and
            ``LCKSVDClassifier`` leave those with missing values (NaN) out, with a warning.
        y : array of shape (n_samples,)
            Their labels, of at least two classes.

        Returns
        -------
        self
        """
        with kept(self, X, y):
            learn(self._fit, self, X, y=y)
        return self

    def _fit(self, X: Any, y: Any) -> None:
        raise NotImplementedError

    def _explained(self, X: Array) -> list[Explanation]:
        """Explain validated rows by their codes over all atoms."""
        codes = self._encode(X)
        return explain_codes(
            codes.to_csr(), self.atom_classes_, self.classes_, self._scores_of(X, codes),
            residuals=self._class_residuals(X, codes), residual=codes.error,
            energies=self._energies(X), score_weights=self._score_weights(),
        )  # fmt: skip

    def _evidence(self, X: Array) -> tuple[Array, NDArray[np.intp]]:
        """Return the scores, and the answers."""
        scores = self._scores(X)
        return scores, scores.argmax(axis=1)

    def _class_residuals(self, X: Array, codes: Codes) -> Array:
        """Return what each class's part of codes leaves of rows: (n, n_classes)."""
        return class_residuals(self._problem(X), codes, self.atom_classes_, len(self.classes_))

    def _score_weights(self) -> Array | None:
        """Return the map from codes to scores, where these are linear in the code."""
        return None

    def _scores(self, X: Array) -> Array:
        return self._scores_of(X, self._encode(X))

    def _scores_of(self, X: Array, codes: Codes) -> Array:
        """Return how well each class fits rows with these codes over all atoms."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Refuse parameters before any work starts."""
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, low=0)
        check_flag("sparse_output", self.sparse_output)
        check_flag("calibrate", self.calibrate)

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other."""
        self._check_parameters()
        check_random_state(self.random_state)
        self._check_calibrated()
        check_passes(self)
        n_features, n_classes = check_features(self), check_labels(self, "classes_")
        n_atoms = require_count(self, "n_atoms_")
        self._check_atoms(n_atoms, n_features)
        owners = require_rows(self, "atom_classes_", n_classes, n_atoms)
        if np.any(np.diff(owners) < 0):
            raise ValueError(f"{type(self).__name__}.atom_classes_ must be in the classes' order.")
        self._check_decision(n_classes, n_atoms)

    def _check_atoms(self, n_atoms: int, n_features: int) -> None:
        """Refuse atoms that are not so many over these features."""
        require_floats(self, "components_", (n_atoms, n_features))

    def _check_decision(self, n_classes: int, n_atoms: int) -> None:
        """Refuse fitted attributes of the decision that do not belong to so many atoms."""
        raise NotImplementedError


@unnamed
class LabelDictionary:
    """K-SVD on signals with marks of their classes; a linear map of the code decides.

    It comes before ``SupervisedDictionary`` among the bases of a class, which says what a class's
    marks weigh (``_class_weights``), and whether its map decides.
    """

    n_atoms: int | None
    n_nonzero_coefs: int | None
    n_nonzero_coefs_: int
    ridge: float
    init_max_iter: int
    coef_: Array

    def _class_weights(self, counts: NDArray[np.intp]) -> Array:
        """Return what the marks of every class weigh, where signals have unit energy."""
        raise NotImplementedError

    def _map_decides(self, weights: Array) -> bool:
        """Tell whether the map that was learned with the atoms decides."""
        raise NotImplementedError

    def _fit(self: Any, X: Any, y: Any) -> None:
        self._check_parameters()
        self._refuse_unused()
        X, self.classes_, labels = validate_labelled(self, X, y)
        n_classes = len(self.classes_)
        self._check_calibration(labels)
        counts = allocate_atoms(self._choose_n_atoms(X, n_classes), np.bincount(labels))
        owners = np.repeat(np.arange(n_classes), counts)
        n_features = X.shape[1]
        limit = min(n_features, len(owners))
        self.n_nonzero_coefs_ = choose_n_nonzero(self.n_nonzero_coefs, n_features, limit)
        check_fits(  # with residuals and sweeps
            4.0 * X.itemsize * len(X) * (n_features + n_classes),
            f"{len(X)} rows with their labels and residuals", "Learn from fewer rows.",
        )  # fmt: skip
        # Relative to the signals' mean energy, weights mean the same whatever the signals' unit.
        counted = self._row_weights(labels)
        energies = machine(X).squared_norms(X).astype(np.float64)
        energy = float(np.average(energies, weights=counted)) or 1.0
        weights = energy * self._class_weights(counts)
        # Codes of a signal times a number are so many times as large, and so is what they leave.
        scale = None if counted is None else np.sqrt(counted)

        def scaled(signals: Array) -> Array:
            return signals if scale is None else signals * scale[:, None].astype(X.dtype)

        seen = scaled(X)

        def mapped(atoms: Array) -> Array:
            codes = self._pursuit()(LinearProblem(seen, atoms, complete=True))
            return label_map(codes, labels, n_classes, energy * float(self.ridge), scale)

        def attributes(state: LearnerState) -> dict[str, Any]:
            atoms, map_ = split_joint_atoms(state.best, weights)
            return {
                "components_": atoms,
                "coef_": map_ if self._map_decides(weights) else mapped(atoms),
                "atom_classes_": owners,
                **pass_attributes(state),
            }

        reporter = PassReporter(self, X, int(self.max_iter), attributes)
        rng = check_random_state(self.random_state)
        start = class_atoms(
            X, labels, counts, self.n_nonzero_coefs_,
            max_iter=int(self.init_max_iter), tol=float(self.tol),
            seeds=rng.randint(np.iinfo(np.int32).max, size=n_classes),
        )  # fmt: skip
        rows = scaled(with_labels(X, labels, weights))
        state = LearnerState.start(atoms_with_map(start, mapped(start), weights), rng)
        state = reporter.resumed(state, rows)
        learning = passes(
            linear_problems, rows, self._pursuit(), KSVDUpdate(), state,
            max_iter=reporter.passes_left, tol=float(self.tol),
            observer=reporter, groups=(labels, owners),
        )  # fmt: skip
        run(learning)
        self._set(**attributes(state))
        self._calibrate(X, labels)
        reporter.end()

    # Rows to code may have missing values.
    _validated = DictionaryCoder._validated

    def _row_weights(self: Any, labels: NDArray[np.intp]) -> Array | None:
        """Return what every row counts, or None where all count the same."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, dict):
            unknown = [label for label in self.class_weight if label not in self.classes_.tolist()]
            if unknown:
                raise ValueError(
                    f"class_weight names the class {unknown[0]!r}, which is not in y; it has "
                    f"{', '.join(map(repr, self.classes_.tolist()[:10]))}."
                )
        y = self.classes_[labels]
        of_classes = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        return np.asarray(of_classes, np.float64)[labels]

    def _shares_of_scores(self, scores: Array) -> Array:
        return nearest_probabilities(scores)

    def _scores_of(self, X: Array, codes: Codes) -> Array:
        # In float64: the map of short rows may be larger than float32 goes.
        scores = np.asarray(codes.to_csr() @ self.coef_.T.astype(np.float64)).astype(X.dtype)
        # What is rounding beside the largest score, or beside a probability of 1, breaks no tie.
        largest = np.maximum(np.abs(scores).max(axis=1, keepdims=True), 1)
        unit = _ROUNDING * np.finfo(X.dtype).eps * largest
        return np.round(scores / unit) * unit

    def _score_weights(self) -> Array | None:
        return self.coef_

    def _pursuit(self) -> Pursuit:
        return OMP(self.n_nonzero_coefs_)

    def _choose_n_atoms(self, X: Array, n_classes: int) -> int:
        if self.n_atoms is None:
            return min(max(2 * X.shape[1], n_classes), len(X))
        count = int(self.n_atoms)
        if count < n_classes:
            raise ValueError(
                f"n_atoms={count} is the size of the whole dictionary, in which each of the "
                f"{n_classes} classes has at least one atom; ask for {n_classes} or more."
            )
        return clip_count("n_atoms", count, len(X), "there are rows")

    def _check_parameters(self: Any) -> None:
        SupervisedDictionary._check_parameters(self)
        check_count("init_max_iter", self.init_max_iter)
        check_real("ridge", self.ridge, low=0, low_open=True)
        given = self.class_weight
        if isinstance(given, dict):
            for label, weight in given.items():
                check_real(f"class_weight[{label!r}]", weight, low=0, low_open=True)
        elif not (given is None or (isinstance(given, str) and given == "balanced")):
            raise ValueError(
                "class_weight must be None, 'balanced' or a dict of numbers by labels, got "
                f"{given!r}."
            )
        for name in ("n_atoms", "n_nonzero_coefs"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))

    def _refuse_unused(self) -> None:
        """Refuse parameters that others leave without use; files may hold such."""

    def _check_decision(self, n_classes: int, n_atoms: int) -> None:
        require_count(self, "n_nonzero_coefs_", high=n_atoms)
        require_floats(self, "coef_", (n_classes, n_atoms))
