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

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes
from kernelatoms.coding.problem import CodingProblem, is_complete
from kernelatoms.coding.pursuits import Pursuit
from kernelatoms.engine import Array, is_device_array, machine
from kernelatoms.features.linear_algebra import check_squares
from kernelatoms.learning.missing import fill_by_codes, fill_by_means, sum_up
from kernelatoms.learning.pass_sums import PassSums
from kernelatoms.learning.state import LearnerState, worst_represented
from kernelatoms.rows import ArrayRows, RowSource

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


class UpdateResult(NamedTuple):
    """What an update made of a dictionary.

    ``objective`` is that of the codes over the new dictionary, their coefficients updated where the
    update does so; ``sums`` are sums over rows, if the update has any; ``codes`` are the updated
    codes, if there are any, whose errors rank signals.
    """

    dictionary: Array
    objective: float
    sums: Any = None
    codes: Codes | None = None


class Update(Protocol):
    """From codes to a better dictionary; never to a higher objective for these codes."""

    #: The pursuits from whose codes it can learn.
    accepts: tuple[type, ...]

    def new_atoms(self, rows: Array) -> Array | None:
        """Return rows as atoms; None if atoms cannot be chosen one by one."""


class ResidentUpdate(Update, Protocol):
    """An update that looks at all rows and their codes together."""

    def apply(self, rows: Array, codes: Codes, dictionary: Array) -> UpdateResult:
        """Improve a dictionary, all rows and their codes at hand."""


@runtime_checkable
class AdditiveUpdate(Update, Protocol):
    """An update from sums over rows, which add up over blocks, files and machines."""

    def sums(self, rows: Array, codes: Codes) -> Any:
        """Return the sums over these rows, which have ``+`` and an ``energy``, sum |x|^2."""

    def solve(self, sums: Any, dictionary: Array) -> UpdateResult:
        """Improve the dictionary whose codes were summed up."""


class BatchUpdate(Update, Protocol):
    """An update that learns from one batch after another, through sums over rows."""

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

    def end_pass(self, state: Any) -> bool:
        """Return True to stop after a pass, which reached ``state.objective[-1]``."""


class UpdateRequest(NamedTuple):
    """What a run waits for: ``update.solve(*given)``, or ``update.apply(*given)``."""

    update: Any
    given: tuple[Any, ...]

    @property
    def method(self) -> str:
        """The name of the update's method."""
        return "solve" if isinstance(self.update, AdditiveUpdate) else "apply"


#: Learns by passes; yields each update that it wants to have made, and is sent the result.
Run = Generator[UpdateRequest, UpdateResult, Any]


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
    weigh: Callable[[Array, Codes, int], Any] | None = None,
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
    weigh : callable, optional
        Returns the sums of complete rows start, start + 1, ... and their codes, in place of
        ``update.sums``: where rows have weights and cannot be scaled by them.

    Yields
    ------
    UpdateRequest
        One per pass; the run goes on when it is sent the ``UpdateResult``.
    """
    _check_codes(pursuit, update)
    one_pass = _sum_up if isinstance(update, AdditiveUpdate) else _look_at_all
    for _ in each_pass(state, max_iter, tol=tol, change_tol=change_tol, observer=observer):
        if weigh is not None:
            yield from _sum_up(problems, rows, pursuit, update, state, groups, weigh)
        else:
            yield from one_pass(problems, rows, pursuit, update, state, groups)


def _sum_up(
    problems: Problems,
    rows: RowSource | Array,
    pursuit: Pursuit,
    update: Any,
    state: LearnerState,
    groups: Groups | None,
    weigh: Callable[[Array, Codes, int], Any] | None = None,
) -> Run:
    """Do a pass as a reduction over blocks of rows."""
    assert groups is None, "sums over rows know no groups"
    source = rows if isinstance(rows, RowSource) else ArrayRows(rows)
    n_rows, n_atoms = source.count(), len(state.dictionary)

    coded_over = state.dictionary

    def work(block: Array, start: int) -> PassSums:
        problem = problem_of(block)
        codes = pursuit(problem)
        if weigh is not None:
            return PassSums.of(weigh(block, codes, start), codes, start)
        if is_complete(problem):
            return PassSums.of(update.sums(block, codes), codes, start)
        return PassSums.of(sum_up(update, block, codes, coded_over), codes, start)

    # Spinning BLAS threads would take a core from the pursuits.
    with machine(state.dictionary).one_blas_thread():
        problem_of = problems(state.dictionary, n_rows)
        total = source.reduce(work, block_rows=block_rows(source, n_atoms))
        check_squares(total.sums.energy, source)
    result = yield UpdateRequest(update, (total.sums, state.dictionary))
    unused = state.record_pass(result.dictionary, result.objective, total.uses, result.sums)
    # No code uses these atoms, so replacing them does not change the objective.
    worst = total.worst.rows[: len(unused)]

    def worst_rows() -> Array:
        found = source.take(worst)
        problem = problem_of(found)
        return found if is_complete(problem) else fill_by_codes(found, pursuit(problem), coded_over)

    replace_dead_atoms(state, unused[: len(worst)], worst_rows, update)


def _look_at_all(
    problems: Problems,
    rows: RowSource | Array,
    pursuit: Pursuit,
    update: Any,
    state: LearnerState,
    groups: Groups | None,
) -> Run:
    """Do a pass with all rows and their codes at hand."""
    assert not isinstance(rows, RowSource), f"{type(update).__name__} needs all rows in memory"
    if not state.objective:
        check_squares(float(machine(rows).squared_norms(rows).sum()), [rows])
    coded_over = state.dictionary
    with machine(rows).one_blas_thread():
        problem = problems(coded_over, len(rows))(rows)
        codes = pursuit(problem)
    result = yield UpdateRequest(update, (rows, codes, state.dictionary))
    unused = state.record_pass(result.dictionary, result.objective, codes.uses(), result.sums)
    error = (codes if result.codes is None else result.codes).error
    if groups is None:
        worst = worst_represented(error, len(unused))
        unused = unused[: len(worst)]
    else:
        unused, worst = worst_of_groups(unused, error, groups)
    replace_dead_atoms(
        state, unused, lambda: fill_by_codes(rows[worst], codes.take(worst), coded_over), update
    )


def block_rows(rows: RowSource, n_atoms: int) -> int:
    """Return how many rows a thread takes at once in a pass, the same for any number of threads.

    Few enough for 64 blocks, so that 16 threads end together; but no fewer than there are atoms,
    since sums are larger then than the rows. Rows of a device are worked on all together.
    """
    n_rows, n_features = rows.count(), rows.n_features
    if is_device_array(getattr(rows, "array", None)):
        return max(n_rows, 1)
    fewest = max(_FEWEST_ROWS, n_atoms, _FEWEST_PRODUCTS // max(1, n_atoms * n_features))
    most = max(fewest, _BLOCK_BYTES // max(1, n_features * rows.dtype.itemsize))
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
    for _ in range(max_iter):
        if observer is not None:
            observer.begin_pass()
        before = state.dictionary
        yield
        if observer is not None and observer.end_pass(state):
            break
        if change_tol is None:
            done = has_converged(state.objective, tol)
        else:
            moved = np.linalg.norm(state.dictionary - before)
            done = bool(moved <= change_tol * np.linalg.norm(before))
        if done:
            break


def run(learning: Run) -> Any:
    """Let a run learn to its end, and return what it returns."""
    result: Any = None
    try:
        while True:
            request = learning.send(result)
            with machine(request.given[-1]).one_blas_thread():
                result = getattr(request.update, request.method)(*request.given)
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
    update, method = requests[0].update, requests[0].method
    if hasattr(update, f"{method}_all"):
        results: list[UpdateResult] = getattr(update, f"{method}_all")(
            [request.given for request in requests]
        )
        return results
    return [getattr(one.update, method)(*one.given) for one in requests]


def has_converged(objective: list[float], tol: float) -> bool:
    """Whether the last three passes lowered the best objective by no more than ``tol`` of it."""
    if len(objective) <= _PATIENCE:
        return False
    before = min(objective[:-_PATIENCE])
    return before - min(objective) <= tol * abs(before)


def learn_batch(
    problems: Problems,
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
    problems, rows, pursuit, update, state
        As in ``learn``.
    n_atoms : int
        The number of atoms: while there are fewer, rows of the batch become atoms.
    decay : float
        The weight of earlier batches.
    """
    _check_codes(pursuit, update)
    check_squares(float(machine(rows).squared_norms(rows).sum()), [rows])
    missing = min(n_atoms - len(state.dictionary), len(rows))
    if missing > 0:
        chosen = state.random_state.permutation(len(rows))[:missing]
        new = update.new_atoms(fill_by_means(rows)[chosen])
        assert new is not None, "updates that cannot add atoms start with all of them"
        state.append_atoms(new.astype(state.dictionary.dtype))
        if state.sums is not None:
            state.sums = update.padded(state.sums, missing)
    coded_over = state.dictionary
    with machine(rows).one_blas_thread():
        codes = pursuit(problems(coded_over, len(rows))(rows))
        updated = update.take_batch(rows, codes, coded_over, state.sums, decay)
    unused = state.record_batch(
        updated.dictionary, updated.objective, codes.uses(), updated.sums, len(rows), decay
    )
    worst = worst_represented(codes.error, len(unused))
    unused = unused[: len(worst)]
    replaced = replace_dead_atoms(
        state, unused, lambda: fill_by_codes(rows[worst], codes.take(worst), coded_over), update
    )
    state.sums = update.clear_atoms(state.sums, replaced)
    return updated.objective


def replace_dead_atoms(
    state: LearnerState,
    unused: NDArray[np.intp],
    worst: Callable[[], Array],
    update: Update,
) -> NDArray[np.intp]:
    """Replace unused atoms by as many of the worst represented signals; return the replaced."""
    new = update.new_atoms(worst()) if len(unused) else None
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
