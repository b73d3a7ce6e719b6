"""Block coordinate descent on atoms as a Triton kernel; the method is in ``engine.cpu.atoms``.

Atoms go one after another, each some additions of rows: too little work for launches of its own. So
one program goes over the atoms of a block, rows passing through its cache, and what other blocks do
to these is a matrix product before it.
"""

from typing import Any

import torch
import triton
import triton.language as tl

# Features, and steps of atoms before, that the program holds at once.
_FEATURES, _STEPS = 1024, 8


@triton.jit
def _descend(  # type: ignore[no-untyped-def]
    gram, left, atoms, steps, moved, stride, n_block, n_features,
    P: tl.constexpr, S: tl.constexpr,
):  # fmt: skip
    k = tl.arange(0, P)
    moves = tl.zeros((P,), tl.float64)
    for j in range(n_block):
        atom, step = atoms + j * n_features, steps + j * n_features
        own = tl.load(gram + j * stride + j)
        # Atoms without users keep their place.
        n_own = tl.where(own > 0, n_features, 0)
        n_still = n_features - n_own
        for first in range(0, n_still, P):
            tl.store(step + first + k, tl.zeros((P,), tl.float64), mask=first + k < n_still)
        largest = own
        for first in range(0, n_own, P):
            f = first + k
            inside = f < n_own
            before = tl.load(atom + f, mask=inside, other=0.0)
            towards = own * before
            towards += tl.load(left + j * n_features + f, mask=inside, other=0.0)
            for earlier in range(0, j, S):
                i = earlier + tl.arange(0, S)
                a = tl.load(gram + j * stride + i, mask=i < j, other=0.0)
                theirs = steps + i[:, None] * n_features + f[None, :]
                mask = (i < j)[:, None] & inside[None, :]
                towards -= tl.sum(a[:, None] * tl.load(theirs, mask=mask, other=0.0), 0)
            tl.store(step + f, towards, mask=inside)
            largest = tl.maximum(largest, tl.max(tl.abs(towards), 0))
        tl.debug_barrier()
        # Squares of numbers between 0 and 1 neither overflow nor vanish together.
        norm2 = tl.zeros((P,), tl.float64)
        for first in range(0, n_own, P):
            share = tl.load(step + first + k, mask=first + k < n_own, other=0.0) / largest
            norm2 += share * share
        length = tl.maximum(own, largest * tl.sqrt(tl.sum(norm2, 0)))
        for first in range(0, n_own, P):
            f = first + k
            inside = f < n_own
            new = tl.load(step + f, mask=inside, other=0.0) / length
            change = new - tl.load(atom + f, mask=inside, other=0.0)
            tl.store(atom + f, new, mask=inside)
            tl.store(step + f, change, mask=inside)
            moves += own * change * change
        tl.debug_barrier()  # other threads read these steps
    tl.store(moved, tl.load(moved) + tl.sum(moves, 0))


def descend_block(gram: Any, left: Any, atoms: Any, start: int, moved: Any) -> None:
    """Improve atoms ``start``, ``start + 1``, ... in turn; all arrays are float64 and contiguous.

    Parameters
    ----------
    gram : (n_atoms, n_atoms)
        A, the sums of products of coefficients.
    left : (n_block, n_features)
        B - A D of these atoms before.
    atoms : (n_atoms, n_features)
        All atoms; those of the block are replaced by better ones.
    start : int
        The first atom of the block.
    moved : ()
        What atoms moved, sum_j A_jj |step_j|^2, is added to it.
    """
    n_block, n_features = left.shape
    P = min(max(16, triton.next_power_of_2(n_features)), _FEATURES)
    _descend[(1,)](
        gram[start:, start:], left, atoms[start:], torch.empty_like(left), moved, len(atoms),
        n_block, n_features, P=P, S=_STEPS, num_warps=max(1, P // 128),
    )  # fmt: skip
