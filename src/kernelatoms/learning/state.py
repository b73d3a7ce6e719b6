"""State of a learning run: all that a learner needs to continue exactly; initial atoms.

See docs/decisions/032-fresh-codes.md and docs/decisions/035-dead-atoms.md.
"""

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array, machine, to_numpy
from kernelatoms.learning.missing import feature_means, fill_by_means
from kernelatoms.learning.runs import Run, TakeRequest, run
from kernelatoms.rows import ArrayRows, RowSource, draw
from kernelatoms.similarity.missing import rows_with_missing

# An atom whose use has decayed to less than this many signals is unused.
_UNUSED = 1e-3
# An atom is replaced only after this many batches, and after this many signals times ``n_atoms``.
_FEWEST_BATCHES, _FEWEST_SIGNALS = 2, 10
# Of more rows than this, so many random ones per atom are looked at, to find some that are not 0.
_MANY_ROWS, _DRAWN = 1 << 22, 4


@dataclass
class LearnerState:
    """The state of learning after some passes over all rows, or after some batches.

    Parameters
    ----------
    dictionary : array of shape (n_atoms, n_features)
        The current atoms.
    best : array of shape (n_atoms, n_features)
        The atoms of the best pass so far.
    objective : list of float
        What every pass reached.
    best_pass : int
        The pass of the lowest objective; -1 before the first.
    sums : object or None
        What an update adds up over rows: of the best pass, or of all batches, with decay.
    use : array of shape (n_atoms,)
        How many signals used each atom: in the last pass, or in all batches, with decay.
    signals_seen, batches_seen : arrays of shape (n_atoms,)
        How many signals and batches were coded since the atom was put in its place.
    n_batches : int
        Batches learned from.
    random_state : RandomState or None
        Draws new atoms.
    data : object
        Identifies the rows of the passes.
    pending : tuple or None
        Between passes: what the next one is to judge, where one does (``descent``).
    """

    dictionary: Array
    best: Array
    objective: list[float] = field(default_factory=list)
    best_pass: int = -1
    sums: Any = None
    use: Array = field(default_factory=lambda: np.zeros(0))
    signals_seen: Array = field(default_factory=lambda: np.zeros(0))
    batches_seen: Array = field(default_factory=lambda: np.zeros(0))
    n_batches: int = 0
    random_state: Any = None
    data: Any = None
    pending: tuple[Any, ...] | None = None

    @classmethod
    def start(cls, dictionary: Array, random_state: Any = None) -> "LearnerState":
        """Return the state before the first pass or batch."""
        state = cls(dictionary, dictionary, random_state=random_state)
        state.use, state.signals_seen, state.batches_seen = (
            np.zeros(len(dictionary), like=dictionary) for _ in range(3)
        )
        return state

    def copy(self) -> "LearnerState":
        """Return an independent copy."""
        return replace(
            self, objective=list(self.objective), random_state=deepcopy(self.random_state)
        )

    def record_pass(
        self, dictionary: Array, objective: float, uses: Array, sums: Any = None
    ) -> NDArray[np.intp]:
        """Record a pass over all rows; return the unused atoms."""
        self.dictionary = dictionary
        self.objective.append(objective)
        if self.best_pass < 0 or objective < self.objective[self.best_pass]:
            self.best, self.best_pass, self.sums = dictionary, len(self.objective) - 1, sums
        self.use = uses.astype(np.float64)
        self.signals_seen, self.batches_seen = (np.zeros(len(uses), like=uses) for _ in range(2))
        return np.flatnonzero(uses == 0)

    def record_batch(
        self, dictionary: Array, objective: float, uses: Array, sums: Any, n_signals: int,
        decay: float,
    ) -> NDArray[np.intp]:  # fmt: skip
        """Record a batch; return the atoms that the batches so far did not use.

        One batch alone is not enough to decide: its signals may be of one kind.
        """
        self.dictionary, self.best, self.sums = dictionary, dictionary, sums
        self.objective, self.best_pass = [objective], 0
        self.n_batches += 1
        self.use = decay * self.use + uses
        self.signals_seen = self.signals_seen + n_signals
        self.batches_seen = self.batches_seen + 1
        ripe = (self.batches_seen >= _FEWEST_BATCHES) & (
            self.signals_seen >= _FEWEST_SIGNALS * len(dictionary)
        )
        return np.flatnonzero(ripe & (self.use < _UNUSED))

    def replace_atoms(self, atoms: NDArray[np.intp], rows: Array) -> None:
        """Replace atoms by new ones, whose counts start at 0."""
        dictionary = self.dictionary.copy()
        dictionary[atoms] = rows
        # The best pass is this one or an earlier one, whose atoms do not change.
        if self.best is self.dictionary:
            self.best = dictionary
        self.dictionary = dictionary
        for counts in (self.use, self.signals_seen, self.batches_seen):
            counts[atoms] = 0

    def change_coordinates(self, dictionary: Array, sums: Any, lost: NDArray[np.intp]) -> None:
        """Set atoms and sums in other coordinates, in which the atoms ``lost`` are 0."""
        self.dictionary, self.best, self.sums = dictionary, dictionary, sums
        self.use = self.use.copy()
        self.use[lost] = 0  # so that later batches replace them
        self.data = None  # rows in the new coordinates are different

    def append_atoms(self, rows: Array) -> None:
        """Add atoms at the end."""
        self.dictionary = np.concatenate([self.dictionary, rows])
        self.best = self.dictionary
        self.use, self.signals_seen, self.batches_seen = (
            np.concatenate([counts, np.zeros(len(rows), like=counts)])
            for counts in (self.use, self.signals_seen, self.batches_seen)
        )


@dataclass
class CoupledState:
    """Atoms, codes over them that depend on each other, and what every pass reached.

    ``curvature`` is that of the last step of codes, where they take such (K-SAD).
    """

    dictionary: Array
    codes: Any
    objective: list[float] = field(default_factory=list)
    curvature: float = 1.0


def unit_rows(rows: Array) -> Array:
    """Return the rows at unit norm; zero rows stay zero."""
    return machine(rows).unit_rows(rows)


def draw_rows(rows: RowSource, n_atoms: int, rng: np.random.RandomState) -> Run:
    """Return random rows at unit norm (how both papers start), zero rows last; a run.

    Missing values are those of the means of features.
    """
    n_rows = rows.count()
    order = draw(n_rows, n_rows if n_rows <= _MANY_ROWS else _DRAWN * n_atoms, rng)
    others, zeros, n_found, means = [], [], 0, None
    for start in range(0, len(order), n_atoms):
        some = yield TakeRequest(rows, order[start : start + n_atoms])
        if len(rows_with_missing(some)):
            means = (yield from feature_means(rows)) if means is None else means
            some = fill_by_means(some, means)
        is_zero = ~some.any(axis=1)
        others.append(some[~is_zero])
        zeros.append(some[is_zero])
        n_found += len(others[-1])
        if n_found >= n_atoms:
            break
    return unit_rows(np.concatenate([*others, *zeros])[:n_atoms])


def atoms_from_rows(rows: Array, n_atoms: int, rng: np.random.RandomState) -> Array:
    """Return random rows of an array at unit norm, zero rows last."""
    return run(draw_rows(ArrayRows(rows), n_atoms, rng))


def _nonzero(X: Array) -> NDArray[np.bool_]:
    """Return which rows have a value other than 0."""
    found: NDArray[np.bool_] = to_numpy(machine(X).map_rows(lambda rows: rows.any(axis=1), X))
    return found


def atoms_from_sums(X: Array, n_atoms: int, n_terms: int, rng: np.random.RandomState) -> Array:
    """Return sums of ``n_terms`` random rows at unit norm, of rows other than 0 if there are any.

    As in Fig. 3 of the kernel dictionary learning paper.
    """
    rows = np.flatnonzero(_nonzero(X))
    rows = rows if len(rows) else np.arange(len(X))
    drawn = np.stack([rng.permutation(rows)[:n_terms] for _ in range(n_atoms)])
    total = X[drawn[:, 0]]
    for term in drawn[:, 1:].T:
        total = total + X[term]
    return unit_rows(total)


def worst_represented(error: Array, count: int) -> NDArray[np.intp]:
    """Return at most ``count`` signals of the largest errors above 0, largest first."""
    worst = np.argsort(-error, kind="stable")[:count]
    return worst[error[worst] > 0]
