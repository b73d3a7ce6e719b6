"""The sums of codes that learners need, and block coordinate descent on atoms from them.

The method is in ``engine.cpu.atoms``. On a card one launch improves a block of atoms
(``atoms_kernels``).
"""

from typing import Any

import torch

from kernelatoms.engine.gpu.arrays.products import matmul
from kernelatoms.engine.gpu.arrays.work import compiles_for

# Bytes of codes that are dense at once.
_AT_ONCE = 1 << 28
# As of engine.cpu.atoms.
_BLOCK, _SMALL_MOVE = 32, 1e-12


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
        from kernelatoms.engine.gpu.learning import atoms_kernels

        descend_block = atoms_kernels.descend_block
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
    """Do what ``atoms_kernels.descend_block`` says in plain torch, some launches per atom."""
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
