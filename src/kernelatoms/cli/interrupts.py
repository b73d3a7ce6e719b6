"""Ctrl-C on the command line: one message, exit code 130 and no traceback, within a second.

The first Ctrl-C raises KeyboardInterrupt, as usual in Python, so that cleanup runs. A process that
has not ended ``_GRACE`` seconds later is in a long call of a C library, or has swallowed the
interrupt; a waiting thread ends it. After the first Ctrl-C nothing else is printed, and further
ones change nothing.

Few imports, so that Ctrl-C works before slow modules are imported.
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
    """Handle Ctrl-C; only for processes that are a command, never for callers of the library."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # ignored, as shells do for background jobs; or another program's handler
    if os.name == "posix":
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        # Written to by the system's own handler, also while Python itself cannot move.
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=_end_after_signal, args=(reader,), daemon=True).start()
    signal.signal(signal.SIGINT, _interrupt)
    # Called last of all: in the moments after that Python would have no handler any more.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def finish() -> None:
    """End the process if Ctrl-C was pressed; else ignore it from now on."""
    global _done
    _done = True
    if _asked:
        end()


def end() -> NoReturn:
    """End the process at once, without unfinished files."""
    if not _ending.acquire(blocking=False):
        time.sleep(60)  # the other thread is about to
    writing = sys.modules.get("kernelatoms.files.writing")  # if anybody has written anything
    if writing is not None and hasattr(writing, "remove_unfinished"):
        writing.remove_unfinished()
    for stream in filter(os.isatty, (1, _to_user)):
        with suppress(OSError):
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


def _end_after_signal(reader: int) -> None:
    while os.read(reader, 1) != bytes([signal.SIGINT]):
        pass
    time.sleep(_GRACE)
    end()


def _silence() -> None:
    """Discard further output to standard error, other than that of ``end``."""
    global _to_user
    with suppress(OSError):  # it may be closed
        _to_user = os.dup(2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
