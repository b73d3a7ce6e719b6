"""OMP of few signals in float64, on the Gram matrix: those that ``kernels`` leaves in doubt.

One program per signal. A step keeps only the atoms and their coefficients: the small system of the
picked atoms is solved afresh, and correlations are those of the signal less its approximation. That
is slower, and decides every case:

- picks that are closer to each other than float32 tells apart;
- atoms so alike that float32 loses what is left of them;
- steps that would make coefficients negative: non-negative least squares on the atoms picked
  (Lawson and Hanson 1974, ch. 23), as in ``nonnegative``.

Rounding is that of float32, the dtype of signals and codes; where inner products have the digits of
float64, that of signals and codes alone (``exact`` of ``engine/cpu/greedy.py``).

See docs/decisions/009-gpu-precision.md.
"""

import torch
import triton
import triton.language as tl

from kernelatoms.engine.gpu.greedy.kernels import _EPS, _ROUNDING, Coded
from kernelatoms.engine.gpu.greedy.nonnegative import SMALLEST_PIVOT
from kernelatoms.engine.greedy_limits import LARGEST_DOUBT

_LARGEST_DOUBT, _SMALLEST_PIVOT = tl.constexpr(LARGEST_DOUBT), tl.constexpr(SMALLEST_PIVOT)
_FAR = tl.constexpr(1e300)


@triton.jit
def _solve(gram, targets, passive, n_rows, K: tl.constexpr):
    """Return w with S[P, P] w = t[P], 0 elsewhere, and the pivots, by Gauss-Jordan elimination."""
    js = tl.arange(0, K)
    one = tl.where(js[:, None] == js[None, :], 1.0, 0.0).to(tl.float64)
    rest = tl.where(passive[:, None] & passive[None, :], gram, one)
    right = tl.where(passive, targets, 0.0)
    pivots = tl.zeros((K,), tl.float64) + 1.0
    for j in range(n_rows):
        here = js == j
        row = tl.sum(tl.where(here[:, None], rest, 0.0), 0)
        column = tl.sum(tl.where(here[None, :], rest, 0.0), 1)
        pivot = tl.sum(tl.where(here, row, 0.0), 0)
        pivots = tl.where(here, pivot, pivots)
        # Of a singular matrix, which its pivots tell, nothing is needed but numbers.
        factor = tl.where(here, 0.0, column / tl.where(pivot > 0.0, pivot, _FAR))
        right -= factor * tl.sum(tl.where(here, right, 0.0), 0)
        rest -= factor[:, None] * row[None, :]
    return tl.where(passive, right / tl.where(pivots > 0.0, pivots, _FAR), 0.0), pivots


@triton.jit
def _nonnegative(gram, targets, norms, used, w, vanishing, n_rows, K: tl.constexpr):
    """Minimise w'S w - 2 t'w over w >= 0 from a feasible w; return w, its atoms, and success."""
    js = tl.arange(0, K)
    passive, rounds, regular, busy = used, n_rows * 3, n_rows > 0, n_rows > 0
    # Each round lowers the objective, and in one at most all atoms leave: this ends.
    while busy:
        wanted, pivots = _solve(gram, targets, passive, n_rows, K)
        lost = passive & (pivots <= norms * _SMALLEST_PIVOT)
        regular = tl.sum(tl.where(lost, 1, 0), 0) == 0
        # Towards the least-squares code on the passive set, until an atom reaches zero.
        share = tl.where(w > 0.0, w / tl.where(w > wanted, w - wanted, 1.0), 0.0)
        share = tl.where(passive & (wanted <= 0.0), share, _FAR)
        shortest, leaver = tl.min(share, 0, return_indices=True)
        short = shortest < _FAR
        w = tl.where(passive, tl.where(short, w + shortest * (wanted - w), wanted), 0.0)
        leaves = passive & ((w <= 0.0) | (js == tl.where(short, leaver, -1)))
        w = tl.where(leaves, 0.0, w)
        passive = passive & (leaves == 0)
        # There: the atom of the steepest slope comes back.
        slopes = targets - tl.sum(gram * w[None, :], 1)
        gains = slopes * slopes / tl.where(norms > 0.0, norms, 1.0)
        gains = tl.where(used & (passive == 0) & (slopes > 0.0), gains, 0.0)
        gain, back = tl.max(gains, 0, return_indices=True)
        rounds = tl.where(short, rounds, rounds - 1)
        returns = (short == 0) & (gain > vanishing) & (rounds > 0)
        passive = passive | (js == tl.where(returns, back, -1))
        busy = (short | returns) & regular
    return w, passive, regular


@triton.jit
def _pursue_exactly(
    corr, gram, until, out_ids, out_values, out_counts, out_explained, out_unsettled, n_atoms,
    n_nonzero, K: tl.constexpr, M: tl.constexpr, POSITIVE: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(0).to(tl.int64)
    cols, js = tl.arange(0, M), tl.arange(0, K)
    inside = cols < n_atoms
    here = corr + n * n_atoms
    goal = tl.load(until + n)
    a = tl.load(here + cols, mask=inside, other=0.0)
    ids, w = tl.zeros((K,), tl.int32), tl.zeros((K,), tl.float64)
    explained, vanishing = tl.zeros((), tl.float64), tl.zeros((), tl.float64)
    spanned = _ROUNDING * _ROUNDING if EXACT else _ROUNDING
    eps = _EPS * _EPS if EXACT else _EPS
    unsettled = tl.zeros((), tl.int8)
    k = 0
    going = goal > 0.0
    while going:
        size = tl.where(inside, a if POSITIVE else tl.abs(a), -1.0)
        _, b = tl.max(size, 0, return_indices=True)  # ties go to the first atom
        ab = tl.sum(tl.where(cols == b, a, 0.0), 0)
        again = tl.sum(tl.where((ids == b) & (js < k), 1, 0), 0) > 0
        # All coefficients afresh, with the new atom last: its pivot is what is left of it.
        picked, used = tl.where(js == k, b, ids), js <= k
        places = picked.to(tl.int64)
        both = used[:, None] & used[None, :]
        small = tl.load(gram + places[:, None] * n_atoms + places[None, :], mask=both, other=0.0)
        targets = tl.load(here + places, mask=used, other=0.0)
        norms = tl.load(gram + places * (n_atoms + 1), mask=used, other=0.0)
        norm2 = tl.sum(tl.where(js == k, norms, 0.0), 0)
        wanted, pivots = _solve(small, targets, used, k + 1, K)
        left = tl.sum(tl.where(js == k, pivots, 0.0), 0)
        wanted_more = (ab * ab > vanishing * norm2) & ((ab > 0.0) | (POSITIVE == 0))
        helps = wanted_more & (left > norm2 * spanned) & (again == 0)
        passive = used
        sizes = tl.abs(w) + tl.abs(wanted - w)
        if POSITIVE:
            negative = tl.sum(tl.where(used & (wanted <= 0.0), 1, 0), 0) > 0
            if helps & negative:
                wanted, passive, regular = _nonnegative(
                    small, targets, norms, used, w, vanishing, k + 1, K
                )
                sizes = wanted
                helps = regular & (tl.sum(targets * wanted, 0) > explained * (1.0 + eps))
        total = tl.sum(targets * wanted, 0)
        helps = helps & (tl.sum(sizes * sizes * norms, 0) * eps <= total * _LARGEST_DOUBT)
        if helps:
            # Atoms that stay come first, in the order of their picks.
            place = tl.sum(tl.where(passive[None, :] & (js[None, :] < js[:, None]), 1, 0), 1)
            into = (place[None, :] == js[:, None]) & passive[None, :]
            ids = tl.sum(tl.where(into, picked[None, :], 0), 1)
            w = tl.sum(tl.where(into, wanted[None, :], 0.0), 1)
            if k == 0:
                vanishing = ab * ab / left * _ROUNDING * _ROUNDING
            k = tl.sum(tl.where(passive, 1, 0), 0)
            explained = total
        unsettled = tl.where(wanted_more & (helps == 0), 1, 0).to(tl.int8)
        going = helps & (k < n_nonzero) & (explained < goal)
        if going:
            a = tl.load(here + cols, mask=inside, other=0.0)
            for j in range(k):
                atom = tl.sum(tl.where(js == j, ids, 0), 0).to(tl.int64)
                weight = tl.sum(tl.where(js == j, w, 0.0), 0)
                a -= weight * tl.load(gram + atom * n_atoms + cols, mask=inside, other=0.0)
    # Codes by ascending atom.
    used = js < k
    before = (ids[None, :] < ids[:, None]) & used[None, :]
    place = tl.where(used, tl.sum(tl.where(before, 1, 0), 1), js)
    into = n * n_nonzero + place
    tl.store(out_ids + into, tl.where(used, ids, -1), mask=js < n_nonzero)
    tl.store(out_values + into, tl.where(used, w, 0.0).to(tl.float32), mask=js < n_nonzero)
    tl.store(out_counts + n, k)
    tl.store(out_explained + n, explained)
    tl.store(out_unsettled + n, unsettled)


def code_exactly(
    gram: torch.Tensor,
    corr: torch.Tensor,
    until: torch.Tensor,
    n_nonzero: int,
    *,
    positive: bool = False,
    exact: bool = False,
) -> Coded:
    """Code signals of float32 by OMP in float64; unsettled is what rounding ended.

    Inner products ``gram`` and ``corr`` are float64, ``exact`` if they have all of its digits.
    Other arguments are those of ``kernels.code_gram``.
    """
    n_signals, n_atoms = corr.shape
    K, M = triton.next_power_of_2(max(n_nonzero, 2)), triton.next_power_of_2(max(n_atoms, 32))
    coded = Coded.empty(n_signals, n_nonzero, corr.device)
    if n_signals:
        _pursue_exactly[(n_signals,)](
            corr.contiguous(), gram, until, *coded, n_atoms, n_nonzero, K=K, M=M,
            POSITIVE=positive, EXACT=exact, num_warps=max(1, min(4, M // 1024, K // 16)),
            enable_fp_fusion=False,  # see kernels._sum
        )  # fmt: skip
    return coded
