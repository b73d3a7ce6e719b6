"""Ctrl-C on the command line: one word, exit code 130 and no traceback, within a second.

The first Ctrl-C raises KeyboardInterrupt, as Python does, so that everything is left in order.
Whatever has not ended ``_GRACE`` seconds later is in a long call of some library in C, or has
swallowed the interrupt, and is ended from a thread that waits for just that. After the first
Ctrl-C nothing else is said: no tracebacks of what was torn apart, and further ones change nothing.

Imports little, so that it can listen before anything slow is imported.
"""

import atexit
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import NoReturn

STOPPED = 130
_GRACE = 0.5

_asked = False
_done = False
_ending = threading.Lock()
_to_user = 2  # standard error, before it is silenced


def listen() -> None:
    """Take over Ctrl-C; for processes that are a command, never for a library's callers."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # ignored, as shells do for background jobs; or somebody else's affair
    if os.name == "posix":
        heard, tell = os.pipe()
        os.set_blocking(tell, False)
        # Written to by the system's own handler, also while Python itself cannot move.
        signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
        threading.Thread(target=_end_when_heard, args=(heard,), daemon=True).start()
    signal.signal(signal.SIGINT, _interrupt)
    # Called last of all: in the moments after that Python would have no handler any more.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def finish() -> None:
    """End the process if Ctrl-C has been pressed, whatever became of it; else hear no more."""
    global _done
    _done = True
    if _asked:
        end()


def end() -> NoReturn:
    """End the process at once, with nothing half written left behind."""
    if not _ending.acquire(blocking=False):
        time.sleep(60)  # the other thread is about to
    writing = sys.modules.get("kernelatoms.files.writing")  # if anybody has written anything
    if writing is not None and hasattr(writing, "remove_unfinished"):
        writing.remove_unfinished()
    for stream in (1, _to_user):
        with suppress(OSError):
            if os.isatty(stream):
                os.write(stream, b"\x1b[?25h")  # a progress bar hides the cursor
    with suppress(OSError):
        os.write(_to_user, b"\nStopped before it was done.\n")
    os._exit(STOPPED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _asked
    if _asked or _done:
        return
    _asked = True
    _silence()
    raise KeyboardInterrupt


def _end_when_heard(heard: int) -> None:
    while os.read(heard, 1) != bytes([signal.SIGINT]):
        pass
    time.sleep(_GRACE)
    end()


def _silence() -> None:
    """Let nothing more be said on standard error but by ``end``."""
    global _to_user
    with suppress(OSError):  # it may be closed
        _to_user = os.dup(2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
