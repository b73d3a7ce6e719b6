"""One writer of a file at a time: others wait a moment, then give up with an error.

The lock is one of the operating system, on a small file beside the one that is written: it ends
with the process that holds it, however that ends. The holder removes the small file; one that a
killed process left is taken over by the next writer.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kernelatoms.files.writing import finished, unfinished

#: Seconds that a writer waits for another one.
PATIENCE = 5.0
_PAUSE = 0.05
# What file systems without locks say.
_NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK)


@contextmanager
def one_writer(
    path: Any, on_wait: Callable[[], None] = lambda: None
) -> Iterator[Callable[[], None]]:
    """Lock a file for writing; gives ``check()``, which raises if the file was changed meanwhile.

    Some programs and file systems know no locks: call ``check`` before the file is replaced. The
    file need not exist; links to it count as the file. ``on_wait`` is called if another writer
    holds the lock; BlockingIOError is raised if that lasts more than ``PATIENCE`` seconds.
    """
    target = Path(os.path.realpath(path))
    place = target.with_name(f".{target.name}.lock")
    handle = _acquired(place, Path(path), on_wait)
    try:
        unfinished(place)
        before = _identity(target)

        def check() -> None:
            if _identity(target) != before:
                raise BlockingIOError(
                    f"{path} was changed by another program meanwhile; it is left as that one "
                    "wrote it. Try again."
                )

        yield check
    finally:
        # Removed while it is locked: who locks it next sees that it is gone.
        finished(place)
        os.close(handle)


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _acquired(place: Path, path: Path, on_wait: Callable[[], None]) -> int:
    """Return the handle of an acquired lock."""
    end = time.monotonic() + PATIENCE
    has_waited = False
    while True:
        handle = _open(place)
        try:
            if _lock(handle) and _is_at(place, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if time.monotonic() > end:
            raise BlockingIOError(
                f"{path} is being written by another process or thread; nothing was changed. Try "
                "again when the other one is done."
            )
        if not has_waited:
            on_wait()
            has_waited = True
        time.sleep(_PAUSE)


def _open(place: Path) -> int:
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.open(place, flags | os.O_CREAT, 0o666)
    except PermissionError:
        if not place.exists():
            raise
        # Another user's: enough to wait for.
        return os.open(place, flags & ~os.O_RDWR | os.O_RDONLY)


def _is_at(place: Path, handle: int) -> bool:
    """Return whether a file still has its name: a previous holder may have removed it."""
    with suppress(OSError):
        return os.path.samestat(place.stat(), os.fstat(handle))
    return False


def _lock(handle: int) -> bool:
    """Lock a file unless another process has; return whether that worked."""
    try:
        _lock_now(handle)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        if error.errno not in _NO_LOCKS:
            raise
    return True


try:
    import fcntl

    def _lock_now(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

except ImportError:  # Windows
    import msvcrt

    def _lock_now(handle: int) -> None:
        windows: Any = msvcrt
        windows.locking(handle, windows.LK_NBLCK, 1)
