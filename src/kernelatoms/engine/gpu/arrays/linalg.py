"""Linear algebra that numpy has no name for, on matrices of the device."""

from typing import Any

import torch

from kernelatoms.engine.gpu.arrays.products import matmul
from kernelatoms.engine.gpu.together import for_all, stacked

# Columns of a pivoted factor that are brought up to date together.
_BLOCK = 32
# Rows of a matrix that leaves most of a card idle.
_SMALL = 2048


def cholesky(matrix: Any) -> Any | None:
    """Return the lower factor of a symmetric matrix; None if it is not positive definite."""
    return _of_small(_factors, matrix)


def _factors(asked: list[Any]) -> list[Any | None]:
    factors, failed = torch.linalg.cholesky_ex(stacked(matrix for (matrix,) in asked))
    return [None if bad else factor for factor, bad in zip(factors, failed.tolist(), strict=True)]


def solve_triangular(factor: Any, right: Any, *, transposed: bool = False) -> Any:
    """Return L^-1 right, or L'^-1 right, for a lower triangular L."""
    return _of_small(_solutions, factor, right, transposed)


def _solutions(asked: list[Any]) -> list[Any]:
    factors, rights, (transposed, *_) = zip(*asked, strict=True)
    L, right = stacked(factors), stacked(rights)
    return list(torch.linalg.solve_triangular(L.mT if transposed else L, right, upper=transposed))


def _of_small(do_all: Any, matrix: Any, *others: Any) -> Any:
    """Have something done for all tasks at once, where matrices are too small to fill a card."""
    if len(matrix) > _SMALL:
        return do_all([(matrix, *others)])[0]
    alike = tuple(
        (part.shape, part.dtype, part.device) if isinstance(part, torch.Tensor) else part
        for part in (matrix, *others)
    )
    return for_all(do_all, alike, matrix, *others)


def least_squares(matrix: Any, right: Any) -> Any:
    """Return the shortest x of least |matrix x - right|, of a symmetric matrix of any rank.

    By eigenvectors, since the card's least squares know full rank only. Eigenvalues below rounding
    take no part.
    """
    values, vectors = torch.linalg.eigh(matrix)
    largest = values.abs().max()
    small = values.abs() <= len(matrix) * torch.finfo(values.dtype).eps * largest
    inverse = torch.where(small, 0, 1 / torch.where(small, 1, values))
    return matmul(vectors, inverse[:, None] * matmul(vectors.T, right))


def root_of_inverse(matrix: Any, least_condition: float) -> Any | None:
    """Return R with R R' = A^-1 of a symmetric matrix; None if that is ill-conditioned.

    ``least_condition`` is the least reciprocal condition number, in the norm of column sums.
    """
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if int(failed):
        return None
    unit = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    root = torch.linalg.solve_triangular(factor, unit, upper=False).T
    sizes = [part.abs().sum(0).max() for part in (matrix, matmul(root, root.T))]
    return root if bool(1 / (sizes[0] * sizes[1]) > least_condition) else None


def pivoted_cholesky(K: Any, tolerance: float) -> tuple[Any, Any]:
    """Return F (n, rank) with F F' = K up to a tolerance, and the pivots; K (n, n) is overwritten.

    The next pivot is where most is left. Blocks of pivots are brought up to date together, and the
    host looks at what is left once a block.
    """
    n = len(K)
    F = torch.zeros((n, n), dtype=K.dtype, device=K.device)
    left = torch.diagonal(K).clone()
    order = torch.zeros(n, dtype=torch.int64, device=K.device)
    rank = 0
    while rank < n:
        width = min(_BLOCK, n - rank)
        counted = torch.zeros((), dtype=torch.int64, device=K.device)
        for j in range(rank, rank + width):
            # Of shape (1,): an index without sides would make the host wait.
            most = left.amax(0, keepdim=True)
            pivot = left.argmax(0, keepdim=True)  # the first of them
            going = most > tolerance
            column = K[:, pivot] - matmul(F[:, rank:j], F[pivot, rank:j].T)
            column = torch.where(going, column[:, 0] / most.clamp(min=tolerance).sqrt(), 0)
            # Rows of earlier pivots are done: what is there is rounding.
            column = torch.where(left == -torch.inf, 0, column)
            F[:, j] = column
            left = left - column.square()
            left[pivot] = torch.where(going, -torch.inf, left[pivot])
            order[j : j + 1] = pivot
            counted += going[0]
        found = int(counted)
        part = F[:, rank : rank + found]
        K -= matmul(part, part.T)
        rank += found
        if found < width:
            break
    return F[:, :rank].contiguous(), order[:rank]
