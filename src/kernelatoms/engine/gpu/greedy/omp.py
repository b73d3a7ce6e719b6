"""Greedy pursuits (OMP, OLS, non-negative or not) of many signals on tensors: blocks and memory.

The functions of ``engine/cpu/greedy.py``, on blocks of signals that fit into a share of the
device's free memory, or smaller ones where that was too much. ``coders`` chooses what codes a
block.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from kernelatoms.engine.gpu.arrays.scale import in_safe_range, rescale_rows, squared_norms
from kernelatoms.engine.gpu.arrays.ufuncs import ldexp
from kernelatoms.engine.gpu.greedy.blocks import BlockCodes, in_blocks, scale_back
from kernelatoms.engine.gpu.greedy.coders import (
    Coders,
    PursuitSpec,
    choose_coder,
    code_with_fallback,
    codes_rows_over_gram,
)
from kernelatoms.engine.gpu.greedy.sources import limits_of

#: ``products(start, stop)``: correlations (n, n_atoms) of these signals, energies (n,) or None.
Products = Callable[[int, int], tuple[Tensor, Tensor | None]]

#: ``local(start, stop)``: Gram matrices (n, K, K), correlations (n, K), energies (n,) or None.
Local = Callable[[int, int], tuple[Tensor, Tensor, Tensor | None]]

#: ``energy(start, stop)``: squared norms (n,) of these signals.
Energy = Callable[[int, int], Tensor]

#: Indices, values and what is left, padded; or indptr, indices, values and what is left. Then which
#: signals are unsettled, if they are left to the caller.
Coded = tuple[Tensor, ...]


def omp(
    gram: Tensor,
    products: Products,
    n_signals: int,
    n_nonzero: int,
    *,
    stop_at: Tensor | None = None,
    relative: bool = True,
    use_ols: bool = False,
    positive: bool = False,
    ragged: bool = False,
    leave_unsettled: bool = False,
    exact: bool = False,
    rows: tuple[Tensor, Tensor] | None = None,
    energy: Energy | None = None,
) -> Coded:
    """Code signals over one dictionary whose Gram matrix is known.

    ``products`` may be called again for parts of a block that did not fit into memory, and not at
    all with ``rows``; squared norms of these are computed here without ``energy``.
    """
    n_atoms = len(gram)
    if gram.shape != (n_atoms, n_atoms):
        raise ValueError(f"The Gram matrix must be square, got shape {tuple(gram.shape)}.")
    gram = gram.contiguous()
    norms2 = gram.diagonal().contiguous()
    spec = _checked_spec(
        norms2, n_signals, n_nonzero, stop_at, relative, use_ols, positive, leave_unsettled, exact
    )
    longest = _largest_norm2(norms2)
    if rows is not None and codes_rows_over_gram(spec):
        signals, atoms = rows
        atoms = atoms.to(gram.dtype).contiguous()
        coders = choose_coder("gram and rows", (gram, norms2, atoms), spec)
        code = _coding_rows(coders, spec, signals, energy, longest)
    else:
        coders = choose_coder("gram", (gram, norms2), spec)
        code = _coding_products(coders, spec, products, longest)

    return in_blocks(
        code, n_signals, n_nonzero, coders.chosen.bytes_per_signal, ragged, leave_unsettled, norms2
    )


def omp_local(
    local: Local,
    candidates: Tensor,
    n_nonzero: int,
    *,
    stop_at: Tensor | None = None,
    relative: bool = True,
    use_ols: bool = False,
    positive: bool = False,
    ragged: bool = False,
    leave_unsettled: bool = False,
    exact: bool = False,
) -> Coded:
    """Code signals, each over its own list of atoms."""
    n_signals, n_local = candidates.shape
    # The first signal shows the dtype of all.
    dtype = local(0, 1)[0].dtype if n_signals else torch.float64
    like = torch.empty(n_local, dtype=dtype, device=candidates.device)
    spec = _checked_spec(
        like, n_signals, n_nonzero, stop_at, relative, use_ols, positive, leave_unsettled, exact
    )
    coders = choose_coder("local", (), spec)

    def code(start: int, stop: int) -> BlockCodes:
        grams, corr, energy = local(start, stop)
        _check_shape(grams, "local Gram matrices", (stop - start, n_local, n_local))
        _check_shape(corr, "local correlations", (stop - start, n_local))
        grams = grams.to(dtype).contiguous()
        longest = _largest_norm2(grams.diagonal(dim1=1, dim2=2))
        names = candidates[start:stop]
        return _code_block(coders, spec, start, (grams, corr), energy, longest, names=names)

    return in_blocks(
        code, n_signals, n_nonzero, coders.chosen.bytes_per_signal, ragged, leave_unsettled, like
    )


def omp_without_gram(
    gram_rows: Callable[[Tensor], Tensor],
    norms2: Tensor,
    products: Products,
    n_signals: int,
    n_nonzero: int,
    *,
    stop_at: Tensor | None = None,
    relative: bool = True,
    use_ols: bool = False,
    positive: bool = False,
    ragged: bool = False,
    leave_unsettled: bool = False,
    exact: bool = False,
    rows: tuple[Tensor, Tensor] | None = None,
    energy: Energy | None = None,
) -> Coded:
    """Code signals over very many atoms, without their Gram matrix.

    ``gram_rows(atoms)`` gets the atoms (m,) int64 that signals of a block have picked in a step.
    With ``rows`` neither it nor ``products`` is called, and no matrix of signals and atoms is made
    but for OLS.
    """
    norms2, n_atoms = norms2.contiguous(), len(norms2)
    spec = _checked_spec(
        norms2, n_signals, n_nonzero, stop_at, relative, use_ols, positive, leave_unsettled, exact
    )
    longest = _largest_norm2(norms2)
    if rows is None:
        coders = choose_coder("requests", (gram_rows, norms2), spec)
        code = _coding_products(coders, spec, products, longest)
    else:
        signals, atoms = rows
        _check_shape(atoms, "atoms", (n_atoms, *signals.shape[1:]))
        _check_shape(signals, "signals", (n_signals, *atoms.shape[1:]))
        coders = choose_coder("rows", (atoms.to(norms2.dtype).contiguous(), norms2), spec)
        code = _coding_rows(coders, spec, signals, energy, longest)
    return in_blocks(
        code, n_signals, n_nonzero, coders.chosen.bytes_per_signal, ragged, leave_unsettled, norms2
    )


def _checked_spec(
    like: Tensor,
    n_signals: int,
    n_nonzero: int,
    stop_at: Tensor | None,
    relative: bool,
    use_ols: bool,
    positive: bool,
    leave_unsettled: bool,
    exact: bool,
) -> PursuitSpec:
    """Return checked options; ``like`` (n_atoms,) has the dtype and device of the codes."""
    if like.dtype not in (torch.float32, torch.float64):
        name = str(like.dtype).removeprefix("torch.")
        raise TypeError(f"Inner products of atoms must be float32 or float64, got {name}.")
    if n_nonzero < 1:
        raise ValueError(f"n_nonzero must be at least 1, got {n_nonzero}.")
    if stop_at is not None:
        stop_at = torch.as_tensor(stop_at, dtype=torch.float64, device=like.device)
        if stop_at.shape != (n_signals,):
            raise ValueError(
                f"stop_at must hold one number for each of {n_signals} signals, got shape "
                f"{tuple(stop_at.shape)}."
            )
        if not bool((stop_at >= 0).all()):
            raise ValueError("stop_at must not hold negative numbers or NaN.")
    return PursuitSpec(
        len(like), n_nonzero, stop_at, relative, use_ols, positive, like.dtype, like.device,
        limits_of(like.dtype, leave_unsettled, exact), leave_unsettled,
    )  # fmt: skip


def _check_shape(tensor: Tensor, name: str, shape: tuple[int, ...]) -> None:
    if tensor.shape != shape:
        raise ValueError(f"The {name} must have shape {shape}, got {tuple(tensor.shape)}.")


def _largest_norm2(norms2: Tensor) -> float:
    """Return the largest squared norm of an atom."""
    return float(norms2.max()) if norms2.numel() else 0.0


def _coding_rows(
    coders: Coders, spec: PursuitSpec, signals: Tensor, energy: Energy | None, longest: float
) -> Callable[[int, int], BlockCodes]:
    """Return what codes a block of signals (n_signals, n_features)."""

    def code(start: int, stop: int) -> BlockCodes:
        own = signals[start:stop]
        own_energy = squared_norms(own) if energy is None else energy(start, stop)
        return _code_block(coders, spec, start, (own,), own_energy, longest, size=0)

    return code


def _coding_products(
    coders: Coders, spec: PursuitSpec, products: Products, longest: float
) -> Callable[[int, int], BlockCodes]:
    """Return what codes a block of signals that are known by their inner products."""

    def code(start: int, stop: int) -> BlockCodes:
        corr, energy = products(start, stop)
        _check_shape(corr, "correlations", (stop - start, spec.n_atoms))
        return _code_block(coders, spec, start, (corr,), energy, longest)

    return code


def _code_block(
    coders: Coders,
    spec: PursuitSpec,
    start: int,
    own: tuple[Tensor, ...],
    energy: Tensor | None,
    longest: float,
    *,
    names: Tensor | None = None,
    size: int | None = None,
) -> BlockCodes:
    """Code signals from ``start`` on.

    ``own`` are their own tensors, correlations or signals last; other arguments as of
    ``code_with_fallback`` and ``_rescaled``.
    """
    *before, numbers = own
    until = _energy_to_explain(energy, start, len(numbers), spec)
    numbers, until, exponents = _rescaled(numbers, energy, until, longest, spec.dtype, size)
    indices, values, explained, ended = code_with_fallback(coders, (*before, numbers, until), names)
    values, explained = scale_back(exponents, longest, energy, values, explained)
    return indices, values, -explained if energy is None else energy - explained, ended


def _energy_to_explain(energy: Tensor | None, start: int, n: int, spec: PursuitSpec) -> Tensor:
    """Return how much energy of n signals from ``start`` on to explain; infinite without a goal."""
    if energy is not None and energy.shape != (n,):
        raise ValueError(f"The energies must have shape {(n,)}, got {tuple(energy.shape)}.")
    if spec.stop_at is None:
        return torch.full((n,), torch.inf, dtype=torch.float64, device=spec.device)
    if energy is None:
        raise ValueError(
            "max_residual needs k(x, x) of the signals, which a precomputed kernel does not "
            "give; use n_nonzero_coefs alone."
        )
    whole = energy.double()
    # A goal of infinity times no energy is NaN, of which no energy is less: no atoms, as it should.
    goal = spec.stop_at[start : start + n] ** 2
    return whole - (goal * whole if spec.relative else goal)


def _rescaled(
    numbers: Tensor,
    energy: Tensor | None,
    until: Tensor,
    longest: float,
    dtype: torch.dtype,
    size: int | None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return correlations or signals and goals as coders want them, and the exponents of that.

    Signals whose squared norm is ordinary stay as they are, if that of the longest atom is. Others
    come at a power of two of themselves, their largest number about 2^size; without ``size`` at one
    at which an atom explains about 1 of them. Without any such, exponents are None.
    """
    near = bool(in_safe_range(longest, dtype))
    if energy is None:
        largest = numbers.abs().amax(dim=1).double() if numbers.shape[1] else until * 0
        ordinary = in_safe_range(largest**2 / longest if longest else largest, dtype)
    else:
        ordinary = in_safe_range(energy, dtype)
    if near and bool(ordinary.all()):
        return numbers.to(dtype).contiguous(), until, None
    if energy is not None and not bool(torch.isfinite(energy).all()):
        raise ValueError(
            "X holds signals whose squared norm overflows float64, or is undefined; scale X down, "
            "or choose smaller kernel parameters."
        )
    outside = ~ordinary if near else torch.ones_like(ordinary)
    if size is None:
        size = math.frexp(longest)[1] // 2
    numbers, exponents = rescale_rows(numbers, outside, dtype, size)
    if exponents is not None:
        until = ldexp(until, -2 * exponents)
    return numbers.to(dtype).contiguous(), until, exponents
