"""Greedy pursuits (OMP, OLS, non-negative or not) of many signals on tensors: blocks and memory.

The functions of ``engine/cpu/greedy.py``, on blocks of signals that fit into a share of the
device's free memory, or smaller ones where that was too much. ``coders`` chooses what codes a
block.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from kernelatoms.engine.cpu.products import check_shape
from kernelatoms.engine.gpu.arrays.scale import (
    in_safe_range,
    rescale_rows,
    scale_back,
    squared_norms,
)
from kernelatoms.engine.gpu.arrays.ufuncs import ldexp
from kernelatoms.engine.gpu.arrays.work import fitting_blocks, memory_for_a_block
from kernelatoms.engine.gpu.greedy.coders import (
    Coders,
    PursuitSpec,
    choose_coder,
    code_with_fallback,
    codes_rows_over_gram,
)
from kernelatoms.engine.gpu.greedy.sources import Rules
from kernelatoms.engine.greedy_limits import (
    check_arguments,
    energy_to_explain,
    limits_of,
    refuse_undefined_energies,
)

#: ``products(start, stop)``: correlations (n, n_atoms) of these signals, energies (n,) or None.
Products = Callable[[int, int], tuple[Tensor, Tensor | None]]

#: ``local(start, stop)``: Gram matrices (n, K, K), correlations (n, K), energies (n,) or None.
Local = Callable[[int, int], tuple[Tensor, Tensor, Tensor | None]]

#: ``energy(start, stop)``: squared norms (n,) of these signals.
Energy = Callable[[int, int], Tensor]

#: Indices (n, k) int32, ascending, then -1; values (n, k), then 0; what is left (n,) float64;
#: whether rounding ended the pursuit (n,) bool.
BlockCodes = tuple[Tensor, Tensor, Tensor, Tensor]

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
    return _in_blocks(code, spec, coders.chosen.bytes_per_signal, ragged)


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
        check_shape(grams, "local Gram matrices", (stop - start, n_local, n_local))
        check_shape(corr, "local correlations", (stop - start, n_local))
        grams = grams.to(dtype).contiguous()
        longest = _largest_norm2(grams.diagonal(dim1=1, dim2=2))
        names = candidates[start:stop]
        return _code_block(coders, spec, start, (grams, corr), energy, longest, names=names)

    return _in_blocks(code, spec, coders.chosen.bytes_per_signal, ragged)


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
        check_shape(atoms, "atoms", (n_atoms, *signals.shape[1:]))
        check_shape(signals, "signals", (n_signals, *atoms.shape[1:]))
        coders = choose_coder("rows", (atoms.to(norms2.dtype).contiguous(), norms2), spec)
        code = _coding_rows(coders, spec, signals, energy, longest)
    return _in_blocks(code, spec, coders.chosen.bytes_per_signal, ragged)


def _in_blocks(
    code: Callable[[int, int], BlockCodes], spec: PursuitSpec, bytes_per_signal: int, ragged: bool
) -> Coded:
    """Code blocks of signals, smaller ones where memory is short, and put their codes together.

    ``code(start, stop)`` returns indices (n, k), values (n, k), what is left (n,) of these signals
    and which are unsettled (n,); k is at most ``n_nonzero``.
    """
    n_signals, device = spec.n_signals, spec.device
    block = max(1, memory_for_a_block(device, n_signals * bytes_per_signal) // bytes_per_signal)
    left = torch.empty(n_signals, dtype=torch.float64, device=device)
    unsettled = torch.empty_like(left, dtype=torch.bool)
    last = (left, unsettled) if spec.leave_unsettled else (left,)
    counts = torch.zeros(n_signals + 1 if ragged else 0, dtype=torch.int64, device=device)
    shape = (0 if ragged else n_signals, spec.n_nonzero)
    indices = torch.full(shape, -1, dtype=torch.int32, device=device)
    values = torch.zeros(shape, dtype=spec.dtype, device=device)
    parts: list[tuple[Tensor, Tensor]] = [(indices.new_empty(0), values.new_empty(0))]
    for here, found in fitting_blocks(code, n_signals, block, device):
        k = found[0].shape[1]
        left[here], unsettled[here] = found[2], found[3]
        if ragged:
            used = found[0] >= 0
            counts[here.start + 1 : here.stop + 1] = used.sum(dim=1)
            parts.append((found[0][used], found[1][used]))
        else:
            indices[here, :k], values[here, :k] = found[0], found[1]
    if not ragged:
        return indices, values, *last
    of_all = (torch.cat([part[i] for part in parts]) for i in range(2))
    return (counts.cumsum(0), *of_all, *last)


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
    if stop_at is not None:
        stop_at = torch.as_tensor(stop_at, dtype=torch.float64, device=like.device)
    check_arguments(str(like.dtype).removeprefix("torch."), n_signals, n_nonzero, stop_at)
    limits = limits_of(torch.finfo(like.dtype).eps, leave_unsettled, exact)
    return PursuitSpec(
        n_signals, len(like), n_nonzero, stop_at, relative, Rules(use_ols, positive, limits),
        like.dtype, like.device, leave_unsettled,
    )  # fmt: skip


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
        check_shape(corr, "correlations", (stop - start, spec.n_atoms))
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
    if energy is not None:
        check_shape(energy, "energies", (n,))
        energy = energy.double()
    if spec.stop_at is None:
        return torch.full((n,), torch.inf, dtype=torch.float64, device=spec.device)
    return energy_to_explain(energy, spec.stop_at[start : start + n], spec.relative)


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
        refuse_undefined_energies()
    outside = ~ordinary if near else torch.ones_like(ordinary)
    if size is None:
        size = math.frexp(longest)[1] // 2
    numbers, exponents = rescale_rows(numbers, outside, dtype, size)
    if exponents is not None:
        until = ldexp(until, -2 * exponents)
    return numbers.to(dtype).contiguous(), until, exponents
