"""A gang: threads that go through one compiled loop in step.

Where each step of a loop needs sums over what all threads did in the last one, the steps are far
too short for the thread pool to be called anew. The threads of a gang meet instead: each counts
itself in, and waits until all have. It spins for some microseconds, then offers its core to others.

Nobody waits for a thread that may not come. The first to arrive waits a moment for the others and
then closes the gate; who comes later finds it closed and goes away. Between arrival and the end,
threads run compiled code alone, where neither exceptions nor Ctrl-C can stop them.

See docs/decisions/063-threads-in-step.md.
"""

import ctypes
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.threads import each, is_at_work, n_processors, n_threads

# Where the shared words are, each on cache lines of its own: how many have arrived, how many belong
# to the gang, how often any of them has met the others.
_GATE, _SIZE, _MET, _N_WORDS = 0, 16, 32, 48
# Added to the gate to close it: more than threads that could ever arrive.
_CLOSED = 1 << 32
# Looks at a word, about a nanosecond each, before a waiting thread offers its core to others; and
# how often the first to arrive does so for those who have not: some milliseconds at most.
_LOOKS, _OFFERS = 4000, 2000


@intrinsic
def _add(typing: Any, words: Any, at: Any, amount: Any) -> Any:
    """Add to a shared word; return what it was."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, signature, given)
        return builder.atomic_rmw("add", place, given[2], "seq_cst")

    return types.int64(words, types.intp, types.int64), generate


@intrinsic
def _look(typing: Any, words: Any, at: Any) -> Any:
    """Return a shared word."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, signature, given)
        return builder.load_atomic(place, "seq_cst", align=8)

    return types.int64(words, types.intp), generate


def _place(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    kind = signature.args[0]
    array = context.make_array(kind)(context, builder, given[0])
    return cgutils.get_item_pointer(context, builder, kind, array, [given[1]])


@intrinsic
def _call(typing: Any, address: Any) -> Any:
    """Call the C function without arguments at an address."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        return builder.call(builder.inttoptr(given[0], kind.as_pointer()), [])

    return types.int32(types.int64), generate


def _address_of_yield() -> int:
    """Return where the system's function is by which a thread offers its core to others."""
    if os.name == "nt":
        function = ctypes.windll.kernel32.SwitchToThread  # type: ignore[attr-defined,unused-ignore]
    else:
        function = ctypes.CDLL(None).sched_yield
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@jit()
def enter(words, wanted, give_way):
    """Join the gang; return the thread's number in it and the gang's size, 0 if it is too late."""
    number = _add(words, _GATE, 1)
    if number >= _CLOSED:
        return -1, 0
    if number > 0:
        return number, _wait(words, _SIZE, 1, give_way, -1)
    if wanted > 1:
        _wait(words, _GATE, wanted, give_way, _OFFERS)
    size = _add(words, _GATE, _CLOSED)
    _add(words, _SIZE, size)
    return 0, size


@jit()
def meet(words, size, meeting, give_way):
    """Wait until all threads of the gang have come to a meeting; these count from 1."""
    if size > 1:
        _add(words, _MET, 1)
        _wait(words, _MET, size * meeting, give_way, -1)


@jit()
def _wait(words, at, least, give_way, most_offers):
    """Wait until a shared word is large enough, or so many offers were in vain; return it."""
    looks, offers = 0, 0
    value = _look(words, at)
    while value < least and offers != most_offers:
        looks += 1
        if looks > _LOOKS:
            offers += 1
            _call(give_way)
        value = _look(words, at)
    return value


def gang_size(n_parts: int) -> int:
    """Return how many threads may go in step through work of so many parts.

    No more than processors: a thread that waits for one would hold up all.
    """
    return 1 if is_at_work() else min(n_threads(), n_processors(), n_parts)


def in_step(wanted: int, loop: Callable[[NDArray[np.int64], int, int], None]) -> None:
    """Call ``loop(words, wanted, give_way)`` in as many threads, or in those that are free.

    The loop hands these to ``enter`` and goes away if it is too late; it must do all the work with
    whoever comes, one thread at least.
    """
    words = np.zeros(_N_WORDS, np.int64)
    if wanted == 1:
        loop(words, 1, 0)
        return
    give_way = _address_of_yield()
    each(lambda _: loop(words, wanted, give_way), range(wanted))
