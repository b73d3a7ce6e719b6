"""Distances of all pairs of rows that no matrix product gives: sums and maxima over features.

Rows come in stacks, A (..., n, n_features) and B (..., m, n_features). Blocks of pairs are spread
out over the features and summed up in float64.
"""

from collections.abc import Callable
from typing import Any

import torch

# Bytes of pairs times features at once.
_AT_ONCE = 1 << 28


def l1_distances(A: Any, B: Any) -> Any:
    """Return sum_i |a_i - b_i| for all pairs of rows in stacks: (..., n, m) in float64."""
    return _all_pairs(lambda a, b: (a - b).abs_().sum(-1), A, B)


def linf_distances(A: Any, B: Any) -> Any:
    """Return max_i |a_i - b_i| for all pairs of rows in stacks: (..., n, m) in float64."""
    return _all_pairs(lambda a, b: (a - b).abs_().amax(-1), A, B)


def chi2_distances(A: Any, B: Any) -> Any:
    """Return sum_i (a_i - b_i)^2 / (a_i + b_i), 0/0 = 0, for all pairs of rows from 0 in stacks."""

    def sums(a: Any, b: Any) -> Any:
        difference, both = a - b, a + b
        # Divided first: squares of large numbers overflow.
        share = torch.where(both > 0, difference / torch.where(both > 0, both, 1), both)
        return (difference * share).sum(-1)

    return _all_pairs(sums, A, B)


def _all_pairs(function: Callable[[Any, Any], Any], A: Any, B: Any) -> Any:
    """Return a function of pairs (..., n_features) for all pairs, some rows of A at a time."""
    if A.shape[-1] != B.shape[-1]:
        raise ValueError(
            "rows of A and B must have as many features, got shapes "
            f"{tuple(A.shape)} and {tuple(B.shape)}."
        )
    heads = torch.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    A, B = (part.double().broadcast_to(heads + part.shape[-2:]) for part in (A, B))
    out = torch.empty((*A.shape[:-1], B.shape[-2]), dtype=torch.float64, device=A.device)
    one_row = B.numel() * 8
    step = max(_AT_ONCE // max(one_row, 1), 1)
    for start in range(0, A.shape[-2], step):
        rows = A[..., start : start + step, :]
        out[..., start : start + step, :] = function(rows[..., :, None, :], B[..., None, :, :])
    return out
