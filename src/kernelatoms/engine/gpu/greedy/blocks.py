"""Signals in blocks that fit into memory; their codes scaled back and concatenated."""

from collections.abc import Callable

import torch
from torch import Tensor

from kernelatoms.engine.gpu.arrays.ufuncs import ldexp
from kernelatoms.engine.gpu.arrays.work import fitting_blocks, free_bytes, is_little

#: Indices (n, k) int32, ascending, then -1; values (n, k), then 0; what is left (n,) float64;
#: whether rounding ended the pursuit (n,) bool.
BlockCodes = tuple[Tensor, Tensor, Tensor, Tensor]

# Bytes that a block may take on the host; on a device a share of what is free there, and at most.
_HOST_BYTES = 64 << 20
_MOST_BYTES = 8 << 30
_SHARE_OF_FREE = 0.25


def memory_for_a_block(device: torch.device, wanted: int) -> int:
    """Return how many bytes a block may take on a device, at most those wanted."""
    if device.type != "cuda":
        return min(wanted, _HOST_BYTES)
    if is_little(wanted, device):
        return min(wanted, _MOST_BYTES)
    free = free_bytes(torch.empty(0, device=device)) or 0
    return min(wanted, int(_SHARE_OF_FREE * free), _MOST_BYTES)


def in_blocks(
    code: Callable[[int, int], BlockCodes],
    n_signals: int,
    n_nonzero: int,
    bytes_per_signal: int,
    ragged: bool,
    leave_unsettled: bool,
    like: Tensor,
) -> tuple[Tensor, ...]:
    """Code blocks of signals, smaller ones where memory is short, and put their codes together.

    Parameters
    ----------
    code : callable
        ``code(start, stop)`` returns indices (n, k), values (n, k), what is left (n,) of these
        signals and which are unsettled (n,); k is at most ``n_nonzero``.
    n_signals, n_nonzero : int
        How many signals there are, and the most atoms of one.
    bytes_per_signal : int
        What a signal is thought to need.
    ragged : bool
        Return indptr, indices, values and left; else indices, values and left, padded.
    leave_unsettled : bool
        Return unsettled too, last.
    like : tensor
        Codes have its dtype and are on its device.
    """
    block = max(
        1, memory_for_a_block(like.device, n_signals * bytes_per_signal) // bytes_per_signal
    )
    left = like.new_empty(n_signals, dtype=torch.float64)
    unsettled = torch.empty_like(left, dtype=torch.bool)
    last = (left, unsettled) if leave_unsettled else (left,)
    counts = torch.zeros(n_signals + 1 if ragged else 0, dtype=torch.int64, device=like.device)
    rows = 0 if ragged else n_signals
    indices = torch.full((rows, n_nonzero), -1, dtype=torch.int32, device=like.device)
    values = like.new_zeros((rows, n_nonzero))
    parts: list[tuple[Tensor, Tensor]] = [(indices.new_empty(0), values.new_empty(0))]
    for here, found in fitting_blocks(code, n_signals, block, like.device):
        k = found[0].shape[1]
        left[here], unsettled[here] = found[2], found[3]
        if ragged:
            used = found[0] >= 0
            counts[here.start + 1 : here.stop + 1] = used.sum(dim=1)
            parts.append((found[0][used], found[1][used]))
        else:
            indices[here, :k], values[here, :k] = found[0], found[1]
    if not ragged:
        return indices, values, *last
    of_all = (torch.cat([part[i] for part in parts]) for i in range(2))
    return (counts.cumsum(0), *of_all, *last)


def scale_back(
    exponents: Tensor | None,
    longest: float,
    energy: Tensor | None,
    values: Tensor,
    squares: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return codes (n, k) and squares (n,) at the scale of their signals.

    Codes that do not fit their type are refused. ``longest`` is the largest |d|^2 of an atom.
    """
    if exponents is None:
        return values, squares
    coded = (values != 0).any(dim=1)
    name = str(values.dtype).removeprefix("torch.")
    values = ldexp(values, exponents[:, None])
    squares = ldexp(squares, 2 * exponents)
    if not bool(torch.isfinite(values).all()):
        raise ValueError(
            f"The codes overflow {name}: the signals are too long for atoms of norm "
            f"{longest**0.5:.2g} at most; scale X down, or the dictionary up, or use float64."
        )
    # Coefficients are multiples of the smallest number. Over atoms of norm up to 2 that rounds a
    # signal about as much as its own entries are.
    numbers = torch.finfo(values.dtype)
    blur = numbers.smallest_normal * numbers.eps * longest**0.5
    sizes = (squares if energy is None else energy)[coded]
    shortest = max(float(sizes.min()), 0.0) ** 0.5 if len(sizes) else torch.inf
    if longest > 4 and blur > numbers.eps * shortest:
        raise ValueError(
            f"The codes underflow {name}: the signals are too short for atoms of norm "
            f"{longest**0.5:.2g}; scale X up, or the dictionary down, or use float64."
        )
    return values, squares
