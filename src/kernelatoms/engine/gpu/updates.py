"""Dictionary updates: sums of codes, block coordinate descent on atoms from them, K-SVD sweeps.

The methods are in ``engine.cpu.atoms`` and ``engine.cpu.ksvd``. On a card one launch improves a
block of atoms, or sweeps over all atoms of many dictionaries (``update_kernels``). In plain torch
an alternation of K-SVD is two products of the errors of an atom's signals with a vector; the host
reads nothing but how many these are.
"""

import os
from collections import defaultdict
from itertools import accumulate
from typing import Any

import torch

from kernelatoms.engine.cpu.atoms import _BLOCK, _SMALL_MOVE
from kernelatoms.engine.gpu.arrays.linalg import matmul
from kernelatoms.engine.gpu.arrays.work import (
    UPDATES_TOGETHER,
    compiles_for,
    for_blocks,
    in_halves,
    on_card,
)

# Bytes of codes that are dense at once.
_AT_ONCE = 1 << 28
# Triton's interpreter runs programs one after another: none can wait for the others.
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def sum_products(
    indptr: Any, indices: Any, values: Any, signals: Any, n_atoms: int
) -> tuple[Any, Any]:
    """Return W'W and W'X of sparse codes W, both in float64.

    Blocks of codes are made dense: a card multiplies zeros faster than it skips them.
    """
    device = signals.device
    gram = torch.zeros((n_atoms, n_atoms), dtype=torch.float64, device=device)
    cross = torch.zeros((n_atoms, signals.shape[1]), dtype=torch.float64, device=device)
    counts = torch.diff(indptr)
    step = max(_AT_ONCE // (8 * max(n_atoms, 1)), 256)
    edges = [*indptr[::step].tolist(), len(indices)]
    for i, start in enumerate(range(0, len(signals), step)):
        rows, own = signals[start : start + step].double(), slice(edges[i], edges[i + 1])
        numbers = torch.repeat_interleave(
            torch.arange(len(rows), device=device), counts[start : start + step]
        )
        codes = torch.zeros((len(rows), n_atoms), dtype=torch.float64, device=device)
        codes[numbers, indices[own].long()] = values[own].double()
        gram += matmul(codes.T, codes)
        cross += matmul(codes.T, rows)
    return (gram + gram.T) / 2, cross


def descend_atoms(gram: Any, cross: Any, dictionary: Any, n_sweeps: int) -> int:
    """Improve every atom in turn, ``n_sweeps`` times or until a sweep hardly moves any."""
    gram, cross = gram.contiguous(), cross.contiguous()
    atoms = dictionary.to(torch.float64, copy=True, memory_format=torch.contiguous_format)
    descend_block = _descend_block
    if compiles_for(atoms.device):
        from kernelatoms.engine.gpu import update_kernels

        descend_block = update_kernels.descend_block
    least = _SMALL_MOVE * gram.diagonal().sum()
    n_made = 0
    while n_made < n_sweeps:
        n_made += 1
        moved = torch.zeros((), dtype=torch.float64, device=atoms.device)
        for start in range(0, len(atoms), _BLOCK):
            rows = slice(start, start + _BLOCK)
            left = torch.addmm(cross[rows], gram[rows], atoms, alpha=-1)
            descend_block(gram, left, atoms, start, moved)
        if bool(moved <= least):
            break
    dictionary.copy_(atoms)
    return n_made


def _descend_block(gram: Any, left: Any, atoms: Any, start: int, moved: Any) -> None:
    """Do what ``kernels.descend_block`` says in plain torch, some launches per atom."""
    rows = slice(start, start + len(left))
    gram, atoms = gram[rows, rows], atoms[rows]
    owns, before = gram.diagonal(), atoms.clone()
    towards = torch.addcmul(left, owns[:, None], before)
    for j in range(len(atoms)):
        own = owns[j]
        # Squares of numbers between 0 and 1 neither overflow nor vanish together.
        largest = torch.maximum(own, torch.linalg.vector_norm(towards[j], torch.inf))
        norm = torch.linalg.vector_norm(towards[j] / largest)
        new = towards[j] / torch.maximum(own, largest * norm)
        # Atoms without users keep their place.
        atoms[j] = torch.where(own > 0, new, before[j])
        towards[j + 1 :].addr_(gram[j + 1 :, j], atoms[j] - before[j], alpha=-1)
    moved += torch.dot(owns, (atoms - before).square().sum(1))


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
        from kernelatoms.engine.gpu import update_kernels

        n_nonzeros = UPDATES_TOGETHER * indices.numel()
        fits = update_kernels.fits(len(residual), residual.shape[1], n_nonzeros)
        widths = (residual.shape[1], indices.shape[1], residual.dtype)
        groups[widths if fits else id(residual)].append((*own, n_alternations, n_sweeps))
    for some in groups.values():
        with on_card(some[0][0].device):
            in_halves(_sweep_all, some)


def _sweep_all(asked: list[Any], at_once: bool = not _INTERPRETED) -> list[None]:
    """Do the same for dictionaries over signals of one width and type, or one, in Triton.

    They become one of all their atoms, over the signals of all: in one launch, or in one from a
    meeting of programs to the next.
    """
    from kernelatoms.engine.gpu import update_kernels

    residuals, dictionaries, indices, values, (n_alternations, *_), (n_sweeps, *_) = zip(
        *asked, strict=True
    )
    bounds = [0, *accumulate(map(len, dictionaries))]
    shifted = [
        torch.where(own >= 0, own + first, -1) for own, first in zip(indices, bounds, strict=False)
    ]
    rows, places, starts = _users_of_atoms(torch.cat(shifted), bounds[-1])
    most_users = int(torch.diff(starts).max())
    if not update_kernels.fits(most_users, residuals[0].shape[1], len(rows)):
        for given in asked:
            _sweep_one_by_one(*given)
        return [None] * len(asked)
    left, atoms, old = map(_stacked, (residuals, dictionaries, values))
    new = update_kernels.sweep(
        left, atoms, old.reshape(-1)[places], rows.int(), starts.int(), bounds, most_users,
        n_alternations, n_sweeps, at_once,
    )  # fmt: skip
    weights = torch.empty_like(new).scatter_(0, places, new).view(old.shape)
    for ours, theirs in ((left, residuals), (atoms, dictionaries), (weights, values)):
        for found, given in zip(ours.split(list(map(len, theirs))), theirs, strict=True):
            given.copy_(found)
    return [None] * len(asked)


def _stacked(parts: tuple[Any, ...]) -> Any:
    """Return the rows of all parts, of one part as they are."""
    return parts[0].contiguous() if len(parts) == 1 else torch.cat(parts)


def _sweep_one_by_one(
    residual: Any, dictionary: Any, indices: Any, values: Any, n_alternations: int, n_sweeps: int
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
