"""Greedy pursuits over the atoms themselves: no Gram matrix, no matrix of signals and atoms.

What changes with a step is the residual. Its correlations are computed for some thousand atoms at a
time and not kept; inner products of picked atoms are computed when a step needs them. OLS keeps
one number for every signal and atom: what is left of the atom.
"""

import torch
from torch import Tensor

from kernelatoms.engine.gpu.arrays.products import matmul
from kernelatoms.engine.gpu.greedy.sources import Limits, Live, Source, combined_rows

#: Atoms whose correlations with a block of residuals are in memory at once.
TILE = 4096


class AtomRows(Source):
    """Signals and atoms as rows of numbers.

    Parameters
    ----------
    atoms : (n_atoms, n_features)
        The atoms.
    norms2 : (n_atoms,)
        Their squared norms.
    signals : (n_signals, n_features)
        The signals; only read.
    use_ols, positive, limits
        As of ``GramRows``.
    """

    def __init__(
        self,
        atoms: Tensor,
        norms2: Tensor,
        signals: Tensor,
        use_ols: bool,
        positive: bool,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(signals, len(atoms), use_ols, positive, limits)
        self.atoms, self.norms2 = atoms, norms2

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
            found |= self._above(here, least, self.norms2[part])
        return found

    def norms(self, which: Tensor, atoms: Tensor) -> Tensor:
        """Return the squared norms of atoms (n, m)."""
        return self.norms2[atoms]

    def inner(self, which: Tensor, picked: Tensor, atom: Tensor) -> Tensor:
        """Return the inner products (n, k) of picked atoms (n, k) with one more (n,)."""
        return self._products(picked, self.atoms[atom])

    def targets(self, which: Tensor, picked: Tensor) -> Tensor:
        """Return the inner products (n, k) of signals with their picked atoms."""
        return self._products(picked, self.signals[which])

    def combined(self, which: Tensor, picked: Tensor, coefs: Tensor) -> Tensor:
        """Return picked atoms combined by coefs (n, k): rows (n, n_features)."""
        return combined_rows(self.atoms, picked, coefs)

    def first_beyond(self, which: Tensor) -> Tensor:
        """Return the squared norms (n, n_atoms) of all atoms, infinite for zero atoms."""
        return self.norms2.masked_fill(self.norms2 <= 0, torch.inf).expand(len(which), -1)

    def less_spanned(self, which: Tensor, beyond: Tensor, combined: Tensor) -> Tensor:
        """Return ``beyond`` with one direction more spanned."""
        out = torch.empty_like(beyond, memory_format=torch.contiguous_format)
        for first in range(0, self.n_atoms, TILE):
            part = slice(first, first + TILE)
            products = matmul(combined, self.atoms[part].T)
            out[:, part] = self._left_beyond(beyond[:, part], products, self.norms2[part])
        return out

    def _products(self, picked: Tensor, rows: Tensor) -> Tensor:
        # One picked atom after the other: all of them at once would be k times the signals.
        products = [(self.atoms[atoms] * rows).sum(dim=1) for atoms in picked.T]
        return torch.stack(products, dim=1) if products else rows[:, :0]
