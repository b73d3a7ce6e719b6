"""The K-SVD sweep over atoms, and residuals of padded codes; the method is in ``engine.cpu.ksvd``.

Atoms go one after another. The signals of an atom are lists, sorted once. On a card all of it is
one launch (``ksvd_kernels``). In plain torch an alternation is two products of the errors of an
atom's signals with a vector; the host knows how long the lists are and looks at nothing else.
"""

import os
from typing import Any

import torch

from kernelatoms.engine.gpu.exact import matmul
from kernelatoms.engine.gpu.kernels import compiles_for
from kernelatoms.engine.gpu.work import for_blocks


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
    if not indices.numel():
        return
    rows, places, starts = _users_of_atoms(indices, len(dictionary))
    asked = (n_alternations, n_sweeps)
    if compiles_for(residual.device):
        from kernelatoms.engine.gpu import ksvd_kernels as kernels

        most = int(torch.diff(starts).max())
        if kernels.fits(most, residual.shape[1], len(rows)):
            # Its interpreter runs programs one after another: none can wait for the others.
            together = os.environ.get("TRITON_INTERPRET") != "1"
            _sweep_at_once(
                residual, dictionary, values, rows, places, starts, most, *asked, together
            )
            return
    _sweep_one_by_one(residual, dictionary, values, rows, places, starts.tolist(), *asked)


def _sweep_at_once(
    residual: Any,
    dictionary: Any,
    values: Any,
    rows: Any,
    places: Any,
    starts: Any,
    most: int,
    n_alternations: int,
    n_sweeps: int,
    together: bool,
) -> None:
    """Do the same in Triton; ``most`` is the most signals of an atom."""
    from kernelatoms.engine.gpu import ksvd_kernels as kernels

    left, atoms, flat = residual.contiguous(), dictionary.contiguous(), values.reshape(-1)
    new = kernels.sweep(left, atoms, flat[places], rows.int(), starts.int(), most, n_alternations,
                        n_sweeps, together)  # fmt: skip
    values.copy_(torch.empty_like(flat).scatter_(0, places, new).view(values.shape))
    for given, found in ((residual, left), (dictionary, atoms)):
        if found is not given:
            given.copy_(found)


def _sweep_one_by_one(
    residual: Any,
    dictionary: Any,
    values: Any,
    rows: Any,
    places: Any,
    starts: list[int],
    n_alternations: int,
    n_sweeps: int,
) -> None:
    """Do the same in plain torch, some launches an atom."""
    flat = values.reshape(-1)
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
        # An atom without a direction stays as it is: no look at it, which the host would wait for.
        sound = sound & (norm2 > 0)
        direction = towards * torch.where(norm2 > 0, norm2, 1).rsqrt()
        new = old * torch.dot(direction, before) + matmul(errors, direction)
    new, direction = torch.where(sound, new, old), torch.where(sound, direction, before)
    residual[rows] = errors + torch.outer(old, before) - torch.outer(new, direction)
    values[places] = new
    atom.copy_(direction)
