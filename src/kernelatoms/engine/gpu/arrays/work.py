"""Blocks of rows, memory of a device, and whether Triton compiles for it.

One large block keeps a card busy, so blocks run one after another, without threads. The names are
those of ``engine.cpu``. Many small problems are solved in one launch where a function takes a list
of them (``in_halves``).

See docs/decisions/011-gpu-programs.md.
"""

import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

#: How many dictionaries are updated together at most; see ``learning.loop.run_all``.
UPDATES_TOGETHER = 64

# Bytes of numbers worked on at once, and the fewest rows that keep a card busy.
_AT_ONCE = 1 << 28
_FEWEST_ROWS = 256
# Shares of a card's memory; the most bytes of a block there, and on the host.
_LITTLE, _MOSTLY = 1 / 32, 1 / 2
_MOST_BYTES, _HOST_BYTES = 8 << 30, 1 << 26


def for_blocks(n_rows: int, width: int, itemsize: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(start, stop)`` for blocks of rows that need ``width`` numbers each."""
    for_rows(n_rows, max(_AT_ONCE // max(width * itemsize, 1), _FEWEST_ROWS), work)


def for_rows(n_rows: int, most: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(start, stop)`` for blocks of at most ``most`` rows; not of too few."""
    step = max(most, _FEWEST_ROWS)
    for start in range(0, n_rows, step):
        work(start, min(start + step, n_rows))


def for_local_blocks(n_rows: int, n_local: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(start, stop)`` for blocks of signals that have K = ``n_local`` atoms each."""
    for_blocks(n_rows, n_local * n_local, 8, work)


def fitting_blocks(
    code: Callable[[int, int], Result], n_rows: int, block: int, device: torch.device | None
) -> Iterator[tuple[slice, Result]]:
    """Yield blocks of rows and ``code(start, stop)`` of each, smaller ones where memory is short.

    ``block`` is how many of the ``n_rows`` signals to try at once; ``device`` is where they are
    coded, if that is known.
    """
    start = 0
    while start < n_rows:
        stop = min(start + block, n_rows)
        found = _unless_out_of_memory(code, start, stop)
        if found is None:
            block = _half(stop - start, device)
            continue
        yield slice(start, stop), found
        start = stop


def _unless_out_of_memory(
    code: Callable[[int, int], Result], start: int, stop: int
) -> Result | None:
    """Code a block; None where it does not fit, with all that was tried let go."""
    try:
        return code(start, stop)
    except torch.OutOfMemoryError:
        return None


def _half(tried: int, device: torch.device | None) -> int:
    """Return a smaller block, or say that there is none."""
    if tried <= 1:
        name = "The device" if device is None else f"Device {device}"
        raise MemoryError(
            f"{name} has no memory left to code even one signal at a time; free some, use "
            "fewer atoms or sparser codes, or code on the CPU."
        )
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    return -(-tried // 2)


def each(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply ``function`` to every item, one after another."""
    return [function(item) for item in items]


def map_rows(function: Callable[[Any], Any], X: Any) -> Any:
    """Return ``function(X)``."""
    return function(X)


def in_halves(solve_all: Callable[[list[Any]], list[Any]], problems: list[Any]) -> list[Any]:
    """Return the solutions of all problems, of one half after the other where memory is short.

    What ``solve_all`` writes into must be written last.
    """
    try:
        return solve_all(problems)
    except torch.OutOfMemoryError:
        if len(problems) == 1:
            raise
    half = len(problems) // 2
    return in_halves(solve_all, problems[:half]) + in_halves(solve_all, problems[half:])


def fair_share(n_rows: int, fewest: int = 512) -> int:
    """Return how many rows a block may have: all."""
    return max(n_rows, 1)


def n_threads() -> int:
    """Return how many threads share the work: this one."""
    return 1


def in_short_parts(n_rows: int, few: int, work: Callable[[slice], None]) -> None:
    """Call ``work`` for all rows of a block."""
    work(slice(0, n_rows))


@contextmanager
def one_blas_thread(wanted: bool = True) -> Iterator[None]:
    """Do nothing: products are the card's."""
    yield


def in_parts(n: int, step: int) -> Iterator[slice]:
    """Yield slices of at most ``step`` of n things, and of at least one."""
    step = max(step, 1)
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))


def on_card(device: torch.device) -> AbstractContextManager[None]:
    """Return a context in which kernels are launched on a device, if it is a card."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def processors(device: torch.device, of_host: int) -> int:
    """Return how many multiprocessors a card has, or what counts for that on the host."""
    if device.type != "cuda":
        return of_host
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def memory_for_a_block(device: torch.device, wanted: int, share_of_free: float = 1 / 4) -> int:
    """Return how many bytes a block may take: at most those wanted, and a share of what is free.

    Little of a card's memory is tried without asking how much is free: its driver takes as long to
    answer as tens of thousands of signals to be coded, and blocks that do not fit are halved
    (``fitting_blocks``).
    """
    if device.type != "cuda":
        return min(wanted, _HOST_BYTES)
    wanted = min(wanted, _MOST_BYTES)
    if wanted <= _LITTLE * torch.cuda.get_device_properties(device).total_memory:
        return wanted
    return min(wanted, int(share_of_free * (free_bytes(torch.empty(0, device=device)) or 0)))


def is_mostly_free(like: Any) -> bool:
    """Whether half of the memory where a tensor is stored is free; on the host it is."""
    if not like.is_cuda:
        return True
    total = torch.cuda.get_device_properties(like.device).total_memory
    # With so little in use the driver need not be asked, which takes long.
    if torch.cuda.memory_reserved(like.device) < (1 - _MOSTLY) / 2 * total:
        return True
    return (free_bytes(like) or 0) >= _MOSTLY * total


def free_bytes(like: Any) -> int | None:
    """Return how much memory the device of a tensor could still give; None where it is unknown.

    What torch has set aside and does not use counts as free.
    """
    if not like.is_cuda:
        return None
    unused = torch.cuda.memory_reserved(like.device) - torch.cuda.memory_allocated(like.device)
    return int(torch.cuda.mem_get_info(like.device)[0]) + int(unused)


@cache
def compiles_for(device: torch.device) -> bool:
    """Whether Triton compiles kernels for a device; without it, plain torch does the work.

    Its interpreter (TRITON_INTERPRET=1) runs kernels on any device, slowly: for tests.
    """
    if importlib.util.find_spec("triton") is None:
        return False
    if os.environ.get("TRITON_INTERPRET") == "1":
        return True
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
