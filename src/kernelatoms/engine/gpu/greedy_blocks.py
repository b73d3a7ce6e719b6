"""Signals in blocks that fit into memory, and their codes put together."""

from collections.abc import Callable

import torch
from torch import Tensor

#: Indices (n, k) int32, ascending, then -1; values (n, k), then 0; what is left (n,) float64.
BlockCodes = tuple[Tensor, Tensor, Tensor]

# Bytes that a block may take on the host; on a device a share of what is free there, and at most.
_HOST_BYTES = 64 << 20
_MOST_BYTES = 8 << 30
_SHARE_OF_FREE = 0.25


def memory_for_a_block(device: torch.device) -> int:
    """Return how many bytes a block may take on a device."""
    if device.type != "cuda":
        return _HOST_BYTES
    free = torch.cuda.mem_get_info(device)[0]
    # What torch holds for itself and does not use is free for us.
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return min(int(_SHARE_OF_FREE * free), _MOST_BYTES)


def in_blocks(
    code: Callable[[int, int], BlockCodes],
    n_signals: int,
    n_nonzero: int,
    bytes_a_signal: int,
    ragged: bool,
    like: Tensor,
) -> tuple[Tensor, ...]:
    """Code blocks of signals, smaller ones where memory is short, and put their codes together.

    Parameters
    ----------
    code : callable
        ``code(start, stop)`` returns indices (n, k), values (n, k) and what is left (n,) of these
        signals; k is at most ``n_nonzero``.
    n_signals, n_nonzero : int
        How many signals there are, and the most atoms of one.
    bytes_a_signal : int
        What a signal is thought to need.
    ragged : bool
        Return indptr, indices, values and left; else indices, values and left, padded.
    like : tensor
        Codes have its dtype and are on its device.
    """
    block = max(1, min(memory_for_a_block(like.device) // bytes_a_signal, n_signals))
    left = like.new_empty(n_signals, dtype=torch.float64)
    counts = torch.zeros(n_signals + 1 if ragged else 0, dtype=torch.int64, device=like.device)
    rows = 0 if ragged else n_signals
    indices = torch.full((rows, n_nonzero), -1, dtype=torch.int32, device=like.device)
    values = like.new_zeros((rows, n_nonzero))
    parts: list[tuple[Tensor, Tensor]] = [(indices.new_empty(0), values.new_empty(0))]
    start = 0
    while start < n_signals:
        stop = min(start + block, n_signals)
        found = _unless_out_of_memory(code, start, stop)
        if found is None:
            block = _half(block, stop - start, like.device)
            continue
        here, k = slice(start, stop), found[0].shape[1]
        left[here] = found[2]
        if ragged:
            used = found[0] >= 0
            counts[start + 1 : stop + 1] = used.sum(dim=1)
            parts.append((found[0][used], found[1][used]))
        else:
            indices[here, :k], values[here, :k] = found[0], found[1]
        start = stop
    if not ragged:
        return indices, values, left
    of_all = (torch.cat([part[i] for part in parts]) for i in range(2))
    return (counts.cumsum(0), *of_all, left)


def _unless_out_of_memory(
    code: Callable[[int, int], BlockCodes], start: int, stop: int
) -> BlockCodes | None:
    """Code a block; None where it does not fit, with all that was tried let go."""
    try:
        return code(start, stop)
    except torch.OutOfMemoryError:
        return None


def _half(block: int, tried: int, device: torch.device) -> int:
    """Return a smaller block, or say that there is none."""
    if tried <= 1:
        raise MemoryError(
            f"Device {device} has no memory left to code even one signal at a time; free some, use "
            "fewer atoms or nonzeros, or code on the CPU."
        )
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return -(-min(block, tried) // 2)
