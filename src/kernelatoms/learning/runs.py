"""Runs: learning as a generator, which asks for what it waits for.

A run yields requests: sums over all rows, some rows, an improved dictionary. Who drives it answers
them: ``run`` one run at a time, ``run_all`` many on the threads of the CPU, or with their updates
made together on a device, and ``run_routed`` the runs of classes whose rows are in one source, in
one pass for all classes.
"""

import operator
from collections import deque
from collections.abc import Generator, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes
from kernelatoms.engine import Array, machine
from kernelatoms.rows import RowSource
from kernelatoms.rows.routed import Work, class_behind, reduce_routed, with_values


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


class AdditiveUpdate(Update, Protocol):
    """An update from sums over rows, which add up over blocks, files and machines."""

    def sums(self, rows: Array, codes: Codes, dictionary: Array) -> Any:
        """Return the sums over these rows, which have ``+`` and an ``energy``, sum |x|^2.

        The codes are over the dictionary.
        """

    def solve(self, sums: Any, dictionary: Array) -> UpdateResult:
        """Improve the dictionary whose codes were summed up."""


class BatchUpdate(Update, Protocol):
    """An update that learns from one batch after another.

    One from sums over rows has ``add_batch(sums, dictionary, past, decay)``, too, for batches that
    are not all in memory.
    """

    def take_batch(
        self, rows: Array, codes: Codes, dictionary: Array, past: Any, decay: float
    ) -> UpdateResult:
        """Improve a dictionary by a batch and the sums of earlier ones, weighted by ``decay``."""

    def clear_atoms(self, sums: Any, atoms: NDArray[np.intp]) -> Any:
        """Return the sums without these atoms."""

    def padded(self, sums: Any, n_new: int) -> Any:
        """Return the sums with ``n_new`` unused atoms more."""


class SumRequest(NamedTuple):
    """Waits for the sum of ``work(block, start, *values)`` over blocks of rows."""

    rows: RowSource
    work: Work
    block_rows: int
    #: Values of every row, which ``work`` is called with, too.
    beside: tuple[NDArray[Any], ...] = ()

    def answer(self) -> Any:
        """Return the sum."""
        return self.rows.reduce(
            self.work, block_rows=self.block_rows, add=operator.iadd, beside=self.beside
        )


class TakeRequest(NamedTuple):
    """Waits for some rows."""

    rows: RowSource
    indices: NDArray[np.intp]

    def answer(self) -> Any:
        """Return the rows."""
        return self.rows.take(self.indices)


class UpdateRequest(NamedTuple):
    """Waits for ``update.solve(*given)``, or for ``update.apply(*given)``; a dictionary is last."""

    update: Any
    given: tuple[Any, ...]

    @property
    def method(self) -> str:
        """The name of the update's method."""
        return "solve" if hasattr(self.update, "solve") else "apply"

    def answer(self) -> UpdateResult:
        """Return what the update makes of the dictionary."""
        with machine(self.given[-1]).one_blas_thread():
            result: UpdateResult = getattr(self.update, self.method)(*self.given)
        return result


#: Learns; yields what it waits for, and is sent it.
Run = Generator[Any, Any, Any]


def run(learning: Run) -> Any:
    """Let a run learn to its end, and return what it returns."""
    result: Any = None
    try:
        while True:
            result = learning.send(result).answer()
    except StopIteration as end:
        return end.value


def run_all(runs: Iterable[Run], like: Array) -> list[Any]:
    """Let runs on the machine of an array learn; the results are those of one after another.

    On the CPU each thread takes a run. One dictionary leaves most of a device idle: there the
    updates that several runs wait for are made together.
    """
    engine, ahead = machine(like), deque(enumerate(runs))
    if engine.UPDATES_TOGETHER == 1:
        results: list[Any] = engine.each(run, [learning for _, learning in ahead])
        return results
    crew = _Crew(len(ahead))
    try:
        while ahead or crew.waiting:
            while ahead and len(crew.waiting) < engine.UPDATES_TOGETHER:
                if crew.waiting and not engine.is_mostly_free(like):
                    break
                number, learning = ahead.popleft()
                crew.go_on(number, learning, None, until=UpdateRequest)
            some = list(crew.waiting.items())
            made = _update_all([request for _, (_, request) in some])
            for (number, (learning, _)), result in zip(some, made, strict=True):
                crew.go_on(number, learning, result, until=UpdateRequest)
    finally:
        crew.close()
    return crew.returned


def run_routed(runs: Iterable[Run], source: RowSource) -> list[Any]:
    """Let one run per class learn, whose rows are those of the class in a source.

    What several runs wait for is read in one pass over the source.
    """
    runs = list(runs)
    crew = _Crew(len(runs))
    try:
        for number, learning in enumerate(runs):
            crew.go_on(number, learning, None)
        while crew.waiting:
            some = {number: request for number, (_, request) in crew.waiting.items()}
            answers = _answers(some, source)
            for number, result in answers.items():
                crew.go_on(number, crew.waiting[number][0], result)
    finally:
        crew.close()
    return crew.returned


class _Crew:
    """Runs that are under way: what each waits for, and what ended ones returned."""

    def __init__(self, n_runs: int) -> None:
        self.returned: list[Any] = [None] * n_runs
        self.waiting: dict[int, tuple[Run, Any]] = {}

    def go_on(self, number: int, learning: Run, result: Any, until: type = object) -> None:
        """Send a run what it waits for, and answer requests until it waits for one of a kind."""
        try:
            request = learning.send(result)
            while not isinstance(request, until):
                request = learning.send(request.answer())
            self.waiting[number] = learning, request
        except StopIteration as end:
            self.waiting.pop(number, None)
            self.returned[number] = end.value

    def close(self) -> None:
        """End runs that still wait."""
        for learning, _ in self.waiting.values():
            learning.close()


def _answers(requests: dict[int, Any], source: RowSource) -> dict[int, Any]:
    """Answer requests of one kind, of several classes in one pass over their source."""
    kind = type(next(iter(requests.values())))
    some = {number: request for number, request in requests.items() if type(request) is kind}
    routed = {}
    if kind is not UpdateRequest:
        routed = {number: _routed(request.rows, source) for number, request in some.items()}
    if not routed or None in routed.values():
        return {number: request.answer() for number, request in some.items()}
    if kind is TakeRequest:
        wanted = [routed[number][0].members[one.indices] for number, one in some.items()]
        rows = source.take(np.concatenate(wanted))
        parts = np.split(rows, np.cumsum([len(indices) for indices in wanted])[:-1])
        return {number: routed[number][1](part) for number, part in zip(some, parts, strict=True)}
    works = [
        (routed[number][0], _after(routed[number][1], with_values(one.work, one.beside)))
        for number, one in some.items()
    ]
    return dict(zip(some, reduce_routed(source, works), strict=True))


def _routed(rows: RowSource, source: RowSource) -> Any:
    """Return the rows of a class of the source that are behind some rows, and their map."""
    found = class_behind(rows)
    return found if found is not None and found[0].parent is source else None


def _after(function: Any, work: Work) -> Work:
    return lambda block, start: work(function(block), start)


def _update_all(requests: list[UpdateRequest]) -> list[UpdateResult]:
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
