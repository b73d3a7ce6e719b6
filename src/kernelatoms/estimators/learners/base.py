"""What learners share: ``DictionaryLearner``, and how passes become fitted attributes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.problem import CodingProblem
from kernelatoms.coding.pursuits import OMP, Pursuit
from kernelatoms.estimators.coding.dictionary_coder import DictionaryCoder
from kernelatoms.estimators.devices.border import at_once
from kernelatoms.estimators.learners.watching import PassReporter
from kernelatoms.estimators.naming import unnamed
from kernelatoms.estimators.state_checks import (
    check_features,
    check_learner_parameters,
    check_passes,
    require_count,
)
from kernelatoms.estimators.validation import (
    check_choice,
    check_count,
    check_real,
    clip_count,
)
from kernelatoms.features.gram_check import check_squares
from kernelatoms.features.memory import check_fits
from kernelatoms.learning.dead_atoms import atoms_from_rows, atoms_from_sums
from kernelatoms.learning.ksvd import KSVDUpdate
from kernelatoms.learning.loop import Run, Update, passes, run
from kernelatoms.learning.state import LearnerState
from kernelatoms.similarity.base import check_flag

Array = NDArray[Any]


@unnamed
class DictionaryLearner(DictionaryCoder):
    """What all learners share: the passes, the callbacks, the sizes.

    A learner says how it codes (``_pursuit``), how a dictionary is improved (``_update``), and
    which problem it is to code rows over its atoms (``_problem``).
    """

    n_atoms: int | float | None
    max_iter: int
    tol: float
    #: The stop on the change of the atoms, where a learner has it.
    change_tol: float | None = None

    def score(self, X: Any, y: Any = None) -> float:
        """Return the share of the signals' energy that their codes keep.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals; of those with missing values (NaN), what is observed counts.
        y : ignored

        Returns
        -------
        float
            1 less the sum of the squared residuals over that of the k(x, x); 1 is lossless.
        """
        return at_once(self._score, X, self)

    def _score(self, X: Any) -> float:
        X = self._validated(X)
        problem = self._problem(X)
        if not problem.knows_energy:
            raise ValueError("score needs k(x, x), which kernel='precomputed' does not give.")
        error = float(np.sum(self._encode(X).error, dtype=np.float64))
        energy = float(np.nansum(self._energies(X), dtype=np.float64))
        check_squares(X, energy)
        return 1.0 - error / energy if energy > 0 else 1.0

    @classmethod
    def _joint_problem(cls, learners: Sequence[Any], X: Array) -> CodingProblem:
        """Return the problem of coding rows over the atoms of several learners at once."""
        raise NotImplementedError

    def _joint_pursuit(self, n_atoms: int, n_nonzero: int | None) -> Pursuit:
        """Return how rows are coded over the atoms of several such learners, greedily if asked."""
        raise NotImplementedError

    def _update(self) -> Update:
        """Return how a dictionary is improved."""
        raise NotImplementedError

    @property
    def _outnumbers_rows(self) -> bool:
        """Whether there may be more atoms than rows to learn from."""
        return False

    def _draw_atoms(self, rows: Array, n_atoms: int, rng: np.random.RandomState) -> Array:
        """Return the atoms to start from, the sizes of a code settled."""
        return atoms_from_rows(rows, n_atoms, rng)

    def _check_parameters(self) -> None:
        """Refuse parameters before any work starts."""
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, low=0)
        check_flag("sparse_output", self.sparse_output)

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other; see ``fitted``."""
        self._check_parameters()
        check_learner_parameters(self)
        self._check_share()
        check_passes(self)
        self._check_atoms(require_count(self, "n_atoms_"), check_features(self))

    def _check_atoms(self, n_atoms: int, n_features: int) -> None:
        """Refuse fitted attributes that are not those of so many atoms over these features."""
        raise NotImplementedError

    def _choose_n_atoms(self, n_samples: int, default: int) -> int:
        if self.n_atoms is None:
            return min(default, n_samples)
        if isinstance(self.n_atoms, float | np.floating):
            self._check_share()
            return max(1, round(float(self.n_atoms) * n_samples))
        count = check_count("n_atoms", self.n_atoms)
        if self._outnumbers_rows:
            return count
        return clip_count("n_atoms", count, n_samples, "there are rows")

    def _check_size(self, name: str, n_given: int) -> None:
        """Refuse atoms to start from that are not as many as asked for; a share says no number."""
        if isinstance(self.n_atoms, float | np.floating):
            return
        if self.n_atoms is not None and check_count("n_atoms", self.n_atoms) != n_given:
            raise ValueError(
                f"n_atoms={self.n_atoms}, but {name} has {n_given} atoms; leave n_atoms out or "
                "make them agree."
            )

    def _check_share(self) -> None:
        """Refuse a number of atoms that is neither whole nor a share of the rows."""
        if isinstance(self.n_atoms, float | np.floating) and not 0 < self.n_atoms <= 1:
            raise ValueError(
                "n_atoms must be a whole number, or a share of the rows above 0 and at most 1, "
                f"got {self.n_atoms}."
            )

    def _refuse_share(self) -> None:
        """Refuse a share of the rows where rows come in batches."""
        self._check_share()
        if isinstance(self.n_atoms, float | np.floating):
            raise ValueError(
                f"n_atoms={self.n_atoms} is a share of the rows, and nobody knows how many rows "
                "batches will bring; give partial_fit a whole number."
            )

    def _fit(self, X: Any) -> None:
        run(self._learning(X))

    def _learning(self, X: Any) -> Run:
        """Return a run that learns from the rows X and sets the fitted attributes at its end."""
        raise NotImplementedError

    def _passes(
        self,
        X: Array,
        rows: Array,
        problem_of: Callable[[Array], CodingProblem],
        state: LearnerState,
        attributes: Callable[[LearnerState], dict[str, Any]],
    ) -> Run:
        """Learn from ``rows``: the signals X themselves, or coordinates in feature space."""
        update = self._update()
        if hasattr(update, "take_batch"):
            check_sums_fit(*state.dictionary.shape)
        reporter = PassReporter(self, X, int(self.max_iter), attributes)
        yield from passes(
            problem_of, rows, self._pursuit(), update, state, max_iter=int(self.max_iter),
            tol=float(self.tol), change_tol=self.change_tol, observer=reporter,
        )  # fmt: skip
        self._set(**attributes(state))
        reporter.end()


def check_sums_fit(n_atoms: int, n_features: int) -> None:
    """Refuse atoms whose sums over rows, W'W and W'X, need more memory than there is."""
    check_fits(
        8.0 * n_atoms * (2 * n_atoms + 4 * n_features),
        f"sums over the codes of n_atoms={n_atoms} atoms",
        "Use fewer atoms, or KSVD, which needs no such sums.",
    )


def pass_attributes(state: LearnerState) -> dict[str, Any]:
    """Return the fitted attributes that tell of the passes."""
    return {
        "n_atoms_": len(state.best),
        "objective_": np.array(state.objective),
        "best_pass_": state.best_pass,
        "n_iter_": len(state.objective),
    }


class GreedyParameters:
    """Learners whose codes have at most ``n_nonzero_coefs`` nonzeros, by OMP or OLS."""

    n_nonzero_coefs: int | None
    selection: str
    n_nonzero_coefs_: int
    n_features_in_: int

    def _pursuit(self) -> Pursuit:
        check_choice("selection", self.selection, ("omp", "ols"))
        return OMP(self.n_nonzero_coefs_, self.selection)

    def _joint_pursuit(self, n_atoms: int, n_nonzero: int | None) -> Pursuit:
        count = min(n_nonzero or self.n_nonzero_coefs_, self._most_nonzeros(n_atoms))
        return OMP(count, self.selection)

    def _check_nonzeros(self, n_atoms: int) -> None:
        """Refuse more nonzeros than there are atoms."""
        require_count(self, "n_nonzero_coefs_", high=n_atoms)

    def _most_nonzeros(self, n_atoms: int) -> int:
        """Return how many nonzeros make sense over so many atoms."""
        return n_atoms

    def _choose_n_nonzero(self, n_features: int, limit: int) -> int:
        if self.n_nonzero_coefs is None:
            return min(max(1, n_features // 10), limit)
        count = check_count("n_nonzero_coefs", self.n_nonzero_coefs)
        return clip_count("n_nonzero_coefs", count, limit, "atoms or features")


class KSVDParameters:
    """Learners by K-SVD: how atoms are improved (``update``), where they start (``init``)."""

    update: str
    init: str
    dict_init: Any
    n_nonzero_coefs_: int

    @property
    def _outnumbers_rows(self) -> bool:
        return self.init == "sums"

    def _update(self) -> Update:
        return KSVDUpdate(exact=self.update == "exact")

    def _draw_atoms(self, rows: Array, n_atoms: int, rng: np.random.RandomState) -> Array:
        if self.init == "rows":
            return atoms_from_rows(rows, n_atoms, rng)
        return atoms_from_sums(rows, n_atoms, self.n_nonzero_coefs_, rng)

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        check_choice("update", self.update, ("approximate", "exact"))
        check_choice("init", self.init, ("rows", "sums"))
        if self.init != "rows" and self.dict_init is not None:
            raise ValueError(
                f"init={self.init!r} draws the atoms to start from and dict_init gives them; leave "
                "one of them out."
            )
