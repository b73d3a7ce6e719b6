"""Tasks that take turns, so that what they ask for is done for all of them at once.

Dictionaries of a classifier are learned each by itself, and one alone leaves most of a card idle.
``each`` makes a task of every item. A task works until it asks for something that can be done for
many at once (``for_all``) and waits; when all wait, that is done for all of them in few launches,
and they go on.

One task works at a time, and they go on in the order of their items: nothing of them runs at the
same time on the host. Threads are how Python keeps the place where a task waits.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from contextlib import nullcontext
from contextvars import copy_context
from typing import Any, NamedTuple, TypeVar

import torch

from kernelatoms.engine.gpu.arrays.work import free_bytes

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Does of all what each asks for, and returns the answers in the same order.
DoAll = Callable[[list[Any]], list[Any]]

#: Tasks at a time, as many as a launch has use for.
MOST_TASKS = 64
# They begin while so much of the memory is free.
_FREE_SHARE = 0.5
# Seconds after which to look whether an interrupt has swallowed the news.
_LOOK = 0.1

_inside = threading.local()


class _Request(NamedTuple):
    """What a task asks for; what is asked of the same function and ``alike`` is done at once."""

    do_all: DoAll
    alike: Hashable
    asked: tuple[Any, ...]


class _StoppedError(BaseException):
    """Unwinds a task when another has failed; no ``except Exception`` may hold it up."""


def each(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply ``function`` to every item; what all of them ask for at a time is done at once.

    The first exception of an item is raised here, when all others have left where they waited.
    Within an item, items of another call come one after another.
    """
    todo = list(items)
    if len(todo) < 2 or _task() is not None:
        return [function(item) for item in todo]
    prepare = _as_in_this_thread()
    tasks = [_Task(function, item, prepare) for item in todo]
    try:
        _take_turns(tasks)
    finally:
        _stop(tasks)
    return [task.result for task in tasks]


def for_all(do_all: DoAll, alike: Hashable, *asked: Any) -> Any:
    """Return what ``do_all`` answers, asked by all tasks together; outside of ``each`` at once.

    Parameters
    ----------
    do_all : callable
        Given a list of what tasks ask for, each a tuple ``asked``, returns the list of answers.
        What it writes into is written last: without memory for all it is asked for half of them.
    alike : hashable
        Sizes, types and the like: only what agrees in them is done at once.
    *asked : tensor, then anything
        What this task asks for.
    """
    task = _task()
    if task is None:
        return do_all([asked])[0]
    return task.ask(_Request(do_all, alike, asked))


def stacked(parts: Iterable[torch.Tensor]) -> torch.Tensor:
    """Return tensors of one shape as one, of an axis more; a single one without a copy."""
    first, *others = parts
    return torch.stack([first, *others]) if others else first[None]


class _Task:
    """The work on one item, in a thread that works only while ``go_on`` waits for it."""

    def __init__(
        self, function: Callable[[Any], Any], item: Any, prepare: Callable[[], Any]
    ) -> None:
        self.request: _Request | None = None
        self.answer: Any = None
        self.result: Any = None
        self.is_done = False
        self._error: BaseException | None = None
        self._is_working = self._is_stopped = False
        self._turn, self._news = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._work, function, item, prepare), daemon=True
        )

    def go_on(self) -> None:
        """Let the task work until it asks for something, or is done; raise what it raises."""
        self._is_working = True
        if self._thread.ident is None:
            self._thread.start()
        self._turn.release()
        while self._is_working:
            self._news.acquire(timeout=_LOOK)
        if self._error is not None:
            error, self._error = self._error, None
            try:
                raise error
            finally:
                del error  # its traceback knows this frame: no cycles that keep arrays alive

    def ask(self, request: _Request) -> Any:
        """Wait for the answer to a request; called by the task's own thread."""
        self.request = request
        self._hand_over()
        self._turn.acquire()
        if self._is_stopped:
            raise _StoppedError
        answer, self.answer = self.answer, None
        return answer

    def stop(self) -> None:
        """Have a task that has begun leave where it waits, or comes to wait next."""
        self._is_stopped = True
        self._turn.release()

    def has_left(self) -> bool:
        """Whether the thread has ended, if there was one; look for a moment."""
        if self._thread.ident is not None:
            self._thread.join(_LOOK)
        return not self._thread.is_alive()

    def _work(self, function: Callable[[Any], Any], item: Any, prepare: Callable[[], Any]) -> None:
        self._turn.acquire()
        _inside.task = self
        try:
            if not self._is_stopped:
                with prepare():
                    self.result = function(item)
        except _StoppedError:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self.is_done = True
            self._hand_over()

    def _hand_over(self) -> None:
        self._is_working = False
        self._news.release()


def _task() -> _Task | None:
    """Return the task whose thread this is."""
    return getattr(_inside, "task", None)


def _take_turns(tasks: list[_Task]) -> None:
    """Let tasks work and wait until all are done."""
    ahead, waiting = tasks[::-1], list[_Task]()
    while ahead or waiting:
        if ahead and _has_room(waiting):
            turns = [ahead.pop()]
        else:
            _answer(waiting)
            turns, waiting = waiting, []
        for task in turns:
            task.go_on()
            if not task.is_done:
                waiting.append(task)


def _has_room(waiting: list[_Task]) -> bool:
    """Whether one more task may begin: what those hold that wait is not much of the memory."""
    if not waiting:
        return True
    assert waiting[0].request is not None
    tensor = waiting[0].request.asked[0]
    return len(waiting) < MOST_TASKS and _is_mostly_free(tensor)


def _is_mostly_free(like: torch.Tensor) -> bool:
    """Whether enough of the memory is free where a tensor lives; on the host it is."""
    if not like.is_cuda:
        return True
    total = torch.cuda.get_device_properties(like.device).total_memory
    # With so little held here the driver is not asked: that takes as long as a class has to wait.
    if torch.cuda.memory_reserved(like.device) < (1 - _FREE_SHARE) / 2 * total:
        return True
    return (free_bytes(like) or 0) >= _FREE_SHARE * total


def _answer(waiting: list[_Task]) -> None:
    """Do what tasks have asked for."""
    groups = defaultdict[tuple[DoAll, Hashable], list[_Task]](list)
    for task in waiting:
        assert task.request is not None
        groups[task.request.do_all, task.request.alike].append(task)
    for (do_all, _), tasks in groups.items():
        answers = _at_once(do_all, [task.request.asked for task in tasks if task.request])
        for task, answer in zip(tasks, answers, strict=True):
            task.request, task.answer = None, answer


def _at_once(do_all: DoAll, asked: list[tuple[Any, ...]]) -> list[Any]:
    """Return the answers to all, to one half after the other where memory is short."""
    device = asked[0][0].device
    try:
        with torch.no_grad(), torch.cuda.device(device) if device.type == "cuda" else nullcontext():
            return do_all(asked)
    except torch.OutOfMemoryError:
        if len(asked) == 1:
            raise
    half = len(asked) // 2
    return _at_once(do_all, asked[:half]) + _at_once(do_all, asked[half:])


def _stop(tasks: list[_Task]) -> None:
    """Have all tasks leave; Ctrl-C meanwhile is raised when the last one has."""
    interrupt: BaseException | None = None
    for task in tasks:
        left = False
        while not left:
            try:
                task.stop()
                left = task.has_left()
            except KeyboardInterrupt as again:
                interrupt = again
    if interrupt is not None:
        raise interrupt


def _as_in_this_thread() -> Callable[[], Any]:
    """Return what makes torch work in another thread as it would here."""
    inference, streams, device = torch.is_inference_mode_enabled(), list[Any](), None
    if torch.cuda.is_initialized():
        device = torch.cuda.current_device()
        every = map(torch.cuda.current_stream, range(torch.cuda.device_count()))
        streams = [stream for stream in every if stream.cuda_stream]  # 0 is the usual one

    def prepare() -> Any:
        for stream in streams:
            torch.cuda.set_stream(stream)
        if device is not None:
            torch.cuda.set_device(device)
        return torch.inference_mode(inference)

    return prepare
