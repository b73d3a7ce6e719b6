"""Gradients of a block of signals over all atoms, in the three forms that problems have.

``gradients`` returns those of c = D'(x - D w) that matter: at a code's own atoms, and the largest
among all others. Precise ones are in float64 and give all that a duality gap needs; screens are
cheaper. ``small_problems`` returns the problem among each signal's own atoms.

- ``RowsView``: signals and atoms are rows. Screens multiply residuals and atoms in half precision,
  on tensor cores. With Triton, small Gram matrices are those of the rounded atoms too: they come
  with exact gradients at the current code and are solved for its change, so the next round corrects
  what rounding did.
- ``GramView``: the Gram matrix of all atoms is known.
- ``CallbackView``: neither; callables compute what is needed.

See docs/decisions/026-gpu-l1-codes.md.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from kernelatoms.engine.cpu.products import check_shape
from kernelatoms.engine.gpu.l1.solvers import kernels_for, memory_for
from kernelatoms.engine.gpu.local import gather

# Atoms whose gradients are computed together.
_ATOMS_AT_ONCE = 32768
# From this stage of lists on small problems are exact, and codes that do not improve end.
EXACT = 3
# Columns beside the gradients, at least one, for writes to be ignored; rows stay aligned.
_SPARE = 64


class Lists(NamedTuple):
    """Signals with lists of one length, (n, K), and their next stage.

    ``stage`` 0: a screen; 1 and 2: precise gradients at codes rounded as they will be returned;
    3: precise gradients at unrounded codes, after an exact small problem.
    """

    who: Tensor
    atoms: Tensor
    weights: Tensor
    residuals: Tensor | None
    stage: int

    def some(self, rows: slice | Tensor) -> "Lists":
        """Return some of them."""
        left = None if self.residuals is None else self.residuals[rows]
        return Lists(self.who[rows], self.atoms[rows], self.weights[rows], left, self.stage)


class Gradients(NamedTuple):
    """Gradients of a code over all atoms, and what its duality gap needs.

    ``own`` (n, K) are those at the code's own atoms, ``found`` (n, M) int32 the other atoms of the
    largest gradients, -1 where there are fewer; ``largest`` and ``beyond`` (n,) the largest size
    over all atoms and over those outside the code. ``error`` is |r|^2, ``fit`` x'r. ``residuals``
    (n, p), where there are any, are for the small problem.
    """

    own: Tensor
    found: Tensor
    largest: Tensor
    beyond: Tensor
    error: Tensor
    fit: Tensor
    residuals: Tensor | None = None


class Small(NamedTuple):
    """Small problems: Gram matrices (n, K, K), gradients (n, K) float64 at ``start``, or at 0.

    All in units of ``unit`` for the atoms: weights of these are ``unit`` times the true ones.
    """

    grams: Tensor
    gradients: Tensor
    start: Tensor | None = None
    unit: float = 1.0


def pick(c: Tensor, lowest: Tensor, wanted: int, positive: bool) -> tuple[Tensor, Tensor]:
    """Return the atoms (n, wanted) int32 of the largest gradients c, -1 pads, and the largest size.

    Gradients up to ``lowest`` (n,) float64 do not count; with ``positive``, nor do negative ones.
    """
    kernels = kernels_for(c)
    if kernels is not None:
        return kernels.pick(c, lowest, wanted, positive)
    sizes = c.clamp(min=0) if positive else c.abs()
    top, atoms = sizes.topk(min(wanted, c.shape[1]), dim=1)
    found = torch.where(top > lowest[:, None], atoms, -1).int()
    return _wider(found, wanted), top[:, 0].double()


def _wide(width: int) -> int:
    """Return the length of rows of so many gradients with spare columns."""
    return (width // _SPARE + 1) * _SPARE


def _wider(found: Tensor, wanted: int) -> Tensor:
    return torch.nn.functional.pad(found, (0, wanted - found.shape[1]), value=-1)


class _Largest:
    """The largest gradients of parts of the atoms, put together."""

    def __init__(
        self, n_atoms: int, atoms: Tensor, lowest: Tensor, wanted: int, positive: bool
    ) -> None:
        self._n_atoms, self._atoms, self._lowest = n_atoms, atoms, lowest
        self._wanted, self._positive = wanted, positive
        self.own = torch.zeros(atoms.shape, dtype=torch.float64, device=atoms.device)
        self.beyond = torch.zeros(len(atoms), dtype=torch.float64, device=atoms.device)
        self._found = atoms
        self._sizes: Tensor | None = None

    def take(self, c: Tensor, first: int, width: int) -> None:
        """Take gradients of ``width`` atoms from ``first`` on, in wider rows; overwrite them."""
        places = self._atoms.long() - first
        inside = (self._atoms >= 0) & (places >= 0) & (places < width)
        places = torch.where(inside, places, width)
        self.own = torch.where(inside, c.gather(1, places).double(), self.own)
        c.scatter_(1, places, 0.0)
        c[:, width:] = 0.0
        found, largest = pick(c[:, :width], self._lowest, self._wanted, self._positive)
        self.beyond = torch.maximum(self.beyond, largest)
        if width < self._n_atoms:  # to be compared with those of other parts
            sizes = c.gather(1, torch.where(found >= 0, found, width).long()).abs()
            found = torch.where(found >= 0, found + first, -1)
            if self._sizes is not None:
                found = torch.cat([self._found, found], 1)
                sizes, order = torch.cat([self._sizes, sizes], 1).topk(self._wanted, dim=1)
                found = found.gather(1, order)
            self._sizes = sizes
        self._found = found

    def gradients(
        self,
        error: Tensor,
        fit: Tensor,
        residuals: Tensor | None = None,
        scale: Tensor | None = None,
    ) -> Gradients:
        """Return the gradients; those taken were of signals divided by ``scale`` (n,)."""
        own, beyond = self.own, self.beyond
        if scale is not None:
            own, beyond = own * scale[:, None], beyond * scale
        listed = own.clamp(min=0) if self._positive else own.abs()
        largest = torch.maximum(beyond, listed.amax(1)) if listed.shape[1] else beyond
        return Gradients(own, self._found, largest, beyond, error, fit, residuals)


class HalfAtoms(NamedTuple):
    """Atoms divided by ``unit``, a power of two near their largest norm, in low precision."""

    rows: Tensor
    unit: float


def half_atoms(atoms: Tensor) -> HalfAtoms:
    """Return atoms (n_atoms, n_features) for screens: half precision where a card multiplies it."""
    largest = float(torch.linalg.vector_norm(atoms, dim=1).max()) if atoms.numel() else 0.0
    unit = 2.0 ** math.ceil(math.log2(largest or 1.0))
    rows = (atoms / unit).to(torch.float16 if atoms.is_cuda else torch.float32)
    return HalfAtoms(rows.contiguous(), unit)


class RowsView:
    """Rows (n, n_features) over rows (n_atoms, n_features)."""

    screens = True

    def __init__(self, signals: Tensor, atoms: Tensor, half: HalfAtoms) -> None:
        self._signals, self._atoms, self._half = signals, atoms, half
        self._kernels = kernels_for(atoms)
        self.n_atoms = len(atoms)
        self.energy = signals.double().square().sum(1)

    def at_once(self, n_listed: int, precise: bool) -> int:
        """Return for how many signals to compute gradients together."""
        itemsize = 8 if precise else self._half.rows.element_size()
        n_bytes = itemsize * _wide(min(self.n_atoms, _ATOMS_AT_ONCE))
        if self._kernels is None:
            n_bytes += 8 * n_listed * self._atoms.shape[1]
        return max(1, memory_for(self._atoms) // n_bytes)

    def solved_at_once(self, n_listed: int, exact: bool) -> int:
        """Return how many small problems to solve together."""
        n_bytes = 8 * n_listed * n_listed
        if self._is_exact(n_listed, exact):
            n_bytes += 8 * n_listed * self._atoms.shape[1]
        return max(1, memory_for(self._atoms) // max(n_bytes, 1))

    def _is_exact(self, n_listed: int, wanted: bool) -> bool:
        """Whether small problems are made from the atoms as they are, in float64."""
        return wanted or self._kernels is None or n_listed > self._kernels.MOST_ATOMS

    def gradients(self, lists: Lists, above: float, wanted: int, positive: bool) -> Gradients:
        """Return gradients over all atoms, of which at most ``wanted`` above ``above`` are found.

        Of codes of stage 0 they are screens.
        """
        x, precise = self._signals[lists.who], lists.stage > 0
        r = self._residuals(x, lists.atoms, lists.weights)
        error, fit = r.square().sum(1), torch.linalg.vecdot(x.double(), r)
        lowest, scale, rows = torch.full_like(error, above), None, r
        if not precise:
            norms = error.sqrt().clamp(min=torch.finfo(torch.float64).tiny)
            scale = norms * self._half.unit
            lowest = lowest / scale
            rows = (r / norms[:, None]).to(self._half.rows.dtype)
        found = _Largest(self.n_atoms, lists.atoms, lowest, wanted, positive)
        for first in range(0, self.n_atoms, _ATOMS_AT_ONCE):
            part = slice(first, first + _ATOMS_AT_ONCE)
            columns = (self._atoms[part].double() if precise else self._half.rows[part]).T
            width = columns.shape[1]
            c = rows.new_empty((len(rows), _wide(width)))
            torch.mm(rows, columns, out=c[:, :width])
            c[:, width:] = 0.0
            found.take(c, first, width)
        return found.gradients(error, fit, r, scale)

    def _residuals(self, x: Tensor, atoms: Tensor, weights: Tensor) -> Tensor:
        """Return x - D'w, (n, n_features) float64."""
        if not atoms.shape[1]:
            return x.double()
        if self._kernels is not None:
            return self._kernels.residuals(x, self._atoms, atoms, weights)
        return x.double() - (weights[:, None] @ self._own(atoms))[:, 0]

    def _own(self, atoms: Tensor) -> Tensor:
        """Return every signal's own atoms, (n, K, n_features) float64; zeros pad lists."""
        own = self._atoms[atoms.clamp(min=0).long()].double()
        return own.masked_fill_((atoms < 0)[:, :, None], 0.0)

    def small_problems(self, lists: Lists) -> Small:
        """Return the problems among each signal's atoms, for the change of its code."""
        _, atoms, weights, residuals, stage = lists
        assert residuals is not None  # ``gradients`` returns them
        kernels, unit = self._kernels, self._half.unit
        if kernels is None or self._is_exact(atoms.shape[1], stage == EXACT):
            own = self._own(atoms)
            return Small(own @ own.mT, (own @ residuals[:, :, None])[:, :, 0], weights)
        gradients = kernels.gradients_at(residuals, self._atoms, atoms) / unit
        return Small(kernels.small_grams(self._half.rows, atoms), gradients, weights * unit, unit)


class _DenseView:
    """Signals whose inner products with all atoms are held, (n, n_atoms) float64."""

    screens = False

    def __init__(self, b: Tensor, energy: Tensor) -> None:
        self._b, self.energy, self.n_atoms = b, energy, b.shape[1]

    def at_once(self, n_listed: int, precise: bool) -> int:
        """Return for how many signals to compute gradients together."""
        return max(1, memory_for(self._b) // (24 * max(self.n_atoms, 1)))

    def solved_at_once(self, n_listed: int, exact: bool) -> int:
        """Return how many small problems to solve together."""
        return max(1, memory_for(self._b) // (16 * max(n_listed, 1) ** 2))

    def _gram_times(self, atoms: Tensor, weights: Tensor) -> Tensor:
        raise NotImplementedError

    def gradients(self, lists: Lists, above: float, wanted: int, positive: bool) -> Gradients:
        """Return gradients over all atoms, always precise."""
        who, atoms, weights, *_ = lists
        b, energy = self._b[who], self.energy[who]
        c = torch.nn.functional.pad(b, (0, _wide(self.n_atoms) - self.n_atoms))
        if atoms.shape[1]:
            c[:, : self.n_atoms] -= self._gram_times(atoms, weights)
        found = _Largest(self.n_atoms, atoms, torch.full_like(energy, above), wanted, positive)
        found.take(c, 0, self.n_atoms)
        # Without vectors: |r|^2 = k(x, x) - 2 b'w + w'G w, as it comes out.
        own_b = _at(b, atoms)
        bw, wgw = (own_b * weights).sum(1), ((own_b - found.own) * weights).sum(1)
        return found.gradients(energy - 2 * bw + wgw, energy - bw)


def _at(x: Tensor, atoms: Tensor) -> Tensor:
    """Return of every row the numbers of its atoms, 0 for -1."""
    return torch.where(atoms >= 0, x.gather(1, atoms.clamp(min=0).long()), 0.0)


class GramView(_DenseView):
    """Signals over atoms whose Gram matrix (n_atoms, n_atoms) is known; ``wide`` is in float64."""

    def __init__(self, gram: Tensor, wide: Tensor, b: Tensor, energy: Tensor) -> None:
        super().__init__(b, energy)
        self._gram, self._wide = gram, wide

    def _gram_times(self, atoms: Tensor, weights: Tensor) -> Tensor:
        dense = weights.new_zeros((len(weights), self.n_atoms + 1))
        places = torch.where(atoms >= 0, atoms, self.n_atoms).long()
        dense.scatter_add_(1, places, weights)
        return dense[:, :-1] @ self._wide

    def small_problems(self, lists: Lists) -> Small:
        """Return the problems among each signal's atoms."""
        return Small(gather(self._gram, lists.atoms), _at(self._b[lists.who], lists.atoms))


class CallbackView(_DenseView):
    """Signals ``first`` to ``first + n`` of a problem known by callables."""

    def __init__(
        self,
        local: Callable[[int, int, Tensor], tuple[Tensor, Tensor]],
        gram_times: Callable[[Tensor, Tensor], Tensor],
        b: Tensor,
        energy: Tensor,
        first: int,
        dtype: torch.dtype,
    ) -> None:
        super().__init__(b, energy)
        self._local, self._ask, self._first, self._dtype = local, gram_times, first, dtype

    def _gram_times(self, atoms: Tensor, weights: Tensor) -> Tensor:
        return self._ask(weights.to(self._dtype), atoms).double()

    def small_problems(self, lists: Lists) -> Small:
        """Return the problems among each signal's atoms."""
        who, atoms, *_ = lists
        # Problems are asked for by ranges of signals; those in between have no atoms.
        low, high = int(who.min()), int(who.max()) + 1
        in_range = atoms.new_full((high - low, atoms.shape[1]), -1)
        in_range[who - low] = atoms
        grams, corr = self._local(self._first + low, self._first + high, in_range)
        shape = (high - low, atoms.shape[1])
        check_shape(corr, "local correlations", shape)
        check_shape(grams, "local Gram matrices", (*shape, shape[1]))
        return Small(grams[who - low], corr[who - low].double())


#: A block of signals over all atoms.
View = RowsView | GramView | CallbackView
