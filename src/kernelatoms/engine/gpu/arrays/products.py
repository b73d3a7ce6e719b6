"""Matrix products of tensors, sums over rows, and distances of pairs that no product gives.

A user's flags may let CUDA multiply float32 matrices in TF32, with 10 bits after the point, as
``torch.set_float32_matmul_precision("high")`` does. That suits networks; in a pursuit a correlation
wrong by a thousandth picks another atom. The flags belong to the process, so they are not changed:
where they allow TF32, ``matmul`` computes in float64 and rounds.
"""

from collections.abc import Callable
from typing import Any

import torch

# Rows that are copied to float64 at once.
_SUM_ROWS = 1 << 16
# The most atoms whose Gram matrix is computed, and its most bytes.
_MOST_ATOMS, _MOST_BYTES = 4096, 2 << 30
# Bytes of pairs times features at once.
_AT_ONCE = 1 << 28


def _multiplies_in_float32() -> bool:
    """Whether float32 matrices are multiplied as such, whatever names torch's flags go by."""
    flags = torch.backends.cuda.matmul
    precision = getattr(flags, "fp32_precision", None)  # from torch 2.9 on
    if precision is not None:
        return precision not in ("tf32", "bf16")
    return not flags.allow_tf32


def matmul(a: Any, b: Any, out: Any = None) -> Any:
    """Return a @ b of tensors of one type, in float32 to float32's precision."""
    if a.is_cuda and a.dtype == torch.float32 and not _multiplies_in_float32():
        product = torch.matmul(a.double(), b.double()).float()
        return product if out is None else out.copy_(product)
    return torch.matmul(a, b) if out is None else torch.matmul(a, b, out=out)


def gram_matrix(atoms: Any) -> Any:
    """Return atoms (n_atoms, n_features) @ atoms.T, exactly symmetric."""
    gram = matmul(atoms, atoms.T)
    return (gram + gram.T) / 2


def cross_products(A: Any, B: Any) -> Any:
    """Return A.T @ B of many rows, (n, p) and (n, q), in float64: sums over rows."""
    total = torch.zeros((A.shape[1], B.shape[1]), dtype=torch.float64, device=A.device)
    for start in range(0, len(A), _SUM_ROWS):
        rows = slice(start, start + _SUM_ROWS)
        total += matmul(A[rows].double().T, B[rows].double())
    return total


def times(rows: Any, matrix: Any) -> Any:
    """Return rows @ matrix in the rows' type."""
    return matmul(rows, matrix.to(rows.dtype))


def pad_rows(gram: Any) -> Any:
    """Return a square matrix with contiguous rows; a device needs no padding."""
    return gram.contiguous()


def prefers_no_gram(n_atoms: int, n_signals: int, n_nonzero: int, itemsize: int) -> bool:
    """Whether to code over so many atoms without their Gram matrix, whatever the signals.

    Up to some thousand atoms its rows come from the card's cache; from there on residuals times
    atoms are faster.
    """
    return n_atoms > _MOST_ATOMS or n_atoms**2 * itemsize > _MOST_BYTES


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
