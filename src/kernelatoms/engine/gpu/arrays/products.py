"""The matrix products around the loops: Gram matrices, and sums over rows."""

from typing import Any

import torch

from kernelatoms.engine.gpu.arrays.products import matmul

# Rows that are copied to float64 at once.
_SUM_ROWS = 1 << 16
# The most atoms whose Gram matrix is made, and its most bytes.
_MOST_ATOMS, _MOST_BYTES = 4096, 2 << 30


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


def laid_out(gram: Any) -> Any:
    """Return a square matrix as this machine likes it in memory: its rows contiguous."""
    return gram.contiguous()


def prefers_no_gram(n_atoms: int, n_signals: int, n_nonzero: int, itemsize: int) -> bool:
    """Whether to code over so many atoms without their Gram matrix, whatever the signals.

    Up to some thousand atoms its rows come from the card's cache; from there on residuals times
    atoms are faster.
    """
    return n_atoms > _MOST_ATOMS or n_atoms**2 * itemsize > _MOST_BYTES
