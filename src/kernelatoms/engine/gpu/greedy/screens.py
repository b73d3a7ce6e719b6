"""Screens: products of residuals and atoms in low precision, with a bound of their error.

Residuals r are multiplied with atoms d on tensor cores as r^ = r + a and d^ = d + b, rounded to
half precision (float16, at powers of two) or, for very many atoms, to 8-bit integers. Of every 128
atoms only the two largest products of each residual leave the chip. A product is off by

    <r^, d^> - <r, d> = <a, d> + <r, b> + <a, b>,

and both rounding errors are known: they are computed with the rounded rows. Nothing is assumed
about the data; rows of few different values, whose entries all round alike, are no exception.

**Half precision.** The error is at most |a| |d| + |r| |b| + |a| |b| by Cauchy and Schwarz, at most
2^-10 |r| |d|, plus what float32 sums lose. This is a bound, and ``slack`` is this number.

**8 bits.** The same bound would leave hundreds of atoms in doubt. So both rows are rotated first,
by one random rotation Q of all: inner products stay, and Qr is evenly large, which is what integers
want. Given Qr, the part of Qd orthogonal to it points anywhere, independent of a. So <a, Qd> is
<r, d> <a, Qr> / |r|^2, which is known up to the factor <r, d>, plus a number that is larger than
``SURE`` |a| |d| / sqrt(n_features - 1) with a probability of less than exp(-SURE^2 / 2) over
rotations; <Qr, b> alike. The factors are in ``units``, the rest is ``slack``, where the two numbers
add up as independent ones do:

    |<r, d>| <= unit |<r^, d^>| + slack.

A pick is wrong only where this fails for the best atom itself: once in 10^13 steps, and once in
four million if the two were as dependent as can be. That holds for a uniformly random Q. Ours is
two rounds of random signs and a Hartley transform, a matrix product of 16 bits; what that product
loses is part of the slack.

See docs/decisions/010-gpu-screens.md.
"""

import math
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from kernelatoms.engine.gpu.arrays.work import processors

#: In 8 bits: bounds hold up to so many standard deviations of a random rotation.
SURE = 8.0
_ATOMS_AT_ONCE = 1 << 16  # that are rounded together
# From this many atoms on screens are in 8 bits.
_ATOMS_FOR_8_BITS = 32768
# One product has so many residuals and atoms; so many products next to each other share atoms.
_ROWS, _ATOMS, _GROUP = 128, 128, 8
# A tile is the atoms of one product or of two. Keys have room for a place among so many atoms.
_BIG = tl.constexpr(2 * _ATOMS)
_LARGEST = tl.constexpr(127.0)
# What rotating in 16 bits changes of a row, relative to its norm: three roundings of 2^-12 each.
_ROTATION = tl.constexpr(2.0**-10)
_TINY = tl.constexpr(1e-30)


class AtomsForScreens(NamedTuple):
    """Atoms in float32, and rounded and padded for the tensor cores.

    ``low`` (tall, wide) has rows for whole tiles and columns for whole steps of the product. In 8
    bits ``rotation`` is Q, (n_features, wide) float16; in half precision it is None. ``sizes`` are
    what ``low`` is to be multiplied by, the norm of the longest atom, that of the largest rounding
    error b, that of the largest error made before rotating, and the largest |<b, d>| / |d|^2.
    """

    atoms: torch.Tensor
    norms2: torch.Tensor
    low: torch.Tensor
    sizes: torch.Tensor
    rotation: torch.Tensor | None

    @property
    def n_parts(self) -> int:
        """The number of products that all atoms take: even, so that two can make a tile."""
        return len(self.low) // _ATOMS

    @property
    def spread(self) -> float:
        """What a rounding error's inner product is, at most, in units of both norms."""
        if self.rotation is None:
            return 1.0
        return min(1.0, SURE / math.sqrt(max(1, self.atoms.shape[1] - 1)))


class RowsForScreens(NamedTuple):
    """Residuals, rounded: one row per signal that goes on.

    |<r, d>| <= unit |<r^, d^>| + slack, where r^ is a row of ``low``, as of ``AtomsForScreens``.
    ``halves`` are the rows in half precision, of which ``rotate`` makes 8 bits; else the same.
    """

    low: torch.Tensor
    units: torch.Tensor
    slacks: torch.Tensor
    halves: torch.Tensor


def ready_atoms(atoms: torch.Tensor, *, eight_bits: bool | None = None) -> AtomsForScreens:
    """Return atoms (n_atoms, n_features) float32 as screens want them.

    Screens are in half precision, or in 8 bits, which takes two thirds of the time and leaves more
    atoms in doubt: by default for many atoms, where screens are all that counts.
    """
    n_atoms, n_features = atoms.shape
    if eight_bits is None:
        eight_bits = n_atoms >= _ATOMS_FOR_8_BITS and is_hopper(atoms.device)
    columns = columns_per_step(eight_bits)
    wide = -(-n_features // columns) * columns
    tall = -(-n_atoms // _BIG.value) * _BIG.value
    rotation = _random_rotation(n_features, wide, atoms.device) if eight_bits else None
    low = atoms.new_zeros((tall, wide), dtype=torch.int8 if eight_bits else torch.float16)
    norms2 = atoms.square().sum(1)
    power = torch.exp2(torch.ceil(torch.log2(atoms.abs().amax().clamp(min=_TINY.value))))
    # Errors in units of ``power``, over parts of the atoms: a second copy of all may not fit.
    errors = torch.zeros(3, device=atoms.device)
    step = torch.ones((), device=atoms.device)
    parts = [slice(i, min(i + _ATOMS_AT_ONCE, n_atoms)) for i in range(0, n_atoms, _ATOMS_AT_ONCE)]
    if rotation is not None:
        largest = [((atoms[part] / power).half() @ rotation).abs().amax() for part in parts]
        step = torch.stack(largest).amax().float().clamp(min=_TINY.value) / _LARGEST.value
        # Rows are at most 127 sqrt(wide) long. Products that are to fit into 23 bits of a key want
        # atoms no longer than this, rounding included.
        longest = 2.0**23 / (_LARGEST.value * math.sqrt(wide)) - math.sqrt(wide)
        step = torch.maximum(step, norms2.amax().sqrt() / power / longest)
    for part in parts:
        rows = atoms[part] / power
        half = rows.half()
        before = (half.float() - rows).norm(dim=1).amax()
        if rotation is None:
            low[part, :n_features] = half
            found = torch.stack([before, errors[1], errors[2]])
        else:
            turned = (half @ rotation).float()
            low[part] = torch.round(turned / step).to(torch.int8)
            off = low[part].float() * step - turned
            norms = turned.norm(dim=1).clamp(min=_TINY.value)
            lean = (off * turned).sum(1).abs() / norms.square()
            worst = off.norm(dim=1) + _ROTATION.value * norms
            found = torch.stack([worst.amax(), before, lean.amax()])
        errors = torch.maximum(errors, found)
    worst, before, lean = errors
    sizes = [power * step, norms2.amax().sqrt(), power * worst, power * before, lean]
    return AtomsForScreens(atoms, norms2, low, torch.stack(sizes), rotation)


def _random_rotation(n_features: int, wide: int, device: torch.device) -> torch.Tensor:
    """Return a matrix (n_features, wide) with orthonormal rows, float16: one for all.

    Signs, Hartley transform, signs, Hartley transform: cas(2 pi i j / wide) / sqrt(wide) is
    orthogonal for every size.
    """
    signs = torch.randint(0, 2, (2, wide), generator=torch.Generator().manual_seed(0)) * 2 - 1
    signs = signs.to(device, torch.float32)
    places = torch.arange(wide, device=device)
    angles = (places[:, None] * places % wide).double() * (2 * math.pi / wide)
    hartley = ((angles.cos() + angles.sin()) / math.sqrt(wide)).float()
    return (((signs[0, :, None] * hartley)[:n_features] * signs[1]) @ hartley).half()


def columns_per_step(eight_bits: bool) -> int:
    """Return how many columns a step of the product takes."""
    return 128 if eight_bits else 64


def is_hopper(device: torch.device) -> bool:
    """Whether a card is fast at numbers of 8 bits and copies tiles by itself."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] == 9


@triton.jit
def _slack(error, norm, sizes, spread, ROTATED: tl.constexpr):
    """Return what a product may be off by: see the head of this file."""
    longest = tl.load(sizes + 1)
    worst = tl.load(sizes + 2)
    if ROTATED:
        both = tl.sqrt(error * error * longest * longest + norm * norm * worst * worst)
    else:
        both = error * longest + norm * worst
    return (spread * both + error * worst) * 1.001


@triton.jit
def store_rounded(
    r, slot, halves, units, slacks, sizes, c, inside, n_features, wide, EIGHT_BITS: tl.constexpr
):  # fmt: skip
    """Write a residual for its next screen; in 8 bits what ``rotate`` makes that of."""
    unit = tl.exp2(tl.ceil(tl.log2(tl.maximum(tl.max(tl.abs(r), 0), 1e-30))))
    half = (r / unit).to(tl.float16)
    off = half.to(tl.float32) * unit - r
    error = tl.sqrt(tl.sum(off * off, 0))
    tl.store(halves + slot.to(tl.int64) * wide + c, half, mask=inside)
    if EIGHT_BITS:
        tl.store(units + slot, unit)
        tl.store(slacks + slot, error)
    else:
        # Products are exact; each of n_features sums loses at most 2^-23 of |r| |d|.
        norm = tl.sqrt(tl.sum(r * r, 0))
        error += norm * (n_features * 1.1920929e-07)
        tl.store(units + slot, unit * tl.load(sizes))
        tl.store(slacks + slot, _slack(error, norm, sizes, 1.0, False))


@triton.jit
def _round_rows(
    rows, halves, units, slacks, sizes, n_features, wide, P: tl.constexpr, EIGHT_BITS: tl.constexpr
):  # fmt: skip
    slot = tl.program_id(0)
    c = tl.arange(0, P)
    inside = c < n_features
    r = tl.load(rows + slot.to(tl.int64) * n_features + c, mask=inside, other=0.0)
    store_rounded(r, slot, halves, units, slacks, sizes, c, inside, n_features, wide, EIGHT_BITS)


@triton.jit
def _quantise(
    turned, low, units, slacks, sizes, wide, spread, W: tl.constexpr
):  # fmt: skip
    """Round a rotated row to 8 bits; ``slacks`` holds what half precision lost of it before."""
    slot = tl.program_id(0)
    c = tl.arange(0, W)
    inside = c < wide
    at = slot.to(tl.int64) * wide + c
    r = tl.load(turned + at, mask=inside, other=0.0).to(tl.float32)
    step = tl.maximum(tl.max(tl.abs(r), 0), 1e-30) / _LARGEST
    q = tl.floor(r / step + 0.5)
    tl.store(low + at, q.to(tl.int8), mask=inside)
    off = q * step - r
    norm2 = tl.maximum(tl.sum(r * r, 0), 1e-30)
    norm = tl.sqrt(norm2)
    error = tl.sqrt(tl.sum(off * off, 0)) + norm * _ROTATION
    lean = tl.abs(tl.sum(off * r, 0)) / norm2 + tl.load(sizes + 4)
    more = 1.001 / tl.maximum(1.0 - lean, 0.1)
    power = tl.load(units + slot)
    slack = _slack(error, norm, sizes, spread, True) * power
    # What half precision lost before the rotation may point anywhere.
    slack += 1.001 * tl.load(slacks + slot) * tl.load(sizes + 1)
    slack += 1.001 * norm * power * tl.load(sizes + 3)
    tl.store(units + slot, step * power * more * tl.load(sizes))
    tl.store(slacks + slot, slack * more)


@triton.jit
def _screen(
    rows, atoms, keys, n_rows, n_parts, wide,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    PROGRAMS: tl.constexpr, POSITIVE: tl.constexpr, TMA: tl.constexpr,
    EIGHT_BITS: tl.constexpr,
):  # fmt: skip
    """Write the two largest correlations of every row with every ``BN`` atoms, as keys.

    A program makes one product of ``BM`` rows and ``BN`` atoms after another, all in one loop: the
    next product's numbers are on their way while keys are compared.
    """
    n_down = tl.cdiv(n_rows, BM)
    rn = tl.arange(0, BN)
    rk = tl.arange(0, BK)
    kind: tl.constexpr = tl.int32 if EIGHT_BITS else tl.float32
    for product in tl.range(tl.program_id(0), n_down * n_parts, PROGRAMS, flatten=TMA):
        # Products of a group share atoms while these are in the second-level cache.
        first = product // (GROUP * n_parts) * GROUP
        high = min(n_down - first, GROUP)
        down = first + (product % (GROUP * n_parts)) % high
        part = (product % (GROUP * n_parts)) // high
        rm = down * BM + tl.arange(0, BM)
        inside = rm < n_rows
        safe = tl.where(inside, rm, 0).to(tl.int64)
        sums = tl.zeros((BM, BN), kind)
        if TMA:
            for k in range(0, wide, BK):
                left = rows.load([down * BM, k])
                right = atoms.load([part * BN, k]).T
                sums = tl.dot(left, right, sums, out_dtype=kind)
        else:
            left = rows + safe[:, None] * wide + rk[None, :]
            right = atoms + (part * BN + rn).to(tl.int64)[None, :] * wide + rk[:, None]
            # Pointers move: of offsets from the loop's counter Triton 3.6 made zeros.
            for _ in range(0, wide, BK):
                sums = tl.dot(tl.load(left), tl.load(right), sums, out_dtype=kind)
                left += BK
                right += BK
        # The product, and in the last bits the place in the tile, such that of equal products the
        # first atom's key is larger. No two keys are equal, so that the largest of all others less
        # the best, as an unsigned number, is the second's.
        if POSITIVE:
            sums = tl.maximum(sums, 0)
        place = (part * BN % _BIG + rn)[None, :]
        if EIGHT_BITS:
            key = tl.abs(sums) * _BIG - place
        else:  # without its sign bit, a float orders as an integer
            key = sums.to(tl.int32, bitcast=True) & (2147483648 - _BIG)
            key |= place ^ (_BIG - 1)
        one = tl.max(key, 1)
        others = (key - one[:, None]).to(tl.uint32, bitcast=True)
        two = one + tl.max(others, 1).to(tl.int32, bitcast=True)
        out = keys + (safe * n_parts + part) * 2
        tl.store(out, one, mask=inside)
        tl.store(out + 1, two, mask=inside)


@triton.jit
def load_keys(keys, slot, t, n_tiles, PARTS: tl.constexpr):
    """Return the two largest keys of tiles t of a row, each tile one part or two."""
    own = keys + (slot.to(tl.int64) * n_tiles + t) * (2 * PARTS)
    inside = t < n_tiles
    one, two = tl.load(own, mask=inside, other=0), tl.load(own + 1, mask=inside, other=0)
    if PARTS == 2:
        other = tl.load(own + 2, mask=inside, other=0)
        two = tl.maximum(two, tl.load(own + 3, mask=inside, other=0))
        two = tl.maximum(two, tl.minimum(one, other))
        one = tl.maximum(one, other)
    return one, two


@triton.jit
def value_of_key(key, EIGHT_BITS: tl.constexpr):
    """Return the largest product that a key may encode."""
    if EIGHT_BITS:
        return ((key + (_BIG - 1)) // _BIG).to(tl.float32)
    return (key | (_BIG - 1)).to(tl.float32, bitcast=True)


@triton.jit
def place_of_key(key, EIGHT_BITS: tl.constexpr):
    """Return the place of a key's atom among those of two parts."""
    return (-key if EIGHT_BITS else (_BIG - 1) - key) & (_BIG - 1)


def round_rows(rows: torch.Tensor, ready: AtomsForScreens) -> RowsForScreens:
    """Return rows (n, n_features) float32 for ``rotate``, then ``screen``."""
    n, n_features = rows.shape
    eight_bits, wide = ready.rotation is not None, ready.low.shape[1]
    low = torch.zeros((n, wide), dtype=ready.low.dtype, device=rows.device)
    halves = rows.new_empty((n, n_features), dtype=torch.float16) if eight_bits else low
    rounded = RowsForScreens(low, rows.new_empty(n), rows.new_empty(n), halves)
    _round_rows[(n,)](
        rows, halves, rounded.units, rounded.slacks, ready.sizes, n_features, halves.shape[1],
        P=triton.next_power_of_2(n_features), EIGHT_BITS=eight_bits, num_warps=2,
        enable_fp_fusion=False,
    )  # fmt: skip
    return rounded


def rotate(rounded: RowsForScreens, ready: AtomsForScreens) -> None:
    """Make 8 bits of rows in half precision."""
    if ready.rotation is None:
        return
    turned = rounded.halves @ ready.rotation
    _quantise[(len(turned),)](
        turned, rounded.low, rounded.units, rounded.slacks, ready.sizes, turned.shape[1],
        ready.spread, W=triton.next_power_of_2(turned.shape[1]), num_warps=2,
    )  # fmt: skip


def screen(
    rounded: RowsForScreens, ready: AtomsForScreens, keys: torch.Tensor, positive: bool
) -> None:
    """Write the two largest products of every row with each 128 atoms: (n, n_parts, 2) int32."""
    n_rows, wide = rounded.low.shape
    eight_bits = ready.rotation is not None
    a: Any = rounded.low
    b: Any = ready.low
    columns, tma = columns_per_step(eight_bits), is_hopper(a.device)
    if tma:
        from triton.tools.tensor_descriptor import TensorDescriptor

        a = TensorDescriptor.from_tensor(a, [_ROWS, columns])
        b = TensorDescriptor.from_tensor(b, [_ATOMS, columns])
    programs = 2 * processors(rounded.low.device, 1)  # two on every multiprocessor
    _screen[(programs,)](
        a, b, keys, n_rows, ready.n_parts, wide,
        BM=_ROWS, BN=_ATOMS, BK=columns, GROUP=_GROUP, PROGRAMS=programs, POSITIVE=positive,
        TMA=tma, EIGHT_BITS=eight_bits, num_warps=4, num_stages=3,
    )  # fmt: skip
