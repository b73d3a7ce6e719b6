"""What all tests share."""

import signal
from contextlib import suppress

from draws import pytest_runtest_protocol, rng

__all__ = ["pytest_runtest_protocol", "rng"]

# Shells start background jobs with Ctrl-C ignored, and children inherit that: its tests would wait.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)
