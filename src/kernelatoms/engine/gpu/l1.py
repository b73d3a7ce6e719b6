"""l1 coding of many signals on tensors.

    min 1/2 |x - D w|^2 + alpha |w|_1                       (eq. (6) of the FKSC paper)

The same functions as those of ``engine/cpu/l1.py``, which says what they mean and return. Signals
travel in blocks; ``l1_rounds`` codes one, ``l1_looks`` knows the forms that problems have, and
``l1_solvers`` solves small ones. Codes are certified in float64, as they are returned.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from kernelatoms.engine.gpu.dtypes import torch_dtype
from kernelatoms.engine.gpu.l1_looks import (
    CallbackView,
    GramView,
    RowsView,
    View,
    half_atoms,
)
from kernelatoms.engine.gpu.l1_parts import check_shape, in_parts, memory_for, on_card_of
from kernelatoms.engine.gpu.l1_rounds import (
    Goal,
    Lists,
    Measured,
    Part,
    code_block,
    finished,
    measure,
    no_codes,
    rounded,
)
from kernelatoms.engine.gpu.l1_solvers import solve_small, some_of, times

#: ``products(start, stop) -> (corr, energy)``.
Products = Callable[[int, int], tuple[Tensor, Tensor | None]]
#: indptr, indices, values, error, gap, missed.
Coded = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]

# So few atoms are one small problem a signal, with the Gram matrix of all.
_FEW_ATOMS = 128
# Signals a block at most; where kernels are asked, which hold more than they return.
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
    """Code signals over all atoms.

    Parameters
    ----------
    gram : (n_atoms, n_atoms)
        Inner products of the atoms.
    products : callable
        ``products(start, stop)`` returns correlations (n, n_atoms) and energies (n,).
    n_signals : int
        How many signals there are.
    dtype : dtype
        The type of the codes returned, numpy's or torch's.
    alpha, positive, gap_tol
        Weight of |w|_1; no negative coefficients; the gap to reach, as a share of the energy.
    start : (n_signals, n_atoms), optional
        Codes to start from: those within the gap stay as they are, and the atoms that others use
        are looked at first.
    """
    n_atoms = len(gram)
    check_shape(gram, "Gram matrix", (n_atoms, n_atoms))
    if start is not None:
        check_shape(start, "codes to start from", (n_signals, n_atoms))
    goal = Goal(float(alpha), positive, float(gap_tol), torch_dtype(dtype))
    wide = gram.double()
    usable = gram.diagonal() > 0
    out = _Collected(n_signals, n_atoms, goal, gram)
    for rows in in_parts(n_signals, _rows_of(24 * n_atoms, gram)):
        b, energy = _in_float64(*products(rows.start, rows.stop), (_length(rows), n_atoms))
        w = None
        if start is not None:  # zero atoms get no weight
            w = torch.where(usable, start[rows].double(), 0.0)
            w = w.clamp(min=0.0) if positive else w
        if n_atoms <= _FEW_ATOMS:
            every = torch.arange(n_atoms, dtype=torch.int32, device=gram.device)
            lists = every.expand(_length(rows), -1)
            for part in _listed(gram.expand(_length(rows), -1, -1), b, energy, lists, goal, w):
                out.take(rows, part)
            continue
        view = GramView(gram, wide, b, energy)
        begin = no_codes(view) if w is None else _support(w)
        out.take_all(rows, view, begin)
    return out.coded()


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

    ``local(start, stop)`` returns Gram matrices (n, K, K), correlations (n, K), zeros where a list
    is padded, and energies; ``start(start, stop)`` codes to start from, (n, K). Gaps are those
    among the candidates.
    """
    n_signals, width = candidates.shape
    goal = Goal(float(alpha), positive, float(gap_tol), torch_dtype(dtype))
    n_atoms = int(candidates.max()) + 1 if candidates.numel() else 0
    out = _Collected(n_signals, n_atoms, goal, candidates)
    for rows in in_parts(n_signals, _rows_of(16 * width * width, candidates)):
        n = _length(rows)
        grams, corr, energies = local(rows.start, rows.stop)
        b, energy = _in_float64(corr, energies, (n, width))
        check_shape(grams, "local Gram matrices", (n, width, width))
        w = None
        if start is not None:
            usable = grams.diagonal(dim1=1, dim2=2) > 0
            w = torch.where(usable, start(rows.start, rows.stop).double(), 0.0)
            w = w.clamp(min=0.0) if positive else w
        for part in _listed(grams, b, energy, candidates[rows], goal, w):
            out.take(rows, part)
    return out.coded()


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

    Parameters
    ----------
    products : callable
        ``products(start, stop)`` returns correlations (n, n_atoms) and energies (n,).
    local : callable
        ``local(start, stop, candidates)`` returns the Gram matrices (n, K, K) and correlations
        (n, K) of each signal's candidates (n, K) int32, zeros for -1.
    gram_times : callable
        ``gram_times(weights, candidates)`` returns G w for codes on candidates, (n, n_atoms).
    n_signals, n_atoms : int
        How many signals and atoms there are.
    dtype, alpha, positive, gap_tol
        As of ``lasso``.
    rows : (n_signals, n_features) and (n_atoms, n_features), optional
        Signals and atoms of a linear problem. No callable is called then.
    """
    dtype = torch_dtype(dtype)
    gap_tol = max(gap_tol, _GRADIENT_ROUNDING * torch.finfo(dtype).eps)
    goal = Goal(float(alpha), positive, gap_tol, dtype)
    if rows is not None:
        return _lasso_rows(*rows, n_signals, n_atoms, goal)
    assert products is not None
    assert local is not None
    assert gram_times is not None
    out = _Collected(n_signals, n_atoms, goal)
    for part in in_parts(n_signals, min(_rows_of(24 * n_atoms), _MOST_ASKED)):
        b, energy = _in_float64(*products(part.start, part.stop), (_length(part), n_atoms))
        view = CallbackView(local, gram_times, b, energy, part.start, dtype)
        out.take_all(part, view, no_codes(view))
    return out.coded()


def _lasso_rows(signals: Tensor, atoms: Tensor, n_signals: int, n_atoms: int, goal: Goal) -> Coded:
    """Code rows over rows."""
    check_shape(atoms, "atoms", (n_atoms, *signals.shape[1:]))
    check_shape(signals, "signals", (n_signals, *atoms.shape[1:]))
    atoms = atoms.contiguous()
    half = half_atoms(atoms)
    out = _Collected(n_signals, n_atoms, goal, atoms)
    for part in in_parts(n_signals, _rows_of(24 * atoms.shape[1], atoms)):
        view = RowsView(signals[part], atoms, half)
        _check_finite(view.energy)
        out.take_all(part, view, no_codes(view))
    return out.coded()


def _listed(
    grams: Tensor, b: Tensor, energy: Tensor, lists: Tensor, goal: Goal, start: Tensor | None
) -> list[Part]:
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
    return [finished(everyone, lists, weights, energy, found, goal, again)]


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


def _length(rows: slice) -> int:
    return int(rows.stop - rows.start)


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


class _Collected:
    """Codes of finished signals, put together in the order of the signals."""

    def __init__(
        self, n_signals: int, n_atoms: int, goal: Goal, like: Tensor | None = None
    ) -> None:
        self._n_signals, self._n_atoms, self._goal = n_signals, n_atoms, goal
        device = None if like is None else like.device
        # Signal and atom of every nonzero, and what else codes have.
        self._rows = [torch.empty(0, dtype=torch.int64, device=device)]
        self._atoms = [torch.empty(0, dtype=torch.int32, device=device)]
        self._values = [torch.empty(0, dtype=goal.dtype, device=device)]
        self._who = [torch.empty(0, dtype=torch.int64, device=device)]
        self._errors = [torch.empty(0, dtype=torch.float64, device=device)]
        self._gaps = [torch.empty(0, dtype=torch.float64, device=device)]
        self._missed = [torch.empty(0, dtype=torch.bool, device=device)]

    def take_all(self, rows: slice, view: View, begin: Lists) -> None:
        """Code a block, and keep its codes."""
        if self._n_atoms:
            with on_card_of(view.energy):
                for part in code_block(view, self._goal, begin):
                    self.take(rows, part)
        else:  # no code is the only one
            none = no_codes(view)
            zeros = torch.zeros_like(view.energy)
            self.take(rows, Part(*none[:3], view.energy, zeros, zeros > 0))

    def take(self, rows: slice, part: Part) -> None:
        """Keep codes of signals of a block."""
        who = rows.start + part.who
        self._who.append(who)
        self._errors.append(part.error)
        self._gaps.append(part.gap)
        self._missed.append(part.missed)
        row, column = torch.nonzero(part.values, as_tuple=True)
        self._rows.append(who[row])
        self._atoms.append(part.atoms[row, column])
        self._values.append(part.values[row, column])

    def coded(self) -> Coded:
        """Return all codes, by ascending atom."""
        device = self._who[-1].device
        rows, atoms, values, who, errors, gaps, missed = (
            torch.cat([part.to(device) for part in parts])
            for parts in (
                self._rows, self._atoms, self._values, self._who, self._errors, self._gaps,
                self._missed,
            )
        )  # fmt: skip
        order = torch.argsort(rows * max(self._n_atoms, 1) + atoms, stable=True)
        indptr = rows.new_zeros(self._n_signals + 1)
        indptr[1:] = torch.bincount(rows, minlength=self._n_signals).cumsum(0)
        by_signal = torch.argsort(who)
        return (
            indptr, atoms[order], values[order], errors[by_signal], gaps[by_signal],
            missed[by_signal],
        )  # fmt: skip
