"""Rows at about unit norm, so that one error for all values means the same for every row.

Norms are stored as powers of 2 to some steps an octave. Values are divided by the stored norm and
multiplied by it again: a coarse one costs nothing but a less even error.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.codec.data import Table
from reproduction.codec.packing import integer_bytes

Array = NDArray[Any]

_STEPS_AN_OCTAVE = (4, 8, 16, 32)
# Smallest norms of whole numbers to try, relative to where the bound means half a unit.
_LEAST = (0.9, 1.1, 1.3, 1.6)


@dataclass(frozen=True, eq=False)
class Scaling:
    """What values are divided by: stored norms of rows, made a factor for every value."""

    name: str
    norms: Array | None = None
    combined: str = ""
    n_bytes: int = 0

    def factor(self) -> Array:
        """Return the factor of every value, in the table's shape or one that broadcasts to it.

        A value of a symmetric matrix lies in two rows. Either the smaller norm decides; or the
        product of both, which leaves every row the same relative error.
        """
        if self.norms is None:
            return np.ones(1, np.float32)
        norms = self.norms.astype(np.float32)
        if not self.combined:
            return norms[..., None]
        if self.combined == "smaller":
            return np.minimum(norms[:, :, None], norms[:, None, :])
        mean = np.sqrt(np.mean(norms**2, axis=1))
        return norms[:, :, None] * norms[:, None, :] / mean[:, None, None]


def scalings(
    table: Table, bound: float, steps: tuple[int, ...] = _STEPS_AN_OCTAVE
) -> list[Scaling]:
    """Return no scaling, and rows at unit norm with norms to different precisions."""
    result = [Scaling("unscaled")]
    for n in steps:
        result += _of_nodes(table, n) if table.symmetric else _of_rows(table, n, bound)
    return result


def _of_rows(table: Table, steps: int, bound: float) -> list[Scaling]:
    """Return rows at unit norm; of whole numbers also with a smallest norm.

    Whole numbers that are off by less than a half are exact after rounding, so that rows with a
    finer bound need not be scaled.
    """
    codes = _octaves(table.row_norms, steps)
    name = f"rows at unit norm to 1/{steps} octave"
    result = [Scaling(name, np.exp2(codes / steps), "", integer_bytes(codes))]
    if table.integers:
        half = 0.5 * np.sqrt(table.values.shape[-1] / 3) / bound
        for least in _LEAST:
            raised = np.maximum(codes, round(steps * np.log2(least * half)))
            name_raised = f"{name}, {least * half:.0f} or more"
            scaling = Scaling(name_raised, np.exp2(raised / steps), "", integer_bytes(raised))
            result.append(scaling)
    return result


def _of_nodes(table: Table, steps: int) -> list[Scaling]:
    """Return symmetric slices with one norm per row, or per node: the smallest of its rows."""
    norms = table.row_norms
    result = []
    for name, these in (("rows", norms), ("nodes", norms.min(axis=0, keepdims=True))):
        codes = _octaves(these, steps)
        stored = np.broadcast_to(np.exp2(codes / steps), norms.shape)
        result += [
            Scaling(
                f"{name} at unit norm to 1/{steps} octave, {combined} of two", stored, combined,
                integer_bytes(codes),
            )
            for combined in ("smaller", "product")
        ]  # fmt: skip
    return result


def _octaves(norms: Array, steps: int) -> Array:
    """Return logarithms of norms as integers; that of a row without a norm is the one before."""
    known = norms > 0
    logs = np.round(steps * np.log2(np.where(known, norms, 1))).astype(np.int64)
    if norms.ndim > 1 or known.all():
        return logs
    last = np.maximum.accumulate(np.where(known, np.arange(len(norms)), 0))
    return logs[last]
