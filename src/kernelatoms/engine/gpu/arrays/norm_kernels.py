"""Squared norms of float32 rows, added up in float64 without a copy of the rows in it."""

import torch
import triton
import triton.language as tl


@triton.jit
def _squared_norms(rows, squares, n_rows, n_features, R: tl.constexpr, P: tl.constexpr):
    own = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    f = tl.arange(0, P)
    total = tl.zeros((R, P), tl.float64)
    for first in range(0, n_features, P):
        mask = (own < n_rows)[:, None] & (first + f < n_features)[None, :]
        x = tl.load(rows + own[:, None] * n_features + first + f[None, :], mask=mask, other=0.0)
        wide = x.to(tl.float64)
        total += wide * wide
    tl.store(squares + own, tl.sum(total, 1), mask=own < n_rows)


def squared_norms_of_float32(rows: torch.Tensor) -> torch.Tensor:
    """Return |x|^2 of contiguous rows (n, n_features) float32, in float64."""
    n_rows, n_features = rows.shape
    squares = torch.zeros(n_rows, dtype=torch.float64, device=rows.device)
    if rows.numel():
        at_once = 4
        _squared_norms[(triton.cdiv(n_rows, at_once),)](
            rows, squares, n_rows, n_features, R=at_once, P=128, num_warps=2
        )
    return squares
