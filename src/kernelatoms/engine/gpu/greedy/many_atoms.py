"""OMP over very many atoms, without a Gram matrix or a matrix of signals and atoms.

Each step has two kernels:

- ``screens.screen``: residuals times atoms on tensor cores, in low precision; of every 128
  atoms only the two largest correlations of each signal leave the chip.
- ``_step``, one program per signal: computes the correlations of all atoms that could be the pick
  in float32, makes the pick orthogonal to earlier ones (Gram-Schmidt: v = d - Q'Q d), and subtracts
  it from the residual.

**Which atoms are computed.** ``screens`` bounds the error of a screened correlation. An atom is
computed unless it is below the best exact correlation by more than that. A tile is 128 atoms, or
256 where there would be too many tiles; if two atoms of it are in doubt, all of it is computed.
Where the two best correlations differ by less than 8 eps |x| |d|, many times their rounding in
float32, both are computed again with the residual in float64; three such atoms leave the signal
unsettled. Where little of x is left, that would be most of them: the residual is then computed in
float64 and rounded, and its own norm replaces |x|. So a pick is that of float64 arithmetic.

**Memory.** A block of B signals needs B k p floats for its directions and 8 B n_atoms / 128 bytes
for the results of the screen.

See docs/decisions/010-gpu-screens.md.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from kernelatoms.engine.gpu.arrays.scale import squared_norms
from kernelatoms.engine.gpu.greedy.kernels import _CHECKED_DOUBT, _EPS, _ROUNDING, Coded
from kernelatoms.engine.gpu.greedy.screens import (
    _ATOMS,
    _BIG,
    AtomsForScreens,
    RowsForScreens,
    load_keys,
    place_of_key,
    rotate,
    round_rows,
    screen,
    store_rounded,
    value_of_key,
)

# Steps between two looks at how many signals go on, where they may end early.
_STEPS_A_LOOK = 4
# Gram-Schmidt without a second round needs that so much of an atom is left.
_FEWEST_LEFT = tl.constexpr(1e-4)
_MOST_LOOKS = tl.constexpr(64)
_MUCH_LESS = tl.constexpr(8.0)
_TIE = tl.constexpr(8 * 1.1920929e-07)
# Tiles of 128 atoms up to so many, of 256 beyond: a program has registers for some thousand.
_MOST_SMALL_TILES = 1024
_NOBODY = tl.constexpr(2147483647)


@triton.jit
def _best_three(es, names, best, b, ab, second, other, third, POSITIVE: tl.constexpr):
    """Return the best three of correlations es of atoms ``names`` and of those known before.

    The best with its atom and sign, the second with its atom, the size of the third.
    """
    sizes = es if POSITIVE else tl.abs(es)
    sizes = tl.where((names >= 0) & (names != b) & (names != other), sizes, -2.0)
    one = tl.max(sizes, 0)
    name = tl.min(tl.where(sizes == one, names, _NOBODY), 0)  # ties go to the first atom
    e = tl.sum(tl.where(names == name, es, 0.0), 0)
    sizes = tl.where(names == name, -2.0, sizes)
    two = tl.max(sizes, 0)
    its_name = tl.min(tl.where(sizes == two, names, _NOBODY), 0)
    three = tl.max(tl.where(names == its_name, -2.0, sizes), 0)
    # The third of two falling sequences: of one alone, or beside one or two of the other.
    third = tl.maximum(
        tl.maximum(three, third), tl.maximum(tl.minimum(two, best), tl.minimum(one, second))
    )
    better = (one > best) | ((one == best) & (name < b))
    # Behind a new best come the old one or the new second; behind the old one the new or the old.
    new, new_name = tl.where(better, two, one), tl.where(better, its_name, name)
    old, old_name = tl.where(better, best, second), tl.where(better, b, other)
    other = tl.where(new > old, new_name, old_name)
    second = tl.maximum(new, old)
    best, ab = tl.where(better, one, best), tl.where(better, e, ab)
    return best, tl.where(better, name, b), ab, second, other, third


@triton.jit
def _solve_back(w, triangle, k, K: tl.constexpr):
    """Return L^-T w, of rows of L."""
    js = tl.arange(0, K)
    for back in range(k):
        j = k - 1 - back
        row = tl.load(triangle + j * K + js, mask=js <= j, other=0.0).to(w.dtype)
        pivot = tl.sum(tl.where(js == j, row, 0.0), 0)
        last = tl.sum(tl.where(js == j, w, 0.0), 0) / pivot
        w = tl.where(js == j, last, tl.where(js < j, w - last * row, w))
    return w


@triton.jit
def _solve_forth(g, triangle, k, K: tl.constexpr):
    """Return L^-1 g, of rows of L."""
    js = tl.arange(0, K)
    for j in range(k):
        row = tl.load(triangle + j * K + js, mask=js <= j, other=0.0).to(g.dtype)
        pivot = tl.sum(tl.where(js == j, row, 0.0), 0)
        before = tl.sum(tl.where(js < j, row * g, 0.0), 0)
        g = tl.where(js == j, (tl.sum(tl.where(js == j, g, 0.0), 0) - before) / pivot, g)
    return g


@triton.jit
def _less(r, atoms, ids, w, c, inside, n_features, k, K: tl.constexpr):
    """Return r less atoms ``ids`` times w, and its inner products with them before that."""
    js = tl.arange(0, K)
    inner = tl.zeros((K,), tl.float64)
    out = r
    for j in range(k):
        atom = tl.sum(tl.where(js == j, ids, 0), 0).to(tl.int64)
        d = tl.load(atoms + atom * n_features + c, mask=inside, other=0.0).to(tl.float64)
        inner = tl.where(js == j, tl.sum(d * r, 0), inner)
        out -= tl.sum(tl.where(js == j, w, 0.0), 0) * d
    return out, inner


@triton.jit
def _true_residual(
    signal, atoms, ids, w, triangle, c, inside, n_features, k,
    K: tl.constexpr, POSITIVE: tl.constexpr,
):  # fmt: skip
    """Return what atoms ``ids`` leave of a signal, in float64; ``w`` is as ``out_w`` of ``_step``.

    Coefficients are known to float32. What is left then has small products g with the atoms, and
    taking out (L L')^-1 g of them makes it right to the square of that error.
    """
    js = tl.arange(0, K)
    x = tl.load(signal + c, mask=inside, other=0.0).to(tl.float64)
    w = tl.load(w + js, mask=js < k, other=0.0).to(tl.float64)
    if not POSITIVE:
        w = _solve_back(w, triangle, k, K)
    r, _ = _less(x, atoms, ids, w, c, inside, n_features, k, K)
    _, g = _less(r, atoms, ids, w, c, inside, n_features, k, K)
    if POSITIVE:  # the triangle is L^-1
        known = tl.load(
            triangle + js[:, None] * K + js[None, :],
            mask=(js[:, None] < k) & (js[None, :] <= js[:, None]), other=0.0,
        ).to(tl.float64)  # fmt: skip
        more = tl.sum(known * tl.sum(known * g[None, :], 1)[:, None], 0)
    else:
        more = _solve_back(_solve_forth(g, triangle, k, K), triangle, k, K)
    r, _ = _less(r, atoms, ids, more, c, inside, n_features, k, K)
    return r


@triton.jit(do_not_specialize=["k"])
def _step(
    who, signals, residuals, halves, units, slacks, sizes, atoms, norms2, keys, directions,
    triangle, out_ids, out_w, energy, exact_at, until, explained, first_gain, going, counts,
    unsettled, k, n_nonzero, n_features, wide, n_atoms, n_tiles,
    K: tl.constexpr, P: tl.constexpr, T: tl.constexpr, BN: tl.constexpr, J: tl.constexpr,
    S: tl.constexpr, PARTS: tl.constexpr, POSITIVE: tl.constexpr, EIGHT_BITS: tl.constexpr,
):  # fmt: skip
    slot = tl.program_id(0)
    n = tl.load(who + slot).to(tl.int64)
    if tl.load(going + n) == 0:
        return
    c, js, t = tl.arange(0, P), tl.arange(0, K), tl.arange(0, T)
    inside = c < n_features
    r = tl.load(residuals + n * n_features + c, mask=inside, other=0.0)
    slack = tl.load(slacks + slot)
    ids = tl.load(out_ids + n * K + js, mask=js < k, other=-1)
    # Rounding of the residual is relative to its norm when it was exact. Where much less is left,
    # it is computed afresh.
    exact_norm = tl.load(exact_at + n)
    norm = tl.sqrt(tl.sum(r * r, 0))
    if norm * _MUCH_LESS < exact_norm:
        true = _true_residual(
            signals + n * n_features, atoms, ids, out_w + n * K, triangle + n * K * K, c, inside,
            n_features, k, K, POSITIVE,
        )  # fmt: skip
        fresh = true.to(tl.float32)
        slack += tl.sqrt(tl.sum((fresh - r) * (fresh - r), 0)) * tl.load(sizes + 1)
        r = fresh
        exact_norm = norm
    unit = tl.load(units + slot)
    rest, seconds = load_keys(keys, slot, t, n_tiles, PARTS)
    # How often a tile was looked at, and the least that it still may hide.
    looked = tl.zeros((T,), tl.int32)
    best, b, ab, second, other, third, looks = -1.0, -1, 0.0, -3e38, -1, -3e38, 0
    least: tl.constexpr = 1 if EIGHT_BITS else _BIG  # keys of no product are less
    top, tile = tl.max(rest, 0, return_indices=True)
    while (
        (value_of_key(top, EIGHT_BITS) * unit + slack > best)
        & (top >= least)
        & (looks < _MOST_LOOKS)
    ):
        i = tl.zeros((1,), tl.int32) + (tile * BN + place_of_key(top, EIGHT_BITS) % BN)
        row = tl.load(
            atoms + i.to(tl.int64)[:, None] * n_features + c[None, :],
            mask=inside[None, :], other=0.0,
        )  # fmt: skip
        best, b, ab, second, other, third = _best_three(
            tl.sum(row * r[None, :], 1), i, best, b, ab, second, other, third, POSITIVE
        )
        here = t == tile
        rest = tl.where(here, tl.where(looked == 0, seconds, 0), rest)
        looked += tl.where(here, 1, 0)
        top, tile = tl.max(rest, 0, return_indices=True)
        looks += 1
    # Tiles of which both atoms named are in doubt may hide a third: look at all of theirs.
    hidden = tl.where(looked >= 2, value_of_key(seconds, EIGHT_BITS) * unit, -1.0)
    most, tile = tl.max(hidden, 0, return_indices=True)
    while (most >= 0.0) & (most + slack > best):
        some = tl.arange(0, S)
        for first in range(0, BN, S):
            its = tile * BN + first + some
            rows = tl.load(
                atoms + its.to(tl.int64)[:, None] * n_features + c[None, :],
                mask=(its < n_atoms)[:, None] & inside[None, :], other=0.0,
            )  # fmt: skip
            best, b, ab, second, other, third = _best_three(
                tl.sum(rows * r[None, :], 1), its, best, b, ab, second, other, third, POSITIVE
            )
        hidden = tl.where(t == tile, -1.0, hidden)
        most, tile = tl.max(hidden, 0, return_indices=True)
    failed = looks == _MOST_LOOKS
    failed |= best < 0.0
    if POSITIVE:  # a correlation screened as less than 0 may be above it by ``slack``
        failed |= best < slack
    wide_b = tl.zeros((), tl.int64) + tl.maximum(b, 0)
    d = tl.load(atoms + wide_b * n_features + c, mask=inside, other=0.0)
    norm2 = tl.load(norms2 + wide_b)
    all_energy = tl.load(energy + n)
    tie = exact_norm * tl.sqrt(norm2) * _TIE
    if second + tie > best:
        failed |= third + tie > best
        true = _true_residual(
            signals + n * n_features, atoms, ids, out_w + n * K, triangle + n * K * K, c, inside,
            n_features, k, K, POSITIVE,
        )  # fmt: skip
        wide_other = tl.zeros((), tl.int64) + other
        its_d = tl.load(atoms + wide_other * n_features + c, mask=inside, other=0.0)
        e, its_e = tl.sum(true * d, 0), tl.sum(true * its_d, 0)
        ours, its = (e, its_e) if POSITIVE else (tl.abs(e), tl.abs(its_e))
        if (its > ours) | ((its == ours) & (other < b)):
            b, d, ab = other, its_d, its_e.to(tl.float32)
            norm2 = tl.load(norms2 + wide_other)
    # Gram-Schmidt against the directions before, some at a time.
    v = d
    cross = tl.zeros((K,), tl.float32)
    some = tl.arange(0, J)
    base = directions + n * n_nonzero * n_features
    for first in range(0, k, J):
        mask = (first + some < k)[:, None] & inside[None, :]
        rows = tl.load(
            base + (first + some)[:, None] * n_features + c[None, :], mask=mask, other=0.0
        )
        inner = tl.sum(rows * d[None, :], 1)
        v -= tl.sum(inner[:, None] * rows, 0)
        placed = tl.where(js[:, None] == (first + some)[None, :], inner[None, :], 0.0)
        cross += tl.sum(placed, 1)
    left = tl.sum(v * v, 0)
    first_z2 = tl.load(first_gain + n)
    # Nothing is left but rounding, and the pursuit ends; or an atom that float32 cannot use.
    helps = ab * ab > first_z2 * _ROUNDING * _ROUNDING * norm2
    if POSITIVE:
        helps &= ab > 0.0
    known = tl.sum(tl.where(ids == b, 1, 0), 0) > 0
    failed |= helps & (known | (left < norm2 * _FEWEST_LEFT))
    scale = 1.0 / tl.sqrt(tl.maximum(left, 1e-37))
    v *= scale
    z = tl.sum(v * r, 0)
    total = all_energy - tl.sum((r - z * v) * (r - z * v), 0).to(tl.float64)
    if POSITIVE:
        # Coefficients must be known after every step: row k of L^-1 = [-c'L^-1, 1] / sqrt(t).
        known = tl.load(
            triangle + n * K * K + js[:, None] * K + js[None, :],
            mask=(js[:, None] < k) & (js[None, :] <= js[:, None]), other=0.0,
        )  # fmt: skip
        row = tl.where(js == k, 1.0, -tl.sum(cross[:, None] * known, 0)) * scale
        row = tl.where(js <= k, row, 0.0)
        w = tl.load(out_w + n * K + js, mask=js < k, other=0.0)
        w += z * row
        failed |= helps & (tl.min(tl.where(js <= k, w, 1.0), 0) <= 0.0)
    else:
        # Rows of L, and z: ``_finish`` makes coefficients of them in the end.
        row = tl.where(js == k, left * scale, cross)
        w = tl.zeros((K,), tl.float32) + z
    r -= z * v
    if failed:
        tl.store(unsettled + n, 1)
    goes_on = helps & (failed == 0)
    if goes_on:
        tl.store(triangle + n * K * K + k * K + js, row, mask=js <= k)
        tl.store(base + k * n_features + c, v, mask=inside)
        tl.store(out_ids + n * K + k, b)
        tl.store(out_w + n * K + js, w, mask=(js <= k) if POSITIVE else (js == k))
        tl.store(residuals + n * n_features + c, r, mask=inside)
        tl.store(exact_at + n, exact_norm)
        tl.store(explained + n, total)
        if k == 0:
            tl.store(first_gain + n, z * z)
        goes_on = total < tl.load(until + n)
        store_rounded(
            r, slot, halves, units, slacks, sizes, c, inside, n_features, wide, EIGHT_BITS
        )
        tl.store(counts + n, k + 1)
    if goes_on == 0:
        tl.store(going + n, 0)


@triton.jit
def _finish(
    triangle, ids, zs, norms2, counts, explained, unsettled, out_ids, out_values, n_nonzero,
    K: tl.constexpr, POSITIVE: tl.constexpr,
):  # fmt: skip
    """Write a signal's code by ascending atom: w = L^-T z, unless it is known already."""
    n = tl.program_id(0).to(tl.int64)
    js = tl.arange(0, K)
    k = tl.load(counts + n)
    used = js < k
    own = tl.load(ids + n * K + js, mask=used, other=-1)
    w = tl.load(zs + n * K + js, mask=used, other=0.0)
    if not POSITIVE:
        w = _solve_back(w, triangle + n * K * K, k, K)
    norms = tl.load(norms2 + own, mask=used, other=0.0)
    doubt = tl.sum(w * w * norms, 0).to(tl.float64) * _EPS > tl.load(explained + n) * _CHECKED_DOUBT
    if doubt & (k > 0):
        tl.store(unsettled + n, 1)
    before = (own[None, :] < own[:, None]) & used[None, :]
    place = tl.where(used, tl.sum(tl.where(before, 1, 0), 1), js)
    tl.store(out_ids + n * n_nonzero + place, own, mask=js < n_nonzero)
    tl.store(out_values + n * n_nonzero + place, w, mask=js < n_nonzero)


def _program(K: int, P: int, T: int) -> dict[str, Any]:
    """Return how a program of ``_step`` is made: two warps, unless registers would not do.

    All threads must know the same bits of what they decide by (``kernels._sum``).
    """
    large = K > 32 or P > 1024 or T > 1024
    layout = {"num_warps": 4} if large else {"num_warps": 2, "maxnreg": 128}
    return {**layout, "enable_fp_fusion": False}


def code_rows(
    ready: AtomsForScreens,
    signals: torch.Tensor,
    until: torch.Tensor,
    n_nonzero: int,
    *,
    positive: bool = False,
) -> Coded:
    """Code signals (n_signals, n_features) float32 over ``screens.ready_atoms``.

    The rest is as of ``kernels.code_gram``.
    """
    n_signals, n_features = signals.shape
    n_atoms, device = len(ready.atoms), signals.device
    K = triton.next_power_of_2(max(n_nonzero, 2))
    eight_bits = ready.rotation is not None
    parts = 1 if ready.n_parts <= _MOST_SMALL_TILES else 2  # of a tile
    n_tiles = ready.n_parts // parts
    P, T = triton.next_power_of_2(n_features), triton.next_power_of_2(n_tiles)

    def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device=device)

    residuals = signals.clone()
    energy = squared_norms(signals)
    exact_at = energy.sqrt().float()
    who = torch.arange(n_signals, dtype=torch.int32, device=device)
    going = (until > 0).to(torch.int8)
    unsettled = torch.zeros(n_signals, dtype=torch.int8, device=device)
    explained = torch.zeros(n_signals, dtype=torch.float64, device=device)
    counts = torch.zeros(n_signals, dtype=torch.int32, device=device)
    picked, values = empty(n_signals, K, dtype=torch.int32), empty(n_signals, K)
    first_gain, triangle = torch.zeros_like(residuals[:, 0]), empty(n_signals, K, K)
    directions = empty(n_signals, n_nonzero, n_features)
    rounded = round_rows(residuals, ready)
    keys = empty(n_signals, ready.n_parts, 2, dtype=torch.int32)
    may_end = bool(torch.isfinite(until).any())
    for k in range(n_nonzero):
        if k % _STEPS_A_LOOK == 0 and k and may_end:
            who, rounded = _those_going(who, rounded, going)
        if not len(who):
            break
        rotate(rounded, ready)
        screen(rounded, ready, keys, positive)
        _step[(len(who),)](
            who, signals, residuals, rounded.halves, rounded.units, rounded.slacks, ready.sizes,
            ready.atoms, ready.norms2, keys, directions, triangle, picked, values, energy,
            exact_at, until, explained, first_gain, going, counts, unsettled,
            k, n_nonzero, n_features, rounded.halves.shape[1], n_atoms, n_tiles,
            K=K, P=P, T=T, BN=parts * _ATOMS, J=4, S=4, PARTS=parts, POSITIVE=positive,
            EIGHT_BITS=eight_bits, **_program(K, P, T),
        )  # fmt: skip
    indices = empty(n_signals, n_nonzero, dtype=torch.int32)
    coefs = empty(n_signals, n_nonzero)
    _finish[(n_signals,)](
        triangle, picked, values, ready.norms2, counts, explained, unsettled, indices, coefs,
        n_nonzero, K=K, POSITIVE=positive, num_warps=1, enable_fp_fusion=False,
    )  # fmt: skip
    return Coded(indices, coefs, counts, explained, unsettled)


def bytes_per_signal(n_atoms: int, n_features: int, n_nonzero: int) -> int:
    """Return the memory that a signal takes."""
    K = triton.next_power_of_2(max(n_nonzero, 2))
    return 4 * (n_nonzero + 6) * n_features + 4 * K * (K + 4) + 8 * (n_atoms // _ATOMS + 2)


def _those_going(
    who: torch.Tensor, rounded: RowsForScreens, going: torch.Tensor
) -> tuple[torch.Tensor, RowsForScreens]:
    """Return signals and their rounded rows without those that have ended, if that pays."""
    here = going[who.long()].bool()
    if 2 * int(here.sum()) > len(who):
        return who, rounded
    low = rounded.low[here]
    halves = low if rounded.halves is rounded.low else rounded.halves[here]
    return who[here], RowsForScreens(low, rounded.units[here], rounded.slacks[here], halves)
