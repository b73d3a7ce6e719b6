"""Squared norms that fit, and signals scaled by powers of two; see ``engine.cpu.scale``."""

from typing import Any

import torch

from kernelatoms.engine.cpu.scale import check_scaled_codes, safe_range
from kernelatoms.engine.gpu.arrays.ufuncs import ldexp, numpy_dtype, torch_dtype
from kernelatoms.engine.gpu.arrays.work import compiles_for


def _safe_range(dtype: Any) -> tuple[float, float]:
    return safe_range(numpy_dtype(torch_dtype(dtype)))


def in_safe_range(squares: Any, dtype: Any) -> Any:
    """Return for which squared norms pursuits can work in a dtype without rescaling."""
    low, high = _safe_range(dtype)
    return (squares >= low) & (squares <= high)


def all_in_safe_range(squares: Any, dtype: Any) -> bool:
    """Whether pursuits can work in a dtype with all of these squared norms."""
    if not squares.numel():
        return True
    low, high = _safe_range(dtype)
    least, most = torch.aminmax(squares)
    return bool((least >= low) & (most <= high))


def squared_norms(rows: Any) -> Any:
    """Return |x|^2 of rows (n, n_features): float64, which squares of float32 fit in."""
    is_float32 = rows.dtype == torch.float32
    if is_float32 and rows.is_cuda and rows.is_contiguous() and compiles_for(rows.device):
        from kernelatoms.engine.gpu.arrays.norm_kernels import squared_norms_of_float32

        return squared_norms_of_float32(rows)  # torch would copy all rows to float64 first
    squares = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64).square_()
    if is_float32 or all_in_safe_range(squares, rows.dtype):
        return squares
    near, exponents = rescale_rows(rows, ~in_safe_range(squares, rows.dtype), rows.dtype)
    if exponents is None:
        return squares
    return ldexp(torch.linalg.vector_norm(near, dim=1).square_(), 2 * exponents)


def rescale_rows(rows: Any, outside: Any, dtype: Any, size: int = 0) -> tuple[Any, Any]:
    """Bring some rows to a size near 1, each by a power of two of its own."""
    if not rows.numel():
        return rows, None
    largest = torch.where(outside, rows.abs().amax(1), 0)
    if not bool((largest > 0).any()):
        return rows, None
    exponents = torch.where(largest > 0, torch.frexp(largest)[1] - int(size), 0).to(torch.int32)
    # The wider type first: numbers that need it may not fit the other one before they are divided.
    return ldexp(rows, -exponents[:, None]).to(torch_dtype(dtype)), exponents


def rescale_if_needed(rows: Any) -> tuple[Any, Any]:
    """Return ``rescale_rows`` of all rows whose squared norm is out of the safe range."""
    squares = squared_norms(rows)
    if all_in_safe_range(squares, rows.dtype):
        return rows, None
    return rescale_rows(rows, ~in_safe_range(squares, rows.dtype), rows.dtype)


def unit_rows(rows: Any) -> Any:
    """Return rows, also in stacks, at unit norm; zero rows stay zero."""
    near, _ = rescale_if_needed(rows.reshape(-1, rows.shape[-1]))
    norms = torch.linalg.vector_norm(near, dim=1, keepdim=True)
    return (near / torch.where(norms > 0, norms, 1)).reshape(rows.shape)


def scale_back(
    exponents: Any, longest: float, energy: Any, values: Any, squares: Any
) -> tuple[Any, Any]:
    """Return codes (n, k) and squares (n,) at the scale of their signals.

    Codes that do not fit their type are refused. ``longest`` is the largest |d|^2 of an atom.
    """
    if exponents is None:
        return values, squares
    coded = (values != 0).any(dim=1)
    values = ldexp(values, exponents[:, None])
    squares = ldexp(squares, 2 * exponents)
    sizes = (squares if energy is None else energy)[coded]
    check_scaled_codes(
        torch.finfo(values.dtype),
        numpy_dtype(values.dtype).name,
        longest,
        bool(torch.isfinite(values).all()),
        float(sizes.min()) if len(sizes) else torch.inf,
    )
    return values, squares
