"""Memory and parts of blocks of l1 coding, and checks of shapes."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from kernelatoms.engine.gpu.arrays.work import free_bytes, is_little

# Bytes of gradients, or of small Gram matrices, that are held at once: on a card, and on the host.
_CARD_BYTES, _HOST_BYTES = 1 << 30, 1 << 26
# Of a card's free memory no more than this, since what is held is not all that is needed.
_SHARE_OF_FREE = 1 / 16


def memory_for(tensor: Tensor | None) -> int:
    """Return how many bytes to hold on a tensor's device; without one, as on a card."""
    if tensor is None:
        return _CARD_BYTES
    if tensor.is_cuda and is_little(_CARD_BYTES, tensor.device):
        return _CARD_BYTES
    free = free_bytes(tensor)
    return _HOST_BYTES if free is None else min(_CARD_BYTES, int(_SHARE_OF_FREE * free))


def on_card_of(tensor: Tensor) -> AbstractContextManager[None]:
    """Return a context in which kernels are launched on the card where a tensor is, if on one."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


def in_parts(n: int, step: int) -> Iterator[slice]:
    """Yield slices of at most ``step`` of n things, and of at least one."""
    step = max(step, 1)
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))


def check_shape(tensor: Tensor, name: str, shape: tuple[int, ...]) -> None:
    """Refuse a tensor of another shape."""
    if tensor.shape != shape:
        raise ValueError(f"The {name} must have shape {shape}, got {tuple(tensor.shape)}.")
