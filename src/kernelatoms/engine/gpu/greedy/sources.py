"""Sources of the inner products that greedy pursuits need.

A block of signals takes its steps together. For all of them at once, a source returns the best
atoms and their inner products with the picked ones, and updates what a step changes.

- ``GramRows``: one Gram matrix, or a small one per signal. A step changes the correlations of the
  residual with all atoms.
- ``RequestedRows``: the same with the rows of the picked atoms alone, computed on request.
- ``AtomRows``: the atoms themselves; no Gram matrix, no matrix of signals and atoms. A step changes
  the residual. Its correlations are computed for some thousand atoms at a time and not kept; inner
  products of picked atoms are computed when a step needs them. OLS keeps one number for every
  signal and atom: what is left of the atom.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

from kernelatoms.engine.cpu.products import check_shape
from kernelatoms.engine.gpu.arrays.linalg import matmul
from kernelatoms.engine.greedy_limits import Limits

#: Atoms whose correlations with a block of residuals are in memory at once.
TILE = 4096


@dataclass
class Live:
    """The pursuits of some signals, one row per signal. Columns from ``counts`` on are 0."""

    which: Tensor  # (n,) int64: the signal's place in the block
    until: Tensor  # (n,) float64: stop when this much energy is explained
    going: Tensor  # (n,) bool: it may take a step
    counts: Tensor  # (n,) int64: atoms picked
    picked: Tensor  # (n, room) int64: these atoms
    code: Tensor  # (n, room): their coefficients
    directions: Tensor  # (n, room, room): rows are orthonormal directions in picked atoms
    explained: Tensor  # (n,) float64: energy less that of the residual
    first: Tensor  # (n,) float64: what the first atom explained
    unsettled: Tensor  # (n,) bool: rounding ended the pursuit
    rest: Tensor  # (n, width): correlations of the residual with all atoms, or the residual
    beyond: Tensor  # (n, n_atoms) for OLS: |d|^2 less what is spanned; infinite if that is all

    def take(self, rows: Tensor) -> "Live":
        """Return a copy of some of the pursuits."""
        return Live(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})

    def put(self, rows: Tensor, others: "Live", *names: str) -> None:
        """Replace these numbers of some of the pursuits."""
        for name in names:
            getattr(self, name)[rows] = getattr(others, name)

    def grow(self, room: int) -> None:
        """Make room for more atoms."""
        more = room - self.picked.shape[1]
        self.picked = pad(self.picked, (0, more))
        self.code = pad(self.code, (0, more))
        self.directions = pad(self.directions, (0, more, 0, more))


class Rules(NamedTuple):
    """How atoms are picked, and what counts as rounding."""

    use_ols: bool  # by residual decrease instead of correlation
    positive: bool  # only positive correlations
    limits: Limits


class Source:
    """Base class of sources.

    Parameters
    ----------
    signals : (n_signals, width) float32 or float64
        What codes are subtracted from: correlations with all atoms, or the signals themselves.
    norms2 : (1 or n_signals, n_atoms)
        Squared norms of the atoms, one row per signal if each has its own.
    rules : Rules
        How atoms are picked.
    """

    def __init__(self, signals: Tensor, norms2: Tensor, rules: Rules) -> None:
        self.signals, self.norms2, self.n_atoms = signals, norms2, norms2.shape[1]
        self.own = len(norms2) > 1
        self.use_ols, self.positive, self.limits = rules

    def best(self, live: Live) -> tuple[Tensor, Tensor]:
        """Return the atom (n,) that each signal would pick, and its correlation (n,)."""
        raise NotImplementedError

    def any_above(self, live: Live, least: Tensor) -> Tensor:
        """Tell of which signals some atom by itself would explain more than ``least`` (n,)."""
        raise NotImplementedError

    def _above(self, corr: Tensor, least: Tensor, norms2: Tensor) -> Tensor:
        above = corr.double() ** 2 > least[:, None] * norms2
        return ((above & (corr > 0)) if self.positive else above).any(dim=1)

    def norms(self, which: Tensor, atoms: Tensor) -> Tensor:
        """Return the squared norms of atoms (n, m) of signals ``which``."""
        return self.norms2[which[:, None], atoms] if self.own else self.norms2[0][atoms]

    def inner(self, which: Tensor, picked: Tensor, atom: Tensor) -> Tensor:
        """Return the inner products (n, k) of picked atoms (n, k) with one more (n,)."""
        raise NotImplementedError

    def targets(self, which: Tensor, picked: Tensor) -> Tensor:
        """Return the inner products (n, k) of signals with their picked atoms."""
        raise NotImplementedError

    def grams(self, which: Tensor, picked: Tensor) -> Tensor:
        """Return the Gram matrices (n, k, k) of picked atoms in float64.

        From entries above the diagonal: only the column of an atom just picked may be known.
        """
        k = picked.shape[1]
        grams = torch.diag_embed(self.norms(which, picked).double())
        for j in range(1, k):
            column = self.inner(which, picked[:, :j], picked[:, j]).double()
            grams[:, :j, j] = column
            grams[:, j, :j] = column
        return grams

    def combined(self, which: Tensor, picked: Tensor, coefs: Tensor) -> Tensor:
        """Return picked atoms combined by coefs (n, k), as ``signals`` show them: (n, width)."""
        raise NotImplementedError

    def first_beyond(self, which: Tensor) -> Tensor:
        """Return the squared norms (n, n_atoms) of all atoms, infinite for zero atoms."""
        norms2 = self.norms2.masked_fill(self.norms2 <= 0, torch.inf)
        return norms2[which] if self.own else norms2.expand(len(which), -1)

    def less_spanned(self, which: Tensor, beyond: Tensor, combined: Tensor) -> Tensor:
        """Return ``beyond`` with one direction more, as ``combined`` returned it, spanned."""
        raise NotImplementedError

    def ask(self, live: Live) -> None:
        """Fetch what the picked atoms of signals that go on need."""

    def start(self, until: Tensor, room: int) -> Live:
        """Return pursuits that have picked nothing."""
        n, new = len(self.signals), self.signals.new_zeros
        which = torch.arange(n, device=self.signals.device)
        return Live(
            which=which, until=until, going=until > 0, counts=torch.zeros_like(which),
            picked=torch.zeros((n, room), dtype=torch.int64, device=which.device),
            code=new((n, room)), directions=new((n, room, room)),
            explained=new(n, dtype=torch.float64), first=new(n, dtype=torch.float64),
            unsettled=torch.zeros_like(until, dtype=torch.bool),
            rest=self.signals, beyond=self.first_beyond(which) if self.use_ols else new((n, 0)),
        )  # fmt: skip

    def advance(self, live: Live, step: Tensor, direction: Tensor, z: Tensor) -> None:
        """Subtract steps (n, k) from what is left; for OLS, z times directions (n, k)."""
        k = step.shape[1]
        picked = live.picked[:, :k]
        # New tensors: the first ones are the caller's.
        if not self.use_ols:
            live.rest = live.rest - self.combined(live.which, picked, step)
            return
        new = self.combined(live.which, picked, direction)
        live.rest = torch.addcmul(live.rest, z[:, None], new, value=-1)
        live.beyond = self.less_spanned(live.which, live.beyond, new)

    def restart(self, live: Live, k: int) -> None:
        """Compute what is left afresh from codes of at most k atoms and their directions."""
        picked = live.picked[:, :k]
        live.rest = self.signals[live.which] - self.combined(live.which, picked, live.code[:, :k])
        if self.use_ols:
            live.beyond = self.first_beyond(live.which)
            for j in range(k):
                new = self.combined(live.which, picked, live.directions[:, j, :k].contiguous())
                live.beyond = self.less_spanned(live.which, live.beyond, new)

    def _scores(self, corr: Tensor, beyond: Tensor) -> Tensor:
        """Return what the pick is the largest of."""
        if self.use_ols:
            scores = corr * corr / beyond
            return scores.masked_fill_(corr <= 0, 0) if self.positive else scores
        return corr if self.positive else corr.abs()

    def _left_beyond(self, beyond: Tensor, products: Tensor, norms2: Tensor) -> Tensor:
        """Return ``beyond`` less squared products with a new direction; infinite if rounding."""
        left = torch.addcmul(beyond, products, products, value=-1)
        return left.masked_fill_(left <= self.limits.spanned * norms2, torch.inf)


class GramRows(Source):
    """Signals known by their correlations ``corr`` (n_signals, n_atoms), atoms by Gram matrices.

    ``table`` (n_rows, n_atoms) has the rows of one, or of one small matrix after the other. Other
    arguments are those of ``Source``.
    """

    def __init__(self, table: Tensor, norms2: Tensor, rules: Rules, corr: Tensor) -> None:
        super().__init__(corr, norms2, rules)
        self.table = table

    def best(self, live: Live) -> tuple[Tensor, Tensor]:
        """Return the atom (n,) that each signal would pick, and its correlation (n,)."""
        atom = self._scores(live.rest, live.beyond).argmax(dim=1)
        return atom, live.rest.gather(1, atom[:, None])[:, 0]

    def any_above(self, live: Live, least: Tensor) -> Tensor:
        """Tell of which signals some atom by itself would explain more than ``least`` (n,)."""
        norms2 = self.norms2[live.which] if self.own else self.norms2
        return self._above(live.rest, least, norms2)

    def rows(self, which: Tensor, picked: Tensor) -> Tensor:
        """Return the rows of the table for picked atoms (n, k)."""
        return picked + which[:, None] * self.n_atoms if self.own else picked

    def inner(self, which: Tensor, picked: Tensor, atom: Tensor) -> Tensor:
        """Return the inner products (n, k) of picked atoms (n, k) with one more (n,)."""
        return self.table[self.rows(which, picked), atom[:, None]]

    def targets(self, which: Tensor, picked: Tensor) -> Tensor:
        """Return the inner products (n, k) of signals with their picked atoms."""
        return self.signals[which[:, None], picked]

    def combined(self, which: Tensor, picked: Tensor, coefs: Tensor) -> Tensor:
        """Return the products (n, n_atoms) of combined atoms with all atoms."""
        return _combined_rows(self.table, self.rows(which, picked), coefs)

    def less_spanned(self, which: Tensor, beyond: Tensor, combined: Tensor) -> Tensor:
        """Return ``beyond`` with one direction more spanned."""
        norms2 = self.norms2[which] if self.own else self.norms2
        return self._left_beyond(beyond, combined, norms2)


def local_gram_rows(rules: Rules, grams: Tensor, corr: Tensor) -> GramRows:
    """Return the source of signals over atoms of their own: (n, K, K), (n, K)."""
    n, n_local = corr.shape
    norms2 = grams.diagonal(dim1=1, dim2=2).contiguous()
    return GramRows(grams.reshape(n * n_local, n_local), norms2, rules, corr)


class RequestedRows(GramRows):
    """As ``GramRows``, with only the rows of picked atoms, fetched when they are picked.

    ``gram_rows(atoms)`` returns the inner products (m, n_atoms) of atoms (m,) int64 with all. From
    ``most_rows`` rows on, those that no signal needs any more are dropped.
    """

    def __init__(
        self,
        gram_rows: Callable[[Tensor], Tensor],
        norms2: Tensor,
        most_rows: int,
        rules: Rules,
        corr: Tensor,
    ) -> None:
        super().__init__(corr.new_empty((0, len(norms2))), norms2[None], rules, corr)
        self.gram_rows, self.most_rows = gram_rows, most_rows
        self.places = torch.full((len(norms2),), -1, dtype=torch.int64, device=corr.device)
        self.held = self.places[:0]  # the atoms of the table's rows, then of free ones

    def rows(self, which: Tensor, picked: Tensor) -> Tensor:
        """Return the rows of the table for picked atoms (n, k); any row for those not fetched."""
        return self.places[picked].clamp_(min=0)

    def ask(self, live: Live) -> None:
        """Fetch the Gram rows of the picked atoms of signals that go on."""
        filled = torch.arange(live.picked.shape[1], device=live.counts.device)
        used = live.going[:, None] & (filled < live.counts[:, None])
        self._have(live.picked[used].unique())

    def _have(self, needed: Tensor) -> None:
        new = needed[self.places[needed] < 0]
        if not len(new):
            return
        if len(self.held) + len(new) > self.most_rows:
            kept = needed[self.places[needed] >= 0]
            self.table, self.held = self.table[self.places[kept]], kept
            self.places.fill_(-1)
            self.places[kept] = torch.arange(len(kept), device=kept.device)
        n_held, n_all = len(self.held), len(self.held) + len(new)
        if n_all > len(self.table):
            # Twice as many, so that not every step copies rows.
            room = min(max(n_all, 2 * len(self.table)), max(n_all, self.most_rows))
            table = self.table.new_empty((room, self.n_atoms))
            table[:n_held] = self.table[:n_held]
            self.table = table
        fetched = self.gram_rows(new)
        check_shape(fetched, "Gram rows", (len(new), self.n_atoms))
        self.table[n_held:n_all] = fetched
        self.places[new] = torch.arange(n_held, n_all, device=new.device)
        self.held = torch.cat([self.held, new])


class AtomRows(Source):
    """Signals (n_signals, n_features) and atoms (n_atoms, n_features) as rows of numbers."""

    def __init__(self, atoms: Tensor, norms2: Tensor, rules: Rules, signals: Tensor) -> None:
        super().__init__(signals, norms2[None], rules)
        self.atoms = atoms

    def best(self, live: Live) -> tuple[Tensor, Tensor]:
        """Return the atom (n,) that each signal would pick, and its correlation (n,)."""
        atom, corr = torch.zeros_like(live.which), live.rest.new_zeros(len(live.which))
        best = torch.full_like(corr, -torch.inf)
        for first in range(0, self.n_atoms, TILE):
            part = slice(first, first + TILE)
            here = matmul(live.rest, self.atoms[part].T)
            top, at = self._scores(here, live.beyond[:, part]).max(dim=1)
            better = top > best
            best = torch.where(better, top, best)
            atom = torch.where(better, at + first, atom)
            corr = torch.where(better, here.gather(1, at[:, None])[:, 0], corr)
        return atom, corr

    def any_above(self, live: Live, least: Tensor) -> Tensor:
        """Tell of which signals some atom by itself would explain more than ``least`` (n,)."""
        found = torch.zeros_like(live.going)
        for first in range(0, self.n_atoms, TILE):
            part = slice(first, first + TILE)
            here = matmul(live.rest, self.atoms[part].T)
            found |= self._above(here, least, self.norms2[:, part])
        return found

    def inner(self, which: Tensor, picked: Tensor, atom: Tensor) -> Tensor:
        """Return the inner products (n, k) of picked atoms (n, k) with one more (n,)."""
        return self._products(picked, self.atoms[atom])

    def targets(self, which: Tensor, picked: Tensor) -> Tensor:
        """Return the inner products (n, k) of signals with their picked atoms."""
        return self._products(picked, self.signals[which])

    def combined(self, which: Tensor, picked: Tensor, coefs: Tensor) -> Tensor:
        """Return picked atoms combined by coefs (n, k): rows (n, n_features)."""
        return _combined_rows(self.atoms, picked, coefs)

    def less_spanned(self, which: Tensor, beyond: Tensor, combined: Tensor) -> Tensor:
        """Return ``beyond`` with one direction more spanned."""
        out = torch.empty_like(beyond, memory_format=torch.contiguous_format)
        for first in range(0, self.n_atoms, TILE):
            part = slice(first, first + TILE)
            products = matmul(combined, self.atoms[part].T)
            out[:, part] = self._left_beyond(beyond[:, part], products, self.norms2[:, part])
        return out

    def _products(self, picked: Tensor, rows: Tensor) -> Tensor:
        # One picked atom after the other: all of them at once would be k times the signals.
        products = [(self.atoms[atoms] * rows).sum(dim=1) for atoms in picked.T]
        return torch.stack(products, dim=1) if products else rows[:, :0]


def _combined_rows(table: Tensor, rows: Tensor, coefs: Tensor) -> Tensor:
    """Return sum_j coefs[:, j] * table[rows[:, j]], without a copy of these rows."""
    return embedding_bag(rows, table, per_sample_weights=coefs, mode="sum")
