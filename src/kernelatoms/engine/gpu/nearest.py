"""The K smallest values of every row of a matrix that is given in blocks of columns."""

from typing import Any

import torch

from kernelatoms.engine.gpu.arrays.device_array import on_tensors
from kernelatoms.engine.gpu.arrays.dtypes import torch_dtype


class TopK:
    """The K smallest values of every row, and their columns; as ``engine.cpu.TopK``."""

    def __init__(self, indices: Any, values: Any) -> None:
        self.indices, self.values = indices, values

    @classmethod
    def empty(cls, n_rows: int, n_kept: int, dtype: Any, *, like: Any) -> "TopK":
        """Return the K smallest of no columns, on the device of ``like``."""
        return cls(*_empty(n_rows, n_kept, dtype, like))

    def push(self, block: Any, first: int, *, offsets: Any = None, factor: float = 1.0) -> None:
        """Take the next columns of the matrix into account; parameters as in ``engine.cpu``."""
        _push(block, first, offsets, factor, self.indices, self.values)

    def sorted(self) -> tuple[Any, Any]:
        """Return indices and values, ascending by value, ties by index; -1 comes last."""
        _sort(self.indices, self.values)
        return self.indices, self.values


@on_tensors
def _empty(n_rows: int, n_kept: int, dtype: Any, like: Any) -> tuple[Any, Any]:
    shape, device = (n_rows, n_kept), like.device
    return (
        torch.full(shape, -1, dtype=torch.int32, device=device),
        torch.full(shape, torch.inf, dtype=torch_dtype(dtype), device=device),
    )


@on_tensors
def _push(block: Any, first: int, offsets: Any, factor: float, indices: Any, values: Any) -> None:
    n_kept = values.shape[1]
    if not n_kept or not block.shape[1]:
        return
    compared = block * factor if offsets is None else offsets.to(block.dtype) + factor * block
    compared = torch.where(compared.isnan(), torch.inf, compared)
    best, places = _smallest_of(compared, min(n_kept, block.shape[1]))
    found = torch.where(best.isinf(), -1, places + first).to(torch.int32)
    # Columns kept before come first: of equal values they have the lower numbers.
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


@on_tensors
def _sort(indices: Any, values: Any) -> None:
    """Sort every row, ascending by value, ties by index; -1 comes last."""
    last = torch.iinfo(torch.int32).max
    by_index = torch.argsort(torch.where(indices < 0, last, indices), dim=1, stable=True)
    sorted_values = values.gather(1, by_index)
    by_value = torch.argsort(sorted_values, dim=1, stable=True)
    order = by_index.gather(1, by_value)
    values.copy_(values.gather(1, order))
    indices.copy_(indices.gather(1, order))


def smallest(values: Any, n_kept: int) -> tuple[Any, Any]:
    """Return the columns (n, K) of the smallest values of every row (n, m), and these values.

    Both are ascending by value, ties by index; K is ``n_kept``, from 1 to m.
    """
    if not 1 <= n_kept <= values.shape[1]:
        raise ValueError(f"n_kept must be from 1 to {values.shape[1]}, got {n_kept}.")
    kept = TopK.empty(len(values), n_kept, values.dtype, like=values)
    kept.push(values, 0)
    return kept.sorted()
