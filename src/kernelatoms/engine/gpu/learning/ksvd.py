"""The K-SVD sweep over atoms, and residuals of padded codes; the method is in ``engine.cpu.ksvd``.

Atoms go one after another. The signals of an atom are lists, sorted once. On a card all of it is
one launch (``ksvd_kernels``), for many dictionaries at a time (``sweep_atoms_all``). In
plain torch an alternation is two products of the errors of an atom's signals with a vector; the
host reads nothing but the lengths of the lists.
"""

import os
from collections import defaultdict
from contextlib import nullcontext
from itertools import accumulate
from typing import Any

import torch

from kernelatoms.engine.gpu.arrays.products import matmul
from kernelatoms.engine.gpu.arrays.work import (
    UPDATES_TOGETHER,
    compiles_for,
    for_blocks,
    in_halves,
)


def residuals(signals: Any, dictionary: Any, indices: Any, values: Any) -> Any:
    """Return signals less their reconstructions, row by row."""
    out = signals.clone()

    def work(start: int, stop: int) -> None:
        atoms = dictionary[indices[start:stop].long()]  # -1 is the last, with weight 0
        weights = torch.where(indices[start:stop] >= 0, values[start:stop], 0)
        out[start:stop] -= matmul(weights[:, None], atoms)[:, 0]

    for_blocks(len(out), indices.shape[1] * signals.shape[1], signals.element_size(), work)
    return out


def _users_of_atoms(indices: Any, n_atoms: int) -> tuple[Any, Any, Any]:
    """Return the nonzeros sorted by atom: their rows, their places, and where atoms begin."""
    flat, order = torch.sort(indices.reshape(-1), stable=True)
    # Those of no atom, -1, come first.
    atoms = torch.arange(n_atoms + 1, dtype=flat.dtype, device=flat.device)
    starts = torch.searchsorted(flat, atoms)
    return torch.div(order, indices.shape[1], rounding_mode="floor"), order, starts


def sweep_atoms(
    residual: Any,
    dictionary: Any,
    indices: Any,
    values: Any,
    n_alternations: int,
    n_sweeps: int = 1,
) -> None:
    """Improve every atom and its coefficients in turn; all arrays but ``indices`` are updated."""
    sweep_atoms_all([(residual, dictionary, indices, values)], n_alternations, n_sweeps)


def sweep_atoms_all(
    given: list[tuple[Any, Any, Any, Any]], n_alternations: int, n_sweeps: int = 1
) -> None:
    """Do the same for many dictionaries, each with (residual, dictionary, indices, values)."""
    groups = defaultdict[Any, list[Any]](list)
    for own in given:
        residual, _, indices, _ = own
        if not indices.numel():
            continue
        if not compiles_for(residual.device):
            _sweep_one_by_one(*own, n_alternations, n_sweeps)
            continue
        from kernelatoms.engine.gpu.learning import ksvd_kernels as kernels

        fits = kernels.fits(len(residual), residual.shape[1], UPDATES_TOGETHER * indices.numel())
        widths = (residual.shape[1], indices.shape[1], residual.dtype)
        groups[widths if fits else id(residual)].append((*own, n_alternations, n_sweeps))
    for some in groups.values():
        device = some[0][0].device
        with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
            in_halves(_sweep_all, some)


def _sweep_all(asked: list[Any]) -> list[None]:
    """Do the same for dictionaries over signals of one width and type, or one, in Triton."""
    from kernelatoms.engine.gpu.learning import ksvd_kernels as kernels

    *_, n_alternations, n_sweeps = asked[0]
    dictionaries = _AsOne([given[:4] for given in asked])
    if kernels.fits(dictionaries.most_users, asked[0][0].shape[1], len(dictionaries.rows)):
        # Its interpreter runs programs one after another: none can wait for the others.
        dictionaries.sweep(n_alternations, n_sweeps, os.environ.get("TRITON_INTERPRET") != "1")
    else:
        for given in asked:
            _sweep_one_by_one(*given)
    return [None] * len(asked)


class _AsOne:
    """Several dictionaries as one of all their atoms, over the signals of all.

    Parameters
    ----------
    given : list of (residual, dictionary, indices, values)
        As of ``sweep_atoms``.
    """

    def __init__(self, given: list[tuple[Any, Any, Any, Any]]) -> None:
        self.given = given
        _, dictionaries, indices, _ = zip(*given, strict=True)
        self.bounds = [0, *accumulate(map(len, dictionaries))]
        shifted = [
            torch.where(own >= 0, own + first, -1)
            for own, first in zip(indices, self.bounds, strict=False)
        ]
        self.rows, self.places, self.starts = _users_of_atoms(torch.cat(shifted), self.bounds[-1])
        self.most_users = int(torch.diff(self.starts).max())

    def sweep(self, n_alternations: int, n_sweeps: int, at_once: bool) -> None:
        """Sweep over all atoms in Triton, in one launch or one from a meeting to the next."""
        from kernelatoms.engine.gpu.learning import ksvd_kernels as kernels

        residuals, dictionaries, _, values = zip(*self.given, strict=True)
        left, atoms, old = map(_stacked, (residuals, dictionaries, values))
        new = kernels.sweep(
            left, atoms, old.reshape(-1)[self.places], self.rows.int(), self.starts.int(),
            self.bounds, self.most_users, n_alternations, n_sweeps, at_once,
        )  # fmt: skip
        weights = torch.empty_like(new).scatter_(0, self.places, new).view(old.shape)
        for ours, theirs in ((left, residuals), (atoms, dictionaries), (weights, values)):
            for found, given in zip(ours.split(list(map(len, theirs))), theirs, strict=True):
                given.copy_(found)


def _stacked(parts: tuple[Any, ...]) -> Any:
    """Return the rows of all parts, of one part as they are."""
    return parts[0].contiguous() if len(parts) == 1 else torch.cat(parts)


def _sweep_one_by_one(
    residual: Any,
    dictionary: Any,
    indices: Any,
    values: Any,
    n_alternations: int,
    n_sweeps: int,
) -> None:
    """Do the same in plain torch, some launches per atom."""
    rows, places, where = _users_of_atoms(indices, len(dictionary))
    starts, flat = where.tolist(), values.reshape(-1)
    for _ in range(n_sweeps):
        for atom in range(len(dictionary)):
            users = slice(starts[atom], starts[atom + 1])
            if users.start < users.stop:
                _improve(residual, dictionary[atom], flat, rows[users], places[users],
                         n_alternations)  # fmt: skip
    values.copy_(flat.view(values.shape))


def _improve(
    residual: Any, atom: Any, values: Any, rows: Any, places: Any, n_alternations: int
) -> None:
    """Improve one atom (n_features,) and its coefficients, those at ``places`` of ``values``."""
    errors, old = residual[rows], values[places]
    new, before, sound = old, atom.clone(), torch.ones((), dtype=torch.bool, device=atom.device)
    direction = before
    # The error with the atom's own part added back is E = R + old before'.
    for _ in range(n_alternations):
        towards = torch.dot(old, new) * before + matmul(new, errors)
        norm2 = torch.dot(towards, towards)
        # An atom without a direction stays as it is; the host does not wait to find out.
        sound = sound & (norm2 > 0)
        direction = towards * torch.where(norm2 > 0, norm2, 1).rsqrt()
        new = old * torch.dot(direction, before) + matmul(errors, direction)
    new, direction = torch.where(sound, new, old), torch.where(sound, direction, before)
    residual[rows] = errors + torch.outer(old, before) - torch.outer(new, direction)
    values[places] = new
    atom.copy_(direction)
