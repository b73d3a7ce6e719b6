"""Residuals of signals per class of atoms.

Parameters and results are those of the functions of the same names in
``engine.cpu.class_parts``, which has the formula.
"""

from typing import Any

import torch

from kernelatoms.engine.gpu.arrays.products import matmul

# Bytes of rows and atoms gathered at once.
_AT_ONCE = 1 << 28


def products_at(rows: Any, atoms: Any, indptr: Any, indices: Any) -> Any:
    """Return the inner products of rows with the atoms that their codes use, in one list."""
    signals, picked = _of_nonzeros(indptr, indices)
    out = torch.empty(len(picked), dtype=rows.dtype, device=rows.device)
    step = max(_AT_ONCE // max(rows.shape[1] * rows.element_size(), 1), 1)
    for start in range(0, len(picked), step):
        part = slice(start, start + step)
        out[part] = (rows[signals[part]] * atoms[picked[part]]).sum(1)
    return out


def _of_nonzeros(indptr: Any, indices: Any) -> tuple[Any, Any]:
    """Return the signal and the atom of every nonzero from indptr[0] to indptr[-1]."""
    first, last = (int(end) for end in indptr[[0, -1]].tolist())
    numbers = torch.arange(len(indptr) - 1, device=indptr.device)
    signals = torch.repeat_interleave(numbers, torch.diff(indptr), output_size=last - first)
    return signals, indices[first:last].long()


def subtract_class_parts(
    gram: Any, corr: Any, indptr: Any, indices: Any, values: Any, owner: Any, out: Any
) -> None:
    """Take what each class explains off ``out``, which holds the signals' energies."""
    first, last = (int(end) for end in indptr[[0, -1]].tolist())
    if first == last:
        return
    n_signals = len(out)
    counts = torch.diff(indptr)
    width = int(counts.max())
    # In padded rows: the pairs of a signal's nonzeros are then a matrix of their own.
    places = torch.arange(width, device=out.device) < counts[:, None]
    atoms = torch.zeros((n_signals, width), dtype=torch.int64, device=out.device)
    weights, along = (
        torch.zeros((n_signals, width), dtype=torch.float64, device=out.device) for _ in range(2)
    )
    atoms[places] = indices[first:last].long()
    weights[places] = values[first:last].double()
    along[places] = corr.double()
    classes = torch.arange(out.shape[1], device=out.device)[:, None]
    step = max(_AT_ONCE // (8 * width * (width + len(classes))), 1)
    for start in range(0, n_signals, step):
        part = slice(start, start + step)
        w, own, names = weights[part], owner[atoms[part]], atoms[part]
        pairs = gram[names[:, :, None], names[:, None]].double()
        pairs = torch.where(own[:, :, None] == own[:, None], pairs, 0)
        change = w * (matmul(pairs, w[:, :, None])[:, :, 0] - 2 * along[part])
        # Summed up class by class and not scattered: in the same order every time.
        out[part] += torch.where(own[:, None] == classes, change[:, None], 0).sum(-1)


def subtract_dense_class_parts(
    grams: list[Any], corr: Any, codes: Any, members: list[Any], out: Any
) -> None:
    """As ``subtract_class_parts``, for codes where most coefficients are nonzero."""
    for c, atoms in enumerate(members):
        theirs = codes[:, atoms]
        explained = matmul(theirs, grams[c].to(theirs.dtype)) - 2 * corr[:, atoms]
        out[:, c] += (explained * theirs).sum(1)
