"""A pass over rows as a reduction: work on every block, add up the results.

Results are added along a tree whose shape depends on the number of blocks alone, so that the bits
of the sum do not depend on how many threads there are, or on which block was done first. Sixteen
neighbours are added from left to right, then sixteen of these sums, and so on (``tree``). Dask adds
up sums of chunks along a tree of its own (``dask``).
"""

import queue
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kernelatoms.engine.cpu.threads import (
    each,
    n_threads,
    one_blas_thread,
    stop_if_asked,
)
from kernelatoms.rows.prefetch import Prefetch
from kernelatoms.rows.source import RowSource

#: How many neighbours are added from left to right.
FAN_IN = 16

Add = Callable[[Any, Any], Any]
Work = Callable[..., Any]


def tree(n: int, fan_in: int = FAN_IN) -> Iterator[list[range]]:
    """Yield the levels of the tree over ``n`` results: which neighbours are added into one.

    >>> list(tree(20))
    [[range(0, 16), range(16, 20)], [range(0, 2)]]
    """
    while n > 1:
        level = [range(first, min(first + fan_in, n)) for first in range(0, n, fan_in)]
        yield level
        n = len(level)


def reduce(
    source: RowSource,
    work: Work,
    *,
    block_rows: int,
    add: Add | None,
    max_at_once: int | None = None,
    beside: Sequence[Any] = (),
) -> Any:
    """Return the sum of ``work(block, start)`` over the blocks: see ``RowSource.reduce``."""
    if max_at_once is not None and max_at_once < 1:
        raise ValueError(f"max_at_once must be 1 or more, got {max_at_once}.")
    all_pieces = source._pieces(block_rows)
    n_blocks = None if source.n_rows is None else -(-source.n_rows // block_rows)
    if n_blocks == 1:  # work may use all threads itself
        max_at_once = 1
    n_workers = 1 if max_at_once == 1 else min(n_threads(), max_at_once or n_threads())
    if n_blocks is not None:
        n_workers = min(n_workers, n_blocks)
    with Prefetch(all_pieces, 1, source._waits_for_data) as pieces:
        shared = _Pass(
            pieces, source._finish, work, block_rows, add, max_at_once or 2 * n_workers, beside
        )
        if n_workers <= 1 or source.one_by_one:
            with one_blas_thread(not source.one_by_one):
                shared.take_part()
        else:
            each(lambda _: shared.take_part(), range(n_workers))
        return shared.total()


class _Pass:
    """What the threads of one pass share.

    A block needs a permit, which it gives back when its result has been added to those on its left:
    so few blocks and results are alive, however slow one of them is.
    """

    def __init__(
        self,
        pieces: Prefetch,
        finish: Callable[[Any], Any],
        work: Work,
        block_rows: int,
        add: Add | None,
        n_permits: int,
        beside: Sequence[Any],
    ) -> None:
        self._pieces, self._finish, self._work = pieces, finish, work
        self._block_rows, self._beside = block_rows, beside
        self._permits = permits = queue.SimpleQueue[None]()
        for _ in range(max(1, n_permits)):
            permits.put(None)
        # Knows the permits alone: a cycle would keep blocks until Python looks for such.
        self._sums = None if add is None else TreeSum(add, lambda: permits.put(None))
        self._errors: list[tuple[int, Exception]] = []
        self._numbers: list[int] = []

    def take_part(self) -> None:
        """Work on blocks until none is left, or a thread has failed."""
        while not self._errors:
            stop_if_asked()
            try:
                self._permits.get(timeout=0.1)
            except queue.Empty:
                continue
            number = len(self._numbers)
            try:
                try:
                    number, piece = next(self._pieces)
                except StopIteration:
                    self._permits.put(None)  # for others, who are to see the end, too
                    return
                self._numbers.append(number)
                block = self._finish(piece)
                del piece
                start = number * self._block_rows
                stop = start + block.shape[0]
                result = self._work(block, start, *(values[start:stop] for values in self._beside))
                del block
                if self._sums is None:
                    self._permits.put(None)
                else:
                    self._sums.push(number, result)
                del result
            except Exception as error:
                self._errors.append((number, error))

    def total(self) -> Any:
        """Return the sum, or raise the error of the first block that failed."""
        if self._errors:
            _, error = min(self._errors, key=lambda e: e[0])
            self._errors.clear()  # its traceback knows this object: no cycles that keep arrays
            try:
                raise error
            finally:
                del error
        if not self._numbers:
            raise ValueError("There are no rows.")
        return None if self._sums is None else self._sums.total(len(self._numbers))


class TreeSum:
    """The sum of numbered results along ``tree``, which come from any thread in any order.

    Whoever brings a result adds what is next; there is no common lock. ``added`` is called when a
    result has been added.
    """

    def __init__(self, add: Add, added: Callable[[], None] = lambda: None) -> None:
        self._add = add
        self._added = added
        self._nodes: dict[tuple[int, int], _Node] = {}

    def push(self, number: int, result: Any, level: int = 0) -> None:
        """Take a result; add it, and those that waited for it."""
        key = (level, number // FAN_IN)
        node = self._nodes.setdefault(key, _Node())
        node.waiting[number % FAN_IN] = result
        del result
        # A result is put down before the turn is asked for, and looked for after it was given
        # back: none is forgotten.
        while node.n_added in node.waiting:
            try:
                node.turn.pop()
            except IndexError:
                return  # another thread adds here
            while node.n_added in node.waiting:
                value = node.waiting.pop(node.n_added)
                node.sum = self._add(node.sum, value) if node.n_added else value
                del value
                node.n_added += 1
                if level == 0:
                    self._added()
            if node.n_added == FAN_IN:
                del self._nodes[key]
                self.push(key[1], node.sum, level + 1)
                return
            node.turn.append(None)

    def total(self, n: int) -> Any:
        """Return the sum of all ``n`` results."""
        level = 0
        while n > 1:
            if n % FAN_IN:  # the last group is not full
                self.push(n // FAN_IN, self._nodes.pop((level, n // FAN_IN)).sum, level + 1)
            n = -(-n // FAN_IN)
            level += 1
        return self._nodes.pop((level, 0)).sum


class _Node:
    """Neighbours that are added from left to right; who has the ``turn`` adds."""

    def __init__(self) -> None:
        self.waiting: dict[int, Any] = {}
        self.turn: list[None] = [None]
        self.n_added = 0
        self.sum: Any = None
