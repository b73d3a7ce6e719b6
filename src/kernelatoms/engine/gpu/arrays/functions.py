"""numpy's functions on tensors, as far as this library uses them: a table of implementations.

Each takes tensors where numpy takes arrays, with numpy's names and defaults, and returns tensors.

See docs/decisions/008-device-arrays.md.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from kernelatoms.engine.gpu.arrays.linalg import matmul
from kernelatoms.engine.gpu.arrays.ufuncs import from_host, numpy_dtype, torch_dtype

#: What numpy's functions are on tensors; here those that torch has with other names or defaults.
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.argsort: lambda a, axis=-1, kind=None: torch.argsort(a, dim=axis, stable=True),
    np.bincount: lambda a, weights=None, minlength=0: torch.bincount(a, weights, int(minlength)),
    np.broadcast_to: lambda a, shape: a.broadcast_to(_sides(shape)),
    np.concatenate: lambda parts, axis=0: torch.cat(_promoted(parts), axis),
    np.count_nonzero: torch.count_nonzero,
    np.diagonal: lambda a, offset=0, axis1=0, axis2=1: a.diagonal(offset, axis1, axis2),
    np.diff: torch.diff,
    np.linalg.eigh: torch.linalg.eigh,
    np.linalg.qr: torch.linalg.qr,
    np.linalg.solve: torch.linalg.solve,
    np.nan_to_num: torch.nan_to_num,
    np.ndim: lambda a: a.ndim,
    np.nonzero: lambda a: torch.nonzero(a, as_tuple=True),
    np.repeat: torch.repeat_interleave,
    np.roll: lambda a, shift, axis: torch.roll(a, int(shift), axis),
    np.shape: lambda a: a.shape,
    np.sort: lambda a, axis=-1: torch.sort(a, dim=axis, stable=True).values,
    np.stack: lambda parts, axis=0: torch.stack(_promoted(parts), axis),
    np.take_along_axis: lambda a, places, axis=-1: torch.take_along_dim(a, places.long(), axis),
    np.trace: torch.trace,
    np.tril: lambda a, k=0: torch.tril(a, k),
    np.unique: torch.unique,
}

#: Those that make arrays of other values, which need to know where: ``on`` is the device.
NEW: dict[Any, Callable[..., Any]] = {}


def implements(
    *functions: Any, table: dict[Any, Callable[..., Any]] = FUNCTIONS
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function into a table, under the names of numpy's."""

    def put(ours: Callable[..., Any]) -> Callable[..., Any]:
        table.update(dict.fromkeys(functions, ours))
        return ours

    return put


def _as(values: Any, dtype: Any) -> Any:
    return values if dtype is None else values.to(torch_dtype(dtype))


def _promoted(parts: Any) -> list[Any]:
    """Return tensors in the type that numpy finds for all of them."""
    dtype = torch_dtype(np.result_type(*(numpy_dtype(part.dtype) for part in parts)))
    return [part.to(dtype) for part in parts]


# New arrays ---------------------------------------------------------------------------------------


@implements(np.zeros, np.empty, table=NEW)
def _zeros(shape: Any, dtype: Any = float, *, on: Any) -> Any:
    # Also for ``empty``: uninitialised memory would differ from run to run.
    return torch.zeros(_sides(shape), dtype=torch_dtype(dtype), device=on)


@implements(np.ones, table=NEW)
def _ones(shape: Any, dtype: Any = float, *, on: Any) -> Any:
    return torch.ones(_sides(shape), dtype=torch_dtype(dtype), device=on)


@implements(np.full, table=NEW)
def _full(shape: Any, fill_value: Any, dtype: Any = None, *, on: Any) -> Any:
    dtype = np.asarray(fill_value).dtype if dtype is None else dtype
    return torch.full(_sides(shape), fill_value, dtype=torch_dtype(dtype), device=on)


@implements(np.arange, table=NEW)
def _arange(*limits: Any, dtype: Any = None, on: Any) -> Any:
    return _as(torch.arange(*map(int, limits), device=on), dtype)


@implements(np.eye, table=NEW)
def _eye(n: int, M: None = None, k: int = 0, dtype: Any = float, *, on: Any) -> Any:
    return torch.eye(n, dtype=torch_dtype(dtype), device=on)


@implements(np.asarray, np.ascontiguousarray, np.array, table=NEW)
def _asarray(values: Any, dtype: Any = None, *, copy: bool = False, on: Any) -> Any:
    if not isinstance(values, torch.Tensor):
        values = from_host(values, on)
    return _as(values, dtype).contiguous()


@implements(np.zeros_like, np.empty_like)
def _zeros_like(values: Any, dtype: Any = None) -> Any:
    return torch.zeros_like(values, dtype=None if dtype is None else torch_dtype(dtype))


@implements(np.ones_like)
def _ones_like(values: Any, dtype: Any = None) -> Any:
    return torch.ones_like(values, dtype=None if dtype is None else torch_dtype(dtype))


def _sides(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if np.ndim(shape) == 0 else tuple(int(side) for side in shape)


# Sums and the like --------------------------------------------------------------------------------


def _along(values: Any, axis: Any) -> Any:
    """Return the axes to sum over, all of them where numpy's default says so."""
    return tuple(range(values.ndim)) if axis is None else axis


@implements(np.sum)
def _sum(values: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    dtype = None if dtype is None else torch_dtype(dtype)
    return torch.sum(values, _along(values, axis), keepdim=keepdims, dtype=dtype)


@implements(np.nansum)
def _nansum(values: Any, axis: Any = None, dtype: Any = None) -> Any:
    return _sum(torch.nan_to_num(values, 0.0, torch.inf, -torch.inf), axis, dtype)


@implements(np.mean)
def _mean(values: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    if dtype is None and not values.is_floating_point():
        dtype = np.float64
    return torch.mean(_as(values, dtype), _along(values, axis), keepdim=keepdims)


@implements(np.var)
def _var(values: Any, axis: Any = None, dtype: Any = None) -> Any:
    return torch.var(_as(values, dtype), _along(values, axis), correction=0)


def _extreme(function: Any, cap: Any) -> Callable[..., Any]:
    def ours(
        values: Any,
        axis: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        if where is not True:
            values = torch.where(where, values, torch.tensor(initial, dtype=values.dtype))
        axes = _along(values, axis)
        if initial is None:
            return function(values, axes, keepdim=keepdims)
        if values.numel() == 0:
            return _sum(values, axes, keepdims=keepdims) + initial
        return cap(function(values, axes, keepdim=keepdims), initial)

    return ours


FUNCTIONS[np.max] = _extreme(torch.amax, lambda found, least: found.clamp(min=least))
FUNCTIONS[np.min] = _extreme(torch.amin, lambda found, most: found.clamp(max=most))


@implements(np.nanmin)
def _nanmin(values: Any) -> Any:
    return torch.amin(torch.nan_to_num(values, torch.inf, torch.inf, -torch.inf))


@implements(np.nanmax)
def _nanmax(values: Any, initial: Any = None) -> Any:
    filled = torch.nan_to_num(values, -torch.inf, torch.inf, -torch.inf)
    return FUNCTIONS[np.max](filled, initial=initial)


@implements(np.any)
def _any(values: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if axis == ():
        return values.bool()
    return torch.any(values.bool(), _along(values, axis), keepdim=keepdims)


@implements(np.all)
def _all(values: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return torch.all(values.bool(), _along(values, axis), keepdim=keepdims)


def _first_place(function: Any) -> Callable[..., Any]:
    """Return a function for the first of the largest (or smallest), or of NaN, as torch's are."""
    return lambda a, axis=None: function(a.to(torch.uint8) if a.dtype == torch.bool else a, axis)


FUNCTIONS[np.argmax] = _first_place(torch.argmax)
FUNCTIONS[np.argmin] = _first_place(torch.argmin)


@implements(np.cumsum)
def _cumsum(values: Any, axis: Any = None, dtype: Any = None) -> Any:
    flat = values.reshape(-1) if axis is None else values
    return torch.cumsum(flat, 0 if axis is None else axis)


# Places and shapes --------------------------------------------------------------------------------


@implements(np.where)
def _where(condition: Any, ours: Any, others: Any) -> Any:
    kinds = [
        numpy_dtype(value.dtype) if isinstance(value, torch.Tensor) else value
        for value in (ours, others)
    ]
    dtype = torch_dtype(np.result_type(*kinds))
    ours, others = (
        value.to(dtype) if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=dtype)
        for value in (ours, others)
    )
    return torch.where(condition, ours, others)


@implements(np.flatnonzero)
def _flatnonzero(values: Any) -> Any:
    return torch.nonzero(values.reshape(-1))[:, 0]


@implements(np.ix_)
def _ix(*places: Any) -> Any:
    found = [_flatnonzero(p) if p.dtype == torch.bool else p for p in places]
    return tuple(
        p.reshape([-1 if i == axis else 1 for i in range(len(found))])
        for axis, p in enumerate(found)
    )


@implements(np.searchsorted)
def _searchsorted(values: Any, wanted: Any, side: str = "left") -> Any:
    return torch.searchsorted(values.contiguous(), wanted.contiguous(), right=side == "right")


@implements(np.pad)
def _pad(values: Any, width: Any) -> Any:
    """Add zeros at the ends of the axes, as many as (before, after) of each says, or of all."""
    sides = np.broadcast_to(np.asarray(width), (values.ndim, 2))
    return torch.nn.functional.pad(values, [int(n) for n in sides[::-1].ravel()])


@implements(np.fill_diagonal)
def _fill_diagonal(values: Any, value: Any) -> None:
    values.fill_diagonal_(value)


# Linear algebra -----------------------------------------------------------------------------------


@implements(np.vdot)
def _vdot(one: Any, other: Any) -> Any:
    one, other = _promoted([one.reshape(-1), other.reshape(-1)])
    return (one * other).sum()


@implements(np.einsum)
def _einsum(pattern: str, *parts: Any, dtype: Any = None) -> Any:
    # In float64: torch multiplies matrices for it, perhaps in TF32 (``linalg``).
    made = torch.einsum(pattern, *(part.double() for part in parts))
    return made.to(parts[0].dtype if dtype is None else torch_dtype(dtype))


@implements(np.linalg.norm)
def _norm(values: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return torch.linalg.vector_norm(values, dim=_along(values, axis), keepdim=keepdims)


@implements(np.matmul, np.dot)
def _matmul(one: Any, other: Any) -> Any:
    return matmul(*_promoted([one, other]))
