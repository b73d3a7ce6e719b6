"""Greedy pursuits over some thousand atoms as one Triton kernel; a program codes one signal.

The correlations ``a`` of a signal's residual with all atoms stay in registers. A step is what
``engine/cpu/greedy_loops.py`` describes; its only work over all atoms is

    a -= sum_j step_j G[I_j],

rows of the Gram matrix that come from the second-level cache, whose bytes determine the time of a
step. OMP therefore reads them in half precision and decides the pick exactly. With
|G_ij - H_ij| <= u g (H the rounded matrix, u = 2^-11, g the largest |G_ij| off the diagonal), a
correlation computed from H is off by at most

    slack = u g |w|_1,

so that no atom whose rounded correlation is below the best exact one less ``slack`` can be the
pick: all others are computed exactly, a_i = b_i - sum_j w_j G[I_j, i]. That is a bound, not an
estimate; in most steps only the best atom is computed. OLS divides by what is left of an atom, for
which half precision is too coarse, and reads float32.

Signals that a program cannot code are marked: ``TIED``, more atoms could be the pick than it
computes; ``DOUBTFUL``, float32 does not decide: visible rounding, a step that would make a
coefficient negative, two atoms whose correlations differ by less than

    16 eps (|a first pick's correlation| + g |w|_1),

many times their rounding. ``exact`` codes those in float64.

See docs/decisions/009-gpu-precision.md.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from kernelatoms.engine.gpu.arrays.work import processors
from kernelatoms.engine.gpu.greedy.half_precision import GramForScreens, HalvedAtoms

# As in engine/cpu/greedy_loops.py: shares of the energy that rounding may change; what counts as
# rounding, in machine epsilons.
_CHECKED_DOUBT = tl.constexpr(1e-6)
_ROUNDING = tl.constexpr(100 * 1.1920929e-07)
_EPS = tl.constexpr(1.1920929e-07)
_HALF = tl.constexpr(2.0**-11)
_TIE = tl.constexpr(16 * 1.1920929e-07)
# Exact looks at ties per step, before the signal is left to the plain coder.
_MOST_LOOKS = tl.constexpr(32)
# Programs that a multiprocessor holds at once; each codes one signal after another.
_PROGRAMS_A_PROCESSOR = 64

#: Why a code is not to be trusted: half precision could not settle it, or float32 could not.
TIED, DOUBTFUL = tl.constexpr(1), tl.constexpr(2)


@triton.jit
def _of_key(key, M: tl.constexpr):
    """Return the largest size that a key may encode: its last bits name a column."""
    return (key | (M - 1)).to(tl.float32, bitcast=True)


@triton.jit
def _power_of_two(size):
    """Return the least power of two that is not below a size (of no size: the smallest)."""
    return tl.exp2(tl.ceil(tl.log2(tl.maximum(size, 1e-30))))


@triton.jit
def _sum(products, there, axis: tl.constexpr):
    """Return the sum of products that are there, the same in all threads.

    Threads that add up products, one each, may fuse their own into the sum, and then know different
    last bits: where they decide something by it, they part. Chosen ones are not fused.
    """
    return tl.sum(tl.where(there, products, 0.0), axis)


@triton.jit
def _exact(here, signals, atoms, n, b, n_features, ROWS: tl.constexpr, F: tl.constexpr):
    """Return the inner product of signal n and atom b: the one at hand, or computed."""
    if not ROWS:
        return tl.load(here + b)
    f = tl.arange(0, F)
    total = tl.zeros((F,), tl.float32)
    for first in range(0, n_features, F):
        mask = first + f < n_features
        x = tl.load(signals + n * n_features + first + f, mask=mask, other=0.0)
        total += x * tl.load(atoms + b.to(tl.int64) * n_features + first + f, mask=mask, other=0.0)
    return tl.sum(total, 0)


@triton.jit
def _halve(signals, halves, sizes, n_features, P: tl.constexpr):
    """Write a signal in half precision at a power of two of itself, and its norm."""
    n = tl.program_id(0).to(tl.int64)
    f = tl.arange(0, P)
    mask = f < n_features
    x = tl.load(signals + n * n_features + f, mask=mask, other=0.0)
    size = tl.sqrt(tl.sum(x * x, 0))
    tl.store(sizes + n, size)
    tl.store(halves + n * n_features + f, (x / _power_of_two(size)).to(tl.float16), mask=mask)


@triton.jit
def _pursue(
    corr, gram, half, norms2, until, out_ids, out_values, out_counts, out_explained, out_unsettled,
    scratch, signals, atoms, norms_of_signals, numbers, corr_numbers, n_signals, n_atoms, n_nonzero,
    stride, corr_stride, n_features,
    K: tl.constexpr, M: tl.constexpr, OLS: tl.constexpr, POSITIVE: tl.constexpr,
    EVEN: tl.constexpr, ROWS: tl.constexpr, R: tl.constexpr, F: tl.constexpr,
):  # fmt: skip
    unit, bound, largest = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    program = tl.program_id(0)
    cols, js = tl.arange(0, M), tl.arange(0, K)
    inside = cols < stride  # rows end with zeros
    backwards = cols * -1 + (M - 1)  # of equal sizes the first atom has the largest key
    # Rows of L^-1, then the step and the atoms, to be read one number at a time.
    inverse = scratch + program.to(tl.int64) * (K * K + 2 * K)
    steps = inverse + K * K
    names = steps + K
    for n in range(program, n_signals, tl.num_programs(0)):
        wide = tl.zeros((), tl.int64) + n  # offsets may pass 2^31
        here = corr + wide * corr_stride
        a = tl.load(here + cols, mask=cols < corr_stride, other=0.0).to(tl.float32)
        doubtful = 0.0
        if ROWS:
            # Correlations of rounded rows: inputs and output of the product were halved.
            norm = tl.load(norms_of_signals + n)
            a *= tl.load(corr_numbers) * _power_of_two(norm)
            doubtful = tl.load(corr_numbers + 1) * norm + tl.max(tl.abs(a), 0) * _HALF
        goal = tl.load(until + n)
        if OLS:
            h = tl.load(norms2 + cols, mask=inside, other=0.0)  # what is left of each atom
            lowest_h = h * _ROUNDING
        ids = tl.zeros((K,), tl.int32)
        w, norms = tl.zeros((K,), tl.float32), tl.zeros((K,), tl.float32)
        explained = tl.zeros((), tl.float64)
        vanishing, weights, first_tie = 0.0, 0.0, 0.0
        k, unsettled = 0, 0
        going = goal > 0.0
        while going:
            known = tl.load(
                inverse + js[:, None] * K + js[None, :],
                mask=(js[:, None] < k) & (js[None, :] <= js[:, None]), other=0.0,
            )  # fmt: skip
            # The pick.
            if OLS:
                size = tl.where(h > lowest_h, a * a / tl.maximum(h, 1e-37), 0.0)
                size = tl.where(a > 0.0, size, 0.0) if POSITIVE else size
                top, b = tl.max(size, 0, return_indices=True)
                row = tl.load(gram + b.to(tl.int64) * stride + ids, mask=js < k, other=0.0)
                ab = tl.load(here + b) - _sum(w * row, js < k, 0)
            else:
                # Sizes and columns in one number: one maximum finds both.
                size = tl.maximum(a, 0.0) if POSITIVE else tl.abs(a)
                key = (size.to(tl.int32, bitcast=True) & (-M)) | backwards
                top = tl.max(key, 0)
                b = (top & (M - 1)) * -1 + (M - 1)
                row = tl.load(gram + b.to(tl.int64) * stride + ids, mask=js < k, other=0.0)
                ab = _exact(here, signals, atoms, wide, b, n_features, ROWS, F)
                ab -= _sum(w * row, js < k, 0)
                best = tl.maximum(ab, 0.0) if POSITIVE else tl.abs(ab)
                key = tl.where(key == top, 0, key)
                top = top & (-M)
                second = tl.max(key, 0)
                slack = doubtful + bound * weights
                first_tie = tl.where(k == 0, best * _TIE, first_tie)
                tie = first_tie + largest * weights * _TIE
                runner, looks = -3e38, 0
                while (
                    (_of_key(second, M) + slack + tie > best)
                    & (second >= M) & (looks < _MOST_LOOKS)
                ):  # fmt: skip
                    other = (second & (M - 1)) * -1 + (M - 1)
                    its = tl.load(gram + other.to(tl.int64) * stride + ids, mask=js < k, other=0.0)
                    e = _exact(here, signals, atoms, wide, other, n_features, ROWS, F)
                    e -= _sum(w * its, js < k, 0)
                    value = tl.maximum(e, 0.0) if POSITIVE else tl.abs(e)
                    # Ties go to the first atom, as in every pursuit.
                    better = (value > best) | ((value == best) & (other < b))
                    b, ab = tl.where(better, other, b), tl.where(better, e, ab)
                    runner = tl.maximum(runner, tl.minimum(value, best))
                    best = tl.maximum(value, best)
                    row = tl.where(better, its, row)
                    key = tl.where(key == second, 0, key)
                    second = tl.max(key, 0)
                    looks += 1
                unsettled = tl.where(looks == _MOST_LOOKS, TIED, unsettled)
                if POSITIVE:  # a correlation rounded to less than 0 may be above it by ``slack``
                    unsettled = tl.where(best < slack, TIED, unsettled)
            norm2 = tl.load(norms2 + b)
            # The new direction: c = L^-1 G[I, b], row k of L^-1 = [-c'L^-1, 1] / sqrt(t).
            c = _sum(known * row[None, :], (js < k)[None, :], 1)
            left = norm2 - _sum(c * c, js < k, 0)
            wanted = (ab * ab > vanishing * norm2) & (top > 0)
            if POSITIVE:
                wanted &= ab > 0.0
            helps = wanted & (left > norm2 * _ROUNDING)
            helps &= tl.sum(tl.where((ids == b) & (js < k), 1, 0), 0) == 0
            if OLS:  # it may have picked by rounding alone, or overlooked atoms that are spanned
                rest = a * a * _ROUNDING - vanishing * lowest_h
                rest = tl.where(a > 0.0, rest, -1.0) if POSITIVE else rest
                wanted |= tl.max(rest, 0) > 0.0
            scale = 1.0 / tl.sqrt(tl.maximum(left, 1e-37))
            direction = _sum(c[:, None] * known, (js < k)[:, None], 0)
            direction = tl.where(js == k, 1.0, -direction) * scale
            direction = tl.where(js <= k, direction, 0.0)
            z = ab * scale
            step = z * direction
            ids = tl.where(js == k, b, ids)
            norms = tl.where(js == k, norm2, norms)
            sizes = tl.abs(w) + tl.abs(step)
            total = explained + (z * z).to(tl.float64)
            size2 = _sum(sizes * sizes * norms, js <= k, 0).to(tl.float64)
            doubt = size2 * _EPS > total * _CHECKED_DOUBT
            if not OLS:
                doubt |= runner + tie > best
            if POSITIVE:
                doubt |= tl.min(tl.where(js <= k, w + step, 1.0), 0) <= 0.0
            unsettled = tl.where(wanted & (doubt | (helps == 0)), DOUBTFUL, unsettled)
            going = helps & (unsettled == 0)
            if going:
                w += step
                vanishing = tl.where(k == 0, z * z * _ROUNDING * _ROUNDING, vanishing)
                explained = total
                tl.store(inverse + k * K + js, direction, mask=js <= k)
                # Past the last step are zeros, for a row that is at hand anyway.
                tl.store(steps + js, (direction if OLS else step * unit))
                tl.store(names + js, tl.where(js <= k, ids, b).to(tl.float32, bitcast=True))
                k += 1
                going = (k < n_nonzero) & (explained < goal)
            if going:
                # All threads of the program read what some of them have written.
                tl.debug_barrier()
                if OLS:
                    v = tl.zeros((M,), tl.float32)
                    for j in range(k):
                        place = tl.load(names + j).to(tl.int32, bitcast=True).to(tl.int64) * stride
                        rows = tl.load(gram + place + cols, mask=inside, other=0.0)
                        v += tl.load(steps + j) * rows
                    a -= z * v
                    h -= v * v
                else:
                    weights = tl.sum(tl.abs(w), 0)
                    for j in range(0, k, R):
                        # R loads under way at once: the cache is far.
                        for i in tl.static_range(R):
                            atom = tl.load(names + j + i).to(tl.int32, bitcast=True)
                            place = half + atom.to(tl.int64) * stride + cols
                            if EVEN:
                                its_row = tl.load(place)
                            else:
                                its_row = tl.load(place, mask=inside, other=0.0)
                            a -= tl.load(steps + j + i) * its_row.to(tl.float32)
                tl.debug_barrier()
        # Codes by ascending atom.
        used = js < k
        before = (ids[None, :] < ids[:, None]) & used[None, :]
        place = tl.where(used, tl.sum(tl.where(before, 1, 0), 1), js)
        into = wide * n_nonzero + place
        tl.store(out_ids + into, tl.where(used, ids, -1), mask=js < n_nonzero)
        tl.store(out_values + into, tl.where(used, w, 0.0), mask=js < n_nonzero)
        tl.store(out_counts + n, k)
        tl.store(out_explained + n, explained)
        tl.store(out_unsettled + n, unsettled)
        tl.debug_barrier()


class Coded(NamedTuple):
    """Codes by ascending atom, -1 and 0 where one is shorter; ``unsettled`` (n,) int8 if not 0."""

    indices: torch.Tensor
    values: torch.Tensor
    counts: torch.Tensor
    explained: torch.Tensor
    unsettled: torch.Tensor

    @classmethod
    def empty(cls, n_signals: int, n_nonzero: int, device: torch.device) -> "Coded":
        """Return memory for codes."""
        shape = (n_signals, n_nonzero)
        return cls(
            torch.empty(shape, dtype=torch.int32, device=device),
            torch.empty(shape, dtype=torch.float32, device=device),
            torch.empty(n_signals, dtype=torch.int32, device=device),
            torch.empty(n_signals, dtype=torch.float64, device=device),
            torch.empty(n_signals, dtype=torch.int8, device=device),
        )


def code_gram(
    ready: GramForScreens,
    corr: torch.Tensor,
    until: torch.Tensor,
    n_nonzero: int,
    *,
    use_ols: bool = False,
    positive: bool = False,
) -> Coded:
    """Code a block of signals, float32, by their inner products with the atoms.

    Parameters
    ----------
    ready : GramForScreens
        The atoms, by ``half_precision.ready_gram``.
    corr : (n_signals, n_atoms) float32
        Inner products of signals and atoms.
    until : (n_signals,) float64
        Stop when this much energy is explained; infinite to stop on sparsity alone.
    n_nonzero : int
        The most atoms of a code.
    use_ols, positive : bool
        Select by residual decrease; non-negative codes.

    Returns
    -------
    Coded
        ``unsettled`` signals are to be coded again by exact steps.
    """
    options = {"OLS": use_ols, "POSITIVE": positive, "ROWS": False}
    return _launch(ready, corr, (corr, corr, corr, corr, 1), until, n_nonzero, options)


def code_rows(
    ready: GramForScreens,
    atoms: HalvedAtoms,
    signals: torch.Tensor,
    until: torch.Tensor,
    n_nonzero: int,
    *,
    positive: bool = False,
) -> Coded:
    """Code signals (n_signals, n_features) by OMP: products with all atoms are halved too.

    ``atoms`` are by ``half_precision.ready_atoms``; the rest is as of ``code_gram``.
    """
    n_signals, n_features = signals.shape
    halves = torch.empty_like(signals, dtype=torch.float16)
    sizes = torch.empty(n_signals, dtype=torch.float32, device=signals.device)
    if n_signals:
        _halve[(n_signals,)](
            signals, halves, sizes, n_features, P=triton.next_power_of_2(n_features), num_warps=1,
            enable_fp_fusion=False,
        )  # fmt: skip
    corr = halves @ atoms.half.T
    rows = (signals, atoms.atoms, sizes, atoms.numbers, n_features)
    options = {"OLS": False, "POSITIVE": positive, "ROWS": True}
    return _launch(ready, corr, rows, until, n_nonzero, options)


def _launch(
    ready: GramForScreens,
    corr: torch.Tensor,
    rows: tuple[Any, ...],
    until: torch.Tensor,
    n_nonzero: int,
    options: dict[str, bool],
) -> Coded:
    """Run the kernel."""
    n_signals, n_atoms = len(corr), len(ready.norms2)
    # At least as many places as rows are read at once.
    K, M = triton.next_power_of_2(max(n_nonzero, 4)), triton.next_power_of_2(max(n_atoms, 32))
    coded = Coded.empty(n_signals, n_nonzero, corr.device)
    if n_signals:
        programs = min(n_signals, processors(corr.device, 1) * _PROGRAMS_A_PROCESSOR)
        scratch = torch.empty(programs * (K * K + 2 * K), dtype=torch.float32, device=corr.device)
        signals, atoms, sizes, corr_numbers, n_features = rows
        _pursue[(programs,)](
            corr, ready.gram, ready.half, ready.norms2, until, *coded, scratch, signals, atoms,
            sizes, ready.numbers, corr_numbers, n_signals, n_atoms, n_nonzero,
            ready.gram.stride(0), corr.stride(0), n_features,
            K=K, M=M, F=128 if n_features <= 256 else 256, EVEN=ready.gram.stride(0) == M,
            **options, **_layout(K, M),
        )  # fmt: skip
    return coded


def _layout(K: int, M: int) -> dict[str, Any]:
    """Return how a program is laid out: measured on an H200 at 700 to 4,096 atoms.

    One warp, unless a thread had more numbers than registers: reductions then stay within it. Up
    to 1,024 atoms 128 registers per thread hide more of the cache's distance than no spills do.
    Correlations are updated by fused operations, whatever Triton's default.
    """
    warps = max(1, min(4, max(M // 2048, K // 32)))
    if M <= 1024 and warps == 1:
        return {"num_warps": 1, "R": 4, "maxnreg": 128, "enable_fp_fusion": True}
    return {"num_warps": warps, "R": 2, "enable_fp_fusion": True}
