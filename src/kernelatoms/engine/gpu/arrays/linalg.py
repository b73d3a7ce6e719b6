"""Linear algebra beyond numpy's functions, on matrices of a device."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch

from kernelatoms.engine.gpu.arrays.products import matmul
from kernelatoms.engine.gpu.arrays.work import in_halves

# Columns of a pivoted factor that are brought up to date together.
_BLOCK = 32
# Rows of a matrix that leaves most of a card idle.
_SMALL = 2048


def cholesky(matrix: Any) -> Any | None:
    """Return the lower factor of a symmetric matrix; None if it is not positive definite."""
    return cholesky_all([matrix])[0]


def cholesky_all(matrices: list[Any]) -> list[Any | None]:
    """Return the factors of many matrices, small ones of one size in one launch."""
    return _in_groups(_factors, [(matrix,) for matrix in matrices])


def _factors(problems: list[tuple[Any]]) -> list[Any | None]:
    factors, failed = torch.linalg.cholesky_ex(_stacked([matrix for (matrix,) in problems]))
    return [None if bad else factor for factor, bad in zip(factors, failed.tolist(), strict=True)]


def solve_triangular(factor: Any, right: Any, *, transposed: bool = False) -> Any:
    """Return L^-1 right, or L'^-1 right, for a lower triangular L."""
    return solve_triangular_all([factor], [right], transposed=transposed)[0]


def solve_triangular_all(
    factors: list[Any], rights: list[Any], *, transposed: bool = False
) -> list[Any]:
    """Return the solutions of many systems, small ones of one size in one launch."""

    def solutions(problems: list[tuple[Any, Any]]) -> list[Any]:
        L, right = (_stacked(list(parts)) for parts in zip(*problems, strict=True))
        L = L.mT if transposed else L
        return list(torch.linalg.solve_triangular(L, right, upper=transposed))

    return _in_groups(solutions, list(zip(factors, rights, strict=True)))


def _in_groups(
    solve_all: Callable[[list[Any]], list[Any]], problems: list[tuple[Any, ...]]
) -> list[Any]:
    """Return the solutions of problems; those of one size that leave a card idle go together."""
    groups = defaultdict[Any, list[int]](list)
    for place, tensors in enumerate(problems):
        alike = tuple((part.shape, part.dtype) for part in tensors)
        groups[alike if len(tensors[0]) <= _SMALL else place].append(place)
    found: list[Any] = [None] * len(problems)
    for places in groups.values():
        solutions = in_halves(solve_all, [problems[place] for place in places])
        for place, solution in zip(places, solutions, strict=True):
            found[place] = solution
    return found


def _stacked(parts: list[Any]) -> Any:
    """Return tensors of one shape as one, of an axis more; a single one without a copy."""
    return torch.stack(parts) if len(parts) > 1 else parts[0][None]


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
    host looks at what is left once per block.
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
