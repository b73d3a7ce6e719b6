"""Dictionary updates as Triton kernels; the methods are in ``engine.cpu.atoms`` and ``.ksvd``.

Atoms go one after another, each too little work for a launch of its own.

**Block coordinate descent.** One program goes over the atoms of a block, rows passing through its
cache, and what other blocks do to these is a matrix product before it.

**K-SVD.** One launch goes over all atoms, and a few programs share every atom: each has a slice of
the features of all signals. So few programs leave most of a card idle, which therefore updates
several dictionaries at once, each with signals and programs of its own. With E = R + old before'
the error of an atom's signals, its own part added back, an alternation is

    towards = E' new = (old . new) before + R' new,     new = E towards / |towards|,

where a slice of towards needs the same slice of R alone, and the other half is sums over slices,

    new_u = (old_u (before . towards) + r_u . towards) / |towards|.

Programs therefore synchronise once per alternation: each has written its parts of r_u . towards, of
before . towards and of |towards|^2, and each adds all of them up, in the same order. Each writes
its own slices of R and of the dictionary, which no other program reads.

A step is an alternation, or the end of an atom's turn, which writes the results. Where programs
cannot synchronise, in Triton's interpreter, there is one launch per step.
"""

from itertools import pairwise
from typing import Any

import torch
import triton
import triton.language as tl

from kernelatoms.engine.gpu.arrays.work import processors

# Descent: features, and steps of atoms before, that the program holds at once.
_FEATURES, _STEPS = 1024, 8
# K-SVD: about so many slices, of at least so many features: more programs meet more slowly, and
# fewer wait for memory longer.
_SLICES, _NARROWEST = 32, 8
# Numbers that a program holds at once: signals times features of its slice.
_AT_ONCE = 4096
# A multiprocessor holds one program, or two of so many registers per thread: on an H200 one
# dictionary took 16% longer so, and ten of MNIST's classes 28% less, in one launch instead of two.
_TWO_HAVE = 128
# Left to plain torch: more signals of one atom, whose parts would fill the memory; more features,
# which a program cannot hold; more nonzeros than 32 bits count.
_MOST_USERS, _MOST_FEATURES, _MOST_NONZEROS = 1 << 20, _SLICES * _AT_ONCE, (1 << 31) - 1


@triton.jit
def _descend(
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


@triton.jit
def _meet(arrived, expected):
    """Wait until so many have arrived; what they wrote before is then there to be read."""
    tl.debug_barrier()
    tl.atomic_add(arrived, 1, sem="release")
    while tl.atomic_add(arrived, 0, sem="acquire") < expected:
        pass
    tl.debug_barrier()


@triton.jit
def _parts_of(parts, u, first, last, n_read, most_users, SLICES: tl.constexpr):
    """Return the programs' parts of r_u . towards, (SLICES, USERS)."""
    c = tl.arange(0, SLICES)[:, None]
    places = parts + c.to(tl.int64) * most_users + (u - first)[None, :]
    there = (c < n_read) & (u < last)[None, :]
    return tl.load(places, mask=there, other=0.0, cache_modifier=".cg")


@triton.jit
def _users(weights, rows, residual, u, last, f, n_features):
    """Return an atom's coefficients before its turn, its users' rows, slices of their errors."""
    row = tl.load(rows + u, mask=u < last, other=0)
    old = tl.load(weights + u, mask=u < last, other=0.0)
    mask = (u < last)[:, None] & (f < n_features)[None, :]
    return old, row, tl.load(residual + _slices_at(row, f, n_features), mask=mask, other=0.0)


@triton.jit
def _slices_at(row, f, n_features):
    return row.to(tl.int64)[:, None] * n_features + f[None, :]


@triton.jit(
    do_not_specialize=[
        "first_dictionary", "first_step", "last_step", "n_nonzeros", "most_users",
    ]
)  # fmt: skip
def _steps(
    residual, dictionaries, weights, rows, starts, bounds, towards, parts, sums, arrived,
    first_dictionary, first_step, last_step, n_alternations, n_sweeps, n_features, n_nonzeros,
    most_users,
    WIDTH: tl.constexpr, SLICES: tl.constexpr, USERS: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    me, n_slices = tl.program_id(0), tl.num_programs(0)
    # This program's dictionary, and places of its own for what its programs send each other.
    which = first_dictionary + tl.program_id(1)
    first_atom = tl.load(bounds + which)
    n_atoms = tl.load(bounds + which + 1) - first_atom
    dictionary = dictionaries + first_atom.to(tl.int64) * n_features
    starts += first_atom
    towards += which * n_features
    parts += which.to(tl.int64) * 2 * n_slices * most_users
    sums += which * 4 * n_slices
    arrived += which * 32  # a line of the cache from the others'
    last_step = tl.minimum(last_step, n_sweeps * n_atoms * (n_alternations + 1))
    f, lane, c = me * WIDTH + tl.arange(0, WIDTH), tl.arange(0, USERS), tl.arange(0, SLICES)
    inside = f < n_features
    # The first users of an atom, mostly all of them, are kept from its first step to its last.
    first, last = tl.load(starts), tl.load(starts)
    before = tl.load(dictionary + f, mask=inside, other=0.0)
    old, row, r = _users(weights, rows, residual, first + lane, last, f, n_features)
    expected, step = 0, first_step
    while step < last_step:
        turn, phase = step // (n_alternations + 1), step % (n_alternations + 1)
        atom, sweep = turn % n_atoms, turn // n_atoms
        # What is written where others still read would reach them: two places, in turns.
        now, other = weights + sweep % 2 * n_nonzeros, weights + (sweep + 1) % 2 * n_nonzeros
        out = (turn * n_alternations + phase) % 2
        parts_read = parts + (1 - out).to(tl.int64) * n_slices * most_users
        n_read = tl.where(phase > 0, n_slices, 0)  # an atom's turn begins with what was there
        if (phase == 0) | (step == first_step):
            first, last = tl.load(starts + atom), tl.load(starts + atom + 1)
            before = tl.load(
                dictionary + atom.to(tl.int64) * n_features + f, mask=inside, other=0.0
            )
            old, row, r = _users(now, rows, residual, first + lane, last, f, n_features)
        # All is asked for before anything is waited for.
        part = _parts_of(parts_read, first + lane, first, last, n_read, most_users, SLICES)
        sums_read = sums + ((1 - out) * n_slices + c) * 2
        alongs = tl.load(sums_read, mask=c < n_read, other=0.0, cache_modifier=".cg")
        norms2 = tl.load(sums_read + 1, mask=c < n_read, other=0.0, cache_modifier=".cg")
        along, norm2 = tl.sum(alongs, 0), tl.sum(norms2, 0)
        sound = norm2 > 0
        scale = tl.where(sound, 1 / tl.sqrt(tl.where(sound, norm2, 1.0)), 0.0)
        keep = tl.where(phase > 0, along * scale, 1.0)
        new = old * keep + tl.sum(part, 0) * scale
        if phase < n_alternations:
            total, overlap = new[:, None] * r, old * new
            for start in range(first + USERS, last, USERS):
                u = start + lane
                part = _parts_of(parts_read, u, first, last, n_read, most_users, SLICES)
                w, _, errors = _users(now, rows, residual, u, last, f, n_features)
                v = w * keep + tl.sum(part, 0) * scale
                total += v[:, None] * errors
                overlap += w * v
            d = tl.sum(overlap, 0) * before + tl.sum(total, 0)
            tl.store(towards + f, d, mask=inside)
            mine = sums + (out * n_slices + me) * 2
            tl.store(mine, tl.sum(d * before, 0))
            tl.store(mine + 1, tl.sum(d * d, 0))
            parts_written = parts + (out * n_slices + me).to(tl.int64) * most_users
            tl.store(parts_written + lane, tl.sum(r * d[None, :], 1), mask=first + lane < last)
            for start in range(first + USERS, last, USERS):
                u = start + lane
                _, _, errors = _users(now, rows, residual, u, last, f, n_features)
                tl.store(parts_written + u - first, tl.sum(errors * d[None, :], 1), mask=u < last)
            if AT_ONCE:
                expected += n_slices
                _meet(arrived, expected)
        else:
            d = tl.load(towards + f, mask=inside, other=0.0) * scale
            better = f < tl.where(sound, n_features, 0)  # an atom without a direction stays
            mask = (first + lane < last)[:, None] & better[None, :]
            r += old[:, None] * before[None, :] - new[:, None] * d[None, :]
            tl.store(residual + _slices_at(row, f, n_features), r, mask=mask)
            # All programs write the same coefficients, and read what they wrote.
            tl.store(other + first + lane, tl.where(sound, new, old), mask=first + lane < last)
            for start in range(first + USERS, last, USERS):
                u = start + lane
                part = _parts_of(parts_read, u, first, last, n_read, most_users, SLICES)
                w, own, errors = _users(now, rows, residual, u, last, f, n_features)
                v = w * keep + tl.sum(part, 0) * scale
                errors += w[:, None] * before[None, :] - v[:, None] * d[None, :]
                mask = (u < last)[:, None] & better[None, :]
                tl.store(residual + _slices_at(own, f, n_features), errors, mask=mask)
                tl.store(other + u, tl.where(sound, v, w), mask=u < last)
            tl.debug_barrier()  # threads have copies of what was here, read above
            tl.store(dictionary + atom.to(tl.int64) * n_features + f, d, mask=better)
            tl.debug_barrier()
        step += 1


def slices(n_features: int) -> tuple[int, int]:
    """Return the width of a slice, a power of two, and how many there are."""
    width = max(triton.next_power_of_2(triton.cdiv(n_features, _SLICES)), _NARROWEST)
    return width, triton.cdiv(n_features, width)


def fits(most_users: int, n_features: int, n_nonzeros: int) -> bool:
    """Whether ``sweep`` is for a problem of this size."""
    return (
        most_users <= _MOST_USERS
        and 0 < n_features <= _MOST_FEATURES
        and 2 * n_nonzeros <= _MOST_NONZEROS
    )


def sweep(
    residual: Any,
    dictionaries: Any,
    weights: Any,
    rows: Any,
    starts: Any,
    bounds: list[int],
    most_users: int,
    n_alternations: int,
    n_sweeps: int,
    at_once: bool,
) -> Any:
    """Improve every atom and its coefficients in turn, those of several dictionaries at once.

    Parameters
    ----------
    residual : (n_signals, n_features) float32 or float64, contiguous
        What the codes leave of the signals; updated.
    dictionaries : (n_atoms, n_features) of the same type, contiguous
        Their atoms, dictionary by dictionary, of which those with a direction are replaced by
        better ones.
    weights : (n_nonzeros,) of the same type
        The coefficients, atom by atom.
    rows : (n_nonzeros,) int32
        Their signals, different ones for an atom, and for atoms of different dictionaries.
    starts : (n_atoms + 1,) int32
        Where in ``weights`` and ``rows`` the atoms begin, and where the last one ends.
    bounds : list of n_dictionaries + 1 numbers
        Where among the atoms the dictionaries begin, and where the last one ends.
    most_users : int
        The most signals of an atom.
    n_alternations, n_sweeps : int
        Alternations towards the leading singular pair of an atom's error; sweeps over all atoms.
    at_once : bool
        In one launch; otherwise in one from a meeting to the next.

    Returns
    -------
    (n_nonzeros,)
        The new coefficients, in the same order.
    """
    n_features, n_dictionaries = dictionaries.shape[1], len(bounds) - 1
    width, n_slices = slices(n_features)
    both = torch.stack([weights, weights])  # nonzeros of no atom stay as they are, in both

    def scratch(*shape: int) -> Any:
        return torch.empty((n_dictionaries, *shape), dtype=residual.dtype, device=residual.device)

    given = (
        residual, dictionaries, both, rows, starts,
        torch.tensor(bounds, dtype=torch.int32, device=residual.device), scratch(n_features),
        scratch(2, n_slices, most_users), scratch(2, n_slices, 2),
        torch.zeros((n_dictionaries, 32), dtype=torch.int32, device=residual.device),
    )  # fmt: skip
    most_atoms = max(end - start for start, end in pairwise(bounds))
    n_steps = n_sweeps * most_atoms * (n_alternations + 1)
    meetings = [] if at_once else [s for s in range(1, n_steps) if s % (n_alternations + 1)]
    options: dict[str, Any] = {}
    if at_once:
        # A launch of programs that wait for each other starts them all, or none.
        two = n_dictionaries * n_slices > processors(residual.device, _MOST_NONZEROS)
        options = {"launch_cooperative_grid": True, "maxnreg": _TWO_HAVE if two else None}
    for some in _shares(n_dictionaries, n_slices, residual.device):
        for first, last in pairwise([0, *meetings, n_steps]):
            _steps[(n_slices, len(some))](
                *given, some.start, first, last, n_alternations, n_sweeps, n_features, len(weights),
                most_users, WIDTH=width, SLICES=triton.next_power_of_2(n_slices),
                USERS=min(max(_AT_ONCE // width, 1), 128), AT_ONCE=at_once, num_warps=8,
                enable_fp_fusion=True, **options,
            )  # fmt: skip
    return both[n_sweeps % 2]


def _shares(n_dictionaries: int, n_slices: int, device: torch.device) -> list[range]:
    """Return which dictionaries go into a launch, as many as the card has programs for."""
    most = max(2 * processors(device, _MOST_NONZEROS) // n_slices, 1)
    size = triton.cdiv(n_dictionaries, triton.cdiv(n_dictionaries, most))
    return [
        range(start, min(start + size, n_dictionaries)) for start in range(0, n_dictionaries, size)
    ]
