"""Alternate coding and updating: one loop for all learners.

An update cannot raise the objective; a greedy pursuit can, because newly picked atoms may serve a
signal worse than its old ones. Keeping old codes where they are better would tie the dictionary to
stale codes. So every pass codes anew, and the state keeps the best pass.

See docs/decisions/032-fresh-codes.md.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes
from kernelatoms.coding.problem import CodingProblem
from kernelatoms.coding.pursuits import Pursuit
from kernelatoms.engine import Array, machine
from kernelatoms.features.linear_algebra import check_squares
from kernelatoms.learning.state import LearnerState, worst_represented

#: The group of every row (n_samples,), and of every atom (n_atoms,).
Groups = tuple[NDArray[np.intp], NDArray[np.intp]]

# Learning ends when this many passes together lower the objective by no more than ``tol``.
_PATIENCE = 3


class UpdateResult(NamedTuple):
    """What an update made of a dictionary and codes.

    ``codes`` are those over the new dictionary (coefficients may be updated; their errors must rank
    signals), ``objective`` is theirs, ``sums`` are sums over rows, if the update has any.
    """

    dictionary: Array
    codes: Codes
    objective: float
    sums: Any = None


class Update(Protocol):
    """From codes to a better dictionary; never to a higher objective for these codes."""

    #: The pursuits from whose codes it can learn.
    accepts: tuple[type, ...]

    def apply(self, rows: Array, codes: Codes, dictionary: Array) -> UpdateResult:
        """Improve a dictionary, all rows and their codes at hand."""

    def new_atoms(self, rows: Array) -> Array | None:
        """Return rows as atoms; None if atoms cannot be chosen one by one."""


class BatchUpdate(Update, Protocol):
    """An update that also learns from one batch after another, through sums over rows."""

    def take_batch(
        self, rows: Array, codes: Codes, dictionary: Array, past: Any, decay: float
    ) -> UpdateResult:
        """Improve a dictionary by a batch and the sums of earlier ones, weighted by ``decay``."""

    def clear_atoms(self, sums: Any, atoms: NDArray[np.intp]) -> Any:
        """Return the sums without these atoms."""

    def padded(self, sums: Any, n_new: int) -> Any:
        """Return the sums with ``n_new`` unused atoms more."""


class PassObserver(Protocol):
    """Is called before and after passes: progress bars, early stopping."""

    def begin_pass(self) -> None:
        """Do something when a pass starts."""

    def end_pass(self, state: Any, is_last: bool) -> bool:
        """Return True to stop after a pass, which reached ``state.objective[-1]``."""


class UpdateRequest(NamedTuple):
    """What a run waits for: the result of ``update.apply(rows, codes, dictionary)``."""

    update: Update
    rows: Array
    codes: Codes
    dictionary: Array


#: Learns by passes; yields each update that it wants to have made, and is sent the result.
Run = Generator[UpdateRequest, UpdateResult, Any]


def passes(
    problem_of: Callable[[Array], CodingProblem],
    rows: Array,
    pursuit: Pursuit,
    update: Update,
    state: LearnerState,
    *,
    max_iter: int,
    tol: float,
    change_tol: float | None = None,
    observer: PassObserver | None = None,
    groups: Groups | None = None,
) -> Run:
    """Improve a dictionary by passes over all rows; ``state`` goes on from where it is.

    Parameters
    ----------
    problem_of : callable
        Returns the problem of coding the rows over a dictionary.
    rows : array of shape (n_samples, n_features)
        The signals, or their coordinates in a feature space.
    pursuit : Pursuit
        How rows are coded.
    update : Update
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

    Yields
    ------
    UpdateRequest
        One per pass; the run goes on when it is sent the ``UpdateResult``.
    """
    _check(pursuit, update, rows)
    for _ in each_pass(state, max_iter, tol=tol, change_tol=change_tol, observer=observer):
        # Spinning BLAS threads would take a core from the next pursuit.
        with machine(rows).one_blas_thread():
            codes = pursuit(problem_of(state.dictionary))
        result = yield UpdateRequest(update, rows, codes, state.dictionary)
        unused = state.record_pass(result.dictionary, result.objective, codes.uses(), result.sums)
        # No code uses these atoms, so replacing them does not change the objective.
        replace_dead_atoms(state, unused, rows, result.codes.error, update, groups)


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
            moved = np.linalg.norm(state.dictionary - before)
            done = bool(moved <= change_tol * np.linalg.norm(before))
        is_last = done or number + 1 == max_iter
        if (observer is not None and observer.end_pass(state, is_last)) or is_last:
            break


def run(learning: Run) -> Any:
    """Let a run learn to its end, and return what it returns."""
    result: Any = None
    try:
        while True:
            update, rows, codes, dictionary = learning.send(result)
            with machine(rows).one_blas_thread():
                result = update.apply(rows, codes, dictionary)
    except StopIteration as end:
        return end.value


def learn(*args: Any, **options: Any) -> None:
    """Improve a dictionary by passes over all rows, as ``passes`` says."""
    run(passes(*args, **options))


def run_all(runs: Iterable[Run], like: Array) -> list[Any]:
    """Let runs on the machine of an array learn; the results are those of one after another.

    On the CPU each thread takes a run. One dictionary leaves most of a device idle: there the
    updates that several runs wait for are made together (``apply_all``).
    """
    engine, ahead = machine(like), deque(enumerate(runs))
    if engine.UPDATES_TOGETHER == 1:
        results: list[Any] = engine.each(run, [learning for _, learning in ahead])
        return results
    returned: list[Any] = [None] * len(ahead)
    waiting: dict[int, tuple[Run, UpdateRequest]] = {}

    def go_on(number: int, learning: Run, result: Any) -> None:
        try:
            waiting[number] = learning, learning.send(result)
        except StopIteration as end:
            waiting.pop(number, None)
            returned[number] = end.value

    try:
        while ahead or waiting:
            while ahead and len(waiting) < engine.UPDATES_TOGETHER:
                if waiting and not engine.is_mostly_free(like):
                    break
                go_on(*ahead.popleft(), None)
            made = _apply_all([request for _, request in waiting.values()])
            for (number, (learning, _)), result in zip(list(waiting.items()), made, strict=True):
                go_on(number, learning, result)
    finally:
        for learning, _ in waiting.values():
            learning.close()
    return returned


def _apply_all(requests: list[UpdateRequest]) -> list[UpdateResult]:
    """Return the results of updates of one kind, made together where the update can."""
    if not requests:
        return []
    update = requests[0].update
    asked = [(one.rows, one.codes, one.dictionary) for one in requests]
    if hasattr(update, "apply_all"):
        results: list[UpdateResult] = update.apply_all(asked)
        return results
    return [one.update.apply(*given) for one, given in zip(requests, asked, strict=True)]


def has_converged(objective: list[float], tol: float) -> bool:
    """Whether the last three passes lowered the best objective by no more than ``tol`` of it."""
    if len(objective) <= _PATIENCE:
        return False
    before = min(objective[:-_PATIENCE])
    return before - min(objective) <= tol * abs(before)


def learn_batch(
    problem_of: Callable[[Array], CodingProblem],
    rows: Array,
    pursuit: Pursuit,
    update: BatchUpdate,
    state: LearnerState,
    *,
    n_atoms: int,
    decay: float,
) -> float:
    """Learn from a batch; return the objective.

    Parameters
    ----------
    problem_of, rows, pursuit, update, state
        As in ``learn``.
    n_atoms : int
        The number of atoms: while there are fewer, rows of the batch become atoms.
    decay : float
        The weight of earlier batches.
    """
    _check(pursuit, update, rows)
    missing = min(n_atoms - len(state.dictionary), len(rows))
    if missing > 0:
        chosen = state.random_state.permutation(len(rows))[:missing]
        new = update.new_atoms(rows[chosen])
        assert new is not None, "updates that cannot add atoms start with all of them"
        state.append_atoms(new.astype(state.dictionary.dtype))
        if state.sums is not None:
            state.sums = update.padded(state.sums, missing)
    with machine(rows).one_blas_thread():
        codes = pursuit(problem_of(state.dictionary))
        updated = update.take_batch(rows, codes, state.dictionary, state.sums, decay)
    unused = state.record_batch(
        updated.dictionary, updated.objective, codes.uses(), updated.sums, len(rows), decay
    )
    replaced = replace_dead_atoms(state, unused, rows, updated.codes.error, update)
    state.sums = update.clear_atoms(state.sums, replaced)
    return updated.objective


def replace_dead_atoms(
    state: LearnerState,
    unused: NDArray[np.intp],
    rows: Array,
    error: Array,
    update: Update,
    groups: Groups | None = None,
) -> NDArray[np.intp]:
    """Replace unused atoms by the worst represented signals; return which were replaced."""
    if groups is None:
        worst = worst_represented(error, len(unused))
        replaced = unused[: len(worst)]
    else:
        replaced, worst = worst_of_groups(unused, error, groups)
    new = update.new_atoms(rows[worst]) if len(replaced) else None
    if new is None:
        return replaced[:0]
    state.replace_atoms(replaced, new)
    return replaced


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


def _check(pursuit: Pursuit, update: Update, rows: Array) -> None:
    """Refuse a pursuit from whose codes an update cannot learn, and rows that are too small."""
    if not isinstance(pursuit, update.accepts):
        accepted = " or ".join(kind.__name__ for kind in update.accepts)
        raise TypeError(
            f"{type(update).__name__} learns from codes by {accepted}, not by "
            f"{type(pursuit).__name__}."
        )
    check_squares(rows, float(machine(rows).squared_norms(rows).sum()))
