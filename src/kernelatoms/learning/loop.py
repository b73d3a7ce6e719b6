"""Alternate coding and updating: one loop for all learners.

A pass codes all rows and improves the dictionary. For updates from sums (``AdditiveUpdate``) it is
a reduction: threads take blocks of rows, code them and sum up what the update needs to know, the
sums are added along a tree (``rows``), and the update solves for the dictionary. No more of the
rows than a block per thread need be in memory. Updates that look at rows and codes together
(``ResidentUpdate``) need all of them there.

An update cannot raise the objective; a greedy pursuit can, because newly picked atoms may serve a
signal worse than its old ones. Keeping old codes where they are better would tie the dictionary to
stale codes. So every pass codes anew, and the state keeps the best pass.

See docs/decisions/032-fresh-codes.md and docs/decisions/042-blocks-and-sums.md.
"""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes
from kernelatoms.coding.problem import CodingProblem
from kernelatoms.coding.pursuits import Pursuit
from kernelatoms.engine import Array, is_device_array, machine, to_numpy
from kernelatoms.features.linear_algebra import check_squares
from kernelatoms.learning.missing import feature_means, fill_by_codes, fill_by_means
from kernelatoms.learning.pass_sums import PassSums, sums_to_numpy
from kernelatoms.learning.runs import (
    BatchUpdate,
    Run,
    SumRequest,
    TakeRequest,
    Update,
    UpdateRequest,
    run,
)
from kernelatoms.learning.state import LearnerState, worst_represented
from kernelatoms.learning.weights import scaled_rows, weighted_sums
from kernelatoms.rows import ArrayRows, RowSource
from kernelatoms.similarity.missing import rows_with_missing

#: Returns how problems of blocks of rows over a dictionary are posed, about so many rows in all.
Problems = Callable[[Array, int], Callable[[Array], CodingProblem]]

#: The group of every row (n_samples,), and of every atom (n_atoms,).
Groups = tuple[NDArray[np.intp], NDArray[np.intp]]

# Learning ends when this many passes together lower the objective by no more than ``tol``.
_PATIENCE = 3
# Blocks of a pass: about so many, of at least so many rows, and of at most so many bytes.
_BLOCKS, _FEWEST_ROWS, _BLOCK_BYTES = 64, 256, 1 << 23
# And a block takes milliseconds to code: so many products of numbers at least.
_FEWEST_PRODUCTS = 1 << 24


class PassObserver(Protocol):
    """Is called before and after passes: progress bars, early stopping."""

    def begin_pass(self) -> None:
        """Do something when a pass starts."""

    def end_pass(self, state: Any, is_last: bool) -> bool:
        """Return True to stop after a pass, which reached ``state.objective[-1]``."""


def passes(
    problems: Problems,
    rows: RowSource | Array,
    pursuit: Pursuit,
    update: Update,
    state: LearnerState,
    *,
    max_iter: int,
    tol: float,
    change_tol: float | None = None,
    observer: PassObserver | None = None,
    groups: Groups | None = None,
    weights: NDArray[np.float64] | None = None,
) -> Run:
    """Improve a dictionary by passes over all rows; ``state`` goes on from where it is.

    Parameters
    ----------
    problems : callable
        Returns how problems over a dictionary are posed: ``coding.linear_problems``.
    rows : RowSource, or array of shape (n_samples, n_features)
        The signals, or their coordinates in a feature space; an array for a ``ResidentUpdate``.
    pursuit : Pursuit
        How rows are coded.
    update : AdditiveUpdate or ResidentUpdate
        How a dictionary is improved, given codes.
    state : LearnerState
        Where to start; changed.
    max_iter : int
        The most passes.
    tol : float
        Stop when three passes together lower the best objective by no more than this share of it.
    change_tol : float, optional
        Stop when a pass changes the dictionary by no more than this share of its norm; then
        ``tol`` does not count.
    observer : PassObserver, optional
        Called before and after every pass; may stop learning.
    groups : pair of arrays, optional
        The groups of rows and atoms: unused atoms are then replaced by rows of their own group.
        For a ``ResidentUpdate``.
    weights : array of shape (n_samples,), optional
        How much every row counts, above 0.

    Yields
    ------
    request
        What the run waits for (``runs``).
    """
    _check_codes(pursuit, update)
    rows = rows if isinstance(rows, RowSource) else ArrayRows(rows)
    if hasattr(update, "solve"):
        assert groups is None, "sums over rows know no groups"
        one_pass = partial(_sum_up, weights=weights)
    else:
        assert isinstance(rows, ArrayRows), f"{type(update).__name__} needs all rows in memory"
        rows = rows if weights is None else ArrayRows(scaled_rows(rows.collect(), weights))
        one_pass = partial(_look_at_all, groups=groups)
    for _ in each_pass(state, max_iter, tol=tol, change_tol=change_tol, observer=observer):
        yield from one_pass(problems, rows, pursuit, update, state)


def _sum_up(
    problems: Problems,
    rows: RowSource,
    pursuit: Pursuit,
    update: Any,
    state: LearnerState,
    *,
    weights: NDArray[np.float64] | None,
) -> Run:
    """Do a pass as a reduction over blocks of rows."""
    coded_over = state.dictionary
    work = CodeAndSum(problems, rows.count(), pursuit, update, coded_over)
    beside = () if weights is None else (weights,)
    total = yield SumRequest(rows, work, block_rows(rows, len(coded_over)), beside)
    check_squares(total.sums.energy, rows)
    result = yield UpdateRequest(update, (total.sums, state.dictionary))
    unused = state.record_pass(result.dictionary, result.objective, total.uses, result.sums)
    # No code uses these atoms, so replacing them does not change the objective.
    worst = to_numpy(total.worst.rows[: len(unused)])
    if len(worst):
        signals = yield TakeRequest(rows, worst)
        with machine(coded_over).one_blas_thread():
            signals = fill_by_codes(signals, lambda: work.codes(signals), coded_over)
        replace_dead_atoms(state, unused[: len(worst)], signals, update)


class CodeAndSum:
    """The work of a pass on a block: code its rows, sum up what the update needs.

    It may be sent to another process, which computes anew what the dictionary leads to (its Gram
    matrix, say): that is larger than the dictionary.

    Parameters
    ----------
    problems : callable
        As in ``passes``.
    n_rows : int
        How many rows the pass has.
    pursuit : Pursuit
        How rows are coded.
    update : AdditiveUpdate
        What sums up.
    dictionary : array of shape (n_atoms, n_features)
        The atoms.
    """

    def __init__(
        self, problems: Problems, n_rows: int, pursuit: Pursuit, update: Any, dictionary: Array
    ) -> None:
        self._problems, self._n_rows, self._pursuit = problems, n_rows, pursuit
        self._update, self._dictionary = update, dictionary
        self._posed: dict[bool, tuple[Array, Callable[[Array], CodingProblem]]] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        parts = self._problems, self._n_rows, self._pursuit, self._update, self._dictionary
        return type(self), parts

    def codes(self, block: Array) -> Codes:
        """Return the codes of a block."""
        return self._pursuit(self._there(block)[1](block))

    def _there(self, block: Array) -> tuple[Array, Callable[[Array], CodingProblem]]:
        """Return the dictionary, and how problems are posed, on the machine of a block."""
        place = is_device_array(block)
        with self._lock:  # the first thread poses the problem for all
            if place not in self._posed:
                atoms = np.asarray(self._dictionary, like=block)
                with machine(atoms).one_blas_thread():
                    self._posed[place] = atoms, self._problems(atoms, self._n_rows)
        return self._posed[place]

    def __call__(
        self, block: Array, start: int, weights: NDArray[np.float64] | None = None
    ) -> PassSums:
        """Return what a block tells, whose first row has the number ``start``."""
        atoms, problem_of = self._there(block)
        codes = self._pursuit(problem_of(block))
        if weights is None:
            found = PassSums.of(self._update.sums(block, codes, atoms), codes, start)
        else:
            found = PassSums.of(*weighted_sums(self._update, block, codes, atoms, weights), start)
        return sums_to_numpy(found) if isinstance(self._dictionary, np.ndarray) else found


def _look_at_all(
    problems: Problems,
    rows: RowSource,
    pursuit: Pursuit,
    update: Any,
    state: LearnerState,
    *,
    groups: Groups | None,
) -> Run:
    """Do a pass with all rows and their codes at hand."""
    X, coded_over = rows.collect(), state.dictionary
    if not state.objective:
        check_squares(float(machine(X).squared_norms(X).sum()), [X])
    # Spinning BLAS threads would take a core from the pursuits.
    with machine(X).one_blas_thread():
        codes = pursuit(problems(coded_over, len(X))(X))
    result = yield UpdateRequest(update, (X, codes, coded_over))
    unused = state.record_pass(result.dictionary, result.objective, codes.uses(), result.sums)
    error = (codes if result.codes is None else result.codes).error
    if groups is None:
        worst = worst_represented(error, len(unused))
        unused = unused[: len(worst)]
    else:
        unused, worst = worst_of_groups(unused, error, groups)
    signals = fill_by_codes(X[worst], lambda: codes.take(worst), coded_over)
    replace_dead_atoms(state, unused, signals, update)


def block_rows(rows: RowSource, n_atoms: int) -> int:
    """Return how many rows a thread takes at once in a pass, the same for any number of threads.

    Few enough for 64 blocks, so that 16 threads end together; but twice as many as there are atoms,
    since sums are larger than fewer rows, and enough that a block takes milliseconds. Rows of a
    device are worked on all together.
    """
    n_rows, n_features = rows.count(), rows.n_features or 1
    if rows.one_by_one:
        return max(n_rows, 1)
    fewest = max(_FEWEST_ROWS, 2 * n_atoms, _FEWEST_PRODUCTS // max(1, n_atoms * n_features))
    most = max(fewest, _BLOCK_BYTES // (n_features * rows.dtype.itemsize))
    return min(max(fewest, -(-n_rows // _BLOCKS)), most)


def each_pass(
    state: Any,
    max_iter: int,
    *,
    tol: float,
    change_tol: float | None = None,
    observer: PassObserver | None = None,
) -> Iterator[None]:
    """Yield for every pass to do, until learning has converged or the observer stops it.

    A pass changes ``state.dictionary`` and adds what it reached to ``state.objective``; ``tol`` and
    ``change_tol`` are those of ``passes``.
    """
    for number in range(max_iter):
        if observer is not None:
            observer.begin_pass()
        before = state.dictionary
        yield
        if change_tol is None:
            done = has_converged(state.objective, tol)
        else:
            done = has_moved_little(before, state.dictionary, change_tol)
        is_last = done or number + 1 == max_iter
        if (observer is not None and observer.end_pass(state, is_last)) or is_last:
            break


def learn(*args: Any, **options: Any) -> None:
    """Improve a dictionary by passes over all rows, as ``passes`` says."""
    run(passes(*args, **options))


def has_converged(objective: list[float], tol: float) -> bool:
    """Whether the last three passes lowered the best objective by no more than ``tol`` of it."""
    if len(objective) <= _PATIENCE:
        return False
    before = min(objective[:-_PATIENCE])
    return before - min(objective) <= tol * abs(before)


def has_moved_little(before: Array, after: Array, change_tol: float) -> bool:
    """Whether a pass changed the dictionary by no more than this share of its norm."""
    return bool(np.linalg.norm(after - before) <= change_tol * np.linalg.norm(before))


def batch(
    problems: Problems,
    rows: RowSource | Array,
    pursuit: Pursuit,
    update: BatchUpdate,
    state: LearnerState,
    *,
    n_atoms: int,
    decay: float,
) -> Run:
    """Learn from a batch; return the objective. The rows of a source are read block by block.

    Parameters
    ----------
    problems, rows, pursuit, update, state
        As in ``passes``.
    n_atoms : int
        The number of atoms: while there are fewer, rows of the batch become atoms.
    decay : float
        The weight of earlier batches.

    Yields
    ------
    request
        What the run waits for (``runs``).
    """
    _check_codes(pursuit, update)
    rows = rows if isinstance(rows, RowSource) else ArrayRows(rows)
    X = rows.collect() if isinstance(rows, ArrayRows) else None
    if X is not None:
        check_squares(float(machine(X).squared_norms(X).sum()), [X])
    yield from _append_rows(rows, update, state, n_atoms)
    coded_over = state.dictionary
    work = CodeAndSum(problems, rows.count(), pursuit, update, coded_over)
    if X is not None:
        with machine(X).one_blas_thread():
            codes = work.codes(X)
            updated = update.take_batch(X, codes, coded_over, state.sums, decay)
        uses, worst = codes.uses(), worst_represented(codes.error, codes.n_atoms)
    else:
        total = yield SumRequest(rows, work, block_rows(rows, len(coded_over)))
        check_squares(total.sums.energy, rows)
        updated = cast(Any, update).add_batch(total.sums, coded_over, state.sums, decay)
        uses, worst = total.uses, total.worst.rows
    unused = state.record_batch(
        updated.dictionary, updated.objective, uses, updated.sums, rows.count(), decay
    )
    worst = to_numpy(worst[: len(unused)])
    replaced = unused[:0]
    if len(worst):
        signals = yield TakeRequest(rows, worst)
        with machine(coded_over).one_blas_thread():
            signals = fill_by_codes(signals, lambda: work.codes(signals), coded_over)
        replaced = replace_dead_atoms(state, unused[: len(worst)], signals, update)
    state.sums = update.clear_atoms(state.sums, replaced)
    return updated.objective


def _append_rows(rows: RowSource, update: BatchUpdate, state: LearnerState, n_atoms: int) -> Run:
    """Make rows of a batch atoms while there are fewer than ``n_atoms``; a run."""
    missing = min(n_atoms - len(state.dictionary), rows.count())
    if missing <= 0:
        return
    chosen = state.random_state.permutation(rows.count())[:missing]
    some = yield TakeRequest(rows, chosen)
    if len(rows_with_missing(some)):
        some = fill_by_means(some, (yield from feature_means(rows)))
    new = update.new_atoms(some)
    assert new is not None, "updates that cannot add atoms start with all of them"
    state.append_atoms(new.astype(state.dictionary.dtype))
    if state.sums is not None:
        state.sums = update.padded(state.sums, missing)


def learn_batch(*args: Any, **options: Any) -> float:
    """Learn from a batch, as ``batch`` says; return the objective."""
    objective: float = run(batch(*args, **options))
    return objective


def replace_dead_atoms(
    state: LearnerState, unused: NDArray[np.intp], worst: Array, update: Update
) -> NDArray[np.intp]:
    """Replace unused atoms by as many badly represented signals; return the replaced ones."""
    new = update.new_atoms(worst) if len(unused) else None
    if new is None:
        return unused[:0]
    state.replace_atoms(unused, new)
    return unused


def worst_of_groups(
    unused: NDArray[np.intp], error: Array, groups: Groups
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return atoms to replace, and the worst represented signals of their own groups."""
    of_rows, of_atoms = groups
    replaced, worst = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    for group in np.unique(of_atoms[unused]):
        atoms, members = unused[of_atoms[unused] == group], np.flatnonzero(of_rows == group)
        found = members[worst_represented(error[members], len(atoms))]
        replaced.append(atoms[: len(found)])
        worst.append(found)
    return np.concatenate(replaced), np.concatenate(worst)


def _check_codes(pursuit: Pursuit, update: Update) -> None:
    """Refuse a pursuit from whose codes an update cannot learn."""
    if not isinstance(pursuit, update.accepts):
        accepted = " or ".join(kind.__name__ for kind in update.accepts)
        raise TypeError(
            f"{type(update).__name__} learns from codes by {accepted}, not by "
            f"{type(pursuit).__name__}."
        )
