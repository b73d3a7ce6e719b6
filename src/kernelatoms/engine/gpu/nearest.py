"""The K smallest values of every row, found while a matrix passes by in blocks of columns."""

from typing import Any

import torch

from kernelatoms.engine.gpu.arrays.dtypes import torch_dtype


def none_yet(n_rows: int, n_kept: int, dtype: Any, *, like: Any) -> tuple[Any, Any]:
    """Return the K smallest of nothing: indices -1 and values infinite, (n_rows, n_kept) each."""
    shape, device = (n_rows, n_kept), like.device
    return (
        torch.full(shape, -1, dtype=torch.int32, device=device),
        torch.full(shape, torch.inf, dtype=torch_dtype(dtype), device=device),
    )


def keep_smallest(
    block: Any,
    first: int,
    indices: Any,
    values: Any,
    *,
    offsets: Any = None,
    factor: float = 1.0,
) -> None:
    """Take the next columns of a matrix into account; ``in_order`` ends it.

    Parameters
    ----------
    block : (n, m) float32 or float64
        Columns first, first + 1, ... of the matrix; blocks come in their order. NaN is never kept.
    first : int
        The number of the first of them.
    indices : (n, K) int32
        Columns of the K smallest so far, from ``none_yet``; changed.
    values : (n, K)
        Their values, in the type of ``block``; changed.
    offsets : (m,), optional
        Compare offsets + factor * block instead: distances, from inner products.
    factor : float
        See there.
    """
    n_kept = values.shape[1]
    if not n_kept or not block.shape[1]:
        return
    compared = block * factor if offsets is None else offsets.to(block.dtype) + factor * block
    compared = torch.where(compared.isnan(), torch.inf, compared)
    best, places = _smallest_of(compared, min(n_kept, block.shape[1]))
    found = torch.where(best.isinf(), -1, places + first).to(torch.int32)
    # What was kept stands first: of equal values it has the lower numbers.
    both, names = torch.cat([values, best], 1), torch.cat([indices, found], 1)
    order = torch.argsort(both, dim=1, stable=True)[:, :n_kept]
    values.copy_(both.gather(1, order))
    indices.copy_(names.gather(1, order))


def _smallest_of(values: Any, n_kept: int) -> tuple[Any, Any]:
    """Return the smallest values of every row, ascending, and their columns; ties by column."""
    best, places = torch.topk(values, min(n_kept + 1, values.shape[1]), dim=1, largest=False)
    if best.shape[1] > n_kept:
        # Of equal values at the end torch takes any; rows that have such are sorted.
        tied = torch.nonzero((best[:, -1] == best[:, -2]) & best[:, -1].isfinite())[:, 0]
        best, places = best[:, :n_kept], places[:, :n_kept]
        if len(tied):
            places[tied] = torch.argsort(values[tied], dim=1, stable=True)[:, :n_kept]
    places = places.sort(1).values
    best = values.gather(1, places)
    order = torch.argsort(best, dim=1, stable=True)
    return best.gather(1, order), places.gather(1, order)


def in_order(indices: Any, values: Any) -> None:
    """Sort what was kept, ascending by value, ties by index; what is missing (-1) comes last."""
    last = torch.iinfo(torch.int32).max
    by_index = torch.argsort(torch.where(indices < 0, last, indices), dim=1, stable=True)
    sorted_values = values.gather(1, by_index)
    by_value = torch.argsort(sorted_values, dim=1, stable=True)
    order = by_index.gather(1, by_value)
    values.copy_(values.gather(1, order))
    indices.copy_(indices.gather(1, order))


def smallest(values: Any, n_kept: int) -> tuple[Any, Any]:
    """Return the columns of the smallest values of every row, and these.

    Parameters
    ----------
    values : (n, m) float32 or float64
        A matrix.
    n_kept : int
        K, from 1 to m.

    Returns
    -------
    indices : (n, K) int32
        Ascending by value, ties by index.
    values : (n, K)
        The values.
    """
    if not 1 <= n_kept <= values.shape[1]:
        raise ValueError(f"n_kept must be from 1 to {values.shape[1]}, got {n_kept}.")
    indices, kept = none_yet(len(values), n_kept, values.dtype, like=values)
    keep_smallest(values, 0, indices, kept)
    in_order(indices, kept)
    return indices, kept
