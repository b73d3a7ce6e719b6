"""The thread pool.

Only the outermost level threads: the first call of ``each_block`` or ``each`` spreads its work over
the pool, and calls from inside that work run in their own thread. While the pool works, BLAS is
held to one thread, whose helper threads would spin on the same cores.

The calling thread takes part in its own work and the pool's threads help, so no call waits for a
free thread: a kernel function may use the library from threads of its own.

An exception or Ctrl-C stops all threads at their next item, in nested calls too; the call raises
when the last one has stopped, so that nothing writes into the caller's arrays afterwards.

See docs/decisions/003-one-thread-pool.md.
"""

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")
#: Makes what a thread calls with the parts of an item.
MakeWork = Callable[[], Callable[..., None]]

#: How many dictionaries are updated together: one. Threads take whole runs.
UPDATES_TOGETHER = 1


@dataclass
class _Crew:
    """The threads that work on one call, and what they share.

    No locks: Ctrl-C may strike the caller between any two steps and would leave them locked.
    Appending to lists and popping from a deque are whole or not at all.
    """

    items: list[Any]
    todo: deque[int]
    is_alone: bool = False
    stopped: bool = False
    errors: list[tuple[int, BaseException]] = field(default_factory=list)
    entered: list[None] = field(default_factory=list)
    left: list[None] = field(default_factory=list)
    news: queue.SimpleQueue[None] = field(default_factory=queue.SimpleQueue)


class _StoppedError(BaseException):
    """Unwinds a worker whose crew has been stopped; ``except Exception`` does not catch it."""


# Seconds that are so few that more rows may follow at once.
_QUICK = 0.02

_lock = threading.Lock()
_inside = threading.local()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_controller: ThreadpoolController | None = None
_blas_before: list[tuple[Any, int]] | None = None
_limit_users = 0


def is_at_work() -> bool:
    """Whether this thread does a part of work that threads share."""
    return getattr(_inside, "crew", None) is not None


def is_pool_at_work() -> bool:
    """Whether this thread does a part of work that the pool shares, and not that of ``alone``."""
    crew: _Crew | None = getattr(_inside, "crew", None)
    return crew is not None and not crew.is_alone


def n_threads() -> int:
    """Return how many threads the outermost level uses.

    The environment variable ``KERNELATOMS_NUM_THREADS`` says it, else ``OMP_NUM_THREADS``; else it
    is the number of processors that this process may use. Results are the same to the last bit for
    any number, but for what scikit-learn and BLAS do with threads of their own
    (``OMP_NUM_THREADS``): ``sampling="kmeans"``, the k-means start of FDDL, eigenvectors of 1,000
    landmarks or more (in the randomised solver, of a basis of 2,000 vectors or more), exact
    coordinates on 3,000 rows or more.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> from kernelatoms import n_threads
    >>> n_threads() >= 1
    True
    """
    for variable in ("KERNELATOMS_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(variable, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
        if value and variable.startswith("KERNELATOMS"):
            raise ValueError(f"{variable} must be a positive whole number, got {value!r}.")
    return n_processors()


def n_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_blas_thread(wanted: bool = True) -> Iterator[None]:
    """Hold BLAS to one thread; the first to enter sets it, the last to leave restores it.

    Counted because several Python threads may be inside at once: nested limits that end out of
    order would leave BLAS at one thread for ever.
    """
    global _controller, _blas_before, _limit_users
    if not wanted:
        yield
        return
    counted = False
    try:
        with _lock:
            _limit_users += 1
            counted = True
            if _controller is None:
                _controller = ThreadpoolController().select(user_api="blas")
            # Known before anything is changed: Ctrl-C in between leaves nothing to guess.
            if _blas_before is None:
                libraries = _controller.lib_controllers
                _blas_before = [(library, library.get_num_threads()) for library in libraries]
            if _limit_users == 1:
                for library, _ in _blas_before:
                    _set_blas_threads(library, 1)
        yield
    finally:
        with _lock:
            _limit_users -= counted
            if _limit_users == 0 and _blas_before is not None:
                for library, number in _blas_before:
                    _set_blas_threads(library, number)
                _blas_before = None


def _set_blas_threads(library: Any, number: int) -> None:
    """Set the number for everybody, from any thread.

    threadpoolctl 3.8 lets only the thread that was first to set OpenBLAS's number change it again,
    and silently ignores others; here the first to enter need not be the last to leave.
    """
    free = getattr(library, "clear_controlling_thread", lambda **_: None)
    free(force=True)
    library.set_num_threads(number)
    free(force=True)


@contextmanager
def alone() -> Iterator[None]:
    """Let calls of the library from this thread work in it alone, as those inside of ``each`` do.

    For threads that others share work among, such as those of a Dask worker.
    """
    before = getattr(_inside, "crew", None)
    with one_blas_thread():
        _inside.crew = before or _Crew([], deque(), is_alone=True)
        try:
            yield
        finally:
            _inside.crew = before


def fair_share(n_rows: int, fewest: int = 512) -> int:
    """Return how many rows a block may have, so that many threads find work.

    The same for any number of threads: a matrix product may round a row otherwise in a block of
    another size, and results would depend on the machine's cores. There are 64 blocks, so that
    sixteen threads end at about the same time, of at least ``fewest`` rows, which are worth the
    overhead; fewer blocks down to 16 for this; then blocks of half as many rows; and then as few
    blocks as that takes, but two.
    """
    n_blocks = 64
    while n_blocks > 16 and n_rows < fewest * n_blocks:
        n_blocks //= 2
    while n_blocks > 2 and n_rows < fewest // 2 * n_blocks:
        n_blocks //= 2
    return max(1, -(-n_rows // n_blocks))


def each(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply ``function`` to every item on all threads; the results come in the items' order.

    The exception of the first item that fails is raised here, when no thread works any more; items
    that have not started by then never start.
    """
    todo = list(items)
    results: list[Any] = [None] * len(todo)

    def work(i: int) -> None:
        results[i] = function(todo[i])

    _share([(i,) for i in range(len(todo))], lambda: work)
    return results


def each_block(
    n_rows: int, block_rows: int, make_worker: Callable[[], Callable[[int, int], None]]
) -> None:
    """Call ``worker(start, stop)`` for every block of rows, each thread with a worker of its own.

    ``make_worker`` runs once in every thread and allocates what the thread reuses from block to
    block; threads take the next free block, so uneven blocks balance out. Exceptions as in
    ``each``.
    """
    starts = range(0, n_rows, block_rows)
    _share([(start, min(start + block_rows, n_rows)) for start in starts], make_worker)


def _share(items: list[Any], make_work: MakeWork) -> None:
    """Call ``work(*item)`` for every item; each thread makes its own ``work`` first."""
    if is_at_work():  # BLAS is held already
        _work_alone(items, make_work)
        return
    n_helpers = min(n_threads(), len(items)) - 1 if len(items) > 1 else 0
    with one_blas_thread():
        if n_helpers < 1:
            _work_alone(items, make_work)
            return
        crew = _Crew(items, deque(range(len(items))))
        try:
            _call_helpers(n_helpers, crew, make_work)
            _take_part(crew, make_work)
        except BaseException:  # Ctrl-C outside of any item
            crew.stopped = True
            raise
        finally:
            _wait_until_all_left(crew)
        if crew.errors:
            # Ctrl-C before all else; then the item that would have failed first without threads.
            _, error = min(crew.errors, key=lambda e: (isinstance(e[1], Exception), e[0]))
            crew.errors.clear()  # its traceback knows the crew: no cycles that keep arrays alive
            try:
                raise error
            finally:
                del error


def _work_alone(items: list[Any], make_work: MakeWork) -> None:
    """Work on items in this thread."""
    if items:
        work = make_work()
        for item in items:
            stop_if_asked()
            work(*item)


def stop_if_asked() -> None:
    """Leave an item early if another thread has failed; for items that may take seconds."""
    crew: _Crew | None = getattr(_inside, "crew", None)
    if crew is not None and crew.stopped:
        raise _StoppedError


def in_short_parts(n_rows: int, few: int, work: Callable[[slice], None]) -> None:
    """Call ``work`` for some rows of a block after another, so that it can be stopped between.

    For ``few`` at first, which should take less than half a second; for more after quick ones.
    """
    start, size = 0, few
    while start < n_rows:
        stop_if_asked()
        began = time.monotonic()
        work(slice(start, start + size))
        start += size
        size = 4 * size if time.monotonic() - began < _QUICK else few


def _take_part(crew: _Crew, make_work: MakeWork) -> None:
    """Work on items until none is left, or a thread has failed."""
    i = -1
    try:
        _inside.crew = crew
        work = make_work()
        while not crew.stopped:
            try:
                i = crew.todo.popleft()
            except IndexError:
                return
            work(*crew.items[i])
    except _StoppedError:
        pass
    except BaseException as error:
        crew.stopped = True
        crew.errors.append((i, error))
    finally:
        _inside.crew = None


def _help(crew: _Crew, make_work: MakeWork) -> None:
    """Take part from a thread of the pool."""
    # Enter first and look second: a helper that comes when the caller has counted who is there
    # finds nothing to do.
    crew.entered.append(None)
    try:
        if crew.todo and not crew.stopped:
            _take_part(crew, make_work)
    finally:
        crew.left.append(None)
        crew.news.put(None)


def _wait_until_all_left(crew: _Crew) -> None:
    """Wait for helpers to finish the item they are at; Ctrl-C meanwhile is raised afterwards."""
    interrupt: BaseException | None = None
    while True:
        try:
            _inside.crew = None
            while len(crew.left) < len(crew.entered):
                try:
                    crew.news.get(timeout=0.1)
                except queue.Empty:
                    continue  # an interrupt may have swallowed the news
            break
        except KeyboardInterrupt as again:
            crew.stopped, interrupt = True, again
    if interrupt is not None:
        raise interrupt


def _call_helpers(n_helpers: int, crew: _Crew, make_work: MakeWork) -> None:
    """Ask threads of the pool to help, whenever they are free."""
    global _pool, _pool_size
    size = max(n_threads() - 1, n_helpers)
    with _lock:  # the pool must not be replaced meanwhile
        if _pool is None or _pool_size != size:
            if _pool is not None:
                _pool.shutdown(wait=False)  # those at work finish it
            _pool = ThreadPoolExecutor(size, thread_name_prefix="kernelatoms")
            _pool_size = size
        for _ in range(n_helpers):
            try:
                _pool.submit(_help, crew, make_work)
            except RuntimeError:  # no more threads to be had: the caller does the work
                return


def _forget_after_fork() -> None:
    """Reset the pool: in a forked child its threads do not exist and the lock may stay held."""
    global _lock, _pool, _pool_size, _controller, _blas_before, _limit_users
    _lock = threading.Lock()
    _pool, _pool_size = None, 0
    _controller, _blas_before, _limit_users = None, None, 0
    _inside.crew = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
