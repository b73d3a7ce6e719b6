"""The one thread pool of the house.

The rule: only the outermost level threads. Whoever is first to call ``each_block`` or ``each``
spreads its work over the pool; the same calls made from inside a worker run in that worker.
While the pool works, BLAS is held to one thread: numpy's helper threads spin for tens of
milliseconds after every product, and on the same cores that halves the speed of the loops.

The number of threads is ``KERNELATOMS_NUM_THREADS``, else ``OMP_NUM_THREADS`` (joblib sets it in
its worker processes), else the processors this process may use.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

_lock = threading.Lock()
_inside = threading.local()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_controller: ThreadpoolController | None = None
_limiter = None
_limit_users = 0


def n_threads() -> int:
    """Return how many threads the outermost level uses.

    The environment variable ``KERNELATOMS_NUM_THREADS`` says it, else ``OMP_NUM_THREADS``; else it
    is the number of processors that this process may use.

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
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread; the first to enter sets it, the last to leave restores it.

    Counted because several Python threads may be inside at once: nested limits that end out of
    order would leave BLAS at one thread for ever.
    """
    global _controller, _limiter, _limit_users
    with _lock:
        if _controller is None:
            _controller = ThreadpoolController()
        if _limit_users == 0:
            _limiter = _controller.limit(limits=1, user_api="blas")
        _limit_users += 1
    try:
        yield
    finally:
        with _lock:
            _limit_users -= 1
            if _limit_users == 0 and _limiter is not None:
                _limiter.restore_original_limits()
                _limiter = None


def each(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply ``function`` to every item on the pool; the results come in the items' order.

    The first exception is raised here; items that have not started by then never start.
    """
    todo = list(items)
    workers = min(n_threads(), len(todo))
    if workers <= 1 or getattr(_inside, "worker", False):
        with one_blas_thread():
            return [function(item) for item in todo]

    def work(item: Item) -> Result:
        _inside.worker = True
        try:
            return function(item)
        finally:
            _inside.worker = False

    with one_blas_thread():
        futures = [_executor().submit(work, item) for item in todo]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()


def each_block(
    n_rows: int, block_rows: int, make_worker: Callable[[], Callable[[int, int], None]]
) -> None:
    """Call ``worker(start, stop)`` for every block of rows, each thread with a worker of its own.

    ``make_worker`` runs once in every thread and allocates what the thread reuses from block to
    block; threads take the next free block, so uneven blocks balance out.
    """
    starts = iter(range(0, n_rows, block_rows))
    starts_lock = threading.Lock()

    def drain(_: int) -> None:
        worker = make_worker()
        while True:
            with starts_lock:
                start = next(starts, None)
            if start is None:
                return
            worker(start, min(start + block_rows, n_rows))

    n_blocks = -(-n_rows // block_rows)
    each(drain, range(min(n_threads(), n_blocks)))


def _executor() -> ThreadPoolExecutor:
    global _pool, _pool_size
    with _lock:
        size = n_threads()
        if _pool is None or _pool_size != size:
            if _pool is not None:
                _pool.shutdown(wait=False)
            _pool = ThreadPoolExecutor(size, thread_name_prefix="kernelatoms")
            _pool_size = size
        return _pool


def _forget_after_fork() -> None:
    """In a forked child the pool's threads do not exist and the lock may be held by nobody."""
    global _lock, _pool, _pool_size, _controller, _limiter, _limit_users
    _lock = threading.Lock()
    _pool, _pool_size = None, 0
    _controller, _limiter, _limit_users = None, None, 0
    _inside.worker = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
