"""A matrix of small integers as bits: context mixing in integers, and a binary range coder.

Encoder and decoder are the same code. Where the encoder reads a number and codes its bits, the
decoder gets the bits and writes the number; everything else that either looks at is known to both.
"""

from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit

# Logits have 8 fractional bits, probabilities 16: logits within +-12 are every probability.
_LOGIT_LIMIT = 3071
_LARGEST_PROBABILITY = 65535


def _squash_table() -> NDArray[np.int32]:
    """Return 65536 / (1 + exp(-x / 256)), rounded, for all logits x.

    In decimals, which are the same on every machine.
    """
    with localcontext() as context:
        context.prec = 30
        step = (Decimal(1) / 256).exp()
        table, power = [], step**-_LOGIT_LIMIT
        for _ in range(2 * _LOGIT_LIMIT + 1):
            table.append(int(65536 * power / (1 + power) + Decimal("0.5")))
            power *= step
    return np.clip(np.array(table), 1, _LARGEST_PROBABILITY).astype(np.int32)


def _log_table(scale: int, offset: Decimal, top: int) -> NDArray[np.int32]:
    """Return scale * ln(x + offset), rounded."""
    with localcontext() as context:
        context.prec = 30
        values = [(Decimal(2 * x) / 2 + offset) for x in range(top)]
        return np.array([int((scale * v.ln()).to_integral_value()) for v in values], np.int32)


_SQUASH = _squash_table()
# ln(p / (1 - p)) for the upper 12 bits of p, at the middle of what they leave open.
_LOG_ODD = _log_table(256, Decimal("0.5"), 4096)
_STRETCH = (_LOG_ODD - _LOG_ODD[::-1]).astype(np.int32)
# Magnitudes have 6 fractional bits; 256 ln(x / 64) for those under 64.
_LOG = (_log_table(256, Decimal("0.5"), 4096) - 1065).astype(np.int32)
_LOG_16 = 710
# 2^(i / 16) with 16 fractional bits.
_POWERS = np.array(
    [int((65536 * Decimal(2) ** (Decimal(i) / 16)).to_integral_value()) for i in range(16)],
    np.int64,
)
# Rates of probabilities that have met so many bits, of 65536.
_LIMIT = 250
_RATES = np.array([65536 * 2 // (2 * i + 3) for i in range(_LIMIT + 1)], np.int32)

LARGEST = 1 << 30
_MAX_MAGNITUDE = 1 << 40
_UNARY = 20
# More bytes than a number can take.
_ROOM = 512
_N_FEATURES = 7
_N_TABLES = 4
_N_INPUTS = _N_FEATURES + _N_TABLES
_LEVELS = 16
_RATE_SHIFT = 14
_LOW, _RANGE, _CODE, _PLACE = 0, 1, 2, 3


@jit()
def _clamp(x, low, high):  # type: ignore[no-untyped-def]
    return low if x < low else high if x > high else x


@jit()
def start(data, decoding):  # type: ignore[no-untyped-def]
    """Return the state of a coder that writes or reads data."""
    coder = np.zeros(4, np.int64)
    coder[_RANGE] = (1 << 32) - 1
    if decoding:
        for _ in range(4):
            coder[_CODE] = (coder[_CODE] << 8) | _next_byte(coder, data)
    return coder


@jit()
def _next_byte(coder, data):  # type: ignore[no-untyped-def]
    place = coder[_PLACE]
    coder[_PLACE] = place + 1
    return np.int64(data[place]) if place < len(data) else np.int64(0)


@jit()
def _carry(coder, data):  # type: ignore[no-untyped-def]
    place = coder[_PLACE] - 1
    while data[place] == 255:
        data[place] = 0
        place -= 1
    data[place] += 1


@jit()
def code_bit(coder, data, decoding, bit, p):  # type: ignore[no-untyped-def]
    """Code a bit that is 1 with probability p / 65536, from 1 to 65535; return it."""
    width = coder[_RANGE]
    ones = (width * p) >> 16
    if decoding:
        bit = 1 if coder[_CODE] < ones else 0
        if bit:
            width = ones
        else:
            coder[_CODE] -= ones
            width -= ones
        while width < 1 << 24:
            width <<= 8
            coder[_CODE] = (coder[_CODE] << 8) | _next_byte(coder, data)
    else:
        low = coder[_LOW]
        if bit:
            width = ones
        else:
            low += ones
            width -= ones
            if low >> 32:
                low &= (1 << 32) - 1
                _carry(coder, data)
        while width < 1 << 24:
            width <<= 8
            data[coder[_PLACE]] = low >> 24
            coder[_PLACE] += 1
            low = (low << 8) & ((1 << 32) - 1)
        coder[_LOW] = low
    coder[_RANGE] = width
    return bit


@jit()
def _grown(data):  # type: ignore[no-untyped-def]
    larger = np.empty(2 * len(data) + _ROOM, np.uint8)
    larger[: len(data)] = data
    return larger


@jit()
def finish(coder, data):  # type: ignore[no-untyped-def]
    """Write the one byte that tells the interval, if zeros follow; return the number of bytes."""
    low = coder[_LOW] + (1 << 24) - 1
    if low >> 32:
        _carry(coder, data)
    data[coder[_PLACE]] = (low >> 24) & 255
    return coder[_PLACE] + 1


@jit()
def _update(slots, at, bit):  # type: ignore[no-untyped-def]
    """Move a probability (22 bits) towards a bit, the less the more bits (10 bits) it has met."""
    slot = np.int64(slots[at])
    p, n = slot >> 10, slot & 1023
    p += (((bit << 22) - bit - p) * _RATES[n]) >> 16
    slots[at] = (p << 10) | min(n + 1, _LIMIT)


@jit()
def _code_plain(coder, data, decoding, bit, slots, at):  # type: ignore[no-untyped-def]
    p = _clamp(np.int64(slots[at]) >> 16, 1, 65535)
    bit = code_bit(coder, data, decoding, bit, p)
    _update(slots, at, bit)
    return bit


@jit()
def _code_mixed(coder, data, decoding, bit, slots, at, step, inputs, weights, mix):  # type: ignore[no-untyped-def]
    n_features = len(inputs) - len(at)
    for t in range(len(at)):
        inputs[n_features + t] = _STRETCH[slots[at[t] + step] >> 20]
    total = np.int64(0)
    for t in range(len(inputs)):
        total += np.int64(inputs[t]) * weights[mix, t]
    logit = _clamp(total >> 16, -_LOGIT_LIMIT, _LOGIT_LIMIT)
    p = np.int64(_SQUASH[logit + _LOGIT_LIMIT])
    bit = code_bit(coder, data, decoding, bit, p)
    error = (bit << 16) - p
    for t in range(len(inputs)):
        weights[mix, t] += (inputs[t] * error + (1 << (_RATE_SHIFT - 1))) >> _RATE_SHIFT
    for t in range(len(at)):
        _update(slots, at[t] + step, bit)
    return bit


@jit()
def _scaled(value, steps):  # type: ignore[no-untyped-def]
    """Return value * 2^(steps / 16) of a value from 0 to 2^40."""
    value = (value * _POWERS[steps & 15]) >> 16
    shift = steps >> 4
    if shift >= 0:
        return min(value << min(shift, 20), _MAX_MAGNITUDE)
    return value >> min(-shift, 60)


@jit()
def _log(x):  # type: ignore[no-untyped-def]
    more = 0
    while x >= 4096:
        x >>= 4
        more += _LOG_16
    return _LOG[x] + more


@jit()
def _level(log):  # type: ignore[no-untyped-def]
    """Return the half octave of a logarithm."""
    return _clamp((log + 620) // 89, 0, _LEVELS - 1)


@jit()
def _fill(slots, first, n_contexts, log):  # type: ignore[no-untyped-def]
    """Give all contexts from first on the geometric law of the mean that a logarithm says."""
    p = np.int64(_SQUASH[_clamp(log, -1500, 1500) + _LOGIT_LIMIT])
    for c in range(n_contexts * (_UNARY + 1)):
        slots[first + c] = (p << 16) | 4


@jit()
def code_integers(k, coded, steps, slice_rows, lag, symmetric, data, decoding):  # type: ignore[no-untyped-def]
    """Code all numbers; return data and its length, -1 where it cannot be what was coded."""
    n, m = k.shape
    wide = _UNARY + 1
    coder = start(data, decoding)

    n_levels = _LEVELS * _LEVELS
    slots = np.empty((64 + 2 * n_levels + 512) * wide, np.uint32)
    first = np.array([0, 64, 64 + n_levels, 64 + 2 * n_levels]) * wide
    for c in range(64):
        _fill(slots, c * wide, 1, c * 44 - 620 + 22)
    for c in range(_LEVELS):
        for e in range(_LEVELS):
            log = (c + e) * 89 // 2 - 620 + 44
            _fill(slots, first[1] + (c * _LEVELS + e) * wide, 1, log)
            _fill(slots, first[2] + (c * _LEVELS + e) * wide, 1, log)
    for a in range(8):
        for b in range(8):
            for c in range(8):
                _fill(slots, first[3] + (a * 64 + b * 8 + c) * wide, 1, _log((a + b + c) * 21 + 8))
    signs = np.full(27, (1 << 31) + 4, np.uint32)
    tails = np.full(256, (1 << 31) + 4, np.uint32)
    weights = np.empty((wide, _N_INPUTS), np.int32)
    weights[:] = 65536 // (_N_INPUTS - 1)

    inputs = np.zeros(_N_INPUTS, np.int32)
    inputs[0] = 256
    weights[:, 0] = 0
    at = np.zeros(_N_TABLES, np.int64)
    fast, slow = np.full(m + 2, 64, np.int64), np.full(m + 2, 64, np.int64)
    # What is known of magnitudes, rows with a column on either side; signs of those coded.
    seen = np.full((n, m + 2), 64, np.int64)
    none = np.full(m + 2, 64, np.int64)
    row_before = np.int64(64)
    for i in range(n):
        if decoding and coder[_PLACE] > len(data) + 4:
            return data, -1
        if i:
            change = np.int64(steps[i - 1]) - np.int64(steps[i])
            if change:
                for j in range(m + 2):
                    fast[j] = _scaled(fast[j], change)
                    slow[j] = _scaled(slow[j], change)
                row_before = _scaled(row_before, change)
        above = seen[i - 1] if i else none
        change_above = np.int64(steps[i - 1]) - np.int64(steps[i]) if i else 0
        other = i - slice_rows if 0 < slice_rows <= i else i - 1
        related = seen[other] if other >= 0 else none
        change_related = np.int64(steps[other]) - np.int64(steps[i]) if other >= 0 else 0
        further = i - lag if 0 < lag <= i else i - 2
        later = seen[further] if further >= 0 else none
        change_later = np.int64(steps[further]) - np.int64(steps[i]) if further >= 0 else 0
        this = seen[i]
        left = left2 = left3 = row_mean = row_before
        sign_left = 1
        total, count = np.int64(0), np.int64(0)
        slice_first = i - i % m if symmetric else 0
        for j in range(m):
            c = j + 1
            if not decoding and coder[_PLACE] + _ROOM > len(data):
                data = _grown(data)
            if not coded[i, j]:
                mirror = slice_first + j
                if symmetric and mirror < i:
                    # Its mirror image was coded in a row before.
                    magnitude = _scaled(
                        seen[mirror, i - slice_first + 1], np.int64(steps[mirror]) - steps[i]
                    )
                else:
                    this[c] = slow[c]
                    continue
            else:
                # What is expected.
                r = _scaled(related[c - 1] + 2 * related[c] + related[c + 1], change_related) >> 2
                a = _scaled(above[c - 1] + 2 * above[c] + above[c + 1], change_above) >> 2
                b = _scaled(later[c - 1] + 2 * later[c] + later[c + 1], change_later) >> 2
                near = (2 * left + left2 + left3) >> 2
                expected = (2 * near + 2 * fast[c] + 2 * slow[c] + r + a) >> 3
                shift = 0
                while expected >> shift >= 6 * 64:
                    shift += 1
                inputs[1] = _log(fast[c] >> shift)
                inputs[2] = _log(slow[c] >> shift)
                inputs[3] = _log(near >> shift)
                inputs[4] = _log(r >> shift)
                inputs[5] = _log(row_mean >> shift)
                inputs[6] = _log(b >> shift)
                log = _log(expected >> shift)
                at[0] = first[0] + _clamp((log + 620) // 44, 0, 63) * wide
                at[1] = first[1] + (_level(inputs[2]) * _LEVELS + _level(inputs[3])) * wide
                at[2] = first[2] + (_level(inputs[1]) * _LEVELS + _level(inputs[4])) * wide
                x = _clamp(left >> (shift + 6), 0, 7)
                y = _clamp(_scaled(above[c], change_above) >> (shift + 6), 0, 7)
                z = _clamp(_scaled(related[c], change_related) >> (shift + 6), 0, 7)
                at[3] = first[3] + (x * 64 + y * 8 + z) * wide

                # The magnitude: is it zero? Then the rest over 2^shift in ones, and what is left.
                value = np.int64(k[i, j])
                size = abs(value)
                bit = _code_mixed(
                    coder, data, decoding, 1 if size else 0, slots, at, 0, inputs, weights, 0
                )
                if not bit:
                    value = np.int64(0)
                    size = np.int64(0)
                else:
                    sign = 3 * sign_left
                    sign += 1 if i == 0 else 1 + np.sign(np.int64(k[i - 1, j]))
                    sign = 3 * sign + (1 if other < 0 else 1 + np.sign(np.int64(k[other, j])))
                    negative = _code_plain(
                        coder, data, decoding, 1 if value < 0 else 0, signs, sign
                    )
                    part = (size - 1) >> shift
                    step = 1
                    while step <= _UNARY:
                        bit = _code_mixed(
                            coder,
                            data,
                            decoding,
                            1 if part >= step else 0,
                            slots,
                            at,
                            step,
                            inputs,
                            weights,
                            step,
                        )
                        if not bit:
                            break
                        step += 1
                    got = np.int64(step - 1)
                    if step > _UNARY:
                        beyond = part - _UNARY + 1
                        length = 0
                        while True:
                            bit = _code_plain(
                                coder,
                                data,
                                decoding,
                                1 if beyond >> (length + 1) > 0 else 0,
                                tails,
                                min(length, 31),
                            )
                            if not bit:
                                break
                            length += 1
                            if length > 30:
                                return data, -1
                        number = np.int64(1)
                        for place in range(length - 1, -1, -1):
                            bit = (beyond >> place) & 1
                            if place == length - 1:
                                bit = _code_plain(coder, data, decoding, bit, tails, 64 + length)
                            else:
                                bit = code_bit(coder, data, decoding, bit, 32768)
                            number = 2 * number + bit
                        got = number + _UNARY - 1
                    for place in range(shift - 1, -1, -1):
                        bit = ((size - 1) >> place) & 1
                        if place == shift - 1:
                            bit = _code_plain(
                                coder, data, decoding, bit, tails, 128 + min(step, 31)
                            )
                        else:
                            bit = code_bit(coder, data, decoding, bit, 32768)
                        got = 2 * got + bit
                    size = got + 1
                    if size > LARGEST:
                        return data, -1
                    value = -size if negative else size
                if decoding:
                    k[i, j] = value
                magnitude = size << 6
                sign_left = 1 + np.sign(value)
                total += magnitude
                count += 1
                row_mean = (total + 4 * row_before) // (count + 4)
            this[c] = magnitude
            left3, left2, left = left2, left, magnitude
            fast[c] += (magnitude - fast[c]) >> 2
            slow[c] += (magnitude - slow[c]) >> 4
        this[0], this[m + 1] = this[1], this[m]
        row_before = row_mean
    return data, coder[_PLACE] if decoding else finish(coder, data)


@jit()
def code_bits(mask, data, decoding):  # type: ignore[no-untyped-def]
    """Code a matrix of zeros and ones; return as ``code_integers`` does."""
    n, m = mask.shape
    coder = start(data, decoding)
    same_slots = np.full(4, (1 << 31) + 4, np.uint32)
    slots = np.full(256 * 4, (1 << 31) + 4, np.uint32)
    inputs, at = np.zeros(5, np.int32), np.zeros(4, np.int64)
    weights = np.full((1, 5), 24000, np.int32)
    inputs[0] = 256
    weights[0, 0] = 0
    history = np.zeros(m, np.int64)
    above, above2 = np.zeros(m + 4, np.int64), np.zeros(m + 4, np.int64)
    recent = 3
    for i in range(n):
        if decoding and coder[_PLACE] > len(data) + 4:
            return data, -1
        same = 1
        for j in range(m):
            if mask[i, j] != above[j + 2]:
                same = 0
                break
        same = _code_plain(coder, data, decoding, same, same_slots, recent & 3)
        recent = 2 * recent + same
        row = 0
        for j in range(m):
            if not decoding and coder[_PLACE] + _ROOM > len(data):
                data = _grown(data)
            if same:
                bit = above[j + 2]
            else:
                c = j + 2
                around = 4 * above[c - 1] + 2 * above[c] + above[c + 1]
                at[0] = 32 * (row & 3) + 4 * around + 2 * above2[c] + above[c + 2]
                at[1] = 256 + history[j]
                at[2] = 512 + row
                at[3] = 768 + (row & 7) * 8 + (history[j] & 7)
                bit = _code_mixed(
                    coder, data, decoding, np.int64(mask[i, j]), slots, at, 0, inputs, weights, 0
                )
            if decoding:
                mask[i, j] = bit
            row = (2 * row + bit) & 255
            history[j] = (2 * history[j] + bit) & 255
        for j in range(m):
            above2[j + 2] = above[j + 2]
            above[j + 2] = mask[i, j]
    return data, coder[_PLACE] if decoding else finish(coder, data)
