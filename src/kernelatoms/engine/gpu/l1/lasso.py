"""l1 coding of many signals on tensors.

    min 1/2 |x - D w|^2 + alpha |w|_1                       (eq. (6) of the FKSC paper)

The functions of ``engine/cpu/l1.py``, which documents what they return, on blocks of signals:
``rounds`` codes one, ``screening`` has the forms of problems, ``solvers`` solves small ones. Gaps
are certified in float64 for the codes as they are returned.

See docs/decisions/026-gpu-l1-codes.md.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kernelatoms.engine.cpu.products import check_shape
from kernelatoms.engine.gpu.arrays.ufuncs import torch_dtype
from kernelatoms.engine.gpu.arrays.work import fitting_blocks, on_card
from kernelatoms.engine.gpu.l1.rounds import (
    Goal,
    Measured,
    Part,
    certify,
    code_block,
    measure,
    no_codes,
    rounded,
)
from kernelatoms.engine.gpu.l1.screening import (
    CallbackView,
    GramView,
    Lists,
    RowsView,
    View,
    half_atoms,
)
from kernelatoms.engine.gpu.l1.solvers import memory_for, solve_small, some_of, times

#: ``products(start, stop) -> (corr, energy)``.
Products = Callable[[int, int], tuple[Tensor, Tensor | None]]
#: indptr, indices, values, error, gap, missed.
Coded = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]

# So few atoms are one small problem per signal, with the Gram matrix of all.
_FEW_ATOMS = 128
# The most signals of a block; fewer where callables need memory of their own.
_MOST_ROWS, _MOST_ASKED = 1 << 16, 1 << 11
# Gradients over all atoms are as precise as the atoms are, in epsilons of their type.
_GRADIENT_ROUNDING = 32.0


def lasso(
    gram: Tensor,
    products: Products,
    n_signals: int,
    dtype: Any,
    alpha: float,
    *,
    positive: bool = False,
    gap_tol: float = 1e-6,
    start: Tensor | None = None,
) -> Coded:
    """Code signals over all atoms."""
    n_atoms = len(gram)
    check_shape(gram, "Gram matrix", (n_atoms, n_atoms))
    if start is not None:
        check_shape(start, "codes to start from", (n_signals, n_atoms))
    goal = Goal(float(alpha), positive, float(gap_tol), torch_dtype(dtype))
    wide = cache(gram.double)  # made with the first block, whose memory it shares
    usable = gram.diagonal() > 0

    def code(first: int, stop: int) -> list[Compact]:
        n = stop - first
        b, energy = _in_float64(*products(first, stop), (n, n_atoms))
        w = None if start is None else _usable(start[first:stop], usable, positive)
        if n_atoms <= _FEW_ATOMS:
            every = torch.arange(n_atoms, dtype=torch.int32, device=gram.device).expand(n, -1)
            part = _listed(gram.expand(n, -1, -1), b, energy, every, goal, w)
            return [_compact(part, first)]
        view = GramView(gram, wide(), b, energy)
        return _over_all(view, goal, no_codes(view) if w is None else _support(w), first)

    block = _rows_of(24 * n_atoms, gram)
    return _in_blocks(code, block, n_signals, n_atoms, goal, gram.device)


def lasso_local(
    local: Callable[[int, int], tuple[Tensor, Tensor, Tensor | None]],
    candidates: Tensor,
    dtype: Any,
    alpha: float,
    *,
    positive: bool = False,
    gap_tol: float = 1e-6,
    start: Callable[[int, int], Tensor] | None = None,
) -> Coded:
    """Code each signal over its own candidates (n_signals, K), -1 where a list is shorter.

    ``start(first, stop)`` returns codes to start from, (n, K). Gaps are those among the candidates.
    """
    n_signals, width = candidates.shape
    goal = Goal(float(alpha), positive, float(gap_tol), torch_dtype(dtype))
    n_atoms = int(candidates.max()) + 1 if candidates.numel() else 0

    def code(first: int, stop: int) -> list[Compact]:
        n = stop - first
        grams, corr, energies = local(first, stop)
        b, energy = _in_float64(corr, energies, (n, width))
        check_shape(grams, "local Gram matrices", (n, width, width))
        w = None
        if start is not None:
            w = _usable(start(first, stop), grams.diagonal(dim1=1, dim2=2) > 0, positive)
        return [_compact(_listed(grams, b, energy, candidates[first:stop], goal, w), first)]

    block = _rows_of(16 * width * width, candidates)
    return _in_blocks(code, block, n_signals, n_atoms, goal, candidates.device)


def lasso_without_gram(
    products: Products | None,
    local: Callable[[int, int, Tensor], tuple[Tensor, Tensor]] | None,
    gram_times: Callable[[Tensor, Tensor], Tensor] | None,
    n_signals: int,
    n_atoms: int,
    dtype: Any,
    alpha: float,
    *,
    positive: bool = False,
    gap_tol: float = 1e-6,
    rows: tuple[Tensor, Tensor] | None = None,
) -> Coded:
    """Code signals over very many atoms: no (n_atoms, n_atoms) matrix.

    With ``rows``, signals and atoms of a linear problem, no callable is called.
    """
    dtype = torch_dtype(dtype)
    gap_tol = max(gap_tol, _GRADIENT_ROUNDING * torch.finfo(dtype).eps)
    goal = Goal(float(alpha), positive, gap_tol, dtype)
    if rows is not None:
        return _lasso_rows(*rows, n_signals, n_atoms, goal)
    assert products is not None
    assert local is not None
    assert gram_times is not None

    def code(first: int, stop: int) -> list[Compact]:
        b, energy = _in_float64(*products(first, stop), (stop - first, n_atoms))
        view = CallbackView(local, gram_times, b, energy, first, dtype)
        return _over_all(view, goal, no_codes(view), first)

    block = min(_rows_of(24 * n_atoms), _MOST_ASKED)
    return _in_blocks(code, block, n_signals, n_atoms, goal)


def _lasso_rows(signals: Tensor, atoms: Tensor, n_signals: int, n_atoms: int, goal: Goal) -> Coded:
    """Code rows over rows."""
    check_shape(atoms, "atoms", (n_atoms, *signals.shape[1:]))
    check_shape(signals, "signals", (n_signals, *atoms.shape[1:]))
    atoms = atoms.contiguous()
    half = cache(lambda: half_atoms(atoms))  # made with the first block, whose memory it shares

    def code(first: int, stop: int) -> list[Compact]:
        view = RowsView(signals[first:stop], atoms, half())
        _check_finite(view.energy)
        return _over_all(view, goal, no_codes(view), first)

    block = _rows_of(24 * atoms.shape[1], atoms)
    return _in_blocks(code, block, n_signals, n_atoms, goal, atoms.device)


def _listed(
    grams: Tensor, b: Tensor, energy: Tensor, lists: Tensor, goal: Goal, start: Tensor | None
) -> Part:
    """Code signals over their own lists alone."""

    def again(rows: Tensor | slice, weights: Tensor) -> Measured:
        # |r|^2 = k(x, x) - 2 b'w + w'G w: there are no vectors.
        its_b = b[rows]
        c = its_b - times(some_of(grams, rows), weights)
        bw, wgw = (its_b * weights).sum(1), ((its_b - c) * weights).sum(1)
        size = c.clamp(min=0.0) if goal.positive else c.abs()
        largest = size.amax(1) if size.shape[1] else torch.zeros_like(bw)
        its_energy = energy[rows]
        return measure(its_energy - 2 * bw + wgw, its_energy - bw, largest, weights, goal.alpha)

    everyone = torch.arange(len(b), device=b.device)
    weights = torch.zeros_like(b) if start is None else start
    todo = everyone
    if start is not None:
        gap = again(slice(None), rounded(start, goal.dtype)).gap
        todo = torch.nonzero(~(gap <= goal.gap_tol * energy)).flatten()
    if len(todo):
        some = slice(None) if len(todo) == len(b) else todo
        its_grams = some_of(grams, some)
        w = solve_small(its_grams, b[some], goal.alpha, goal.positive, tol=goal.distance)
        weights = w if len(todo) == len(b) else weights.index_copy(0, todo, w)
    found = again(slice(None), rounded(weights, goal.dtype))
    return certify(everyone, lists, weights, energy, found, goal, again)


def _usable(start: Tensor, usable: Tensor, positive: bool) -> Tensor:
    """Return codes to start from in float64, without those of zero atoms or of the wrong sign."""
    w = torch.where(usable, start.double(), 0.0)
    return w.clamp(min=0.0) if positive else w


def _support(w: Tensor) -> Lists:
    """Return the lists of the atoms that codes (n, n_atoms) use."""
    used = w != 0
    width = int(used.sum(1).max()) if w.numel() else 0
    places = torch.where(used, used.cumsum(1) - 1, width)
    atoms = torch.full((len(w), width + 1), -1, dtype=torch.int32, device=w.device)
    weights = w.new_zeros((len(w), width + 1))
    every = torch.arange(w.shape[1], dtype=torch.int32, device=w.device).expand(len(w), -1)
    atoms.scatter_(1, places, every)
    weights.scatter_(1, places, w)
    everyone = torch.arange(len(w), device=w.device)
    return Lists(everyone, atoms[:, :width], weights[:, :width], None, 1)


def _rows_of(n_bytes: int, like: Tensor | None = None) -> int:
    """Return the signals of a block that needs so many bytes for each."""
    return max(1, min(memory_for(like) // max(n_bytes, 1), _MOST_ROWS))


def _in_float64(corr: Tensor, energy: Tensor | None, shape: tuple[int, int]) -> tuple[Any, Any]:
    assert energy is not None  # the pursuit asks before
    check_shape(corr, "correlations", shape)
    check_shape(energy, "energies", shape[:1])
    b, energy = corr.double(), energy.double()
    _check_finite(b)
    _check_finite(energy)
    return b, energy


def _check_finite(numbers: Tensor) -> None:
    if not bool(torch.isfinite(numbers).all()):
        raise ValueError(
            "The inner products of signals and atoms overflow or are undefined; scale the data "
            "down, use float64, or choose smaller kernel parameters."
        )


class Compact(NamedTuple):
    """Codes of some signals: signal, atom and value of every nonzero; and what each signal has."""

    rows: Tensor
    atoms: Tensor
    values: Tensor
    who: Tensor
    error: Tensor
    gap: Tensor
    missed: Tensor


def _compact(part: Part, first: int) -> Compact:
    """Return what to keep of codes of signals of a block, which begins at signal ``first``."""
    who = first + part.who
    row, column = torch.nonzero(part.values, as_tuple=True)
    nonzeros = who[row], part.atoms[row, column], part.values[row, column]
    return Compact(*nonzeros, who, part.error, part.gap, part.missed)


def _over_all(view: View, goal: Goal, begin: Lists, first: int) -> list[Compact]:
    """Code a block over all atoms."""
    if not view.n_atoms:  # no code is the only one
        zeros = torch.zeros_like(view.energy)
        return [_compact(Part(*no_codes(view)[:3], view.energy, zeros, zeros > 0), first)]
    with on_card(view.energy.device):
        return [_compact(part, first) for part in code_block(view, goal, begin)]


def _in_blocks(
    code: Callable[[int, int], list[Compact]], block: int, n_signals: int, n_atoms: int, goal: Goal,
    device: torch.device | None = None,
) -> Coded:  # fmt: skip
    """Code blocks of signals, and put their codes together by signal and ascending atom."""
    long, wide = torch.int64, torch.float64
    types = (long, torch.int32, goal.dtype, long, wide, wide, torch.bool)
    kept = [Compact(*(torch.empty(0, dtype=dtype, device=device) for dtype in types))]
    for _, parts in fitting_blocks(code, n_signals, block, device):
        kept += parts
    device = kept[-1].who.device
    whole = (torch.cat([part.to(device) for part in column]) for column in zip(*kept, strict=True))
    rows, atoms, values, who, errors, gaps, missed = whole
    order = torch.argsort(rows * max(n_atoms, 1) + atoms, stable=True)
    indptr = rows.new_zeros(n_signals + 1)
    indptr[1:] = torch.bincount(rows, minlength=n_signals).cumsum(0)
    by_signal = torch.argsort(who)
    return (
        indptr, atoms[order], values[order], errors[by_signal], gaps[by_signal], missed[by_signal],
    )  # fmt: skip
