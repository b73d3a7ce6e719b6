"""How the engine is compiled: nogil, cached on disk, announced when it really compiles.

The first process on a machine compiles (seconds) and says so through the ``kernelatoms`` logger;
every later one loads machine code from the cache, so nothing is announced and nothing waits.
"""

import logging
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

logger = logging.getLogger("kernelatoms")

# No 'nnan' or 'ninf': results on overflow must stay defined. 'reassoc' and 'contract' are what
# vectorised sums need; 'nsz' lets LLVM drop the bookkeeping of -0.
FASTMATH = {"reassoc", "contract", "nsz"}


def jit(*, fastmath: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a loop without the GIL and keep the machine code on disk.

    Jitted functions may call jitted functions of their own file only: numba's cache does not
    notice a change in another file.
    """
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": FASTMATH if fastmath else False,
    }

    def compile_lazily(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:
            # No folder to cache in (read-only installation and no home): compile in each process.
            return numba.njit(cache=False, **options)(function)

    return compile_lazily


class _Announcer(event.Listener):
    """Say once per process that compilation has started, so that nobody wonders why it waits."""

    def __init__(self) -> None:
        self._announced = False

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if self._announced or not function.__module__.startswith("kernelatoms."):
            return
        self._announced = True
        logger.warning(
            "kernelatoms compiles its inner loops for this machine: some seconds, once; "
            "later runs load them from the cache (NUMBA_CACHE_DIR chooses its folder)."
        )

    def on_end(self, event: Any) -> None:
        """Nothing to say: the work that waited goes on."""


event.register("numba:compile", _Announcer())
