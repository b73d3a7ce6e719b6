"""Reading ahead: the next pieces of rows are read while others are worked on."""

import queue
import threading
import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from kernelatoms.engine.cpu.threads import stop_if_asked

#: Seconds after which a thread that waits looks whether it shall stop.
_PATIENCE = 0.1

#: A number and its piece, or what went wrong.
Item = tuple[int, Any, BaseException | None]


class Prefetch:
    """Pieces and their numbers, which any number of threads may ask for.

    A thread of its own reads them: ``depth`` pieces wait to be asked for while it reads the next.
    Without that thread, whoever asks reads. An error of the reader is raised where its piece would
    have been. On leaving, the thread has ended and what it read from is closed.

    Threads wait for simple queues and for no locks, which Ctrl-C could leave locked.
    """

    def __init__(self, pieces: Iterator[Any], depth: int, thread: bool = True) -> None:
        self._pieces = pieces
        self._number = 0
        self._read: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(depth if thread else 1):
            self._room.put(None)
        self.stopped = False
        self._thread = None
        if thread:
            # The thread does not keep this object alive: it ends without it, if Ctrl-C struck
            # between its start and the body of the with statement.
            fill = (pieces, self._room, self._read, weakref.ref(self))
            self._thread = threading.Thread(
                target=_fill, args=fill, name="kernelatoms-reader", daemon=True
            )

    def __enter__(self) -> "Prefetch":
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stopped = True
        self._room.put(None)
        if self._thread is not None:
            self._thread.join()
        _close(self._pieces)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return self

    def __next__(self) -> tuple[int, Any]:
        if self._thread is None:
            _wait_for(self._room)
            try:
                piece = next(self._pieces)
                self._number += 1
                return self._number - 1, piece
            finally:
                self._room.put(None)
        number, piece, error = _wait_for(self._read)
        if error is None:
            self._room.put(None)
            return number, piece
        self._read.put((number, None, StopIteration()))  # what all others find
        raise error


def _fill(
    pieces: Iterator[Any],
    room: "queue.SimpleQueue[None]",
    read: "queue.SimpleQueue[Item]",
    owner: "weakref.ref[Prefetch]",
) -> None:
    """Read all pieces, each as soon as there is room for it, while their owner wants them."""
    number = 0
    try:
        while True:
            try:
                room.get(timeout=_PATIENCE)
                has_room = True
            except queue.Empty:
                has_room = False
            asked = owner()
            if asked is None or asked.stopped:
                return
            del asked
            if has_room:
                read.put((number, next(pieces), None))
                number += 1
    except BaseException as error:
        read.put((number, None, error))
    finally:
        _close(pieces)  # in the thread that opened it


def _wait_for(items: "queue.SimpleQueue[Any]") -> Any:
    """Return the next item; stop waiting when another thread of the pool has failed."""
    while True:
        try:
            return items.get(timeout=_PATIENCE)
        except queue.Empty:
            stop_if_asked()


def _close(pieces: Iterator[Any]) -> None:
    close = getattr(pieces, "close", None)
    if close is not None:
        close()
