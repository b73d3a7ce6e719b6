"""``SupervisedDictionary``: classifiers that learn one dictionary from rows and their labels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state

from kernelatoms.coding.class_residuals import class_residuals
from kernelatoms.coding.codes import Codes
from kernelatoms.estimators.base import unnamed
from kernelatoms.estimators.classifiers.probabilities import Probabilities
from kernelatoms.estimators.coding.dictionary_coder import DictionaryCoder
from kernelatoms.estimators.devices.border import by_rows
from kernelatoms.estimators.inspection.explanation import (
    Explanation,
    explain_codes,
    explain_on_cpu,
)
from kernelatoms.estimators.state_checks import (
    check_features,
    check_labels,
    check_passes,
    require_count,
    require_floats,
    require_rows,
)
from kernelatoms.estimators.validation import check_count, check_real
from kernelatoms.similarity.base import check_flag

Array = NDArray[Any]


@unnamed
class SupervisedDictionary(ClassifierMixin, DictionaryCoder, Probabilities):
    """One dictionary whose atoms belong to classes; what its codes say of a row decides.

    Subclasses say how well each class fits rows of given codes (``_scores_of``).
    """

    max_iter: int
    tol: float
    random_state: Any
    classes_: Array
    atom_classes_: NDArray[np.intp]

    # The share of rows given their labels, not the share of energy that codes keep.
    score = Probabilities.score  # type: ignore[assignment]

    def decision_function(self, X: Any) -> Array:
        """Return how well each class fits; larger is better.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals.

        Returns
        -------
        scores : (n_samples, n_classes), or (n_samples,) for two classes
            With two classes, the second one's score less the first one's.
        """
        return by_rows(self._decision_function, X, self)

    def _decision_function(self, X: Any) -> Array:
        scores = self._scores(self._validated(X))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Array:
        """Return the class that fits best for every row; of equal ones the first.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals.

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        return by_rows(self._predict, X, self)

    def _predict(self, X: Any) -> Array:
        return self._labels(self._scores(self._validated(X)).argmax(axis=1))

    def explain(self, X: Any) -> list[Explanation]:
        """Say for every row why it is given its class: the atoms used, what each class leaves.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals, as ``predict`` takes them.

        Returns
        -------
        list of Explanation
            One per row; scores are those of ``decision_function``, one for every class.
        """
        return explain_on_cpu(self, X)

    def _explain(self, X: Any) -> list[Explanation]:
        return self._explained(self._validated(X))

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

    def _shares_of_classes(self, X: Array) -> tuple[Array, NDArray[np.intp]]:
        scores = self._scores(X)
        return self._shares_of_scores(scores), scores.argmax(axis=1)

    def _shares_of_scores(self, scores: Array) -> Array:
        """Return scores as numbers that are at least 0 and add up to 1, in the same order."""
        raise NotImplementedError

    def _class_residuals(self, X: Array, codes: Codes) -> Array:
        """Return what each class's part of codes leaves of rows: (n, n_classes)."""
        return class_residuals(self._problem(X), codes, self.atom_classes_, len(self.classes_))

    def _score_weights(self) -> Array | None:
        """Return the map from codes to scores, where these are linear in the code."""
        return None

    def _scores(self, X: Array) -> Array:
        """Return how well each class fits validated rows: (n, n_classes)."""
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
