"""Linear algebra on tensors: products, sums over rows, factors; and distances of pairs of rows.

A user's flags may let CUDA multiply float32 matrices in TF32, with 10 bits after the point, as
``torch.set_float32_matmul_precision("high")`` does. That suits networks; in a pursuit a correlation
wrong by a thousandth picks another atom. The flags belong to the process, so they are not changed:
where they allow TF32, ``matmul`` computes in float64 and rounds.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch

from kernelatoms.engine.gpu.arrays.work import in_halves

# Rows that are copied to float64 at once.
_SUM_ROWS = 1 << 16
# The most atoms whose Gram matrix is computed, and its most bytes.
_MOST_ATOMS, _MOST_BYTES = 4096, 2 << 30
# Bytes of pairs times features at once.
_AT_ONCE = 1 << 28
# Columns of a pivoted factor that are brought up to date together.
_BLOCK = 32
# Rows of a matrix that leaves most of a card idle.
_SMALL = 2048


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
