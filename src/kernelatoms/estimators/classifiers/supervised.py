"""``SupervisedDictionary``: classifiers that learn one dictionary from rows and their labels."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state

from kernelatoms.coding.class_residuals import class_residuals
from kernelatoms.coding.codes import Codes
from kernelatoms.engine import Array
from kernelatoms.estimators.classifiers.base import CodeClassifier
from kernelatoms.estimators.coding.dictionary_coder import DictionaryCoder
from kernelatoms.estimators.devices.border import learn
from kernelatoms.estimators.inspection.explanation import Explanation, explain_codes
from kernelatoms.estimators.naming import unnamed
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
    score = CodeClassifier.score  # type: ignore[assignment]

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
