"""Triton kernels of l1 coding: small problems in registers, their data, and the largest gradients.

- ``follow_paths``: the paths of ``solvers``, one program per signal. The tableau is in registers,
  in float32; weights and gradients are in float64, and further paths correct the rounding of the
  tableau, so that codes are those of float64. Atoms too similar for that are left to plain torch;
  the distance returned with every code shows it.
- ``small_grams``: Gram matrices of each signal's atoms, from rows gathered on the way to the
  tensor cores.
- ``residuals``, ``gradients_at``: x - D'w and its products with some atoms, summed in float64.
- ``pick``: the largest gradients of every row, in one pass where few are above the threshold.

No loop is unrolled by the number of atoms, breaks or turns.
"""

import os

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Whether kernels run on the host, for tests.
IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
#: The most atoms of a small problem: its tableau has to fit in registers.
MOST_ATOMS = 128

# As in ``solvers``, for a tableau of float32.
_ROUNDING = tl.constexpr(1e-5)
_TURNS = 5
# Warps of a program by the atoms of its tableau: as few as have registers for it.
_WARPS = {16: 1, 32: 1, 64: 2, 128: 4}
# Numbers of a row that are looked at together, and halvings to find a threshold.
_CHUNK = 2048
_HALVINGS = 14


@triton.jit
def _follow(
    grams, gradients, starts, weights, lefts, stride, n_atoms, tol, most_breaks, turns,
    K: tl.constexpr, R: tl.constexpr, POSITIVE: tl.constexpr, STARTED: tl.constexpr,
):  # fmt: skip
    signal = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, K)
    inside = i < n_atoms
    own, its_w = grams + signal * stride, weights + signal * n_atoms
    before = starts + signal * n_atoms
    M = tl.load(
        own + i[:, None] * n_atoms + i[None, :], mask=inside[:, None] & inside[None, :], other=0.0
    ).to(tl.float32)
    schur = tl.load(own + i * (n_atoms + 1), mask=inside, other=0.0).to(tl.float32)
    floor = tl.max(schur, 0) * _ROUNDING
    signs = tl.zeros((K,), tl.float32)
    size = tl.full((), 1.0, tl.float64)
    turn, going = 0, turns > 0
    while going:
        # Gradients at w, from those at the start.
        c = tl.load(gradients + signal * n_atoms + i, mask=inside, other=0.0)
        if STARTED | (turn > 0):
            for first in range(0, K, R):  # some rows at a time, for the registers
                some = first + tl.arange(0, R)
                rows = tl.load(
                    own + some[:, None] * n_atoms + i[None, :],
                    mask=(some < n_atoms)[:, None] & inside[None, :], other=0.0,
                )  # fmt: skip
                w = tl.load(its_w + some, mask=some < n_atoms, other=0.0)
                if STARTED:
                    w -= tl.load(before + some, mask=some < n_atoms, other=0.0)
                c -= tl.sum(rows.to(tl.float64) * w[:, None], 0)
        # The nearest ones of a b that w is the minimum of; at first w is 0 and c is b.
        if turn == 0:
            size = tl.maximum(tl.max(c if POSITIVE else tl.abs(c), 0), 1.0)
            near = c / size
        else:
            near = tl.minimum(c, 1.0)
            if not POSITIVE:
                near = tl.maximum(near, -1.0)
            near = tl.where(signs != 0.0, signs.to(tl.float64), near)
        # The largest of numbers and NaN may be a number; their sum is not.
        left = tl.max(tl.abs(c - near), 0) + tl.sum(c * 0.0, 0)
        tl.store(lefts + signal, left)
        going = (left > tol + 1e-13 * size) & (turn < turns)
        if going:
            active = signs != 0.0
            change = (c - near).to(tl.float32)
            slopes = tl.where(active, 0.0, change)
            slopes -= tl.sum(M * tl.where(active, change, 0.0)[:, None], 0)
            w = tl.load(its_w + i, mask=inside, other=0.0)
            values = tl.where(active, w, near).to(tl.float32)
            moved = tl.zeros((K,), tl.float32)
            rest, last, breaks = 1.0, -1, 0
            while (rest > 0.0) & (breaks < most_breaks):
                # How far every atom is from a break.
                active = signs != 0.0
                # The one that just left would come back at once, where it left, by rounding.
                comes = (signs == 0.0) & (schur > floor) & ((i != last) | (values * slopes < 0.0))
                bound = tl.where(active, 0.0, tl.where(slopes > 0.0, 1.0, -1.0))
                heads = tl.where(active, slopes * signs < 0.0, comes & (slopes != 0.0))
                if POSITIVE:
                    heads &= active | (slopes > 0.0)
                ways = tl.where(heads, (bound - values) / slopes, float("inf"))
                way, atom = tl.min(tl.maximum(ways, 0.0), 0, return_indices=True)
                stops = way < rest
                way = tl.minimum(way, rest)
                values += way * slopes
                moved += way * slopes
                rest = tl.where(stops, rest - way, 0.0)
                last = -1
                if stops:
                    here = i == atom
                    sign = tl.sum(tl.where(here, signs, 0.0), 0)
                    slope = tl.sum(tl.where(here, slopes, 0.0), 0)
                    row = tl.sum(tl.where(here[:, None], M, 0.0), 0)
                    over = 1.0 / tl.sum(tl.where(here, schur, 0.0), 0)
                    leaves = sign != 0.0
                    turned = tl.where(leaves, -over, over)
                    # M is symmetric: rows are summed over by threads, columns across them.
                    M -= (row * over)[:, None] * row[None, :]
                    schur = tl.where(here, -over, schur - row * row * over)
                    slopes = tl.where(here, slope * turned, slopes - slope * over * row)
                    row = tl.where(here, -over, row * turned)
                    M = tl.where(here[:, None], row[None, :], M)
                    M = tl.where(here[None, :], row[:, None], M)
                    # One that leaves has its gradient at alpha, one that comes its weight at 0.
                    values = tl.where(here, sign, values)
                    moved = tl.where(here, 0.0, moved)
                    side = tl.where(slope > 0.0, 1.0, -1.0)
                    signs = tl.where(here, tl.where(leaves, 0.0, side), signs)
                    last = tl.where(leaves, atom, -1)
                    if leaves:  # should it come back, it starts from 0
                        tl.store(its_w + atom, 0.0)
                breaks += 1
            tl.debug_barrier()
            w = tl.load(its_w + i, mask=inside, other=0.0) + moved.to(tl.float64)
            tl.debug_barrier()
            tl.store(its_w + i, tl.where(signs != 0.0, w, 0.0), mask=inside)
            tl.debug_barrier()
        turn += 1


def follow_paths(
    grams: Tensor, gradients: Tensor, positive: bool, tol: float, start: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return what ``solvers.follow_paths`` does, of up to ``MOST_ATOMS`` atoms each.

    ``gradients`` are those at ``start``, or b at 0. The distance returned is above ``tol``, or NaN,
    where float32 was not enough.
    """
    n, n_atoms = gradients.shape
    if not (grams.stride(2) == 1 and grams.stride(1) == n_atoms):
        grams = grams.contiguous()
    gradients = gradients.contiguous()
    w, left = torch.zeros_like(gradients), torch.empty_like(gradients[:, 0])
    K = max(16, triton.next_power_of_2(n_atoms))
    _follow[(n,)](
        grams, gradients, w if start is None else start.contiguous(), w, left, grams.stride(0),
        n_atoms, tol, 4 * n_atoms + 50, _TURNS,
        K=K, R=8, POSITIVE=positive, STARTED=start is not None, num_warps=_WARPS[K],
        enable_fp_fusion=True,
    )  # fmt: skip
    return w, left


@triton.jit
def _small_grams(
    atoms, lists, grams, n_features, n_listed, T: tl.constexpr, BK: tl.constexpr,
    WHOLE: tl.constexpr,
):  # fmt: skip
    signal = tl.program_id(0).to(tl.int64)
    i, k = tl.arange(0, T), tl.arange(0, BK)
    mine = tl.load(lists + signal * n_listed + i, mask=i < n_listed, other=-1).to(tl.int64)
    there = (mine >= 0)[:, None]
    rows = atoms + tl.maximum(mine, 0)[:, None] * n_features + k[None, :]
    total = tl.zeros((T, T), tl.float32)
    left = n_features
    for _ in range(0, n_features, BK):  # pointers move: see many_atoms
        if WHOLE:
            some = tl.load(rows, mask=there, other=0.0)
        else:
            some = tl.load(rows, mask=there & (k < left)[None, :], other=0.0)
        total = tl.dot(some, tl.trans(some), total)
        rows += BK
        left -= BK
    out = grams + signal * n_listed * n_listed + i[:, None] * n_listed + i[None, :]
    tl.store(out, total, mask=(i < n_listed)[:, None] & (i < n_listed)[None, :])


def small_grams(atoms: Tensor, lists: Tensor) -> Tensor:
    """Return the Gram matrices (n, K, K) float32 of each signal's atoms, ``lists`` (n, K) int32.

    Atoms are rounded, on a card to half precision: what comes out are products of vectors. -1 pads
    lists, and K is up to ``MOST_ATOMS``.
    """
    n, n_listed = lists.shape
    n_features = atoms.shape[1]
    T, BK = max(16, triton.next_power_of_2(n_listed)), 64
    grams = torch.empty((n, n_listed, n_listed), dtype=torch.float32, device=lists.device)
    _small_grams[(n,)](
        atoms, lists, grams, n_features, n_listed, T=T, BK=BK, WHOLE=n_features % BK == 0,
        num_warps=8 if T == 128 else 4, num_stages=3,
    )  # fmt: skip
    return grams


@triton.jit
def _residuals(signals, atoms, lists, weights, out, n_features, n_listed, P: tl.constexpr):
    signal = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * P + tl.arange(0, P)
    inside = k < n_features
    r = tl.load(signals + signal * n_features + k, mask=inside, other=0.0).to(tl.float64)
    for j in range(n_listed):
        w = tl.load(weights + signal * n_listed + j)
        if w != 0.0:
            # Where codes are NaN, padding may have weight: no reading before the first atom.
            atom = tl.maximum(tl.load(lists + signal * n_listed + j), 0).to(tl.int64)
            d = tl.load(atoms + atom * n_features + k, mask=inside, other=0.0)
            r -= w * d.to(tl.float64)
    tl.store(out + signal * n_features + k, r, mask=inside)


def residuals(signals: Tensor, atoms: Tensor, lists: Tensor, weights: Tensor) -> Tensor:
    """Return x - D'w of every signal, (n, n_features) float64.

    ``lists`` (n, K) int32 are the atoms of each code, ``weights`` (n, K) float64 their
    coefficients; those of atom -1 are 0.
    """
    n, n_features = signals.shape
    out = torch.empty((n, n_features), dtype=torch.float64, device=signals.device)
    P = min(1024, triton.next_power_of_2(n_features))
    _residuals[(n, triton.cdiv(n_features, P))](
        signals.contiguous(), atoms, lists, weights, out, n_features, lists.shape[1], P=P,
        num_warps=4 if P >= 512 else 1,
    )  # fmt: skip
    return out


@triton.jit
def _gradients_at(rows, atoms, lists, out, n_features, n_listed, T: tl.constexpr, BK: tl.constexpr):
    signal = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * T + tl.arange(0, T)
    k = tl.arange(0, BK)
    mine = tl.load(lists + signal * n_listed + i, mask=i < n_listed, other=-1).to(tl.int64)
    d = atoms + tl.maximum(mine, 0)[:, None] * n_features + k[None, :]
    r = rows + signal * n_features + k
    total = tl.zeros((T, BK), tl.float64)
    left = n_features
    for _ in range(0, n_features, BK):
        values = tl.load(d, mask=(mine >= 0)[:, None] & (k < left)[None, :], other=0.0)
        total += values.to(tl.float64) * tl.load(r, mask=k < left, other=0.0)[None, :]
        d += BK
        r += BK
        left -= BK
    tl.store(out + signal * n_listed + i, tl.sum(total, 1), mask=i < n_listed)


def gradients_at(rows: Tensor, atoms: Tensor, lists: Tensor) -> Tensor:
    """Return the inner products of rows (n, n_features) float64 with their atoms, (n, K)."""
    n, n_listed = lists.shape
    out = torch.empty((n, n_listed), dtype=torch.float64, device=lists.device)
    T = 16
    _gradients_at[(n, triton.cdiv(n_listed, T))](
        rows, atoms, lists, out, rows.shape[1], n_listed, T=T, BK=128, num_warps=4
    )
    return out


@triton.jit
def _sizes(c, row, n_atoms, stride, places, POSITIVE: tl.constexpr):
    value = tl.load(c + row * stride + places, mask=places < n_atoms, other=0.0)
    value = value.to(tl.float64) if value.dtype == tl.float64 else value.to(tl.float32)
    return tl.maximum(value, 0.0) if POSITIVE else tl.abs(value)


@triton.jit
def _pick(
    c, lowest, found, largest, n_atoms, stride, wanted, halvings,
    CHUNK: tl.constexpr, POSITIVE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, CHUNK)
    low = tl.load(lowest + row)
    # Every thread counts by itself; they add up at the end of a pass.
    counts = tl.zeros((CHUNK,), tl.int32)
    tops = tl.zeros((CHUNK,), low.dtype)
    for first in range(0, n_atoms, CHUNK):
        size = _sizes(c, row, n_atoms, stride, first + k, POSITIVE)
        counts += (size > low).to(tl.int32)
        tops = tl.maximum(tops, size)
    count, top = tl.sum(counts, 0), tl.max(tops, 0)
    tl.store(largest + row, top)
    # Halve the way to the largest until no more than wanted are above the threshold.
    high, step = low, 0
    if count > wanted:
        high = top
    while (high > low) & (step < halvings):
        middle = low + (high - low) / 2
        counts = tl.zeros((CHUNK,), tl.int32)
        for first in range(0, n_atoms, CHUNK):
            size = _sizes(c, row, n_atoms, stride, first + k, POSITIVE)
            counts += (size > middle).to(tl.int32)
        above = tl.sum(counts, 0)
        if above > wanted:
            low = middle
        else:
            high = middle
        step += 1
    # Where nearly all of them are equal, the first of those above the lower threshold.
    bar = high
    if (high > low) & (high == top):
        bar = low
    taken = 0
    for first in range(0, n_atoms, CHUNK):
        size = _sizes(c, row, n_atoms, stride, first + k, POSITIVE)
        above = (size > bar).to(tl.int32)
        many = tl.sum(above, 0)
        if many > 0:
            place = taken + tl.cumsum(above, 0) - 1
            tl.store(found + row * wanted + place, first + k, mask=(above > 0) & (place < wanted))
            taken += many


def pick(c: Tensor, lowest: Tensor, wanted: int, positive: bool) -> tuple[Tensor, Tensor]:
    """Return what ``screening.pick`` does: those of the largest gradients, or nearly, ascending."""
    n, n_atoms = c.shape
    found = torch.full((n, wanted), -1, dtype=torch.int32, device=c.device)
    lowest = lowest if c.dtype == torch.float64 else lowest.float()
    largest = torch.empty_like(lowest)
    _pick[(n,)](
        c, lowest, found, largest, n_atoms, c.stride(0), wanted, _HALVINGS,
        CHUNK=_CHUNK, POSITIVE=positive, num_warps=4,
    )  # fmt: skip
    return found, largest.double()
